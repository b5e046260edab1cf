//! What a job may use: memory, a route asked for by name, and eigenpairs that are at hand.

use std::fmt;
use std::sync::{Arc, Mutex};

use super::{Accelerator, Route};
use crate::hash::ContentHash;
use crate::{Graph, Spectrum, Transition, Watch};

/// What a job may use; none of it changes which kernel is made.
///
/// ```
/// use qdc_core::{Resources, Route};
///
/// let resources = Resources { route: Route::Dense, memory: Some(2_000_000_000), ..Resources::default() };
/// ```
#[derive(Clone, Default)]
pub struct Resources {
    /// The route; `Auto` picks the cheapest that fits, and the report says why.
    pub route: Route,
    /// The bytes of memory the work may take besides the graph and its transition matrix. `None`: no limit.
    pub memory: Option<u64>,
    /// Where eigenpairs come from, for the routes that need them.
    pub spectra: Spectra,
    /// A device on which panels of columns are made where it is worth it.
    pub accelerator: Option<Arc<dyn Accelerator>>,
}

impl Resources {
    /// Eigenpairs computed before, and nothing else.
    pub fn given(spectrum: Spectrum) -> Self {
        Self { spectra: Spectra::Given(spectrum), ..Self::default() }
    }

    /// The same, with the bytes of a graph and of its transition matrix taken off the memory: for a limit that
    /// includes them.
    pub fn beside(self, graph: &Graph) -> Self {
        Self { memory: self.memory.map(|limit| limit.saturating_sub(graph.memory())), ..self }
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resources")
            .field("route", &self.route)
            .field("memory", &self.memory)
            .field("spectra", &self.spectra)
            .field("accelerator", &self.accelerator.as_ref().map(|device| device.name()))
            .finish()
    }
}

/// Where eigenpairs come from.
#[derive(Clone, Default)]
pub enum Spectra {
    /// They are computed for the job.
    #[default]
    Computed,
    /// A store has them, or keeps them once they are computed.
    Stored(Arc<dyn SpectrumStore>),
    /// The caller has them: the complete spectrum serves every kernel of its graph, a part of it serves
    /// `Pairs::Nearest` where the window lies inside.
    Given(Spectrum),
}

impl fmt::Debug for Spectra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Computed => f.write_str("Computed"),
            Self::Stored(_) => f.write_str("Stored"),
            Self::Given(spectrum) => f.debug_tuple("Given").field(spectrum).finish(),
        }
    }
}

/// A place for complete spectra, such as a folder of files. What goes wrong in it is told to the watch and
/// costs only the saving: the job computes what it cannot find.
pub trait SpectrumStore: Send + Sync {
    /// The complete spectrum of a transition matrix, if it is here and sound.
    fn find(&self, transition: &Transition, watch: &Watch) -> Option<Spectrum>;

    /// Keeps a complete spectrum that was just computed.
    fn keep(&self, transition: &Transition, spectrum: &Spectrum, watch: &Watch);
}

/// A store in memory in front of another: the last spectrum found or kept is at hand without a second look.
pub struct Remembered<S> {
    store: S,
    last: Mutex<Option<(ContentHash, Spectrum)>>,
}

impl<S: SpectrumStore> Remembered<S> {
    /// Remembers the last spectrum of `store`.
    pub fn new(store: S) -> Self {
        Self { store, last: Mutex::default() }
    }

    /// Has a complete spectrum at hand from the start.
    pub fn holding(store: S, transition: &Transition, spectrum: Spectrum) -> Self {
        Self { store, last: Mutex::new(Some((transition.hash(), spectrum))) }
    }

    fn remember(&self, hash: ContentHash, spectrum: &Spectrum) {
        *self.last.lock().expect("nothing panics while it is held") = Some((hash, spectrum.clone()));
    }
}

impl<S: SpectrumStore> SpectrumStore for Remembered<S> {
    fn find(&self, transition: &Transition, watch: &Watch) -> Option<Spectrum> {
        let hash = transition.hash();
        let last = self.last.lock().expect("nothing panics while it is held").clone();
        if let Some((_, spectrum)) = last.filter(|(known, _)| *known == hash) {
            return Some(spectrum);
        }
        let found = self.store.find(transition, watch)?;
        self.remember(hash, &found);
        Some(found)
    }

    fn keep(&self, transition: &Transition, spectrum: &Spectrum, watch: &Watch) {
        self.remember(transition.hash(), spectrum);
        self.store.keep(transition, spectrum, watch);
    }
}
