//! The datasets known by name: original files and one-file archives must agree, and the published numbers
//! must come out.

use qdc_core::Metric;
use qdc_data::{Budget, DataDir, PUBLISHED, REGISTRY, read_dataset};

#[test]
fn a_dataset_has_one_hash_whatever_file_it_comes_from_and_the_registry_knows_it() {
    let Some(folder) = qdc_testing::data_dir() else { return };
    let mut seen = 0;
    for name in qdc_data::NAMES {
        let Ok(one) = DataDir::new(&folder).load(name) else { continue };
        if let Ok(originals) = DataDir::new(folder.join("raw")).load(name) {
            assert_eq!(originals.hash(), one.hash(), "{name}");
        }
        assert_eq!(DataDir::new(&folder).check(name).unwrap().by, "content", "{name}: {}", one.hash());
        let mut changed = one.clone();
        changed.splits.swap(0, 1);
        assert_ne!(changed.hash(), one.hash(), "{name}");
        let mut changed = one.clone();
        changed.labels.swap(0, one.labels.iter().position(|&label| label != one.labels[0]).unwrap());
        assert_ne!(changed.hash(), one.hash(), "{name}");
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn the_original_files_give_exactly_what_the_archives_hold() {
    let Some(folder) = qdc_testing::data_dir() else { return };
    let raw = DataDir::new(folder.join("raw"));
    if !raw.path().is_dir() {
        return;
    }
    for name in PUBLISHED {
        let archive = DataDir::new(&folder).load(name).unwrap();
        assert_eq!(
            archive,
            qdc_data::Dataset {
                name: name.into(),
                ..read_dataset(&folder.join(format!("{name}.npz")), Budget::default()).unwrap()
            }
        );
        let original = raw.load(name).unwrap();
        assert_eq!(original.graph, archive.graph, "{name}");
        assert_eq!(original.features, archive.features, "{name}");
        assert_eq!(original.labels, archive.labels, "{name}");
        assert_eq!(original.splits, archive.splits, "{name}");
        assert_eq!(original, archive);
    }
}

#[test]
fn counts_and_homophily_are_those_of_the_published_table() {
    let Some(folder) = qdc_testing::data_dir() else { return };
    let golden: serde_json::Value =
        serde_json::from_slice(&std::fs::read(qdc_testing::golden("homophily.json")).unwrap()).unwrap();
    for entry in REGISTRY.iter().filter(|entry| DataDir::new(&folder).find(entry.name).is_some()) {
        let statistics = DataDir::new(&folder).load(entry.name).unwrap().statistics().unwrap();
        assert_eq!(
            (statistics.nodes, statistics.edges, statistics.features, statistics.classes, statistics.splits),
            (entry.nodes, entry.edges, entry.features, entry.classes, 10),
            "{}",
            entry.name
        );
        assert_eq!(
            format!("{:.2}", statistics.homophily),
            format!("{:.2}", entry.homophily.unwrap()),
            "{}",
            entry.name
        );
        if !PUBLISHED.contains(&entry.name) {
            continue;
        }
        let golden = &golden["datasets"][entry.name];
        assert!((statistics.homophily - golden["node"].as_f64().unwrap()).abs() < 1e-12);
        assert!((statistics.edge_homophily - golden["edge"].as_f64().unwrap()).abs() < 1e-12);
        assert_eq!((statistics.edges - statistics.self_loops) as u64, golden["edges"].as_u64().unwrap());
    }
}

#[test]
fn the_heterophilous_collection_loads_by_name_with_its_own_splits_and_metric() {
    let Some(folder) = qdc_testing::data_dir() else { return };
    let folder = DataDir::new(&folder);
    for (name, metric, train) in [
        ("minesweeper", Metric::Auc, 5000),
        ("tolokers", Metric::Auc, 5879),
        ("chameleon-filtered", Metric::Accuracy, 409),
        ("squirrel_filtered", Metric::Accuracy, 1053),
    ] {
        let dataset = folder.load(name).unwrap();
        assert_eq!(dataset.name, name.replace('_', "-"));
        assert_eq!((dataset.usual_metric(), dataset.splits[0].train().len()), (metric, train), "{name}");
        assert!(!PUBLISHED.contains(&dataset.name.as_str()));
    }
}

#[test]
fn original_files_of_the_collection_are_read_and_pinned_by_name() {
    let Some(data) = qdc_testing::data_dir() else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder
        .path()
        .join("yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318/data");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::copy(data.join("chameleon_filtered.npz"), place.join("chameleon_filtered.npz")).unwrap();
    let folder = DataDir::new(folder.path());
    assert_eq!(
        folder.load("chameleon-filtered").unwrap(),
        DataDir::new(&data).load("chameleon-filtered").unwrap()
    );
    let there = qdc_data::download(&folder, "chameleon_filtered", None, &qdc_core::Watch::silent()).unwrap();
    assert_eq!((there.fetched, there.present), (0, 1), "the file has the pinned checksum");
    let error = folder.load("questions").unwrap_err();
    assert!(error.hint().unwrap().contains("qdc data get questions"), "{error}");
}

#[test]
fn the_masks_of_cora_leave_vertices_out() {
    let Some(folder) = qdc_testing::data_dir() else { return };
    let cora = DataDir::new(&folder).load("cora").unwrap();
    for split in &cora.splits {
        assert_eq!(split.train().len() + split.validation().len() + split.test().len(), 2485);
    }
}
