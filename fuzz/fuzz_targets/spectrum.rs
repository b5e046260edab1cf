#![no_main]

use std::path::PathBuf;

use qdc_core::{EdgeRule, Eigensolver, Graph, Transition, Watch};
use qdc_data::SpectrumCache;

struct Stored {
    transition: Transition,
    cache: SpectrumCache,
    path: PathBuf,
    sound: Vec<u8>,
}

thread_local! {
    static STORED: Stored = {
        let edges = (0..6u64).map(|vertex| (vertex, (vertex + 1) % 6));
        let graph = Graph::from_edges(6, edges, EdgeRule::Undirected).unwrap();
        let transition = Transition::new(&graph);
        let cache = SpectrumCache::new(std::env::temp_dir().join(format!("qdc-fuzz-{}", std::process::id())));
        let spectrum = Eigensolver::new().solve(&transition, &Watch::silent()).unwrap();
        let path = cache.store(&transition, &spectrum).unwrap();
        let sound = std::fs::read(&path).unwrap();
        Stored { transition, cache, path, sound }
    };
}

// The file of a stored spectrum, which is mapped into memory: the sound one, of which the input's first two
// bytes tell the length and the others which bits are flipped.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    STORED.with(|Stored { transition, cache, path, sound }| {
        let mut file = sound.clone();
        if let [low, high, flipped @ ..] = bytes {
            file.resize(usize::from(u16::from_le_bytes([*low, *high])).min(2 * sound.len()), 0);
            file.iter_mut().zip(flipped).for_each(|(place, flip)| *place ^= flip);
        }
        std::fs::write(path, file).unwrap();
        let _ = cache.load(transition);
        let _ = cache.list();
    });
});
