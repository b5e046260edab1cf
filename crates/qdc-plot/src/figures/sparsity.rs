//! The pattern of the graph before, and of the kernel after.

use std::fmt::Write;

use qdc_core::Csr;

use crate::colour::{INK, SHADES};
use crate::legend::{Mark, legend};
use crate::panel::Panel;
use crate::svg::{Anchor, Svg, TEXT, is_wide};
use crate::{Figure, Reading};

/// Cells along a side: about three units each, whatever the width.
fn cells_along(width: f64) -> usize {
    if is_wide(width) { 72 } else { 45 }
}

/// With more classes than this a pointer reads eighths of the matrix instead of pairs of classes.
const CLASSES: usize = 20;

/// Two panels; each cell gathers a block of vertex pairs, the darker the more of them hold an entry. Each
/// panel has its own scale, from one entry to its fullest cell, and a legend of it.
///
/// With labels the vertices stand class by class, and lines part the classes: entries in the squares along
/// the diagonal join like with like.
pub fn sparsity(
    before: &Csr<f64>,
    after: &Csr<f64>,
    titles: [&str; 2],
    labels: Option<&[u32]>,
    width: f64,
) -> Figure {
    let (margin, gap) = (44.0, 20.0);
    let side = (width - margin - gap - 8.0) / 2.0;
    let mut svg = Svg::new(width);
    let mut csv = String::from("matrix,row,column,value\n");
    let mut readings = Vec::new();
    let mut bottom = 0.0f64;
    let order = Order::new(before.rows(), labels);
    for (number, (matrix, title)) in [before, after].into_iter().zip(titles).enumerate() {
        let nodes = matrix.rows();
        let panel = Panel {
            left: margin + number as f64 * (side + gap),
            top: 18.0,
            width: side,
            height: side,
            x: (0.0, nodes as f64),
            y: (nodes as f64, 0.0),
        };
        let scale = draw_cells(&mut svg, &panel, matrix, &order.place, cells_along(width));
        for &end in &order.ends {
            let (x, y) = panel.at(end as f64, end as f64);
            let style = format!(r#"stroke="{INK}" stroke-width="0.5" stroke-dasharray="2 1.5""#);
            svg.line((panel.left, y), (panel.right(), y), &style);
            svg.line((x, panel.top), (x, panel.bottom()), &style);
        }
        let axis = if labels.is_some() { "vertex, by class" } else { "vertex" };
        panel.x_axis(&mut svg, axis);
        panel.y_axis(&mut svg, if number == 0 { axis } else { "" });
        panel.outline(&mut svg, title);
        let count = format!("{} entries, {:.2} %", matrix.entries(), 100.0 * matrix.density());
        svg.text((panel.left + side / 2.0, panel.bottom() + 40.0), Anchor::Middle, TEXT, &count);
        let top = panel.bottom() + 54.0;
        let (left, right) = (panel.left, panel.right() + 6.0);
        svg.text((left, top), Anchor::Start, TEXT - 0.5, "entries in a cell:");
        bottom = bottom.max(legend(&mut svg, (left, right), top + 3.0, &scale.keys()));
        readings.extend(order.read(&panel, matrix, title));
        for (row, column, value) in matrix.iter() {
            let _ = writeln!(csv, "{title},{row},{column},{value}");
        }
    }
    Figure::new(svg.finish(bottom + 4.0), csv, readings)
}

/// How vertices are ordered.
struct Order {
    /// Where each vertex stands.
    place: Vec<usize>,
    /// Where one class ends and the next begins.
    ends: Vec<usize>,
    /// The classes, in order.
    classes: Vec<u32>,
}

impl Order {
    fn new(nodes: usize, labels: Option<&[u32]>) -> Self {
        let Some(labels) = labels else {
            return Self { place: (0..nodes).collect(), ends: Vec::new(), classes: Vec::new() };
        };
        let mut order: Vec<usize> = (0..nodes).collect();
        order.sort_by_key(|&vertex| labels[vertex]);
        let mut place = vec![0; nodes];
        order.iter().enumerate().for_each(|(at, &vertex)| place[vertex] = at);
        let ends = (1..nodes).filter(|&at| labels[order[at]] != labels[order[at - 1]]).collect();
        let mut classes: Vec<u32> = order.iter().map(|&vertex| labels[vertex]).collect();
        classes.dedup();
        Self { place, ends, classes }
    }

    /// What a pointer reads: how many entries join each pair of classes, or of eighths where there are no
    /// classes.
    fn read(&self, panel: &Panel, matrix: &Csr<f64>, title: &str) -> Vec<Reading> {
        let nodes = matrix.rows();
        let by_class = (1..=CLASSES).contains(&self.classes.len());
        let ends: Vec<usize> = match by_class {
            true => self.ends.iter().copied().chain([nodes]).collect(),
            false => (1..=8.min(nodes)).map(|part| part * nodes / 8.min(nodes)).collect(),
        };
        let begin = |block: usize| if block == 0 { 0 } else { ends[block - 1] };
        let name = |block: usize| match by_class {
            true => format!("class {}", self.classes[block]),
            false => format!("vertices {} to {}", begin(block), ends[block] - 1),
        };
        let block = |vertex: usize| ends.partition_point(|&end| end <= self.place[vertex]);
        let mut counts = vec![0usize; ends.len() * ends.len()];
        for (row, column, _) in matrix.iter() {
            counts[block(row) * ends.len() + block(column as usize)] += 1;
        }
        let mut readings = Vec::new();
        for (at, count) in counts.iter().enumerate() {
            let (row, column) = (at / ends.len(), at % ends.len());
            let pairs = (ends[row] - begin(row)) * (ends[column] - begin(column));
            let share = 100.0 * *count as f64 / pairs as f64;
            let (left, top) = panel.at(begin(column) as f64, begin(row) as f64);
            let (right, bottom) = panel.at(ends[column] as f64, ends[row] as f64);
            let text = format!(
                "{title}\n{} to {}: {count} entries, {share:.1} % of the pairs",
                name(row),
                name(column)
            );
            readings.push(Reading::region([left, top, right - left, bottom - top], text));
        }
        readings
    }
}

/// Shades over the logarithm of the count, up to the fullest cell: single edges of a large graph still show.
struct Scale {
    fullest: usize,
}

impl Scale {
    fn shade(&self, count: usize) -> Option<usize> {
        let share = match self.fullest {
            0 | 1 => 1.0,
            fullest => (count as f64).ln() / (fullest as f64).ln(),
        };
        (count > 0).then(|| ((SHADES.len() as f64 * share) as usize).min(SHADES.len() - 1))
    }

    /// The counts that each shade stands for; a shade that no count has is left out.
    fn keys(&self) -> Vec<(Mark, String)> {
        let mut keys = Vec::new();
        for (shade, colour) in SHADES.iter().enumerate() {
            let mut counts = (1..=self.fullest).filter(|&count| self.shade(count) == Some(shade));
            let Some(first) = counts.next() else { continue };
            let text = match counts.next_back() {
                Some(last) => format!("{first}–{last}"),
                None => first.to_string(),
            };
            keys.push((Mark::Box(format!(r#"fill="{colour}""#)), text));
        }
        keys
    }
}

fn draw_cells(svg: &mut Svg, panel: &Panel, matrix: &Csr<f64>, place: &[usize], most: usize) -> Scale {
    let nodes = matrix.rows();
    let cells = nodes.min(most);
    let mut counts = vec![0usize; cells * cells];
    for (row, column, _) in matrix.iter() {
        counts[place[row] * cells / nodes * cells + place[column as usize] * cells / nodes] += 1;
    }
    let scale = Scale { fullest: counts.iter().copied().max().unwrap_or(0) };
    // One path for each shade, a level stroke for each run of cells; a unit is a cell.
    let mut paths = [const { (String::new(), 0, 0) }; SHADES.len()];
    for row in 0..cells {
        let shades: Vec<Option<usize>> =
            counts[row * cells..(row + 1) * cells].iter().map(|&count| scale.shade(count)).collect();
        let mut column = 0;
        for run in shades.chunk_by(|a, b| a == b) {
            if let Some(shade) = run[0] {
                // Told from where the stroke before ended, which takes fewer letters.
                let (path, x, y) = &mut paths[shade];
                let _ = match row - *y {
                    0 => write!(path, "m{} 0h{}", column - *x, run.len()),
                    _ => write!(path, "M{column} {row}h{}", run.len()),
                };
                (*x, *y) = (column + run.len(), row);
            }
            column += run.len();
        }
    }
    let size = panel.width / cells as f64;
    svg.raw(&format!(
        r#"<g transform="translate({:.2} {:.2}) scale({size:.4})" stroke-width="1.02" fill="none" shape-rendering="crispEdges">"#,
        panel.left,
        panel.top + size / 2.0
    ));
    for ((path, ..), shade) in paths.iter().zip(SHADES).filter(|((path, ..), _)| !path.is_empty()) {
        svg.raw(&format!(r#"<path d="{path}" stroke="{shade}"/>"#));
    }
    svg.raw("</g>");
    scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{COLUMN, SCREEN};

    fn matrix(nodes: usize, joined: impl Fn(u32) -> Vec<u32>) -> Csr<f64> {
        let rows = (0..nodes as u32).map(|row| (joined(row), vec![1.0; joined(row).len()]));
        Csr::from_rows(nodes, rows).unwrap()
    }

    #[test]
    fn vertices_stand_class_by_class() {
        let order = Order::new(5, Some(&[1, 0, 2, 0, 1]));
        assert_eq!(order.place, [2, 0, 4, 1, 3]);
        assert_eq!((order.ends, order.classes), (vec![2, 4], vec![0, 1, 2]));
        assert_eq!(Order::new(3, None).place, [0, 1, 2]);
    }

    #[test]
    fn the_numbers_of_ten_thousand_vertices_neither_meet_nor_leave_the_picture() {
        let matrix = matrix(10_000, |row| vec![row]);
        for width in [COLUMN, SCREEN] {
            let svg = sparsity(&matrix, &matrix, ["before", "after"], None, width).svg;
            assert!(svg.contains(">10k<"));
            crate::testing::every_text_has_room(&svg);
        }
    }

    #[test]
    fn strokes_lie_on_the_cells_that_hold_entries() {
        let rows = [vec![0, 2, 3], vec![], vec![1], vec![3]];
        let joined = matrix(4, |row| rows[row as usize].clone());
        let svg = sparsity(&joined, &joined, ["before", "after"], None, SCREEN).svg;
        assert!(svg.contains(r#"<path d="m0 0h1m1 0h2M1 2h1M3 3h1""#), "{svg}");
    }

    #[test]
    fn a_legend_names_the_counts_of_each_shade() {
        let texts = |fullest: usize| -> Vec<String> {
            Scale { fullest }.keys().into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(0), [""; 0]);
        assert_eq!(texts(1), ["1"]);
        assert_eq!(texts(4), ["1", "2", "3–4"]);
        assert_eq!(texts(100), ["1–3", "4–9", "10–31", "32–100"]);
        let small = matrix(3, |row| vec![(row + 1) % 3]);
        let svg = sparsity(&small, &small, ["before", "after"], None, COLUMN).svg;
        assert_eq!(svg.matches("entries in a cell").count(), 2, "each panel has its scale");
    }

    #[test]
    fn a_pointer_reads_how_classes_are_joined() {
        let rows = [vec![1, 2], vec![0], vec![0], vec![3]];
        let joined = matrix(4, |row| rows[row as usize].clone());
        let readings = sparsity(&joined, &joined, ["before", "after"], Some(&[0, 0, 7, 7]), SCREEN).readings;
        assert_eq!(readings.len(), 2 * 4);
        assert_eq!(readings[0].text, "before\nclass 0 to class 0: 2 entries, 50.0 % of the pairs");
        assert_eq!(readings[5].text, "after\nclass 0 to class 7: 1 entries, 25.0 % of the pairs");
        let readings = sparsity(&joined, &joined, ["before", "after"], None, SCREEN).readings;
        assert!(readings[0].text.contains("vertices 0 to 0"), "{}", readings[0].text);
    }
}
