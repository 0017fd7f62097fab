"""Kernel values straight from the core: every kernel, form, precision and size of a remainder, against NumPy in double."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

NAMES = ["linear", "poly", "rbf", "sigmoid", "laplacian"]
FORMS = {"dense": np.asarray, "csr": sp.csr_matrix}
KINDS = [np.float32, np.float64]
SIZES = [1, 2, 5, 6, 7, 11, 12, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65]  # around rows of registers, vectors and panels
GAMMA, COEF0, DEGREE = 0.4, 0.3, 3

kinds = pytest.mark.parametrize("dtype", KINDS)
forms = pytest.mark.parametrize("form", FORMS)
names = pytest.mark.parametrize("name", NAMES)


def points_of(X: np.ndarray, name: str, dtype: Any, form: str = "dense", gamma: float = GAMMA, degree: int = DEGREE,
              threads: int = 1) -> Any:  # fmt: skip
    """Samples as the core has them. Their values are of X as it is: float32 ones are no other number in float64."""
    Points: Any = _core.Points32 if dtype == np.float32 else _core.Points64
    return Points(as_matrix(FORMS[form](X)), name, gamma, COEF0, degree, np.arange(len(X)), threads)


def block(points: Any, other: Any, rows: Any, others: Any, dtype: Any, threads: int = 1, room: int = 0) -> np.ndarray:
    """K(others[i], rows[j]) in an array that begins with what nobody would compute."""
    out = np.full((len(others), len(rows) + room), -7.0, dtype)
    points.block(np.asarray(rows, np.int64), other, np.asarray(others, np.int64), out, threads)
    return out[:, : len(rows)]


def exact(A: np.ndarray, B: np.ndarray, name: str, gamma: float = GAMMA, degree: int = DEGREE) -> np.ndarray:
    A, B = A.astype(float), B.astype(float)
    if name == "rbf":
        return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(2))
    if name == "laplacian":
        return np.exp(-gamma * np.abs(A[:, None] - B[None]).sum(2))
    dots = A @ B.T
    if name == "linear":
        return dots
    return (gamma * dots + COEF0) ** degree if name == "poly" else np.tanh(gamma * dots + COEF0)


def samples(n: int, d: int, seed: int, density: float = 1.0) -> np.ndarray:
    """Of length about 1, numbers that float32 holds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density) / np.sqrt(max(1, d))
    return X.astype(np.float32).astype(float)


@names
@forms
@kinds
def test_blocks_of_any_size_are_the_kernel_s(dtype: Any, form: str, name: str) -> None:
    """As many samples, rows and features as vectors and panels have, and some more or less; whatever room there is."""
    accuracy = 3e-6 if dtype == np.float32 else 1e-13
    for k, size in enumerate(SIZES):
        n, m, d = size, SIZES[-1 - k], SIZES[(5 * k + 3) % len(SIZES)]
        A, B = samples(n, d, k), samples(m, d, k + 100)
        one = points_of(A, name, dtype, form)
        two = one.like(as_matrix(FORMS[form](B)), 1)
        wanted = exact(B, A, name)
        for room in (0, -n % 32, 64):
            found = block(one, two, np.arange(n), np.arange(m), dtype, room=room)
            np.testing.assert_allclose(found, wanted, rtol=accuracy, atol=accuracy, err_msg=f"{n} {m} {d} {room}")
        assert block(one, two, [], np.arange(m), dtype).shape == (m, 0)
        assert block(one, two, np.arange(n), [], dtype).shape == (0, n)


@names
@forms
@kinds
def test_a_value_is_the_same_wherever_it_stands(dtype: Any, form: str, name: str) -> None:
    """To the last bit: in any list of rows, some of them twice, in any block, by any threads; pairs have one value."""
    X = samples(203, 37, 0, density=0.6)
    X[7], X[150] = X[3], 0.0
    points, every = points_of(X, name, dtype, form), np.arange(203)
    whole = block(points, points, every, every, dtype)
    if form == "dense" or name != "laplacian":  # whose sums of stored entries begin with those of one side
        np.testing.assert_array_equal(whole, whole.T)
    np.testing.assert_array_equal(block(points_of(X, name, dtype, form, threads=2), points, every, every, dtype, 2), whole)
    rng = np.random.default_rng(1)
    for n, m in ((1, 203), (203, 1), (17, 6), (33, 7), (130, 13), (16, 40), (300, 400)):
        rows, others = rng.integers(0, 203, n), rng.integers(0, 203, m)
        for threads in (1, 3):
            np.testing.assert_array_equal(block(points, points, rows, others, dtype, threads), whole[np.ix_(others, rows)])
    if name == "rbf" or (name, form) == ("laplacian", "dense"):
        assert (whole.diagonal() == 1).all() and whole[3, 7] == 1 and (whole <= 1).all()


