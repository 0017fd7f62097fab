"""The linear room of the core, loop by loop: sums over rows by whole numbers, epochs of descent step by step in Python."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 19, 20, 31, 32, 33]  # features: around four, and four times four
threads_of = pytest.mark.parametrize("threads", [1, 2])


def forms(x: np.ndarray) -> Iterator[tuple[str, Any]]:
    yield "dense64", as_matrix(np.ascontiguousarray(x))
    yield "dense32", as_matrix(x.astype(np.float32))
    wide = np.full((len(x), x.shape[1] + 3), np.nan)
    wide[:, : x.shape[1]] = x
    yield "dense64, rows apart", as_matrix(wide[:, : x.shape[1]])
    yield "csr64", as_matrix(sp.csr_matrix(x))
    yield "csr32", as_matrix(sp.csr_matrix(x.astype(np.float32)))
    long = sp.csr_matrix(x)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    yield "csr64, long", as_matrix(long)


def some_forms(x: np.ndarray, k: int) -> list[tuple[str, Any]]:
    """A dense one and a sparse one, others for another k."""
    every = list(forms(x))
    return [every[k % 3], every[3 + k % 3]]


def whole(rng: np.random.Generator, n: int, d: int, density: float = 0.6) -> np.ndarray:
    """Whole numbers, some rows without any: sums of them are exact in whatever order."""
    x = rng.integers(-3, 4, (n, d)) * (rng.random((n, d)) < density)
    x[::7] = 0
    return x.astype(float)


# ---- passes over rows


@threads_of
@pytest.mark.parametrize("hinges", [1, 2])
def test_outputs_of_a_range_of_rows(hinges: int, threads: int) -> None:
    """sign·(⟨x, w⟩ + bias) + shift for each hinge of the rows asked for; the others are left as they were."""
    for d in SIZES:
        rng = np.random.default_rng(d)
        n = 3 * d
        x, w = whole(rng, n, d), rng.integers(-5, 6, d).astype(float)
        sign, shift = rng.choice([-1.0, 1.0], hinges * n), rng.integers(-9, 9, hinges * n).astype(float)
        values = np.tile(x @ w + 2, hinges)
        for name, matrix in forms(x):
            for begin, end in ((0, n), (0, 1), (d, n), (d, 2 * d), (n, n), (0, 0)):
                for given, wanted in ((shift, sign * values + shift), (shift[:0], sign * values)):
                    out = np.full(hinges * n, np.nan)
                    _core.linear_outputs(matrix, w, 2.0, sign, given, begin, end, out, threads)
                    asked = np.tile((np.arange(n) >= begin) & (np.arange(n) < end), hinges)
                    np.testing.assert_array_equal(out, np.where(asked, wanted, np.nan), err_msg=f"{name} {d}")


@threads_of
def test_sums_norms_and_extents_of_rows(threads: int) -> None:
    """Rows may come twice or not at all; sums add to what is there; rows without a coefficient are not read."""
    for d in SIZES:
        rng = np.random.default_rng(d)
        n = 40
        x = whole(rng, n, d)
        unread = x.copy()
        unread[5:30:3] = np.nan
        start = rng.integers(-5, 6, d).astype(float)
        for name, matrix in forms(x):
            for count in (0, 1, 3, 4, 5, 8, 11, 50):
                rows, coef, total = rng.integers(0, n, count), rng.integers(-4, 5, count).astype(float), start.copy()
                assert _core.linear_add_rows(matrix, rows, coef, total, threads) == count
                np.testing.assert_array_equal(total, start + coef @ x[rows], err_msg=f"{name} {d} {count}")
            norms, largest = np.full(n, np.nan), np.full(d, np.nan)
            _core.linear_norms(matrix, norms, threads)
            np.testing.assert_array_equal(norms, (x * x).sum(1), err_msg=name)
            assert _core.linear_extents(matrix, largest, threads) == (x * x).sum(1).max()
            np.testing.assert_array_equal(largest, np.abs(x).max(0), err_msg=name)
        coef = rng.integers(1, 5, n).astype(float)
        coef[5:30:3] = 0.0
        for name, matrix in forms(unread):
            total = start.copy()
            _core.linear_sum_rows(matrix, coef, total, threads)
            np.testing.assert_array_equal(total, start + coef @ x, err_msg=name)


@pytest.mark.parametrize(("n", "d"), [(200_001, 3), (300_001, 1), (9_000, 260)])
def test_sums_of_many_rows_say_how_often_they_were_rounded(n: int, d: int) -> None:
    """By the rows of a slice and the number of slices, at most 64; one row at least in each. Any threads, the same bits."""
    rng = np.random.default_rng(n)
    x, coef = rng.normal(size=(n, d)), rng.normal(size=n)
    rows = rng.permutation(n)
    said, sums = set(), []
    for threads in (1, 2, 3):
        total, spread = np.zeros(d), np.zeros(d)
        said.add(_core.linear_add_rows(as_matrix(x), rows, coef, total, threads))
        by_row = np.empty(n)
        by_row[rows] = coef
        _core.linear_sum_rows(as_matrix(x), by_row, spread, threads)
        sums.append(np.concatenate([total, spread]))
        np.testing.assert_array_equal(sums[0], sums[-1])
    wanted = coef @ x[rows]
    np.testing.assert_allclose(sums[0], np.tile(wanted, 2), rtol=0, atol=1e-12 * n)
    sizes = [-(-n // slices) for slices in range(1, 65)]
    assert len(said) == 1 and said <= {size + -(-n // size) for size in sizes} and min(said) < n


# ---- weighted Gram matrices


def grams(x: np.ndarray, rows: np.ndarray, weight: np.ndarray, bias: float) -> np.ndarray:
    padded = np.column_stack([x, np.full(len(x), bias)]) if bias else x
    return (padded[rows].T * weight) @ padded[rows]


@threads_of
@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("d", [1, 4, 5, 7, 8, 11, 15, 16, 17, 23, 24, 25, 31, 47, 48, 49, 95, 96, 97, 143, 145])
def test_gram_matrices_of_any_size(d: int, bias: float, threads: int) -> None:
    """As many features as registers, blocks and pairs of blocks have and one more or less; any number of rows."""
    rng = np.random.default_rng(d)
    for count, density in ((0, 0.5), (1, 0.5), (127 + d % 3, 0.5), (200 + d % 2, 0.02), (257, 0.5))[d % 2 :: 2]:
        x = np.clip(whole(rng, 90, d, density), -2, 2)
        rows, weight = rng.integers(0, 90, count), rng.integers(1, 4, count) ** 2.0  # whose roots are whole
        size = d + (bias != 0)
        start = rng.integers(-9, 9, (size, size)).astype(float)
        wanted = np.triu(start + grams(x, rows, weight, bias))
        p = rng.integers(-3, 4, size).astype(float)
        for name, matrix in some_forms(x, d + threads):
            for precise, kind in ((True, float), (False, float), (False, np.float32)):
                gram = start.astype(kind)
                _core.linear_gram(matrix, rows, weight, bias, precise, gram, threads)
                np.testing.assert_array_equal(np.triu(gram), wanted, err_msg=f"{name} {count} {precise}")
            product = np.full(size, np.nan)
            _core.linear_product(matrix, rows, weight, bias, p, product, threads)
            np.testing.assert_array_equal(product, grams(x, rows, weight, bias) @ p, err_msg=f"{name} {count}")


@threads_of
@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize(("d", "count"), [(1, 300), (7, 129), (40, 700), (65, 383), (130, 260), (130, 128), (40, 0)])
def test_gram_matrices_of_chosen_features(d: int, count: int, bias: float, threads: int) -> None:
    """The same sums where both features are chosen: all or some, the constant one or not; of few rows and of many."""
    rng = np.random.default_rng(d + count)
    for density in (0.6, 0.03):
        x = whole(rng, 300, d, density)
        rows, weight = rng.integers(0, 300, count), rng.integers(1, 4, count) ** 2.0
        every, size = grams(x, rows, weight, bias), d + (bias != 0)
        for chosen in (np.arange(size), np.flatnonzero(rng.random(size) < 0.4), np.arange(size)[-1:], np.arange(size)[:-1]):
            place = np.full(size, -1, np.int32)
            place[chosen] = np.arange(len(chosen))
            start = rng.integers(-9, 9, (len(chosen),) * 2).astype(float)
            wanted = np.triu(start + every[np.ix_(chosen, chosen)])
            for name, matrix in some_forms(x, d + count):
                gram = start.copy()
                _core.linear_chosen_gram(matrix, rows, weight, bias, place, gram, threads)
                np.testing.assert_array_equal(np.triu(gram), wanted, err_msg=name)


# ---- loops over margins


@threads_of
@pytest.mark.parametrize("n", [1, 2, 511, 512, 513, 1025])
def test_rises_of_the_derivative_by_bucket(n: int, threads: int) -> None:
    """512 parts of a range, what lies beyond and what is never met or before; a bucket has its hinges in their order."""
    rng = np.random.default_rng(n)
    m, q = rng.integers(-40, 48, n) / 8, rng.choice([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0], n)  # places are exact
    c = rng.integers(0, 5, n).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (1 - m) / q
    u = 1 - m
    assert _core.hinge_slope(m, q, c, threads) == (c * q)[(u > 0) | ((u == 0) & (q < 0))].sum()
    for low, high in ((0.0, 2.0), (2.0, 16.0), (1.0, 1.5), (16.0, 128.0)):
        with np.errstate(invalid="ignore"):
            bucket = np.where((at > 0) & (at >= low), np.minimum((at - low) * 512 / (high - low), 512.0), 513.0)
        bucket = np.floor(bucket).astype(int)
        rises = _core.hinge_rises(m, q, c, low, high, threads)
        np.testing.assert_array_equal(rises, np.bincount(bucket, c * np.abs(q), 514))
        for b in (0, 1, 255, 256, 511, int(bucket.min()), 512):
            if not (b == 512 and np.isinf(at[bucket == 512]).any()) and b < 513:
                where, by = _core.hinge_bucket(m, q, c, low, high, b, threads)
                np.testing.assert_array_equal(where, at[bucket == b])
                np.testing.assert_array_equal(by, (c * np.abs(q))[bucket == b])


@threads_of
@pytest.mark.parametrize("seed", range(10))
def test_searches_with_little_or_no_curvature_end_at_a_minimum(seed: int, threads: int) -> None:
    """Also where the line begins all but flat, falling or rising: no hinge is better, nor what lies close by."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    m, q, c = rng.normal(size=n), rng.normal(size=n), rng.uniform(0.1, 2, n)
    if seed % 2:
        m, q = np.round(2 * m) / 2, np.round(q)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (1 - m) / q
    hinges = at[np.isfinite(at) & (at > 0)]
    for quad in (0.0, 1e-6, 1e-3, 1.0):
        for more in (-0.9, -1e-3, 0.0, 1e-3, 0.5, 0.99, 1.0, 2.0):
            lin = _core.hinge_slope(m, q, c, 1) + more  # the line begins with this slope
            if quad == 0 and lin <= 0:  # it may fall for ever
                continue
            value = lambda k, quad=quad, lin=lin: 0.5 * quad * k * k + lin * k + c @ np.maximum(0, 1 - m - k * q)  # noqa: E731
            k = _core.hinge_search(m, q, c, quad, lin, threads)
            best = min(value(p) for p in [0.0, *hinges, k * 1.001, k * 0.999])
            assert k >= 0 and value(k) <= best + 1e-12 * (1 + abs(best))


