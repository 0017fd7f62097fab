"""Small problems side by side in the core: the answers of decomposition, whatever the threads, the start and the end."""

from __future__ import annotations

import time
import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM, certify_fit
from maxmargin.decomposition import many, together
from maxmargin.kernel_values import NativeValues
from maxmargin.problem.kernels import TooLargeError
from maxmargin.runtime import Status


@pytest.fixture(scope="module")
def classes():
    X, y = make_blobs(400, 6, centers=7, cluster_std=3.0, random_state=3)
    return X, y


def fits(X, y, make=SVC, **options):
    """The same fit by small problems side by side, and by decomposition."""
    return make(**options).fit(X, y), make(working_set_size=64, **options).fit(X, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid", "laplacian"])
@pytest.mark.parametrize("form", ["dense", "float32", "csr"])
def test_every_pair_is_solved_as_by_decomposition(classes, kernel, form) -> None:
    X, y = classes
    X = {"dense": X, "float32": X.astype(np.float32), "csr": sp.csr_matrix(X)}[form]
    one, other = fits(X, y, kernel=kernel, coef0=0.5, gamma=0.05, tol=1e-4)
    assert "done" in one.trace_.dtype.names and "done" not in other.trace_.dtype.names
    assert one.status_ == other.status_ == "converged"
    if kernel != "sigmoid":  # which has several stationary points
        assert one.objective_ == pytest.approx(other.objective_, abs=one.dual_gap_ + other.dual_gap_)
    assert certify_fit(one, X, y).violation <= 1e-4 * 1.001
    np.testing.assert_array_equal(one.n_iter_.shape, (21,))


@pytest.mark.parametrize("make, options", [(SVC, {"fit_intercept": False}), (NuSVC, {"nu": 0.2}), (SVC, {"C": 1e4})])
def test_without_intercept_with_two_sums_and_with_a_large_c(classes, make, options) -> None:
    X, y = classes
    one, other = fits(X, y, make, **options)
    assert one.status_ == other.status_ == "converged"
    assert one.objective_ == pytest.approx(other.objective_, abs=one.dual_gap_ + other.dual_gap_)
    certificate = certify_fit(one, X, y)
    assert certificate.violation <= 1e-3 * 1.001 and certificate.primal == pytest.approx(one.objective_, rel=1e-9)


@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
@pytest.mark.parametrize(
    "make, options",
    [(SVR, {"epsilon": 0.05}), (SVR, {"fit_intercept": False}), (NuSVR, {"nu": 0.3, "C": 4.0}), (OneClassSVM, {"nu": 0.2})],
)
def test_regression_and_one_class_are_small_problems_as_well(form, make, options) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    t = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    X[200:230], t[200:230] = X[:30], t[:30]  # copies, which are one sample of a larger weight
    weight = rng.integers(0, 4, 300).astype(float)
    X = sp.csr_matrix(X * (np.abs(X) > 0.5)) if form == "csr" else X.astype(form)
    one, other = (make(**options, **more).fit(X, t, sample_weight=weight) for more in ({}, {"working_set_size": 64}))
    assert "done" in one.trace_.dtype.names and "done" not in other.trace_.dtype.names
    assert one.status_ == other.status_ == "converged"
    assert one.objective_ == pytest.approx(other.objective_, abs=one.dual_gap_ + other.dual_gap_)
    certificate = certify_fit(one, X, t, sample_weight=weight)
    assert certificate.violation <= 1.001e-3 and certificate.primal == pytest.approx(one.objective_, rel=1e-9)
    assert certificate.gap == pytest.approx(one.dual_gap_, rel=1e-5, abs=1e-9)


def test_weights_and_class_weights_are_bounds(classes) -> None:
    X, y = classes
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    weight[:20] = 1.0  # no class without weight
    options = {"class_weight": {0: 0.1, 3: 5.0}, "tol": 1e-8}
    one = SVC(**options).fit(X, y, sample_weight=weight)
    times = np.repeat(np.arange(len(y)), weight.astype(int))
    other = SVC(**options).fit(X[times], y[times])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-6)


