"""Linear machines over ranks that are threads: any way to spread the rows gives the answer of one process, on every rank."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin import spmd
from maxmargin.runtime import Comm, RankError, Serial, Threads


def spread(machine: Any, sizes: list[int], X: Any, y: Any, weight: Any = None, **fit: Any) -> list[Any]:
    """The machine fitted on len(sizes) ranks, of which each has the next so many rows."""
    cuts = np.append(0, np.cumsum(sizes))

    def work(comm: Comm) -> Any:
        part = slice(cuts[comm.rank], cuts[comm.rank + 1])
        return machine().fit(X[part], y[part], None if weight is None else weight[part], comm=comm, **fit)

    return Threads.run(len(sizes), work, timeout=30)


def objective(model: Any, X: Any, y: Any, weight: Any) -> float:
    """Of the whole fit, in plain NumPy."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, np.float64)
    squared = "squared" in model.loss
    scale = model.intercept_scaling
    total = 0.0
    coef = np.atleast_2d(model.coef_)
    for k, (w, b) in enumerate(zip(coef, model.intercept_)):
        value = X @ w + b
        if hasattr(model, "classes_"):
            label = model.classes_[k if len(coef) > 1 else 1]
            loss = np.maximum(0, 1 - np.where(y == label, 1.0, -1.0) * value)
        else:
            loss = np.maximum(0, np.abs(y - value) - model.epsilon)
        penalty = 0.5 * w @ w + (0.5 * (b / scale) ** 2 if scale is not None and model.fit_intercept else 0.0)
        total += penalty + model.C * (weight @ (loss**2 if squared else loss))
    return float(total)


@st.composite
def problems(draw: Any) -> Any:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes = draw(st.lists(st.sampled_from([0, 1, 2, 5, 30]), min_size=2, max_size=4).filter(lambda s: sum(s) >= 4))
    n, d = sum(sizes), draw(st.integers(1, 6))
    X = rng.normal(size=(n, d)) * draw(st.sampled_from([1.0, 1.0, 30.0])) + draw(st.sampled_from([0.0, 0.0, 200.0]))
    X = X.astype(draw(st.sampled_from([np.float32, np.float64])))
    form = sp.csr_matrix(X * (rng.random(X.shape) < 0.5)) if draw(st.booleans()) else X
    weight = np.round(rng.uniform(0, 2, n), 1) if draw(st.booleans()) else np.ones(n)
    weight[rng.integers(n, size=2)] = 1.0
    return rng, sizes, form, weight


def options(draw: Any, solvers: tuple[str, ...] = ("auto", "ocas", "newton")) -> dict[str, Any]:
    intercept = draw(st.sampled_from([{}, {"intercept_scaling": None}, {"fit_intercept": False}]))
    return {"C": draw(st.sampled_from([0.1, 1.0, 20.0])), "tol": 1e-5, "n_jobs": 1, "solver": draw(st.sampled_from(solvers)),
            "max_iter": 3000, **intercept}


def judge(ranks: list[Any], here: Any, X: Any, y: Any, weight: Any) -> None:
    """All ranks the same; their numbers true; and neither they nor the one process proves the other's answer wrong."""
    model = ranks[0]
    for other in ranks[1:]:
        assert other.coef_.tobytes() == model.coef_.tobytes() and other.intercept_.tobytes() == model.intercept_.tobytes()
        assert (other.objective_, other.dual_gap_, other.status_) == (model.objective_, model.dual_gap_, model.status_)
        assert other.n_iter_ == model.n_iter_
    assert objective(model, X, y, weight) == pytest.approx(model.objective_, rel=1e-7, abs=1e-9)
    slack = 1e-9 * here.objective_
    assert model.lower_bound_ <= here.objective_ + slack and here.lower_bound_ <= model.objective_ + slack
    if model.status_ == here.status_ == "converged":
        assert model.objective_ == pytest.approx(here.objective_, rel=1.1e-5, abs=1e-12)
    assert model.status_ == "converged" or here.status_ != "converged"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_classifiers_over_ranks_are_those_of_one_process(data: Any) -> None:
    rng, sizes, X, weight = data.draw(problems())
    classes = data.draw(st.sampled_from([2, 2, 3]))
    n = X.shape[0]
    y = rng.integers(classes, size=n)
    counted = np.flatnonzero(weight > 0)
    y[counted[:2]] = [0, 1]
    if data.draw(st.booleans()):
        y = np.sort(y)  # ranks that lack a class
    labels = np.array(["left", "middle", "right"])[y]
    chosen = {**options(data.draw), "loss": data.draw(st.sampled_from(["hinge", "squared_hinge"])),
              "class_weight": data.draw(st.sampled_from([None, "balanced"]))}
    if len(np.unique(labels[counted])) < 2:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranks = spread(lambda: spmd.LinearSVC(**chosen), sizes, X, labels, weight)
        here = maxmargin.LinearSVC(**{**chosen, "solver": "auto"}).fit(X, labels, weight)
    effective = weight.copy()
    if chosen["class_weight"]:
        known, code = np.unique(labels, return_inverse=True)
        mass = np.bincount(code, weight, len(known))
        effective = weight * (mass.sum() / (np.count_nonzero(mass) * np.where(mass > 0, mass, 1)))[code]
    assert (ranks[0].classes_ == here.classes_).all()
    keep = np.isin(labels, here.classes_)
    judge(ranks, here, X[keep], labels[keep], effective[keep])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_regressors_over_ranks_are_those_of_one_process(data: Any) -> None:
    rng, sizes, X, weight = data.draw(problems())
    y = rng.normal(size=X.shape[0]) * data.draw(st.sampled_from([1.0, 50.0])) + data.draw(st.sampled_from([0.0, 300.0]))
    chosen = {**options(data.draw), "epsilon": data.draw(st.sampled_from([0.0, 0.5])),
              "loss": data.draw(st.sampled_from(["epsilon_insensitive", "squared_epsilon_insensitive"]))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranks = spread(lambda: spmd.LinearSVR(**chosen), sizes, X, y, weight)
        here = maxmargin.LinearSVR(**{**chosen, "solver": "auto"}).fit(X, y, weight)
    judge(ranks, here, X, y, weight)


def blobs(n: int = 300, d: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, d)) + 1.5 * np.eye(2, d)[y], y