@threads_of
@pytest.mark.parametrize("lazy", [0.0, 0.1])
@pytest.mark.parametrize("mix", [0.0, 0.25, 1.0])
@pytest.mark.parametrize(("loss", "h"), [("hinge", 0.0), ("hinge", 0.05), ("squared_hinge", 0.0)])
def test_duals_by_their_definitions(loss: str, h: float, mix: float, lazy: float, threads: int) -> None:
    """Of a mixed point, moved where the move is more than lazy; with the slopes of the rounded hinge or those promised."""
    rng = np.random.default_rng(0)
    n = 700
    m, other, sign = rng.normal(1, 1, n), rng.normal(1, 1, n), rng.choice([-1.0, 1.0], n)
    m[:5] = other[:5] = 1.0
    m[5:9], other[5:9] = [1e3, -1e3, 1.0, 1 + 1e-9], [1e3, -1e3, 1.0, 1 + 1e-9]
    c = rng.uniform(0.2, 2, n)
    c[::9] = 0.0
    for path in (np.empty(0), c * rng.random(n)):
        start = c * rng.random(n) * (rng.random(n) < 0.7)
        alpha = start.copy()
        found = _core.linear_duals(loss, h, lazy, m, other, mix, c, sign, path, alpha, threads)
        rows, delta, band, slopes, total, risk, mass = found
        u = 1 - ((1 - mix) * m + mix * other)
        r = np.sqrt(u * u + 4 * h * h)
        left = np.maximum(u, 0)
        if loss == "squared_hinge":
            now, slope, risks = 2 * c * left, 2 * c * (u > 0), c * left**2
        elif h == 0:
            now, slope, risks = c * (u >= 0), np.zeros(n), c * left
        else:
            now, risks = c * (1 + u / r) / 2, c * left
            slope = (c / 2 - (path - c / 2) * u / r) / r if len(path) else 2 * c * h * h / r**3
            slope[(c == 0) | (4 * h * slope < 1e-6 * c)] = 0.0
        moved = np.abs(now - start) > lazy * c
        np.testing.assert_array_equal(rows, np.flatnonzero(moved))
        np.testing.assert_allclose(alpha, np.where(moved, now, start), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(delta, (sign * (now - start))[moved], rtol=1e-9, atol=1e-14)
        np.testing.assert_array_equal(band, np.flatnonzero(slope > 0))
        np.testing.assert_allclose(slopes, slope[slope > 0], rtol=1e-9)
        conjugate = np.divide(alpha**2, 4 * c, out=np.zeros(n), where=c > 0) if loss == "squared_hinge" else 0.0
        assert total == pytest.approx((alpha - conjugate).sum(), rel=1e-11)
        assert risk == pytest.approx(risks.sum(), rel=1e-11) and mass == pytest.approx(alpha.sum(), rel=1e-11)


# ---- epochs of descent


class Random:
    """splitmix64, and a whole number below a limit."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, limit: int) -> int:
        most = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & most
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & most
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & most
        return ((z ^ (z >> 31)) * limit) >> 64

    def shuffle(self, items: list[int]) -> None:
        for k in range(len(items)):
            other = k + self.below(len(items) - k)
            items[k], items[other] = items[other], items[k]


def descended(x: np.ndarray, active: list[int], sign: Any, target: Any, upper: Any, diag: Any, offset: float, above: float,
              below: float, alpha: Any, w: Any, seed: int) -> tuple[list[int], float, float, float, int]:  # fmt: skip
    """An epoch over samples with the constant feature among theirs: those left, extremes, what was moved, steps."""
    Random(seed).shuffle(active)
    n, two = len(x), len(sign) > len(x)
    seen: list[float] = []
    moved, steps, k = 0.0, 0, 0
    while k < len(active):
        i = active[k]
        hinges = [i + n, i] if two and alpha[i + n] > 0 else [i, i + n] if two else [i]
        total, looked = 0.0, len(seen)
        for j in hinges:
            grad = sign[j] * (x[i] @ w + offset) - target[j] + diag[j] * alpha[j]
            if (alpha[j] <= 0 and grad > above) or (0 < alpha[j] >= upper[j] and grad < below):
                continue
            seen.append(min(grad, 0.0) if alpha[j] <= 0 else max(grad, 0.0) if alpha[j] >= upper[j] else grad)
            if abs(seen[-1]) > 1e-12:
                curve = x[i] @ x[i] + diag[j]
                best = alpha[j] - grad / curve if curve > 0 else upper[j] if grad < 0 else 0.0
                step = min(max(best, 0.0), upper[j]) - alpha[j]
                alpha[j] += step
                w += sign[j] * step * x[i]
                total += sign[j] * step
                moved += abs(step)
        if looked == len(seen):
            active[k], active[-1] = active[-1], active[k]
            active.pop()
        else:
            steps += total != 0
            k += 1
    return active, max(seen, default=-np.inf), min(seen, default=np.inf), moved, steps


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("bias", [0.0, 1.5])
@pytest.mark.parametrize("squared", [False, True])
def test_epochs_of_descent_take_the_steps_of_the_algorithm(squared: bool, bias: float, regression: bool) -> None:
    """Step by step with and without limits of shrinking, an offset, targets and rows of zeros, in the order of the seed."""
    for d in (1, 4, 7, 16, 18):
        rng = np.random.default_rng(d)
        n, hinges = 25, 50 if regression else 25
        x = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
        x[3] = 0.0
        x = x.astype(np.float32).astype(float)
        sign = np.repeat([1.0, -1.0], n) if regression else rng.choice([-1.0, 1.0], n)
        target = rng.normal(size=hinges) if regression else np.ones(hinges)
        upper = np.full(hinges, np.inf) if squared else rng.uniform(0.05, 1, hinges)
        diag = rng.uniform(0.3, 2, hinges) if squared else np.zeros(hinges)
        full = np.column_stack([x, np.full(n, bias)]) if bias else x
        for name, matrix in some_forms(x, d):
            alpha, w = np.zeros(hinges), np.zeros(full.shape[1])
            theirs, point = alpha.copy(), w.copy()
            mine = list(range(n))
            active = np.arange(n)
            given = target if regression else np.empty(0)
            limits = [(np.inf, -np.inf)] * 2 + [(0.3, -0.3), (0.05, -0.05), (0.0, 0.0), (0.0, 0.0)]
            for seed, (above, below) in enumerate(limits):
                said = _core.descent_epoch(matrix, active, len(mine), sign, given, upper, diag, (x * x).sum(1), bias, 0.2,
                                           above, below, alpha, w, seed)  # fmt: skip
                wanted = descended(full, mine, sign, target, upper, diag, 0.2, above, below, theirs, point, seed)
                assert active[: said[0]].tolist() == wanted[0] == mine, name
                np.testing.assert_allclose(said[1:4], wanted[1:4], rtol=1e-7, atol=1e-10)
                assert said[4] == wanted[4]
                np.testing.assert_allclose(alpha, theirs, rtol=1e-8, atol=1e-10)
                np.testing.assert_allclose(w, point, rtol=1e-8, atol=1e-10)
            assert len(mine) < n or squared
            rows = np.tile(full, (hinges // n, 1))
            np.testing.assert_allclose(w, (alpha * sign) @ rows, atol=1e-10)
            assert ((alpha >= 0) & (alpha <= upper)).all()


def descended_jointly(x: np.ndarray, rows: list[int], label: Any, upper: Any, offset: Any, beta: Any, v: Any,
                      seed: int) -> tuple[float, int]:  # fmt: skip
    """An epoch of the joint problem; each sample's minimiser by bisection of the level at which its duals add up to zero."""
    Random(seed).shuffle(rows)
    moved, steps = 0.0, 0
    for i in rows:
        curve = x[i] @ x[i]
        if upper[i] <= 0 or curve <= 0:
            continue
        steps += 1
        own = np.arange(len(v)) == label[i]
        grad = v @ x[i] + offset + ~own - curve * beta[i]
        bound = np.where(own, upper[i], 0.0)
        low, high = grad.min() - 1 - curve * bound.max(), grad.max() + 1 + curve * bound.max()
        for _ in range(70):
            level = (low + high) / 2
            low, high = (level, high) if np.minimum(bound, (level - grad) / curve).sum() < 0 else (low, level)
        to = np.minimum(bound, (high - grad) / curve)
        moved += np.abs(to - beta[i]).sum()
        v += np.outer(to - beta[i], x[i])
        beta[i] = to
    return moved, steps


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_epochs_of_joint_descent_take_the_steps_of_the_algorithm(bias: float, classes: int) -> None:
    """Every sample at the minimum over its duals; rows of zeros and samples without weight stay where they are."""
    for d in (1, 5, 17):
        rng = np.random.default_rng(d)
        n = 20
        x = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)).astype(np.float32).astype(float)
        x[4] = 0.0
        label, upper, offset = rng.integers(0, classes, n), rng.uniform(0.02, 2, n), rng.normal(size=classes)
        upper[7] = 0.0
        full = np.column_stack([x, np.full(n, bias)]) if bias else x
        for name, matrix in some_forms(x, d):
            rows = rng.permutation(n)
            mine = rows.tolist()
            beta, v = np.zeros((n, classes)), np.zeros((classes, full.shape[1]))
            theirs, sums = beta.copy(), v.copy()
            for seed in range(5):
                said = _core.joint_epoch(matrix, rows, label, upper, (x * x).sum(1), bias, offset, beta, v, seed)
                wanted = descended_jointly(full, mine, label, upper, offset, theirs, sums, seed)
                assert rows.tolist() == mine and said[1] == wanted[1], name
                assert said[0] == pytest.approx(wanted[0], rel=1e-6, abs=1e-9)
                np.testing.assert_allclose(beta, theirs, rtol=0, atol=1e-8)
                np.testing.assert_allclose(v, sums, rtol=0, atol=1e-7)
            np.testing.assert_allclose(v, beta.T @ full, atol=1e-10)
            np.testing.assert_allclose(beta.sum(axis=1), 0, atol=1e-12)
            own = beta[np.arange(n), label]
            assert (own <= upper).all() and (own >= 0).all() and (np.delete(beta[0], label[0]) <= 0).all()
            assert not beta[7].any() and (bias != 0 or not beta[4].any())


