"""Kernels and searches on a Ray cluster of two nodes, whose workers are killed on the way."""

from __future__ import annotations

import inspect
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from conftest import trials_of
from scipy import sparse

import qdc

ray = pytest.importorskip("ray", reason="Ray is not installed, so qdc.ray was not tested: pip install ray")

from ray.cluster_utils import Cluster  # noqa: E402

from qdc.ray import bar, kernels, places  # noqa: E402

RUNNING, COMPLETE = 0, 1
Built = tuple[sparse.csr_array, dict[str, Any]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two nodes on this machine, with room for a worker each."""
    # Workers look for modules in the folder of the program first, and here lie the sources without the compiled part.
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("program"))
    settings = pytest.MonkeyPatch()
    settings.setenv("RAY_USAGE_STATS_ENABLED", "0")
    settings.setenv("RAY_worker_niceness", "0")  # else a busy machine hardly lets workers run
    node = {"num_cpus": 1, "object_store_memory": 100_000_000, "include_dashboard": False}
    started = Cluster(initialize_head=True, head_node_args=node)
    try:
        started.add_node(**node)
        ray.init(address=started.address, log_to_driver=False, logging_level="error")
        started.wait_for_nodes()
        yield started
    finally:
        ray.shutdown()
        started.shutdown()
        settings.undo()
        os.chdir(before)


def power_law(nodes: int) -> qdc.Graph:
    return qdc.Graph(networkx.barabasi_albert_graph(nodes, 6, seed=1))


@pytest.fixture(scope="module")
def graph() -> qdc.Graph:
    return power_law(3500)


@pytest.fixture(scope="module")
def window(graph: qdc.Graph) -> Built:
    """The kernel of one process."""
    return qdc.kernel(graph, **WINDOW, return_report=True)


def same_bytes(one: sparse.csr_array, other: sparse.csr_array) -> bool:
    def parts(matrix: sparse.csr_array) -> list[Any]:
        return [(array.dtype, array.tobytes()) for array in (matrix.data, matrix.indices, matrix.indptr)]

    return parts(one) == parts(other)


def kill_worker(task: str) -> None:
    """kill -9 of a worker in the midst of a task of that name."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for process in Path("/proc").glob("[0-9]*"):
            if runs(process, task):
                pid = int(process.name)
                os.kill(pid, signal.SIGSTOP)  # so that it does not end the task before it is killed
                still = runs(process, task)
                os.kill(pid, signal.SIGKILL if still else signal.SIGCONT)
                if still:
                    return
        time.sleep(0.005)
    raise AssertionError(f"no worker was seen to run {task!r}")


def runs(process: Path, task: str) -> bool:
    try:
        return (process / "cmdline").read_bytes().startswith(f"ray::{task}".encode())
    except OSError:
        return False


class Killing:
    """Progress that kills a worker after the first step, and once only."""

    def __init__(self, task: str) -> None:
        self.task, self.killed = task, False

    def __call__(self, phase: str, done: int, total: int) -> None:
        if 0 < done < total and not self.killed:
            self.killed = True
            kill_worker(self.task)


WINDOW: dict[str, Any] = {"mu": 0.3, "sigma": 0.1, "sparsify": qdc.TopK(8)}
KERNELS: dict[str, tuple[int, dict[str, Any]]] = {
    "top k": (1500, WINDOW),
    "a threshold on absolute values": (
        1500,
        {"mu": 0.0, "sigma": 0.4, "sparsify": qdc.Epsilon(1e-3), "sign": "absolute", "normalize": "row"},
    ),
    "local": (1500, {"mu": 0.3, "sigma": 0.5, "sparsify": qdc.TopK(8), "solver": "local", "accuracy": 1e-3}),
    "some pairs": (300, {"mu": 0.3, "sigma": 0.2, "pairs": 16, "sparsify": qdc.TopK(8), "self_loop": 0.5}),
    "pagerank": (300, {"filter": "ppr", "alpha": 0.2, "solver": "elimination", "sparsify": qdc.Epsilon(1e-3)}),
}


@pytest.mark.parametrize(("nodes", "options"), KERNELS.values(), ids=KERNELS.keys())
def test_two_nodes_make_the_kernel_of_one_process(cluster: Any, nodes: int, options: dict[str, Any]) -> None:
    graph, told = power_law(nodes), []
    made, report = qdc.ray.kernel(graph, **options, progress=lambda *step: told.append(step), return_report=True)
    expected, its_report = qdc.kernel(graph, **options, return_report=True)
    assert same_bytes(made, expected)
    assert report == its_report
    by_rows = report["solver"] in ("chebyshev", "local")
    assert len(told) > 1 if by_rows else len(told) == 1
    assert told[-1] == ("rows", nodes, nodes)
    assert [step[1] for step in told] == sorted({step[1] for step in told})


def test_a_worker_killed_during_the_build_changes_nothing(cluster: Any, graph: qdc.Graph, window: Built) -> None:
    killing = Killing("qdc rows")
    made, report = qdc.ray.kernel(graph, **WINDOW, progress=killing, return_report=True)
    assert killing.killed and same_bytes(made, window[0]) and report == window[1]


def test_a_node_lost_during_the_build_changes_nothing(cluster: Any, graph: qdc.Graph, window: Built) -> None:
    third = cluster.add_node(num_cpus=1, object_store_memory=100_000_000, include_dashboard=False)
    cluster.wait_for_nodes()
    lost = []

    def lose(phase: str, done: int, total: int) -> None:
        if not lost:
            lost.append(done)
            cluster.remove_node(third, allow_graceful=False)

    assert same_bytes(qdc.ray.kernel(graph, **WINDOW, progress=lose), window[0])
    assert 0 < lost[0] < graph.nodes


def test_a_range_whose_workers_are_all_lost_is_named(
    cluster: Any, graph: qdc.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "RETRIES", 0)
    with pytest.raises(qdc.QdcError, match=r"rows \d+:\d+: lost 1 times with its worker") as lost:
        qdc.ray.kernel(graph, **WINDOW, progress=Killing("qdc rows"))
    assert "logs" in (lost.value.hint or "")


SEARCH: dict[str, Any] = {"trials": 6, "seed": 3, "batch": 4, "max_steps": 120, "splits": [0, 1]}
DATASET = "csbm:n=600,homophily=0.2,seed=0"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Any]]:
    """The report and the trials of the search in one process."""
    folder = tmp_path_factory.mktemp("one")
    report = qdc.tune(DATASET, "gcn+qdc", **SEARCH, study=folder / "study.db")
    return report["best"], trials_of(folder / "study.db", folder)


