//! Saved weights: a safetensors file, its configuration as JSON in the header.
//!
//! Each parameter is a tensor under its name, without padding; `safetensors.load_file` of Python opens the
//! file.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::{Error, Learner};

/// The key of the configuration in the file's metadata.
const KEY: &str = "qdc";

/// A network's weights and its configuration (any JSON text) as the bytes of a file.
pub fn to_bytes(network: &impl Learner<f32>, configuration: &str) -> Vec<u8> {
    let tensors: Vec<(&str, [usize; 2], Vec<u8>)> = network
        .parameters()
        .iter()
        .map(|placed| {
            let (rows, columns) = placed.parameter.shape();
            let bytes = placed.read(network.weights()).iter().flat_map(|value| value.to_le_bytes()).collect();
            (placed.name.as_str(), [rows, columns], bytes)
        })
        .collect();
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.to_vec(), bytes).expect("four bytes for each number");
        (*name, view)
    });
    let metadata = HashMap::from([(KEY.to_owned(), configuration.to_owned())]);
    safetensors::serialize(views, Some(metadata)).expect("names are unique, shapes are right")
}

/// A saved model: its configuration, and its tensors to be put into a network.
#[derive(Debug)]
pub struct Saved {
    path: std::path::PathBuf,
    /// The JSON text that was saved.
    pub configuration: String,
    tensors: HashMap<String, (Vec<usize>, Vec<f32>)>,
}

impl Saved {
    /// Reads the bytes that [`to_bytes`] gives; `path` names their file in errors.
    ///
    /// # Errors
    /// If they are none of these, or hold a weight that is not finite.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let not_a_model = |problem: String| Error::NotAModel { path: path.into(), problem };
        let (_, header) =
            SafeTensors::read_metadata(bytes).map_err(|error| not_a_model(error.to_string()))?;
        let file = SafeTensors::deserialize(bytes).map_err(|error| not_a_model(error.to_string()))?;
        let configuration = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY)).cloned();
        let configuration =
            configuration.ok_or_else(|| not_a_model("it has no entry `qdc` in its metadata".into()))?;
        let mut tensors = HashMap::new();
        for (name, view) in file.tensors() {
            if view.dtype() != Dtype::F32 {
                return Err(not_a_model(format!("tensor {name} is of type {:?}, not F32", view.dtype())));
            }
            let (chunks, _) = view.data().as_chunks::<4>();
            let values: Vec<f32> = chunks.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                return Err(not_a_model(format!("weight {at} of tensor {name} is {}", values[at])));
            }
            tensors.insert(name, (view.shape().to_vec(), values));
        }
        Ok(Self { path: path.into(), configuration, tensors })
    }

    /// Puts the weights into `network`, which must have exactly these parameters.
    pub fn fill(&self, network: &mut impl Learner<f32>) -> Result<(), Error> {
        let parameters = network.parameters().to_vec();
        let not_a_model = |problem: String| Error::NotAModel { path: self.path.clone(), problem };
        if parameters.len() != self.tensors.len() {
            let problem = format!("{} tensors for {} parameters", self.tensors.len(), parameters.len());
            return Err(not_a_model(problem));
        }
        for placed in parameters {
            let (rows, columns) = placed.parameter.shape();
            match self.tensors.get(&placed.name) {
                Some((shape, values)) if *shape == [rows, columns] => {
                    placed.write(network.weights_mut(), values);
                }
                Some((shape, _)) => {
                    let problem = format!("{} has shape {shape:?}, not [{rows}, {columns}]", placed.name);
                    return Err(not_a_model(problem));
                }
                None => return Err(not_a_model(format!("{} is missing", placed.name))),
            }
        }
        Ok(())
    }
}