def soft(w: float, grad: float, bend: float, penalty: float) -> float:
    """To the minimum of grad d + ½ bend d² + penalty |w + d|, by the best of its three candidates."""
    steps = [-(grad + penalty) / bend, -(grad - penalty) / bend, -w]
    return min(steps, key=lambda d: grad * d + 0.5 * bend * d * d + penalty * abs(w + d))


def violated(w: float, grad: float, penalty: float) -> float:
    return max(0.0, abs(grad) - penalty) if w == 0 else abs(grad + np.sign(w) * penalty)


def swept(z: np.ndarray, features: list[int], fresh: bool, curve: Any, penalty: Any, most: Any, w: Any, u: Any,
          seed: int) -> tuple[list[int], float, int]:  # fmt: skip
    """An epoch under the 1-norm: those left, the largest violation, entries read of rows with so many stored."""
    if fresh:
        Random(seed).shuffle(features)
    left, largest, reads = [], 0.0, 0
    for j in features:
        loss = lambda p: float(0.5 * curve @ np.maximum(p, 0) ** 2)  # noqa: E731
        stored = np.count_nonzero(z[j]) if most[1] else z.shape[1]
        reads += stored
        grad, bend = -(curve * np.maximum(u, 0)) @ z[j], (curve * (u > 0)) @ z[j] ** 2
        violation = violated(w[j], grad, penalty[j])
        largest = max(largest, violation)
        if fresh or violation > 0 or w[j] != 0 or penalty[j] == 0:
            left.append(j)
        bend = max(bend, 1e-12 * most[0][j])
        if violation == 0 or bend <= 0:
            continue
        step = soft(w[j], grad, bend, penalty[j])
        for _ in range(30):
            if step == 0:
                break
            norm = penalty[j] * (abs(w[j] + step) - abs(w[j]))
            promised = norm + grad * step
            reads += stored
            if (norm + loss(u - step * z[j]) - loss(u) <= 0.01 * promised
                    or promised + 0.5 * most[0][j] * step**2 <= 0.01 * promised):  # fmt: skip
                w[j] += step
                u -= step * z[j]
                break
            reads += stored
            step /= 2
    return left, largest, reads


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_epochs_under_the_1_norm_take_the_steps_of_the_algorithm(sparse: bool, even: bool) -> None:
    """Fresh ones and those that follow; features at rest leave; one of zeros, one without a penalty, steps too long."""
    for n in (9, 18, 31):
        rng = np.random.default_rng(n)
        z = (rng.normal(size=(12, n)) * (rng.random((12, n)) < 0.7)).astype(np.float32).astype(float)
        z[5] = 0.0
        z[6] *= np.where(rng.random(n) < 0.3, 1.0, 1e-3)
        curve = np.full(n, 1.4) if even else rng.uniform(0.1, 3, n)
        penalty = rng.uniform(0.1, 1.0, 12)
        penalty[2], penalty[9], most = 0.0, 50.0, z**2 @ curve
        for name, matrix in forms(z):
            if sparse != name.startswith("csr"):
                continue
            w, features = np.zeros(12), np.arange(12)
            w[9], w[1] = 0.7, -3.0
            u = 1 - w @ z
            theirs, margins, mine = w.copy(), u.copy(), features.tolist()
            for seed, fresh in enumerate((True, False, False, True, False, False, False)):
                if fresh:
                    features[:] = mine = list(range(12))
                said = _core.one_norm_epoch(matrix, features, len(mine), fresh, curve, penalty, most, w, u, seed)
                wanted = swept(z, mine, fresh, curve, penalty, (most, sparse), theirs, margins, seed)
                mine = wanted[0]
                assert features[: said[0]].tolist() == mine, f"{name} {n} {seed}"
                assert said[1] == pytest.approx(wanted[1], rel=1e-6, abs=1e-8) and said[2] == wanted[2]
                np.testing.assert_allclose(w, theirs, rtol=1e-7, atol=1e-9)
                np.testing.assert_allclose(u, margins, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 7, 16, 33])
