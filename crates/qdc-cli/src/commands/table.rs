//! `qdc table`: study files as the published table.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use qdc_lab::table::{Filter, Format, Results, Table as Made};

use super::studies::is_results;
use super::study::open_existing;
use crate::failure::Failure;
use crate::output;
use crate::session::Session;

/// Make the table of models and datasets from study files
#[derive(Debug, Args)]
pub(crate) struct Table {
    /// Study files, postgresql:// addresses, or folders of --write, whose cells are taken as they are
    #[arg(value_name = "STUDY", required = true)]
    studies: Vec<String>,
    /// Put other numbers beside ours
    #[arg(long, value_name = "WHAT")]
    compare: Option<Compare>,
    /// Only studies of this space
    #[arg(long, value_name = "SPACE")]
    space: Option<String>,
    /// Only the study of this name
    #[arg(long, value_name = "NAME")]
    study_name: Option<String>,
    /// Write the results into this folder: table.csv, table.md and for each cell a file that qdc train
    /// --config repeats
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,
    /// How to write it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Written,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Compare {
    /// The published table
    Paper,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Written {
    Text,
    Markdown,
    Latex,
    Csv,
    Json,
}

impl Table {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let (mut storages, mut earlier) = (Vec::new(), Vec::new());
        for address in &self.studies {
            if is_results(address) {
                earlier.push(Results::read(address.as_ref())?);
            } else {
                storages.push(open_existing(address, session)?);
            }
        }
        let filter = Filter { space: self.space.clone(), study: self.study_name.clone() };
        let mut table = Made::read(&mut storages, &filter)?;
        for results in &earlier {
            table = table.merged(results.table.clone().only(&filter));
        }
        if table.cells.is_empty() {
            return Err(Failure::new(format!(
                "{} holds no finished trial of qdc tune",
                self.studies.join(", ")
            )));
        }
        if let Some(folder) = &self.write {
            let files = table.write_results(&mut storages, &earlier, folder)?;
            session.watch.note(&format!("{} cells written to {}", files.len() - 2, folder.display()));
        }
        let format = match self.format {
            _ if session.json() => Format::Json,
            Written::Text => Format::Text,
            Written::Markdown => Format::Markdown,
            Written::Latex => Format::Latex,
            Written::Csv => Format::Csv,
            Written::Json => Format::Json,
        };
        output::write(table.write(format, self.compare.is_some()).as_bytes())
    }
}
