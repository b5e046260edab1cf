#![no_main]

use std::path::PathBuf;

use qdc_core::{EdgeRule, Eigensolver, Graph, Transition, Watch};
use qdc_data::SpectrumCache;

struct Stored {
    transition: Transition,
    cache: SpectrumCache,
    path: PathBuf,
}

thread_local! {
    static STORED: Stored = {
        let edges = (0..6u64).map(|vertex| (vertex, (vertex + 1) % 6));
        let graph = Graph::from_edges(6, edges, EdgeRule::Undirected).unwrap();
        let transition = Transition::new(&graph);
        let cache = SpectrumCache::new(std::env::temp_dir().join(format!("qdc-fuzz-{}", std::process::id())));
        let spectrum = Eigensolver::new().solve(&transition, &Watch::silent()).unwrap();
        let path = cache.store(&transition, &spectrum).unwrap();
        Stored { transition, cache, path }
    };
}

// The file of a stored spectrum, which is mapped into memory.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    STORED.with(|Stored { transition, cache, path }| {
        std::fs::write(path, bytes).unwrap();
        let _ = cache.load(transition);
        let _ = cache.list();
    });
});
