//! Numbers that a matrix owns, or that lie elsewhere, as in a mapped file.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Numbers that lie elsewhere and are shared.
pub type Shared<T> = Arc<dyn AsRef<[T]> + Send + Sync>;

/// A slice of numbers, owned or shared. A change of shared ones copies them first.
pub(crate) enum Stored<T> {
    Owned(Vec<T>),
    Shared(Shared<T>),
}

impl<T: Copy> Stored<T> {
    /// The numbers, to change.
    pub(crate) fn owned(&mut self) -> &mut Vec<T> {
        if let Self::Shared(shared) = self {
            *self = Self::Owned((**shared).as_ref().to_vec());
        }
        match self {
            Self::Owned(numbers) => numbers,
            Self::Shared(_) => unreachable!("it was just copied"),
        }
    }

    pub(crate) fn into_vec(mut self) -> Vec<T> {
        std::mem::take(self.owned())
    }
}

impl<T> Deref for Stored<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(numbers) => numbers,
            Self::Shared(shared) => (**shared).as_ref(),
        }
    }
}

impl<T> From<Vec<T>> for Stored<T> {
    fn from(numbers: Vec<T>) -> Self {
        Self::Owned(numbers)
    }
}

impl<T: Clone> Clone for Stored<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Owned(numbers) => Self::Owned(numbers.clone()),
            Self::Shared(shared) => Self::Shared(Arc::clone(shared)),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Stored<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: PartialEq> PartialEq for Stored<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
