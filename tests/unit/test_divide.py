"""Divide and conquer: clusters, Lemma 1, Theorem 1, warm starts and refine, on small data."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin.decomposition.options import Options
from maxmargin.decomposition.solver import solve
from maxmargin.divide.bound import theorem_1
from maxmargin.divide.clustering import (
    _WIDTHS,
    Centers,
    Partition,
    _fill_empty,
    best_kmeans,
    clustering_kernel,
    gram_matrix,
    kernel_kmeans,
    nearest_in,
    partition,
)
from maxmargin.divide.levels import DivideAndConquer
from maxmargin.divide.model import Plan, Problem
from maxmargin.kernel_values import KernelData
from maxmargin.problem.certificates import certify
from maxmargin.problem.formulations import c_svc, epsilon_svr
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Control, Deadline, drained, run

TOL = 1e-6


def clouds(n=240, seed=0):
    """Labels are noisy, so that every cluster has both classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 4 * rng.integers(0, 3, size=(n, 1))
    return X, np.where(rng.random(n) < 0.5, 1.0, -1.0)


def divided(X, qp, plan, kernel=None):
    data = KernelData(X, kernel or Kernel("rbf", 0.5), np.arange(len(X)), np.float64, 1)
    solver = DivideAndConquer([Problem(qp, np.arange(len(X)))], data, Options(tol=TOL), plan)
    return solver, run(solver, Control())


def dual(gram, qp, alpha):
    """f(alpha) = ½ aᵀQa + pᵀa."""
    beta = (qp.sign * alpha).reshape(-1, qp.n).sum(axis=0)
    return 0.5 * beta @ gram @ beta + qp.linear @ alpha


def minimised(row):
    """f(alpha) of the problem that a stage solved, from its primal value and gap."""
    return row["gap"] - row["objective"]


def test_kernel_kmeans_finds_separate_clouds_and_leaves_no_cluster_empty():
    rng = np.random.default_rng(0)
    cloud = np.repeat(np.arange(3), 20)
    X = rng.normal(scale=0.1, size=(60, 2)) + 10 * cloud[:, None]
    label = drained(kernel_kmeans(Kernel("rbf", 0.01)(X, X), 3, rng))
    assert len({tuple(np.unique(label[cloud == c])) for c in range(3)}) == 3
    assert np.bincount(drained(kernel_kmeans(np.ones((30, 30)), 7, rng)), minlength=7).min() >= 1