def check_killed_search(study: str, folder: Path, searched: tuple[Any, list[Any]]) -> None:
    killing = Killing("qdc trial")
    report = qdc.ray.tune(DATASET, "gcn+qdc", **SEARCH, study=study, progress=killing)
    best, trials = searched
    assert killing.killed
    assert (report["trials"], report["left"], report["failed"]) == (6, 0, {})
    assert report["best"] == best
    found = trials_of(study, folder)
    assert [trial[0] for trial in found] == [COMPLETE] * 6, "none is lost, and none is doubled"
    assert found == trials


def test_a_worker_killed_during_a_search_changes_nothing(
    cluster: Any, searched: tuple[Any, list[Any]], tmp_path: Path
) -> None:
    check_killed_search(str(tmp_path / "study.db"), tmp_path, searched)


def test_a_worker_killed_during_a_search_on_postgresql_changes_nothing(
    cluster: Any, searched: tuple[Any, list[Any]], postgres: str, tmp_path: Path
) -> None:
    check_killed_search(postgres, tmp_path, searched)


def test_a_search_stopped_and_called_again_ends_like_one_that_was_not(
    cluster: Any, searched: tuple[Any, list[Any]], tmp_path: Path
) -> None:
    study = tmp_path / "study.db"

    def stop(phase: str, done: int, total: int) -> None:
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        qdc.ray.tune(DATASET, "gcn+qdc", **SEARCH, study=study, progress=stop)
    while any(trial[0] == RUNNING for trial in trials_of(study, tmp_path)):
        time.sleep(0.1)  # on a busy machine trials are put back in the queue after the call has ended
    assert qdc.ray.tune(DATASET, "gcn+qdc", **SEARCH, study=study)["left"] == 0
    assert trials_of(study, tmp_path) == searched[1]


