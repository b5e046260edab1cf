//! The table as text, Markdown, LaTeX, csv or JSON.

use std::fmt::Write as _;

use super::{Cell, Column, Comparison, Table};

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns.
    Text,
    /// A Markdown table.
    Markdown,
    /// A LaTeX `tabular`.
    Latex,
    /// One line a cell.
    Csv,
    /// One object.
    Json,
}

/// What differs between the layouts.
struct Style {
    plus_minus: &'static str,
    bold: (&'static str, &'static str),
    homophily: &'static str,
    nodes: &'static str,
    edges: &'static str,
    star: &'static str,
    dagger: &'static str,
    degree: &'static str,
    double_dagger: &'static str,
    /// For names that stand in the table as they are.
    escape: fn(&str) -> String,
}

const TEXT: Style = Style {
    plus_minus: "±",
    bold: ("", " <"),
    homophily: "H",
    nodes: "|V|",
    edges: "|E|",
    star: "*",
    dagger: "†",
    degree: "°",
    double_dagger: "‡",
    escape: str::to_owned,
};
const MARKDOWN: Style = Style {
    plus_minus: "±",
    bold: ("**", "**"),
    homophily: "H",
    nodes: "\\|V\\|",
    edges: "\\|E\\|",
    star: "\\*", // a plain one would end what is bold
    dagger: "†",
    degree: "°",
    double_dagger: "‡",
    escape: piped,
};
const LATEX: Style = Style {
    plus_minus: "$\\pm$",
    bold: ("\\textbf{", "}"),
    homophily: "$\\mathcal{H}$",
    nodes: "$|\\mathcal{V}|$",
    edges: "$|\\mathcal{E}|$",
    star: "*",
    dagger: "$^\\dagger$",
    degree: "$^\\circ$",
    double_dagger: "$^\\ddagger$",
    escape: escaped,
};

/// A name in a Markdown table.
fn piped(name: &str) -> String {
    name.replace('|', "\\|")
}

/// A name with the letters escaped that LaTeX reads as commands.
fn escaped(name: &str) -> String {
    let escape = |letter: char| match letter {
        '_' | '&' | '%' | '#' | '$' | '{' | '}' => format!("\\{letter}"),
        '\\' => "\\textbackslash{}".to_owned(),
        '~' => "\\textasciitilde{}".to_owned(),
        '^' => "\\textasciicircum{}".to_owned(),
        other => other.to_string(),
    };
    name.chars().map(escape).collect()
}

impl Table {
    /// The table in a format; with the published numbers beside ours where `compare` is set.
    pub fn write(&self, format: Format, compare: bool) -> String {
        match format {
            Format::Text => text(&self.grid(&TEXT, compare), compare),
            Format::Markdown => markdown(&self.grid(&MARKDOWN, compare)),
            Format::Latex => latex(&self.grid(&LATEX, compare)),
            Format::Csv => self.csv(),
            Format::Json => {
                let mut text = serde_json::to_string(self).unwrap_or_default();
                text.push('\n');
                text
            }
        }
    }

    /// Head, three lines of statistics, and a line a model; all lines have the same number of fields.
    fn grid(&self, style: &Style, compare: bool) -> Vec<Vec<String>> {
        let line = |name: &str, field: &dyn Fn(&Column) -> String| {
            std::iter::once(name.to_owned()).chain(self.columns.iter().map(field)).collect::<Vec<String>>()
        };
        let whole = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
        let mut grid = vec![
            line("", &|column| (style.escape)(&self.heading(column))),
            line(style.homophily, &|column| {
                column.homophily.map_or(String::new(), |value| format!("{value:.2}"))
            }),
            line(style.nodes, &|column| whole(column.nodes)),
            line(style.edges, &|column| whole(column.edges)),
        ];
        for row in &self.rows {
            let field = |column: &Column| {
                self.cell(row, &column.dataset).map_or(String::new(), |cell| self.field(cell, style, compare))
            };
            let mut fields = line(&row.model.to_string(), &field);
            let cells: Vec<&Cell> = self.cells.iter().filter(|cell| cell.row == *row).collect();
            let trials = range(cells.iter().map(|cell| cell.trials));
            let seeds = range(cells.iter().map(|cell| cell.seeds));
            let head = [(style.escape)(&row.space), trials, seeds, (style.escape)(&row.study)];
            fields.splice(1..1, head);
            grid.push(fields);
        }
        let named = self.rows.iter().any(|row| !row.study.is_empty());
        let heads = ["space", "trials", "seeds", "study"];
        for (index, line) in grid.iter_mut().enumerate().take(4) {
            let head = heads.map(|name| if index == 0 { name.to_owned() } else { String::new() });
            line.splice(1..1, head);
        }
        if !named {
            grid.iter_mut().for_each(|line| {
                line.remove(heads.len());
            });
        }
        grid
    }

