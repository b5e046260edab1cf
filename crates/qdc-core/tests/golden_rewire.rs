//! SDRF against `curvature_*.npz`: exact rational arithmetic (Python's fractions) and brute force.

use qdc_core::rewire::{Sdrf, Variant, balanced_forman};
use qdc_core::{EdgeRule, Graph, Watch};
use qdc_data::npz::Npz;

const GRAPHS: [(&str, usize); 3] = [("karate", 34), ("barbell", 21), ("random", 20)];
const VARIANTS: [(Variant, &str); 2] = [(Variant::Formula, "formula"), (Variant::Code, "code")];

fn open(name: &str, nodes: usize) -> (Npz, Graph) {
    let file = Npz::open(qdc_testing::golden(&format!("curvature_{name}.npz"))).unwrap();
    let edges = pairs(&file, "edges").into_iter().map(|(a, b)| (u64::from(a), u64::from(b)));
    let graph = Graph::from_edges(nodes, edges, EdgeRule::Undirected).unwrap();
    (file, graph)
}

fn pairs(file: &Npz, key: &str) -> Vec<(u32, u32)> {
    let array = file.array::<u32>(key).unwrap();
    array.data.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn curvatures_equal_the_exact_fractions() {
    for (name, nodes) in GRAPHS {
        let (file, graph) = open(name, nodes);
        for (variant, key) in VARIANTS {
            let expected = file.vector::<f64>(&format!("{key}.curvature")).unwrap();
            let found = balanced_forman(&graph, variant, &Watch::silent()).unwrap();
            assert_eq!(found.len(), expected.len());
            for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!((found - expected).abs() < 1e-12, "{name} {key} edge {at}: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn the_flow_takes_the_same_steps_edge_for_edge() {
    for (name, nodes) in GRAPHS {
        let (file, graph) = open(name, nodes);
        for (variant, key) in VARIANTS {
            let flow = Sdrf::new(10).variant(variant).removal_bound(0.5);
            let (rewired, report) = flow.run(&graph, &Watch::silent()).unwrap();
            let steps = file.array::<i64>(&format!("{key}.steps")).unwrap();
            let values = file.array::<f64>(&format!("{key}.values")).unwrap();
            assert_eq!(report.steps.len(), steps.shape[0], "{name} {key}");
            for (number, step) in report.steps.iter().enumerate() {
                let pair = |pair: Option<(u32, u32)>| pair.map_or([-1, -1], |(a, b)| [a.into(), b.into()]);
                let found = [pair(Some(step.edge)), pair(step.added), pair(step.removed)].concat();
                assert_eq!(found, steps.data[6 * number..6 * number + 6], "{name} {key} step {number}");
                let expected = &values.data[3 * number..3 * number + 3];
                for (found, expected) in [step.curvature, step.gain, step.greatest].iter().zip(expected) {
                    assert!((found - expected).abs() < 1e-12, "{name} {key} step {number}: {step:?}");
                }
            }
            let after: Vec<(u32, u32)> = rewired.edge_list().map(|(a, b, _)| (a, b)).collect();
            assert_eq!(after, pairs(&file, &format!("{key}.edges_after")), "{name} {key}");
        }
    }
}
