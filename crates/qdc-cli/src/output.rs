//! What a command says: results on stdout as text for people or one JSON object for programs, talk on stderr.
//!
//! A failed write is never a panic: on stdout it is a [`Failure`], on stderr it is dropped. Text that came
//! from files may hold control characters, which could rewrite the terminal; they are shown escaped.

use std::borrow::Cow;
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
    if json { write_json(result) } else { write(harmless(&result.text()).as_bytes()) }
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

/// Says a line on stderr; where that cannot be written, the line is dropped.
pub(crate) fn say(line: &str) {
    let mut stderr = std::io::stderr().lock();
    stderr.write_all(format!("{}\n", harmless(line)).as_bytes()).ok();
}

/// The text with its control characters escaped, except ends of lines and tabs.
fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(harmful) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if harmful(c) { shown.extend(c.escape_debug()) } else { shown.push(c) }
    }
    shown.into()
}

/// Fails as [`write_file`] would where a file cannot be made at all.
pub(crate) fn check_writable(path: &std::path::Path) -> Result<(), Failure> {
    qdc_data::output::OutputFile::create(path)?; // dropped: it leaves nothing behind
    Ok(())
}

/// Writes a file, whole or not at all.
pub(crate) fn write_file(path: &std::path::Path, bytes: &[u8]) -> Result<(), Failure> {
    Ok(qdc_data::output::write_file(path, |file| file.write_all(bytes))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_the_terminal_are_shown_and_do_not_act() {
        assert_eq!(harmless("\u{1b}[2Jx\r\u{7f}\u{9b}1m\tä\n"), "\\u{1b}[2Jx\\r\\u{7f}\\u{9b}1m\tä\n");
        assert!(matches!(harmless("plain\n"), Cow::Borrowed(_)));
    }
}
