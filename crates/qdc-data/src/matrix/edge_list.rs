//! Edge lists: one edge in a line, two vertices and perhaps a weight, separated by commas, tabs or blanks.
//!
//! A first line of names, and lines beginning with `#` or `%`, are passed over; `# nodes: 100` states the
//! number of vertices, which otherwise is the largest named plus one.

use std::path::Path;

use qdc_core::{Csr, EdgeRule, Graph};

use super::{VERTICES_PER_ENTRY, from_entries, plausible_size, to_graph};
use crate::budget::Account;
use crate::lines::{Lines, parse_real, parse_whole, quoted, write_text};
use crate::{Budget, EdgeReading, Error};

/// The edges of a file, in its order.
#[derive(Debug)]
pub struct EdgeList {
    /// The file, for errors.
    path: std::path::PathBuf,
    /// Number of vertices.
    nodes: usize,
    /// From, to, weight.
    edges: Vec<(u32, u32, f64)>,
    /// The memory it holds.
    account: Account,
}

impl EdgeList {
    /// Reads an edge list, line by line.
    pub fn read(path: &Path, budget: Budget) -> Result<Self, Error> {
        Self::from_lines(Lines::open(path)?, path, 0.0, budget)
    }

    /// Weights below `least` are refused.
    pub(super) fn from_lines(
        mut lines: Lines<'_>,
        path: &Path,
        least: f64,
        budget: Budget,
    ) -> Result<Self, Error> {
        let account = budget.account(path);
        let mut edges = Vec::new();
        let mut shape: Option<Shape> = None;
        let mut stated: Option<u64> = None;
        let (mut largest, mut largest_at) = (0, 0);
        let mut first = true;
        while let Some(line) = lines.next()? {
            if line.is_empty() {
                continue;
            }
            if matches!(line[0], b'#' | b'%') {
                stated = stated_nodes(line).or(stated);
                continue;
            }
            if std::mem::take(&mut first) && is_header(line) {
                continue;
            }
            let shape = *shape.get_or_insert_with(|| Shape::of(line));
            let (from, to, weight) = shape.edge(line, least).map_err(|(problem, remedy)| {
                let error = lines.error(problem);
                if remedy.is_empty() { error } else { error.remedy(remedy) }
            })?;
            if from.max(to) >= largest {
                (largest, largest_at) = (from.max(to), lines.number());
            }
            account.push("the list of edges", &mut edges, (from, to, weight))?;
        }
        let named = if edges.is_empty() { 0 } else { u64::from(largest) + 1 };
        let nodes = stated.unwrap_or(named);
        let place = format!("line {largest_at}");
        if nodes < named {
            let problem = format!("vertex {largest} is outside 0..{nodes}, the number of vertices stated");
            return Err(Error::malformed(path, place, problem).remedy("vertices count from 0"));
        }
        if nodes == 0 {
            let source = qdc_core::Error::EmptyGraph;
            return Err(Error::Invalid { path: path.into(), source });
        }
        if !plausible_size(nodes, edges.len() as u64) {
            let problem = format!(
                "vertex {} of a list of {} edges: more than {VERTICES_PER_ENTRY} vertices for each edge",
                nodes - 1,
                edges.len()
            );
            return Err(Error::malformed(path, place, problem)
                .remedy("number the vertices from 0 without large gaps"));
        }
        Ok(Self { path: path.into(), nodes: nodes as usize, edges, account })
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Every line as (from, to, weight).
    pub fn edges(&self) -> &[(u32, u32, f64)] {
        &self.edges
    }

    /// The graph: lines are undirected pairs, or arcs, as `reading` says.
    pub fn into_graph(self, reading: EdgeReading) -> Result<Graph, Error> {
        let rule = match reading {
            EdgeReading { symmetrize: Some(rule), .. } => EdgeRule::Directed(rule),
            EdgeReading { directed: false, .. } => EdgeRule::Undirected,
            EdgeReading { directed: true, symmetrize: None } => {
                self.account.charge_graph(self.nodes, self.edges.len())?;
                let path = self.path.clone();
                return to_graph(&path, &self.into_matrix()?, reading);
            }
        };
        self.account.charge_graph(self.nodes, self.edges.len())?;
        let edges = self.edges.iter().map(|&(from, to, weight)| (u64::from(from), u64::from(to), weight));
        Graph::from_weighted_edges(self.nodes, edges, rule)
            .map_err(|source| Error::Invalid { path: self.path.clone(), source })
    }

    /// The square matrix with an entry for each line.
    pub fn into_matrix(self) -> Result<Csr<f64>, Error> {
        from_entries(&self.path, self.nodes, self.nodes, &self.edges, &self.account)
    }
}

/// What separates the fields, and how many there are: fixed by the first edge.
#[derive(Clone, Copy)]
struct Shape {
    separator: Option<u8>,
    fields: usize,
}

impl Shape {
    fn of(line: &[u8]) -> Self {
        let separator = [b',', b';', b'\t'].into_iter().find(|separator| line.contains(separator));
        let mut shape = Self { separator, fields: 0 };
        shape.fields = shape.split(line).count();
        shape
    }

