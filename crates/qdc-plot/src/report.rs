//! The report: one HTML file, no network, that tells the story of a dataset or of studies.
//!
//! For small graphs the page carries the eigenpairs, and sliders for mu, sigma and epsilon recompute the kernel,
//! its sparsity and its homophily in the page. Drawings take the colours of the page, light or dark.

use std::fmt::Write;

use qdc_core::Spectrum;

use crate::colour;
use crate::svg::escape;

/// The largest graph whose eigenpairs the page carries: 400 vertices are 1.7 MB of text and 50 ms a redraw.
pub const INTERACTIVE_LIMIT: usize = 400;

/// A table; a click, Enter or Space on a heading sorts it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// What a reader needs to know to read it.
    pub note: String,
    /// Headings.
    pub columns: Vec<String>,
    /// Cells; numbers sort as numbers, empty cells come last.
    pub rows: Vec<Vec<String>>,
}

/// A kernel to begin with: a Gaussian window and a threshold.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Window {
    /// Centre of the filter.
    pub mu: f64,
    /// Its width.
    pub sigma: f64,
    /// Entries below this are dropped.
    pub epsilon: f64,
}

/// A report in the making; [`Report::to_html`] gives the page.
///
/// ```
/// let page = qdc_plot::Report::new("karate", "Two factions.").statistics([("vertices", "34")]).to_html();
/// assert!(page.contains("<h1>karate</h1>") && !page.contains("http://cdn"));
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    title: String,
    introduction: String,
    body: String,
    figures: usize,
}

impl Report {
    /// A report with a title and an opening paragraph.
    pub fn new(title: &str, introduction: &str) -> Self {
        Self { title: title.into(), introduction: introduction.into(), body: String::new(), figures: 0 }
    }

    /// Begins a chapter, such as one graph of several.
    pub fn chapter(mut self, title: &str, text: &str) -> Self {
        let _ = writeln!(
            self.body,
            "<h2 class=\"chapter\">{}</h2><p class=\"lead\">{}</p>",
            escape(title),
            escape(text)
        );
        self
    }

    /// A list of names and values.
    pub fn statistics<N: AsRef<str>, V: AsRef<str>>(
        mut self,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.body.push_str("<section><h2>In numbers</h2><dl class=\"numbers\">");
        for (name, value) in pairs {
            let (name, value) = (escape(name.as_ref()), escape(value.as_ref()));
            let _ = write!(self.body, "<div><dt>{name}</dt><dd>{value}</dd></div>");
        }
        self.body.push_str("</dl></section>\n");
        self
    }

    /// A figure with a heading and a caption.
    pub fn figure(mut self, title: &str, caption: &str, svg: &str) -> Self {
        let (number, title) = (self.figures, escape(title));
        self.figures += 1;
        // Several drawings share a page: names inside them must not meet.
        let svg = colour::themed(svg)
            .replace("\"edges\"", &format!("\"edges{number}\""))
            .replace("#edges", &format!("#edges{number}"))
            .replacen("role=\"img\"", &format!("role=\"img\" aria-label=\"{title}\""), 1);
        let width = svg.split_once("width=\"").and_then(|(_, rest)| rest.split_once('"')).map_or("", |w| w.0);
        let _ = writeln!(
            self.body,
            "<section><h2>{title}</h2><figure><div class=\"drawing\" style=\"--width:{width}\" tabindex=\"0\">{svg}\
             </div><figcaption>{}</figcaption></figure></section>",
            escape(caption)
        );
        self
    }

    /// A sortable table. A column whose cells are all numbers is set to the right.
    pub fn table(mut self, table: &Table) -> Self {
        let number = |column: usize| {
            let mut cells =
                table.rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_empty());
            let numeric = cells.clone().next().is_some()
                && cells.all(|cell| cell.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
            if numeric { " class=\"number\"" } else { "" }
        };
        let _ = write!(
            self.body,
            "<section><h2>{title}</h2><p>{}</p><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\
             <table class=\"sortable\"><thead><tr>",
            escape(&table.note),
            title = escape(&table.title),
        );
        for (place, column) in table.columns.iter().enumerate() {
            let _ = write!(
                self.body,
                "<th scope=\"col\" aria-sort=\"none\"{}><button type=\"button\">{}</button></th>",
                number(place),
                escape(column)
            );
        }
        self.body.push_str("</tr></thead><tbody>");
        for row in &table.rows {
            self.body.push_str("<tr>");
            for (place, cell) in row.iter().enumerate() {
                let _ = write!(self.body, "<td{}>{}</td>", number(place), escape(cell));
            }
            self.body.push_str("</tr>");
        }
        self.body.push_str("</tbody></table></div></section>\n");
        self
    }

