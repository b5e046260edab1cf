//! Readings: the values of a figure, each with its place, for a page to show where somebody points.

/// A place of a picture and its words. A point has no width and no height.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Left, top, width and height of the place, in the units of the picture.
    pub place: [f64; 4],
    /// What is there; lines end in a newline.
    pub text: String,
    /// The layer it belongs to, in a figure that has several.
    pub layer: Option<usize>,
}

impl Reading {
    /// The reading of a point.
    pub fn point((x, y): (f64, f64), text: String) -> Self {
        Self::region([x, y, 0.0, 0.0], text)
    }

    /// The reading of a rectangle: left, top, width, height.
    pub fn region(place: [f64; 4], text: String) -> Self {
        Self { place, text, layer: None }
    }

    /// The same, in a layer.
    pub fn in_layer(self, layer: usize) -> Self {
        Self { layer: Some(layer), ..self }
    }
}
