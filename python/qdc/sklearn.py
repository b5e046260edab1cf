"""A scikit-learn transformer: adjacency in, kernel out."""

from __future__ import annotations

from typing import Any

from scipy import sparse

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:  # pragma: no cover
    raise ImportError("qdc.sklearn needs scikit-learn: pip install scikit-learn") from error

from . import _core
from ._graph import GraphLike, as_graph
from ._kernel import Normalize, Pairs, Sign, kernel
from .filters import FilterLike
from .sparsify import Epsilon, Sparsify


class DiffusionKernel(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns an adjacency matrix into a diffusion kernel, for estimators that take a precomputed affinity.

    Parameters as in ``qdc.kernel``. ``transform`` gives the kernel as a sparse array. There is nothing to learn:
    ``fit`` checks the graph and notes its size, and ``transform`` takes any graph.

    >>> import networkx
    >>> from sklearn.cluster import SpectralClustering
    >>> from sklearn.pipeline import make_pipeline
    >>> from qdc.sklearn import DiffusionKernel
    >>> A = networkx.to_scipy_sparse_array(networkx.karate_club_graph())
    >>> clusters = SpectralClustering(2, affinity="precomputed", random_state=0)
    >>> labels = make_pipeline(DiffusionKernel(filter="heat"), clusters).fit_predict(A)
    >>> len(labels)
    34
    """

    def __init__(
        self,
        filter: FilterLike = "gaussian",
        *,
        mu: float | None = None,
        sigma: float | None = None,
        gamma: float | None = None,
        alpha: float | None = None,
        time: float | None = None,
        pairs: Pairs = "all",
        sparsify: Sparsify = Epsilon(),
        sign: Sign = "positive",
        normalize: Normalize = "sym",
        self_loop: float = _core.DEFAULTS["self_loop"],
        threads: int | None = None,
    ) -> None:
        self.filter = filter
        self.mu = mu
        self.sigma = sigma
        self.gamma = gamma
        self.alpha = alpha
        self.time = time
        self.pairs = pairs
        self.sparsify = sparsify
        self.sign = sign
        self.normalize = normalize
        self.self_loop = self_loop
        self.threads = threads

    def __sklearn_tags__(self) -> Any:
        """What goes in: a square matrix of weights >= 0, sparse or not."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = tags.input_tags.sparse = True
        tags.requires_fit = True
        return tags

    def fit(self, X: GraphLike, y: Any = None) -> DiffusionKernel:
        """Notes the size of the graph ``X``."""
        self.n_features_in_ = as_graph(X).nodes
        return self

    def transform(self, X: GraphLike) -> sparse.csr_array:
        """The kernel of the graph ``X``."""
        check_is_fitted(self)
        return kernel(X, **self.get_params(deep=False))
