//! The nine datasets: original files and one-file archives must agree, and the published numbers must come out.

use qdc_data::{DataDir, NAMES, REGISTRY, read_dataset};

#[test]
fn the_original_files_give_exactly_what_the_archives_hold() {
    let Some(folder) = qdc_testing::data_dir() else { return };
    let raw = DataDir::new(folder.join("raw"));
    if !raw.path().is_dir() {
        return;
    }
    for name in NAMES {
        let archive = DataDir::new(&folder).load(name).unwrap();
        assert_eq!(
            archive,
            qdc_data::Dataset {
                name: name.into(),
                ..read_dataset(&folder.join(format!("{name}.npz"))).unwrap()
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
    for entry in &REGISTRY {
        let statistics = DataDir::new(&folder).load(entry.name).unwrap().statistics().unwrap();
        assert_eq!(
            (statistics.nodes, statistics.edges, statistics.features, statistics.classes, statistics.splits),
            (entry.nodes, entry.edges, entry.features, entry.classes, 10),
            "{}",
            entry.name
        );
        assert_eq!(
            format!("{:.2}", statistics.homophily),
            format!("{:.2}", entry.homophily),
            "{}",
            entry.name
        );
        let golden = &golden["datasets"][entry.name];
        assert!((statistics.homophily - golden["node"].as_f64().unwrap()).abs() < 1e-12);
        assert!((statistics.edge_homophily - golden["edge"].as_f64().unwrap()).abs() < 1e-12);
        assert_eq!((statistics.edges - statistics.self_loops) as u64, golden["edges"].as_u64().unwrap());
    }
}

#[test]
fn the_masks_of_cora_leave_vertices_out() {
    let Some(folder) = qdc_testing::data_dir() else { return };
    let cora = DataDir::new(&folder).load("cora").unwrap();
    for split in &cora.splits {
        assert_eq!(split.train().len() + split.validation().len() + split.test().len(), 2485);
    }
}
