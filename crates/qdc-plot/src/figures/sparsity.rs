//! The pattern of the graph before, and of the kernel after.

use std::fmt::Write;

use qdc_core::Csr;

use crate::panel::Panel;
use crate::svg::{COLUMN, Svg, TEXT};
use crate::{Figure, svg::Anchor};

const CELLS: usize = 90;
const SHADES: [&str; 4] = ["#b9b9b9", "#858585", "#4d4d4d", "#111111"];

/// Two panels; each cell gathers a block of vertex pairs, the darker the more of them hold an entry.
pub fn sparsity(before: &Csr<f64>, after: &Csr<f64>, titles: [&str; 2]) -> Figure {
    let side = (COLUMN - 62.0) / 2.0;
    let mut svg = Svg::new(COLUMN, side + 62.0);
    let mut csv = String::from("matrix,row,column,value\n");
    for (number, (matrix, title)) in [before, after].into_iter().zip(titles).enumerate() {
        let nodes = matrix.rows();
        let cells = nodes.min(CELLS);
        let panel = Panel {
            left: 40.0 + number as f64 * (side + 14.0),
            top: 18.0,
            width: side,
            height: side,
            x: (0.0, nodes as f64),
            y: (nodes as f64, 0.0),
        };
        let mut counts = vec![0usize; cells * cells];
        for (row, column, _) in matrix.iter() {
            counts[row * cells / nodes * cells + column as usize * cells / nodes] += 1;
        }
        let block = (nodes as f64 / cells as f64).powi(2);
        let shade = |count: usize| {
            // Half-decades below a full block, so that single edges of a large graph still show.
            let share = (count as f64 / block).min(1.0);
            (count > 0).then(|| (3.0 + 1.5 * share.log10()).clamp(0.0, 3.0) as usize)
        };
        let size = side / cells as f64;
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
        panel.frame(&mut svg, title, "vertex", if number == 0 { "vertex" } else { "" });
        let count = format!("{} entries, {:.2} %", matrix.entries(), 100.0 * matrix.density());
        svg.text((panel.left + side / 2.0, side + 56.0), Anchor::Middle, TEXT, &count);
        for (row, column, value) in matrix.iter() {
            let _ = writeln!(csv, "{title},{row},{column},{value}");
        }
    }
    Figure { svg: svg.finish(), csv }
}
