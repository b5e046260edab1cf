//! Heat and Schroedinger propagation against `dynamics.npz`: SciPy's expm on the barbell of two 10-cliques.

use qdc_core::{Dynamics, EdgeRule, Graph, Transition, Watch};
use qdc_data::npz::Npz;

/// Two cliques joined through one vertex between them.
fn barbell(clique: u64) -> Graph {
    let within =
        |first: u64| (first..first + clique).flat_map(move |a| (a + 1..first + clique).map(move |b| (a, b)));
    let edges = within(0).chain(within(clique + 1)).chain([(clique - 1, clique), (clique, clique + 1)]);
    Graph::from_edges(2 * clique as usize + 1, edges, EdgeRule::Undirected).unwrap()
}

fn close(found: &[f64], expected: &[f64], what: &str) {
    for (vertex, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < 1e-10, "{what} at vertex {vertex}: {found}, not {expected}");
    }
}

#[test]
fn both_equations_equal_the_matrix_exponential() {
    let file = Npz::open(qdc_testing::golden("dynamics.npz")).unwrap();
    let index = std::fs::read_to_string(qdc_testing::golden("dynamics.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let start = index["start"].as_u64().unwrap() as usize;
    let times = file.vector::<f64>("times").unwrap();

    let dynamics = Dynamics::new(&Transition::new(&barbell(10)));
    let initial = dynamics.at_vertex(start).unwrap();
    let heat = dynamics.heat(&initial, &times, &Watch::silent()).unwrap();
    let quantum = dynamics.schrodinger(&initial, &times, &Watch::silent()).unwrap();
    let expected = |key: &str| file.array::<f64>(key).unwrap().data;
    let (heats, reals) = (expected("heat"), expected("psi_re"));
    let (imaginaries, probabilities) = (expected("psi_im"), expected("probability"));
    for (at, time) in times.iter().enumerate() {
        let row = 21 * at..21 * (at + 1);
        close(&heat.states[at], &heats[row.clone()], &format!("heat, t = {time}"));
        close(&quantum.states[at].real, &reals[row.clone()], &format!("real part, t = {time}"));
        close(
            &quantum.states[at].imaginary,
            &imaginaries[row.clone()],
            &format!("imaginary part, t = {time}"),
        );
        close(&quantum.states[at].probability(), &probabilities[row], &format!("probability, t = {time}"));
    }
}

/// What the barbell figure claims, in numbers. The reference values, 7.4 % and 76.5 %, come from SciPy.
#[test]
fn a_quantum_particle_crosses_the_bridge_that_holds_heat_back() {
    let clique = 20;
    let dynamics = Dynamics::new(&Transition::new(&barbell(clique as u64)));
    let across = |state: &[f64]| state[clique + 1..].iter().sum::<f64>() / state.iter().sum::<f64>();
    let watch = Watch::silent();

    let at_the_bridge = dynamics.at_vertex(clique - 1).unwrap();
    let heat = dynamics.heat(&at_the_bridge, &[50.0], &watch).unwrap().states.remove(0);
    // Equal within the clique: the vertices that do not touch the bridge have one degree, so one temperature.
    let inner = &heat[..clique - 1];
    let (least, most) = inner.iter().fold((f64::MAX, f64::MIN), |(a, b), &x| (a.min(x), b.max(x)));
    assert!(most / least - 1.0 < 0.01, "{least} to {most}");
    assert!((across(&heat) - 0.074).abs() < 0.0005, "{}", across(&heat));

    let quantum = dynamics.schrodinger(&at_the_bridge, &[50.0], &watch).unwrap().states.remove(0);
    let crossed = across(&quantum.probability());
    assert!((crossed - 0.765).abs() < 0.0005, "{crossed}");

    // A start deep inside a clique stays localised.
    let inside = dynamics.at_vertex(0).unwrap();
    let quantum = dynamics.schrodinger(&inside, &[50.0], &watch).unwrap().states.remove(0);
    assert!(across(&quantum.probability()) < 0.005, "{}", across(&quantum.probability()));
}
