//! SVG to PNG. Text needs a font of the system; where there is none the figure says so instead of losing its
//! words.

use resvg::{tiny_skia, usvg};

use crate::Error;

/// Pixels for each unit of the drawing (1/96 inch): 300 dots per inch.
const SCALE: f32 = 300.0 / 96.0;

pub(crate) fn render(svg: &str) -> Result<Vec<u8>, Error> {
    let wrong = |problem: String| Error::Png { problem };
    let mut options = usvg::Options::default();
    options.fontdb_mut().load_system_fonts();
    if options.fontdb.is_empty() {
        return Err(wrong("there is no font on this system to write the labels with".into()));
    }
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| wrong(error.to_string()))?;
    let size = tree.size().scale_by(SCALE).ok_or_else(|| wrong("the figure has no size".into()))?;
    let mut pixels = tiny_skia::Pixmap::new(size.width().ceil() as u32, size.height().ceil() as u32)
        .ok_or_else(|| wrong("the figure is too large".into()))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| wrong(error.to_string()))
}