    fn split<'l>(&self, line: &'l [u8]) -> impl Iterator<Item = &'l [u8]> {
        let separator = self.separator;
        line.split(move |&byte| {
            separator.map_or(byte == b' ' || byte == b'\t', |separator| byte == separator)
        })
        .filter(move |field| separator.is_some() || !field.is_empty())
        .map(|field| unquoted(field.trim_ascii()))
    }

    /// One edge, or what is wrong with it and what to do.
    fn edge(&self, line: &[u8], least: f64) -> Result<(u32, u32, f64), (String, &'static str)> {
        let mut fields = self.split(line);
        let (from, to) = (vertex(fields.next())?, vertex(fields.next())?);
        let weight = match fields.next() {
            None => 1.0,
            Some(field) => weight(field, least)?,
        };
        let found = self.split(line).count();
        if found != self.fields || found > 3 {
            let expected = self.fields.clamp(2, 3);
            return Err((
                format!("{found} fields instead of {expected}"),
                "an edge is: from, to, and perhaps a weight",
            ));
        }
        Ok((from, to, weight))
    }
}

fn vertex(field: Option<&[u8]>) -> Result<u32, (String, &'static str)> {
    let Some(field) = field else {
        return Err(("a vertex is missing".into(), "an edge is: from, to, and perhaps a weight"));
    };
    match parse_whole(field) {
        Some(vertex) if vertex < u64::from(u32::MAX) => Ok(vertex as u32),
        Some(vertex) => Err((
            format!("vertex {vertex} is beyond 32 bits"),
            "number the vertices from 0 without large gaps",
        )),
        None if field.first() == Some(&b'-') && parse_whole(&field[1..]).is_some() => {
            Err((format!("vertex {} is negative", String::from_utf8_lossy(field)), "vertices count from 0"))
        }
        None => Err((format!("{} is no vertex number", quoted(field)), "vertices are whole numbers from 0")),
    }
}

fn weight(field: &[u8], least: f64) -> Result<f64, (String, &'static str)> {
    match parse_real(field) {
        Some(weight) if weight.is_finite() && weight >= least => Ok(weight),
        Some(weight) => {
            Err((format!("the weight {weight:?} is not allowed"), "weights are finite and not negative"))
        }
        None => Err((format!("{} is no weight", quoted(field)), "weights are finite numbers, not negative")),
    }
}

/// A field without the quotes around it; quoted or not, `"3"` is the vertex 3.
fn unquoted(field: &[u8]) -> &[u8] {
    match field {
        [b'"', inside @ .., b'"'] | [b'\'', inside @ .., b'\''] => inside.trim_ascii(),
        _ => field,
    }
}

