//! `qdc cache`: the spectra kept on disk.

use clap::{Args, Subcommand};
use qdc_data::StoredSpectrum;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Show;
use crate::session::Session;
use crate::units::Bytes;

/// List or remove the spectra kept on disk
#[derive(Debug, Args)]
pub(crate) struct Cache {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum Action {
    /// List stored spectra and their sizes
    List,
    /// Remove all of them; datasets stay
    Clear,
}

#[derive(Serialize)]
struct Contents {
    folder: String,
    removed: bool,
    bytes: u64,
    spectra: Vec<StoredSpectrum>,
}

impl Show for Contents {
    fn text(&self) -> String {
        let mut text = String::new();
        for spectrum in &self.spectra {
            let nodes = spectrum.nodes.map_or("unreadable".into(), |nodes| format!("{nodes} vertices"));
            text += &format!("{}  {nodes}  {}\n", spectrum.path.display(), Bytes(spectrum.bytes));
        }
        let verb = if self.removed { "removed" } else { "stored" };
        text + &format!("{} spectra {verb}, {} in {}\n", self.spectra.len(), Bytes(self.bytes), self.folder)
    }
}

impl Cache {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let cache = session.spectra();
        let removed = matches!(self.action, Action::Clear);
        let spectra = if removed { cache.clear()? } else { cache.list()? };
        session.show(&Contents {
            folder: cache.folder().display().to_string(),
            removed,
            bytes: spectra.iter().map(|spectrum| spectrum.bytes).sum(),
            spectra,
        })
    }
}
