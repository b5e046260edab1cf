//! Just enough SVG: shapes and text on a white page, written as they come.

use std::fmt::Write;

use crate::colour::{INK, PAPER};

/// Width of a figure in one column (8.5 cm), in units of 1/96 inch.
pub const COLUMN: f64 = 321.0;
/// Width of a figure over both columns.
pub const PAGE: f64 = 660.0;
/// Width at which the report draws for a screen: as wide as its text, with letters of 12 pixels.
pub const SCREEN: f64 = 600.0;
/// Size of ordinary text: 6.8 pt in print.
pub const TEXT: f64 = 9.0;

/// Whether a figure of this width has room for panels side by side.
pub(crate) fn is_wide(width: f64) -> bool {
    width > 1.5 * COLUMN
}

/// About how wide a text is: the letters of DejaVu Sans, the widest of the fonts asked for, take 0.6 of their
/// size.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    0.6 * size * text.chars().count() as f64
}

/// Where a text is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At its left end.
    Start,
    /// In the middle.
    Middle,
    /// At its right end.
    End,
}

/// A picture in the making.
#[derive(Clone, Debug)]
pub struct Svg {
    width: f64,
    body: String,
}

impl Svg {
    /// A white page; its height is known when it is finished.
    pub fn new(width: f64) -> Self {
        Self { width, body: String::new() }
    }

    /// Anything else, as it is.
    pub fn raw(&mut self, markup: &str) {
        self.body.push_str(markup);
        self.body.push('\n');
    }

    /// A straight line; `style` holds further attributes.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let _ = writeln!(
            self.body,
            r#"<line x1="{:.2}" y1="{:.2}" x2="{:.2}" y2="{:.2}" {style}/>"#,
            from.0, from.1, to.0, to.1
        );
    }

    /// A rectangle.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, style: &str) {
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}" {style}/>"#
        );
    }

    /// A circle.
    pub fn circle(&mut self, at: (f64, f64), radius: f64, style: &str) {
        let _ = writeln!(self.body, r#"<circle cx="{:.2}" cy="{:.2}" r="{radius:.2}" {style}/>"#, at.0, at.1);
    }

    /// A line through points, or a filled shape if `closed`.
    pub fn path(&mut self, points: &[(f64, f64)], closed: bool, style: &str) {
        let mut data = String::new();
        let mut place = Place::default();
        for (number, point) in without_level_points(points).iter().enumerate() {
            match number {
                0 => data.push('M'),
                1 => data.push('l'),
                _ => {}
            }
            place.go(&mut data, *point);
        }
        let end = if closed { "Z" } else { "" };
        let _ = writeln!(self.body, r#"<path d="{data}{end}" {style}/>"#);
    }

    /// A triangle that points up.
    pub fn triangle(&mut self, at: (f64, f64), radius: f64, style: &str) {
        let corner = |angle: f64| (at.0 + radius * angle.sin(), at.1 - radius * angle.cos());
        self.path(&[corner(0.0), corner(2.094), corner(4.189)], true, style);
    }

    /// A square that stands on a corner.
    pub fn diamond(&mut self, (x, y): (f64, f64), radius: f64, style: &str) {
        self.path(&[(x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y)], true, style);
    }

    /// A text at its baseline.
    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, size: f64, text: &str) {
        self.styled_text(at, anchor, size, text, "");
    }

    /// A text with further attributes.
    pub fn styled_text(&mut self, at: (f64, f64), anchor: Anchor, size: f64, text: &str, style: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            r#"<text x="{:.2}" y="{:.2}" text-anchor="{anchor}" font-size="{size}" fill="{INK}" {style}>{}</text>"#,
            at.0,
            at.1,
            escape(text)
        );
    }

    /// A text that reads upwards.
    pub fn upward_text(&mut self, at: (f64, f64), size: f64, text: &str) {
        let turn = format!(r#"transform="rotate(-90 {:.2} {:.2})""#, at.0, at.1);
        self.styled_text(at, Anchor::Middle, size, text, &turn);
    }

    /// The whole document, `height` high.
    pub fn finish(self, height: f64) -> String {
        let Self { width, body } = self;
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="'DejaVu Sans', Arial, Helvetica, sans-serif" role="img">
<rect width="100%" height="100%" fill="{PAPER}"/>
{body}</svg>
"#
        )
    }
}

/// Where the pen of a path is, in tenths of a unit. Steps are told from there, as that takes half the
/// letters; what is rounded away does not add up.
#[derive(Debug, Default)]
pub(crate) struct Place {
    x: i64,
    y: i64,
}

impl Place {
    /// Appends the step to a point.
    pub(crate) fn go(&mut self, data: &mut String, to: (f64, f64)) {
        let (x, y) = ((10.0 * to.0).round() as i64, (10.0 * to.1).round() as i64);
        for (number, tenths) in [x - self.x, y - self.y].into_iter().enumerate() {
            // A sign parts a number from the one before.
            let follows = number == 1 || data.ends_with(|letter: char| letter.is_ascii_digit());
            if follows && tenths >= 0 {
                data.push(' ');
            }
            let (sign, size) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
            let _ = match (size / 10, size % 10) {
                (whole, 0) => write!(data, "{sign}{whole}"),
                (0, rest) => write!(data, "{sign}.{rest}"),
                (whole, rest) => write!(data, "{sign}{whole}.{rest}"),
            };
        }
        (self.x, self.y) = (x, y);
    }
}

/// The points of a line without those inside its level stretches.
fn without_level_points(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let height = |point: &(f64, f64)| (10.0 * point.1).round();
    let mut kept: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for point in points {
        if let [.., before, last] = &kept[..] {
            let level = height(before) == height(last) && height(last) == height(point);
            if level && (last.0 > before.0) == (point.0 > last.0) {
                kept.pop();
            }
        }
        kept.push(*point);
    }
    kept
}

/// Text safe inside SVG and HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_path_lead_to_its_points() {
        let mut svg = Svg::new(100.0);
        svg.path(&[(10.04, 20.0), (10.08, 19.5), (9.0, 19.5), (12.25, 30.0)], true, "");
        assert!(svg.finish(100.0).contains(r#"d="M10 20l.1-.5-1.1 0 3.3 10.5Z""#));
        let mut svg = Svg::new(100.0);
        svg.path(&[(0.0, 5.0), (1.0, 5.0), (2.0, 5.01), (3.0, 6.0), (4.0, 6.0), (3.5, 6.0)], false, "");
        assert!(svg.finish(100.0).contains(r#"d="M0 5l2 0 1 1 1 0-.5 0""#), "level stretches have two ends");
        let mut data = String::from("M");
        let mut place = Place::default();
        (0..1000).for_each(|step| place.go(&mut data, (0.04 * f64::from(step), 0.0)));
        assert_eq!((place.x, place.y), (400, 0), "what is rounded away does not add up");
    }
}
