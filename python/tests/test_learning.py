"""Datasets, and the networks of qdc trained on them."""

from __future__ import annotations

import json
import pickle
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import qdc


def test_datasets_load_with_their_splits(data_dir: str) -> None:
    dataset = qdc.datasets.load("cornell", data_dir)
    assert (dataset.graph.nodes, dataset.features.shape, dataset.classes) == (183, (183, 1703), 5)
    masks = (dataset.train_masks, dataset.validation_masks, dataset.test_masks)
    assert all(mask.shape == (10, 183) for mask in masks)
    assert not (masks[0] & masks[1]).any() and not (masks[1] & masks[2]).any()
    again = pickle.loads(pickle.dumps(dataset))
    assert again.graph == dataset.graph and np.array_equal(again.test_masks, dataset.test_masks)


def test_a_dataset_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(qdc.DataError, match="not in") as refused:
        qdc.datasets.load("cora", tmp_path)
    assert "qdc data get cora" in (refused.value.hint or "")
    with pytest.raises(qdc.DataError, match="no dataset"):
        qdc.datasets.load("corra")


def test_arrays_make_a_dataset() -> None:
    graph = networkx.cycle_graph(30)
    labels = np.arange(30) % 2
    dataset = qdc.datasets.Dataset(graph, np.eye(30), labels, name="ring")
    assert dataset.train_masks.shape == (10, 30) and dataset.classes == 2 and dataset.name == "ring"
    train, validation, test = np.array_split(np.eye(30, dtype=bool), 3)
    masks = tuple(part.any(axis=0, keepdims=True) for part in (train, validation, test))
    given = qdc.datasets.Dataset(graph, np.eye(30), labels, masks=masks)  # type: ignore[arg-type]
    assert np.array_equal(given.train_masks, masks[0])
    with pytest.raises(qdc.DataError, match="masks of shapes"):
        qdc.datasets.Dataset(graph, np.eye(30), labels, masks=(masks[0], masks[0], masks[0][:, :5]))
    with pytest.raises(qdc.DataError, match="in the training and in the validation"):
        qdc.datasets.Dataset(graph, np.eye(30), labels, masks=(masks[0], masks[0], masks[1]))
    with pytest.raises(qdc.DataError, match="features of shape"):
        qdc.datasets.Dataset(graph, np.ones(30), labels)
    with pytest.raises(qdc.QdcError, match="30"):
        qdc.datasets.Dataset(graph, np.eye(29), labels)


def test_training_learns_repeats_and_does_not_depend_on_threads() -> None:
    dataset = qdc.datasets.load("csbm:n=200,homophily=0.1,seed=0")
    options = {"mu": -0.5, "sigma": 0.3, "top_k": 8, "hidden": 8, "splits": [0, 3]}
    one, two = (qdc.train(dataset, "gcn+qdc", threads=threads, **options) for threads in (1, 2))
    assert one["test_mean"] == two["test_mean"] > 0.6
    assert [split["split"] for split in one["splits"]] == [0, 3]
    assert one["hyperparameters"]["mu"] == -0.5 and one["model"] == "gcn+qdc"
    spectrum = qdc.Spectrum(dataset.graph)
    reused = qdc.train(dataset, "gcn+qdc", spectrum=spectrum, **options)
    assert reused["test_mean"] == pytest.approx(one["test_mean"], abs=0.05)
    assert "gat+multiscale" in qdc.models()


def test_wrong_names_are_refused_with_the_closest() -> None:
    with pytest.raises(qdc.ParameterError, match="no model") as refused:
        qdc.train("csbm:n=60,homophily=0.1,seed=0", "gcn+qcd")
    assert "gcn+qdc" in (refused.value.hint or "")
    with pytest.raises(qdc.ParameterError, match="hyper-parameter") as refused:
        qdc.train("csbm:n=60,homophily=0.1,seed=0", "gcn+qdc", hiden=8)
    assert "hidden" in (refused.value.hint or "")
    with pytest.raises(qdc.ParameterError, match="split 11"):
        qdc.train("csbm:n=60,homophily=0.1,seed=0", "gcn", splits=[11])


def test_memory_is_a_limit_of_trainings_and_searches() -> None:
    name = "csbm:n=400,homophily=0.1,seed=0"
    with pytest.raises(qdc.MemoryLimitError, match="MB of memory, and 30 MB are allowed") as refused:
        qdc.train(name, "gcn+qdc", hidden=256, layers=4, splits=[0], memory=30e6)
    assert "memory" in (refused.value.hint or "")
    assert qdc.train(name, "gcn+qdc", hidden=8, splits=[0], max_steps=5, memory=1e9)["splits"]
    searched = qdc.tune(name, "gcn+qdc", trials=2, splits=[0], max_steps=2, memory=30e6, jobs=1)
    assert searched["trials"] == 2 and sum(searched["failed"].values()) == 2


def test_the_metric_is_the_one_asked_for() -> None:
    name = "csbm:n=120,homophily=0.1,seed=0"
    by_accuracy, by_auc = (
        qdc.train(name, "gcn", hidden=8, splits=[0], max_steps=20, metric=metric) for metric in ("accuracy", "auc")
    )
    assert (by_accuracy["metric"], by_auc["metric"]) == ("accuracy", "auc")
    assert by_accuracy["test_mean"] != by_auc["test_mean"]
    with pytest.raises(qdc.ParameterError, match="metric"):
        qdc.tune(name, "gcn", trials=1, metric="recall")  # type: ignore[arg-type]


