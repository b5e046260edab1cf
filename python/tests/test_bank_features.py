"""The channels of the presets, against NumPy."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from scipy import sparse

import qdc
from qdc import _core
from qdc._bank import Preset


def setting() -> tuple[Any, np.ndarray, np.ndarray]:
    graph = networkx.karate_club_graph()
    adjacency = networkx.to_numpy_array(graph, weight=None)
    features = np.random.default_rng(0).random((34, 60)) * (np.random.default_rng(1).random((34, 60)) < 0.2)
    return adjacency, features, transition(adjacency)


def transition(adjacency: np.ndarray) -> np.ndarray:
    looped = adjacency + np.eye(len(adjacency))
    root = looped.sum(1) ** -0.5
    return root[:, None] * looped * root  # type: ignore[no-any-return]


def window(matrix: np.ndarray, mu: float, sigma: float) -> np.ndarray:
    energies, vectors = np.linalg.eigh(matrix)
    return (vectors * np.exp(-((energies - mu) ** 2) / (2 * sigma**2))) @ vectors.T  # type: ignore[no-any-return]


def test_the_ends_are_the_filters_of_numpy() -> None:
    adjacency, features, matrix = setting()
    lowest = np.linalg.eigvalsh(matrix)[0]
    windows = [(1, 1), (1, 0.5), (1, 0.25), (1, 0.125), (lowest, 1), (lowest, 0.5)]
    expected = [features, matrix @ features, *(window(matrix, *where) @ features for where in windows)]
    for given in (features, sparse.csr_array(features)):
        channels = qdc.bank_features(adjacency, given)
        assert list(channels)[:2] == ["X", "L X"]
        assert list(channels)[5] == "gaussian(mu 1, sigma 0.125)"
        for (name, found), wanted in zip(channels.items(), expected, strict=True):
            assert found.dtype == np.float32
            assert np.abs(found - wanted).max() < 1e-4, name


def test_plain_divides_rows_by_their_sums() -> None:
    adjacency, features, matrix = setting()
    scaled = features / np.maximum(features.sum(1, keepdims=True), 1e-30)
    channels = list(qdc.bank_features(adjacency, features, preset="plain").values())
    assert np.abs(channels[0] - scaled).max() < 1e-6
    assert np.abs(channels[1] - matrix @ scaled).max() < 1e-5


def test_hard_windows_sum_to_the_features_and_rows_are_the_adjacency() -> None:
    adjacency, features, _ = setting()
    channels = qdc.bank_features(adjacency, features, preset="ranks")
    parts = [channels[f"rank window {number} of 5"] for number in range(1, 6)]
    assert np.abs(sum(parts) - features).max() < 1e-5
    assert np.abs(np.tensordot(parts[0], parts[3])) < 1e-4
    assert (channels["adjacency rows"] == adjacency).all()
    assert channels["statistics"].shape == (34, 27)


def test_neighbours_in_feature_space_have_channels_of_their_own() -> None:
    adjacency, features, _ = setting()
    channels = qdc.bank_features(adjacency, features, preset="ends-knn", threads=1)
    assert [name for name in channels if name.endswith("on 10 nearest")] == list(channels)[8:]
    assert len(channels) == 11
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    cosines = unit @ unit.T - np.eye(34)
    near = np.zeros((34, 34))
    for row, order in enumerate(np.argsort(-cosines, axis=1, kind="stable")[:, :10]):
        near[row, order] = cosines[row, order] > 1e-9
    expected = transition(np.maximum(near, near.T)) @ features
    assert np.abs(channels["L X on 10 nearest"] - expected).max() < 1e-5


def test_every_preset_is_known_and_nothing_else() -> None:
    adjacency, features, _ = setting()
    assert list(_core.presets()) == list(Preset.__args__)  # type: ignore[attr-defined]
    with pytest.raises(qdc.ParameterError, match="no preset 'end'"):
        qdc.bank_features(adjacency, features, preset="end")  # type: ignore[arg-type]
    for wrong in (features[:-1], features[0], np.where(features > 0.9, np.nan, features)):
        with pytest.raises(qdc.DataError):
            qdc.bank_features(adjacency, wrong)
    with pytest.raises(qdc.MemoryLimitError):
        qdc.bank_features(adjacency, features, preset="ranks", memory=100)
