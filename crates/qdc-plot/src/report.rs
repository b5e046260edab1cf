//! The report: one HTML file, no network, that tells the story of a dataset or of studies.
//!
//! For small graphs the page carries the eigenpairs, and sliders for mu, sigma and epsilon recompute the kernel,
//! its sparsity and its homophily in the page.

use std::fmt::Write;

use qdc_core::Spectrum;

use crate::svg::escape;

/// The largest graph whose eigenpairs the page carries: 400 vertices are 850 kB of text and 50 ms a redraw.
pub const INTERACTIVE_LIMIT: usize = 400;

/// A table; a click, Enter or Space on a heading sorts it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Headings.
    pub columns: Vec<String>,
    /// Cells; numbers sort as numbers.
    pub rows: Vec<Vec<String>>,
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
    data: Option<serde_json::Value>,
}

impl Report {
    /// A report with a title and an opening paragraph.
    pub fn new(title: &str, introduction: &str) -> Self {
        Self { title: title.into(), introduction: introduction.into(), body: String::new(), data: None }
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
        // Several drawings share a page: names inside them must not meet.
        let number = self.body.matches("<figure").count();
        let svg = svg
            .replace("\"edges\"", &format!("\"edges{number}\""))
            .replace("#edges", &format!("#edges{number}"));
        let _ = writeln!(
            self.body,
            "<section><h2>{}</h2><figure>{svg}<figcaption>{}</figcaption></figure></section>",
            escape(title),
            escape(caption)
        );
        self
    }

    /// A sortable table.
    pub fn table(mut self, table: &Table) -> Self {
        let _ = write!(
            self.body,
            "<section><h2>{}</h2><div class=\"scroll\"><table class=\"sortable\"><thead><tr>",
            escape(&table.title)
        );
        for column in &table.columns {
            let _ = write!(
                self.body,
                "<th scope=\"col\" aria-sort=\"none\"><button type=\"button\">{}</button></th>",
                escape(column)
            );
        }
        self.body.push_str("</tr></thead><tbody>");
        for row in &table.rows {
            self.body.push_str("<tr>");
            for cell in row {
                let _ = write!(self.body, "<td>{}</td>", escape(cell));
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
    pub fn interactive(
        mut self,
        spectrum: &Spectrum,
        labels: Option<&[u32]>,
        mu: f64,
        sigma: f64,
        epsilon: f64,
    ) -> Self {
        if spectrum.nodes() > INTERACTIVE_LIMIT || !spectrum.is_complete() {
            return self.too_large(spectrum.nodes());
        }
        let vectors: Vec<u8> =
            spectrum.vectors().iter().flat_map(|&value| (value as f32).to_le_bytes()).collect();
        self.data = Some(serde_json::json!({
            "nodes": spectrum.nodes(),
            "eigenvalues": spectrum.eigenvalues(),
            "vectors": base64(&vectors),
            "labels": labels,
            "mu": mu,
            "sigma": sigma,
            "epsilon": epsilon,
        }));
        self.body.push_str(include_str!("../assets/interactive.html"));
        self
    }

    /// What the page says in place of the sliders where a graph is too large for them.
    pub fn too_large(self, nodes: usize) -> Self {
        let text = format!(
            "This graph has {nodes} vertices. The page recomputes the kernel for graphs of up to {INTERACTIVE_LIMIT}; \
             use qdc kernel and qdc figure for larger ones. Everything else on this page is complete."
        );
        self.note("The kernel, by hand", &text)
    }

    /// The whole page.
    pub fn to_html(&self) -> String {
        let data = self.data.as_ref().map_or("null".to_owned(), script_json);
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{style}</style></head>\n<body><main>\n<h1>{title}</h1>\n\
             <p class=\"lead\">{introduction}</p>\n{body}</main>\n<script>\n\"use strict\";\nconst data = {data};\n\
             {script}</script></body></html>\n",
            title = escape(&self.title),
            style = include_str!("../assets/report.css"),
            introduction = escape(&self.introduction),
            body = self.body,
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
        let table =
            Table { title: "<b>".into(), columns: vec!["<i>".into()], rows: vec![vec!["<script>".into()]] };
        let page = Report::new("<u>", "a & b").table(&table).to_html();
        for wrong in ["<b>", "<i>", "<u>", "<script>alert", "a & b"] {
            assert!(!page.contains(wrong), "{wrong}");
        }
        assert!(page.contains("&lt;script&gt;") && page.contains("a &amp; b"));
        assert_eq!(script_json(&serde_json::json!("</script>")), "\"<\\/script>\"");
    }
}
