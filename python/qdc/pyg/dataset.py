"""The datasets of qdc as PyTorch Geometric knows them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from typing import Any

import torch
from torch_geometric.data import Data, InMemoryDataset

from .. import datasets
from ..convert import to_edge_index


class Dataset(InMemoryDataset):  # type: ignore[misc]
    """A dataset of ``qdc.datasets`` with one graph, its masks of shape (vertices, splits).

    Without ``root`` everything happens in memory. With it, the result of ``pre_transform`` is kept in that folder under
    a name that depends on every parameter of the transform, so that another transform is never served a stale file.

    Nothing is downloaded here: see ``qdc.datasets.load`` for where the files come from. Generators work too:

    >>> import qdc
    >>> dataset = qdc.pyg.Dataset("csbm:n=100,homophily=0.2,seed=0", pre_transform=qdc.pyg.QDC(mu=-0.5))
    >>> dataset.num_classes, dataset[0].x.shape, dataset[0].train_mask.shape
    (2, torch.Size([100, 32]), torch.Size([100, 10]))
    """

    def __init__(
        self,
        name: str,
        root: str | None = None,
        transform: Callable[[Data], Data] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
        data_dir: str | None = None,
        force_reload: bool = False,
    ) -> None:
        self.name = name
        self._data_dir = data_dir
        self._keep = root is not None
        super().__init__(root, transform, pre_transform, pre_filter, log=False, force_reload=force_reload)
        if self._keep:
            self.load(self.processed_paths[0])
        else:
            self.data, self.slices = self.collate(self._read())

    @property
    def has_process(self) -> bool:
        return self._keep

    @property
    def processed_dir(self) -> str:
        """A folder for each recipe: what another transform made is neither served nor warned about."""
        recipe = repr((self.name, self.pre_transform, self.pre_filter))
        digest = hashlib.sha256(recipe.encode()).hexdigest()[:16]
        return os.path.join(self.root, "processed", re.sub(r"[^\w.-]", "_", self.name) + f"-{digest}")

    @property
    def processed_file_names(self) -> str:
        return "data.pt"

    def process(self) -> None:
        """Makes the file that ``root`` keeps."""
        self.save(self._read(), self.processed_paths[0])

    def _read(self) -> list[Data]:
        data = as_data(datasets.load(self.name, data_dir=self._data_dir))
        if self.pre_filter is not None and not self.pre_filter(data):
            return []
        return [data if self.pre_transform is None else self.pre_transform(data)]

    def __repr__(self) -> str:
        return f"Dataset({self.name!r})"


def as_data(dataset: datasets.Dataset) -> Data:
    """The graph of a dataset with features ``x``, labels ``y`` and the masks of all splits."""
    edge_index, _ = to_edge_index(dataset.graph)
    features: Any = dataset.features if not hasattr(dataset.features, "toarray") else dataset.features.toarray()
    return Data(
        x=torch.from_numpy(features),
        edge_index=edge_index,
        y=torch.from_numpy(dataset.labels),
        train_mask=torch.from_numpy(dataset.train_masks.T.copy()),
        val_mask=torch.from_numpy(dataset.validation_masks.T.copy()),
        test_mask=torch.from_numpy(dataset.test_masks.T.copy()),
    )