def test_raising_in_progress_stops_a_training() -> None:
    calls = 0

    def progress(phase: str, done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        assert threading.current_thread() is threading.main_thread()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        qdc.train("csbm:n=2000,homophily=0.1,seed=0", "gcn", hidden=64, progress=progress)
    assert calls == 1


def test_a_search_does_not_depend_on_threads_or_jobs() -> None:
    made = [
        qdc.tune(
            "csbm:n=80,homophily=0.1,seed=0", "gcn+qdc", trials=6, space="wide", seed=2, threads=threads, jobs=jobs
        )
        for threads, jobs in ((1, 1), (1, 3), (2, None))
    ]
    assert made[0]["best"] == made[1]["best"] == made[2]["best"]
    with pytest.raises(qdc.ParameterError, match="jobs = 0"):
        qdc.tune("csbm:n=80,homophily=0.1,seed=0", "mlp", jobs=0)
    with pytest.raises(qdc.ParameterError, match="threads = 0"):
        qdc.tune("csbm:n=80,homophily=0.1,seed=0", "mlp", threads=0)


def test_a_trial_has_the_same_scores_by_search_by_training_and_by_the_command_line(tmp_path: Path) -> None:
    name, study = "csbm:n=80,homophily=0.1,seed=0", tmp_path / "studies.db"
    qdc.tune(name, "gcn+multiscale", trials=3, space="wide", study=study, splits=[0, 2], max_steps=20)
    with sqlite3.connect(study) as file:
        rows = file.execute("SELECT trial_id, value_json FROM trial_user_attributes WHERE key = 'scores'").fetchall()
        scores = {trial: json.loads(value) for trial, value in rows}
    assert len(scores) == 3
    for number, (trial, expected) in enumerate(sorted(scores.items())):
        command = [sys.executable, "-m", "qdc", "train", "--from", str(study), "--trial", str(number)]
        command += ["--json", "--quiet"]
        again = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout)
        by_hand = qdc.train(name, "gcn+multiscale", splits=[0, 2], max_steps=20, **settable(again["hyperparameters"]))
        for one in (expected, again["splits"], by_hand["splits"]):
            for split in one:
                del split["seconds"]
        assert again["splits"] == expected, trial
        assert by_hand["splits"] == expected, trial


def settable(hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """Those that were set; of two that exclude each other the other is missing."""
    return {name: value for name, value in hyperparameters.items() if value is not None}


def test_a_search_is_kept_in_a_file_that_optuna_opens(tmp_path: Path) -> None:
    import optuna

    study = tmp_path / "studies.db"
    options = {"trials": 4, "space": "wide", "study": study, "seed": 1}
    report = qdc.tune("csbm:n=80,homophily=0.1,seed=0", "gcn+qdc", **options)
    assert report["trials"] == 4 and 0.0 < report["best"]["validation"] <= 1.0
    loaded = optuna.load_study(study_name=report["study"], storage=f"sqlite:///{study}")
    assert loaded.best_value == pytest.approx(report["best"]["validation"])
    assert qdc.tune("csbm:n=80,homophily=0.1,seed=0", "gcn+qdc", **options)["trials"] == 4, "nothing was left to do"
    given: list[dict[str, Any]] = [{}, {"hidden": 16}]
    begun = qdc.tune(
        "csbm:n=80,homophily=0.1,seed=0", "mlp", trials=2, start=given, seeds=2, finalists=2, study=study, splits=[0]
    )
    trials = optuna.load_study(study_name=begun["study"], storage=f"sqlite:///{study}").trials
    assert [trial.params["hidden"] for trial in trials] == [64, 16]
    assert begun["best"]["seeds"] == 2
    with pytest.raises(qdc.ParameterError, match="several seeds"):
        qdc.tune("csbm:n=80,homophily=0.1,seed=0", "mlp", trials=1, finalists=2)
    with pytest.raises(qdc.ParameterError, match="hidden = 15"):
        qdc.tune("csbm:n=80,homophily=0.1,seed=0", "mlp", trials=1, start=[{"hidden": 15}])
    in_memory = qdc.tune("csbm:n=80,homophily=0.1,seed=0", "mlp", trials=2)
    assert in_memory["trials"] == 2
    with pytest.raises(qdc.ParameterError, match="sampler"):
        qdc.tune("csbm:n=80,homophily=0.1,seed=0", "mlp", trials=2, sampler="grid")  # type: ignore[arg-type]


def test_eigenpairs_of_another_matrix_are_refused() -> None:
    dataset = qdc.datasets.load("csbm:n=120,homophily=0.1,seed=0")
    other = qdc.Spectrum(qdc.datasets.load("csbm:n=120,homophily=0.1,seed=1").graph)
    with pytest.raises(qdc.errors.ParameterError, match="another transition matrix"):
        qdc.train(dataset, "gcn+qdc", spectrum=other, splits=[0], pairs=16)
    smaller = qdc.Spectrum(qdc.datasets.load("csbm:n=100,homophily=0.1,seed=0").graph)
    with pytest.raises(qdc.errors.ParameterError, match="number of vertices"):
        qdc.train(dataset, "gcn", spectrum=smaller, splits=[0])
    heavier = qdc.Spectrum(dataset.graph, self_loop=2.0)
    with pytest.raises(qdc.errors.ParameterError, match="self-loop weight"):
        qdc.train(dataset, "gcn+qdc", spectrum=heavier, splits=[0], pairs=16)
