"""The parts of the Newton solver: curvature along the path, directions of wide problems, zeros left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hinge import hinge_svc
from sklearn.base import clone

from maxmargin import LinearSVC, LinearSVR, _core
from maxmargin.data import matrix
from maxmargin.linear import direction
from maxmargin.linear.over_ranks import RankedProblem
from maxmargin.linear.problem import LinearProblem
from maxmargin.runtime import Threads


def finish(steps):
    """Run a generator to its end; its value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def wide_problem(n=900, d=300, form=np.asarray, bias=0.0, scale=1.0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4) * scale
    sign = np.where(x @ rng.normal(size=d) + rng.normal(size=n) > 0, 1.0, -1.0)
    return LinearProblem(form(x), sign, rng.uniform(0.5, 2, n), 0.7, bias=bias)


def curvature(problem, found, penalty):
    x = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    x = np.hstack([x, np.full((problem.n, 1), problem.bias)]) if problem.bias else x
    return np.diag(penalty) + problem.C * (x[found.band].T * found.slope) @ x[found.band]


def found_at(problem, h=0.3):
    rng = np.random.default_rng(1)
    return problem.duals(np.zeros(problem.n), rng.normal(size=problem.n), h=h)


def test_curvature_of_the_path_is_the_derivative_at_its_own_duals():
    rng = np.random.default_rng(0)
    n, h = 400, 0.05
    m, weight, sign = rng.normal(size=n), rng.uniform(0.1, 2, n), np.ones(n)
    alpha, other = np.zeros(n), np.zeros(n)
    plain = _core.linear_duals("hinge", h, 0.0, m, m, 0.0, weight, sign, np.empty(0), alpha, 1)
    along = _core.linear_duals("hinge", h, 0.0, m, m, 0.0, weight, sign, alpha, other, 2)
    np.testing.assert_array_equal(plain[2], along[2])
    np.testing.assert_allclose(plain[3], along[3], rtol=1e-6, atol=1e-9)
    # a row whose dual lies at the wrong bound is stiffer than the derivative says, never weaker
    wrong = np.where(m < 1, 0.0, weight)
    against = _core.linear_duals("hinge", h, 0.0, m, m, 0.0, weight, sign, wrong, other, 1)
    assert len(against[2]) == n
    assert (against[3][plain[2]] > plain[3]).all()


def test_promised_duals_are_first_order_exact_and_feasible():
    rng = np.random.default_rng(2)
    n, h = 300, 0.1
    m, q, weight = rng.normal(size=n), rng.normal(size=n), rng.uniform(0, 2, n)

    def duals(margins):
        u = 1 - margins
        return 0.5 * weight * (1 + u / np.sqrt(u * u + 4 * h * h))

    for size, accuracy in ((1e-3, 1e-4), (1e-4, 1e-6)):  # the error falls with the square of the step
        path = duals(m)
        _core.linear_predict(h, m, size * q, weight, path, 2)
        np.testing.assert_allclose(path, duals(m + size * q), atol=accuracy)
    path = rng.uniform(0, 1, n) * weight
    _core.linear_predict(h, m, 100 * q, weight, path, 1)
    assert ((path >= 0) & (path <= weight)).all()


@pytest.mark.parametrize("form", [np.asarray, lambda x: x.astype(np.float32), sp.csr_matrix])
@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_wide_directions_solve_the_newton_equations(form, bias):
    problem = wide_problem(form=form, bias=bias)
    penalty = np.ones(problem.size)
    if bias:
        penalty[-1] = 0.0
    found = found_at(problem)
    grad = np.random.default_rng(3).normal(size=problem.size)
    assert problem.size > direction.NARROW
    newton = direction.Directions(problem, penalty, np.random.default_rng(0))
    p = finish(newton.direction(grad, found, 0.3, 1e-12, exact=True))
    residual = curvature(problem, found, penalty) @ p + grad
    assert 0.5 * residual @ residual < 1e-9
    rough = finish(newton.direction(grad, found, 0.3, 1e-12, exact=False))
    assert grad @ rough < 0
    assert not finish(newton.direction(np.zeros(problem.size), found, 0.3, 1e-12, exact=True)).any()


