//! The report: one HTML file, no network, that tells the story of a dataset or of studies.
//!
//! Every drawing stands in the page twice, once for a screen and once for a telephone, and takes the page's
//! colours, light or dark. Its readings come along: a pointer, a finger or the arrow keys show them. For
//! small graphs the page carries the eigenpairs, and sliders for mu, sigma and epsilon recompute the kernel
//! and what is measured of it.

mod sliders;

use std::fmt::Write;

use crate::svg::{COLUMN, SCREEN, escape};
use crate::{Error, Figure, Reading, colour};

pub use sliders::INTERACTIVE_LIMIT;

/// A kernel whose diagonal carries more of the weight than this leaves a network nothing but each vertex's
/// own features. The sliders of the page warn at the same share.
pub const NEARLY_IDENTITY: f64 = 0.99;

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
    chapters: Vec<String>,
    figures: usize,
    /// Letters of eigenpairs the page carries so far.
    eigenpairs: usize,
}

impl Report {
    /// A report with a title and an opening paragraph.
    pub fn new(title: &str, introduction: &str) -> Self {
        Self {
            title: title.into(),
            introduction: introduction.into(),
            body: String::new(),
            chapters: Vec::new(),
            figures: 0,
            eigenpairs: 0,
        }
    }

    /// Begins a chapter, such as one graph of several.
    pub fn chapter(mut self, title: &str, text: &str) -> Self {
        self.chapters.push(title.into());
        let _ = writeln!(
            self.body,
            "<h2 class=\"chapter\" id=\"chapter-{}\">{}</h2>",
            self.chapters.len(),
            escape(title)
        );
        if !text.is_empty() {
            let _ = writeln!(self.body, "<p class=\"lead\">{}</p>", escape(text));
        }
        self
    }

    /// Opens a section; its heading stands below that of the chapter, if there is one.
    fn open_section(&mut self, title: &str) {
        let level = if self.chapters.is_empty() { 2 } else { 3 };
        let _ = write!(self.body, "<section><h{level}>{}</h{level}>", escape(title));
    }

    /// A list of names and values.
    pub fn statistics<N: AsRef<str>, V: AsRef<str>>(
        mut self,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.open_section("In numbers");
        self.body.push_str("<dl class=\"numbers\">");
        for (name, value) in pairs {
            let (name, value) = (escape(name.as_ref()), escape(value.as_ref()));
            let _ = write!(self.body, "<div><dt>{name}</dt><dd>{value}</dd></div>");
        }
        self.body.push_str("</dl></section>\n");
        self
    }

    /// Paragraphs under a heading.
    pub fn text<T: AsRef<str>>(mut self, title: &str, paragraphs: impl IntoIterator<Item = T>) -> Self {
        self.open_section(title);
        for paragraph in paragraphs {
            let _ = write!(self.body, "<p>{}</p>", escape(paragraph.as_ref()));
        }
        self.body.push_str("</section>\n");
        self
    }

    /// A warning that no reader should miss.
    pub fn notice(mut self, title: &str, text: &str) -> Self {
        let _ = writeln!(
            self.body,
            "<aside class=\"notice\" role=\"note\"><strong>{}</strong> {}</aside>",
            escape(title),
            escape(text)
        );
        self
    }

