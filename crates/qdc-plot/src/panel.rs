//! A panel: a rectangle with two axes, ticks at round numbers and labels.

use crate::colour::{FAINT, INK};
use crate::svg::{Anchor, Svg, TEXT, text_width};

/// A rectangle of the page, and the ranges it shows.
#[derive(Clone, Copy, Debug)]
pub struct Panel {
    /// Left edge on the page.
    pub left: f64,
    /// Upper edge on the page.
    pub top: f64,
    /// Width on the page.
    pub width: f64,
    /// Height on the page.
    pub height: f64,
    /// What the horizontal axis spans.
    pub x: (f64, f64),
    /// What the vertical axis spans.
    pub y: (f64, f64),
}

/// How far the number of a tick may stand out of its panel, so that neither the next panel nor the edge of
/// the figure meets it.
const OVERHANG: f64 = 6.0;

impl Panel {
    /// Its right edge on the page.
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Its lower edge on the page.
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Where a point lies on the page.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let share = |value: f64, (low, high): (f64, f64)| {
            if high == low { 0.5 } else { (value - low) / (high - low) }
        };
        (self.left + self.width * share(x, self.x), self.top + self.height * (1.0 - share(y, self.y)))
    }

    /// Draws frame, ticks and labels; an empty label leaves out the numbers of that axis too.
    pub fn frame(&self, svg: &mut Svg, title: &str, x_label: &str, y_label: &str) {
        self.grid(svg);
        self.x_axis(svg, x_label);
        self.y_axis(svg, y_label);
        self.outline(svg, title);
    }

    /// Faint lines across, at the ticks of the vertical axis.
    pub fn grid(&self, svg: &mut Svg) {
        for tick in ticks(self.y, 5) {
            let (_, y) = self.at(self.x.0, tick);
            let style = format!(r#"stroke="{FAINT}" stroke-width="0.4""#);
            svg.line((self.left, y), (self.right(), y), &style);
        }
    }

    /// Ticks and label of the vertical axis.
    pub fn y_axis(&self, svg: &mut Svg, label: &str) {
        for tick in ticks(self.y, 5) {
            let (_, y) = self.at(self.x.0, tick);
            svg.line((self.left - 3.0, y), (self.left, y), &format!(r#"stroke="{INK}" stroke-width="0.8""#));
            if !label.is_empty() {
                svg.text((self.left - 5.0, y + 3.0), Anchor::End, TEXT, &round(tick));
            }
        }
        if !label.is_empty() {
            svg.upward_text((self.left - 34.0, self.top + self.height / 2.0), TEXT, label);
        }
    }

    /// Ticks and label of the vertical axis on the right.
    pub fn right_axis(&self, svg: &mut Svg, label: &str) {
        let right = self.right();
        for tick in ticks(self.y, 5) {
            let (_, y) = self.at(self.x.1, tick);
            svg.line((right, y), (right + 3.0, y), &format!(r#"stroke="{INK}" stroke-width="0.8""#));
            svg.text((right + 5.0, y + 3.0), Anchor::Start, TEXT, &round(tick));
        }
        svg.upward_text((right + 34.0, self.top + self.height / 2.0), TEXT, label);
    }

    /// Ticks and label of the horizontal axis. A number at either end stays near its panel.
    pub fn x_axis(&self, svg: &mut Svg, label: &str) {
        let bottom = self.bottom();
        let count = ((self.width / 42.0) as usize).clamp(3, 8);
        for tick in ticks(self.x, count) {
            let (x, _) = self.at(tick, self.y.0);
            svg.line((x, bottom), (x, bottom + 3.0), &format!(r#"stroke="{INK}" stroke-width="0.8""#));
            if !label.is_empty() {
                let text = round(tick);
                let room = text_width(&text, TEXT) / 2.0 - OVERHANG;
                let x = x.max(self.left + room).min(self.right() - room);
                svg.text((x, bottom + 12.5), Anchor::Middle, TEXT, &text);
            }
        }
        if !label.is_empty() {
            svg.text((self.left + self.width / 2.0, bottom + 25.0), Anchor::Middle, TEXT, label);
        }
    }

    /// Outline and title.
    pub fn outline(&self, svg: &mut Svg, title: &str) {
        let style = format!(r#"fill="none" stroke="{INK}" stroke-width="0.8""#);
        svg.rect(self.left, self.top, self.width, self.height, &style);
        if !title.is_empty() {
            let at = (self.left + self.width / 2.0, self.top - 5.0);
            // A long name is written smaller: bold letters take a tenth more.
            let room = (self.width + 2.0 * OVERHANG) / (1.1 * text_width(title, 1.0));
            let size = ((TEXT + 0.5).min(room) * 10.0).floor() / 10.0;
            svg.styled_text(at, Anchor::Middle, size, title, r#"font-weight="bold""#);
        }
    }
}

/// Round numbers inside a range, about `count` of them and at least two.
pub fn ticks((low, high): (f64, f64), count: usize) -> Vec<f64> {
    let (low, high) = if high < low { (high, low) } else { (low, high) };
    let span = high - low;
    if !(span.is_finite() && span > 0.0) {
        return vec![low];
    }
    let rough = span / count as f64;
    let power = 10f64.powf(rough.log10().floor());
    let at = |step: f64| {
        let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
        (first..=last).map(|number| number as f64 * step).collect::<Vec<f64>>()
    };
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let coarse = steps.iter().position(|&step| step >= rough).unwrap_or(3);
    let numbers = at(steps[coarse]);
    // One number alone is no scale.
    if numbers.len() < 2 { at(steps[coarse.saturating_sub(1)]) } else { numbers }
}

/// A number as an axis writes it.
pub fn round(value: f64) -> String {
    if value == 0.0 || value.abs() < 1e-12 {
        return "0".into();
    }
    if (1e4..1e6).contains(&value.abs()) && value % 100.0 == 0.0 {
        return format!("{}k", round(value / 1000.0)); // an axis has room for four letters
    }
    if value.abs() >= 1e5 || value.abs() < 1e-3 {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_title_is_written_smaller_and_stays_in_the_picture() {
        let panel = Panel { left: 46.0, top: 18.0, width: 263.0, height: 50.0, x: (0.0, 1.0), y: (0.0, 1.0) };
        for title in ["cornell", "csbm:n=60,homophily=0.2,seed=1: gaussian, μ = 0.123, σ = 0.3"] {
            let mut svg = Svg::new(321.0);
            panel.frame(&mut svg, title, "x", "y");
            let svg = svg.finish(120.0);
            assert_eq!(svg.contains("font-size=\"9.5\""), title == "cornell");
            crate::testing::every_text_has_room(&svg);
        }
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks((0.0, 1.0), 5), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks((-1.0, 1.0), 4), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(ticks((3.0, 3.0), 4), [3.0]);
        assert_eq!(ticks((4.0, 0.0), 2), [0.0, 2.0, 4.0], "an axis may run downwards");
        assert_eq!(ticks((24.0, 39.5), 3), [25.0, 30.0, 35.0], "one number alone is no scale");
        assert_eq!([0.6000000000000001, 1e-5, 0.0, -0.25].map(round), ["0.6", "1e-5", "0", "−0.25"]);
        assert_eq!([5000.0, 15_000.0, 2e6].map(round), ["5000", "15k", "2e6"]);
    }
}
