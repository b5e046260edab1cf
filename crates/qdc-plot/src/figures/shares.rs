//! How much each channel of a bank counts, a panel for each dataset.

use std::fmt::Write;

use crate::colour::{INK, SERIES};
use crate::numbers::field;
use crate::panel::{Panel, round};
use crate::svg::{Anchor, Svg, TEXT, is_wide, text_width};
use crate::{Error, Figure, Reading};

/// The weights of the channels of one network.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ChannelShares {
    /// The dataset.
    pub dataset: String,
    /// Names of the channels and their weights, in order.
    pub shares: Vec<(String, f64)>,
}

const ROW: f64 = 14.0;

/// Bars from 0, one for each channel; dashes mark the mean, which every channel would have if all counted the
/// same.
pub fn shares(networks: &[ChannelShares], width: f64) -> Result<Figure, Error> {
    if networks.iter().all(|network| network.shares.is_empty()) {
        return Err(Error::Empty { what: "no network has channels".into() });
    }
    let abreast = networks.len().min(1 + usize::from(is_wide(width)));
    let cell = width / abreast as f64;
    let names = networks.iter().flat_map(|network| &network.shares);
    let left = names.map(|(name, _)| text_width(name, TEXT)).fold(0.0, f64::max).min(0.5 * cell) + 10.0;
    let mut svg = Svg::new(width);
    let mut csv = String::from("dataset,channel,share\n");
    let mut readings = Vec::new();
    let (mut top, mut bottom) = (20.0, 0.0f64);
    for (number, ChannelShares { dataset, shares }) in networks.iter().enumerate() {
        if number % abreast == 0 && number > 0 {
            top = bottom + 52.0;
        }
        let largest = shares.iter().map(|(_, share)| *share).fold(f64::MIN_POSITIVE, f64::max);
        let panel = Panel {
            left: left + (number % abreast) as f64 * cell,
            top,
            width: cell - left - 14.0,
            height: ROW * shares.len() as f64,
            x: (0.0, 1.06 * largest),
            y: (shares.len() as f64, 0.0),
        };
        for (row, (name, share)) in shares.iter().enumerate() {
            let (start, y) = panel.at(0.0, row as f64);
            let length = panel.at(share.max(0.0), 0.0).0 - start;
            svg.rect(start, y + 2.5, length, ROW - 5.0, &format!(r#"fill="{}""#, SERIES[0]));
            svg.text((panel.left - 5.0, y + 10.0), Anchor::End, TEXT, name);
            let text = format!("{name} on {dataset}\nshare {}", round(*share));
            readings.push(Reading::region([panel.left, y, panel.width, ROW], text));
            let _ = writeln!(csv, "{},{},{share}", field(dataset), field(name));
        }
        let mean = shares.iter().map(|(_, share)| share).sum::<f64>() / shares.len().max(1) as f64;
        let (x, _) = panel.at(mean, 0.0);
        let dashes = format!(r#"stroke="{INK}" stroke-width="0.9" stroke-dasharray="5 2.5""#);
        svg.line((x, panel.top), (x, panel.bottom()), &dashes);
        panel.x_axis(&mut svg, "share (dashes: the mean)");
        panel.outline(&mut svg, dataset);
        bottom = bottom.max(panel.bottom());
    }
    Ok(Figure::new(svg.finish(bottom + 34.0), csv, readings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{COLUMN, SCREEN};

    #[test]
    fn every_channel_has_a_bar_a_reading_and_a_line_of_the_csv() {
        let network = |dataset: &str| ChannelShares {
            dataset: dataset.into(),
            shares: vec![("X".into(), 0.5), ("window at 1, σ 1/2".into(), 1.5)],
        };
        for width in [COLUMN, SCREEN] {
            let figure = shares(&[network("cornell"), network("texas")], width).unwrap();
            assert_eq!(figure.readings.len(), 4);
            assert_eq!(figure.readings[3].text, "window at 1, σ 1/2 on texas\nshare 1.5");
            assert!(figure.csv.contains("\ntexas,\"window at 1, σ 1/2\",1.5\n"));
            let bars = figure.svg.matches(&format!(r#"fill="{}""#, SERIES[0])).count();
            assert_eq!(bars, 4);
            crate::testing::every_text_has_room(&figure.svg);
        }
        assert!(matches!(shares(&[], SCREEN), Err(Error::Empty { .. })));
    }
}
