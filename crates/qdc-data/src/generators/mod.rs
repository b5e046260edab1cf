//! Graphs made to order, by names that stand wherever a GRAPH is asked for.
//!
//! | name | graph |
//! | --- | --- |
//! | `karate` | Zachary's karate club, its two factions as labels |
//! | `barbell:20,1` | two cliques of 20 joined through a path of 1 vertex |
//! | `cycle:50` | a cycle |
//! | `grid:20x30` | a grid |
//! | `er:n=1000,p=0.01,seed=0` | Erdos-Renyi: each edge with probability p |
//! | `sbm:n=1000,blocks=4,p_in=0.02,p_out=0.002,seed=0` | stochastic block model, its blocks as labels |
//! | `csbm:n=1000,homophily=0.2,classes=2,degree=10,features=32,signal=1,seed=0` | contextual block model: features too |
//! | `powerlaw:n=1000000,degree=5,seed=0` | preferential attachment, mean degree 5 |
//!
//! Numbers left out take the values shown; the same name gives the same graph on every machine.

mod block;
mod fixed;
mod parameters;
mod sparse;

use qdc_core::{Csr, EdgeRule, Features, Graph};

use crate::{Budget, Dataset, Error, Source};
use parameters::Parameters;

pub use block::ContextualBlocks;

/// The names of the generators, with an example of each.
pub const GENERATORS: [&str; 8] = [
    "karate",
    "barbell:20,1",
    "cycle:50",
    "grid:20x30",
    "er:n=1000,p=0.01,seed=0",
    "sbm:n=1000,blocks=4,p_in=0.02,p_out=0.002,seed=0",
    "csbm:n=1000,homophily=0.2,seed=0",
    "powerlaw:n=1000000,degree=5,seed=0",
];

/// Whether a name is a generator's, whatever its numbers.
pub(crate) fn is_generator(name: &str) -> bool {
    let family = |name: &str| name.split(':').next().map(str::to_owned);
    GENERATORS.iter().any(|example| family(example) == family(name))
}

/// Makes the graph a name such as `cycle:50` describes; `None` where the name is no generator's.
///
/// ```
/// let club = qdc_data::generators::generate("karate", qdc_data::Budget::default()).unwrap()?;
/// assert_eq!((club.graph().nodes(), club.graph().edges()), (34, 78));
/// assert!(club.labels().is_some());
/// # Ok::<(), qdc_data::Error>(())
/// ```
pub fn generate(name: &str, budget: Budget) -> Option<Result<Source, Error>> {
    let (family, arguments) = name.split_once(':').unwrap_or((name, ""));
    let make: fn(&str, &mut Parameters<'_>) -> Result<Source, Error> = match family {
        "karate" => karate,
        "barbell" => barbell,
        "cycle" => cycle,
        "grid" => grid,
        "er" => erdos_renyi,
        "sbm" => block_model,
        "csbm" => contextual_block_model,
        "powerlaw" => power_law,
        _ => return None,
    };
    Some(Parameters::parse(name, arguments, budget).and_then(|mut parameters| make(name, &mut parameters)))
}

fn karate(name: &str, parameters: &mut Parameters<'_>) -> Result<Source, Error> {
    parameters.finish()?;
    let (edges, labels) = fixed::karate();
    featureless(name, graph(name, 34, edges)?, labels)
}

fn barbell(name: &str, parameters: &mut Parameters<'_>) -> Result<Source, Error> {
    let clique = parameters.whole("clique", 20, 1)?;
    let path = parameters.whole("path", 1, 0)?;
    parameters.finish()?;
    parameters.check_size(2.0 * clique as f64 + path as f64, clique as f64 * clique as f64)?;
    plain(name, 2 * clique + path, fixed::barbell(clique, path))
}

fn cycle(name: &str, parameters: &mut Parameters<'_>) -> Result<Source, Error> {
    let n = parameters.whole("n", 50, 3)?;
    parameters.finish()?;
    parameters.check_size(n as f64, n as f64)?;
    plain(name, n, (0..n).map(|vertex| (vertex, (vertex + 1) % n)))
}

fn grid(name: &str, parameters: &mut Parameters<'_>) -> Result<Source, Error> {
    let rows = parameters.whole("rows", 20, 1)?;
    let columns = parameters.whole("columns", 30, 1)?;
    parameters.finish()?;
    parameters.check_size(rows as f64 * columns as f64, 2.0 * rows as f64 * columns as f64)?;
    plain(name, rows * columns, fixed::grid(rows, columns))
}

fn erdos_renyi(name: &str, parameters: &mut Parameters<'_>) -> Result<Source, Error> {
    let n = parameters.whole("n", 1000, 1)?;
    let p = parameters.probability("p", 0.01)?;
    let seed = parameters.seed()?;
    parameters.finish()?;
    parameters.check_size(n as f64, p * 0.5 * n as f64 * n as f64)?;
    plain(name, n, sparse::erdos_renyi(n, p, seed))
}

fn power_law(name: &str, parameters: &mut Parameters<'_>) -> Result<Source, Error> {
    let n = parameters.whole("n", 1_000_000, 2)?;
    let degree = parameters.real("degree", 5.0, 1.0..=1e6)?;
    let seed = parameters.seed()?;
    parameters.finish()?;
    parameters.check_size(n as f64, 0.5 * degree * n as f64)?;
    plain(name, n, sparse::power_law(n, degree, seed))
}