def test_more_ranks_than_rows() -> None:
    X, y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
    ranks = spread(lambda: spmd.LinearSVC(n_jobs=1), [0, 1, 0, 1, 0], X, y)
    judge(ranks, maxmargin.LinearSVC(n_jobs=1).fit(X, y), X, y, np.ones(2))


def test_mixed_forms_and_precisions_are_made_one() -> None:
    X, y = blobs()
    shards = [X[:100].astype(np.float32), sp.csr_matrix(X[100:200]), X[200:]]
    exact = np.vstack([shards[0].astype(np.float64), X[100:]])

    def work(comm: Comm) -> Any:
        rows = slice(100 * comm.rank, 100 * comm.rank + 100)
        return spmd.LinearSVC(n_jobs=1).fit(shards[comm.rank], y[rows], comm=comm)

    judge(Threads.run(3, work), maxmargin.LinearSVC(n_jobs=1).fit(exact, y), exact, y, np.ones(300))


def test_warm_starts_use_the_cuts_of_all_ranks() -> None:
    X, y = blobs()

    def work(comm: Comm) -> Any:
        rows = slice(100 * comm.rank, 100 * comm.rank + 100)
        machine = spmd.LinearSVC(n_jobs=1, solver="ocas", loss="hinge", warm_start=True)
        first = machine.fit(X[rows], y[rows], comm=comm).n_iter_
        again = machine.fit(X[rows], y[rows], comm=comm).n_iter_
        other = X[rows] + (comm.rank == 1)  # one rank has other rows: no cut holds any more
        third = machine.fit(other, y[rows], comm=comm)
        return first, again, third

    (first, again, third), *_ = results = Threads.run(3, work)
    assert again == 1 < first
    moved = X + (np.arange(300) // 100 == 1)[:, None]
    here = maxmargin.LinearSVC(n_jobs=1, loss="hinge").fit(moved, y)
    judge([result[2] for result in results], here, moved, y, np.ones(300))
    assert third.n_iter_ > 1


@pytest.mark.parametrize(("limit", "status"), [
    ({"max_time": 1e-6}, "max_time"), ({"max_iter": 2}, "max_iter"), ({"callback": lambda row: True}, "callback"),
])  # fmt: skip
def test_limits_end_all_ranks_with_a_true_certificate(limit: Any, status: str) -> None:
    X, y = blobs()
    y = y + (np.arange(300) % 7 == 0)  # three classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranks = spread(lambda: spmd.LinearSVC(n_jobs=1, solver="ocas", loss="hinge", tol=1e-9, **limit), [200, 0, 100], X, y)
    here = maxmargin.LinearSVC(n_jobs=1, loss="hinge").fit(X, y)
    assert [model.status_ for model in ranks] == [status] * 3
    assert objective(ranks[0], X, y, np.ones(300)) == pytest.approx(ranks[0].objective_, rel=1e-9)
    assert ranks[0].lower_bound_ <= here.objective_


def test_a_callback_of_any_rank_stops_all_and_its_error_is_everyones() -> None:
    X, y = blobs()

    def fit(comm: Comm, callback: Any) -> Any:
        mine = callback if comm.rank == 1 else None
        rows = slice(100 * comm.rank, 100 * comm.rank + 100)
        return spmd.LinearSVC(n_jobs=1, solver="ocas", tol=1e-9, callback=mine).fit(X[rows], y[rows], comm=comm)

    stopped = Threads.run(3, lambda comm: fit(comm, lambda row: row["iteration"] >= 2))
    assert [(model.status_, model.n_iter_) for model in stopped] == [("callback", 2)] * 3

    def caught(comm: Comm) -> str:
        def bad(row: Any) -> None:
            raise ZeroDivisionError("of the callback")

        try:
            fit(comm, bad)
        except (ZeroDivisionError, RankError) as error:
            return f"{type(error).__name__}: {error}"
        return ""

    assert Threads.run(3, caught) == [
        "RankError: ZeroDivisionError: of the callback (on rank 1 of 3)", "ZeroDivisionError: of the callback",
        "RankError: ZeroDivisionError: of the callback (on rank 1 of 3)",
    ]  # fmt: skip


X0, Y0 = blobs(40)
NAN = X0.copy()
NAN[3, 1] = np.nan
BAD: dict[str, tuple[Any, Any, dict[str, Any]]] = {  # what rank 1 gives; rank 0 gives good rows
    "NaN": (NAN, Y0, {}),
    "as many labels": (X0, Y0[:-1], {}),
    "inconsistent numbers of samples": (np.empty((0, 4)), Y0, {}),
    "requires y": (X0, None, {}),
    "features on rank 1": (X0[:, :3], Y0, {}),
    "labels that are numbers on some ranks": (X0, Y0.astype(str), {}),
    "C=-1": (X0, Y0, {"C": -1}),
    r"other parameters than rank 0: C=2.0 \(rank 0: 1.0\)": (X0, Y0, {"C": 2.0}),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_of_one_rank_is_an_error_on_all(message: str) -> None:
    X, y, parameters = BAD[message]

    def work(comm: Comm) -> str:
        machine = spmd.LinearSVC(**parameters) if comm.rank else spmd.LinearSVC()
        with pytest.raises(ValueError) as caught:
            machine.fit(*((X, y) if comm.rank else (X0, Y0)), comm=comm)
        assert not hasattr(machine, "coef_") and "_comm" not in vars(machine)
        return str(caught.value)

    first, second = Threads.run(2, work)
    if message == "as many labels":
        message = "inconsistent numbers of samples"
    for text in (first, second):
        assert re.search(message, text), text
    if "rank" not in second:
        assert "(on rank 1 of 2)" in first


def test_what_all_ranks_together_lack() -> None:
    for X, y, weight, message in [
        (X0, np.zeros(40, int), None, "number of classes"),
        (X0, Y0, np.zeros(40), "zero or negative weights"),
        (X0[:0], Y0[:0], None, "0 sample"),
    ]:
        with pytest.raises(ValueError, match=message):
            spread(spmd.LinearSVC, [len(y) // 2, len(y) - len(y) // 2], X, y, weight)


def test_what_is_for_one_process_is_said() -> None:
    machine = spmd.LinearSVC()
    for call in (lambda: machine.path(X0, Y0, [1.0]), lambda: machine.fit_file("x")):
        with pytest.raises(NotImplementedError, match="one process"):
            call()
    for wrong in ({"solver": "descent"}, {"multi_class": "crammer_singer"}, {"penalty": "l1"}):
        with pytest.raises(ValueError, match="choose one of"):
            spmd.LinearSVC(**wrong).fit(X0, Y0, comm=Serial())


def test_one_rank_is_one_process_and_a_model_is_a_local_one() -> None:
    alone = spmd.LinearSVC().fit(X0, Y0, comm=Serial())
    here = maxmargin.LinearSVC().fit(X0, Y0)
    assert alone.coef_.tobytes() == here.coef_.tobytes()
    local = alone.to_local()
    assert type(local) is maxmargin.LinearSVC
    assert (local.predict(X0) == here.predict(X0)).all()


def test_out_of_memory_within_a_step_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from maxmargin.linear.over_ranks import RankedProblem

    whole = RankedProblem.fill

    def fill(self: Any, *args: Any) -> None:
        if self.comm.rank == 2:
            raise MemoryError("no room for the margins")
        whole(self, *args)

    monkeypatch.setattr(RankedProblem, "fill", fill)
    with pytest.raises(MemoryError, match="no room"):
        spread(lambda: spmd.LinearSVC(n_jobs=1), [100, 100, 100], *blobs())