@pytest.mark.parametrize("k", [2, 4, 16])
@pytest.mark.parametrize("seed", range(4))
def test_of_several_runs_the_one_that_cuts_least_for_its_balance_is_taken(seed, k, monkeypatch):
    monkeypatch.setattr("maxmargin.divide.clustering._RESTARTS", 8)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 2)) * np.where(np.arange(90) < 10, 6.0, 1.0)[:, None]
    wide, narrow = Kernel("rbf", 0.2)(X, X), Kernel("rbf", 3.0)(X, X)

    def cost(label):
        """The share of the kernel between different points that is cut, and 2 % of how much more Σ n_c² is than if equal."""
        cut = label[:, None] != label[None, :]
        sizes = np.bincount(label, minlength=k)
        return narrow[cut].sum() / narrow[~np.eye(90, dtype=bool)].sum() + 0.02 * k * (sizes @ sizes) / 90**2

    same = np.random.default_rng(seed + 100)
    runs = [drained(kernel_kmeans(wide, k, same)) for _ in range(min(8, 64 // k))]
    best = drained(best_kmeans(wide, narrow, k, np.random.default_rng(seed + 100)))
    least, most = min(map(cost, runs)), max(map(cost, runs))
    assert cost(best) == pytest.approx(least) and (least < 0.999 * most or k == 2)


def test_an_empty_cluster_takes_the_point_farthest_from_its_centre_but_nobodys_last():
    label, distance = np.array([0, 0, 0, 1, 2, 2]), np.array([1.0, 3.0, 2.0, 9.0, 2.5, 0.5])
    _fill_empty(label, 5, distance)
    assert label.tolist() == [0, 3, 0, 1, 4, 2]  # 9.0 is alone in its cluster


@pytest.mark.parametrize("native", [True, False])
def test_assignment_is_the_nearest_centre_in_feature_space(native):
    X, _ = clouds(200)
    kernel = Kernel("rbf", 0.3) if native else Kernel("callable", function=lambda a, b: Kernel("rbf", 0.3)(a, b))
    source = KernelData(X, kernel, np.arange(200), np.float64, 2).source()
    part = drained(partition(source, source, np.arange(200), 6, 80, np.random.default_rng(0), np.arange(200)))
    gram, centers = gram_matrix(source, np.arange(200)), part.centers
    groups = np.split(centers.rows, centers.end[:-1])
    distance = np.array([gram[np.ix_(g, g)].mean() - 2 * gram[:, g].mean(axis=1) for g in groups]).T
    np.testing.assert_array_equal(part.label, np.argmin(distance, axis=1))
    again = drained(centers.assign(np.arange(200), nearest_in(source)))
    np.testing.assert_array_equal(again, part.label)


def test_kernel_kmeans_can_be_stopped_between_its_passes():
    X, _ = clouds(200)
    passes = kernel_kmeans(Kernel("rbf", 0.3)(X, X), 8, np.random.default_rng(0))
    assert [next(passes) for _ in range(3)] == [None, None, None]


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
def test_a_kernel_that_separates_everything_does_not_split_for_ever(limit, monkeypatch):
    """Each split takes a few points off the rest, which is as large as before: to the limit, and no further."""
    monkeypatch.setattr("maxmargin.divide.clustering._SMALL", 20)
    monkeypatch.setattr("maxmargin.divide.clustering._DEPTH", limit)
    X = np.arange(3000.0)[:, None]
    alone = Kernel("callable", function=lambda a, b: (a == b.T).astype(float))
    source = KernelData(X, alone, np.arange(3000), np.float64, 1).source()
    part = drained(partition(source, source, np.arange(3000), 64, 2, np.random.default_rng(0), np.arange(3000)))
    depth = lambda node: max((1 + depth(child) for child in node.children.values()), default=0)  # noqa: E731
    assert depth(part.centers) == limit
    np.testing.assert_array_equal(drained(part.centers.assign(np.arange(3000), nearest_in(source))), part.label)
    assert np.bincount(part.label).min() >= 1 and part.label.max() == part.n_clusters - 1


@pytest.mark.parametrize("kernel", [Kernel("rbf", 2.0), Kernel("laplacian", 2.0), Kernel("linear")])
def test_rows_taken_along_have_the_kernel_values_they_had(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 7)) * np.where(np.arange(500) < 50, 20.0, 1.0)[:, None]
    data = KernelData(X, kernel, np.arange(500), np.float32, 1)
    some = np.flatnonzero(X[:, 0] > 0.5)
    alone = data.restricted(some).source()
    np.testing.assert_array_equal(gram_matrix(alone, np.arange(len(some))), gram_matrix(data.source(), some))


def test_a_narrow_kernel_is_widened_for_clustering_only_as_far_as_needed():
    X = np.random.default_rng(0).normal(size=(100, 5))
    rows = np.arange(100)
    rng = np.random.default_rng(0)
    widened = clustering_kernel(Kernel("rbf", 50.0), X, rows, rng).gamma
    assert widened == pytest.approx(_WIDTHS / 10, rel=0.3)  # of two points the squared distance is 2 per feature
    by_absolute = clustering_kernel(Kernel("laplacian", 50.0), X, rows, rng).gamma
    assert by_absolute == pytest.approx(_WIDTHS / (5 * 2 / np.sqrt(np.pi)), rel=0.2)
    assert clustering_kernel(Kernel("rbf", 1e-3), X, rows, rng).gamma == 1e-3
    assert clustering_kernel(Kernel("poly", 50.0), X, rows, rng).gamma == 50.0
    in_order = clustering_kernel(Kernel("rbf", 50.0), X[np.argsort(X[:, 0])], rows, rng).gamma
    assert in_order == pytest.approx(widened, rel=0.3)  # neighbours in a sorted file are no random pairs


def test_clusters_far_above_the_mean_are_split_and_routing_follows(monkeypatch):
    monkeypatch.setattr("maxmargin.divide.clustering._SMALL", 20)
    rng = np.random.default_rng(1)
    X, narrow = rng.normal(size=(915, 5)), Kernel("rbf", 20.0)  # nearly all pairs are infinitely far apart
    source = KernelData(X, narrow, np.arange(915), np.float64, 1).source()
    part = drained(partition(source, source, np.arange(915), 16, 100, rng, np.arange(915)))
    assert part.centers.children and part.n_clusters > 16
    assert np.bincount(part.label).max() <= 2 * 915 / 16
    assert part.label.max() < part.n_clusters
    np.testing.assert_array_equal(drained(part.centers.assign(np.arange(915), nearest_in(source))), part.label)
    kept = part.centers.sampled()
    own = KernelData(X[kept], narrow, np.arange(len(kept)), np.float64, 1).source()
    moved = drained(part.centers.renumbered(kept).assign(np.arange(len(kept)), nearest_in(own)))
    np.testing.assert_array_equal(moved, part.label[kept])


@pytest.mark.parametrize("seed", range(4))
def test_lemma_1_and_theorem_1(seed):
    """The concatenated solution is optimal for the block kernel, and within ½ C² D(π) of the optimum."""
    X, y = clouds(seed=seed)
    C, gram = 2.0, Kernel("rbf", 0.5)(X, X)
    qp = c_svc(y, np.full(len(y), C), False)
    _, result = divided(X, qp, Plan(k=4, levels=1, stop_level=1, sample_size=100, seed=seed))
    label, alpha = result.model.partition.label, result.model.alphas[0]
    assert len(np.unique(label)) > 1
    same = label[:, None] == label[None, :]
    certificate = certify(qp, gram * same, alpha, np.empty(0))
    assert certificate.violation <= 2 * TOL and certificate.infeasibility <= 1e-9
    data = KernelData(X, Kernel("rbf", 0.5), np.arange(len(X)), np.float64, 1)
    best = solve(qp, data.source(), Options(tol=TOL))
    difference = dual(gram, qp, alpha) - dual(gram, qp, best.alpha)
    assert -1e-6 <= difference <= 0.5 * C**2 * np.abs(gram[~same]).sum()


def test_bound_on_all_points_is_theorem_1s():
    X, y = clouds(120)
    qp = c_svc(y, np.full(120, 2.0), False)
    _, result = divided(X, qp, Plan(k=4, levels=1, stop_level=1, sample_size=120))
    label = result.model.partition.label
    between = label[:, None] != label[None, :]
    expected = 0.5 * 2.0**2 * np.abs(Kernel("rbf", 0.5)(X, X)[between]).sum()
    assert result.levels["bound"][0] == pytest.approx(expected)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("task", ["svc", "svr"])
def test_levels_lead_to_the_optimum_of_the_whole_problem(task, intercept):
    X, y = clouds(300, seed=3)
    gram, upper = Kernel("rbf", 0.5)(X, X), np.full(300, 3.0)
    qp = c_svc(y, upper, intercept) if task == "svc" else epsilon_svr(X[:, 0] + y, 0.1, upper, intercept)
    _, result = divided(X, qp, Plan(k=3, levels=2, sample_size=100))
    certificate = certify(qp, gram, result.model.alphas[0], result.model.intercept[0, : len(qp.targets)])
    assert str(result.status) == "converged" and result.model.level == 0
    assert certificate.violation <= 3 * TOL
    assert [*result.levels["stage"]] == ["level", "level", "refine", "whole"]
    assert minimised(result.levels[-1]) == pytest.approx(dual(gram, qp, result.model.alphas[0]))


def test_a_level_reports_the_block_kernels_value_and_that_of_the_whole_falls_on_easy_data():
    """Neither need fall from level to level in general: clusters are found anew, not merged."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) + 3 * rng.integers(0, 4, size=(600, 2))
    y = np.where(np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=600) > 0, 1.0, -1.0)
    gram, qp = Kernel("rbf", 2.0)(X, X), c_svc(y, np.full(600, 5.0), False)
    values = []
    for stop in (3, 2, 1, 0):
        _, result = divided(X, qp, Plan(k=3, levels=3, stop_level=stop, sample_size=200, seed=1), Kernel("rbf", 2.0))
        values.append(dual(gram, qp, result.model.alphas[0]))
        if stop:
            label = result.model.partition.label
            block = gram * (label[:, None] == label[None, :])
            assert minimised(result.levels[-1]) == pytest.approx(dual(block, qp, result.model.alphas[0]))
    assert values[0] > values[1] > values[2] > values[3]


def test_adaptive_clustering_samples_only_support_vectors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    qp = c_svc(np.where(X[:, 0] > 0.1 * rng.normal(size=500), 1.0, -1.0), np.full(500, 1.0), False)
    plans = [Plan(k=2, levels=2, stop_level=stop, sample_size=60) for stop in (2, 1)]
    below, above = (divided(X, qp, plan)[1] for plan in plans)
    support = np.flatnonzero(below.model.alphas[0])
    np.testing.assert_array_equal(below.samples[0], above.samples[0])
    assert len(support) < 400 and np.isin(above.samples[1], support).all()
    assert not np.isin(above.samples[0], support).all()


def test_refine_leaves_no_stale_alpha():
    X, y = clouds(300, seed=5)
    qp = c_svc(y, np.full(300, 3.0), False)
    data = KernelData(X, Kernel("rbf", 0.5), np.arange(300), np.float64, 1)
    solver = DivideAndConquer([Problem(qp, np.arange(300))], data, Options(tol=TOL), Plan(k=4, levels=1, sample_size=100))
    next(turn for turn in solver.turns() if solver.table and solver.table[-1][0] == "refine")
    alpha = solver.whole.alphas[0]
    level = divided(X, qp, Plan(k=4, levels=1, stop_level=1, sample_size=100))[1].model.alphas[0]
    gram, inside = Kernel("rbf", 0.5)(X, X), np.flatnonzero(level)
    assert (alpha[level == 0] == 0).all()
    block = c_svc(y[inside], np.full(len(inside), 3.0), False)
    assert certify(block, gram[np.ix_(inside, inside)], alpha[inside], np.empty(0)).violation <= 2 * TOL


def test_known_f_saves_its_computation_and_changes_nothing():
    X, y = clouds(300)
    qp = c_svc(y, np.full(300, 1.0), True)
    source = KernelData(X, Kernel("rbf", 0.5), np.arange(300), np.float64, 1).source()
    first = solve(qp, source, Options(tol=1e-2))
    plain = solve(qp, source, Options(tol=TOL), alpha=first.alpha)
    known = solve(qp, source, Options(tol=TOL), alpha=first.alpha, f=first.f.copy())
    np.testing.assert_allclose(known.f, plain.f, atol=1e-4)
    assert known.objective == pytest.approx(plain.objective, rel=1e-6)


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("m", [8, 20, 40])
def test_the_bound_of_a_fair_sample_is_that_of_its_population(m, regression):
    """K = 1 for all pairs, two halves, and a sample with as much of each: the estimate has no error."""
    n, some = 80, 40  # the population is the even samples
    label, population = np.repeat([0, 1], 40), np.arange(0, 80, 2)
    sample = np.concatenate([population[:20][: m // 2], population[20:][: m // 2]])
    ones = Kernel("callable", function=lambda a, b: np.ones((len(a), len(b))))
    source = KernelData(np.zeros((n, 1)), ones, np.arange(n), np.float64, 1).source()
    division = Partition(label, 2, Centers(sample, np.array([len(sample)]), np.zeros(1), np.zeros(1, int)), sample, ones)
    upper = np.full(n, 3.0)
    qp = epsilon_svr(np.zeros(n), 0.1, upper, False) if regression else c_svc(np.ones(n), upper, False)
    place = np.arange(n)[None, :]
    between = 2 * (some / 2) ** 2  # ordered pairs in different halves of the population
    expected = 0.5 * 3.0**2 * between * (2 if regression else 1)
    assert theorem_1(source, division, [Problem(qp, np.arange(n))], place, population) == pytest.approx(expected)
    # A second problem that has the first quarter and the last of the samples, at another bound, adds its own.
    chosen = np.r_[np.arange(20), np.arange(60, 80)]
    half = c_svc(np.ones(40), np.full(40, 1.0), False)
    places = np.stack([np.arange(n), np.full(n, -1)])
    places[1, chosen] = np.arange(40)
    mine = np.isin(sample, chosen)
    if mine.any() and (label[sample[mine]] == 0).sum() == (label[sample[mine]] == 1).sum():
        both = theorem_1(source, division, [Problem(qp, np.arange(n)), Problem(half, chosen)], places, population)
        assert both == pytest.approx(expected + 0.5 * 2 * 10**2)


def test_every_problem_has_an_equal_part_of_the_time(monkeypatch):
    """On a clock that ticks whenever it is asked; none of the problems would ever end."""
    tick = itertools.count()
    monkeypatch.setattr("maxmargin.runtime.deadline.time", SimpleNamespace(perf_counter=lambda: next(tick)))
    X, y = clouds(90)
    qp = c_svc(y, np.full(90, 1e6), False)
    problems = [Problem(qp, np.arange(90))] * 4
    data = KernelData(X, Kernel("rbf", 0.05), np.arange(90), np.float64, 1)
    plan = Plan(levels=0, deadline=Deadline.after(1000))
    result = run(DivideAndConquer(problems, data, Options(tol=1e-9, working_set_size=2), plan), Control())
    assert str(result.status) == "max_time"
    assert result.iterations.min() > 30 and result.iterations.max() < 1.2 * result.iterations.min()
