"""Checkpoints of fits over ranks: written on some, gone on from on any other number of them, or in one process."""

from __future__ import annotations

import errno
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks.exact_cases import MACHINES, Case, check, in_form, problem, shard
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin import spmd
from maxmargin.data import atomic
from maxmargin.data.container import read
from maxmargin.runtime import Checkpoints, Threads

LINEAR = {
    "ocas": Case("LinearSVC", "two", {"C": 5.0, "loss": "hinge", "solver": "ocas", "tol": 1e-6}),
    "classes": Case("LinearSVC", "three", {"loss": "hinge", "solver": "ocas", "intercept_scaling": None, "tol": 1e-3}),
    "newton": Case("LinearSVC", "two", {"C": 5.0, "tol": 1e-9}),
    "regression": Case("LinearSVR", "numbers", {"C": 5.0, "solver": "ocas", "intercept_scaling": None, "tol": 1e-6}),
}
EXACT = {f"{case.machine}-{case.task}-{k}": case for k, case in enumerate(MACHINES)}
SLOW = {"working_set_size": 12, "tol": 1e-4}


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power does not fail here."""
    monkeypatch.setattr(atomic.os, "fsync", lambda handle: None)


def fit(ranks: int, case: Case, X: Any, y: Any, weight: Any = None, by: dict[str, Any] | None = None, **more: Any) -> Any:
    """Rank 0's model, or the one of `maxmargin` for no ranks; the second rank has no rows where there are three."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if not ranks:
            return case.make(maxmargin, **more).fit(X, y, weight)
        n = X.shape[0]
        cuts = np.array([0, n // 3, n // 3, n] if ranks == 3 else np.linspace(0, n, ranks + 1).astype(int))

        def work(comm: Any) -> Any:
            mine = (shard(a, cuts, comm.rank) for a in (X, y, weight))
            return case.make(spmd, **more).fit(*mine, comm=comm, **(by or {}))

        return Threads.run(ranks, work)[0]


def turns(model: Any) -> int:
    return int(np.sum(model.n_iter_))


def until(turn: int) -> Any:
    return lambda row: row["iteration"] >= turn


@pytest.mark.parametrize("name", EXACT)
def test_any_number_of_ranks_goes_on_where_another_was(name: str, tmp_path: Path) -> None:
    """From three ranks, one of which has no rows, to others; from one process to two ranks."""
    case, seed = EXACT[name], list(EXACT).index(name)
    X, y = problem(case.task, seed, 100, copies=seed % 3 == 0)
    X = in_form(X, ("dense64", "csr64", "dense32", "csr32")[seed % 4])
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], len(y)) if seed % 2 and y is not None else None
    path, more = tmp_path / "a.ckpt", dict(SLOW)
    by = {"partition": "rows" if seed % 4 == 3 else "columns"}
    whole = fit(3, case, X, y, weight, by, **more)
    all_ = turns(whole)
    assert fit(3, case, X, y, weight, by, checkpoint=path, checkpoint_every=0, callback=until(all_ - all_ // 4),
               **more).status_ == "callback"
    left = path.read_bytes()
    assert read(path)[1]["done"] is False
    for ranks in (2, 0, 4):
        path.write_bytes(left)
        model = fit(ranks, case, X, y, weight, by, checkpoint=path, **more)
        assert turns(model) < 0.7 * all_, ranks
        check(model, case, X, y, weight, **more)
        assert read(path)[1]["done"] is True
    path.unlink()
    fit(0, case, X, y, weight, checkpoint=path, checkpoint_every=0, callback=until(all_ - all_ // 4), **more)
    model = fit(2, case, X, y, weight, by, checkpoint=path, **more)
    assert turns(model) < all_
    check(model, case, X, y, weight, **more)


@pytest.mark.parametrize("form", ["dense64", "csr32"])
@pytest.mark.parametrize("name", ["SVC-three-2", "NuSVC-two-6", "SVR-numbers-7", "OneClassSVM-none-10"])
def test_samples_stand_in_one_order_however_many_ranks_wrote_them(name: str, form: str, tmp_path: Path) -> None:
    """The solutions, which are unique, of one process and of several ranks: the same files but for rounding."""
    case = EXACT[name]
    X, y = problem(case.task, 3, 90)
    path, files = tmp_path / "a.ckpt", []
    for ranks in (0, 2, 3):
        fit(ranks, case, in_form(X, form), y, checkpoint=path, gamma=1.0, tol=1e-6)
        files.append(read(path)[1:])
        path.unlink()
    (header, arrays), *others = files
    assert sum(len(np.unique(array)) > 10 for array in arrays) >= 1
    for other, numbers in others:
        assert other["of"] == header["of"]
        for a, b in zip(arrays, numbers, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-3 * np.abs(a).max(initial=0.0))


@pytest.mark.parametrize("name", LINEAR)
def test_linear_machines_go_on_from_point_and_cuts(name: str, tmp_path: Path) -> None:
    case = LINEAR[name]
    X, y = problem(case.task, 3, 600, d=6)
    path = tmp_path / "a.ckpt"
    whole = fit(3, case, X, y)
    last = max(1, turns(whole) - 2)
    fit(3, case, X, y, checkpoint=path, checkpoint_every=0, callback=until(last))
    left = path.read_bytes()
    for ranks in (3, 2, 1, 0):
        path.write_bytes(left)
        model = fit(ranks, case, X, y, checkpoint=path)
        assert model.status_ == "converged"
        assert model.objective_ == pytest.approx(whole.objective_, rel=2 * case.options["tol"])
        assert model.lower_bound_ <= whole.objective_ * (1 + 1e-12)
        assert whole.lower_bound_ <= model.objective_ * (1 + 1e-12)
        if name in ("ocas", "regression"):
            assert turns(model) <= 4 < turns(whole), ranks
    path.unlink()
    fit(0, case, X, y, checkpoint=path, checkpoint_every=0, callback=until(last))
    assert fit(2, case, X, y, checkpoint=path).objective_ == pytest.approx(whole.objective_, rel=2 * case.options["tol"])


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(12, 120), written=st.integers(0, 3), read_by=st.integers(0, 3),
    case=st.sampled_from(list(LINEAR.values())), far=st.sampled_from([0.0, 1e3, 1e6]),
    form=st.sampled_from(["dense64", "dense32"]), free=st.booleans(), weighted=st.booleans(),
    C=st.sampled_from([1e-3, 1.0, 100.0]), part=st.floats(0.2, 1.0),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_bounds_that_rest_on_cuts_of_other_ranks_are_true(
    seed: int, n: int, written: int, read_by: int, case: Case, far: float, form: str, free: bool, weighted: bool, C: float,
    part: float,
) -> None:  # fmt: skip
    """No lower bound of a run that went on exceeds what another run has reached, far from zero and in float32 as well."""
    X, y = problem(case.task, seed, n)
    X = in_form(X + far, form)
    weight = np.random.default_rng(seed).choice([0.1, 0.2, 0.7, 3.0], n) if weighted else None
    more: dict[str, Any] = {"C": C, "intercept_scaling": None if free else 1.0, "max_iter": 200}
    whole = fit(0, case, X, y, weight, **more)
    stop = max(1, int(part * turns(whole)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.ckpt"
        fit(written, case, X, y, weight, checkpoint=path, checkpoint_every=0, callback=until(stop), **more)
        model = fit(read_by, case, X, y, weight, checkpoint=path, **more)
    assert model.lower_bound_ <= whole.objective_ * (1 + 1e-11)
    assert whole.lower_bound_ <= model.objective_ * (1 + 1e-11)
    assert model.status_ != "converged" or model.dual_gap_ <= model.tol * model.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("case", [Case("SVC", "two", {"C": 2.0, **SLOW}), LINEAR["ocas"]], ids=["SVC", "LinearSVC"])
def test_a_file_of_another_fit_or_a_damaged_one_is_refused_on_all_ranks(case: Case, tmp_path: Path) -> None:
    X, y = problem("two", 1, 90)
    path = tmp_path / "a.ckpt"
    fit(0, case, X, y, checkpoint=path, callback=until(2))
    before = path.read_bytes()
    other = X.copy()
    other[80, 1] += 1.0  # the last rank's
    flipped = np.where(np.arange(90) == 85, 1 - y, y)
    weight = np.where(np.arange(90) == 3, 2.0, 1.0)
    for rows, more, words in (
        ((other, y, None), {}, "X is another"), ((X, flipped, None), {}, "y is another"),
        ((X, y, weight), {}, "sample_weight is another"), ((X, y, None), {"C": 7.0}, r"C was \d.0 and is 7.0"),
        ((X[:-1], y[:-1], None), {}, "n_samples was 90 and is 89"),
    ):  # fmt: skip
        said: list[str] = []

        def work(comm: Any, rows: Any = rows, more: Any = more, said: list[str] = said) -> None:
            machine = case.make(spmd, checkpoint=path, **more)
            mine = slice(comm.rank, None, comm.size)
            try:
                machine.fit(*(None if a is None else a[mine] for a in rows), comm=comm)
            except ValueError as error:
                said.append(str(error))
                assert not hasattr(machine, "status_")

        Threads.run(3, work)
        assert len(said) == 3
        for text in said:
            with pytest.raises(ValueError, match=f"^checkpoint='.*' is of another fit, which is not done: {words}"):
                raise ValueError(text)
        assert path.read_bytes() == before
    path.write_bytes(before[:-1])
    with pytest.raises(ValueError, match=r"^checkpoint=.*cannot be used"):
        fit(2, case, X, y, checkpoint=path)
    with pytest.raises(ValueError, match=r"^checkpoint=.*is a folder"):
        fit(2, case, X, y, checkpoint=tmp_path)


def test_a_disk_that_is_full_is_the_first_ranks_and_does_not_end_the_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = problem("two", 1, 90)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, "replace", full)
    with pytest.warns(RuntimeWarning, match="checkpoint not written: .*No space left") as caught:
        model = fit(3, MACHINES[0], X, y, checkpoint=tmp_path / "a.ckpt", **SLOW)
    assert len(caught) == 1 and model.status_ == "converged" and not list(tmp_path.iterdir())


def test_the_clock_of_the_first_rank_decides() -> None:
    class Turned:
        def snapshot(self) -> int:
            return 1

    def work(comm: Any) -> list[int]:
        put: list[int] = []
        due = comm.rank == 0
        for every in (0.0 if due else 1e9, 1e9 if due else 0.0):
            Checkpoints(lambda seen, done: put.append(seen), every, comm).look(Turned())
        return put

    assert Threads.run(3, work) == [[1]] * 3
