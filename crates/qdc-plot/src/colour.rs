//! Colours that survive a black-and-white printer: one map that only gets lighter, and fills that differ in
//! shade.

/// Plasma (Smith and van der Walt, CC0) at steps of one eighth, from dark to light.
const PLASMA: [[u8; 3]; 9] = [
    [13, 8, 135],
    [76, 2, 161],
    [126, 3, 168],
    [169, 35, 149],
    [204, 71, 120],
    [230, 108, 92],
    [248, 149, 64],
    [253, 197, 39],
    [240, 249, 33],
];

/// The plasma colour of a number in [0, 1]; numbers outside are clipped.
pub(crate) fn plasma(value: f64) -> String {
    let place = value.clamp(0.0, 1.0) * (PLASMA.len() - 1) as f64;
    let low = (place as usize).min(PLASMA.len() - 2);
    let share = place - low as f64;
    let mix = |channel: usize| {
        let (a, b) = (f64::from(PLASMA[low][channel]), f64::from(PLASMA[low + 1][channel]));
        (a + share * (b - a)).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

/// Fills for up to six series, dark to light so that they differ in grey too.
pub(crate) const SERIES: [&str; 6] = ["#1f3a6e", "#d98c00", "#2f9e77", "#b64a6b", "#7fb3d9", "#8a8a8a"];

/// Ink of axes and text.
pub(crate) const INK: &str = "#222222";
/// Ink of things in the background.
pub(crate) const FAINT: &str = "#b5b5b5";
/// The page.
pub(crate) const PAPER: &str = "#ffffff";
/// How full a cell is, from hardly to fully.
pub(crate) const SHADES: [&str; 4] = ["#b9b9b9", "#858585", "#4d4d4d", "#111111"];

/// A drawing whose colours follow the page it stands in: each constant becomes a variable of the style sheet.
/// The map of values keeps its colours, whatever the page.
pub(crate) fn themed(svg: &str) -> String {
    let series = SERIES.iter().enumerate().map(|(number, colour)| (*colour, format!("--series-{number}")));
    let shades = SHADES.iter().enumerate().map(|(number, colour)| (*colour, format!("--shade-{number}")));
    let rest = [(INK, "--ink"), (FAINT, "--faint"), (PAPER, "--paper")];
    let rest = rest.into_iter().map(|(colour, name)| (colour, name.to_owned()));
    series.chain(shades).chain(rest).fold(svg.to_owned(), |svg, (colour, name)| {
        svg.replace(&format!("\"{colour}\""), &format!("\"var({name})\""))
    })
}
