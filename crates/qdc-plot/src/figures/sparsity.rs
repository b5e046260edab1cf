//! The pattern of the graph before, and of the kernel after.

use std::fmt::Write;

use qdc_core::Csr;

use crate::colour::{INK, SHADES};
use crate::panel::Panel;
use crate::svg::{COLUMN, Svg, TEXT};
use crate::{Figure, svg::Anchor};

const CELLS: usize = 90;

/// Two panels; each cell gathers a block of vertex pairs, the darker the more of them hold an entry (a scale for each
/// panel).
///
/// With labels the vertices stand class by class, and lines part the classes: entries in the squares along the diagonal
/// join like with like.
pub fn sparsity(before: &Csr<f64>, after: &Csr<f64>, titles: [&str; 2], labels: Option<&[u32]>) -> Figure {
    let side = (COLUMN - 66.0) / 2.0;
    let mut svg = Svg::new(COLUMN, side + 62.0);
    let mut csv = String::from("matrix,row,column,value\n");
    let (place, ends) = places(before.rows(), labels);
    for (number, (matrix, title)) in [before, after].into_iter().zip(titles).enumerate() {
        let nodes = matrix.rows();
        let panel = Panel {
            left: 44.0 + number as f64 * (side + 14.0),
            top: 18.0,
            width: side,
            height: side,
            x: (0.0, nodes as f64),
            y: (nodes as f64, 0.0),
        };
        draw_cells(&mut svg, &panel, matrix, &place);
        for &end in &ends {
            let (x, y) = panel.at(end as f64, end as f64);
            let style = format!(r#"stroke="{INK}" stroke-width="0.5" stroke-dasharray="2 1.5""#);
            svg.line((panel.left, y), (panel.left + side, y), &style);
            svg.line((x, panel.top), (x, panel.top + side), &style);
        }
        let axis = if labels.is_some() { "vertex, by class" } else { "vertex" };
        panel.x_axis(&mut svg, axis);
        panel.y_axis(&mut svg, if number == 0 { axis } else { "" });
        panel.outline(&mut svg, title);
        let count = format!("{} entries, {:.2} %", matrix.entries(), 100.0 * matrix.density());
        svg.text((panel.left + side / 2.0, side + 56.0), Anchor::Middle, TEXT, &count);
        for (row, column, value) in matrix.iter() {
            let _ = writeln!(csv, "{title},{row},{column},{value}");
        }
    }
    Figure { svg: svg.finish(), csv }
}

/// Where each vertex stands, and where one class ends and the next begins.
fn places(nodes: usize, labels: Option<&[u32]>) -> (Vec<usize>, Vec<usize>) {
    let Some(labels) = labels else { return ((0..nodes).collect(), Vec::new()) };
    let mut order: Vec<usize> = (0..nodes).collect();
    order.sort_by_key(|&vertex| labels[vertex]);
    let mut place = vec![0; nodes];
    order.iter().enumerate().for_each(|(at, &vertex)| place[vertex] = at);
    let ends = (1..nodes).filter(|&at| labels[order[at]] != labels[order[at - 1]]).collect();
    (place, ends)
}

fn draw_cells(svg: &mut Svg, panel: &Panel, matrix: &Csr<f64>, place: &[usize]) {
    let nodes = matrix.rows();
    let cells = nodes.min(CELLS);
    let mut counts = vec![0usize; cells * cells];
    for (row, column, _) in matrix.iter() {
        counts[place[row] * cells / nodes * cells + place[column as usize] * cells / nodes] += 1;
    }
    // Four shades over the logarithm of the count, up to the fullest cell: single edges of a large graph still show.
    let fullest = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let shade = |count: usize| {
        let share = if fullest > 1.0 { (count as f64).ln() / fullest.ln() } else { 1.0 };
        (count > 0).then(|| ((SHADES.len() as f64 * share) as usize).min(SHADES.len() - 1))
    };
    let size = panel.width / cells as f64;
    svg.raw(r#"<g shape-rendering="crispEdges">"#); // no hairlines between cells
    for row in 0..cells {
        let shades: Vec<Option<usize>> =
            counts[row * cells..(row + 1) * cells].iter().map(|&c| shade(c)).collect();
        let mut column = 0;
        for run in shades.chunk_by(|a, b| a == b) {
            if let Some(shade) = run[0] {
                let (x, y) = (panel.left + size * column as f64, panel.top + size * row as f64);
                let style = format!(r#"fill="{}""#, SHADES[shade]);
                svg.rect(x, y, size * run.len() as f64, size, &style);
            }
            column += run.len();
        }
    }
    svg.raw("</g>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_stand_class_by_class() {
        let (place, ends) = places(5, Some(&[1, 0, 2, 0, 1]));
        assert_eq!(place, [2, 0, 4, 1, 3]);
        assert_eq!(ends, [2, 4]);
        assert_eq!(places(3, None), (vec![0, 1, 2], vec![]));
    }
}
