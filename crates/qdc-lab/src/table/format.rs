//! The table as text, Markdown, LaTeX, csv or JSON.

use std::fmt::Write as _;

use super::{Cell, Column, Table};

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
}

const TEXT: Style = Style { plus_minus: "±", bold: ("", " <"), homophily: "H", nodes: "|V|", edges: "|E|" };
const MARKDOWN: Style =
    Style { plus_minus: "±", bold: ("**", "**"), homophily: "H", nodes: "\\|V\\|", edges: "\\|E\\|" };
const LATEX: Style = Style {
    plus_minus: "$\\pm$",
    bold: ("\\textbf{", "}"),
    homophily: "$\\mathcal{H}$",
    nodes: "$|\\mathcal{V}|$",
    edges: "$|\\mathcal{E}|$",
};

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
            line("", &|column| column.dataset.clone()),
            line(style.homophily, &|column| {
                column.homophily.map_or(String::new(), |value| format!("{value:.2}"))
            }),
            line(style.nodes, &|column| whole(column.nodes)),
            line(style.edges, &|column| whole(column.edges)),
        ];
        for model in &self.rows {
            let field = |column: &Column| {
                self.cell(model, &column.dataset)
                    .map_or(String::new(), |cell| self.field(cell, style, compare))
            };
            grid.push(line(&model.to_string(), &field));
        }
        grid
    }

    fn field(&self, cell: &Cell, style: &Style, compare: bool) -> String {
        let number =
            format!("{:.2} {} {:.2}", 100.0 * cell.test_mean, style.plus_minus, 100.0 * cell.test_std);
        let mut field = if cell.best { format!("{}{number}{}", style.bold.0, style.bold.1) } else { number };
        if cell.p_value.is_some_and(|p| p < 0.05) {
            field.push('*');
        }
        if let (true, Some((mean, _))) = (compare, cell.published) {
            let _ = write!(field, " ({:.2})", 100.0 * mean);
        }
        if (cell.trials.0 as u64) < cell.trials.1 {
            let _ = write!(field, " [{}/{}]", cell.trials.0, cell.trials.1);
        }
        field
    }

    fn csv(&self) -> String {
        let mut csv = String::from(
            "model,dataset,test_mean,test_std,validation,best,p_value,published_mean,published_std,trials\n",
        );
        for cell in &self.cells {
            let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let _ = writeln!(
                csv,
                "{},{},{},{},{},{},{},{},{},{}",
                cell.model,
                cell.dataset,
                cell.test_mean,
                cell.test_std,
                cell.validation,
                cell.best,
                optional(cell.p_value),
                optional(cell.published.map(|pair| pair.0)),
                optional(cell.published.map(|pair| pair.1)),
                cell.trials.0
            );
        }
        csv
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
    text += "\ntest accuracy in percent, mean ± deviation over the splits; < best of its family; * differs from the plain \
             network (p < 0.05, paired over splits)";
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
