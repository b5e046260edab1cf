//! `qdc data`: the nine datasets: what they are, fetching them, and where they lie.

use clap::{Args, Subcommand};
use qdc_data::{Checked, Downloaded, Entry, Error, HOST, Place, REGISTRY, Statistics, download};
use serde::Serialize;

use crate::failure::Failure;
use crate::graph_arguments::DatasetArguments;
use crate::output::Show;
use crate::session::Session;
use crate::units::Bytes;

/// List, fetch and describe datasets
#[derive(Debug, Args)]
pub(crate) struct Data {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the nine datasets, and which of them are here
    List,
    /// Count vertices, edges, features and classes, and measure homophily
    Show(ShowArguments),
    /// Fetch datasets from their public sources
    Get(GetArguments),
    /// Verify the files of datasets against their checksums
    Check {
        /// Datasets to verify [default: all that are here]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Print where a dataset lies
    Path {
        /// The dataset
        name: String,
    },
}

#[derive(Debug, Args)]
struct ShowArguments {
    #[command(flatten)]
    dataset: DatasetArguments,
}

#[derive(Debug, Args)]
struct GetArguments {
    /// Datasets to fetch, or `all`
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Address below which the files lie as OWNER/REPOSITORY/COMMIT/PATH
    #[arg(long, value_name = "URL", default_value = HOST)]
    mirror: String,
}

impl Data {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        match self.action {
            Action::List => session.show(&List::of(session)),
            Action::Show(arguments) => session.show(&Shown(arguments.dataset.load(session)?.statistics()?)),
            Action::Get(arguments) => session.show(&arguments.run(session)?),
            Action::Check { names } => check(names, session),
            Action::Path { name } => session.show(&Where::of(session, name)?),
        }
    }
}

#[derive(Serialize)]
struct List {
    folder: String,
    datasets: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    entry: Entry,
    present: bool,
}

impl List {
    fn of(session: &Session) -> Self {
        let folder = session.data_dir();
        let listed = |entry: &Entry| Listed { entry: *entry, present: folder.find(entry.name).is_some() };
        Self { folder: folder.path().display().to_string(), datasets: REGISTRY.iter().map(listed).collect() }
    }
}

impl Show for List {
    fn text(&self) -> String {
        let mut text = String::from(
            "name                vertices   edges  features  classes  homophily  metric    here  about\n",
        );
        for Listed { entry, present } in &self.datasets {
            text.push_str(&format!(
                "{:<18}  {:>8} {:>7}  {:>8}  {:>7}  {:>9}  {:<8}  {:<4}  {}\n",
                entry.name,
                entry.nodes,
                entry.edges,
                entry.features,
                entry.classes,
                entry.homophily.map_or_else(String::new, |homophily| format!("{homophily:.2}")),
                entry.metric,
                if *present { "yes" } else { "no" },
                entry.about
            ));
        }
        text.push_str(&format!("folder: {}\n", self.folder));
        text
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Shown(Statistics);

impl Show for Shown {
    fn text(&self) -> String {
        let Statistics { name, nodes, edges, self_loops, features, feature_density, classes, .. } = &self.0;
        let Statistics { homophily, edge_homophily, components, splits, .. } = &self.0;
        format!(
            "{name}\n\
             vertices   {nodes}\n\
             edges      {edges}, of which {self_loops} self-loops (dropped)\n\
             components {components}\n\
             features   {features}, {:.2} % not 0\n\
             classes    {classes}\n\
             homophily  {homophily:.4} (edges {edge_homophily:.4})\n\
             splits     {splits}\n",
            100.0 * feature_density
        )
    }
}

#[derive(Serialize)]
struct Got {
    datasets: Vec<Downloaded>,
}

impl GetArguments {
    fn run(self, session: &Session) -> Result<Got, Failure> {
        let names: Vec<&str> = if self.names.iter().any(|name| name == "all") {
            REGISTRY.iter().map(|entry| entry.name).collect()
        } else {
            self.names.iter().map(String::as_str).collect()
        };
        // A misspelt name should not surface after minutes of fetching.
        if let Some(unknown) = names.iter().find(|name| Entry::find(name).is_none()) {
            return Err(Error::UnknownDataset { name: (*unknown).into() }.into());
        }
        let folder = session.data_dir();
        let fetch = |name| download(&folder, name, Some(&self.mirror), &session.watch);
        let datasets = names.into_iter().map(fetch).collect::<Result<_, _>>()?;
        Ok(Got { datasets })
    }
}

impl Show for Got {
    fn text(&self) -> String {
        let line = |report: &Downloaded| {
            format!(
                "{}: {} files fetched ({}), {} were here, in {}\n",
                report.name,
                report.fetched,
                Bytes(report.bytes),
                report.present,
                report.folder.display()
            )
        };
        self.datasets.iter().map(line).collect()
    }
}

/// What was verified, and what is not as it should be.
#[derive(Serialize)]
struct Verified {
    sound: Vec<Checked>,
    wrong: Vec<Wrong>,
}

#[derive(Serialize)]
struct Wrong {
    name: String,
    problem: String,
}

impl Show for Verified {
    fn text(&self) -> String {
        let sound = self.sound.iter().map(|found| {
            format!("{}: {} files as they should be, by their {}\n", found.name, found.files, found.by)
        });
        sound.chain(self.wrong.iter().map(|found| format!("{}: wrong\n", found.name))).collect()
    }
}

fn check(names: Vec<String>, session: &Session) -> Result<(), Failure> {
    let folder = session.data_dir();
    let here =
        || REGISTRY.iter().map(|entry| entry.name.to_owned()).filter(|name| folder.find(name).is_some());
    let names: Vec<String> = if names.is_empty() { here().collect() } else { names };
    let mut verified = Verified { sound: Vec::new(), wrong: Vec::new() };
    let mut hint = None;
    for name in names {
        match folder.check(&name) {
            Ok(found) => verified.sound.push(found),
            Err(error) if error.is_usage() => return Err(error.into()),
            Err(error) => {
                hint = hint.or(error.hint());
                verified.wrong.push(Wrong { name, problem: error.to_string() });
            }
        }
    }
    if verified.wrong.is_empty() {
        return session.show(&verified);
    }
    if !session.json() {
        session.show(&verified)?;
    }
    let problems: Vec<&str> = verified.wrong.iter().map(|wrong| wrong.problem.as_str()).collect();
    Err(Failure::new(problems.join("\n")).hint(hint).with(&verified))
}

#[derive(Serialize)]
struct Where {
    name: String,
    path: String,
}

impl Where {
    fn of(session: &Session, name: String) -> Result<Self, Failure> {
        let folder = session.data_dir();
        if Entry::find(&name).is_none() {
            return Err(Error::UnknownDataset { name }.into());
        }
        match folder.find(&name) {
            Some(Place::Archive(path) | Place::Originals(path)) => {
                Ok(Self { name, path: path.display().to_string() })
            }
            None => Err(Error::NotDownloaded { name, folder: folder.path().into() }.into()),
        }
    }
}

impl Show for Where {
    fn text(&self) -> String {
        format!("{}\n", self.path)
    }
}
