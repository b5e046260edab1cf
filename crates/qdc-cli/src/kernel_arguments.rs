//! The options that describe a kernel, resolved into a recipe; shared by every command that builds one.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use qdc_core::{Filter, Normalize, Pairs, Precision, Recipe, Route, Sign, Sparsify, defaults};

use crate::arguments::words;
use crate::failure::Failure;

/// The filters by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FilterName {
    /// exp(-(E - mu)^2 / 2 sigma^2): quantum diffusion
    Gaussian,
    /// s(E - mu + gamma) s(mu + gamma - E), s the logistic function: band-pass diffusion
    Band,
    /// alpha / (1 - (1 - alpha) E): personalised PageRank
    Ppr,
    /// exp(-t (1 - E)): heat
    Heat,
}

/// A filter by name, or a file that holds one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FilterArgument {
    Named(FilterName),
    File(PathBuf),
}

impl FilterArgument {
    /// As it is typed.
    fn text(&self) -> String {
        match self {
            Self::Named(name) => format!("{name:?}").to_lowercase(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

impl FromStr for FilterArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(name) = FilterName::from_str(text, false) {
            return Ok(Self::Named(name));
        }
        let path = PathBuf::from(text);
        if path.extension().is_some_and(|extension| extension == "toml") {
            return Ok(Self::File(path));
        }
        Err(format!("'{text}' is no filter; write gaussian, band, ppr, heat or the name of a FILE.toml"))
    }
}

/// A kernel: filter, pairs, route, what is kept, normalisation.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Kernel")]
pub(crate) struct KernelArguments {
    /// The function of the eigenvalue: gaussian (QDC), band (BPDC), ppr (personalised PageRank), heat, or a
    /// FILE.toml with a filter or a sum of filters, such as qdc train --save-filter writes
    #[arg(long, value_name = "FILTER", default_value = "gaussian", value_parser = FilterArgument::from_str)]
    filter: FilterArgument,
    /// Centre of the gaussian or the band
    #[arg(long, value_name = "E", allow_negative_numbers = true, help = with_default("Centre of the gaussian or the band", defaults::MU))]
    mu: Option<f64>,
    #[arg(long, value_name = "WIDTH", allow_negative_numbers = true, help = with_default("Width of the gaussian", defaults::SIGMA))]
    sigma: Option<f64>,
    #[arg(long, value_name = "WIDTH", allow_negative_numbers = true, help = with_default("Half width of the band", defaults::GAMMA))]
    gamma: Option<f64>,
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, help = with_default("Teleport probability of ppr", defaults::ALPHA))]
    alpha: Option<f64>,
    #[arg(long, value_name = "T", allow_negative_numbers = true, help = with_default("Time of the heat kernel", defaults::TIME))]
    time: Option<f64>,
    /// Eigenpairs that enter: all, or the K nearest the filter's centre (the published choice is 512)
    #[arg(long, value_name = "all|K", default_value_t = Pairs::All)]
    pairs: Pairs,
    /// The route
    #[arg(long, default_value = "auto", value_parser = routes())]
    solver: Route,
    /// Largest error of an entry that the chebyshev route aims at
    #[arg(long, value_name = "E", default_value_t = defaults::TOLERANCE, allow_negative_numbers = true)]
    tolerance: f64,
    /// Largest error that entries may have, in the tolerance's place: lets the local route be taken, which makes
    /// the large entries of graphs with millions of vertices (try 1e-4)
    #[arg(long, value_name = "E", allow_negative_numbers = true, conflicts_with = "tolerance")]
    accuracy: Option<f64>,
    /// Arithmetic of the chebyshev route: f32 is about twice as fast, with errors near 1e-7
    #[arg(long, default_value = "f64", value_parser = words::<Precision>(&["f64", "f32"]))]
    precision: Precision,
    #[arg(long, value_name = "E", allow_negative_numbers = true, group = "kept", help = with_default("Keep entries of at least this value", defaults::EPSILON))]
    epsilon: Option<f64>,
    /// Keep the K largest positive entries of each row, and their mirror images
    #[arg(long, value_name = "K", group = "kept")]
    top_k: Option<usize>,
    /// Keep everything
    #[arg(long, value_name = "none", group = "kept", value_parser = ["none"])]
    sparsify: Option<String>,
    /// How entries are compared: by value (negative ones go) or by magnitude
    #[arg(long, default_value = "positive", value_parser = words::<Sign>(&["positive", "absolute"]))]
    sign: Sign,
    /// Divide by the row sums of what was kept
    #[arg(long, default_value = "sym", value_parser = words::<Normalize>(&["sym", "row", "col", "none"]))]
    normalize: Normalize,
    /// Weight of the self-loops added to the graph
    #[arg(long, value_name = "W", default_value_t = defaults::SELF_LOOP, allow_negative_numbers = true)]
    self_loop: f64,
}

impl KernelArguments {
    /// The route asked for.
    pub(crate) fn route(&self) -> Route {
        self.solver
    }

    /// The recipe; options that belong to another filter are refused rather than ignored.
    pub(crate) fn recipe(&self) -> Result<Recipe, Failure> {
        use FilterName::{Band, Gaussian, Heat, Ppr};
        let given = [
            ("--mu", self.mu, &[Gaussian, Band][..]),
            ("--sigma", self.sigma, &[Gaussian]),
            ("--gamma", self.gamma, &[Band]),
            ("--alpha", self.alpha, &[Ppr]),
            ("--time", self.time, &[Heat]),
        ];
        for (option, value, filters) in given {
            let belongs = matches!(&self.filter, FilterArgument::Named(name) if filters.contains(name));
            if value.is_some() && !belongs {
                let owners: Vec<String> =
                    filters.iter().map(|&name| FilterArgument::Named(name).text()).collect();
                return Err(Failure::usage(format!(
                    "{option} does not belong to --filter {}",
                    self.filter.text()
                ))
                .hint(format!("it belongs to --filter {}", owners.join(" and "))));
            }
        }
        let mu = self.mu.unwrap_or(defaults::MU);
        let filter = match &self.filter {
            FilterArgument::File(path) => qdc_lab::read_filter(path)?,
            FilterArgument::Named(name) => match name {
                Gaussian => Filter::gaussian(mu, self.sigma.unwrap_or(defaults::SIGMA)),
                Band => Filter::band(mu, self.gamma.unwrap_or(defaults::GAMMA)),
                Ppr => Filter::ppr(self.alpha.unwrap_or(defaults::ALPHA)),
                Heat => Filter::heat(self.time.unwrap_or(defaults::TIME)),
            }?,
        };
        let sparsify = match (self.top_k, &self.sparsify) {
            (Some(k), _) => Sparsify::top_k(k)?,
            (None, Some(_)) => Sparsify::None,
            (None, None) => Sparsify::epsilon(self.epsilon.unwrap_or(defaults::EPSILON))?,
        };
        Ok(Recipe::new(filter)
            .pairs(self.pairs)
            .tolerance(self.tolerance)
            .precision(self.precision)
            .accuracy(self.accuracy)
            .sparsify(sparsify)
            .sign(self.sign)
            .normalize(self.normalize)
            .self_loop(self.self_loop))
    }
}

fn with_default(text: &str, default: f64) -> String {
    format!("{text} [default: {default}]")
}

/// Parses the name of a route; help and completion list them all.
fn routes() -> impl TypedValueParser<Value = Route> {
    PossibleValuesParser::new(Route::ALL.iter().map(|route| route.name()))
        .try_map(|name| name.parse::<Route>())
}