def test_sweeps_over_a_quadratic_model_take_the_steps_of_the_algorithm(size: int) -> None:
    """Until the violation seen is calm or so many are done; weights without curvature rest."""
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size + 3, size))
    if size > 2:
        root[:, 1] = 0.0
    H, penalty = root.T @ root, rng.uniform(0, 1, size)
    for most, calm in ((0, 0.0), (1, 0.0), (4, 0.0), (100, 0.3), (100, 1e-9)):
        w, grad = rng.normal(size=size) * (rng.random(size) < 0.5), 3 * rng.normal(size=size)
        theirs, slopes = w.copy(), grad.copy()
        count, largest = 0, np.inf
        while count < most and largest > calm:
            count, largest = count + 1, 0.0
            for j in range(size):
                violation = violated(theirs[j], slopes[j], penalty[j])
                if violation > 0 and H[j, j] > 0:
                    largest = max(largest, violation)
                    step = soft(theirs[j], slopes[j], H[j, j], penalty[j])
                    theirs[j] += step
                    slopes += step * H[j]
        said = _core.one_norm_sweeps(H, penalty, w, grad, calm, most)
        assert said[0] == count and said[1] == pytest.approx(largest, rel=1e-5, abs=1e-12)
        np.testing.assert_allclose(w, theirs, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(grad, slopes, rtol=1e-7, atol=1e-9)


# ---- the joint machine


def joint_risk(s: np.ndarray, label: np.ndarray, weight: np.ndarray) -> float:
    own = s[np.arange(len(s)), label][:, None]
    return float(weight @ (s - own + (np.arange(s.shape[1]) != label[:, None])).max(axis=1))


@threads_of
@pytest.mark.parametrize("seed", range(12))
def test_joint_searches_end_at_the_minimum_of_their_line(seed: int, threads: int) -> None:
    """Found among all points where two classes of a sample tie, and between them; with ties, flat lines, far ends."""
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(1, 30)), int(rng.integers(2, 5))
    s, q = rng.normal(size=(n, classes)), rng.normal(size=(n, classes))
    if seed % 3 == 0:
        s, q = np.round(2 * s) / 2, np.round(q)
    label, weight = rng.integers(0, classes, n), rng.uniform(0, 2, n)
    wide = s + (np.arange(classes) != label[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        ties = -(wide[:, :, None] - wide[:, None]) / (q[:, :, None] - q[:, None])
    for quad, lin, far in ((0.0, -1.0, 1e6), (0.5, -2.0, 1e6), (20.0, -30.0, 1e6), (0.01, -3.0 * n, 1e9),
                           (1.0, 30.0 * n, 1e6), (0.5, -20.0 * n, 0.75)):  # fmt: skip
        value = lambda k, quad=quad, lin=lin: 0.5 * quad * k * k + lin * k + joint_risk(s + k * q, label, weight)  # noqa: E731
        ends = np.unique(np.concatenate([[0.0, far], ties[np.isfinite(ties) & (ties > 0) & (ties < far)]]))
        places = list(ends)
        for a, b in itertools.pairwise(ends):
            if quad > 0:  # the minimum of a parabola, by its slope in the middle
                middle = (a + b) / 2
                near, here = (joint_risk(s + k * q, label, weight) for k in (middle + 1e-7, middle))
                slope = lin + (near - here) / 1e-7
                places.append(float(np.clip(-slope / quad, a, b)))
        best = min(map(value, places))
        k = _core.joint_search(s, q, label, weight, quad, lin, far, threads)
        assert 0 <= k <= far
        assert value(k) <= best + 1e-7 * (1 + abs(best))


@threads_of
def test_joint_outputs_and_sums_of_any_size(threads: int) -> None:
    """Of a range of rows, and by class of lists of rows, some empty; of worst classes the first that attains the loss."""
    for d in SIZES:
        rng = np.random.default_rng(d)
        n, classes = 2 * d + 1, 4
        x, w = whole(rng, n, d), rng.integers(-3, 4, (classes, d)).astype(float)
        shift, scores = np.array([0.0, 2.0, -1.0, 2.0]), np.full((n, classes), np.nan)
        rows, starts = rng.integers(0, n, 11), np.array([0, 0, 4, 10, 11])
        coef, start = rng.integers(-3, 4, 11).astype(float), rng.integers(-5, 6, (classes, d)).astype(float)
        for name, matrix in forms(x):
            scores[:] = np.nan
            _core.joint_outputs(matrix, w, shift, d // 2, n - 1, scores, threads)
            wanted = x @ w.T + shift
            np.testing.assert_array_equal(scores[d // 2 : n - 1], wanted[d // 2 : n - 1], err_msg=name)
            assert np.isnan(scores[: d // 2]).all() and np.isnan(scores[n - 1 :]).all()
            total = start.copy()
            _core.joint_add(matrix, rows, coef, starts, total, threads)
            each = [coef[a:b] @ x[rows[a:b]] for a, b in itertools.pairwise(starts)]
            np.testing.assert_array_equal(total, start + each, err_msg=name)
        other, label = rng.integers(-3, 4, (n, classes)) * 1.0, rng.integers(0, classes, n)
        weight = rng.integers(0, 3, n) * 1.0
        for mix in (0.0, 0.5, 1.0):
            mixed = (1 - mix) * wanted + mix * other
            loss = mixed - mixed[np.arange(n), label][:, None] + (np.arange(classes) != label[:, None])
            worst = np.empty(n, np.int64)
            _core.joint_worst(wanted, other, mix, label, worst, threads)
            np.testing.assert_array_equal(loss[np.arange(n), worst], loss.max(axis=1))
            at = wanted.copy()
            moved = wanted + mix * other
            assert _core.joint_advance(at, other, mix, label, weight, threads) == joint_risk(moved, label, weight)
            np.testing.assert_array_equal(at, moved)
