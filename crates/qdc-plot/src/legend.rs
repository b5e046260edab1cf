//! Legends: what each mark of a figure means, in a row that breaks where the figure ends.

use crate::svg::{Anchor, Svg, TEXT, text_width};

/// How a mark looks; each holds the attributes it is drawn with.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    /// A stroke.
    Line(String),
    /// A filled circle.
    Dot(String),
    /// A triangle.
    Triangle(String),
    /// A square on its corner.
    Diamond(String),
    /// A stroke with a triangle on it: the attributes of each.
    MarkedLine(String, String),
    /// A filled square.
    Box(String),
}

/// Size of a legend's letters.
const SIZE: f64 = TEXT - 0.5;
/// Height of one of its rows.
const ROW: f64 = 13.0;

impl Mark {
    fn width(&self) -> f64 {
        match self {
            Self::Line(_) | Self::MarkedLine(..) => 18.0,
            _ => 8.0,
        }
    }

    fn draw(&self, svg: &mut Svg, (x, y): (f64, f64)) {
        let (width, middle) = (self.width(), x + self.width() / 2.0);
        match self {
            Self::Line(style) => svg.path(&[(x, y), (x + width, y)], false, style),
            Self::Dot(style) => svg.circle((middle, y), 2.4, style),
            Self::Triangle(style) => svg.triangle((middle, y), 3.2, style),
            Self::Diamond(style) => svg.diamond((middle, y), 3.4, style),
            Self::MarkedLine(line, mark) => {
                svg.path(&[(x, y), (x + width, y)], false, line);
                svg.triangle((middle, y), 2.4, mark);
            }
            Self::Box(style) => svg.rect(x, y - 4.0, 8.0, 8.0, style),
        }
    }
}

/// Draws the marks and their meanings from `top` on, between `left` and `right`; returns where the next thing
/// may begin.
pub(crate) fn legend(svg: &mut Svg, (left, right): (f64, f64), top: f64, items: &[(Mark, String)]) -> f64 {
    let (mut x, mut y) = (left, top + ROW / 2.0);
    for (mark, text) in items {
        let width = mark.width() + 4.0 + text_width(text, SIZE);
        if x > left && x + width > right {
            (x, y) = (left, y + ROW);
        }
        mark.draw(svg, (x, y));
        svg.text((x + mark.width() + 4.0, y + 3.0), Anchor::Start, SIZE, text);
        x += width + 10.0;
    }
    if items.is_empty() { top } else { y + ROW / 2.0 }
}
