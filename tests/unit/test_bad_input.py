"""Bad input gets an error that names the parameter, the value and a remedy, and changes nothing; awkward input ends."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from maxmargin import DCSVC, SVC, SVR, NuSVC, NuSVR, OneClassSVM, certify_fit

ALL = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
LABEL = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0, 1, -1)
STATUSES = {"converged", "max_iter", "stalled"}


def state(model) -> dict[str, object]:
    """Every attribute to the last bit (a local function cannot be pickled, and stands for itself)."""
    return {name: value if callable(value) else pickle.dumps(value) for name, value in vars(model).items()}


def refuses(model, message: str, *data: object, **fit_params: object) -> None:
    """The fit raises a ValueError that matches, and a model fitted before is exactly as it was."""
    good = type(model)().fit(X, LABEL) if type(model) is not NuSVC else NuSVC(nu=0.3).fit(X, LABEL)
    good.set_params(**model.get_params())
    before = state(good)
    with pytest.raises(ValueError, match=message):
        good.fit(*(data or (X, LABEL)), **fit_params)
    assert state(good) == before
    with pytest.raises(ValueError, match=message):
        model.fit(*(data or (X, LABEL)), **fit_params)
    with pytest.raises(NotFittedError):
        model.predict(X)


COMMON = [
    ("kernel", "gaussian", "choose one of 'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'"),
    ("kernel", 7, "choose one of"),
    ("gamma", 0.0, "positive number, 'scale' or 'auto'"),
    ("gamma", -1, "positive number, 'scale' or 'auto'"),
    ("gamma", "wide", "choose one of 'scale', 'auto'"),
    ("gamma", np.nan, "positive number, 'scale' or 'auto'"),
    ("gamma", None, "positive number, 'scale' or 'auto'"),
    ("degree", -1, r"an integer in \[0"),
    ("degree", 2.5, r"an integer in \[0"),
    ("coef0", "one", "a number in"),
    ("coef0", np.inf, "a number in"),
    ("tol", 0, "1e-3 is usual"),
    ("tol", -1e-3, "1e-3 is usual"),
    ("tol", np.nan, "1e-3 is usual"),
    ("cache_size", 0, "megabytes"),
    ("cache_size", -5, "megabytes"),
    ("max_iter", 0, "-1 for no limit"),
    ("max_iter", 2.5, "-1 for no limit"),
    ("max_iter", True, "-1 for no limit"),
    ("shrinking", "no", "True or False"),
    ("warm_start", 3, "True or False"),
    ("max_time", -1, "seconds"),
    ("max_time", "1h", "seconds"),
    ("max_time", np.nan, "seconds"),
    ("n_jobs", 0, "number of threads"),
    ("n_jobs", 1.5, "number of threads"),
    ("n_jobs", "x", "number of threads"),
    ("callback", 3, "callable"),
    ("working_set_size", 1, r"an integer in \[2"),
    ("working_set_size", 64.0, r"an integer in \[2"),
    ("inner_solver", "newton", "choose one of 'smo', 'ipm', 'gpm'"),
]
OWN = [
    *((m, "C", value, "positive number") for m in (SVC, SVR, NuSVR) for value in (0, -1.0, np.nan, "1", True)),
    (NuSVR, "C", np.inf, "no width"),
    *((m, "nu", value, "fraction") for m in (NuSVC, NuSVR, OneClassSVM) for value in (0, -0.1, 1.1, np.nan, "half")),
    *((SVR, "epsilon", value, "half width of the tube") for value in (-0.1, np.nan, None)),
    (SVC, "decision_function_shape", "ova", "choose one of 'ovr', 'ovo'"),
    (NuSVC, "decision_function_shape", None, "choose one of 'ovr', 'ovo'"),
    (SVC, "class_weight", "even", "give 'balanced', a dict or None"),
    (SVC, "class_weight", 3, "must be a dict"),
    (SVC, "fit_intercept", "no", "True or False"),
]


@pytest.mark.parametrize(("name", "value", "remedy"), COMMON, ids=lambda v: repr(v)[:20])
@pytest.mark.parametrize("make", ALL)
def test_bad_parameter(make, name, value, remedy) -> None:
    refuses(make(**{name: value}), rf"^{name}={re.escape(repr(value))}.*{remedy}")


@pytest.mark.parametrize(("make", "name", "value", "remedy"), OWN, ids=lambda v: repr(v)[:20])
def test_bad_parameter_of_one_machine(make, name, value, remedy) -> None:
    refuses(make(**{name: value}), rf"^{name}={re.escape(repr(value))}.*{remedy}")


def test_bad_class_weights() -> None:
    refuses(SVC(class_weight={5: 2.0}), r"class_weight, which names classes that are not in y: \[5\]; y has \[-1, 1\]")
    folds = SVC(class_weight={5: 2.0, 1: 1.0, -1: 3.0}).fit(X, LABEL)  # a fold may lack a class of the whole
    assert folds.class_weight_.tolist() == [3.0, 1.0]
    for bad in (0, -1, np.nan, np.inf):
        refuses(SVC(class_weight={1: bad}), "every weight must be a positive number")


def test_break_ties_needs_scores_per_class() -> None:
    for make in (SVC, DCSVC):
        model = make(break_ties=True, decision_function_shape="ovo").fit(X, LABEL)
        with pytest.raises(ValueError, match="break_ties must be False"):
            model.predict("not even looked at")


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(make, bad) -> None:
    broken = X.copy()
    broken[3, 1] = bad
    refuses(make(), "contains (NaN|infinity)", broken, LABEL)
    refuses(make(), "contains (NaN|infinity)", sp.csr_matrix(broken), LABEL)
    if make not in (OneClassSVM,):
        refuses(make(), "contains NaN|contains infinity|Unknown label type", X, np.where(np.arange(60) == 3, bad, LABEL))


@pytest.mark.parametrize("make", ALL)
def test_wrong_shapes(make) -> None:
    refuses(make(), r"Expected 2D array, got 1D", X[:, 0], LABEL)
    refuses(make(), r"0 sample\(s\)", X[:0], LABEL[:0])
    refuses(make(), r"0 feature\(s\)", X[:, :0], LABEL)
    if make is not OneClassSVM:
        refuses(make(), r"inconsistent numbers of samples: \[60, 59\]", X, LABEL[:-1])
        refuses(make(), "y should be a 1d array", X, np.stack([LABEL, LABEL], axis=1))


@pytest.mark.parametrize("make", ALL)
def test_wrong_number_of_features_at_predict(make) -> None:
    model = make().fit(X, LABEL) if make is not NuSVC else make(nu=0.3).fit(X, LABEL)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        model.predict(sp.csr_matrix(X[:, :2]))
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(np.full((2, 3), np.nan))


@pytest.mark.parametrize("make", [SVC, NuSVC])
def test_one_class(make) -> None:
    refuses(make(), "classes has to be greater than one; got 1 class", X, np.ones(60))


@pytest.mark.parametrize("make", ALL)
def test_bad_sample_weights(make) -> None:
    refuses(make(), r"sample_weight.shape == \(59,\), expected \(60,\)", X, LABEL, sample_weight=np.ones(59))
    refuses(make(), "all samples have zero or negative weights", X, LABEL, sample_weight=-2 * np.ones(60))
    refuses(make(), "sample_weight contains NaN or infinity", X, LABEL, sample_weight=np.full(60, np.nan))
    refuses(make(), "all samples have zero or negative weights", X, LABEL, sample_weight=np.zeros(60))


@pytest.mark.parametrize("make", [SVC, NuSVC])
def test_weights_that_leave_one_class(make) -> None:
    refuses(make(), r"positive weights belong to the same class, \[1\]: weigh one of", X, LABEL, sample_weight=LABEL > 0)


def test_infeasible_nu_is_found_before_any_kernel_value() -> None:
    def never(a, b):
        raise AssertionError("kernel work for an infeasible problem")

    y = np.where(np.arange(60) < 6, 1, -1)
    refuses(NuSVC(nu=0.5, kernel=never), r"nu=0\.5 is too large .* largest feasible value is 0\.2", X, y)
    heavier = np.where(y > 0, 2.25, 1)  # 13.5 of 67.5
    refuses(NuSVC(nu=0.5), r"largest feasible value is 0\.4", X, y, sample_weight=heavier)
    with pytest.raises(ValueError, match=r"nu.*infeasible"):
        NuSVC(nu=0.21).fit(X, y)
    assert NuSVC(nu=0.2).fit(X, y).status_ == "converged"


def test_precomputed_must_be_square_and_dense() -> None:
    refuses(SVC(kernel="precomputed"), r"square Gram matrix .* shape is \(60, 3\)")
    with pytest.raises(TypeError, match=r"(?i)sparse"):
        SVC(kernel="precomputed").fit(sp.csr_matrix(X @ X.T), LABEL)
    model = SVC(kernel="precomputed").fit(X @ X.T, LABEL)
    with pytest.raises(ValueError, match="X has 3 features, but SVC is expecting 60 features"):
        model.predict(X)


@pytest.mark.parametrize("make", ALL)
def test_a_callable_that_returns_the_wrong_shape(make) -> None:
    wrong = r"kernel callable returned shape .* one row per row of its first argument"
    refuses(make(kernel=lambda a, b: (a @ b.T).T[:1]), wrong)
    refuses(make(kernel=lambda a, b: (a @ b.T) * np.nan), "kernel callable returned NaN or infinity")


def test_a_callable_that_raises_is_heard_and_changes_nothing() -> None:
    model = SVC().fit(X, LABEL)
    before = pickle.dumps(model)

    def broken(a, b):
        raise ZeroDivisionError("mine")

    model.kernel = broken
    with pytest.raises(ZeroDivisionError, match="mine"):
        model.fit(X, LABEL)
    model.kernel = "rbf"
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("kernel", ["precomputed", lambda a, b: a @ b.T], ids=["precomputed", "callable"])
def test_a_cache_too_small_for_given_rows(kernel) -> None:
    Z = X @ X.T if kernel == "precomputed" else X
    with pytest.raises(ValueError, match=r"cache_size=0\.0001 MB .* give at least 0\.000\d+"):
        SVC(kernel=kernel, cache_size=1e-4).fit(Z, LABEL)


def test_a_cache_larger_than_memory_takes_what_the_rows_need() -> None:
    wide = np.tile(X, (1, 20))  # so wide that rows are worth keeping
    np.testing.assert_array_equal(SVC(cache_size=1e12).fit(wide, LABEL).dual_coef_, SVC().fit(wide, LABEL).dual_coef_)


# ---- awkward but legal: converge, or end with an honest status in bounded time -----------------------------------


def settled(make, features, y, **options):
    """Fit with a bound on the turns; whatever the status, the reported numbers must be true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make(max_iter=50, **options).fit(features, y)
    assert model.status_ in STATUSES
    if model.status_ == "converged":
        assert model.kkt_violation_ <= model.tol
    assert np.isfinite(model.predict(features)).all()
    answer = certify_fit(model, features, y)
    assert answer.violation == pytest.approx(model.kkt_violation_, rel=1e-2, abs=0.1 * model.tol)
    return model


