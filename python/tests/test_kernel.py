"""qdc.kernel and qdc.Spectrum against the golden files of NumPy and SciPy."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
from conftest import adjacency, golden
from scipy import sparse

import qdc

GRAPHS = ["karate", "barbell", "weighted", "pieces", "cornell"]
RULES = {"threshold": ("eps", qdc.Epsilon), "absolute": ("eps", qdc.Epsilon), "topk": ("k", qdc.TopK)}


def filter_of(kernel: dict[str, Any]) -> qdc.Filter:
    if kernel["kind"] in ("qdc", "nearest"):
        return qdc.Filter.gaussian(kernel["mu"], kernel["sigma"])
    if kernel["kind"] == "bpdc":
        return qdc.Filter.band(kernel["mu"], kernel["gamma"])
    return qdc.Filter.ppr(kernel["alpha"]) if kernel["kind"] == "ppr" else qdc.Filter.heat(kernel["t"])


@pytest.mark.parametrize("name", GRAPHS)
def test_kernels_equal_the_golden_files_by_every_way_to_compute_them(name: str) -> None:
    index, arrays = golden("kernels.json")["graphs"][name], golden(f"kernels_{name}.npz")
    graph = qdc.Graph(adjacency(arrays, index["n"]))
    spectrum = qdc.Spectrum(graph)
    np.testing.assert_allclose(spectrum.eigenvalues, arrays["eigenvalues"], atol=1e-12)
    compared = 0
    for kernel in index["kernels"]:
        key, chosen = kernel["name"], filter_of(kernel)
        pairs = kernel["k"] if kernel["kind"] == "nearest" else "all"
        for way in (partial(qdc.kernel, graph), spectrum.kernel):
            build = partial(way, chosen, pairs=pairs)
            dense = build(sparsify=None, sign="absolute", normalize=None).toarray()
            np.testing.assert_allclose(dense, arrays[f"{key}.dense"], atol=1e-10)
            for case in kernel["sparse"]:
                parameter, rule = RULES[case["rule"]]
                options: dict[str, Any] = {"sparsify": rule(case[parameter])}
                options["sign"] = "absolute" if case["rule"] == "absolute" else "positive"
                at = f"{key}.{case['name']}"
                for normalize, values in ((None, "kept"), ("sym", "normalised")):
                    made = build(normalize=normalize, **options)
                    assert np.array_equal(made.indptr, arrays[f"{at}.indptr"]), at
                    assert np.array_equal(made.indices, arrays[f"{at}.indices"]), at
                    # Dividing by the sum of a row that keeps next to nothing enlarges the error of what it keeps.
                    smallest = np.abs(arrays[f"{at}.kept"]).min(initial=1.0)
                    np.testing.assert_allclose(
                        made.data, arrays[f"{at}.{values}"], rtol=0, atol=1e-10 / min(smallest, 1.0)
                    )
                    compared += 1
    assert compared >= 20


def test_the_result_is_a_csr_array_whose_arrays_scipy_did_not_copy(karate: sparse.csr_array) -> None:
    kernel = qdc.kernel(karate, mu=0.3, sigma=0.1)
    assert isinstance(kernel, sparse.csr_array)
    assert kernel.indices.dtype == kernel.indptr.dtype == np.int32
    assert kernel.has_canonical_format
    assert kernel.data.base is not None  # memory that Rust allocated
    np.testing.assert_allclose(kernel.toarray(), kernel.toarray().T, atol=1e-15)


def test_the_report_says_what_was_done(karate: sparse.csr_array) -> None:
    matrix, report = qdc.kernel(karate, mu=0.3, sigma=0.1, return_report=True)
    assert (report["nodes"], report["entries"]) == (34, matrix.nnz)
    assert report["parameters"] == {"mu": 0.3, "sigma": 0.1}
    assert report["solver"] in ("chebyshev", "elimination", "dense") and report["error_bound"] < 1e-9


def test_the_local_route_is_as_accurate_as_asked_for(random_graph: sparse.csr_array) -> None:
    make = partial(qdc.kernel, random_graph, mu=0.3, sigma=0.5, sparsify=qdc.TopK(8), normalize=None)
    exact = qdc.kernel(random_graph, mu=0.3, sigma=0.5, sparsify=qdc.TopK(random_graph.shape[0]), normalize=None)
    local, report = make(solver="local", accuracy=1e-4, return_report=True)
    assert report["solver"] == "local" and report["error_estimate"] <= 1e-4
    rows, columns = local.nonzero()
    error = np.abs(np.asarray(local[rows, columns]) - np.asarray(exact[rows, columns])).max()
    assert error <= report["error_bound"]
    with pytest.raises(qdc.ParameterError, match="accurate"):
        make(solver="local")


@pytest.mark.parametrize("by_pairs", [False, True])
def test_a_device_is_asked_for_by_name(karate: sparse.csr_array, by_pairs: bool) -> None:
    spectrum = qdc.Spectrum(karate)

    def make(device: Any) -> sparse.csr_array:
        if by_pairs:
            return spectrum.kernel(mu=0.3, sigma=0.1, pairs=9, device=device)
        return qdc.kernel(karate, mu=0.3, sigma=0.1, device=device)

    whole = make("auto")
    assert (make("cpu") != whole).nnz == 0
    with pytest.raises(qdc.ParameterError, match="device: 'gpu' is none of auto, cpu and cuda"):
        make("gpu")
    try:
        made = make("cuda")
    except qdc.QdcError as error:
        assert "CUDA" in str(error)
    else:
        assert abs(made - whole).max() < 1e-11


def test_a_function_is_a_filter_and_its_exception_comes_through(karate: sparse.csr_array) -> None:
    by_name = qdc.kernel(karate, "heat", time=2.0, sparsify=None)
    by_function = qdc.kernel(karate, lambda energy: np.exp(-2.0 * (1.0 - energy)), sparsify=None)
    np.testing.assert_allclose(by_name.toarray(), by_function.toarray(), atol=1e-9)

    def broken(energy: float) -> float:
        raise ZeroDivisionError("from the filter")

    with pytest.raises(ZeroDivisionError, match="from the filter"):
        qdc.kernel(karate, broken)
    with pytest.raises(ZeroDivisionError, match="from the filter"):
        qdc.Filter.custom(broken)(0.5)


def test_rows_put_together_are_the_whole_kernel(random_graph: sparse.csr_array) -> None:
    options: dict[str, Any] = {"mu": 0.3, "sigma": 0.2, "sparsify": qdc.Epsilon(1e-3)}
    pieces = [qdc.build_rows(random_graph, rows, **options) for rows in (slice(0, 120), range(120, 300))]
    whole = qdc.kernel(random_graph, normalize=None, **options)
    joined = sparse.vstack(pieces).tocsr()
    assert np.array_equal(joined.indices, whole.indices)
    np.testing.assert_allclose(joined.data, whole.data, atol=1e-12)
    with pytest.raises(qdc.ParameterError, match="no range of rows"):
        qdc.build_rows(random_graph, slice(0, 10, 2))


def test_a_spectrum_of_some_pairs_serves_kernels_of_those_pairs(random_graph: sparse.csr_array) -> None:
    spectrum = qdc.Spectrum(random_graph, pairs=40, around=0.3)
    assert len(spectrum) >= 40 and spectrum.eigenvectors.shape == (300, len(spectrum))
    assert not spectrum.eigenvectors.flags.writeable and spectrum.eigenvectors.flags.f_contiguous
    gram = spectrum.eigenvectors.T @ spectrum.eigenvectors
    np.testing.assert_allclose(gram, np.eye(len(spectrum)), atol=1e-10)
    again = spectrum.kernel(mu=0.3, sigma=0.1)
    direct = qdc.kernel(random_graph, mu=0.3, sigma=0.1, pairs=40)
    np.testing.assert_allclose(again.toarray(), direct.toarray(), atol=1e-9)
    assert spectrum.report["pairs"] == len(spectrum)


def test_views_of_a_spectrum_outlive_its_name(karate: sparse.csr_array) -> None:
    values, vectors = qdc.Spectrum(karate).eigenvalues, qdc.Spectrum(karate).eigenvectors
    for _ in range(50):
        qdc.Spectrum(karate)
    transition = karate + sparse.eye_array(34)
    roots = np.sqrt(transition.sum(axis=1))
    transition = transition / np.outer(roots, roots)
    np.testing.assert_allclose(transition @ vectors, vectors * values, atol=1e-10)


@pytest.mark.parametrize("solver", ["lobpcg", "window", "dense"])
def test_a_mu_far_outside_the_spectrum_gives_the_pairs_at_its_end(solver: str) -> None:
    import networkx

    graph = qdc.Graph(networkx.disjoint_union(networkx.gnm_random_graph(150, 500, seed=1), networkx.star_graph(6)))
    every = qdc.Spectrum(graph).eigenvalues
    for around, wanted in ((1e8, every[-12:]), (-1e8, every[:12])):
        found = qdc.Spectrum(graph, pairs=12, around=around, solver=solver).eigenvalues
        np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_results_do_not_depend_on_threads(seed: int) -> None:
    import networkx

    graph = qdc.Graph(networkx.barabasi_albert_graph(400, 3, seed=seed))
    one, two = (qdc.kernel(graph, mu=0.2, sigma=0.1, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.indices, two.indices) and np.array_equal(one.data, two.data)
    one, two = (qdc.Spectrum(graph, pairs=30, around=0.2, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.eigenvectors, two.eigenvectors)


def test_the_number_of_threads_can_be_set_for_every_call(karate: sparse.csr_array) -> None:
    try:
        qdc.set_threads(1)
        assert qdc.kernel(karate).shape == (34, 34)
    finally:
        qdc.set_threads(None)
    with pytest.raises(qdc.ParameterError, match="threads = 0"):
        qdc.set_threads(0)
    with pytest.raises(qdc.ParameterError, match="threads = -1"):
        qdc.kernel(karate, threads=-1)


def test_progress_is_told_from_the_calling_thread(random_graph: sparse.csr_array) -> None:
    import threading

    told: list[tuple[str, int, int]] = []
    threads = set()

    def progress(phase: str, done: int, total: int) -> None:
        threads.add(threading.current_thread())
        told.append((phase, done, total))

    qdc.kernel(random_graph, mu=0.3, sigma=0.1, progress=progress)
    assert threads == {threading.current_thread()}
    phase, done, total = told[-1]
    assert isinstance(phase, str) and 0 < done == total

    def stop(phase: str, done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        qdc.kernel(random_graph, mu=0.3, sigma=0.1, progress=stop)


def test_a_sum_of_filters_makes_the_sum_of_their_kernels() -> None:
    path = sparse.diags_array([np.ones(29), np.ones(29)], offsets=[-1, 1])
    smooth, rough = qdc.Filter.gaussian(1.0, 0.5), qdc.Filter.heat(2.0)
    both = qdc.Filter.sum([(1.0, smooth), (0.5, rough)])
    assert both(0.3) == pytest.approx(smooth(0.3) + 0.5 * rough(0.3))
    assert pickle.loads(pickle.dumps(both)) == both != qdc.Filter.sum([(1.0, smooth), (0.4, rough)])
    assert "Filter.sum([(1.0, Filter.gaussian(" in repr(both)
    plain: dict[str, Any] = {"sparsify": None, "sign": "absolute", "normalize": None}
    first, second, summed = (qdc.kernel(path, filter=part, **plain).toarray() for part in (smooth, rough, both))
    assert np.abs(summed - first - 0.5 * second).max() < 1e-9
    with pytest.raises(qdc.ParameterError, match="no Python functions"):
        qdc.Filter.sum([(1.0, qdc.Filter.custom(abs))])
    with pytest.raises(qdc.ParameterError):
        qdc.Filter.sum([])
