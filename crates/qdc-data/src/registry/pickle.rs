//! Python pickles, as far as Planetoid's files need them: arrays of NumPy, matrices of SciPy, dictionaries of lists.
//!
//! A pickle is a program. This reader runs none of it: it knows the opcodes that build plain data and six names, for
//! which it makes values of its own; anything else is an error. Every object sits in one arena and refers to others by
//! number, so reading needs no recursion and no more memory than a multiple of the file.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use qdc_core::Csr;

use crate::Error;
use crate::npz::{Element, Kind, decode, to_c_order};

type Id = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    DefaultDict,
    List,
    Reconstruct,
    Array,
    Type,
    Matrix,
}

#[derive(Clone, Debug)]
enum Object {
    None,
    Bool(bool),
    Int(i64),
    Text(Range<usize>),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Name(Name),
    /// An element type: its code, such as `i4`, and its byte order.
    Type(String),
    /// An array: shape, type, whether in Fortran's order, data.
    Array(Option<(Vec<usize>, Id, bool, Range<usize>)>),
    /// A sparse matrix and the dictionary of its parts.
    Matrix(Option<Id>),
}

/// A pickle that has been read.
pub(super) struct Pickle<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    objects: Vec<Object>,
    result: Id,
}

impl<'a> Pickle<'a> {
    /// Reads the objects of a pickle without running anything.
    pub(super) fn read(path: &'a Path, bytes: &'a [u8]) -> Result<Self, Error> {
        let mut machine = Machine {
            bytes,
            at: 0,
            objects: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        match machine.run() {
            Ok(result) => Ok(Self { path, bytes, objects: machine.objects, result }),
            Err(problem) => Err(Error::malformed(path, format!("byte {}", machine.at), problem)
                .remedy("only Planetoid's own files are read, and nothing in a pickle is executed; fetch the file again")),
        }
    }

    fn error(&self, problem: impl Into<String>) -> Error {
        Error::malformed(self.path, "the pickle", problem)
            .remedy("this is not the file its name says; fetch it again")
    }

    /// A dictionary of lists of whole numbers.
    pub(super) fn into_lists(self) -> Result<Vec<(i64, Vec<i64>)>, Error> {
        let wrong = || self.error("it should hold a dictionary of lists of vertices");
        let Object::Dict(pairs) = &self.objects[self.result] else { return Err(wrong()) };
        let int = |id: &Id| if let Object::Int(int) = self.objects[*id] { Some(int) } else { None };
        pairs
            .iter()
            .map(|(key, list)| match &self.objects[*list] {
                Object::List(items) => Some((int(key)?, items.iter().map(int).collect::<Option<_>>()?)),
                _ => None,
            })
            .collect::<Option<_>>()
            .ok_or_else(wrong)
    }

    /// A dense array of two axes: rows, columns, values.
    pub(super) fn into_table(self) -> Result<(usize, usize, Vec<i64>), Error> {
        let (shape, data) = self.array(self.result)?;
        match shape[..] {
            [rows, columns] => Ok((rows, columns, data)),
            _ => Err(self.error(format!("it should hold an array of two axes, not of shape {shape:?}"))),
        }
    }

    /// A sparse matrix; columns within a row may come in any order, zeros are dropped.
    pub(super) fn into_matrix(self) -> Result<Csr<f32>, Error> {
        let Object::Matrix(Some(parts)) = self.objects[self.result] else {
            return Err(self.error("it should hold a sparse matrix in compressed rows"));
        };
        let Object::Dict(parts) = &self.objects[parts] else {
            return Err(self.error("the matrix has no parts"));
        };
        let part = |name: &str| {
            parts
                .iter()
                .find(|(key, _)| self.text(*key) == Some(name))
                .map(|(_, value)| *value)
                .ok_or_else(|| self.error(format!("the matrix has no '{name}'")))
        };
        let shape = part("_shape").or_else(|_| part("shape"))?;
        let shape = match &self.objects[shape] {
            Object::Tuple(axes) => axes.iter().map(|id| self.size(*id)).collect::<Option<Vec<usize>>>(),
            _ => None,
        };
        let Some(&[rows, columns]) = shape.as_deref() else {
            return Err(self.error("the matrix has no shape"));
        };
        let pointers = self.array::<usize>(part("indptr")?)?.1;
        let indices = self.array::<u32>(part("indices")?)?.1;
        let values = self.array::<f32>(part("data")?)?.1;
        let whole = Some(pointers.len()) == rows.checked_add(1)
            && pointers.is_sorted()
            && pointers.last() == Some(&indices.len())
            && indices.len() == values.len();
        if !whole {
            return Err(self.error("the parts of the matrix do not fit together"));
        }
        let rows = pointers.windows(2).map(|ends| {
            let mut row: Vec<(u32, f32)> = (ends[0]..ends[1])
                .map(|at| (indices[at], values[at]))
                .filter(|entry| entry.1 != 0.0)
                .collect();
            row.sort_unstable_by_key(|entry| entry.0);
            row.into_iter().unzip()
        });
        Csr::from_rows(columns, rows).map_err(|source| Error::Invalid { path: self.path.into(), source })
    }

    fn text(&self, id: Id) -> Option<&str> {
        if let Object::Text(range) = &self.objects[id] {
            std::str::from_utf8(&self.bytes[range.clone()]).ok()
        } else {
            None
        }
    }

    fn size(&self, id: Id) -> Option<usize> {
        if let Object::Int(size) = self.objects[id] { usize::try_from(size).ok() } else { None }
    }

    fn array<T: Element>(&self, id: Id) -> Result<(Vec<usize>, Vec<T>), Error> {
        let Object::Array(Some((shape, kind, fortran_order, data))) = &self.objects[id] else {
            return Err(self.error("it should hold an array"));
        };
        let Object::Type(kind) = &self.objects[*kind] else { return Err(self.error("an array has no type")) };
        let kind = Kind::parse(kind).map_err(|problem| self.error(problem))?;
        let bytes = &self.bytes[data.clone()];
        let size = shape.iter().try_fold(kind.size(), |size, &axis| size.checked_mul(axis));
        if size != Some(bytes.len()) {
            return Err(
                self.error(format!("an array of shape {shape:?} of {kind} has {} bytes", bytes.len()))
            );
        }
        let mut values = Vec::new();
        decode(kind, bytes, &mut values).map_err(|problem| self.error(problem))?;
        if *fortran_order {
            values = to_c_order(shape, &values);
        }
        Ok((shape.clone(), values))
    }
}

/// The state of reading: where it stands, and the objects so far.
struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    objects: Vec<Object>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl Machine<'_> {
    fn run(&mut self) -> Result<Id, String> {
        loop {
            let opcode = self.take(1)?[0];
            match opcode {
                0x80 => {
                    let protocol = self.take(1)?[0];
                    if protocol > 2 {
                        return Err(format!("protocol {protocol}; Planetoid's files use 2"));
                    }
                }
                b'.' => return self.pop(),
                b'(' => self.marks.push(self.stack.len()),
                b'N' => self.push(Object::None),
                0x88 => self.push(Object::Bool(true)),
                0x89 => self.push(Object::Bool(false)),
                b'K' => self.int(1)?,
                b'M' => self.int(2)?,
                b'J' => {
                    let bytes = self.take(4)?;
                    let int = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                    self.push(Object::Int(i64::from(int)));
                }
                b'U' => self.text(1)?,
                b'T' | b'X' => self.text(4)?,
                b'q' => self.put(1)?,
                b'r' => self.put(4)?,
                b'h' => self.get(1)?,
                b'j' => self.get(4)?,
                b')' => self.push(Object::Tuple(Vec::new())),
                b']' => self.push(Object::List(Vec::new())),
                b'}' => self.push(Object::Dict(Vec::new())),
                0x85..=0x87 => {
                    let start = self
                        .stack
                        .len()
                        .checked_sub(usize::from(opcode - 0x84))
                        .filter(|start| *start >= self.floor())
                        .ok_or(UNDERFLOW)?;
                    let items = self.stack.split_off(start);
                    self.push(Object::Tuple(items));
                }
                b't' => {
                    let items = self.pop_to_mark()?;
                    self.push(Object::Tuple(items));
                }
                b'a' => {
                    let item = self.pop()?;
                    self.append(vec![item])?;
                }
                b'e' => {
                    let items = self.pop_to_mark()?;
                    self.append(items)?;
                }
                b's' => {
                    let (value, key) = (self.pop()?, self.pop()?);
                    self.set(vec![key, value])?;
                }
                b'u' => {
                    let items = self.pop_to_mark()?;
                    self.set(items)?;
                }
                b'c' => self.name()?,
                b'R' | 0x81 => self.construct()?,
                b'b' => self.build()?,
                _ => return Err(format!("opcode 0x{opcode:02x} is not needed for plain data, and not read")),
            }
        }
    }

