"""Newton directions, each part by its definition: the matrix, its sample, conjugate gradients, factors that fail."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from generators import paused

from maxmargin import _core
from maxmargin.linear import LinearProblem, direction
from maxmargin.linear.direction import Directions


def made(n=200, d=12, form=np.asarray, bias=0.0, C=0.7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return LinearProblem(form(X), sign, rng.uniform(0.5, 2, n), C, bias=bias)


def directions(problem, seed=0):
    penalty = np.append(np.ones(problem.d), [0.0] * (problem.bias != 0))
    return Directions(problem, penalty, np.random.default_rng(seed))


def a_band(problem, seed=1, part=0.6):
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(problem.n) < part)
    return rows, rng.uniform(0.01, 1, len(rows))


def found_of(band, problem):
    return SimpleNamespace(band=band[0], slope=band[1])


def matrix_of(problem, band, penalty):
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    x = np.column_stack([X, np.full(problem.n, problem.bias)])[band[0], : problem.size].astype(float)
    return np.diag(penalty) + problem.C * (x.T * band[1]) @ x


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("bias", [0.0, 1.5])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_the_matrix_is_that_of_the_band_with_its_penalty_and_ridge(form, bias, ridge):
    """A ridge is relative to 1 and the largest element of the diagonal together. Again and again in the same memory."""
    problem = made(form=form, bias=bias)
    newton = directions(problem)
    newton._precise = True
    for seed in (1, 2, 3):
        band = a_band(problem, seed)
        H = matrix_of(problem, band, newton.penalty)
        H += ridge * (1 + np.diag(H).max()) * np.eye(problem.size)
        np.testing.assert_allclose(np.triu(newton._matrix(band, ridge, np.float64)), np.triu(H), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_a_narrow_direction_solves_its_equations(bias):
    problem, grad = made(bias=bias), np.random.default_rng(2).normal(size=12 + (bias != 0))
    newton = directions(problem)
    assert not newton.wide
    newton._precise = True
    band = a_band(problem)
    p, pauses = paused(newton.direction(grad, found_of(band, problem), 0.1, 1.0, exact=True))
    np.testing.assert_allclose(matrix_of(problem, band, newton.penalty) @ p, -grad, rtol=1e-6, atol=1e-8)
    assert pauses == 0


def test_a_matrix_that_has_no_factor_is_made_precisely_and_then_with_larger_and_larger_ridges(monkeypatch):
    """The ridge of the first direction is 1e-12; what was learnt about precision is kept, the ridge is not."""
    problem = made(d=3)
    newton, asked = directions(problem), []

    def matrix(self, band, ridge, kind):
        asked.append((ridge, self._precise))
        return np.diag([1.0, 2.0, 4.0 if ridge >= enough else -1.0])

    monkeypatch.setattr(Directions, "_matrix", matrix)
    grad, band = np.array([1.0, 1.0, 1.0]), a_band(problem)
    for enough, ridges in ((0.0, []), (1e-9, [1e-10, 1e-9]), (1e-10, [1e-10]), (0.99e-7, [1e-10, 1e-9, 1e-8, 1e-7])):
        known = newton._precise
        p, pauses = paused(newton.direction(grad, found_of(band, problem), 0.1, 1.0, exact=True))
        np.testing.assert_allclose(p, [-1.0, -0.5, -0.25])
        again = [1e-12] * (not known and enough > 0)
        np.testing.assert_allclose([ridge for ridge, _ in asked], [1e-12, *again, *ridges], rtol=1e-9)
        assert [precise for _, precise in asked] == [known, *[True] * (len(asked) - 1)]
        assert pauses == len(asked) - 1
        del asked[:]


# ---- samples


@pytest.mark.parametrize("d", [12, 300])
def test_a_row_is_taken_with_a_chance_in_proportion_to_its_slope(d):
    """Narrow: as many as asked for at most; wide: as many as asked for, as rows that are certain leave room for others."""
    problem = made(n=3000, d=d)
    newton, (rows, slope) = directions(problem), a_band(problem, part=0.9)
    slope = slope**2 + 1e-3  # some are far larger than the others
    for most in (50, 600, 1500):
        times = np.zeros(problem.n)
        counts, sums = [], []
        for _ in range(200):
            taken, weight = newton._thin((rows, slope), most)
            assert (np.diff(taken) > 0).all()
            times[taken] += 1
            counts.append(len(taken))
            sums.append(weight.sum())
        factor = most / slope.sum()
        if newton.wide:
            low, high = factor, 1e9
            for _ in range(200):
                middle = np.sqrt(low * high)
                low, high = (middle, high) if np.minimum(1, middle * slope).sum() < most else (low, middle)
            assert np.mean(counts) == pytest.approx(most, rel=0.1)
            factor = low
        chance = np.minimum(1, factor * slope)
        assert np.mean(counts) == pytest.approx(chance.sum(), rel=0.1)
        assert np.abs(times[rows] / 200 - chance).max() < 0.2
        assert (times[rows[chance == 1]] >= 150).all()
        assert np.mean(sums) == pytest.approx(slope.sum(), rel=0.05)
        at = np.searchsorted(rows, taken)
        np.testing.assert_allclose(weight, slope[at] / np.minimum(1, weight_factor(slope[at], weight) * slope[at]))
    for most in (len(rows), len(rows) + 1):
        assert newton._thin((rows, slope), most)[0] is rows
    assert len(newton._thin((rows, slope), len(rows) - 1)[0]) < len(rows)


def weight_factor(slope, weight):
    """The factor of the chances that these weights say: slope / chance = 1 / factor, but where the chance is 1."""
    return 1 / weight.min() if (weight > slope * (1 + 1e-12)).any() else np.inf


def test_all_of_the_band_where_exact_and_a_sample_elsewhere(monkeypatch):
    for d in (12, 300):
        problem = made(n=900, d=d)
        newton, band, asked = directions(problem), a_band(problem), []
        used = []

        def thin(self, given, most, asked=asked):
            asked.append(most)
            return given[0][:40], given[1][:40]

        monkeypatch.setattr(Directions, "_thin", thin)
        name = "_iterate" if newton.wide else "_matrix"
        kept = getattr(Directions, name)

        def seen(self, *given, kept=kept, used=used):
            used.append(next(part for part in given if isinstance(part, tuple)))
            return kept(self, *given)

        if newton.wide:
            paused(newton.direction(np.ones(d), found_of(band, problem), 0.3, 1.0, exact=True))
            assert asked == [int(direction.SAMPLE * d)]
            del asked[:]
        monkeypatch.setattr(Directions, name, seen)
        newton._iterations = 0
        paused(newton.direction(np.ones(problem.size), found_of(band, problem), 0.3, 1.0, exact=True))
        assert not asked and len(used[0][0]) == len(band[0])
        newton._iterations = 0
        paused(newton.direction(np.ones(problem.size), found_of(band, problem), 0.3, 1.0, exact=False))
        assert asked == [int(direction.ROWS * d) if newton.wide else newton._affordable()] and len(used[1][0]) == 40
        monkeypatch.undo()


def test_a_sample_of_the_band_is_at_least_four_rows_per_feature_and_at_most_plenty():
    """In between, the wider the rows the fewer of them, and the more rows there are the more."""
    def of(n, d):
        return directions(made(n=n, d=d))._affordable()

    for n, d in ((10, 1), (100, 12), (100, 200), (5000, 30), (20_000, 2)):
        assert 4 * d <= of(n, d) <= direction.PLENTY * d
    assert of(100, 200) == 800 and of(20_000, 2) == 2000
    assert of(5000, 60) < of(10_000, 60)


# ---- conjugate gradients


def followed(problem, band, grad, goal, penalty, precondition, most):
    """Conjugate gradients in NumPy: the direction after each iteration, and where they end."""
    H = matrix_of(problem, band, penalty)
    p, r = np.zeros(len(grad)), -grad
    z = precondition(r)
    s, size = z.copy(), r @ z
    first, points = size, []
    for _ in range(most):
        along = size / (s @ H @ s)
        p, r = p + along * s, r - along * (H @ s)
        z = precondition(r)
        size, last = r @ z, size
        points.append(p)
        if size <= direction.ACCURACY**2 * first and 0.5 * r @ r <= goal:
            break
        s = z + size / last * s
    return points


@pytest.mark.parametrize("factor", [True, False])
@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_wide_directions_are_conjugate_gradients_until_both_goals_are_reached(factor, bias, monkeypatch):
    if not factor:
        monkeypatch.setattr(direction, "VAST", 100)
    problem = made(n=2000, d=300, bias=bias, C=20.0)
    grad, band, lengths = np.random.default_rng(2).normal(size=problem.size), a_band(problem), []
    for goal in (np.inf, 10.0, 1e-2, 1e-4):
        newton = directions(problem)
        p, pauses = paused(newton.direction(grad, found_of(band, problem), 0.3, goal, exact=True))
        assert (newton._factor is not None) == factor

        def precondition(r, newton=newton):
            return sl.cho_solve((newton._factor.astype(float), True), r) if factor else r

        points = followed(problem, band, grad, goal, newton.penalty, precondition, 40 if factor else 200)
        assert abs(newton._iterations - len(points)) <= 1
        np.testing.assert_allclose(p, points[min(newton._iterations, len(points)) - 1], atol=0.02 * np.abs(points[-1]).max())
        assert pauses == 1 + (newton._iterations - 1) // 8
        lengths.append(newton._iterations)
    assert lengths == sorted(lengths) and lengths[0] < lengths[-1]


@pytest.mark.parametrize(("vast", "most"), [(6000, 40), (100, 200)])
def test_iterations_are_limited(vast, most, monkeypatch):
    monkeypatch.setattr(direction, "VAST", vast)
    problem, count = made(n=900, d=300), []
    newton, band = directions(problem), a_band(problem)

    def product(*given):
        count.append(1)
        given[-2][:] = np.linspace(1, 1e4, 300) * given[-3]  # no two of its curvatures are the same

    names = ("linear_gram",)
    core = SimpleNamespace(linear_product=product, **{name: getattr(_core, name) for name in names})
    monkeypatch.setattr(direction, "_core", core)
    paused(newton.direction(np.ones(300), found_of(band, problem), 0.3, -1.0, exact=True))
    assert len(count) == newton._iterations == most


def test_a_factor_serves_until_iterations_are_many_or_the_rounding_has_fallen(monkeypatch):
    problem = made(n=900, d=300)
    band, made_for = a_band(problem), []
    newton, sampled = directions(problem), Directions._sampled_factor

    def seen(self, given):
        made_for.append(given)
        return sampled(self, given)

    monkeypatch.setattr(Directions, "_sampled_factor", seen)
    count = 0
    for h, iterations, anew in ((0.3, 0, True), (0.3, 3, False), (0.15, direction.TIRED, False), (0.149, 3, True),
                                (0.14, 3, False), (0.3, 3, False), (0.14, direction.TIRED + 1, True), (0.07, 3, False),
                                (0.0699, 3, True)):  # fmt: skip
        newton._iterations = iterations
        paused(newton.direction(np.ones(300), found_of(band, problem), h, 1.0, exact=True))
        count += anew
        assert len(made_for) == count
        np.testing.assert_array_equal(made_for[-1][0], band[0])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_preconditioner_is_the_inverse_of_its_sample_in_float32(form, monkeypatch):
    problem = made(n=900, d=300, form=form)
    newton, band = directions(problem), a_band(problem)
    monkeypatch.setattr(Directions, "_thin", lambda self, band, most: band)
    newton._factor = newton._sampled_factor(band)
    H = matrix_of(problem, band, newton.penalty)
    r = np.random.default_rng(3).normal(size=300)
    z = newton._precondition(r)
    assert z.dtype == np.float64
    np.testing.assert_allclose(z, np.linalg.solve(H, r), rtol=1e-2, atol=1e-3 * np.abs(z).max())
    newton._factor = None
    assert newton._precondition(r) is r
    monkeypatch.setattr(Directions, "_matrix", lambda self, *given: -np.eye(300, dtype=np.float32))
    assert newton._sampled_factor(band) is None
