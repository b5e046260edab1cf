#![no_main]

use qdc_core::kernel::ShardManifest;
use qdc_core::{EdgeRule, Filter, Graph, Recipe, Resources, Shard, Watch};

thread_local! {
    static HALF: Shard = {
        let edges = (0..10u64).map(|vertex| (vertex, (vertex + 1) % 10));
        let graph = Graph::from_edges(10, edges, EdgeRule::Undirected).unwrap();
        let recipe = Recipe::new(Filter::gaussian(0.2, 0.3).unwrap());
        let job = recipe.prepare(&graph, &Resources::default(), &Watch::silent()).unwrap();
        job.rows(0..5, &Watch::silent()).unwrap()
    };
}

// A manifest, and the rows of another one beside it.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(manifest) = serde_json::from_slice::<ShardManifest>(bytes) else { return };
    HALF.with(|half| {
        let _ = Shard::merge(vec![Shard { matrix: half.matrix.clone(), manifest: manifest.clone() }]);
        let _ = Shard::merge(vec![half.clone(), Shard { matrix: half.matrix.clone(), manifest }]);
    });
});
