"""What ranks that are threads are given: what they must agree about, what they may differ in, and what each then has."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin
from maxmargin import spmd
from maxmargin.estimators._linear import LinearMachine
from maxmargin.estimators._linear_state import Past
from maxmargin.runtime import Serial, Threads
from maxmargin.spmd._machine import rows_of

FORMS = [None, ("dense", np.float32), ("dense", np.float64), ("csr", np.float32), ("csr", np.float64)]
KERNEL = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"]
LINEAR = ["LinearSVC", "LinearSVR"]


def samples(n: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + y[:, None], y


def refused(ranks: int, work: Any) -> list[str]:
    """What is said on each rank, in errors that all of them have."""

    def caught(comm: Any) -> str:
        with pytest.raises(ValueError) as error:
            work(comm)
        return str(error.value)

    return Threads.run(ranks, caught, timeout=30)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("given", list(itertools.product(FORMS, repeat=3)), ids=str)
def test_rows_of_any_form_are_made_those_of_one(given: Any, named: bool) -> None:
    """Sparse if those of any rank are, as precise as the most precise, also where there are none."""
    if not any(given):
        said = refused(3, lambda comm: spmd.LinearSVC()._agreed_rows(None, comm))
        assert all("0 sample(s) on all 3 ranks" in text for text in said)
        return
    rows = [np.arange(4.0 * (rank + 1)).reshape(-1, 4) for rank in range(3)]
    names = np.array(list("abcd"), dtype=object)

    def work(comm: Any) -> Any:
        machine, form = spmd.LinearSVC(), given[comm.rank]
        if form is None:
            return machine._agreed_rows(None, comm), machine
        if named:
            machine.feature_names_in_ = names
        mine = rows[comm.rank].astype(form[1])
        return machine._agreed_rows(sp.csr_matrix(mine) if form[0] == "csr" else mine, comm), machine

    there = [form for form in given if form is not None]
    for rank, (x, machine) in enumerate(Threads.run(3, work, timeout=30)):
        assert sp.issparse(x) == any(kind == "csr" for kind, _ in there)
        assert x.dtype == max((dtype for _, dtype in there), key=lambda dtype: np.dtype(dtype).itemsize)
        expected = rows[rank] if given[rank] is not None else np.empty((0, 4))
        np.testing.assert_array_equal(x.toarray() if sp.issparse(x) else x, expected)
        assert machine.n_features_in_ == 4 and hasattr(machine, "feature_names_in_") == named
        assert not named or machine.feature_names_in_.tolist() == names.tolist()


def test_other_widths_or_names_are_told_with_the_rank_that_has_them() -> None:
    def wide(comm: Any) -> Any:
        return spmd.LinearSVC()._agreed_rows(None if comm.rank == 0 else np.ones((2, 3 + (comm.rank == 2))), comm)

    def named(comm: Any) -> Any:
        machine = spmd.LinearSVC()
        machine.feature_names_in_ = np.array(["a", "b" if comm.rank < 2 else "c"], dtype=object)
        return machine._agreed_rows(np.ones((2, 2)), comm)

    assert set(refused(3, wide)) == {text for text in refused(3, wide) if "4 features on rank 2 and 3 on rank 1" in text}
    assert all("names of rank 2 are not those of rank 0" in text for text in refused(3, named))


def test_rows_are_counted_of_whatever_has_them() -> None:
    X = np.zeros((3, 5))
    for rows in (X, X.tolist(), sp.csr_matrix(X), X[:, 0], (1, 2, 3)):
        assert rows_of(rows) == 3
    assert rows_of([]) == rows_of(X[:0]) == 0


@pytest.mark.parametrize("name", [*KERNEL, *LINEAR])
def test_a_rank_without_rows_is_no_mistake_and_leaves_no_trace_of_the_ranks(name: str) -> None:
    X, y = samples()
    labels = None if name == "OneClassSVM" else y

    def work(comm: Any) -> Any:
        part = slice(0, len(y) if comm.rank == 1 else 0)
        return getattr(spmd, name)().fit(X[part], None if labels is None else labels[part], comm=comm)

    alone = getattr(maxmargin, name)().fit(X, labels)
    models = Threads.run(3, work, timeout=30)
    for model in models:
        assert model.status_ == "converged" and model.n_features_in_ == 3
        assert not {"_comm", "_partition"} & set(vars(model))
        assert model.objective_ == pytest.approx(alone.objective_, rel=1e-2)
        assert name in LINEAR or model.trace_.tobytes() == models[0].trace_.tobytes()  # its clocks as well
        local = model.to_local()
        assert type(local) is getattr(maxmargin, name) and local.get_params() == model.get_params()
        assert set(vars(local)) == set(vars(model))


@pytest.mark.parametrize("name", [*KERNEL, *LINEAR])
def test_before_a_fit_there_is_no_local_machine(name: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(spmd, name)().to_local()


def test_one_rank_warns_for_all() -> None:
    X, y = samples(60)
    y = np.random.default_rng(1).integers(2, size=60)
    for machine in (spmd.LinearSVC, spmd.SVC):
        options = {"solver": "ocas"} if machine is spmd.LinearSVC else {"working_set_size": 2}
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", ConvergenceWarning)
            made = [machine(tol=1e-8, max_iter=1, **options) for _ in range(3)]
            models = Threads.run(
                3, lambda comm, made=made: made[comm.rank].fit(X[comm.rank :: 3], y[comm.rank :: 3], comm=comm)
            )
        assert [model.status_ for model in models] == ["max_iter"] * 3
        assert len([warning for warning in heard if issubclass(warning.category, ConvergenceWarning)]) == 1


def test_ranks_may_differ_in_what_is_their_own_and_in_nothing_else() -> None:
    X, y = samples()

    def fit(comm: Any, name: str, value: Any) -> Any:
        machine = spmd.SVC(**({name: value} if comm.rank == 1 else {}))
        return machine.fit(X[comm.rank :: comm.size], y[comm.rank :: comm.size], comm=comm)

    for name, value in (("callback", lambda row: None), ("n_jobs", 1), ("cache_size", 50), ("verbose", 0)):
        assert [model.status_ for model in Threads.run(2, lambda c, n=name, v=value: fit(c, n, v))] == ["converged"] * 2
    for name, value in (("C", 2.0), ("kernel", "poly"), ("tol", 1e-4), ("max_iter", 5), ("shrinking", False)):
        said = refused(2, lambda comm, n=name, v=value: fit(comm, n, v))
        assert all(f"rank 1 has other parameters than rank 0: {name}={value!r}" in text for text in said), said


@pytest.mark.parametrize("name", [*KERNEL, *LINEAR])
@pytest.mark.parametrize("ranks", [1, 2])
def test_bad_parameters_are_told_on_all_ranks(name: str, ranks: int) -> None:
    X, y = samples()
    wrong: dict[str, Any] = {"tol": -1.0}
    said = refused(ranks, lambda comm: getattr(spmd, name)(**wrong).fit(X, y, comm=comm))
    assert all("tol=-1.0" in text for text in said)
    if name in LINEAR:
        more = [{"multi_class": "crammer_singer"}, {"penalty": "l1"}] if name == "LinearSVC" else []
        for one in ({"solver": "descent"}, *more):
            said = refused(ranks, lambda comm, o=one: getattr(spmd, name)(**o).fit(X, y, comm=comm))
            assert all(f"{key}={value!r}" in text for text in said for key, value in one.items())
    else:
        said = refused(ranks, lambda comm: getattr(spmd, name)().fit(X, y, comm=comm, partition="diagonals"))
        assert all("partition='diagonals'" in text for text in said)


@pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
def test_what_needs_all_rows_is_for_one_rank() -> None:
    X, y = samples()

    def dot(a: Any, b: Any) -> Any:
        return a @ b.T

    for options, rows, message in [({"kernel": dot}, X, "a function"), ({"kernel": "precomputed"}, X @ X.T, "precomputed")]:
        alone, here = spmd.SVC(**options).fit(rows, y, comm=Serial()), maxmargin.SVC(**options).fit(rows, y)
        np.testing.assert_array_equal(alone.dual_coef_, here.dual_coef_)
        said = refused(2, lambda comm, o=options, r=rows: spmd.SVC(**o).fit(r, y, comm=comm))
        assert all(message in text for text in said)
    for ranks in (1, 2):
        said = refused(ranks, lambda comm: spmd.SVC(probability=True).fit(X, y, comm=comm))
        assert all("probability=True is not available over ranks" in text for text in said)


STATES: list[Any] = [{}, {0: Past(None, "point 0"), 1: Past(None, "point 1")}, {0: Past("cuts", "p"), 1: Past(None, "q")},
                     {0: Past("cuts 0", "point 0"), 1: Past("cuts 1", "point 1")}, {0: Past("cut", "only")}]  # fmt: skip


@pytest.mark.parametrize("each", list(itertools.product(STATES, repeat=2)), ids=str)
def test_ranks_go_on_from_what_all_of_them_know(each: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points if all have some, cuts if all have all of theirs; as the first rank has them. One rank alone: its own."""
    monkeypatch.setattr(LinearMachine, "_recall", lambda self, data: each[self._comm.rank])

    def recalled(comm: Any) -> Any:
        machine = spmd.LinearSVC()
        machine._comm = comm
        return machine._recall(None)

    first = each[0]
    cuts = all(past.cuts is not None for memory in each for past in memory.values())
    expected = {} if not all(each) else first if cuts else {k: past._replace(cuts=None) for k, past in first.items()}
    assert Threads.run(2, recalled, timeout=30) == [expected] * 2
    assert recalled(Serial()) == first
