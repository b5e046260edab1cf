"""Transforms that replace the edges of a ``torch_geometric.data.Data``."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from typing import Any, Literal

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import HeteroData
from torch_geometric.transforms import BaseTransform

from .. import _core
from .._flow import Variant, sdrf
from .._graph import Graph, csr
from .._kernel import Normalize, Pairs, Precision, Sign, Solver, build_rows, kernel, resident_kernel
from ..convert import to_edge_index
from ..errors import GraphError, ParameterError
from ..filters import Filter, FilterLike, as_filter
from ..sparsify import Epsilon, Sparsify, TopK


class Rewiring(BaseTransform):  # type: ignore[misc]
    """The base of the transforms: reads the graph of ``data``, and writes another one in its place.

    ``weight`` names the attribute that weights are read from, where there is one, and written to. Attributes of
    the old edges (``edge_attr`` and the like) describe edges that are gone, so they go too; everything else stays.
    Directed graphs are an error: apply ``torch_geometric.transforms.ToUndirected`` first.
    """

    weight: str

    @abstractmethod
    def rewire(self, graph: Graph, single: bool = False) -> sparse.csr_array:
        """The matrix that takes the place of the adjacency; entry (i, j) is the message from j to i.

        ``single`` says that the weights will be kept in single precision.
        """

    def keeps_symmetry(self) -> bool:
        """Whether the matrix is symmetric."""
        return True

    def forward(self, data: Any) -> Any:
        """Replaces ``edge_index`` and the weights of ``data``."""
        graph = self.graph_of(data)
        device = data.edge_index.device
        features: Any = getattr(data, "x", None)
        known = torch.is_tensor(features) and features.is_floating_point()
        dtype = features.dtype if known else torch.get_default_dtype()
        edges = self.edges_on(device, graph, dtype) if device.type == "cuda" else None
        if edges is None:
            matrix = self.rewire(graph, single=dtype != torch.float64)
            edges = to_edge_index(matrix, dtype, device, symmetric=self.keeps_symmetry())
        stale = [key for key in data.edge_attrs() if key != "edge_index"]
        data.num_nodes = graph.nodes  # the new edges may name fewer vertices than there are
        for key in stale:
            del data[key]
        data.edge_index, data[self.weight] = edges
        return data

    def edges_on(self, device: torch.device, graph: Graph, dtype: torch.dtype) -> tuple[Any, Any] | None:
        """The new edges and weights, made on a CUDA device; None where the CPU makes them."""
        return None

    def graph_of(self, data: Any) -> Graph:
        """The graph of ``data``, checked."""
        if isinstance(data, HeteroData):
            raise GraphError(
                f"{type(self).__name__} takes one kind of vertices and one kind of edges",
                "join them with data.to_homogeneous(), or transform one edge type at a time",
            )
        if getattr(data, "edge_index", None) is None:
            raise GraphError("the data has no edge_index", "apply ToSparseTensor after this transform, not before")
        try:
            return Graph(data.edge_index, weights=data.get(self.weight), nodes=data.num_nodes)
        except GraphError as error:
            if "directed" not in str(error):
                raise
            message, _ = error._parts
            raise GraphError(message, "apply torch_geometric.transforms.ToUndirected() first") from None

    def __repr__(self) -> str:
        names = list(inspect.signature(type(self)).parameters)
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class KernelRewiring(Rewiring):
    """The base of the transforms that put a kernel in place of the graph."""

    pairs: Pairs
    sparsify: Sparsify
    sign: Sign
    normalize: Normalize
    self_loop: float
    solver: Solver
    tolerance: float
    precision: Any
    accuracy: float | None
    threads: int | None

    @abstractmethod
    def kernel_filter(self) -> Filter:
        """The filter of the kernel."""

    def _set(self, **attributes: Any) -> None:
        """Keeps the parameters and checks them, so that a wrong one is found here and not at the first graph."""
        self.__dict__.update(attributes)
        self.kernel_filter()
        self.rewire(_TINY)

    def _options(self, single: bool) -> dict[str, Any]:
        names = ("pairs", "sparsify", "sign", "self_loop", "solver", "tolerance", "precision", "accuracy", "threads")
        return {name: getattr(self, name) for name in names}

    def rewire(self, graph: Graph, single: bool = False) -> sparse.csr_array:
        return kernel(graph, self.kernel_filter(), normalize=self.normalize, **self._options(single))

    def edges_on(self, device: torch.device, graph: Graph, dtype: torch.dtype) -> tuple[Any, Any] | None:
        options = self._options(single=dtype != torch.float64)
        # Edges are sorted by where they start: the device makes the transpose of what rows sum to.
        transposed: dict[Any, Normalize] = {"row": "col", "col": "row"}
        normalize = transposed.get(self.normalize, self.normalize)
        made = resident_kernel(graph, self.kernel_filter(), normalize=normalize, **options)
        return None if made is None else edges_of(made, dtype, device)

    def keeps_symmetry(self) -> bool:
        return self.normalize not in ("row", "col")


_TINY = Graph(np.array([[0, 1], [1, 2]]))


class QDC(KernelRewiring):
    """Quantum diffusion convolution: the Gaussian filter exp(-(E - mu)^2 / 2 sigma^2) of the spectrum.

    Parameters as in ``qdc.kernel``; ``weight`` as in ``Rewiring``.

    >>> import torch, qdc
    >>> from torch_geometric.data import Data
    >>> ring = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    >>> data = qdc.pyg.QDC(mu=0.3, sigma=0.1, sparsify=qdc.TopK(2))(Data(x=torch.ones(4, 1), edge_index=ring))
    >>> sorted(data.keys())
    ['edge_index', 'edge_weight', 'num_nodes', 'x']
    """

    def __init__(
        self,
        mu: float = _core.DEFAULTS["mu"],
        sigma: float = _core.DEFAULTS["sigma"],
        *,
        pairs: Pairs = "all",
        sparsify: Sparsify = Epsilon(),
        sign: Sign = "positive",
        normalize: Normalize = "sym",
        self_loop: float = _core.DEFAULTS["self_loop"],
        solver: Solver = "auto",
        tolerance: float = _core.DEFAULTS["tolerance"],
        precision: Precision = "f64",
        accuracy: float | None = None,
        weight: str = "edge_weight",
        threads: int | None = None,
    ) -> None:
        self._set(
            mu=mu, sigma=sigma, pairs=pairs, sparsify=sparsify, sign=sign, normalize=normalize, self_loop=self_loop,
            solver=solver, tolerance=tolerance, precision=precision, accuracy=accuracy,
            weight=weight, threads=threads,
        )  # fmt: skip

    mu: float
    sigma: float

    def kernel_filter(self) -> Filter:
        return Filter.gaussian(self.mu, self.sigma)


class BPDC(KernelRewiring):
    """Band-pass diffusion convolution: s(E - mu + gamma) s(mu + gamma - E), s the logistic function.

    Parameters as in ``QDC``, with ``gamma``, the half width of the band, in place of sigma.
    """

    def __init__(
        self,
        mu: float = _core.DEFAULTS["mu"],
        gamma: float = _core.DEFAULTS["gamma"],
        *,
        pairs: Pairs = "all",
        sparsify: Sparsify = Epsilon(),
        sign: Sign = "positive",
        normalize: Normalize = "sym",
        self_loop: float = _core.DEFAULTS["self_loop"],
        solver: Solver = "auto",
        tolerance: float = _core.DEFAULTS["tolerance"],
        precision: Precision = "f64",
        accuracy: float | None = None,
        weight: str = "edge_weight",
        threads: int | None = None,
    ) -> None:
        self._set(
            mu=mu, gamma=gamma, pairs=pairs, sparsify=sparsify, sign=sign, normalize=normalize, self_loop=self_loop,
            solver=solver, tolerance=tolerance, precision=precision, accuracy=accuracy,
            weight=weight, threads=threads,
        )  # fmt: skip

    mu: float
    gamma: float

    def kernel_filter(self) -> Filter:
        return Filter.band(self.mu, self.gamma)


class GDC(KernelRewiring):
    """Graph diffusion convolution (Gasteiger et al., 2019): personalised PageRank or the heat kernel.

    The same as ``torch_geometric.transforms.GDC(exact=True)`` without its dense inverse: no N x N matrix, and
    several times faster. ``filter`` is ``"ppr"`` (with alpha), ``"heat"`` (with time), a ``qdc.Filter`` or any
    function of the eigenvalue.

    Where the two differ, ours is the default and theirs an option: with ``TopK`` the largest entries of each row are
    joined with the transpose, so that the graph stays undirected; ``symmetrize=False`` keeps the k largest of each
    column, as PyTorch Geometric does with ``dim=0``. ``GDC.from_pyg`` translates a whole transform.

    ``precision="auto"`` computes in single precision where the weights are kept in it, as PyTorch Geometric does
    (errors near 1e-6); with features in double precision everything is double.
    """

    def __init__(
        self,
        filter: FilterLike = "ppr",
        *,
        alpha: float | None = None,
        time: float | None = None,
        pairs: Pairs = "all",
        sparsify: Sparsify = Epsilon(),
        sign: Sign = "positive",
        normalize: Normalize = "sym",
        self_loop: float = _core.DEFAULTS["self_loop"],
        symmetrize: bool = True,
        solver: Solver = "auto",
        tolerance: float = _core.DEFAULTS["tolerance"],
        precision: Precision | Literal["auto"] = "auto",
        accuracy: float | None = None,
        weight: str = "edge_weight",
        threads: int | None = None,
    ) -> None:
        self._set(
            filter=filter, alpha=alpha, time=time, pairs=pairs, sparsify=sparsify, sign=sign, normalize=normalize,
            self_loop=self_loop, symmetrize=symmetrize, solver=solver, tolerance=tolerance, precision=precision,
            accuracy=accuracy, weight=weight, threads=threads,
        )  # fmt: skip

    filter: FilterLike
    alpha: float | None
    time: float | None
    symmetrize: bool

    @classmethod
    def from_pyg(cls, transform: Any, **options: Any) -> GDC:
        """Our transform with the options of a ``torch_geometric.transforms.GDC``; weights go to ``edge_attr``.

        What it cannot take over is a ``ParameterError``: an input normalisation other than ``"sym"``, thresholds by
        ``avg_degree``, top-k by rows, and ``exact=False`` (ours is exact, and fast anyway).
        """
        diffusion, keep = dict(transform.diffusion_kwargs), dict(transform.sparsification_kwargs)
        if transform.normalization_in != "sym" or not transform.exact:
            raise ParameterError(
                f"normalization_in = {transform.normalization_in!r}, exact = {transform.exact} has no counterpart here",
                'use normalization_in="sym", exact=True',
            )
        method = diffusion.pop("method")
        if method == "coeff":
            polynomial = np.polynomial.Polynomial(diffusion["coeffs"])
            options["filter"] = Filter.custom(polynomial, f"coeff{diffusion['coeffs']}")
        else:
            options.update(filter=method, alpha=diffusion.get("alpha"), time=diffusion.get("t"))
        if keep["method"] == "threshold" and "eps" in keep:
            options["sparsify"] = Epsilon(keep["eps"])
        elif keep["method"] == "topk" and keep["dim"] == 0:
            options.update(sparsify=TopK(keep["k"]), symmetrize=False)
        else:
            raise ParameterError(
                f"sparsification by {keep} has no counterpart here",
                "use dict(method='threshold', eps=...) or dict(method='topk', k=..., dim=0)",
            )
        options.setdefault("weight", "edge_attr")
        normalize = {"row": "col", "col": "row"}.get(transform.normalization_out, transform.normalization_out)
        return cls(normalize=normalize, self_loop=transform.self_loop_weight or 0.0, **options)

    def kernel_filter(self) -> Filter:
        return as_filter(self.filter, alpha=self.alpha, time=self.time)

    def _options(self, single: bool) -> dict[str, Any]:
        options = super()._options(single)
        if self.precision == "auto":
            options["precision"] = "f32" if single else "f64"
            if single:  # rounding leaves errors near 1e-6: a series better than that is wasted
                options["tolerance"] = max(self.tolerance, 1e-5)
        return options

    def rewire(self, graph: Graph, single: bool = False) -> sparse.csr_array:
        if self.symmetrize or not isinstance(self.sparsify, TopK):
            return super().rewire(graph, single)
        # Row i holds the k largest of the symmetric kernel's row i, which are those of its column i.
        rows = build_rows(graph, (0, graph.nodes), self.kernel_filter(), **self._options(single))
        return _normalized(rows, self.normalize, self.sign)

    def keeps_symmetry(self) -> bool:
        return super().keeps_symmetry() and (self.symmetrize or not isinstance(self.sparsify, TopK))


def _normalized(rows: sparse.csr_array, normalize: Normalize, sign: Sign) -> sparse.csr_array:
    """A matrix that need not be symmetric, divided by its row sums (``sym``: on both sides by their roots)."""
    sums = (abs(rows) if sign == "absolute" else rows).sum(axis=1 if normalize != "col" else 0)
    power = {"sym": -0.5, "row": -1.0, "col": -1.0}.get(normalize or "none")
    if power is None:
        return rows
    scale = np.zeros_like(sums)
    np.power(sums, power, out=scale, where=sums > 0)
    if normalize != "col":
        rows = sparse.diags_array(scale) @ rows
    if normalize != "row":
        rows = rows @ sparse.diags_array(scale)
    return sparse.csr_array(rows)


class SDRF(Rewiring):
    """Stochastic discrete Ricci flow (Topping et al., 2022): adds edges where curvature is low, may remove others.

    Parameters as in ``qdc.sdrf``. The result is normalised like the plain graph, D^-1/2 (A + I) D^-1/2, so that it is
    used in the same way as the kernels; ``normalize=None`` writes the bare edges with weight 1.
    """

    def __init__(
        self,
        iterations: int = _core.SDRF_ITERATIONS,
        *,
        tau: float = _core.DEFAULTS["tau"],
        removal_bound: float = _core.DEFAULTS["removal_bound"],
        variant: Variant = "formula",
        seed: int = 0,
        normalize: Literal["sym"] | None = "sym",
        self_loop: float = _core.DEFAULTS["self_loop"],
        weight: str = "edge_weight",
        threads: int | None = None,
    ) -> None:
        self.iterations = iterations
        self.tau = tau
        self.removal_bound = removal_bound
        self.variant = variant
        self.seed = seed
        self.normalize = normalize
        self.self_loop = self_loop
        self.weight = weight
        self.threads = threads
        self.rewire(_TINY)

    def rewire(self, graph: Graph, single: bool = False) -> sparse.csr_array:
        rewired = sdrf(
            graph, iterations=self.iterations, tau=self.tau, removal_bound=self.removal_bound, variant=self.variant,
            seed=self.seed, threads=self.threads,
        )  # fmt: skip
        return rewired if self.normalize is None else transition(Graph(rewired), self.self_loop)


def edges_of(made: _core.Resident, dtype: torch.dtype, device: torch.device) -> tuple[Any, Any]:
    """(edge_index, edge_weight) on a device, by row and column, of a kernel that lies on the first device."""
    first = torch.device("cuda", 0)
    pointers, columns, values = (torch.as_tensor(part, device=first) for part in (made.indptr, made.indices, made.data))
    rows = torch.arange(len(pointers) - 1, device=first)
    rows = torch.repeat_interleave(rows, pointers.diff(), output_size=len(columns))
    edges = torch.stack([rows, columns.long()]).to(device), values.to(device, dtype, copy=True)
    torch.cuda.synchronize(first)  # the kernel's own memory is free again when this returns
    return edges


def transition(graph: Graph, self_loop: float = 1.0) -> sparse.csr_array:
    """L = D^-1/2 (A + w I) D^-1/2."""
    return csr(_core.transition(graph, self_loop), graph.nodes)
