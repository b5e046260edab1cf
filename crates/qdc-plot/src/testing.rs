//! What the tests of several figures ask of a drawing.

use crate::svg::text_width;

/// A level text: left, right, baseline, words.
type Placed = (f64, f64, f64, String);

fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let (_, rest) =
        element.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("{element} has no {name}"));
    rest.split_once('"').expect("attributes end").0
}

fn level_texts(svg: &str) -> Vec<Placed> {
    let elements = svg.split("<text ").skip(1).filter(|element| !element.contains("rotate("));
    elements
        .map(|element| {
            let number = |name: &str| attribute(element, name).parse::<f64>().unwrap();
            let words = element.split_once('>').unwrap().1.split_once('<').unwrap().0.to_owned();
            let width = text_width(&words, number("font-size"));
            let left = number("x")
                - match attribute(element, "text-anchor") {
                    "start" => 0.0,
                    "middle" => width / 2.0,
                    _ => width,
                };
            (left, left + width, number("y"), words)
        })
        .collect()
}

/// Fails if a level text leaves the picture or runs into another on its line.
pub(crate) fn every_text_has_room(svg: &str) {
    let (width, height) = (attribute(svg, " width"), attribute(svg, " height"));
    let (width, height): (f64, f64) = (width.parse().unwrap(), height.parse().unwrap());
    let texts = level_texts(svg);
    for (place, (left, right, y, words)) in texts.iter().enumerate() {
        assert!(
            *left >= 0.0 && *right <= width,
            "'{words}' leaves the picture: {left} to {right} of {width}"
        );
        assert!(*y <= height, "'{words}' stands below the picture");
        for (other_left, other_right, other_y, others) in &texts[..place] {
            let apart = (y - other_y).abs() > 7.0 || right <= other_left || other_right <= left;
            assert!(apart, "'{words}' runs into '{others}'");
        }
    }
}
