//! The kernel, by hand: sliders that rebuild it in the page from all eigenpairs.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use qdc_core::Spectrum;

use super::{Report, Window, script_json};

/// The largest graph whose eigenpairs the page carries: 400 vertices are 1.1 MB of text and 50 ms a redraw.
pub const INTERACTIVE_LIMIT: usize = 400;

/// The most letters of eigenpairs in a page with several graphs, so that it stays below 2 MB.
const CARRIED: usize = 500_000;

impl Report {
    /// Sliders that rebuild the kernel in the page from all eigenpairs; a page for a graph that is too large,
    /// or whose spectrum is not complete, says so instead, and so does a page that carries enough already.
    pub fn interactive(mut self, spectrum: &Spectrum, labels: Option<&[u32]>, window: Window) -> Self {
        if spectrum.nodes() > INTERACTIVE_LIMIT || !spectrum.is_complete() {
            return self.too_large(spectrum.nodes());
        }
        let vectors = STANDARD.encode(fixed_point(spectrum.vectors()));
        if self.eigenpairs > 0 && self.eigenpairs + vectors.len() > CARRIED {
            let text = "The sliders are left out here, as this page would grow beyond 2 MB: write a report of this graph \
                        alone to have them.";
            return self.text("The kernel, by hand", [text]);
        }
        self.eigenpairs += vectors.len();
        let Window { mu, sigma, epsilon } = window;
        let data = serde_json::json!({
            "nodes": spectrum.nodes(),
            "eigenvalues": spectrum.eigenvalues(),
            "vectors": vectors,
            "labels": labels,
            "mu": mu,
            "sigma": sigma,
            "epsilon": epsilon,
        });
        self.open_section("The kernel, by hand");
        let _ = writeln!(
            self.body,
            "{}<script type=\"application/json\">{}</script></section>",
            include_str!("../../assets/sliders.html"),
            script_json(&data)
        );
        self
    }

    /// What the page says in place of the sliders where a graph is too large for them.
    pub fn too_large(self, nodes: usize) -> Self {
        let text = format!(
            "This graph has {nodes} vertices. The page recomputes the kernel for graphs of up to \
             {INTERACTIVE_LIMIT}; use qdc kernel and qdc figure for larger ones."
        );
        self.text("The kernel, by hand", [text])
    }
}

/// Entries of unit vectors in units of 2^-39, five bytes each, the lowest first: exact to 1e-12, at five
/// eighths of the size of doubles.
fn fixed_point(entries: &[f64]) -> Vec<u8> {
    let most = (1i64 << 39) - 1;
    let units = entries.iter().map(|entry| ((entry * (most + 1) as f64).round() as i64).clamp(-most, most));
    units.flat_map(|unit| unit.to_le_bytes().into_iter().take(5)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use qdc_core::{EdgeRule, Eigensolver, Graph, Transition, Watch};

    #[test]
    fn entries_come_back_from_five_bytes() {
        for entry in [0.0, 1.0, -1.0, 0.5, -0.123_456_789_012, 1e-9, -3e-12] {
            let bytes = fixed_point(&[entry]);
            assert_eq!(bytes.len(), 5);
            let low = u32::from_le_bytes(bytes[..4].try_into().unwrap());
            let unit = f64::from(bytes[4] as i8) * 4_294_967_296.0 + f64::from(low);
            assert!((unit / 549_755_813_888.0 - entry).abs() < 2e-12, "{entry}");
        }
    }

    #[test]
    fn a_page_stops_carrying_eigenpairs_before_it_grows_too_large() {
        let nodes = 300;
        let edges = (0..nodes as u64).map(|vertex| (vertex, (vertex + 1) % nodes as u64));
        let graph = Graph::from_edges(nodes, edges, EdgeRule::Undirected).unwrap();
        let spectrum = Eigensolver::new().solve(&Transition::new(&graph), &Watch::silent()).unwrap();
        let window = Window { mu: 0.0, sigma: 0.1, epsilon: 0.01 };
        let mut report = Report::new("many", "");
        for _ in 0..4 {
            report = report.interactive(&spectrum, None, window);
        }
        let page = report.to_html();
        assert_eq!(page.matches("class=\"by-hand\"").count(), 1);
        assert_eq!(page.matches("beyond 2 MB").count(), 3);
        assert!(page.len() < 2_000_000, "{}", page.len());
    }
}
