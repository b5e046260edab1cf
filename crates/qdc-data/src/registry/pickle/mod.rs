//! Python pickles, as far as Planetoid's files need them: arrays of NumPy, matrices of SciPy, dictionaries of
//! lists.
//!
//! A pickle is a program. This reader runs none of it: it knows the opcodes that build plain data and six
//! names, for which it makes values of its own; anything else is an error. Every object sits in one arena and
//! refers to others by number, so reading needs no recursion and no more memory than a multiple of the file.

mod machine;

use std::path::Path;

use qdc_core::Csr;

use self::machine::{Id, Machine, Object};
use crate::budget::Account;
use crate::npz::{Element, Kind, decode, to_c_order};
use crate::{Budget, Error};

/// A pickle that has been read.
pub(super) struct Pickle<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    objects: Vec<Object>,
    result: Id,
    account: Account,
}

impl<'a> Pickle<'a> {
    /// Reads the objects of a pickle without running anything.
    pub(super) fn read(path: &'a Path, bytes: &'a [u8], budget: Budget) -> Result<Self, Error> {
        let account = budget.account(path);
        // Every byte of a pickle makes at most one object; most make none.
        account.charge::<Object>("the pickle's objects", bytes.len() / 2)?;
        let mut machine = Machine::new(bytes);
        match machine.run() {
            Ok(result) => Ok(Self { path, bytes, objects: machine.objects, result, account }),
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
        let mut lists = Vec::new();
        for (key, list) in pairs {
            let (Some(key), Object::List(items)) = (int(key), &self.objects[*list]) else {
                return Err(wrong());
            };
            // A list may be referred to again and again: each copy counts.
            let mut copy: Vec<i64> = self.account.room("its lists", items.len())?;
            for item in items {
                copy.push(int(item).ok_or_else(wrong)?);
            }
            self.account.push("its lists", &mut lists, (key, copy))?;
        }
        Ok(lists)
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
        if kind.starts_with('>') {
            return Err(self.error("an array is big-endian, which no file of Planetoid is"));
        }
        let kind = Kind::parse(kind).map_err(|problem| self.error(problem))?;
        let bytes = &self.bytes[data.clone()];
        let size = shape.iter().try_fold(kind.size(), |size, &axis| size.checked_mul(axis));
        if size != Some(bytes.len()) {
            return Err(
                self.error(format!("an array of shape {shape:?} of {kind} has {} bytes", bytes.len()))
            );
        }
        let mut values = self.account.room("an array", bytes.len() / kind.size().max(1))?;
        decode(kind, bytes, &mut values).map_err(|problem| self.error(problem))?;
        if *fortran_order {
            values = to_c_order(shape, &values);
        }
        Ok((shape.clone(), values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "ind.test.graph";

    fn read(bytes: &[u8]) -> Result<Vec<(i64, Vec<i64>)>, Error> {
        Pickle::read(Path::new(PATH), bytes, Budget::default())?.into_lists()
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
        let error =
            Pickle::read(Path::new(PATH), GRAPH, Budget::default()).unwrap().into_matrix().unwrap_err();
        assert!(error.to_string().contains("should hold a sparse matrix"), "{error}");
        assert!(read(&GRAPH[..GRAPH.len() - 1]).unwrap_err().to_string().contains("cut off"));
        assert!(read(b"not a pickle").unwrap_err().to_string().contains("opcode 0x6e"));
    }
}