@pytest.mark.parametrize("make", ALL)
def test_two_rows(make) -> None:
    options = {"nu": 1.0} if make is NuSVC else {}
    model = settled(make, np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([-1, 1]), **options)
    assert model.status_ == "converged"


def test_two_rows_that_are_equal() -> None:
    model = settled(SVC, np.ones((2, 3)), np.array([-1, 1]))
    assert model.status_ == "converged"
    assert model.objective_ == pytest.approx(2.0)  # one of the two is wrong by 2, or both by 1
    assert SVR().fit(np.ones((2, 3)), [0.0, 1.0]).predict(np.ones((1, 3))) == pytest.approx(0.5, abs=0.41)


@pytest.mark.parametrize("make", ALL)
def test_constant_features(make) -> None:
    constant = np.column_stack([X, np.full(60, 1e6), np.zeros(60)])
    options = {"gamma": 0.3, **({"nu": 0.3} if make is NuSVC else {})}
    model, plain = settled(make, constant, LABEL, **options), settled(make, X, LABEL, **options)
    assert model.status_ == "converged"
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-3)


@pytest.mark.parametrize("make", ALL)
def test_only_constant_features(make) -> None:
    y = np.where(np.arange(60) % 2, 1, -1)
    assert settled(make, np.ones((60, 2)), y).status_ == "converged"