fn block_model(name: &str, parameters: &mut Parameters<'_>) -> Result<Source, Error> {
    let n = parameters.whole("n", 1000, 1)?;
    let blocks = parameters.whole("blocks", 4, 1)?.min(n);
    let p_in = parameters.probability("p_in", 0.02)?;
    let p_out = parameters.probability("p_out", 0.002)?;
    let seed = parameters.seed()?;
    parameters.finish()?;
    parameters.check_size(n as f64, p_in.max(p_out) * 0.5 * n as f64 * n as f64)?;
    parameters.check_values("labels and features", n as f64, 4 + 24)?;
    let edges = block::edges(n, blocks, p_in, p_out, seed);
    featureless(name, graph(name, n, edges)?, block::labels(n, blocks))
}

fn contextual_block_model(name: &str, parameters: &mut Parameters<'_>) -> Result<Source, Error> {
    let defaults = ContextualBlocks::default();
    let n = parameters.whole("n", defaults.n as u64, 2)? as usize;
    let model = ContextualBlocks {
        n,
        homophily: parameters.probability("homophily", defaults.homophily)?,
        classes: parameters.whole("classes", defaults.classes as u64, 2)? as usize,
        degree: parameters.real("degree", defaults.degree, 0.0..=1e6)?,
        features: parameters.whole("features", defaults.features as u64, 1)? as usize,
        signal: parameters.real("signal", defaults.signal, 0.0..=1e6)?,
        seed: parameters.seed()?,
    };
    parameters.finish()?;
    parameters.check_size(n as f64, 0.5 * model.degree * n as f64)?;
    let columns = model.features as f64;
    parameters.check_values("labels and features", (n as f64 + 2.0 * model.classes as f64) * columns, 8)?;
    if model.classes > n {
        return Err(parameters.error("there are more classes than vertices"));
    }
    let mut dataset = model.generate()?;
    dataset.name = name.into();
    Ok(Source::Dataset(dataset))
}

fn graph(name: &str, nodes: u64, edges: impl IntoIterator<Item = (u64, u64)>) -> Result<Graph, Error> {
    Graph::from_edges(nodes as usize, edges, EdgeRule::Undirected)
        .map_err(|source| Error::Invalid { path: name.into(), source })
}

fn plain(name: &str, nodes: u64, edges: impl IntoIterator<Item = (u64, u64)>) -> Result<Source, Error> {
    Ok(Source::Graph { name: name.into(), graph: graph(name, nodes, edges)? })
}

/// A labelled graph without features gets the plainest: one of its own for each vertex.
fn featureless(name: &str, graph: Graph, labels: Vec<u32>) -> Result<Source, Error> {
    let n = graph.nodes();
    let identity = Csr::new(n, n, (0..=n).collect(), (0..n as u32).collect(), vec![1.0; n])?;
    Ok(Source::Dataset(Dataset::new(name.into(), graph, Features::Sparse(identity), labels)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npz::Npz;

    fn made(name: &str) -> Source {
        generate(name, Budget::default()).unwrap_or_else(|| panic!("{name} is no generator")).unwrap()
    }

    #[test]
    fn karate_and_barbell_are_those_of_networkx() {
        for (name, file) in [("karate", "kernels_karate.npz"), ("barbell:10,1", "kernels_barbell.npz")] {
            let (_, _, edges) = Npz::open(qdc_testing::golden(file)).unwrap().matrix::<u64>("edges").unwrap();
            let edges = edges.chunks_exact(2).map(|edge| (edge[0], edge[1]));
            let source = made(name);
            let golden = Graph::from_edges(source.graph().nodes(), edges, EdgeRule::Undirected).unwrap();
            assert_eq!(source.graph(), &golden, "{name}");
        }
        let club = made("karate");
        assert_eq!(club.labels().unwrap().iter().filter(|&&faction| faction == 0).count(), 17);
    }

    #[test]
    fn counts_follow_from_the_numbers_in_the_name() {
        for (name, nodes, edges) in [
            ("barbell:20,1", 41, 2 * 190 + 2),
            ("barbell:3,0", 6, 7),
            ("cycle:50", 50, 50),
            ("grid:20x30", 600, 20 * 29 + 30 * 19),
            ("er:n=10,p=1", 10, 45),
            ("er:n=10,p=0", 10, 0),
            ("sbm:n=10,blocks=2,p_in=1,p_out=0", 10, 20),
        ] {
            let source = made(name);
            assert_eq!((source.graph().nodes(), source.graph().edges()), (nodes, edges), "{name}");
        }
    }

    #[test]
    fn a_seed_fixes_the_graph_and_another_changes_it() {
        for family in ["er:n=200,p=0.05", "sbm:n=200", "powerlaw:n=200,degree=4", "csbm:n=200"] {
            let [first, again, other] = [0, 0, 1].map(|seed| made(&format!("{family},seed={seed}")));
            assert_eq!(first.graph(), again.graph());
            assert_ne!(first.graph(), other.graph());
            assert_eq!(made(family).graph(), first.graph(), "the default seed is 0");
        }
    }

    #[test]
    fn wrong_numbers_are_explained() {
        for (name, expected) in [
            ("cycle:2", "n = 2 must be at least 3"),
            ("er:n=10,p=2", "p = 2 must lie in"),
            ("er:m=10", "no number 'm'"),
            ("er:n=ten", "'ten' is no number"),
            ("grid:20x30x40", "too many numbers"),
            ("karate:3", "too many numbers"),
            ("er:n=1,n=2", "given twice"),
            ("csbm:n=100,homophily=nan", "homophily"),
            ("grid:4000000000x4000000000", "too large"),
        ] {
            let error = generate(name, Budget::default()).unwrap().unwrap_err();
            assert!(error.to_string().contains(expected), "{name}: {error}");
        }
        assert!(generate("petersen", Budget::default()).is_none());
    }
}
