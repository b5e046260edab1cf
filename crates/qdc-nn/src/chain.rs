//! A chain of layers with its activations and gradients: the composition of their functions.

use std::ops::Range;

use crate::layers::{Activate, Parameter, Pass};
use crate::matrix::LANES;
use crate::program::{Describe, Stage};
use crate::{Matrix, Real, Width};

/// A parameter of a network: its full name, what it is, and where it lies in the flat array.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The name within the network, such as `towers.0.layers.1.weight`.
    pub name: String,
    /// Shape and start.
    pub parameter: Parameter,
    pub(crate) range: Range<usize>,
}

impl Placed {
    /// The values without padding, row after row, read from the flat array.
    pub fn read<T: Real>(&self, flat: &[T]) -> Vec<T> {
        let (rows, columns) = self.parameter.shape();
        let own = &flat[self.range.clone()];
        (0..rows).flat_map(|i| (0..columns).map(move |j| own[self.parameter.place(i, j)])).collect()
    }

    /// Writes values, given without padding, into the flat array.
    ///
    /// # Panics
    /// If their number is not that of the parameter.
    pub fn write<T: Real>(&self, flat: &mut [T], values: &[T]) {
        let (rows, columns) = self.parameter.shape();
        assert_eq!(values.len(), rows * columns, "values of {}", self.name);
        let own = &mut flat[self.range.clone()];
        for (at, &value) in values.iter().enumerate() {
            own[self.parameter.place(at / columns, at % columns)] = value;
        }
    }
}

/// Gives out places in the flat array of parameters.
#[derive(Default)]
pub(crate) struct Placement {
    pub(crate) parameters: Vec<Placed>,
    pub(crate) length: usize,
}

impl Placement {
    pub(crate) fn place(&mut self, scope: &str, parameters: Vec<Parameter>) -> Range<usize> {
        self.length = self.length.next_multiple_of(2 * LANES); // layers begin at a cache line
        let start = self.length;
        for parameter in parameters {
            let range = self.length..self.length + parameter.length();
            self.length = range.end;
            self.parameters.push(Placed { name: format!("{scope}.{}", parameter.name), parameter, range });
        }
        start..self.length
    }
}

/// y = f_n(... f_1(x)).
pub(crate) struct Chain<T> {
    nodes: usize,
    /// Whether anybody wants d loss / d x.
    varies: bool,
    links: Vec<Link<T>>,
}

struct Link<T> {
    layer: Box<dyn Describe<T>>,
    theta: Range<usize>,
    /// What is done to the output in place, and its parameters.
    activate: Option<(Activate, Range<usize>)>,
    output: Matrix<T>,
    /// d loss / d output; without rows where no parameter lies before.
    gradient: Matrix<T>,
}

impl<T: Real> Chain<T> {
    /// An empty chain that begins with features: constants.
    pub(crate) fn of_features(nodes: usize) -> Self {
        Self { nodes, varies: false, links: Vec::new() }
    }

    /// An empty chain that continues another.
    pub(crate) fn of_activations(nodes: usize) -> Self {
        Self { nodes, varies: true, links: Vec::new() }
    }

    /// Appends a layer; its parameters are named `scope`.their name.
    pub(crate) fn push(&mut self, layer: impl Describe<T> + 'static, placement: &mut Placement, scope: &str) {
        let theta = placement.place(scope, layer.parameters());
        let before = self.links.last().map_or(self.varies, |link| link.gradient.rows() > 0);
        let output = Matrix::zeros(self.nodes, layer.width());
        let gradient = Matrix::zeros(if before || !theta.is_empty() { self.nodes } else { 0 }, layer.width());
        self.links.push(Link { layer: Box::new(layer), theta, activate: None, output, gradient });
    }

    /// Lets `activate` follow the last layer, which must have parameters in it or before it.
    pub(crate) fn activate(&mut self, activate: Activate, placement: &mut Placement, scope: &str) {
        let link = self.links.last_mut().expect("a chain has a layer");
        debug_assert!(link.activate.is_none() && link.gradient.rows() == self.nodes);
        let theta = placement.place(scope, activate.parameters());
        link.activate = Some((activate, theta));
    }

    /// The columns of the last output.
    ///
    /// # Panics
    /// If the chain is empty.
    pub(crate) fn width(&self) -> Width {
        self.links.last().expect("a chain has a layer").output.width()
    }

    /// The layers as plain data.
    pub(crate) fn stages(&self) -> Vec<Stage<T>> {
        let stage = |link: &Link<T>| Stage {
            operation: link.layer.operation(),
            theta: link.theta.clone(),
            width: link.output.width(),
            varies: link.gradient.rows() > 0,
            activate: link.activate.as_ref().map(|(activate, bias)| activate.stage(bias.clone())),
        };
        self.links.iter().map(stage).collect()
    }

    pub(crate) fn output(&self) -> &Matrix<T> {
        &self.links.last().expect("a chain has a layer").output
    }

    /// The last output and its gradient, to be written.
    pub(crate) fn ends(&mut self) -> (&Matrix<T>, &mut Matrix<T>) {
        let last = self.links.last_mut().expect("a chain has a layer");
        (&last.output, &mut last.gradient)
    }

    pub(crate) fn forward(&mut self, theta: &[T], x: &Matrix<T>, pass: Pass) {
        for at in 0..self.links.len() {
            let (before, rest) = self.links.split_at_mut(at);
            let link = &mut rest[0];
            let input = before.last().map_or(x, |link| &link.output);
            link.layer.forward(&theta[link.theta.clone()], input, &mut link.output, pass);
            if let Some((activate, own)) = &mut link.activate {
                activate.forward(&theta[own.clone()], &mut link.output, pass);
            }
        }
    }

    /// From the gradient of the last output (see [`Chain::ends`]) to those of the parameters and of x.
    pub(crate) fn backward(&mut self, theta: &[T], x: &Matrix<T>, gradient: &mut [T], dx: &mut Matrix<T>) {
        for at in (0..self.links.len()).rev() {
            let (before, rest) = self.links.split_at_mut(at);
            let link = &mut rest[0];
            let (input, d_input) = match before.last_mut() {
                Some(previous) => (&previous.output, &mut previous.gradient),
                None => (x, &mut *dx),
            };
            if let Some((activate, own)) = &mut link.activate {
                activate.backward(&link.output, &mut link.gradient, &mut gradient[own.clone()]);
            }
            if link.gradient.rows() > 0 {
                let (own, d_own) = (&theta[link.theta.clone()], &mut gradient[link.theta.clone()]);
                link.layer.backward(own, input, &link.gradient, d_own, d_input);
            }
        }
    }
}
