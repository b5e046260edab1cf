//! The header of an `.npy` array: a Python dictionary with the type, the memory order and the shape.

use std::fmt;
use std::io::Read;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int(usize),
    Unsigned(usize),
    Real(usize),
    /// A text of so many bytes.
    Bytes(usize),
    /// A text of so many characters, four bytes each.
    Unicode(usize),
}

impl Kind {
    /// Reads a description such as `<f8` or `|b1`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| Err(format!("its type '{text}' cannot be read: {why}"));
        let rest = text.strip_prefix(['<', '|', '=', '>']).unwrap_or(text);
        let mut letters = rest.chars();
        let letter = letters.next().unwrap_or(' ');
        let Ok(size) = letters.as_str().parse::<usize>() else {
            return refuse("only plain numbers and texts are read, no objects or records");
        };
        match (letter, size) {
            ('b', 1) => Ok(Self::Bool),
            ('i', 1 | 2 | 4 | 8) => Ok(Self::Int(size)),
            ('u', 1 | 2 | 4 | 8) => Ok(Self::Unsigned(size)),
            ('f', 2 | 4 | 8) => Ok(Self::Real(size)),
            ('S', _) => Ok(Self::Bytes(size)),
            ('U', _) => Ok(Self::Unicode(size)),
            ('c', _) => refuse("complex numbers are not used here"),
            _ => refuse("only booleans, integers and reals of 16 to 64 bits are read"),
        }
    }

    /// Bytes of one element.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Int(size) | Self::Unsigned(size) | Self::Real(size) | Self::Bytes(size) => size,
            Self::Unicode(characters) => characters.saturating_mul(4),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => write!(f, "bool"),
            Self::Int(size) => write!(f, "int{}", size * 8),
            Self::Unsigned(size) => write!(f, "uint{}", size * 8),
            Self::Real(size) => write!(f, "float{}", size * 8),
            Self::Bytes(_) | Self::Unicode(_) => write!(f, "text"),
        }
    }
}

/// What an array's header says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// The most significant byte of a number comes first.
    pub(crate) big_endian: bool,
    pub(crate) fortran_order: bool,
    pub(crate) shape: Vec<usize>,
}

impl Header {
    /// Bytes of the data that must follow; `None` where that overflows.
    pub(crate) fn byte_count(&self) -> Option<usize> {
        self.shape.iter().try_fold(self.kind.size(), |size, &axis| size.checked_mul(axis))
    }

    /// Reads the magic, the version and the dictionary.
    pub(crate) fn read(reader: &mut impl Read) -> Result<Self, String> {
        let mut fill = |bytes: &mut [u8]| {
            reader.read_exact(bytes).map_err(|error| format!("its header cannot be read ({error})"))
        };
        let mut start = [0; 8];
        fill(&mut start)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err("it is no NumPy array (the first bytes are not \\x93NUMPY)".into());
        }
        let length = match start[6] {
            1 => {
                let mut bytes = [0; 2];
                fill(&mut bytes)?;
                usize::from(u16::from_le_bytes(bytes))
            }
            2 | 3 => {
                let mut bytes = [0; 4];
                fill(&mut bytes)?;
                u32::from_le_bytes(bytes) as usize
            }
            version => return Err(format!("its format version {version} is not known")),
        };
        if length > 1 << 16 {
            return Err(format!("its header claims {length} bytes"));
        }
        let mut text = vec![0; length];
        fill(&mut text)?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let unreadable = || format!("its header '{}' cannot be read", text.trim_end());
        let after = |key: &str| {
            let quoted = [format!("'{key}'"), format!("\"{key}\"")];
            let at =
                quoted.iter().find_map(|key| Some(text.find(key)? + key.len())).ok_or_else(unreadable)?;
            text[at..].trim_start().strip_prefix(':').map(str::trim_start).ok_or_else(unreadable)
        };
        let descr = after("descr")?;
        if descr.starts_with('[') {
            return Err("it holds records; only plain arrays are read".into());
        }
        let kind = descr
            .strip_prefix(['\'', '"'])
            .and_then(|rest| rest.split(['\'', '"']).next())
            .ok_or_else(unreadable)?;
        let order = after("fortran_order")?;
        let fortran_order = match () {
            () if order.starts_with("True") => true,
            () if order.starts_with("False") => false,
            () => return Err(unreadable()),
        };
        let shape =
            after("shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or_else(unreadable)?.0;
        let shape = shape
            .split(',')
            .map(|axis| axis.trim().trim_end_matches('L'))
            .filter(|axis| !axis.is_empty())
            .map(|axis| axis.parse::<usize>().map_err(|_| unreadable()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { kind: Kind::parse(kind)?, big_endian: kind.starts_with('>'), fortran_order, shape })
    }
}

/// The bytes before the data of a C-ordered array, padded to a multiple of 64 as NumPy does.
pub(crate) fn header_bytes(descr: &str, shape: &[usize]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let shape = axes.join(", ") + comma;
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text.extend(std::iter::repeat_n(' ', length - 1 - text.len()));
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(text.bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back() {
        for shape in [vec![], vec![3], vec![10, 20], vec![1, 0, 5]] {
            let bytes = header_bytes("<f8", &shape);
            assert!(bytes.len().is_multiple_of(64));
            let header = Header::read(&mut &bytes[..]).unwrap();
            assert_eq!(
                header,
                Header { kind: Kind::Real(8), big_endian: false, fortran_order: false, shape }
            );
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let read = |text: &str| Header::parse(text).unwrap_err();
        let with =
            |descr: &str| read(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (3,)}}"));
        assert!(with("|O").contains("no objects"));
        assert!(with("<c16").contains("complex"));
        assert!(with("<f16").contains("16 to 64 bits"));
        assert!(read("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}").contains("cannot be read"));
        assert!(read("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,)}").contains("records"));
        assert!(Header::read(&mut &b"PK\x03\x04....."[..]).unwrap_err().contains("no NumPy array"));
        let huge =
            Header::parse("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 4)}");
        assert_eq!(huge.unwrap().byte_count(), None);
    }
}