    fn take(&mut self, count: usize) -> Result<&[u8], String> {
        let end = self
            .at
            .checked_add(count)
            .filter(|end| *end <= self.bytes.len())
            .ok_or("the pickle is cut off")?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self, size: usize) -> Result<u32, String> {
        Ok(self.take(size)?.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn push(&mut self, object: Object) {
        self.stack.push(self.objects.len());
        self.objects.push(object);
    }

    /// Below this the stack belongs to what stands before the last mark.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Id, String> {
        if self.stack.len() <= self.floor() {
            return Err(UNDERFLOW.into());
        }
        self.stack.pop().ok_or_else(|| UNDERFLOW.into())
    }

    fn top(&self) -> Result<Id, String> {
        if self.stack.len() <= self.floor() {
            return Err(UNDERFLOW.into());
        }
        self.stack.last().copied().ok_or_else(|| UNDERFLOW.into())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop().ok_or("a mark is missing")?;
        Ok(self.stack.split_off(mark))
    }

    fn int(&mut self, size: usize) -> Result<(), String> {
        let int = self.number(size)?;
        self.push(Object::Int(i64::from(int)));
        Ok(())
    }

    fn text(&mut self, size: usize) -> Result<(), String> {
        let length = self.number(size)? as usize;
        let start = self.at;
        self.take(length)?;
        self.push(Object::Text(start..start + length));
        Ok(())
    }

    fn put(&mut self, size: usize) -> Result<(), String> {
        let key = self.number(size)?;
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn get(&mut self, size: usize) -> Result<(), String> {
        let key = self.number(size)?;
        self.stack.push(*self.memo.get(&key).ok_or("it refers to an object that was not stored")?);
        Ok(())
    }

    fn append(&mut self, items: Vec<Id>) -> Result<(), String> {
        let list = self.top()?;
        let Object::List(list) = &mut self.objects[list] else {
            return Err("items are appended to what is no list".into());
        };
        list.extend(items);
        Ok(())
    }

    fn set(&mut self, items: Vec<Id>) -> Result<(), String> {
        let dict = self.top()?;
        let (pairs, rest) = items.as_chunks::<2>();
        let (Object::Dict(dict), []) = (&mut self.objects[dict], rest) else {
            return Err("items are set in what is no dictionary".into());
        };
        dict.extend(pairs.iter().map(|&[key, value]| (key, value)));
        Ok(())
    }

    fn line(&mut self) -> Result<String, String> {
        let length = self.bytes[self.at..]
            .iter()
            .take(200)
            .position(|byte| *byte == b'\n')
            .ok_or("a name does not end")?;
        let line = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.take(1)?;
        Ok(line)
    }

    fn name(&mut self) -> Result<(), String> {
        let (module, name) = (self.line()?, self.line()?);
        let known = match (module.as_str(), name.as_str()) {
            ("collections", "defaultdict") => Name::DefaultDict,
            ("__builtin__" | "builtins", "list") => Name::List,
            ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => Name::Reconstruct,
            ("numpy", "ndarray") => Name::Array,
            ("numpy", "dtype") => Name::Type,
            ("scipy.sparse.csr" | "scipy.sparse._csr", "csr_matrix") => Name::Matrix,
            _ => {
                return Err(format!(
                    "it names {}.{}, which no dataset needs",
                    module.escape_debug(),
                    name.escape_debug()
                ));
            }
        };
        self.push(Object::Name(known));
        Ok(())
    }

    /// Makes the object a name stands for; its arguments only have to be the usual ones.
    fn construct(&mut self) -> Result<(), String> {
        let (arguments, callee) = (self.pop()?, self.pop()?);
        let (Object::Name(name), Object::Tuple(arguments)) =
            (&self.objects[callee], &self.objects[arguments])
        else {
            return Err("something is called that is no known type".into());
        };
        let is = |at: usize, name: Name| {
            arguments
                .get(at)
                .is_some_and(|id| matches!(self.objects[*id], Object::Name(found) if found == name))
        };
        let made = match name {
            Name::DefaultDict if is(0, Name::List) => Object::Dict(Vec::new()),
            Name::Reconstruct if is(0, Name::Array) => Object::Array(None),
            Name::Matrix if arguments.is_empty() => Object::Matrix(None),
            Name::Type => match arguments.first().map(|id| &self.objects[*id]) {
                Some(Object::Text(code)) => {
                    Object::Type(String::from_utf8_lossy(&self.bytes[code.clone()]).into_owned())
                }
                _ => return Err("an element type has no code".into()),
            },
            _ => return Err("a type is made in an unusual way".into()),
        };
        self.push(made);
        Ok(())
    }

    /// Fills an object with its state.
    fn build(&mut self) -> Result<(), String> {
        let state = self.pop()?;
        let target = self.top()?;
        let filled = match (&self.objects[target], &self.objects[state]) {
            (Object::Matrix(_), Object::Dict(_)) => Object::Matrix(Some(state)),
            (Object::Type(code), Object::Tuple(parts)) => match parts.get(1).map(|id| &self.objects[*id]) {
                Some(Object::Text(order)) => {
                    let order = String::from_utf8_lossy(&self.bytes[order.clone()]);
                    Object::Type(format!("{order}{}", code.trim_start_matches(['<', '>', '|', '='])))
                }
                _ => return Err("an element type has no byte order".into()),
            },
            (Object::Array(_), Object::Tuple(parts)) => {
                let part = |at: usize| parts.get(at).map(|id| (&self.objects[*id], *id));
                let (
                    Some((Object::Tuple(shape), _)),
                    Some((Object::Type(_), kind)),
                    Some((Object::Bool(fortran), _)),
                    Some((Object::Text(data), _)),
                ) = (part(1), part(2), part(3), part(4))
                else {
                    return Err("an array lacks shape, type or data".into());
                };
                let axis = |id: &Id| match self.objects[*id] {
                    Object::Int(axis) => usize::try_from(axis).ok(),
                    _ => None,
                };
                let shape =
                    shape.iter().map(axis).collect::<Option<Vec<_>>>().ok_or("an array has a wrong shape")?;
                Object::Array(Some((shape, kind, *fortran, data.clone())))
            }
            _ => return Err("a state is given to what takes none".into()),
        };
        self.objects[target] = filled;
        Ok(())
    }
}

const UNDERFLOW: &str = "it takes more objects than there are";

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "ind.test.graph";

    fn read(bytes: &[u8]) -> Result<Vec<(i64, Vec<i64>)>, Error> {
        Pickle::read(Path::new(PATH), bytes)?.into_lists()
    }

    /// What Python 2 writes for `defaultdict(list, {0: [1, 300], 1: [0]})`.
    const GRAPH: &[u8] = b"\x80\x02ccollections\ndefaultdict\nq\x01c__builtin__\nlist\nq\x02\x85Rq\x03(K\x00]q\x04(K\x01M\x2c\x01eK\x01]q\x05K\x00au.";

    #[test]
    fn a_dictionary_of_lists_is_read() {
        assert_eq!(read(GRAPH).unwrap(), [(0, vec![1, 300]), (1, vec![0])]);
    }

    #[test]
    fn a_pickle_that_wants_to_run_something_is_refused_and_named() {
        let error = read(b"\x80\x02cos\nsystem\nU\x07echo hi\x85R.").unwrap_err();
        assert!(error.to_string().contains("it names os.system, which no dataset needs"), "{error}");
        assert!(error.hint().unwrap().contains("nothing in a pickle is executed"));
        let error = read(b"\x80\x02c__builtin__\neval\n.").unwrap_err();
        assert!(error.to_string().contains("__builtin__.eval"), "{error}");
        let error = read(b"\x80\x02ccollections\ndefaultdict\ncollections\nx").unwrap_err();
        assert!(error.to_string().contains("byte"), "{error}");
    }

    #[test]
    fn a_pickle_of_something_else_is_not_what_its_name_says() {
        assert!(
            read(b"\x80\x02K\x01.").unwrap_err().to_string().contains("should hold a dictionary of lists")
        );
        let error = Pickle::read(Path::new(PATH), GRAPH).unwrap().into_matrix().unwrap_err();
        assert!(error.to_string().contains("should hold a sparse matrix"), "{error}");
        assert!(read(&GRAPH[..GRAPH.len() - 1]).unwrap_err().to_string().contains("cut off"));
        assert!(read(b"not a pickle").unwrap_err().to_string().contains("opcode 0x6e"));
    }
}
