//! Numbers to pictures: figures as SVG (and PNG), each with its numbers as csv, and the report as one HTML
//! file.
//!
//! A figure is a function from numbers and a width to a [`Figure`]. Drawing is a small module of our own
//! ([`svg`], [`panel`]): the plotting crate we tried first places neither ticks nor legends to the tenth of a
//! millimetre that a column of 8.5 cm needs, and has no panels that share a scale.

pub mod animation;
mod colour;
pub mod figures;
mod legend;
mod numbers;
pub mod panel;
#[cfg(feature = "png")]
mod png;
mod reading;
pub mod report;
pub mod svg;
#[cfg(test)]
mod testing;

pub use reading::Reading;
pub use report::Report;

/// What can go wrong when drawing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A figure has nothing to show.
    #[error("nothing to draw: {what}")]
    Empty {
        /// What is missing.
        what: String,
    },
    /// The drawing could not be turned into pixels.
    #[error("cannot make a PNG: {problem}")]
    Png {
        /// Why.
        problem: String,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Empty { .. } => None,
            Self::Png { .. } => {
                Some("write an .svg instead; every browser and LaTeX's svg package read it".into())
            }
        }
    }
}

/// A finished picture, and the numbers behind it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The picture: a whole SVG document.
    pub svg: String,
    /// The numbers, with a line of headings.
    pub csv: String,
    /// The values a page shows where somebody points; the same, in the same order, at every width.
    pub readings: Vec<Reading>,
    /// Names of layers of which a page shows one at a time; none in most figures.
    pub layers: Vec<String>,
}

impl Figure {
    pub(crate) fn new(svg: String, csv: String, readings: Vec<Reading>) -> Self {
        Self { svg, csv, readings, layers: Vec::new() }
    }

    /// The picture as PNG, 300 dots per inch for a figure of its printed width.
    #[cfg(feature = "png")]
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        png::render(&self.svg)
    }

    /// The picture as PNG; this build cannot.
    #[cfg(not(feature = "png"))]
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        Err(Error::Png { problem: "this build has no PNG support (cargo feature png)".into() })
    }
}
