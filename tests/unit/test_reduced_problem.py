"""The reduced problem of cutting planes: feasible, and optimal by its own duality gap, from any start."""

from types import SimpleNamespace

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
    assert beta.shape == (t,) and multipliers.shape == (intercepts,)
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


@pytest.mark.parametrize(("guess", "values", "levels"), [
    (0.0, [0.5], [1.0]), (0.0, [1e-3], [1.0]), (0.0, [0.9e-3, 1e-3], [1.0, 1.8e-3]),
    (0.0, [1e-9] * 9, [1.0, 1e-4, 1e-8]), (0.0, [0.0] * 9, [1.0, 1e-4, 1e-8, 1e-12, 1e-16, 1e-20]),
    (1e-6, [1e-2] * 9, [1e-6, 1e-2]), (1e-6, [1e-3] * 9, [1e-6]), (1e-2, [1e-6] * 9, [1e-2, 1.0, 1e-4]),
    (1e-2, [0.5e-5, 0.5], [1e-2, 1.0]), (1.0, [0.5], [1.0]), (2.0, [0.5], [1.0]), (-1.0, [0.5], [1.0]),
])  # fmt: skip
def test_a_value_far_from_the_unit_is_solved_for_again(guess, values, levels, monkeypatch):
    """One cut of offset 1: its β is the value. No more tries than TRIES, each from the best β so far."""
    asked, given = [], iter(values)

    def solved(gram, offset, C, balance, size, level, beta):
        asked.append(level)
        assert beta.tolist() == [best[-1]] and size.tolist() == [max(0.5, level / C)] and C == 2.0
        beta[:] = next(given)
        best.append(max(best[-1], float(beta[0])))
        return np.empty(0)

    best = [0.0]
    monkeypatch.setattr(reduced_qp, "_core", SimpleNamespace(reduced_problem=solved))
    beta, intercepts = reduced_qp.solve(np.zeros((3, 3)), np.array([0.5]), 2.0, None, guess)
    np.testing.assert_allclose(asked, levels, rtol=1e-12)
    assert len(asked) <= reduced_qp.TRIES and beta.tolist() == [best[-1]] and intercepts.shape == (0,)


def test_the_best_of_all_tries_is_returned(monkeypatch):
    given = iter([(0.9e-4, 1.0), (0.5e-4, 2.0)])

    def solved(gram, offset, C, balance, size, level, beta):
        beta[:], multiplier = next(given)
        return np.array([multiplier])

    monkeypatch.setattr(reduced_qp, "_core", SimpleNamespace(reduced_problem=solved))
    beta, intercepts = reduced_qp.solve(np.zeros((1, 1)), np.array([1.0]), 1.0, np.zeros(1), 0.0)
    assert beta.tolist() == [0.9e-4] and intercepts.tolist() == [1.0]


def test_a_repair_changes_what_it_must_and_no_more():
    rng = np.random.default_rng(0)
    for _ in range(20):
        beta, row = rng.uniform(0, 0.05, 9), rng.normal(size=9)
        up, down = beta @ np.maximum(row, 0), beta @ np.maximum(-row, 0)
        part = np.where((row > 0) == (up > down), min(up, down) / max(up, down), 1.0)
        np.testing.assert_allclose(reduced_qp._repair(beta, row[None]), beta * np.where(row == 0, 1.0, part), rtol=1e-12)
        balance = rng.normal(size=(3, 9))
        even = np.maximum(beta - np.linalg.lstsq(balance, balance @ beta, rcond=None)[0], 1e-3)
        off = 1e-4 * rng.normal(size=9)
        balance -= np.outer(balance @ even, even) / (even @ even)  # `even` is balanced
        found = reduced_qp._repair(even * (1 + off), balance)
        least = np.linalg.lstsq(balance * even, balance @ (even * off), rcond=None)[0]
        np.testing.assert_allclose(found / even, 1 + off - least, atol=1e-6)
        none = np.zeros((0, 9))
        assert reduced_qp._repair(beta, none) is beta
        for total in (1.0, 1.5, 40.0):
            whole = beta / beta.sum() * total
            assert reduced_qp._repair(whole, none).sum() == pytest.approx(1.0, rel=3e-15)
            np.testing.assert_allclose(reduced_qp._repair(whole, none), beta / beta.sum(), rtol=1e-12)
