//! What a command says on stdout: a text for people, or one JSON object for programs.

use std::io::Write;

use serde::Serialize;

use crate::failure::Failure;

/// A result that can be shown either way: JSON through `serde`, text through [`Show::text`].
pub(crate) trait Show: Serialize {
    /// The text for people, lines ending in a newline.
    fn text(&self) -> String;
}

/// Writes `result` to stdout in the form asked for.
pub(crate) fn show(result: &impl Show, json: bool) -> Result<(), Failure> {
    if json { write_json(result) } else { write(result.text().as_bytes()) }
}

/// Writes `result` to stdout as one JSON object on a line of its own.
pub(crate) fn write_json(result: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string(result).map_err(|error| Failure::new(error.to_string()))?;
    text.push('\n');
    write(text.as_bytes())
}

/// Writes bytes to stdout; a reader that went away is not an error.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| Failure::output(&error))
}

/// Fails as [`write_file`] would where a file cannot be made at all.
pub(crate) fn check_writable(path: &std::path::Path) -> Result<(), Failure> {
    qdc_data::output::OutputFile::create(path)?; // dropped: it leaves nothing behind
    Ok(())
}

/// Writes a file, whole or not at all.
pub(crate) fn write_file(path: &std::path::Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut file = qdc_data::output::OutputFile::create(path)?;
    file.write_all(bytes)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    Ok(file.commit()?)
}
