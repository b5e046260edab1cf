//! Homophily by eigenvalue against `homophily_spectral.npz`: NumPy, all readings.

use qdc_core::homophily::{Reading, SpectralPoint, spectral_homophily};
use qdc_core::{Eigensolver, Transition, Watch};
use qdc_data::npz::Npz;

#[test]
fn every_reading_equals_numpys_on_cornell_and_texas() {
    let (Some(golden), Some(folder)) =
        (qdc_testing::large_golden("homophily_spectral.npz"), qdc_testing::data_dir())
    else {
        return;
    };
    let file = Npz::open(golden).unwrap();
    for name in ["cornell", "texas"] {
        let dataset = qdc_data::DataDir::new(&folder).load(name).unwrap();
        let spectrum = Eigensolver::new().solve(&Transition::new(&dataset.graph), &Watch::silent()).unwrap();
        let points = spectral_homophily(&spectrum, &dataset.labels, &Watch::silent()).unwrap();
        let expected = |key: &str| file.vector::<f64>(&format!("{name}.{key}")).unwrap();
        let margins = expected("margin");
        let multiplicities: Vec<usize> = points.iter().map(|point| point.multiplicity).collect();
        assert_eq!(multiplicities, file.vector::<usize>(&format!("{name}.multiplicity")).unwrap());
        let check = |key: String, found: &dyn Fn(&SpectralPoint) -> f64| {
            for (at, expected) in expected(&key).iter().enumerate() {
                let tolerance = if margins[at] > 1e-10 { 1e-9 } else { 1e-3 };
                let found = found(&points[at]);
                assert!((found - expected).abs() < tolerance, "{name}.{key}[{at}]: {found}, not {expected}");
            }
        };
        check("eigenvalue".into(), &|point| point.eigenvalue);
        type Pick = fn(&SpectralPoint) -> Reading;
        let readings: [(&str, Pick); 2] = [("signed", |p| p.signed), ("absolute", |p| p.absolute)];
        for (key, reading) in readings {
            check(format!("{key}.unweighted"), &|p| reading(p).unweighted);
            check(format!("{key}.weighted"), &|p| reading(p).weighted);
            check(format!("{key}.unweighted.with_neighbours"), &|p| reading(p).unweighted_with_neighbours);
            check(format!("{key}.weighted.with_neighbours"), &|p| reading(p).weighted_with_neighbours);
        }
    }
}