/// Whether a first line names its columns: its first field is a word.
fn is_header(line: &[u8]) -> bool {
    let field = Shape::of(line).split(line).next().unwrap_or_default();
    field.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
}

/// The number in a remark such as `# nodes: 100`.
fn stated_nodes(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?.trim_start_matches(['#', '%']).trim().to_ascii_lowercase();
    parse_whole(text.strip_prefix("nodes")?.trim_start_matches([':', '=', ' ']).trim().as_bytes())
}

pub(super) fn write(path: &Path, matrix: &Csr<f64>, separator: char) -> Result<(), Error> {
    write_text(path, |out| {
        writeln!(out, "row{separator}column{separator}value")?;
        for (row, column, value) in matrix.iter() {
            writeln!(out, "{row}{separator}{column}{separator}{value:?}")?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<EdgeList, Error> {
        let path = Path::new("edges.csv");
        EdgeList::from_lines(Lines::new(path, text.as_bytes()), path, 0.0, Budget::default())
    }

    #[test]
    fn separators_headers_remarks_and_weights_are_understood() {
        for text in [
            "0,1\n1,2\n",
            "# a remark\nfrom;to\n0;1\n\n1;2",
            "0\t1\r\n1\t2\r\n",
            "0  1\n1 2\n",
            "\"a\",\"b\"\n0, 1\n1 ,2",
            "\"0\",\"1\"\n\"1\",\"2\"\n",
            "\u{feff}0,1\n1,2\n",
            "\u{feff}\"from\",\"to\"\n0,1\n1,2\n",
        ] {
            let list = parse(text).unwrap();
            assert_eq!((list.nodes(), list.edges()), (3, &[(0, 1, 1.0), (1, 2, 1.0)][..]), "{text:?}");
        }
        assert_eq!(parse("source,target,weight\n0,1,2.5\n").unwrap().edges(), [(0, 1, 2.5)]);
        assert_eq!(parse("# Nodes: 10\n0,1\n").unwrap().nodes(), 10);
    }

    #[test]
    fn errors_name_line_and_remedy() {
        for (text, expected) in [
            ("0,1\n1,-2\n", "edges.csv, line 2: vertex -2 is negative"),
            ("0,1\n1,x\n", "line 2: 'x' is no vertex number"),
            ("0,1\n1.5,2\n", "line 2: '1.5' is no vertex number"),
            ("0,1,1\n1,2,nan\n", "line 2: the weight NaN is not allowed"),
            ("0,1,1\n1,2,-3\n", "line 2: the weight -3.0 is not allowed"),
            ("0,1\n1,2,3\n", "line 2: 3 fields instead of 2"),
            ("0,1\n1\n", "line 2: a vertex is missing"),
            ("0,1\n1,,2\n", "line 2: '' is no vertex number"),
            ("# nodes: 2\n0,1\n1,2\n", "line 3: vertex 2 is outside 0..2"),
            ("0,4000000000\n", "line 1: vertex 4000000000 of a list of 1 edges"),
            ("0,99999999999\n", "line 1: vertex 99999999999 is beyond 32 bits"),
            ("", "edges.csv: the graph has no vertices"),
            ("from,to\n", "edges.csv: the graph has no vertices"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains(expected), "{text:?}: {error}");
            assert!(error.hint().is_some() || error.core().is_some(), "{error}");
        }
    }

    #[test]
    fn arcs_need_a_rule() {
        let reading = EdgeReading { directed: true, symmetrize: None };
        let error = parse("0,1\n1,2\n").unwrap().into_graph(reading).unwrap_err();
        assert_eq!(error.core().unwrap().remedy(), Some(qdc_core::Remedy::Symmetrize), "{error}");
        assert_eq!(parse("0,1\n1,0\n").unwrap().into_graph(reading).unwrap().edges(), 1);
        assert_eq!(parse("0,1\n1,2\n").unwrap().into_graph(EdgeReading::default()).unwrap().edges(), 2);
    }
}