    /// A figure with a heading and a caption, as wide as the text. `draw` draws it at any width; of a figure
    /// with layers the page shows the one its reader picks.
    pub fn figure(
        mut self,
        title: &str,
        caption: &str,
        draw: impl Fn(f64) -> Result<Figure, Error>,
    ) -> Result<Self, Error> {
        self.figures += 1;
        self.open_section(title);
        let (number, title) = (self.figures, escape(title));
        let (wide, narrow) = (draw(SCREEN)?, draw(COLUMN)?);
        let _ = write!(
            self.body,
            "<figure>{}<div class=\"drawing\" role=\"group\" tabindex=\"0\" aria-label=\"{title}\" \
             aria-describedby=\"caption-{number} reading-help\">{}{}<script type=\"application/json\">{}</script></div>",
            layer_control(number, &wide.layers),
            embedded(&wide.svg, "wide", number),
            embedded(&narrow.svg, "narrow", number),
            readings_json(&wide.readings, &narrow.readings),
        );
        let _ = writeln!(
            self.body,
            "<figcaption id=\"caption-{number}\"><b>Figure {number}.</b> {}</figcaption></figure></section>",
            escape(caption)
        );
        Ok(self)
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
        self.open_section(&table.title);
        let _ = write!(
            self.body,
            "<p>{}</p><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
             aria-label=\"{title}\"><table class=\"sortable\"><thead><tr>",
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

    /// The whole page.
    pub fn to_html(&self) -> String {
        let scripts = [
            include_str!("../../assets/sort.js"),
            include_str!("../../assets/readings.js"),
            include_str!("../../assets/sliders.js"),
        ];
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{style}</style></head>\n<body><main>\n<header><h1>{title}</h1>\n\
             <p class=\"lead\">{introduction}</p>{contents}</header>\n{body}<footer>Written by qdc {version}. This file \
             is complete: it loads nothing from elsewhere. <span id=\"reading-help\">Point at a figure, touch it, or \
             focus it and press the arrow keys, to read its values.</span></footer>\n</main>\n\
             <div id=\"reading\" role=\"status\" hidden></div>\n<script>\n\"use strict\";\n{script}</script></body></html>\n",
            title = escape(&self.title),
            style = include_str!("../../assets/report.css"),
            introduction = escape(&self.introduction),
            contents = self.contents(),
            body = self.body,
            version = env!("CARGO_PKG_VERSION"),
            script = scripts.concat(),
        )
    }

    /// Links to the chapters, where there are several.
    fn contents(&self) -> String {
        if self.chapters.len() < 2 {
            return String::new();
        }
        let links = self.chapters.iter().enumerate().map(|(place, title)| {
            format!("<li><a href=\"#chapter-{}\">{}</a></li>", place + 1, escape(title))
        });
        format!("<nav aria-label=\"Contents\"><ol>{}</ol></nav>", links.collect::<String>())
    }
}

/// A drawing for the page: the page's colours, and names of its own, as several drawings share the page.
fn embedded(svg: &str, class: &str, number: usize) -> String {
    colour::themed(svg)
        .replace("id=\"edges\"", &format!("id=\"edges-{class}-{number}\""))
        .replace("href=\"#edges\"", &format!("href=\"#edges-{class}-{number}\""))
        .replacen("role=\"img\"", &format!("class=\"{class}\" aria-hidden=\"true\""), 1)
}

/// Buttons of which one is pressed, a button for each layer; nothing for a figure without.
fn layer_control(number: usize, layers: &[String]) -> String {
    if layers.len() < 2 {
        return String::new();
    }
    let mut text = String::from("<fieldset class=\"layers\"><legend>Show</legend>");
    for (layer, name) in layers.iter().enumerate() {
        let checked = if layer == 0 { " checked" } else { "" };
        let _ = write!(
            text,
            "<label><input type=\"radio\" name=\"layers-{number}\" value=\"{layer}\"{checked}><span>{}</span></label>",
            escape(name)
        );
    }
    text + "</fieldset>"
}

/// Words once, places for each drawing: `{"texts", "layers", "wide", "narrow"}`, layers null where
/// there are none.
fn readings_json(wide: &[Reading], narrow: &[Reading]) -> String {
    debug_assert!(wide.iter().map(|reading| &reading.text).eq(narrow.iter().map(|reading| &reading.text)));
    let places = |readings: &[Reading]| -> Vec<[f64; 4]> {
        let tenths = |value: f64| (10.0 * value).round() / 10.0;
        readings.iter().map(|reading| reading.place.map(tenths)).collect()
    };
    let layers: Vec<Option<usize>> = wide.iter().map(|reading| reading.layer).collect();
    script_json(&serde_json::json!({
        "texts": wide.iter().map(|reading| reading.text.as_str()).collect::<Vec<_>>(),
        "layers": layers.iter().any(Option::is_some).then_some(layers),
        "wide": places(wide),
        "narrow": places(narrow),
    }))
}

/// JSON that may stand inside a script element: `<` can only stand inside a string, where it has another
/// spelling.
pub(crate) fn script_json(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{Anchor, Svg};

    fn drawing(width: f64) -> Result<Figure, Error> {
        let mut svg = Svg::new(width);
        svg.text((1.0, 9.0), Anchor::Start, 9.0, "word");
        let readings = vec![Reading::point((width / 2.0, 3.0), "a < b".into())];
        Ok(Figure::new(svg.finish(50.0), String::new(), readings))
    }

    #[test]
    fn nothing_a_user_names_can_become_markup() {
        let table = Table {
            title: "<b>".into(),
            note: "<s>".into(),
            columns: vec!["<i>".into()],
            rows: vec![vec!["<script>alert".into()]],
        };
        let page = Report::new("<u>", "a & b")
            .chapter("<em>", "")
            .chapter("<em>", "<tt>")
            .text("<kbd>", ["<var>"])
            .notice("<dfn>", "<sub>")
            .figure("<sup>", "<q>", |width| {
                let reading = Reading::point((0.0, 0.0), "</script>".into());
                Ok(Figure { layers: vec!["<del>".into(); 2], readings: vec![reading], ..drawing(width)? })
            })
            .unwrap()
            .table(&table)
            .to_html();
        for wrong in ["b", "i", "s", "u", "em", "tt", "kbd", "var", "dfn", "sub", "sup", "q", "del"] {
            let rest = page.replace("<b>Figure 1.</b>", "");
            assert!(!rest.contains(&format!("<{wrong}>")), "{wrong}");
        }
        assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert"));
        assert_eq!(page.matches("</script>").count(), 2, "the readings and the page's own");
        assert!(page.contains("a &amp; b"));
    }

    #[test]
    fn what_stands_in_a_script_is_json_whatever_it_says() {
        for text in ["</script>", "<!-- <script>", "a < b", "\\!", "plain"] {
            let written = script_json(&serde_json::json!({ "text": text }));
            assert!(!written.contains('<'), "{written}");
            let read: serde_json::Value = serde_json::from_str(&written).expect("it is JSON");
            assert_eq!(read["text"], text);
        }
    }

    #[test]
    fn drawings_take_the_colours_of_the_page_and_come_in_two_widths() {
        let page = Report::new("a", "b").figure("A \"title\"", "", drawing).unwrap().to_html();
        assert!(page.contains("fill=\"var(--ink)\"") && page.contains("fill=\"var(--paper)\""));
        assert!(page.contains("viewBox=\"0 0 600 50\"") && page.contains("viewBox=\"0 0 321 50\""));
        assert!(page.contains("aria-label=\"A &quot;title&quot;\""));
        assert!(
            page.contains(r#""texts":["a \u003c b"]"#) && page.contains(r#""wide":[[300.0,3.0,0.0,0.0]]"#)
        );
    }

    #[test]
    fn layers_get_a_control_and_a_single_one_none() {
        let layered = |layers: usize| {
            let layers: Vec<String> = (0..layers).map(|layer| format!("split {layer}")).collect();
            let figure = move |width| Ok(Figure { layers: layers.clone(), ..drawing(width)? });
            Report::new("a", "b").figure("curves", "", figure).unwrap().to_html()
        };
        assert_eq!(layered(3).matches("type=\"radio\"").count(), 3);
        assert_eq!(layered(3).matches(" checked>").count(), 1);
        assert_eq!(layered(1).matches("type=\"radio\"").count(), 0);
    }

    #[test]
    fn several_chapters_have_a_list_of_contents() {
        let one = Report::new("a", "b").chapter("first", "");
        assert!(!one.to_html().contains("<nav"));
        let two = one.chapter("second", "").to_html();
        assert!(two.contains("href=\"#chapter-2\">second") && two.contains("id=\"chapter-2\">second"));
    }
}