@pytest.mark.parametrize("form", [np.asarray, lambda x: x.astype(np.float32), sp.csr_matrix])
@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_narrow_directions_solve_the_newton_equations(form, bias):
    """Turn after turn, in the same memory."""
    problem = wide_problem(d=40, form=form, bias=bias)
    penalty = np.ones(problem.size)
    if bias:
        penalty[-1] = 0.0
    newton = direction.Directions(problem, penalty, np.random.default_rng(0))
    for h, seed in ((0.3, 3), (0.1, 4), (0.3, 5)):
        found, grad = found_at(problem, h), np.random.default_rng(seed).normal(size=problem.size)
        p = finish(newton.direction(grad, found, h, 1e-12, exact=True))
        residual = curvature(problem, found, penalty) @ p + grad
        assert np.linalg.norm(residual) < 1e-5 * np.linalg.norm(grad)


@pytest.mark.parametrize("d", [40, 300])
@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_directions_over_ranks_solve_the_equations_of_all_rows(d, bias):
    whole = wide_problem(d=d, bias=bias)
    found, grad = found_at(whole), np.random.default_rng(3).normal(size=whole.size)
    penalty = np.append(np.ones(d), [0.0] * (bias != 0))

    def work(comm):
        mine = slice(300 * comm.rank, 300 * (comm.rank + 1))
        part = RankedProblem(
            whole.X[mine], whole.sign[mine], whole.weight[mine], whole.C, bias=bias, extent=whole.extent, comm=comm
        )
        here = (found.band >= mine.start) & (found.band < mine.stop)
        own = replace(found, band=found.band[here] - mine.start, slope=found.slope[here])
        newton = direction.Directions(part, penalty, np.random.default_rng(0))
        return finish(newton.direction(grad, own, 0.3, 1e-12, exact=True))

    one, *others = Threads.run(3, work, timeout=30)
    residual = curvature(whole, found, penalty) @ one + grad
    assert np.linalg.norm(residual) < 1e-4 * np.linalg.norm(grad)
    for other in others:
        np.testing.assert_array_equal(one, other)


def test_factor_is_kept_until_the_rounding_has_fallen():
    problem = wide_problem()
    newton = direction.Directions(problem, np.ones(problem.size), np.random.default_rng(0))
    grad = np.ones(problem.size)
    finish(newton.direction(grad, found_at(problem), 0.3, 1.0, exact=True))
    factor = newton._factor
    assert factor is not None
    finish(newton.direction(grad, found_at(problem), 0.2, 1.0, exact=True))
    assert newton._factor is factor
    finish(newton.direction(grad, found_at(problem), 0.05, 1.0, exact=True))
    assert newton._made_at == 0.05


def test_samples_of_the_band_are_right_on_average():
    problem = wide_problem()
    found = found_at(problem)
    newton = direction.Directions(problem, np.ones(problem.size), np.random.default_rng(0))
    total = np.zeros(problem.n)
    for _ in range(400):
        rows, slope = newton._thin((found.band, found.slope), 200)
        assert 100 < len(rows) < 320
        total[rows] += slope / 400
    assert total.sum() == pytest.approx(found.slope.sum(), rel=0.05)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", [False, True])
def test_wide_fits_agree_with_coordinate_descent(loss, intercept):
    problem = wide_problem(n=1500)
    x, y = problem.X, problem.sign
    settings = {"loss": loss, "fit_intercept": intercept, "C": 0.05, "tol": 1e-6}
    newton = hinge_svc(solver="newton", **settings).fit(x, y)
    descent = hinge_svc(solver="descent", **settings).fit(x, y)
    assert newton.status_ == descent.status_ == "converged"
    assert newton.objective_ == pytest.approx(descent.objective_, rel=2e-6)
    assert newton.lower_bound_ <= descent.objective_ and descent.lower_bound_ <= newton.objective_


