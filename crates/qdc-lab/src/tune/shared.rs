//! What the trials of a search share in one process, made once and used by each.

use std::sync::Arc;

use qdc_core::kernel::{Remembered, Spectra};
use qdc_core::{Eigensolver, Resources, Transition, Watch};
use serde_json::Value;

use super::Search;
use crate::model::NetworkKind;
use crate::{Error, Rewirings};

/// Memory, a device, and eigenpairs that serve every trial.
#[derive(Clone, Debug)]
pub struct Shared {
    resources: Resources,
    /// Bytes that the eigenpairs take.
    held: u64,
}

impl Shared {
    /// One complete spectrum serves every mu, where it is of use and takes no more than half of the memory:
    /// N^3 operations, or reading it where it was stored before.
    ///
    /// # Errors
    /// A stop asked for. A spectrum that cannot be computed is told to the watch, and each trial finds its own
    /// pairs.
    pub fn prepare(search: &Search<'_>, watch: &Watch) -> Result<Self, Error> {
        let resources = Resources {
            memory: search.memory,
            spectra: Spectra::Stored(Arc::new(search.spectra.clone())),
            accelerator: search.accelerator.clone(),
            ..Resources::default()
        };
        let shared = Self { resources, held: 0 };
        let windowed = search.space.model.has(|tower| tower.rewiring.is_windowed());
        let has = |name: &str| search.space.space.get(name).is_some();
        let nearest = has("pairs") || search.space.fixed.get("pairs").is_some_and(Value::is_number);
        let looped = has("self_loop") || search.space.fixed.contains_key("self_loop");
        let ranks = search.space.model.has(|tower| tower.network == NetworkKind::Bank); // windows by rank need it
        if !ranks && (!windowed || !nearest || looped) {
            return Ok(shared);
        }
        let bytes = 8 * (search.dataset.graph.nodes() as u64).pow(2);
        let rewirings = shared.rewirings(search);
        let memory = rewirings.resources().memory;
        if memory.is_some_and(|memory| 2 * bytes > memory) {
            watch.note(
                "no full spectrum for all trials (it would take half of the memory); each finds its own pairs",
            );
            return Ok(shared);
        }
        let transition = Transition::new(&search.dataset.graph);
        let solver = Eigensolver::new().memory(memory).accelerator(search.accelerator.clone());
        match rewirings.compute(|| search.spectra.load_or_compute(&transition, &solver, watch)) {
            Ok(spectrum) => {
                let store = Remembered::holding(search.spectra.clone(), &transition, spectrum);
                let spectra = Spectra::Stored(Arc::new(store));
                Ok(Self { resources: Resources { spectra, ..shared.resources }, held: bytes })
            }
            Err(qdc_data::Error::Core(error @ qdc_core::Error::Interrupted)) => Err(error.into()),
            Err(error) => {
                watch.note(&format!(
                    "no full spectrum for all trials ({error}); each trial finds its own pairs"
                ));
                Ok(shared)
            }
        }
    }

    /// Rewirings that use it.
    pub(super) fn rewirings<'a>(&self, search: &Search<'a>) -> Rewirings<'a> {
        let rewirings = Rewirings::new(search.dataset).with_resources(self.resources.clone()).on(search.pool);
        rewirings.holding(self.held).weighing_at_most(search.attention_limit)
    }
}
