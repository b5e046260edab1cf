//! The stack machine of a pickle, without the opcodes that run code.

use std::collections::HashMap;
use std::ops::Range;

const UNDERFLOW: &str = "it takes more objects than there are";

/// What one opcode copies is bounded, so that a pickle takes time in proportion to its length: axes of an
/// array (NumPy has at most 64), and bytes of an element type's name.
const MOST_AXES: usize = 64;
const LONGEST_TYPE: usize = 64;

/// The number of an object in the arena.
pub(super) type Id = usize;

/// A name that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    DefaultDict,
    List,
    Reconstruct,
    Array,
    Type,
    Matrix,
}

/// What a pickle builds.
#[derive(Clone, Debug)]
pub(super) enum Object {
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

/// The state of reading: where it stands, and the objects so far.
pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) objects: Vec<Object>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl<'a> Machine<'a> {
    /// At the beginning of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, objects: Vec::new(), stack: Vec::new(), marks: Vec::new(), memo: HashMap::new() }
    }

    /// Reads to the end and gives the object that is the result.
    pub(super) fn run(&mut self) -> Result<Id, String> {
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
                Some(Object::Text(code)) if code.len() <= LONGEST_TYPE => {
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
                Some(Object::Text(order)) if order.len() <= LONGEST_TYPE => {
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
                if shape.len() > MOST_AXES {
                    return Err(format!("an array has {} axes", shape.len()));
                }
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
