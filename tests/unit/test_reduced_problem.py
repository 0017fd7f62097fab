"""The reduced problem of cutting planes: feasible, and optimal by its own duality gap, from any start."""

import numpy as np
import pytest

from maxmargin.linear import reduced_qp


def cuts(seed, t, d, intercepts, repeated=False):
    """Cuts of a random risk: some samples in each, one cut per class first, so that intercepts can be balanced."""
    rng = np.random.default_rng(seed)
    n, classes = 60, max(intercepts, 2)
    X, label = rng.normal(size=(n, d)), np.arange(n) % classes
    a, b, free = [], [], []
    for j in range(t):
        taken = np.where(rng.random(n) < 0.5, rng.integers(0, classes, n), label)
        if j < classes:
            taken = np.where(label == j, (label + 1) % classes, label)
        if repeated and j >= t // 2:
            a.append(a[j - t // 2] * (1 + 1e-12)), b.append(b[j - t // 2]), free.append(free[j - t // 2])
            continue
        move = np.eye(classes)[taken] - np.eye(classes)[label]
        a.append((move.T @ X).ravel()), b.append(float((taken != label).sum())), free.append(move.sum(axis=0))
    free = np.array(free).T
    return np.array(a), np.array(b), {0: None, 1: free[:1]}.get(intercepts, free)


def gap(a, b, free, C, beta, intercepts):
    """Primal less dual value of the reduced problem, and the dual value."""
    w = -C * beta @ a
    dual = C * beta @ b - 0.5 * w @ w
    risk = a @ w + b + (0.0 if free is None else intercepts @ free)
    return 0.5 * w @ w + C * max(0.0, risk.max()) - dual, dual


@pytest.mark.parametrize("intercepts", [0, 1, 3])
@pytest.mark.parametrize("seed", range(12))
def test_the_duality_gap_closes(seed, intercepts):
    rng = np.random.default_rng(seed)
    t, d = int(rng.integers(intercepts + 2, 40)), int(rng.integers(1, 12))
    C = 10.0 ** rng.uniform(-3, 2)
    a, b, free = cuts(seed, t, d, intercepts, repeated=seed % 3 == 0)
    beta, multipliers = reduced_qp.solve(a @ a.T, b, C, free)
    assert (beta >= 0).all() and beta.sum() <= 1 + 1e-15
    if free is not None:
        assert np.abs(free @ beta).max() <= 1e-12 * (np.abs(free) @ beta).max()
    apart, value = gap(a, b, free, C, beta, multipliers)
    assert -1e-12 * value <= apart <= 1e-9 * value

    start = np.zeros(t)
    again, _ = reduced_qp.solve(a @ a.T, b, C, free, 0.5 * value, start=beta)
    assert gap(a, b, free, C, again, multipliers)[1] == pytest.approx(value, rel=1e-10)
    if free is None:  # any β is feasible
        start[rng.integers(t)] = 0.7
        other, _ = reduced_qp.solve(a @ a.T, b, C, free, 0.0, start=start)
        assert gap(a, b, free, C, other, multipliers)[1] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("intercepts", [1, 3, 4])
@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_repaired_is_feasible(seed, intercepts):
    """Weights that are out of balance at any of the intercepts, also where no others than 0 could be balanced."""
    rng = np.random.default_rng(seed)
    balance = rng.normal(size=(intercepts, 9))
    for row in range(intercepts):
        for alone in (False, True):
            some = balance.copy()
            some[row] = np.abs(some[row])  # above 0 wherever there is weight
            some[np.arange(intercepts) != row] *= not alone  # no cut has any of the others
            for given in (balance, some):
                beta = reduced_qp._repair(rng.uniform(0, 1, 9) * (rng.random(9) < 0.8), given)
                assert (beta >= 0).all() and beta.sum() <= 1 + 1e-15
                assert np.abs(given @ beta).max() <= 1e-12 * (np.abs(given) @ beta).max()


def test_one_more_cut_at_a_time_ends_where_all_at_once_does():
    a, b, free = cuts(7, 60, 10, 1)
    gram, beta, value = a @ a.T, np.zeros(0), 0.0
    for t in range(2, 61):
        beta, multipliers = reduced_qp.solve(gram, b[:t], 0.3, free[:, :t], value, np.append(beta, np.zeros(t - len(beta))))
        apart, now = gap(a[:t], b[:t], free[:, :t], 0.3, beta, multipliers)
        assert apart <= 1e-9 * now and now >= value * (1 - 1e-10)
        value = now
    assert gap(a, b, free, 0.3, *reduced_qp.solve(gram, b, 0.3, free))[1] == pytest.approx(value, rel=1e-10)
