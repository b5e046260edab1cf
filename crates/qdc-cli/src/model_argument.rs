//! Reading `--model`: an unknown name is answered with those there are, the closest first.

use qdc_lab::Model;

/// For clap, which shows an error's text but knows nothing of hints.
pub(crate) fn model(name: &str) -> Result<Model, String> {
    name.parse().map_err(|error: qdc_lab::Error| match error.hint() {
        Some(hint) => format!("{error}\n\nhint: {hint}"),
        None => error.to_string(),
    })
}
