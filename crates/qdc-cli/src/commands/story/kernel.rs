//! A kernel's own numbers, in words.

use qdc_core::homophily::{Homophily, homophily_of};
use qdc_core::kernel::KernelReport;
use qdc_plot::Report;
use qdc_plot::panel::round;
use qdc_plot::report::{NEARLY_IDENTITY, Window};

use super::Subject;
use crate::failure::Failure;

/// The title of the notice; the sliders of the page say the same.
pub(super) const IDENTITY: &str = "Nearly the identity: this network is an MLP.";

/// What the kernel keeps, how much of it joins vertices, whether like vertices, and how exact it is.
pub(super) fn tell_kernel(report: Report, subject: &Subject<'_>) -> Result<Report, Failure> {
    let Subject { source, window, kernel, .. } = subject;
    let mut paragraphs = vec![kept(*window, &kernel.report)];
    if let Some(share) = kernel.report.diagonal_share {
        paragraphs.push(format!(
            "Its diagonal carries {} of its weight: so much of what a network receives at a vertex comes from the vertex itself.",
            percent(share)
        ));
    }
    if let Some(labels) = source.labels() {
        let before = qdc_core::homophily(source.graph(), labels)?;
        paragraphs.push(homophily(before, homophily_of(&kernel.matrix, labels)?));
    }
    paragraphs.push(accuracy(&kernel.report));
    let report = report.text("The kernel in words", paragraphs);
    Ok(match kernel.report.diagonal_share {
        None => report.notice(
            "The kernel is empty.",
            "No entry reaches the threshold: a network on it sees nothing. Lower epsilon, or widen the window.",
        ),
        Some(share) if share > NEARLY_IDENTITY => report.notice(
            IDENTITY,
            &format!(
                "{} of the kernel's weight joins different vertices, so that a network on it sees each vertex's own \
                 features and hardly anything else. What it gains over the plain graph, it gains by ignoring the graph.",
                if share < 1.0 { format!("Only {}", percent(1.0 - share)) } else { "None".to_owned() }
            ),
        ),
        Some(_) => report,
    })
}

fn kept(window: Window, report: &KernelReport) -> String {
    let Window { mu, sigma, epsilon } = window;
    let mut text = format!(
        "The Gaussian filter with μ = {} and σ = {}, over {} eigenpairs and with entries of at least {} kept, leaves {} entries: \
         {:.1} for each vertex, {} of all pairs.",
        round(mu),
        round(sigma),
        report.pairs,
        scientific(epsilon),
        report.entries,
        report.entries_per_row,
        percent(report.density)
    );
    match report.empty_rows {
        0 => {}
        1 => text += " One vertex keeps nothing.",
        rows => text += &format!(" {rows} vertices keep nothing."),
    }
    text
}

fn homophily(before: Homophily, after: Homophily) -> String {
    let mut text = format!(
        "Homophily, the mean share of a vertex's neighbours that have its class, is {:.3} in the graph and {:.3} in the kernel.",
        before.node, after.node
    );
    match after.isolated {
        0 => {}
        1 => text += " One vertex has no neighbour in the kernel and counts 0.",
        many => {
            text += &format!(" {many} vertices have no neighbour in the kernel and count 0");
            text += &match after.node_with_neighbours {
                0.0 => ".".to_owned(),
                others => format!("; among the others it is {others:.3}."),
            };
        }
    }
    text
}

/// Two accounts of error, told apart: what is proved and what is estimated.
fn accuracy(report: &KernelReport) -> String {
    let degree = report.degree.map_or(String::new(), |degree| format!(", of degree {degree}"));
    let within = match (report.error_bound, report.error_estimate) {
        (Some(bound), _) => format!("proved to lie within {} of the exact one", scientific(bound)),
        (None, Some(estimate)) => {
            let how = report.error_estimate_how.as_ref().map_or(String::new(), |how| format!(" ({how})"));
            format!(
                "estimated to lie within about {} of the exact one{how}; nothing is proved",
                scientific(estimate)
            )
        }
        (None, None) => "off by an amount that is not known".to_owned(),
    };
    format!(
        "It was computed by the route {}{degree}. Before small entries are dropped, each is {within}.",
        report.solver
    )
}

/// A share in percent, with a digit that is not 0 where it is small.
fn percent(share: f64) -> String {
    match 100.0 * share {
        value if value == 0.0 || value >= 1.0 => format!("{value:.1} %"),
        value if value >= 0.01 => format!("{value:.2} %"),
        value => format!("{} %", scientific(value)),
    }
}

/// A number as a text writes it: 0.002, 7·10⁻¹⁴.
fn scientific(value: f64) -> String {
    if value == 0.0 || (1e-3..1e4).contains(&value.abs()) {
        return round(value);
    }
    let text = format!("{value:.1e}");
    let (digits, exponent) = text.split_once('e').expect("this format has an exponent");
    let raised = exponent.chars().map(|letter| match letter {
        '-' => '⁻',
        digit => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit.to_digit(10).unwrap_or(0) as usize],
    });
    format!("{}·10{}", digits.trim_end_matches(".0"), raised.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_written_as_a_text_writes_them() {
        assert_eq!(
            [0.0, 0.25, 7e-14, 2.03e-7, 1.5e12].map(scientific),
            ["0", "0.25", "7·10⁻¹⁴", "2·10⁻⁷", "1.5·10¹²"]
        );
        assert_eq!([0.571, 0.0004, 1e-6, 0.0].map(percent), ["57.1 %", "0.04 %", "1·10⁻⁴ %", "0.0 %"]);
    }

    #[test]
    fn vertices_without_neighbours_are_told() {
        let found = |isolated: usize| Homophily { node: 0.2, node_with_neighbours: 0.6, edge: 0.5, isolated };
        let text = homophily(found(0), found(2));
        assert!(
            text.contains("0.200 in the graph") && text.contains("2 vertices have no neighbour"),
            "{text}"
        );
        assert!(text.ends_with("among the others it is 0.600."), "{text}");
        assert!(!homophily(found(2), found(0)).contains("neighbour in the kernel"));
    }
}