def test_a_program_killed_during_a_search_is_continued_by_the_same_call(
    cluster: Any, searched: tuple[Any, list[Any]], tmp_path: Path
) -> None:
    study = tmp_path / "study.db"
    program = f"""
import os, qdc, ray, signal
ray.init(address={cluster.address!r}, log_to_driver=False, logging_level="error")
def tell(phase, done, total):
    if done > 0:
        os.kill(os.getpid(), signal.SIGKILL)
qdc.ray.tune({DATASET!r}, "gcn+qdc", **{SEARCH!r}, study={str(study)!r}, progress=tell)
"""
    driver = subprocess.run([sys.executable, "-I", "-c", program], timeout=300)
    assert driver.returncode == -signal.SIGKILL
    assert any(trial[0] != COMPLETE for trial in trials_of(study, tmp_path)), "it was killed too late"
    assert qdc.ray.tune(DATASET, "gcn+qdc", **SEARCH, study=study)["left"] == 0
    assert trials_of(study, tmp_path) == searched[1]


def test_both_calls_take_the_words_of_the_call_in_one_process() -> None:
    for there, here in [(qdc.ray.kernel, qdc.kernel), (qdc.ray.tune, qdc.tune)]:
        assert list(inspect.signature(there).parameters) == list(inspect.signature(here).parameters)


def test_workers_search_the_space_of_a_file_that_they_do_not_see(cluster: Any, tmp_path: Path) -> None:
    space = tmp_path / "space.toml"
    space.write_text('[fixed]\npairs = "all"\n[search]\nhidden = [2, 4]\n')
    short = {"trials": 2, "max_steps": 3, "splits": [0], "space": str(space)}
    expected = qdc.tune(DATASET, "gcn+qdc", **short)["best"]

    def remove(phase: str, done: int, total: int) -> None:
        space.unlink(missing_ok=True)

    assert qdc.ray.tune(DATASET, "gcn+qdc", **short, progress=remove)["best"] == expected


def test_a_trial_that_cannot_be_trained_fails_with_its_reason_and_the_search_goes_on(cluster: Any) -> None:
    short = {"trials": 2, "max_steps": 3, "splits": [0], "memory": 1e6}
    there, here = qdc.ray.tune(DATASET, "gcn", **short), qdc.tune(DATASET, "gcn", **short)
    assert there["failed"] == here["failed"] and sum(there["failed"].values()) == 2


def test_wrong_calls_are_refused_with_a_remedy(cluster: Any, graph: qdc.Graph) -> None:
    refused: list[tuple[type[qdc.QdcError], str, Callable[[], Any]]] = [
        (qdc.ParameterError, "1000 CPUs", lambda: qdc.ray.kernel(graph, threads=1000)),
        (qdc.ParameterError, "bytes of memory", lambda: qdc.ray.tune(DATASET, memory=1e18)),
        (qdc.ParameterError, "has a GPU", lambda: qdc.ray.kernel(graph, device="cuda")),
        (qdc.ParameterError, "a Python function", lambda: qdc.ray.kernel(graph, lambda energy: energy**2)),
        (qdc.ParameterError, "progress = 'yes'", lambda: qdc.ray.kernel(graph, progress="yes")),  # type: ignore[call-overload]
        (qdc.ParameterError, "accuracy", lambda: qdc.ray.kernel(graph, solver="local")),
        (qdc.MemoryLimitError, "memory", lambda: qdc.ray.kernel(graph, solver="dense", memory=1000)),
        (qdc.ParameterError, "no model", lambda: qdc.ray.tune(DATASET, "gnc")),
        (qdc.ParameterError, "no.toml", lambda: qdc.ray.tune(DATASET, space="no.toml")),
    ]
    for family, words, wrong in refused:
        with pytest.raises(family, match=words) as error:
            wrong()
        assert type(error.value) is family and error.value.hint


