//! Numbers to pictures: figures as SVG (and PNG), each with its numbers as csv, and the report as one HTML file.
//!
//! A figure is a function from numbers to a [`Figure`]. Drawing is a small module of our own ([`svg`], [`panel`]):
//! the plotting crate we tried first places neither ticks nor legends to the tenth of a millimetre that a column of
//! 8.5 cm needs, and has no panels that share a scale.

pub mod animation;
mod colour;
pub mod figures;
pub mod panel;
#[cfg(feature = "png")]
mod png;
pub mod report;
pub mod svg;

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
}

impl Figure {
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