@pytest.mark.parametrize("make", ALL)
def test_duplicate_rows_with_conflicting_labels(make) -> None:
    rows = np.repeat(X[:10], 6, axis=0)
    y = np.where(np.arange(60) % 3 == 0, -1, 1)
    options = {"nu": 0.3} if make is NuSVC else {}
    assert settled(make, rows, y, **options).status_ == "converged"


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("make", [SVC, SVR])
def test_huge_c(make, kernel) -> None:
    settled(make, X, LABEL, C=1e6, kernel=kernel)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("make", ALL)
def test_unscaled_features(make, kernel) -> None:
    options = {"nu": 0.3} if make is NuSVC else {}
    settled(make, X * [1e4, 1.0, 1e-2], LABEL, kernel=kernel, **options)


def test_unscaled_features_at_size() -> None:
    rng = np.random.default_rng(1)
    many = rng.normal(size=(1500, 4)) * 1e4
    y = np.where(many[:, 0] + 5e3 * rng.normal(size=1500) > 0, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(kernel="linear", max_iter=5).fit(many, y)
    assert model.status_ in STATUSES
    assert model.score(many, y) > 0.7 or model.status_ != "converged"


@pytest.mark.parametrize("n", [2, 3, 7, 16, 17])
def test_fewer_rows_than_the_working_set(n) -> None:
    rows = RNG.normal(size=(n, 2))
    y = np.where(np.arange(n) % 2, 1, -1)
    model = settled(SVC, rows, y, working_set_size=512)
    assert model.status_ == "converged"
    assert model.n_iter_[0] <= 2  # one inner solve does it


def test_a_tiny_and_a_huge_tolerance() -> None:
    assert settled(SVC, X, LABEL, tol=1e-10).status_ == "converged"
    assert settled(SVC, X, LABEL, tol=100.0).n_iter_[0] == 0


def test_a_single_feature_and_many_features() -> None:
    assert settled(SVC, X[:, :1], LABEL).status_ == "converged"
    wide = np.random.default_rng(0).normal(size=(20, 5000))
    assert settled(SVC, wide, np.where(np.arange(20) % 2, 1, -1)).status_ == "converged"
    assert settled(SVC, sp.csr_matrix(wide), np.where(np.arange(20) % 2, 1, -1)).status_ == "converged"


def test_a_sparse_matrix_with_empty_rows_and_explicit_zeros() -> None:
    sparse = sp.csr_matrix(np.where(np.abs(X) > 1.2, X, 0))
    sparse.data[::3] = 0
    assert (np.diff(sparse.indptr) == 0).any()
    dense = settled(SVC, sparse.toarray(), LABEL)
    assert settled(SVC, sparse, LABEL).objective_ == pytest.approx(dense.objective_, rel=1e-3)
