"""Kernels and searches on a Ray cluster.

``qdc.ray.kernel`` and ``qdc.ray.tune`` take the words of ``qdc.kernel`` and ``qdc.tune`` and give what those give:
the same kernel byte for byte, the same study trial by trial. The work is done in Ray tasks, on as many nodes as there
are; a task whose worker is killed is run again.

They join the cluster that ``ray.init`` joined before, or the one that ``RAY_ADDRESS`` names, or start one on this
machine. qdc must be installed on every node, in the same version.

    >>> import networkx, qdc, ray
    >>> _ = ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
    >>> graph = networkx.barabasi_albert_graph(500, 4, seed=0)
    >>> Q = qdc.ray.kernel(graph, mu=0.3, sigma=0.5, sparsify=qdc.TopK(8))
    >>> (Q != qdc.kernel(graph, mu=0.3, sigma=0.5, sparsify=qdc.TopK(8))).nnz
    0
    >>> report = qdc.ray.tune("csbm:n=60,homophily=0.2,seed=0", "gcn", trials=2, max_steps=5, splits=[0])
    >>> report["trials"]
    2
    >>> ray.shutdown()
"""

from __future__ import annotations

try:
    import ray  # noqa: F401
except ImportError as error:
    raise ImportError("qdc.ray needs Ray: pip install ray") from error

from .kernels import kernel
from .trials import tune

__all__ = ["kernel", "tune"]
