"""What the core says of a fold's solution, which the table of a search is made of, is what NumPy says of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from maxmargin import SVC, SVCCV, SVRCV, NuSVCCV
from maxmargin.problem.formulations import c_svc
from maxmargin.selection import kernel
from maxmargin.selection.judged import Layout, _missed, numbers_of


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("own", [
    (SVCCV, 2, {}), (SVCCV, 4, {"class_weight": "balanced"}), (SVCCV, 3, {"kernel": "poly", "coef0": 1.0}),
    (SVCCV, 2, {"tol": 0.5}), (NuSVCCV, 3, {}), (SVRCV, 0, {}),
], ids=str)  # fmt: skip
def test_standings(own: tuple[Any, int, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    make, classes, params = own
    plain, seen = kernel.judge, []

    def judge(machine: Any, qps: Any, layout: Any, solution: Any, numbers: Any, *rest: Any) -> Any:
        beta, f, _ = solution
        ends = np.r_[layout.begin, len(f)]
        for qp, said, first, last in zip(qps, numbers, ends, ends[1:]):
            halves = qp.n_variables // qp.n
            mine = beta[halves * first : halves * last], f[first:last]
            size = 1e-12 * (np.abs(qp.center) @ np.abs(mine[0]) + np.abs(mine[0]).sum() * np.abs(mine[1]).max() + 1)
            np.testing.assert_allclose(said, numbers_of(qp, *mine), rtol=1e-12, atol=size)
        seen.extend(numbers[:, 1])
        found = plain(machine, qps, layout, solution, numbers, *rest)
        assert np.isfinite(found.values).all() and len(found.values) == len(qps)
        return found

    monkeypatch.setattr(kernel, "judge", judge)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    X[:, 0] += (y := rng.integers(0, classes or 9, 120))
    grid: dict[str, Any] = {"nus": [0.1, 0.3]} if make is NuSVCCV else {"Cs": [0.1, 100.0]}
    make(gammas=[0.1, 1.0], cv=3, **grid, **params).fit(X, y, sample_weight=rng.uniform(0.5, 2.0, 120))
    assert len(seen) > 8 and max(seen) > 0


@pytest.mark.parametrize("groups", [0, 1, 2])
def test_a_sum_that_is_missed_is_said(groups: int) -> None:
    good = np.array([[1.0, 0.1, 0.01, 5.0, 9.0, *[0.3] * groups, *[1e-17] * groups, *[3.0] * groups]] * 2)
    assert not _missed(good, groups).any()
    if groups:
        good[1, -groups - 1] = 1e-3
        assert _missed(good, groups).tolist() == [False, True]


@pytest.mark.parametrize("off, proven", [(0.0, True), (1e-13, True), (1e-6, False)])
def test_coefficients_that_miss_their_sum_are_mended_and_count_as_that(off: float, proven: bool) -> None:
    """What is said is said of coefficients that do not; who had to move too far for f to be theirs is not proven."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(8) < 4, 1.0, -1.0)
    qps = [c_svc(y, np.full(8, 1.0)), c_svc(y, np.full(8, 2.0))]
    beta = np.tile(y * 0.5, 2)
    f = rng.normal(size=16)
    beta[3] += off
    numbers = np.array([numbers_of(qp, beta[8 * k : 8 * k + 8], f[8 * k : 8 * k + 8]) for k, qp in enumerate(qps)])
    assert _missed(numbers, 1).tolist() == [off > 1e-15, False]
    layout = Layout(np.array([0, 8]), np.arange(16), np.array([[0, 1], [8, 9]]))
    matrices: Any = SimpleNamespace(fits=True, magnitude=lambda gamma: 1.0, noise=lambda gamma: 0.0)
    found = kernel.judge(SVC(gamma=1.0), qps, layout, (beta, f, np.empty(0)), numbers, np.inf, matrices)
    exact = [numbers_of(qp, y * 0.5, f[8 * k : 8 * k + 8]) for k, qp in enumerate(qps)]
    assert found.proven == proven and not _missed(numbers, 1).any()
    assert found.objective == pytest.approx(sum(row[0] + row[1] for row in exact), abs=10 * off + 1e-14)
    np.testing.assert_allclose(found.values, [f[:2] + exact[0][5], f[8:10] + exact[1][5]], atol=10 * off + 1e-14)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make, axes, plans", [
    (SVCCV, {"gammas": [0.1, 1.0, 2.0], "Cs": [0.1, 1.0]}, 1), (NuSVCCV, {"gammas": [0.1, 1.0], "nus": [0.1, 0.3]}, 1),
    (SVRCV, {"gammas": [0.1, 1.0], "Cs": [0.1, 1.0], "epsilons": [0.1, 0.2]}, 2),
])  # fmt: skip
def test_what_does_not_depend_on_gamma_is_set_up_once(make: Any, axes: Any, plans: int, monkeypatch: Any) -> None:
    made: list[Any] = []
    plain = kernel.Plan

    def plan(engine: Any, machines: list[Any], *rest: Any) -> Any:
        made.append(getattr(machines[0], "epsilon", None))
        return plain(engine, machines, *rest)

    monkeypatch.setattr(kernel, "Plan", plan)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    make(cv=3, scoring=lambda machine, X, y: float(machine.predict(X)[0]), **axes).fit(X, rng.integers(0, 2, 90))
    assert len(set(made)) == plans <= len(made) <= 2 * plans
