//! The barbell in motion: one HTML file with a time slider, no network.

use qdc_core::Graph;

use crate::figures::Barbell;

/// A page that shows heat and a quantum particle side by side, at the times of `numbers`.
pub fn animation(graph: &Graph, numbers: &Barbell) -> String {
    let edges: Vec<(u32, u32)> = graph.edge_list().map(|(a, b, _)| (a, b)).collect();
    let round = |states: &[Vec<f64>]| -> Vec<Vec<f64>> {
        states.iter().map(|state| state.iter().map(|value| (value * 1e6).round() / 1e6).collect()).collect()
    };
    let data = serde_json::json!({
        "clique": numbers.clique,
        "start": numbers.start,
        "times": numbers.times,
        "heat": round(&numbers.heat),
        "quantum": round(&numbers.quantum),
        "layout": numbers.layout(),
        "edges": edges,
    });
    include_str!("../assets/animation.html").replace("/*DATA*/null", &crate::report::script_json(&data))
}