@pytest.mark.parametrize("factor", [True, False])
def test_badly_scaled_wide_data_still_get_a_certificate(monkeypatch, factor):
    """Columns over four decades, and a float32 factor that fails altogether: the iterations go on without it."""
    problem = wide_problem(n=1200, scale=10.0 ** np.linspace(-2, 2, 300))
    settings = {"fit_intercept": False, "C": 1e-3, "tol": 1e-3}
    other = hinge_svc(solver="descent", **settings).fit(problem.X, problem.sign)
    if not factor:
        monkeypatch.setattr(direction.Directions, "_sampled_factor", lambda self, found: None)
    newton = hinge_svc(solver="newton", **settings).fit(problem.X, problem.sign)
    assert newton.status_ == "converged" and newton.dual_gap_ <= 1e-3 * newton.objective_
    assert newton.lower_bound_ <= other.objective_ and other.lower_bound_ <= newton.objective_


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2])
def test_compaction_keeps_every_value(monkeypatch, kind, threads):
    monkeypatch.setattr(matrix, "_LARGE", 100)
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(300, 130)) * (rng.random((300, 130)) < 0.2)).astype(kind)
    x[5], x[299], x[7, -1], x[8, 0] = 0, 0, 3, np.finfo(kind).tiny
    for view in (x, np.hstack([x, x])[:, :130]):  # the second has a stride
        out = matrix.compacted(view, threads)
        assert sp.issparse(out) and out.dtype == kind and out.nnz == np.count_nonzero(x)
        out.check_format(full_check=True)
        np.testing.assert_array_equal(out.toarray(), x)


def test_compaction_leaves_dense_narrow_and_mapped_data_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(matrix, "_LARGE", 100)
    rng = np.random.default_rng(0)
    dense, zeros = rng.normal(size=(600, 120)), np.zeros((600, 120))
    assert matrix.compacted(dense, 1) is dense
    sparse = sp.csr_matrix(zeros)
    assert matrix.compacted(sparse, 1) is sparse
    np.save(tmp_path / "x.npy", zeros)
    mapped = np.asarray(np.load(tmp_path / "x.npy", mmap_mode="r"))
    assert matrix.compacted(mapped, 1) is mapped
    late = np.ones((600, 120))  # the rows looked at are empty, the others are not
    late[::2] = 0.0
    assert matrix.compacted(late, 1) is late
    few = zeros[:50]
    assert matrix.compacted(few, 1) is few


def test_compact_fit_is_the_dense_fit(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.random((800, 150)) * (rng.random((800, 150)) < 0.2)
    y = x @ rng.normal(size=150) > 0
    kept = hinge_svc(C=0.1, tol=1e-6).fit(x, y)
    monkeypatch.setattr(matrix, "_LARGE", 100)
    packed = hinge_svc(C=0.1, tol=1e-6).fit(x, y)
    assert packed.objective_ == pytest.approx(kept.objective_, rel=2e-6)
    assert packed.score(x, y) == kept.score(x, y)


@pytest.mark.parametrize("columns", [(100, 50), (200, 100)])  # the Newton matrix is factored, or only multiplied with
@pytest.mark.parametrize("C", [50.0, 1000.0])
@pytest.mark.parametrize(
    "machine",
    [LinearSVC(loss="hinge"), LinearSVC(loss="hinge", fit_intercept=False), LinearSVC(loss="squared_hinge"), LinearSVR()],
    ids=lambda machine: f"{type(machine).__name__}-{machine.loss}-{machine.fit_intercept}",
)
def test_features_that_few_rows_have_do_not_hold_up_the_steps(machine, C, columns):
    """A sample of the rows does not know of them; steps along such directions are short, and the next see all rows."""
    rng = np.random.default_rng(1)
    n, (usual, rare) = 12_000, columns
    X = np.zeros((n, usual + rare), np.float32)
    X[:, :usual] = rng.standard_normal((n, usual))
    for j in range(usual, usual + rare):
        X[rng.choice(n, 3, replace=False), j] = 3 * rng.random(3)
    score = X[:, :usual] @ rng.standard_normal(usual)
    labels = np.sign(score) * np.where(rng.random(n) < 0.2, -1, 1)
    y = score + rng.standard_normal(n) if isinstance(machine, LinearSVR) else labels
    fitted = clone(machine).set_params(C=C, tol=1e-3, n_jobs=1).fit(X, y)
    assert fitted.status_ == "converged" and fitted.n_iter_ <= 40
