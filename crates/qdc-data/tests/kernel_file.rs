//! Kernels that go to disk as they are made are those that are made in memory, byte for byte.

use std::fs;
use std::path::Path;

use qdc_core::{
    EdgeRule, Filter, Graph, Job, Normalize, Recipe, Resources, Sign, Sparsify, Watch, kernel::ShardManifest,
};
use qdc_data::{KernelFile, matrix};

/// Preferential attachment, so that columns differ much in length.
fn graph(nodes: u64) -> Graph {
    let edges = (1..nodes).flat_map(|v| [(v, (v * v + 3) % v), (v, v / 2), (v, (7 * v) % v.min(5))]);
    let edges: Vec<_> = edges.filter(|(a, b)| a != b).collect();
    Graph::from_edges(nodes as usize, edges, EdgeRule::Undirected).unwrap()
}

fn job(recipe: &Recipe, graph: &Graph) -> Job {
    recipe.prepare(graph, &Resources::default(), &Watch::silent()).unwrap()
}

fn streamed(path: &Path, job: &Job, nodes: usize, each: usize, memory: u64) -> qdc_core::KernelReport {
    let mut file = KernelFile::create(path, memory).unwrap();
    for start in (0..nodes).step_by(each) {
        file.push(&job.rows(start..nodes.min(start + each), &Watch::silent()).unwrap()).unwrap();
    }
    file.finish().unwrap()
}

#[test]
fn every_rule_and_normalisation_gives_the_bytes_that_memory_gives() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, parts) = (folder.path().join("whole.npz"), folder.path().join("parts.npz"));
    let (nodes, graph) = (150, graph(150));
    let filter = Filter::gaussian(0.2, 0.3).unwrap();
    for sparsify in [
        Sparsify::TopK(5),
        Sparsify::TopK(400),
        Sparsify::Epsilon(0.01),
        Sparsify::Epsilon(10.0),
        Sparsify::None,
    ] {
        for sign in [Sign::Positive, Sign::Absolute] {
            for normalize in [Normalize::Sym, Normalize::Row, Normalize::Col, Normalize::None] {
                let recipe = Recipe::new(filter.clone()).sparsify(sparsify).sign(sign).normalize(normalize);
                let job = job(&recipe, &graph);
                let built = job.build(&Watch::silent()).unwrap();
                matrix::write(&whole, &built.matrix).unwrap();
                for (each, memory) in [(150, u64::MAX), (64, 5_000), (31, 0)] {
                    let mut report = streamed(&parts, &job, nodes, each, memory);
                    assert_eq!(
                        fs::read(&whole).unwrap(),
                        fs::read(&parts).unwrap(),
                        "{recipe:?}, {each} rows"
                    );
                    // Advice on another threshold needs rows that were not kept.
                    if sparsify == Sparsify::Epsilon(10.0) {
                        report.warnings.clone_from(&built.report.warnings);
                    }
                    assert_eq!(report, built.report, "{recipe:?}");
                }
            }
        }
    }
}

#[test]
fn shards_that_do_not_follow_one_another_are_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel.npz");
    let graph = graph(40);
    let watch = Watch::silent();
    let recipe = Recipe::new(Filter::heat(2.0).unwrap()).sparsify(Sparsify::TopK(3));
    let job = job(&recipe, &graph);
    let [first, last] = [0..25, 25..40].map(|rows| job.rows(rows, &watch).unwrap());
    let mut file = KernelFile::create(&path, 0).unwrap();
    assert!(file.push(&last).unwrap_err().to_string().contains("row 0"), "it does not begin with row 0");
    let mut file = KernelFile::create(&path, 0).unwrap();
    file.push(&first).unwrap();
    let mut other = last.clone();
    other.manifest = ShardManifest { recipe: recipe.clone().self_loop(2.0), ..other.manifest };
    assert!(file.push(&other).unwrap_err().to_string().contains("self-loop"));
    let mut file = KernelFile::create(&path, 0).unwrap();
    file.push(&first).unwrap();
    assert!(file.finish().unwrap_err().to_string().contains("row 25"));
    assert!(KernelFile::create(&path, 0).unwrap().finish().is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(KernelFile::create(&folder.path().join("no/such/folder.npz"), 0).is_err());
}

#[test]
fn a_mapped_matrix_is_the_one_that_is_read_whatever_the_order_of_its_columns() {
    use qdc_data::npz::NpzWriter;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.npz");
    let budget = qdc_data::Budget::default();
    let write = |format: &str, indices: &[u32]| {
        let mut writer = NpzWriter::create(&path).unwrap();
        writer.array("indices", &[3], indices).unwrap();
        writer.array("indptr", &[3], &[0u64, 2, 3]).unwrap();
        writer.text("format", format).unwrap();
        writer.array("shape", &[2], &[2u64, 2]).unwrap();
        writer.array("data", &[3], &[0.1, 0.2, 0.3]).unwrap();
        writer.finish().unwrap();
    };
    for (format, indices) in [("csr", [0, 1, 1]), ("csr", [1, 0, 1]), ("csc", [0, 1, 1])] {
        write(format, &indices);
        let read = matrix::read(&path, budget).unwrap().map(|value| value as f32);
        assert_eq!(matrix::map(&path, budget).unwrap(), read, "{format} {indices:?}");
    }
    write("csr", &[0, 1, 7]);
    assert!(matrix::map(&path, budget).unwrap_err().to_string().contains("outside 0..2"));
    let table = folder.path().join("matrix.csv");
    fs::write(&table, "0,1,0.5\n1,0,0.5\n").unwrap();
    assert_eq!(matrix::map(&table, budget).unwrap().get(0, 1), Some(0.5));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}