    /// A paragraph under a heading.
    pub fn note(mut self, title: &str, text: &str) -> Self {
        let _ = writeln!(self.body, "<section><h2>{}</h2><p>{}</p></section>", escape(title), escape(text));
        self
    }

    /// Sliders that rebuild the kernel in the page from all eigenpairs; a page for a graph that is too large, or
    /// whose spectrum is not complete, says so instead.
    pub fn interactive(mut self, spectrum: &Spectrum, labels: Option<&[u32]>, window: Window) -> Self {
        if spectrum.nodes() > INTERACTIVE_LIMIT || !spectrum.is_complete() {
            return self.too_large(spectrum.nodes());
        }
        let vectors: Vec<u8> = spectrum.vectors().iter().flat_map(|value| value.to_le_bytes()).collect();
        let Window { mu, sigma, epsilon } = window;
        let data = serde_json::json!({
            "nodes": spectrum.nodes(),
            "eigenvalues": spectrum.eigenvalues(),
            "vectors": base64(&vectors),
            "labels": labels,
            "mu": mu,
            "sigma": sigma,
            "epsilon": epsilon,
        });
        self.body.push_str(include_str!("../assets/interactive.html"));
        let _ = writeln!(
            self.body,
            "<script type=\"application/json\">{}</script></section>",
            script_json(&data)
        );
        self
    }

    /// What the page says in place of the sliders where a graph is too large for them.
    pub fn too_large(self, nodes: usize) -> Self {
        let text = format!(
            "This graph has {nodes} vertices. The page recomputes the kernel for graphs of up to {INTERACTIVE_LIMIT}; \
             use qdc kernel and qdc figure for larger ones."
        );
        self.note("The kernel, by hand", &text)
    }

    /// The whole page.
    pub fn to_html(&self) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{style}</style></head>\n<body><main>\n<h1>{title}</h1>\n\
             <p class=\"lead\">{introduction}</p>\n{body}<footer>Written by qdc {version}. This file is complete: it \
             loads nothing from elsewhere.</footer>\n</main>\n<script>\n\"use strict\";\n{script}</script></body></html>\n",
            title = escape(&self.title),
            style = include_str!("../assets/report.css"),
            introduction = escape(&self.introduction),
            body = self.body,
            version = env!("CARGO_PKG_VERSION"),
            script = include_str!("../assets/report.js"),
        )
    }
}

/// JSON that may stand inside a script element.
pub(crate) fn script_json(value: &serde_json::Value) -> String {
    value.to_string().replace("</", "<\\/").replace("<!--", "<\\!--")
}

/// Bytes in the letters a page can carry (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |word, at| word << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() { letter as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_the_letters_of_the_standard() {
        let text = |bytes: &[u8]| base64(bytes);
        assert_eq!(
            [text(b""), text(b"f"), text(b"fo"), text(b"foo"), text(b"foob")],
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
        );
    }

    #[test]
    fn nothing_a_user_names_can_become_markup() {
        let table = Table {
            title: "<b>".into(),
            note: "<s>".into(),
            columns: vec!["<i>".into()],
            rows: vec![vec!["<script>alert".into()]],
        };
        let page = Report::new("<u>", "a & b").table(&table).to_html();
        for wrong in ["<b>", "<i>", "<s>", "<u>", "<script>alert", "a & b"] {
            assert!(!page.contains(wrong), "{wrong}");
        }
        assert!(page.contains("&lt;script&gt;alert") && page.contains("a &amp; b"));
        assert_eq!(script_json(&serde_json::json!("</script>")), "\"<\\/script>\"");
    }

    #[test]
    fn drawings_take_the_colours_of_the_page() {
        let mut svg = crate::svg::Svg::new(321.0, 100.0);
        svg.text((1.0, 1.0), crate::svg::Anchor::Start, 9.0, "word");
        let page = Report::new("a", "b").figure("A \"title\"", "", &svg.finish()).to_html();
        assert!(page.contains("fill=\"var(--ink)\"") && page.contains("fill=\"var(--paper)\""));
        assert!(page.contains("--width:321\"") && page.contains("aria-label=\"A &quot;title&quot;\""));
    }
}
