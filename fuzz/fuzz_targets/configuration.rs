#![no_main]

use qdc_lab::Config;
use qdc_lab::tune::SearchSpace;

// The TOML of a run, and that of a search space.
libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(config) = Config::from_toml(text) {
        let _ = config.hyperparameters();
        let _ = Config::from_toml(&config.to_toml()).expect("what is written reads back");
    }
    for model in ["gcn+qdc", "gat+multiscale", "bank"] {
        if let Ok(space) = SearchSpace::from_toml("fuzz.toml", text, model.parse().unwrap()) {
            let _ = space.hyperparameters(&space.fixed);
            let _ = space.text();
        }
    }
});