    fn field(&self, cell: &Cell, style: &Style, compare: bool) -> String {
        let number =
            format!("{:.2} {} {:.2}", 100.0 * cell.test_mean, style.plus_minus, 100.0 * cell.test_std);
        let mut field = if cell.best { format!("{}{number}{}", style.bold.0, style.bold.1) } else { number };
        let differs = |comparison: Option<Comparison>| comparison.is_some_and(|test| test.adjusted < 0.05);
        for (is, mark) in [
            (differs(cell.versus_gcn), style.star),
            (differs(cell.versus_mlp), style.dagger),
            (cell.nearly_identity, style.degree),
            (cell.started > 0, style.double_dagger),
        ] {
            field += if is { mark } else { "" };
        }
        if let (true, Some((mean, _))) = (compare, cell.published) {
            let _ = write!(field, " ({:.2})", 100.0 * mean);
        }
        let unfinished = (cell.trials as u64) < cell.wanted;
        let remarks = [
            unfinished.then(|| format!("{}/{}", cell.trials, cell.wanted)),
            (cell.failed > 0).then(|| format!("{} failed", cell.failed)),
        ];
        let remarks: Vec<String> = remarks.into_iter().flatten().collect();
        if !remarks.is_empty() {
            let _ = write!(field, " [{}]", remarks.join(", "));
        }
        field
    }

    /// The dataset, and what its scores are measured by where that is not the accuracy.
    fn heading(&self, column: &Column) -> String {
        let mut metrics =
            self.cells.iter().filter(|cell| cell.dataset == column.dataset).map(|cell| &cell.metric);
        match metrics.next() {
            Some(metric) if metric != "accuracy" && metrics.all(|other| other == metric) => {
                format!("{} ({metric})", column.dataset)
            }
            _ => column.dataset.clone(),
        }
    }

    fn csv(&self) -> String {
        let mut csv = String::from(
            "model,dataset,space,study,experiment,metric,trials,seeds,test_mean,test_std,validation,best,p_gcn,\
             p_gcn_holm,p_mlp,p_mlp_holm,nearly_identity,published_mean,published_std\n",
        );
        for cell in &self.cells {
            let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let (gcn, mlp) = (cell.versus_gcn, cell.versus_mlp);
            let fields = [
                quoted(&cell.row.model.to_string()),
                quoted(&cell.dataset),
                quoted(&cell.row.space),
                quoted(&cell.name),
                cell.experiment.clone().unwrap_or_default(),
                quoted(&cell.metric),
                cell.trials.to_string(),
                cell.seeds.to_string(),
                cell.test_mean.to_string(),
                cell.test_std.to_string(),
                cell.validation.to_string(),
                cell.best.to_string(),
                optional(gcn.map(|test| test.p_value)),
                optional(gcn.map(|test| test.adjusted)),
                optional(mlp.map(|test| test.p_value)),
                optional(mlp.map(|test| test.adjusted)),
                cell.nearly_identity.to_string(),
                optional(cell.published.map(|pair| pair.0)),
                optional(cell.published.map(|pair| pair.1)),
            ];
            csv += &fields.join(",");
            csv.push('\n');
        }
        csv
    }
}

/// A field of a csv file: in quotes where it holds a comma, a quote or a line's end.
pub(super) fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// What numbers have in common: one, or from the least to the greatest.
fn range(numbers: impl Iterator<Item = usize> + Clone) -> String {
    match (numbers.clone().min(), numbers.max()) {
        (Some(least), Some(most)) if least < most => format!("{least}-{most}"),
        (Some(one), _) => one.to_string(),
        (None, _) => String::new(),
    }
}

fn text(grid: &[Vec<String>], compare: bool) -> String {
    let fields = grid.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..fields)
        .map(|field| grid.iter().map(|line| line[field].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for (index, line) in grid.iter().enumerate() {
        for (field, width) in line.iter().zip(&widths) {
            let _ = write!(text, "{field:<width$}  ");
        }
        text = text.trim_end().to_owned() + "\n";
        if index == 3 {
            text += &"-".repeat(widths.iter().sum::<usize>() + 2 * (fields.max(1) - 1));
            text.push('\n');
        }
    }
    text += "\ntest score in percent, mean over splits and seeds ± deviation over splits; < best of its dataset; * differs\n\
             from GCN, † from MLP (p < 0.05, paired over splits, Holm's correction); ° the kernel is nearly the identity: \
             this network is an MLP; ‡ the search began at given points";
    text += if compare { "; published in brackets\n" } else { "\n" };
    text
}

fn markdown(grid: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (index, line) in grid.iter().enumerate() {
        let _ = writeln!(text, "| {} |", line.join(" | "));
        if index == 0 {
            let _ = writeln!(text, "|{}", " --- |".repeat(line.len()));
        }
    }
    text
}

fn latex(grid: &[Vec<String>]) -> String {
    let fields = grid.first().map_or(0, Vec::len);
    let mut text = format!("\\begin{{tabular}}{{l{}}}\n\\hline\n", "c".repeat(fields.saturating_sub(1)));
    for (index, line) in grid.iter().enumerate() {
        let _ = writeln!(text, "{} \\\\", line.join(" & "));
        if index == 0 || index == 3 {
            text += "\\hline\n";
        }
    }
    text + "\\hline\n\\end{tabular}\n"
}