@names
@kinds
@pytest.mark.parametrize("d", [127, 128, 129, 255, 256, 257, 700])
def test_many_features_are_all_counted(d: int, dtype: Any, name: str) -> None:
    """Lines of a whole kilobyte, and rows of many stored entries and of few, in blocks of their own and together."""
    X = samples(90, d, d, density=0.4)
    X[::3] *= np.arange(d) % 29 == 0
    wanted = exact(X, X, name)
    accuracy = 3e-6 if dtype == np.float32 else 1e-13
    for form in FORMS:
        points = points_of(X, name, dtype, form)
        for rows in (np.arange(90), np.arange(0, 90, 3), np.arange(1, 90, 3)):
            found = block(points, points, rows, np.arange(90), dtype)
            np.testing.assert_allclose(found, wanted[:, rows], rtol=accuracy, atol=accuracy)


@kinds
@forms
def test_any_degree(form: str, dtype: Any) -> None:
    X = samples(20, 5, 1)
    for degree in (0, 1, 2, 3, 4, 5, 7, 8, 11):
        points = points_of(X, "poly", dtype, form, degree=degree)
        found = block(points, points, np.arange(20), np.arange(20), dtype)
        accuracy = 1e-5 if dtype == np.float32 else 1e-13
        np.testing.assert_allclose(found, exact(X, X, "poly", degree=degree), rtol=accuracy, atol=accuracy)


def spot(name: str, dtype: Any, X: np.ndarray, form: str, gamma: float) -> np.ndarray:
    """K(x, 0) of each row, nothing taken off."""
    Points: Any = _core.Points32 if dtype == np.float32 else _core.Points64
    rows = np.vstack([np.zeros(X.shape[1], dtype), X])
    points = Points(as_matrix(FORMS[form](rows)), name, gamma, 0.0, 1, np.empty(0), 0.0, 1)
    return block(points, points, np.arange(1, len(rows)), [0], dtype)[0]


@forms
@kinds
def test_exponentials_of_all_sizes(dtype: Any, form: str) -> None:
    """To 2 units of the last place, down to the smallest normal number, and 0 from there on."""
    unit, least = np.finfo(dtype).eps, np.finfo(dtype).tiny
    rng = np.random.default_rng(0)
    x = np.concatenate([[0.0], rng.uniform(0, 1, 200), rng.uniform(0, 800, 2000), np.arange(1000) * np.log(2) / 2])
    x = np.concatenate([x, 10.0 ** rng.uniform(-9, 0, 50)]).astype(dtype)
    wanted = np.exp(-x.astype(np.longdouble))
    found = spot("laplacian", dtype, x[:, None], form, 1.0)
    normal = wanted > 1.5 * least
    np.testing.assert_allclose(found[normal].astype(float), wanted[normal].astype(float), rtol=2.2 * unit)
    assert (np.abs(found[~normal].astype(np.longdouble) - wanted[~normal]) <= 1.5 * least).all()
    assert (found[wanted < 0.3 * least] == 0).all() and normal.sum() > 300