def test_bits_do_not_depend_on_threads(classes) -> None:
    X, y = classes
    one, two, three = (SVC(n_jobs=n).fit(np.tile(X, (1, 60)), y) for n in (1, 2, 3))
    for other in (two, three):
        np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
        np.testing.assert_array_equal(one.intercept_, other.intercept_)


def equal_fits(make, X, y, weight=None) -> None:
    """Models, reports and counts of a fit are those of one thread, for any number of threads."""
    models = [make(n).fit(X, y, sample_weight=weight) for n in (1, 2, 3, 16)]
    for other in models[1:]:
        for name in ("support_", "_dual", "intercept_", "n_iter_", "objective_", "dual_gap_", "status_"):
            np.testing.assert_array_equal(getattr(other, name), getattr(models[0], name), err_msg=name)
        for name in ("inner_steps", "rows"):
            assert other.timings_[name] == models[0].timings_[name], name


@pytest.mark.parametrize("cache_size", [1.0, 2.0, 8.0, 200.0])
def test_which_pairs_are_small_does_not_depend_on_threads(cache_size) -> None:
    """Whatever the cache: pairs that two workers have room for and sixteen do not are solved in one way."""
    X, y = make_blobs([30, 80, 160, 160, 320], 6, cluster_std=4.0, random_state=0)
    equal_fits(lambda n: SVC(gamma=0.05, cache_size=cache_size, n_jobs=n), np.tile(X, (1, 20)), y)


LARGE = {
    "classes": lambda n: SVC(gamma=0.02, n_jobs=n),
    "small sets": lambda n: SVC(gamma=0.02, n_jobs=n, working_set_size=30, shrinking=False),
    "little cache": lambda n: SVC(gamma=0.02, n_jobs=n, cache_size=0.1, tol=1e-6),
    "ν": lambda n: NuSVC(nu=0.01, gamma=0.02, n_jobs=n),
    "two stages": lambda n: NuSVC(nu=0.01, gamma=0.02, n_jobs=n, class_weight={0: 3.0}),
    "interior point": lambda n: SVC(gamma=0.02, n_jobs=n, inner_solver="ipm"),
}


@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("sizes", [[90, 80, 70], [300, 200, 20, 20], [60] * 6], ids=str)
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_large_pairs_beside_one_another_have_the_bits_of_one_thread(monkeypatch, make, sizes, form) -> None:
    """Three pairs, of which one is alone; one that is most of the work; an odd number."""
    monkeypatch.setattr(together, "SMALL", 0)
    monkeypatch.setattr("maxmargin.estimators._pairs.SMALL", 0)
    X, y = make_blobs(sizes, 5, cluster_std=4.0, random_state=1)
    X = np.tile(X, (1, 30))  # enough of it for threads
    equal_fits(make, sp.csr_matrix(X) if form == "csr" else X, y, np.random.default_rng(0).integers(1, 3, len(y)) * 1.0)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_with_one_thread_large_pairs_come_one_after_the_other(monkeypatch, n_classes) -> None:
    monkeypatch.setattr(together, "SMALL", 0)
    X, y = make_classification(120 * n_classes, 20, n_informative=10, n_classes=n_classes, class_sep=0.1, random_state=0)
    trace = SVC(kernel="linear", n_jobs=1, working_set_size=20).fit(X, y).trace_
    pairs = n_classes * (n_classes - 1) // 2
    assert len(trace) > 5 * pairs
    if pairs > 1:
        assert np.count_nonzero(np.diff(trace["problem"][:-1])) == pairs - 1


