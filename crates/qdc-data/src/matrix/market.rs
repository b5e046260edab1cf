//! Matrix Market's coordinate format: real, integer or pattern, general or symmetric.
//!
//! Reference: R. Boisvert, R. Pozo, K. Remington, "The Matrix Market exchange formats", 1996.

use std::path::Path;

use qdc_core::Csr;

use super::{from_entries, plausible_size};
use crate::lines::{Lines, parse_real, parse_whole, quoted, write_text};
use crate::{Budget, Error};

const BANNER: &str = "the first line must read '%%MatrixMarket matrix coordinate real general' (or integer, pattern; or symmetric)";

pub(super) fn read(mut lines: Lines<'_>, path: &Path, budget: Budget) -> Result<Csr<f64>, Error> {
    let account = budget.account(path);
    let banner = lines.next()?.unwrap_or_default();
    let banner = String::from_utf8_lossy(banner).to_ascii_lowercase();
    let words: Vec<&str> = banner.split_whitespace().collect();
    let (pattern, symmetric) = match words[..] {
        [
            "%%matrixmarket",
            "matrix",
            "coordinate",
            field @ ("real" | "integer" | "pattern" | "double"),
            symmetry @ ("general" | "symmetric"),
        ] => (field == "pattern", symmetry == "symmetric"),
        ["%%matrixmarket", ..] => {
            return Err(lines.error(format!("'{banner}' is not read here")).remedy(BANNER));
        }
        _ => return Err(lines.error("this is no Matrix Market file").remedy(BANNER)),
    };

    let numbers = |line: &[u8]| -> Option<Vec<u64>> {
        line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).map(parse_whole).collect()
    };
    let size = loop {
        match lines.next()? {
            None => return Err(lines.error("the line with rows, columns and entries is missing")),
            Some(line) if line.is_empty() || line[0] == b'%' => {}
            Some(line) => break numbers(line),
        }
    };
    let Some(&[rows, columns, count]) = size.as_deref() else {
        return Err(lines.error("expected the numbers of rows, columns and entries"));
    };
    if !plausible_size(rows.max(columns), count) {
        return Err(lines.error(format!("{rows} x {columns} is too large for {count} entries")));
    }

    let mut entries: Vec<(u32, u32, f64)> = Vec::new(); // grows with the file, whatever the header promises
    let mut seen = 0;
    while let Some(line) = lines.next()? {
        if line.is_empty() || line[0] == b'%' {
            continue;
        }
        if seen == count {
            return Err(lines.error(format!("more entries than the {count} promised")));
        }
        let (row, column, value) =
            entry(line, pattern, rows, columns).map_err(|problem| lines.error(problem))?;
        if symmetric && column > row {
            return Err(lines.error("an entry above the diagonal; symmetric files hold the lower half"));
        }
        account.push("the entries", &mut entries, (row, column, value))?;
        if symmetric && row != column {
            account.push("the entries", &mut entries, (column, row, value))?;
        }
        seen += 1;
    }
    if seen < count {
        return Err(lines
            .error(format!("the file ends after {seen} of {count} entries"))
            .remedy("the file is cut off; fetch or write it again"));
    }
    from_entries(path, rows as usize, columns as usize, &entries, &account)
}

/// Reads `row column [value]`, counting from 1, into numbers counting from 0.
fn entry(line: &[u8], pattern: bool, rows: u64, columns: u64) -> Result<(u32, u32, f64), String> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let mut index = |what: &str, size: u64| {
        let field = fields.next().unwrap_or_default();
        match parse_whole(field) {
            Some(index) if (1..=size).contains(&index) => Ok((index - 1) as u32),
            _ => Err(format!("{what} {} is outside 1..={size}", quoted(field))),
        }
    };
    let (row, column) = (index("row", rows)?, index("column", columns)?);
    let value = if pattern {
        1.0
    } else {
        let field = fields.next().unwrap_or_default();
        parse_real(field).ok_or_else(|| format!("{} is no number", quoted(field)))?
    };
    if !value.is_finite() {
        return Err(format!("the value {value} is not finite"));
    }
    match fields.next() {
        None => Ok((row, column, value)),
        Some(field) => Err(format!("{} is one number too many", quoted(field))),
    }
}

pub(super) fn write(path: &Path, matrix: &Csr<f64>) -> Result<(), Error> {
    write_text(path, |out| {
        writeln!(out, "%%MatrixMarket matrix coordinate real general")?;
        writeln!(out, "{} {} {}", matrix.rows(), matrix.columns(), matrix.entries())?;
        for (row, column, value) in matrix.iter() {
            writeln!(out, "{} {} {value}", row + 1, u64::from(column) + 1)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Csr<f64>, Error> {
        let path = Path::new("m.mtx");
        read(Lines::new(path, text.as_bytes()), path, Budget::default())
    }

    #[test]
    fn symmetric_and_pattern_files_are_completed() {
        let symmetric =
            parse("%%MatrixMarket matrix coordinate integer symmetric\n% a remark\n\n3 3 2\n2 1 5\n3 3 -1\n");
        assert_eq!(symmetric.unwrap().to_dense(), [0.0, 5.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, -1.0]);
        let pattern = parse("%%MatrixMarket matrix coordinate pattern general\n1 2 1\n1 2\n").unwrap();
        assert_eq!(pattern.to_dense(), [0.0, 1.0]);
    }

    #[test]
    fn errors_name_the_line() {
        const START: &str = "%%MatrixMarket matrix coordinate real general\n";
        for (text, expected) in [
            ("1 2 3\n", "line 1: this is no Matrix Market file"),
            ("%%MatrixMarket matrix array real general\n", "line 1: '%%matrixmarket matrix array"),
            (&format!("{START}2 2 1\n3 1 1.0\n"), "line 3: row '3' is outside 1..=2"),
            (&format!("{START}2 2 1\n1 0 1.0\n"), "line 3: column '0' is outside 1..=2"),
            (&format!("{START}2 2 2\n1 1 1.0\n"), "ends after 1 of 2 entries"),
            (&format!("{START}2 2 1\n1 1 nan\n"), "line 3: the value NaN is not finite"),
            (&format!("{START}2 2 1\n1 1\n"), "line 3: '' is no number"),
            (&format!("{START}4000000000 2 1\n1 1 1\n"), "line 2: 4000000000 x 2 is too large"),
            (&format!("{START}2 2 1\n1 1 1\n1 2 1\n"), "line 4: more entries than the 1 promised"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