def test_a_call_that_is_stopped_leaves_no_task_behind(cluster: Any, graph: qdc.Graph) -> None:
    def stop(phase: str, done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        qdc.ray.kernel(graph, **WINDOW, progress=stop)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and any(runs(process, "qdc") for process in Path("/proc").glob("[0-9]*")):
        time.sleep(0.05)
    assert time.monotonic() < deadline, "tasks go on that nobody waits for"


def test_gpus_are_reserved_where_the_cluster_has_some_that_work(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [
        {"Alive": True, "Resources": {"CPU": 8.0, "GPU": 2.0, "memory": 1e10}},
        {"Alive": True, "Resources": {"CPU": 4.0, "memory": 1e10}},
        {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0, "memory": 1e12}},
    ]
    tried: list[str | None] = []

    def works(problem: str | None) -> Callable[[], str | None]:
        return lambda: tried.append(problem) or problem  # type: ignore[func-returns-value]

    monkeypatch.setattr(places.ray, "nodes", lambda: nodes)
    monkeypatch.setattr(places, "gpu_problem", works(None))
    for device in ("auto", "cuda"):
        found = places.place(device, 2, None)  # type: ignore[arg-type]
        assert (found.device, found.count) == ("cuda", 2)
        assert found.options == {"num_cpus": 2, "num_gpus": 1, "max_retries": places.RETRIES}
    assert tried == [None], "a GPU that is insisted on is tried by the work itself"
    found = places.place("cpu", 1, 4e9)
    assert (found.device, found.count) == ("cpu", 4)
    assert found.options["num_gpus"] == 0 and found.options["memory"] == 4_000_000_000

    monkeypatch.setattr(places, "gpu_problem", works("no driver"))
    with pytest.warns(RuntimeWarning, match="GPUs of the Ray cluster are not used: no driver"):
        found = places.place("auto", 1, None)
    assert (found.device, found.count, found.options["num_gpus"]) == ("cpu", 12, 0)
    assert places.place("cuda", 1, None).options["num_gpus"] == 1
    del nodes[0], tried[:]
    assert places.place("auto", 1, None).options == {**found.options, "num_gpus": 0}
    assert tried == [], "without GPUs nothing is tried"


def test_a_gpu_that_ray_offers_and_that_does_not_work_is_left_alone(
    cluster: Any, graph: qdc.Graph, window: Built, searched: tuple[Any, list[Any]]
) -> None:
    if places._problem_here() is None:
        pytest.skip("this machine has a GPU that works")
    offering = cluster.add_node(num_cpus=1, num_gpus=1, object_store_memory=100_000_000, include_dashboard=False)
    cluster.wait_for_nodes()
    try:
        with pytest.warns(RuntimeWarning, match="GPUs of the Ray cluster are not used"):
            assert same_bytes(qdc.ray.kernel(graph, **WINDOW), window[0])
        with pytest.warns(RuntimeWarning, match="GPUs of the Ray cluster are not used"):
            assert qdc.ray.tune(DATASET, "gcn+qdc", **SEARCH)["best"] == searched[0]
        for insisted in (
            lambda: qdc.ray.kernel(graph, **WINDOW, device="cuda"),
            lambda: qdc.ray.tune(DATASET, "gcn", trials=1, max_steps=2, splits=[0], device="cuda"),
        ):
            with pytest.raises(qdc.QdcError) as error:
                insisted()
            assert "cpu" in (error.value.hint or "")
    finally:
        cluster.remove_node(offering)


def test_ranges_hold_every_row_once_and_follow_the_plan() -> None:
    for nodes in (1, 63, 64, 65, 1000, 10**6):
        for flops in (1.0, 3e9, 1e12, 1e15):
            ranges = kernels.row_ranges(nodes, {"route": "chebyshev", "flops": flops}, 3, "cpu")
            assert np.array_equal(np.concatenate([np.arange(*rows) for rows in ranges]), np.arange(nodes))
            each = flops * (ranges[0][1] - ranges[0][0]) / nodes
            assert each <= 2e11 * 1.01 + 64 * flops / nodes, "none is much to lose"
            assert len(ranges) == 1 or flops / len(ranges) > 0.5e9, "none is too little to be worth the trip"
    assert len(kernels.row_ranges(10**6, {"route": "local", "flops": 1e15}, 3, "cuda")) < 100


def test_the_bar_is_shown_on_terminals_and_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, progress, visible in [
        (Terminal(), None, True),
        (Terminal(), False, False),
        (io.StringIO(), None, False),
        (io.StringIO(), True, True),
    ]:
        monkeypatch.setattr("sys.stderr", stream)
        with bar.shown(progress) as tell:
            if tell is not None:
                tell("rows", 1, 2)
                tell("rows", 2, 2)
        written = stream.getvalue()
        assert bool(written) == visible
        assert not visible or ("[" + "#" * 30 + "] 2/2" in written and written.endswith("\n"))
    heard: list[Any] = []
    with bar.shown(lambda *step: heard.append(step)) as tell:
        assert tell is not None
        tell("rows", 1, 2)
    assert heard == [("rows", 1, 2)]