def test_large_pairs_beside_one_another_stop_in_order(monkeypatch) -> None:
    """By the callback, by time: every pair has a model, and what is said of all of them is true."""
    monkeypatch.setattr(together, "SMALL", 0)
    X, y = make_classification(900, 60, n_informative=10, n_classes=4, class_sep=0.1, random_state=0)
    seen = []

    def third(row) -> bool:
        seen.append(row["problem"])
        return len(seen) == 3

    for limit in ({"callback": third}, {"max_time": 1e-9}, {"max_iter": 2}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = SVC(kernel="linear", C=10.0, tol=1e-9, n_jobs=2, working_set_size=20, **limit).fit(X, y)
        assert model.status_ in limit and certify_fit(model, X, y).primal == pytest.approx(model.objective_, rel=1e-6)
    assert len(seen) == 3 and (model.n_iter_ <= 2).all()


@pytest.mark.parametrize("options", [{}, {"working_set_size": 100}])
def test_a_cache_for_one_pair_at_a_time_is_enough_and_a_smaller_one_is_refused_with_what_would_do(options) -> None:
    X, y = make_blobs([400, 380, 30], 40, cluster_std=6.0, random_state=0)

    def fit(cache_size):
        return SVC(cache_size=cache_size, n_jobs=2, **options).fit(np.tile(X, (1, 30)), y)

    cache_size = 0.001
    for _ in range(2):  # a row, then a tile
        with pytest.raises(ValueError, match=f"cache_size={cache_size:g} MB .*give at least") as refused:
            fit(cache_size)
        cache_size = 1.01 * float(str(refused.value).split("give at least ")[1].split(" MB")[0])
        if not options:
            break
    model = fit(cache_size)
    assert model.status_ == "converged" and certify_fit(model, np.tile(X, (1, 30)), y).violation <= 1.001e-3


def test_an_error_in_one_of_two_pairs_ends_the_fit(monkeypatch) -> None:
    monkeypatch.setattr(together, "SMALL", 0)
    made = together.Decomposition

    def refuses(qp, *args, **options):
        if qp.n == 110:
            raise MemoryError("no room")
        return made(qp, *args, **options)

    monkeypatch.setattr(together, "Decomposition", refuses)
    X, y = make_blobs([60, 60, 60, 50], 40, cluster_std=4.0, random_state=0)
    with pytest.raises(MemoryError, match="no room"):
        SVC(n_jobs=2).fit(np.tile(X, (1, 30)), y)


def test_turns_and_steps_of_a_pair_that_was_not_sure_count(monkeypatch) -> None:
    """float32 values leave doubt, and the decomposition finds nothing more to do."""
    X, y = make_classification(2600, 20, n_informative=8, n_classes=3, random_state=0, flip_y=0.1)
    model = SVC(C=10, gamma=0.1).fit(X.astype(np.float32), y)
    assert model.status_ == "converged" and (model.n_iter_ >= 1).all()
    assert model.timings_["inner_steps"] > len(model.support_) / 2 and model.timings_["rows"] > 0


@pytest.mark.parametrize("make, kernel", [(SVC, "rbf"), (SVC, "linear"), (NuSVC, "laplacian"), (NuSVC, "poly")])
@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
def test_all_kernel_values_beforehand_or_rows_on_demand_give_the_same_bits(monkeypatch, make, kernel, form) -> None:
    """Classes that begin and end within, and span, the groups of rows that are computed at a time."""
    X, y = make_blobs([7, 230, 1, 160, 420, 390], 5, cluster_std=4.0, random_state=0)
    X = sp.csr_matrix(X * (np.abs(X) > 3)) if form == "csr" else X.astype(form)
    options = {"nu": 0.001} if make is NuSVC else {"C": 3.0}
    models = []
    for most in (10_000, 0):
        monkeypatch.setattr(many, "WHOLE", most)
        models.append(make(kernel=kernel, gamma=0.02, n_jobs=2, **options).fit(X, y))
    whole, on_demand = models
    assert whole.timings_["rows"] > on_demand.timings_["rows"] > 0
    np.testing.assert_array_equal(whole.support_, on_demand.support_)
    np.testing.assert_array_equal(whole._dual, on_demand._dual)
    np.testing.assert_array_equal(whole.intercept_, on_demand.intercept_)
    assert whole.status_ == "converged" and certify_fit(whole, X, y).violation <= 1.25e-3  # as float32 tells


def test_time_that_ends_before_all_kernel_values_are_there(monkeypatch) -> None:
    monkeypatch.setattr(many, "WHOLE", 10_000)
    X, y = make_classification(1200, 400, n_informative=10, n_classes=4, class_sep=0.1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SVC(kernel="linear", max_time=1e-6, tol=1e-6).fit(X, y)
    assert model.status_ == "max_time"
    assert certify_fit(model, X, y).primal == pytest.approx(model.objective_, rel=1e-6)


def test_a_warm_start_is_where_the_last_fit_ended(classes) -> None:
    X, y = classes
    model = SVC(warm_start=True, tol=1e-6).fit(X, y)
    steps = model.timings_["inner_steps"]
    model.fit(X, y)
    assert model.timings_["inner_steps"] == 0 < steps and model.status_ == "converged"
    model.set_params(C=2.0).fit(X, y)
    cold = SVC(C=2.0, tol=1e-6).fit(X, y)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-5)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_limit_on_turns_is_one_for_each_pair(limit, monkeypatch) -> None:
    X, y = make_classification(300, 20, n_informative=8, n_classes=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(kernel="linear", C=1e3, max_iter=limit, tol=1e-7).fit(X, y)
    assert (model.n_iter_ <= limit).all()
    certificate = certify_fit(model, X, y)
    assert certificate.primal == pytest.approx(model.objective_, rel=1e-6)
    assert (model.status_ == "converged") == (certificate.violation <= 1e-7)


def test_time_is_shared_and_what_was_not_reached_has_a_rough_model(monkeypatch) -> None:
    """C so large that no pair ends in the time: all of them have moved, and the certificate of each is true."""
    X, y = make_classification(2400, 20, n_informative=10, n_classes=4, class_sep=0.1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SVC(kernel="linear", C=1e6, max_time=0.3, tol=1e-9, n_jobs=2).fit(X, y)
    assert model.status_ == "max_time" and model.dual_coef_.any(axis=0).all()
    ends = np.r_[0, np.cumsum(model.n_support_)]
    for i, j in combinations(range(4), 2):
        assert model.dual_coef_[j - 1, ends[i] : ends[i + 1]].any() and model.dual_coef_[i, ends[j] : ends[j + 1]].any()
    certificate = certify_fit(model, X, y)
    assert certificate.primal == pytest.approx(model.objective_, rel=1e-6)


def test_a_stop_by_the_callback_leaves_a_true_report(classes) -> None:
    X, y = classes
    model = SVC(C=1e5, kernel="linear", callback=lambda row: True, tol=1e-8).fit(X, y)
    assert model.status_ == "callback"
    assert certify_fit(model, X, y).primal == pytest.approx(model.objective_, rel=1e-6)


def test_what_is_not_precise_enough_goes_to_the_decomposition(monkeypatch) -> None:
    """float32 values too coarse for tol: the pairs end in float64, and are what they claim."""
    rng = np.random.default_rng(0)
    X = (100 * rng.normal(size=(1200, 5))).astype(np.float32)
    y = rng.integers(3, size=1200)
    model = SVC(kernel="linear", C=0.1, tol=1e-3, max_iter=400).fit(X, y)
    assert model._precision == "float64" or model.status_ != "converged" or certify_fit(model, X, y).violation <= 2e-3
    assert certify_fit(model, X, y).primal == pytest.approx(model.objective_, rel=1e-6)


@pytest.mark.parametrize("make", [SVC, NuSVC, SVR, OneClassSVM])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nobody_is_sure_of_coarse_values_nor_of_sums_that_miss(classes, monkeypatch, make, dtype) -> None:
    """One of the two is enough for doubt, and what is in doubt is not called solved."""
    monkeypatch.setattr("maxmargin.estimators._setup._ALWAYS_DOUBLE", 0 if dtype == "float32" else 1000)
    said = {}

    class Watched(together.Many):
        def results(self, status):
            sums = self.targets
            for noise, off in ((1.0, 0.0), (1e-16, 1.0), (1.0, 1.0), (1e-16, 0.0)):
                monkeypatch.setattr(NativeValues, "noise", property(lambda self: noise))  # noqa: B023
                self.targets = sums + off
                said[noise, off] = super().results(status)
            assert self.kernel.dtype == dtype
            return said[noise, off]

    monkeypatch.setattr(together, "Many", Watched)
    X, y = classes
    make(**({"nu": 0.05} if make is NuSVC else {})).fit(X.astype(dtype), y)
    for (noise, off), (parts, unsure) in said.items():
        fine = noise < 1 and not off
        assert unsure == [not fine] * len(parts)
        assert {part.status for part in parts} == {Status.CONVERGED if fine else Status.STALLED}


def test_numbers_that_float64_does_not_hold_are_an_error() -> None:
    X = np.full((60, 4), 1e60) * np.arange(1, 61)[:, None]
    with pytest.raises(TooLargeError, match="scale the features"):
        SVC(kernel="poly", degree=7, gamma=1.0).fit(X, np.arange(60) % 3)


def test_large_and_small_pairs_in_one_fit(monkeypatch) -> None:
    monkeypatch.setattr(together, "SMALL", 150)
    monkeypatch.setattr("maxmargin.estimators._pairs.SMALL", 150)
    X, y = make_blobs([120, 100, 30, 20], 4, cluster_std=4.0, random_state=0)
    model = SVC().fit(X, y)
    assert set(model.trace_["problem"]) == {-1, 0}  # (0, 1) has 220 samples
    assert model.status_ == "converged" and certify_fit(model, X, y).violation <= 1.001e-3


def test_a_cache_too_small_for_side_by_side_is_kept_to(classes) -> None:
    X, y = classes
    model = SVC(cache_size=0.05).fit(X, y)
    assert "done" not in model.trace_.dtype.names and model.status_ == "converged"


def test_a_run_of_many_problems_looks_at_the_clock(classes) -> None:
    """Whatever its slices: a limit of no time at all ends it at once."""
    X, y = classes
    begun = time.perf_counter()
    with pytest.warns(ConvergenceWarning):
        model = SVC(C=1e9, kernel="linear", tol=1e-12, max_time=1e-9).fit(X, y)
    assert model.status_ == "max_time" and time.perf_counter() - begun < 60
    assert model.timings_["inner_steps"] <= 21 * max(many.LAST_STEPS, 4096)


@pytest.mark.parametrize("make", [SVC, lambda **o: NuSVC(nu=0.05, **o), SVR, OneClassSVM], ids=["SVC", "ν", "SVR", "one"])
def test_what_is_kept_of_small_problems_is_feasible_and_at_last_the_solution(classes, monkeypatch, make) -> None:
    """A checkpoint may be written at any turn, and a fit must be able to go on from it."""
    monkeypatch.setattr(many, "SLICE", 1e-3)
    runs, kept = [], []

    class Watched(together.Together):
        def __init__(self, *given) -> None:
            super().__init__(*given)
            runs.append(self)

    for module in ("_pairs", "_setup"):
        monkeypatch.setattr(f"maxmargin.estimators.{module}.Together", Watched)
    make(callback=lambda row: kept.append(runs[0].snapshot()), tol=1e-6).fit(*classes)
    assert len(runs) == 1 and runs[0]._many is None and kept
    for snapshot in kept:
        for problem, said in zip(runs[0].problems, snapshot, strict=True):
            qp, alpha = problem.qp, said["alpha"]
            assert (alpha >= 0).all() and (alpha <= qp.upper).all()
            sums = [(qp.sign * alpha)[qp.group == g].sum() for g in range(len(qp.targets))]
            np.testing.assert_allclose(sums, qp.targets, atol=1e-9 * qp.upper.sum())
    for p, said in enumerate(kept[-1]):
        np.testing.assert_array_equal(said["alpha"], runs[0]._parts[p].alpha)
