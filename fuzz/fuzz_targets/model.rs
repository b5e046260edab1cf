#![no_main]

use std::path::Path;

use qdc_core::{Resources, Watch};
use qdc_data::{Budget, DataDir, Dataset, EdgeReading};
use qdc_lab::SavedModel;

thread_local! {
    static KARATE: Dataset = {
        let source = qdc_data::open("karate", &DataDir::new("."), EdgeReading::default());
        source.unwrap().into_dataset().unwrap()
    };
}

// A saved model: read, built and run on another graph.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    const LIMIT: u64 = 64 << 20;
    let Ok(model) = SavedModel::from_bytes(Path::new("fuzz"), bytes, Budget::bytes(LIMIT)) else { return };
    let resources = Resources { memory: Some(LIMIT), ..Resources::default() };
    KARATE.with(|karate| {
        let _ = model.predict(karate, &resources, &Watch::silent());
        let _ = model.predict_elsewhere(karate, &resources, &Watch::silent());
    });
});
