//! The csv beside a figure.

/// A field of a csv file: quoted where it holds a comma, a quote or a line break (RFC 4180).
pub(crate) fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_comma_stays_one_field() {
        assert_eq!(field("cornell"), "cornell");
        assert_eq!(field("csbm:n=60,homophily=0.2"), "\"csbm:n=60,homophily=0.2\"");
        assert_eq!(field("a \"b\""), "\"a \"\"b\"\"\"");
    }
}
