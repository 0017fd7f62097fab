"""The merging problem: tables against brute force, Lemma 1, and weight degradation as |w' - w|²."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from maxmargin.budget.merging import merge_table, merged_size, optimal_h, scaled_grids, uniform_grids, weight_degradation


def best_by_search(m, t):
    """h by a scan of [0, 1] and a bounded search around its best point: no knowledge of the modes."""
    grid = np.linspace(0, 1, 2001)
    start = grid[np.argmax(merged_size(m, t, grid))]
    bounds = (max(0, start - 1e-3), min(1, start + 1e-3))
    found = minimize_scalar(lambda h: -merged_size(m, t, h), bounds=bounds, method="bounded", options={"xatol": 1e-12})
    return found.x


def lookup(table, m, t):
    """Bilinear value at (m, t), as the core does it."""
    n = len(table)
    a, b = 2 * m * (n - 1), t / (4 + t) * (n - 1)
    i, j = min(int(a), n - 2), min(int(b), n - 2)
    cell = table[i : i + 2, j : j + 2]
    return float(np.array([1 - (a - i), a - i]) @ cell @ np.array([1 - (b - j), b - j]))


@pytest.mark.parametrize("m", [1e-4, 0.03, 0.2, 0.37, 0.499, 0.5])
@pytest.mark.parametrize("t", [1e-6, 1e-3, 0.1, 0.7, 1.9, 2.0, 2.3, 5.0, 12.0])
def test_optimal_h_is_the_global_maximum(m, t):
    h, searched = float(optimal_h(m, t)), best_by_search(m, t)
    assert 0 < h <= 0.5
    assert merged_size(m, t, h) >= merged_size(m, t, searched) - 1e-15
    if m < 0.499 and abs(t - 2) > 0.05:  # elsewhere the top is flat, or there are two
        assert h == pytest.approx(searched, abs=1e-6 + 1e-11 / t)


@pytest.mark.parametrize("t", [1e-4, 1e-2, 0.3, 1.0, 1.99, 2.01, 2.5, 4.0, 7.0])
def test_tables_over_the_whole_half_square(t):
    """kappa → 1 and m = ½ included. The paper's table is wrong by a factor of 25 at kappa = 0.9999."""
    g, h = scaled_grids(400)
    for m in [0.0007, 0.01, 0.11, 0.25, 0.333, 0.42, 0.4999, 0.5]:
        exact_h = float(optimal_h(m, t))
        exact = float(weight_degradation(m, t, exact_h))
        looked_up = m**2 * np.expm1(-t) ** 2 * lookup(g, m, t)
        assert looked_up == pytest.approx(exact, rel=2e-4)
        # With the h of the table the merge loses little more than with the best h.
        assert weight_degradation(m, t, lookup(h, m, t)) <= exact * 1.01 + 1e-15
    assert np.isfinite(g).all() and np.isfinite(h).all()


def test_table_is_kept():
    assert merge_table(50) is merge_table(50)


def test_lemma_1_continuity():
    """WD is continuous everywhere; h is continuous at m = ½ for kappa > e⁻² and jumps to 1-h for kappa < e⁻²."""
    below, at = 0.5 - 1e-7, 0.5
    for t in [0.5, 1.9, 2.1, 3.0, 6.0]:
        h0, h1 = float(optimal_h(below, t)), float(optimal_h(at, t))
        assert weight_degradation(below, t, h0) == pytest.approx(float(weight_degradation(at, t, h1)), rel=1e-5)
        mirrored = 1 - h1  # for m > ½ the roles of the two points are exchanged
        assert (abs(mirrored - h1) < 1e-2) == (t < 2)
    t = np.linspace(0.01, 8, 4000)
    wd = weight_degradation(0.5, t, optimal_h(0.5, t))
    assert np.abs(np.diff(wd)).max() < 2e-3


def test_weight_degradation_is_the_squared_distance():
    rng = np.random.default_rng(0)
    gamma = 0.7
    kernel = lambda a, b: np.exp(-gamma * np.sum((a - b) ** 2))  # noqa: E731
    for _ in range(50):
        x, y = rng.normal(size=(2, 4)) * rng.choice([0.02, 0.3, 1.0])
        small, large = np.sort(rng.uniform(0.1, 2, 2))
        m, t = small / (small + large), gamma * np.sum((x - y) ** 2)
        h = float(optimal_h(m, t))
        z = h * x + (1 - h) * y
        size = (small + large) * float(merged_size(m, t, h))
        coef, points = np.array([small, large, -size]), [x, y, z]
        gram = np.array([[kernel(a, b) for b in points] for a in points])
        assert coef @ gram @ coef == pytest.approx((small + large) ** 2 * weight_degradation(m, t, h), abs=1e-12)


def test_identical_points_merge_without_loss():
    h = optimal_h(0.3, 0.0)
    assert weight_degradation(0.3, 0.0, h) == 0
    assert merged_size(0.3, 0.0, h) == 1


def test_the_uniform_table_is_the_paper_s():
    """WD and h themselves at the nodes of the unit square, edges by their limits; and wrong by far near kappa = 1."""
    wd, h = uniform_grids(21)
    nodes = np.linspace(0, 1, 21)
    for i, m in enumerate(nodes):
        for j, kappa in enumerate(nodes):
            if 0 < kappa < 1 and 0 < m < 1:
                best = best_by_search(m, -np.log(kappa))
                assert wd[i, j] == pytest.approx(float(weight_degradation(m, -np.log(kappa), best)), abs=1e-10)
                if abs(m - 0.5) > 1e-9 and abs(kappa - np.exp(-2)) > 0.05:
                    assert h[i, j] == pytest.approx(best, abs=1e-5)
    np.testing.assert_allclose(wd[:, 0], np.minimum(nodes, 1 - nodes) ** 2)
    np.testing.assert_array_equal(wd[:, -1], 0)
    np.testing.assert_allclose(wd, wd[::-1], atol=1e-15)
    np.testing.assert_allclose(h[:10], 1 - h[:10:-1], atol=1e-12)
    np.testing.assert_allclose(h[:, -1], nodes)
    wd, _ = uniform_grids(400)
    m, kappa = 0.3, 0.9999
    exact = float(weight_degradation(m, -np.log(kappa), optimal_h(m, -np.log(kappa))))
    between = (1 - kappa) * 399 * np.interp(m, np.linspace(0, 1, 400), wd[:, -2])
    assert 20 < between / exact < 30


@pytest.mark.parametrize("kind", ["scaled", "uniform"])
@pytest.mark.parametrize("size", [2, 3, 63, 64, 65, 130])
def test_tables_are_the_same_by_blocks(kind, size, monkeypatch):
    """They are computed some rows at a time."""
    from maxmargin.budget import merging

    whole = merging.TABLES[kind](size)
    parts = [merging.TABLES[kind](size, slice(b, min(b + 64, size))) for b in range(0, size, 64)]
    for k in range(2):
        np.testing.assert_array_equal(np.vstack([part[k] for part in parts]), whole[k])
        assert np.isfinite(whole[k]).all()
    seen = []
    monkeypatch.setattr("maxmargin._core.MergeTable", lambda *arrays: seen.append(arrays))
    merging.merge_table.__wrapped__(size, kind)
    np.testing.assert_array_equal(seen[0][0], whole[0].astype(np.float32))
    np.testing.assert_array_equal(seen[0][1], whole[1].astype(np.float32))
    assert seen[0][2] == (kind == "uniform")