@kinds
@forms
def test_the_tangent_of_all_sizes(form: str, dtype: Any) -> None:
    """tanh, from the kernel with a row of one feature that is 1; ±1 however large the product."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=200), rng.uniform(-60, 60, 300), [0.0, 1e4, -1e4, 1e30, -1e30]]).astype(dtype)
    rows = np.concatenate([[1.0], x]).astype(dtype)[:, None]
    Points: Any = _core.Points32 if dtype == np.float32 else _core.Points64
    points = Points(as_matrix(FORMS[form](rows)), "sigmoid", 1.0, 0.0, 1, np.empty(0), 0.0, 1)
    found = block(points, points, np.arange(1, len(rows)), [0], dtype)[0]
    np.testing.assert_allclose(found, np.tanh(x.astype(float)), atol=4 * np.finfo(dtype).eps, rtol=0)
    assert (np.abs(found[np.abs(x) > 50]) == 1).all()


@pytest.mark.parametrize(("dtype", "corner"), [(np.float32, (5.0, 5.0)), (np.float64, (9.0, 3.0))])
def test_where_values_of_dense_samples_begin_to_be_zero(dtype: Any, corner: tuple[float, float]) -> None:
    """e^−25 is a value in float32 and what is a little below is 0, e^−45 in float64: among few samples and among many."""
    edge, little = np.array(corner, dtype), 1e-6 if dtype == np.float32 else 1e-14
    past, short = (np.array([corner[0], corner[1] * (1 + sign * little)], dtype) for sign in (1, -1))
    last = np.exp(-25.0 if dtype == np.float32 else -45.0)
    for copies in (1, 8, 40, 400):
        found = spot("rbf", dtype, np.tile([edge, past, short], (copies, 1)), "dense", 0.5).reshape(copies, 3)
        np.testing.assert_allclose(found[:, [0, 2]], last, rtol=3e-5)
        assert (found[:, 1] == 0).all()


@kinds
@forms
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_close_pairs_far_from_the_mean_are_accurate(name: str, form: str, dtype: Any) -> None:
    """Norms that rounding would tell K from: pairs from equal to apart, of two islands, one by one and in blocks."""
    rng = np.random.default_rng(2)
    place = np.where(np.arange(120) % 2, 1.0, -1.0)[:, None] * [30.0, -20.0, 25.0]
    X = (place + 10.0 ** rng.uniform(-5, 0, (120, 1)) * rng.normal(size=(120, 3))).astype(np.float32).astype(float)
    wanted = exact(X, X, name)
    points, every = points_of(X, name, dtype, form), np.arange(120)
    whole = block(points, points, every, every, dtype)
    np.testing.assert_allclose(whole, wanted, rtol=0, atol=2e-5 if dtype == np.float32 else 4e-13)
    for i in (0, 1, 64, 119):
        np.testing.assert_array_equal(block(points, points, [i], every, dtype)[:, 0], whole[:, i])


@forms
@names
@kinds
def test_samples_are_judged_by_those_that_were_named(dtype: Any, name: str, form: str) -> None:
    """Mean and largest norm are of the given rows alone; samples prepared by these have the bits of the whole set."""
    X = samples(50, 9, 3, density=0.7)
    X[40:] *= 30
    rows = np.random.default_rng(0).permutation(40)[:33]
    Points: Any = _core.Points32 if dtype == np.float32 else _core.Points64
    points = Points(as_matrix(FORMS[form](X)), name, GAMMA, COEF0, DEGREE, rows, 2)
    shifted = form == "dense" and name in ("rbf", "laplacian")
    shift = X[rows].mean(axis=0) if shifted else np.empty(0)
    np.testing.assert_allclose(points.shift, shift, atol=1e-14)
    Z = X - shift if shifted else X
    norms = np.zeros(50)
    if name == "rbf":
        norms = GAMMA * (Z**2).sum(axis=1)
    elif name == "laplacian":
        norms = GAMMA * np.abs(Z).sum(axis=1)
    assert points.largest_norm == pytest.approx(norms[rows].max(), rel=1e-5)
    assert points.farthest == pytest.approx(norms.max(), rel=1e-5)
    whole = block(points, points, np.arange(50), np.arange(50), dtype)
    some = np.array([45, 2, 7, 30])
    part = Points(as_matrix(FORMS[form](X[some])), name, GAMMA, COEF0, DEGREE, points.shift, points.largest_norm, 1)
    np.testing.assert_array_equal(block(part, part, np.arange(4), np.arange(4), dtype), whole[np.ix_(some, some)])
    alike = points.like(as_matrix(FORMS[form](X[some])), 1)
    assert alike.largest_norm == points.largest_norm
    np.testing.assert_array_equal(block(points, alike, np.arange(50), np.arange(4), dtype), whole[some])


@kinds
def test_the_mean_of_many_rows_is_of_some_spread_over_all(dtype: Any) -> None:
    """At least 4096 of them; each counts as much, and no sum overflows."""
    for n in (1, 4095, 4096, 8191, 8192, 8193, 12289):
        X = np.arange(n, dtype=float)[:, None] * [1.0, -2.0]
        rows = np.random.default_rng(n).permutation(n)
        Points: Any = _core.Points32 if dtype == np.float32 else _core.Points64
        points = Points(as_matrix(X), "rbf", 1e-9, 0.0, 3, rows, 1)
        some = rows[:: max(1, n // 4096)]
        assert len(some) >= min(n, 4096)
        np.testing.assert_allclose(points.shift, X[some].mean(axis=0), rtol=1e-12)
    huge = np.array([[1e308], [1.7e308], [1.7e308]])
    points = _core.Points64(as_matrix(huge), "rbf", 1e-300, 0.0, 3, np.arange(3), 1)
    assert points.shift == pytest.approx([1.4666666666666667e308], rel=1e-12)


@names
@forms
@kinds
def test_sums_are_of_every_row_and_add_to_what_is_there(dtype: Any, form: str, name: str) -> None:
    """At sizes around blocks and passes of rows, for several outputs at once; one thread or two, the same bits."""
    X = samples(260, 6, 4, density=0.8)
    points = points_of(X, name, dtype, form)
    rng = np.random.default_rng(0)
    whole = block(points, points, np.arange(260), np.arange(260), dtype).astype(float)
    for n, m, outputs in ((1, 1, 1), (127, 3, 2), (128, 4, 1), (129, 5, 3), (33, 383, 1), (64, 384, 2), (65, 385, 1),
                          (16, 1535, 1), (17, 1536, 2), (260, 1537, 3), (40, 0, 2), (0, 9, 1)):  # fmt: skip
        rows, others = rng.integers(0, 260, n), rng.integers(0, 260, m)
        coef, start = rng.normal(size=(outputs, m)), rng.normal(size=(outputs, n))
        coef[:, ::5] = 0.0
        found = [start.copy() for _ in range(2)]
        for threads, out in enumerate(found, 1):
            points.sum(rows, points, others, coef, out, threads)
        np.testing.assert_array_equal(*found)
        wanted = start + coef @ whole[np.ix_(others, rows)]
        np.testing.assert_allclose(found[0], wanted, rtol=0, atol=1e-13 * (1 + np.abs(coef).sum()), err_msg=f"{n} {m}")


@names
@kinds
def test_sums_of_dense_samples_go_row_by_row(dtype: Any, name: str) -> None:
    """Rows whose coefficient is 0, more or fewer, change no bit, nor does a sum that is made of two."""
    X = samples(150, 6, 5)
    points, rng = points_of(X, name, dtype), np.random.default_rng(1)
    rows = rng.integers(0, 150, 131)
    for m in (1, 3, 4, 6, 7, 30, 400, 1600):
        others, coef = rng.integers(0, 150, m), rng.normal(size=(2, m))
        coef[0, rng.random(m) < 0.5] = 0.0
        whole, parts, few = (np.zeros((2, 131)) for _ in range(3))
        points.sum(rows, points, others, coef, whole, 1)
        for some in (slice(0, m // 3), slice(m // 3, m)):
            points.sum(rows, points, others[some].copy(), coef[:, some].copy(), parts, 1)
        np.testing.assert_array_equal(parts, whole)
        points.sum(rows, points, others[coef[0] != 0].copy(), coef[:, coef[0] != 0].copy(), few, 2)
        np.testing.assert_array_equal(few[0], whole[0])


@forms
@kinds
def test_sums_by_block_are_the_sums_of_each(dtype: Any, form: str) -> None:
    """Empty blocks among them; what does not fit is refused."""
    X = samples(90, 7, 6)
    points, rng = points_of(X, "rbf", dtype, form), np.random.default_rng(2)
    rows, end, coef = rng.permutation(90)[:50], np.array([0, 0, 17, 50, 50, 90]), rng.normal(size=(3, 90))
    start = rng.normal(size=(15, 50))
    for threads in (1, 2):
        found, wanted = start.copy(), start.copy()
        points.sum_by_block(rows, points, end, coef, found, threads)
        for b in range(5):
            some, out = np.arange(end[b], end[b + 1]), wanted[3 * b : 3 * b + 3].copy()
            points.sum(rows, points, some, coef[:, some].copy(), out, 1)
            wanted[3 * b : 3 * b + 3] = out
        np.testing.assert_array_equal(found, wanted)
    for bad in ([0, 20, 10, 90], [0, 90, 91], [1, 90], [0, 89], [], [0, 90]):
        with pytest.raises(ValueError, match="shapes do not fit"):
            points.sum_by_block(rows, points, np.array(bad, np.int64), coef, np.zeros((15, 50)), 1)


def pairs(sums: np.ndarray, blocks: int) -> np.ndarray:
    """[block][output][sample] to a value for each pair of blocks."""
    return np.array([sums[i, j - 1] + sums[j, i] for i in range(blocks) for j in range(i + 1, blocks)])


@names
@kinds
@pytest.mark.parametrize("m", [1, 15, 17, 47, 48, 49, 95, 97, 191, 192, 193, 385])
def test_sums_for_single_samples_have_the_bits_of_all_others(m: int, dtype: Any, name: str) -> None:
    """Of one block and of several, at sizes around groups of packed rows."""
    X = samples(m, 5, m)
    X[m // 2 :] *= 9  # RBF values from 1 down to 0
    points, rng = points_of(X, name, dtype), np.random.default_rng(m)
    asked = np.vstack([X[:3], X[-2:] + 1e-4, samples(4, 5, 1) * 20])
    like = points.like(as_matrix(asked), 1)
    Sums: Any = _core.RowSums32 if dtype == np.float32 else _core.RowSums64
    for outputs, end in ((1, [0, m]), (3, [0, m]), (1, [0, m // 3, m]), (3, [0, m // 4, m // 4, m // 2, m])):
        blocks = len(end) - 1
        coef = rng.normal(size=(outputs, m))
        coef[:, 1::4] = 0.0
        values = outputs if blocks == 1 else blocks * (blocks - 1) // 2
        intercept, found = rng.normal(size=values), np.full((len(asked), values), np.nan)
        sums = Sums(points, coef, np.array(end))
        assert sums.shape == (values,) and sums.decide(as_matrix(asked), intercept, found) is True
        each = np.zeros((blocks * outputs, len(asked)))
        like.sum_by_block(np.arange(len(asked)), points, np.array(end), coef, each, 1)
        wanted = each if blocks == 1 else pairs(each.reshape(blocks, outputs, -1), blocks)
        np.testing.assert_array_equal(found, wanted.T + intercept)


def test_a_sum_that_is_none_is_told() -> None:
    X = np.full((3, 2), 1e20, np.float32)
    points = _core.Points32(as_matrix(X), "poly", 1.0, 0.0, 2, np.arange(3), 1)
    sums = _core.RowSums32(points, np.ones((1, 3)), np.array([0, 3]))
    asked = np.array([[0.0, 0.0], [1e20, 1e20]], np.float32)
    out = np.zeros((2, 1))
    assert sums.decide(as_matrix(asked[:1]), np.zeros(1), out[:1]) is True
    assert sums.decide(as_matrix(asked), np.zeros(1), out) is False
    assert sums.decide(as_matrix(asked[::-1].copy()), np.zeros(1), out) is False
    assert sums.decide(as_matrix(asked[:1]), np.array([np.inf]), out[:1]) is False


def leaves(X: np.ndarray, rows: np.ndarray) -> list[set[int]]:
    """Places of rows, split at the median of the widest feature into blocks of 128 and a rest."""

    def split(places: np.ndarray) -> list[set[int]]:
        n = len(places)
        middle = -(-(n // 2) // 128) * 128
        Z = X[rows[places]]
        spread = (Z - Z[0]).var(axis=0) if n else np.zeros(1)
        if n <= 128 or middle >= n or spread.max() == 0:
            return [set(places[k : k + 128].tolist()) for k in range(0, n, 128)] if spread.max() else [set(places.tolist())]
        order = places[np.lexsort((places, Z[:, spread.argmax()]))]
        return split(order[:middle]) + split(order[middle:])

    return split(np.arange(len(rows)))


@kinds
@pytest.mark.parametrize("away", [0.0, 1e6])
@pytest.mark.parametrize("n", [0, 1, 127, 128, 129, 256, 257, 300, 513, 1000, 1999])
def test_neighbours_are_split_at_medians_of_the_widest_feature(n: int, away: float, dtype: Any) -> None:
    """However far from zero; of equal values the first come first. The same by one thread or three."""
    rng = np.random.default_rng(n)
    X = rng.random((n + 50, 3)) * [16.0, 11.3, 1.0] + away
    X[:, 0] = np.round(X[:, 0])  # many are equal
    rows = rng.permutation(n + 50)[:n]
    points = points_of(X, "rbf", dtype)
    order = points.neighbour_order(rows, 1)
    np.testing.assert_array_equal(order, points.neighbour_order(rows, 3))
    at = 0
    for leaf in leaves(X, rows):
        assert set(order[at : at + len(leaf)].tolist()) == leaf
        at += len(leaf)
    assert at == n == len(order)
    np.testing.assert_array_equal(points_of(X, "rbf", dtype, "csr").neighbour_order(rows, 2), np.arange(n))


@pytest.mark.parametrize("n", [4096, 4097, 9000, 20001])
def test_many_neighbours_are_ordered_by_any_number_of_threads_alike(n: int) -> None:
    """Along one feature: every block of 128 is below the next one."""
    rng = np.random.default_rng(n)
    X = np.column_stack([rng.random(n), np.full(n, 3.0)])
    points = points_of(X, "rbf", np.float64)
    order = points.neighbour_order(np.arange(n), 1)
    assert sorted(order.tolist()) == list(range(n))
    for threads in (2, 3, 5):
        np.testing.assert_array_equal(points.neighbour_order(np.arange(n), threads), order)
    blocks = [X[order[k : k + 128], 0] for k in range(0, n, 128)]
    assert all(a.max() < b.min() for a, b in itertools.pairwise(blocks))


def test_samples_that_are_all_the_same_stay_in_their_order() -> None:
    points = points_of(np.ones((500, 2)), "rbf", np.float64)
    np.testing.assert_array_equal(points.neighbour_order(np.arange(500), 2), np.arange(500))
    assert points.far_share(np.arange(500)) == 0.0


def part_of(points: Any, rows: np.ndarray, dtype: Any, threads: int, first: int = 0, total: int = -1) -> Any:
    n = len(rows)
    Part: Any = _core.Part32 if dtype == np.float32 else _core.Part64
    zeros, group = np.zeros((1, n)), np.zeros((1, n), np.int8)
    return Part(points, rows, zeros, zeros, zeros + 1, zeros, group, np.zeros(n), 0, threads, first, total)


@kinds
@forms
@pytest.mark.parametrize("share", ["all", "a small share"])
def test_a_tile_is_the_block_of_its_samples_whatever_was_in_it_before(share: str, form: str, dtype: Any) -> None:
    """To the last bit, as members come, go and change places, by one thread or three; by all samples or a tenth of them."""
    X = samples(640, 11, 7, density=0.8)
    points, rng = points_of(X, "rbf", dtype, form), np.random.default_rng(3)
    mine = np.arange(640) if share == "all" else np.arange(300, 364)
    parts = [part_of(points, mine, dtype, threads, int(mine[0]), 640) for threads in (1, 3)]
    stood: dict[int, int] = {}
    for count in (1, 15, 16, 17, 31, 33, 30, 1, 2, 65, 64, 129, 385, 600, 17, 640, 640, 33):
        stay = rng.permutation(list(stood))[: rng.integers(0, count + 1)].astype(int) if stood else np.empty(0, int)
        others = rng.permutation(np.setdiff1d(np.arange(640), stay))[: count - len(stay)]
        ids = rng.permutation(np.concatenate([stay, others]))
        views = [part.tile(ids, points, ids) for part in parts]
        np.testing.assert_array_equal(views[0][1], views[1][1])
        place = views[0][1]
        assert sorted(place.tolist()) == list(range(count))
        assert all(place[k] == stood[i] for k, i in enumerate(ids.tolist()) if stood.get(i, count) < count)
        wanted = block(points, points, ids, ids, dtype)
        for view, at in views:
            np.testing.assert_array_equal(view[np.ix_(at, at)], wanted)
            assert np.isfinite(view[:count]).all() and view.shape[1] >= count
        stood = dict(zip(ids.tolist(), place.tolist()))


@kinds
@forms
def test_a_tile_of_rows_from_elsewhere_is_the_same(form: str, dtype: Any) -> None:
    """Whoever computes which of the newcomers' rows, all or none: the bits of the block, by one thread or three."""
    X = samples(400, 9, 8)
    points, rng = points_of(X, "rbf", dtype, form), np.random.default_rng(4)
    parts = [part_of(points, np.arange(400), dtype, threads) for threads in (1, 3)]
    last = np.empty(0, np.int64)
    for count, share in ((1, 1.0), (16, 0.5), (33, 0.0), (17, 1.0), (100, 0.7), (301, 0.5), (380, 1.0), (40, 0.9)):
        ids = np.union1d(rng.permutation(last)[: count // 3], rng.permutation(400)[:count])
        fresh = np.flatnonzero(~np.isin(ids, last))
        later = rng.permutation(fresh)[: round(share * len(fresh))]
        values = np.full((len(later), -(-len(ids) // 32) * 32), -7.0, dtype)
        values[:, : len(ids)] = wanted = block(points, points, ids, ids[later], dtype)
        for part in parts:
            tile, place = part.tile(ids, points, ids, later)
            if len(later):
                part.take_rows(later, values)
            np.testing.assert_array_equal(tile[np.ix_(place, place)], block(points, points, ids, ids, dtype))
            np.testing.assert_array_equal(tile[np.ix_(place[later], place)], wanted)
        last = ids


@kinds
@forms
@pytest.mark.parametrize("sizes", [(1, 2, 95), (96, 97, 1), (31, 193, 130), (16, 17, 15, 33, 5)])
def test_small_problems_end_at_an_optimum_whoever_computes_their_rows(sizes: tuple[int, ...], form: str, dtype: Any) -> None:
    """Every pair of blocks: all values beforehand or rows as they are asked for, one thread or three, have the same bits."""
    n, end = sum(sizes), np.cumsum([0, *sizes])
    X = samples(n, 7, n, density=0.8)
    X[1::2] += 0.3
    points, rows = points_of(X, "rbf", dtype, form, gamma=2.0), np.random.default_rng(n).permutation(n)
    K = exact(X[rows], X[rows], "rbf", gamma=2.0)
    first, second = np.triu_indices(len(sizes), 1)
    members = [np.r_[end[a] : end[a + 1], end[b] : end[b + 1]] for a, b in zip(first, second)]
    sign = np.concatenate([np.repeat([1.0, -1.0], [sizes[a], sizes[b]]) for a, b in zip(first, second)])
    offset, count = np.cumsum([0, *map(len, members)]), int(sum(map(len, members)))
    Many: Any = _core.Many32 if dtype == np.float32 else _core.Many64
    found = []
    for whole, cache, threads in ((True, 1 << 26, 1), (False, 1 << 26, 1), (False, 0, 3), (True, 1 << 26, 3)):
        many = Many(points, rows, end, first, second, offset, sign, sign, np.full(count, 2.0), np.zeros(count),
                    np.zeros(count, np.int8), 1, 1e-3, 10_000, 10_000_000, True, cache, whole, threads)  # fmt: skip
        assert many.whole == whole
        while many.run(1.0, 1e9) < len(members):
            pass
        found.append((many.beta, many.f))
        said = many.judged(np.zeros((len(members), 1)), np.ones(n)).reshape(len(members), -1)
        assert (said[:, 0] == 2).all() and (said[:, 3] <= [len(m) for m in members]).all()
    for beta, f in found[1:]:
        np.testing.assert_array_equal(beta, found[0][0])
        np.testing.assert_array_equal(f, found[0][1])
    for k, mine in enumerate(members):
        here = slice(offset[k], offset[k + 1])
        beta, y = found[0][0][here], sign[here]
        f = K[np.ix_(mine, mine)] @ beta
        np.testing.assert_allclose(found[0][1][here], f, rtol=0, atol=1e-3 if dtype == np.float32 else 1e-10)
        assert abs(beta.sum()) <= 1e-9 and (y * beta >= 0).all() and (y * beta <= 2).all()
        score = y - f
        assert score[beta < np.maximum(2 * y, 0)].max() - score[beta > np.minimum(2 * y, 0)].min() <= 2e-3
