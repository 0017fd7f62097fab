"""The parts of the machines, each by its definition: votes, weights, labels, states for files, what is said of a fit."""

from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import make_constraint

import maxmargin
from maxmargin import DCSVC, DCSVR, SVC, SVR, BudgetSVC, LinearSVC, LinearSVR, NuSVC, OneClassSVM
from maxmargin.budget.merging import LARGEST_GRID
from maxmargin.divide.model import TABLE, Kept
from maxmargin.estimators import (
    _base,
    _checkpoints,
    _constraints,
    _labelled,
    _linear_state,
    _prediction,
    _probability,
    _setup,
    _summary,
    budget,
    multiclass,
)
from maxmargin.estimators import linear as linear_module
from maxmargin.estimators._checkpoints import HashOrder
from maxmargin.estimators._divided import Stages
from maxmargin.estimators._kernel import is_matrix
from maxmargin.estimators._labelled import Labelled, class_weights, encoded_classes, row_weights, whole_numbers
from maxmargin.estimators._linear import Samples
from maxmargin.estimators._linear_state import States
from maxmargin.linear import Cuts, Known
from maxmargin.problem import formulations
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Result, Status, Threads, thread_count

KERNEL = [SVC, NuSVC, SVR, OneClassSVM]


def data(n=60, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 4)) + 0.7 * y[:, None], y


# ---- votes


@pytest.mark.parametrize("most", [0, 32])
@pytest.mark.parametrize("n_classes", [2, 3, 5, 8])
def test_votes_and_scores_are_sums_over_the_pairs_of_a_class(n_classes, most, monkeypatch):
    """By a matrix or by diagonals; a decision of 0 is for the second class unless it is said to be for the first."""
    monkeypatch.setattr(multiclass, "FEW_CLASSES", most)
    pairs = list(combinations(range(n_classes), 2))
    values = np.random.default_rng(n_classes).integers(-2, 3, (40, len(pairs))).astype(float)
    for first in (False, True):
        votes, sums = np.zeros((40, n_classes)), np.zeros((40, n_classes))
        for row, (k, (i, j)) in product(range(40), enumerate(pairs)):
            wins = values[row, k] > 0 or (first and values[row, k] == 0)
            votes[row, i if wins else j] += 1
            sums[row, i] += values[row, k]
            sums[row, j] -= values[row, k]
        np.testing.assert_array_equal(multiclass.pair_votes(values, n_classes, zero_is_first=first), votes)
        scores = multiclass.ovr_decision(values, n_classes, zero_is_first=first)
        np.testing.assert_allclose(scores, votes + sums / (3 * (np.abs(sums) + 1)), rtol=1e-14)
    np.testing.assert_array_equal(multiclass.pair_votes(values, n_classes), multiclass.pair_votes(values - 0.5, n_classes))
    np.testing.assert_array_equal(
        multiclass.ovr_decision(values, n_classes), multiclass.ovr_decision(values, n_classes, zero_is_first=True)
    )


# ---- numbers, flags, choices


@pytest.mark.parametrize("closed", ["neither", "left", "right", "both"])
@pytest.mark.parametrize("integer", [False, True])
def test_a_number_is_in_its_range_or_refused_with_the_range(closed, integer):
    values = [-1, 0, 1, 2, 3, 2.5, True, np.bool_(True), "2", None, np.nan, np.int64(2), np.float32(1.5)]
    for value in values:
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
        fine = (whole if integer else number) and (
            0 < value < 3 or (value == 0 and closed in ("left", "both")) or (value == 3 and closed in ("right", "both"))
        )
        for optional in (False, True):
            given = {"low": 0, "high": 3, "closed": closed, "integer": integer, "optional": optional, "remedy": "so"}
            if fine or (optional and value is None):
                _base.check_number("name", value, **given)
                continue
            with pytest.raises(ValueError) as error:
                _base.check_number("name", value, **given)
            ends = f"{'[' if closed in ('left', 'both') else '('}0, 3{']' if closed in ('right', 'both') else ')'}"
            assert str(error.value) == f"name={value!r} must be {'an integer' if integer else 'a number'} in {ends}: so"
    with pytest.raises(ValueError, match=r"in \(-inf, inf\)$"):
        _base.check_number("name", np.inf)


MACHINES = [SVC, NuSVC, SVR, maxmargin.NuSVR, OneClassSVM, DCSVC, DCSVR, LinearSVC, LinearSVR, BudgetSVC]
EDGES = [
    *range(-3, 5), *(-0.5, 0.0, 0.5, 1.0, 1.5, 1e-30, 0.99e-30, 1e30, 1.01e30, np.inf, -np.inf), None, np.int64(2),
    LARGEST_GRID, LARGEST_GRID + 1, "other", len,
]  # fmt: skip
AT_FIT = ("class_weight", "probability")  # looked at beside the labels; with a warning


@pytest.mark.parametrize("make", MACHINES)
def test_constraints_of_parameters_are_what_is_refused_and_what_is_taken(make):
    """At all edges of all ranges: what scikit-learn reads and what the machine says are the same."""
    assert [_constraints.whole(3).__contains__(v) for v in (2, 3, 4)] == [False, True, True]
    assert [_constraints.positive(inf=inf).__contains__(v) for inf in (False, True) for v in (0.0, 1.0, np.inf)] == [
        False, True, False, False, True, True
    ]  # fmt: skip
    for name, written in make._parameter_constraints.items():
        constraints = [make_constraint(one) for one in written]
        for value in EDGES if name not in AT_FIT else ():
            machine = make(**{name: value, **({"levels": 10**6} if name == "stop_level" else {})})
            try:
                machine._control()
                machine._check_parameters()
                thread_count(machine.n_jobs)  # of some machines first looked at when there is work
                taken = True
            except (ValueError, TypeError):
                taken = False
            assert taken == any(constraint.is_satisfied_by(value) for constraint in constraints), (name, value)


def test_choices_flags_and_seeds():
    _base.check_choice("a", "b", iter(["b", "c"]))
    for bad in ("d", None, 3):
        with pytest.raises(ValueError, match="choose one of 'b', 'c'"):
            _base.check_choice("a", bad, ["b", "c"])
    for value, fine in ((True, True), (np.bool_(False), True), (1, False), (None, False)):
        machine = SimpleNamespace(one=True, two=value)
        if fine:
            _base.check_flags(machine, "one", "two")
        else:
            with pytest.raises(ValueError, match=f"two={value!r} must be True or False"):
                _base.check_flags(machine, "one", "two")
    for seed in (None, 0, np.random.RandomState(0)):
        _base.check_seed(seed)
    for seed in (-1, "x", 0.5):
        with pytest.raises(ValueError, match="must be a whole number"):
            _base.check_seed(seed)


def test_plain_rows_are_few_finite_floats_in_rows(monkeypatch):
    fine = np.arange(12.0).reshape(4, 3) + 1
    assert _base.plain_rows(fine) and _base.plain_rows(fine.astype(np.float32)) and _base.plain_rows(fine[:1, :1].copy())
    for bad in (
        fine.tolist(), fine[0], fine.astype(int), fine.T, fine[:, :2], fine[:0], fine.astype(np.float16),
        np.where(fine == 5, np.nan, fine), np.where(fine == 5, np.inf, fine), fine.view(np.matrix), fine.astype(">f8"),
    ):  # fmt: skip
        assert not _base.plain_rows(bad)
    monkeypatch.setattr(_base, "FEW_VALUES", 12)
    assert _base.plain_rows(fine)
    monkeypatch.setattr(_base, "FEW_VALUES", 11)
    assert not _base.plain_rows(fine)
    for most in (11, 12):  # beyond it, numbers whose squares overflow are plain
        monkeypatch.setattr(_base, "DOT_VALUES", most)
        monkeypatch.setattr(_base, "FEW_VALUES", 100)
        assert _base.plain_rows(1e200 * fine) == (most == 11) and not _base.plain_rows(np.where(fine == 5, np.nan, fine))
    for y, fine_labels in (
        (np.arange(4), True), (np.arange(4.0), True), (np.arange(4) > 2, False), (np.arange(3), False),
        (np.array([0, 1, np.inf, 2]), False), (list(range(4)), False), (np.array(list("abcd")), False),
        (np.arange(4)[:, None], False), (np.arange(4, dtype=np.uint8), True),
    ):  # fmt: skip
        assert _base.plain_labels(y, 4) == fine_labels


def test_limits_of_a_run_are_refused_by_name():
    X, y = data()
    for bad in (0, -2, 1.5, True, "3", None):
        with pytest.raises(ValueError, match="must be a positive integer, or -1"):
            SVC(max_iter=bad).fit(X, y)
    for name, bad in (("verbose", -1), ("verbose", "yes"), ("callback", 3), ("max_time", 0), ("max_time", -1.0)):
        for make in (SVC, BudgetSVC, LinearSVC):
            with pytest.raises(ValueError, match=f"{name}={bad!r} must be"):
                make(**{name: bad}).fit(X, y)
    for good in (1, -1, np.int64(5)):
        control = SVC(max_iter=good, max_time=9000.0, verbose=2)._control()
        assert (
            control.max_iter == good
            and control.verbose == 2
            and control.title == "SVC"
            and 0 < control.deadline.left() <= 9000
        )
    ranked = SVC(verbose=True)
    ranked._comm = SimpleNamespace(rank=1, size=2)
    assert not ranked._control().verbose


def test_a_fit_leaves_nothing_of_an_earlier_one_and_warns_of_what_it_did_not_reach():
    machine = SVC(max_iter=7, max_time=3.0)
    machine.n_features_in_, machine.old_, machine._last, machine.kept = 4, 1, {}, 2
    done = Result(status=Status.CONVERGED, objective=-8.0, gap=0.5, violation=0.25, n_iter=3)
    machine._publish(done, own_=5)
    assert (
        not hasattr(machine, "old_") and not hasattr(machine, "_last") and machine.n_features_in_ == 4 and machine.kept == 2
    )
    assert (machine.own_, machine.n_iter_, machine.status_, machine.objective_, machine.dual_gap_) == (
        5,
        3,
        "converged",
        -8.0,
        0.5,
    )
    machine._publish(done, n_iter_=9)
    assert machine.n_iter_ == 9
    for status, remedy in (
        (Status.MAX_TIME, r"raise max_time \(3.0 s\)"), (Status.MAX_ITER, r"raise max_iter \(7\)"),
        (Status.INTERRUPTED, "fit again"), (Status.STALLED, "scale the features"),
    ):  # fmt: skip
        with pytest.warns(
            ConvergenceWarning, match=rf"gap 0.5 \(0.062 of the objective\), violation 0.25. To go on, {remedy}"
        ):
            machine._publish(replace(done, status=status))
    machine._publish(replace(done, status=Status.CALLBACK))  # who stopped it knows
    machine._warns = False
    machine._publish(replace(done, status=Status.STALLED))


# ---- labels and weights


def test_weights_of_rows_are_at_least_zero_and_one_of_them_more():
    np.testing.assert_array_equal(row_weights(3, None), np.ones(3))
    np.testing.assert_array_equal(row_weights(3, [1, -2, 3]), [1, 0, 3])
    np.testing.assert_array_equal(row_weights(3, 2.0), [2, 2, 2])
    for bad, said in (
        ([1, 2], "incompatible shapes"), ([1, np.nan, 2], "NaN or infinity"), ([0, -1, 0], "zero or negative"),
        (0.0, "zero or negative"), ([[1, 2, 3]], "incompatible shapes"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            row_weights(3, bad)
    with pytest.raises(ValueError, match="zero or negative"):
        row_weights(0, None)
    some = Threads.run(2, lambda comm: row_weights(2, [0, -1] if comm.rank else [3, 1], comm), timeout=30)
    np.testing.assert_array_equal(some, [[3, 1], [0, 0]])


@pytest.mark.parametrize("kind", [int, float, str, bool, object])
@pytest.mark.parametrize("seed", range(6))
def test_classes_are_those_of_rows_that_count(kind, seed):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 2 if kind is bool else 4, 30)
    y = np.array(["d", "b", "a", "c"])[code] if kind in (str, object) else (3 * code - 2 if kind is not bool else code > 0)
    y = y.astype(kind)
    weight = np.where(rng.random(30) < 0.3, 0.0, rng.uniform(0.5, 2, 30))
    if kind is not bool and seed % 2:
        weight[y == y[0]] = 0.0
    classes, number = encoded_classes(y, weight)
    present = np.unique(y[weight > 0])
    np.testing.assert_array_equal(classes, present)
    for label, k in zip(y, number):
        assert k == (np.flatnonzero(present == label)[0] if label in present else -1)


def test_two_whole_numbers_are_told_without_sorting_and_others_by_it():
    for y in ([1, 1, 5], [5, 1, 1], [-1.0, 1.0, -1.0], [2, 3, 4], [0, 1, 0, 2], [1, 2, 2]):
        y = np.array(y)
        classes, code = _labelled._numbered(y, True)
        expected = np.unique(y, return_inverse=True)
        np.testing.assert_array_equal(classes, expected[0])
        np.testing.assert_array_equal(code, expected[1])
        assert classes.dtype == y.dtype
    for y, whole in (
        ([1, 2], True),
        ([1.0, 2.0], True),
        ([1.5, 2.0], False),
        ([np.inf, 1.0], False),
        (["a"], False),
        ([True], True),
    ):
        assert whole_numbers(np.array(y)) == whole
    assert whole_numbers(np.array([1], np.uint8)) and not whole_numbers(np.array([1j]))


def test_one_class_is_refused_and_so_is_one_that_counts():
    with pytest.raises(ValueError, match=r"got 1 class: y is \[3\] throughout"):
        encoded_classes(np.array([3, 3, 3]), np.ones(3))
    with pytest.raises(ValueError, match=r"same class, \[4\]"):
        encoded_classes(np.array([3, 4, 4, 3]), np.array([0.0, 1, 1, 0]))


def test_factors_of_classes():
    classes, code = np.array(["a", "b", "c"]), np.array([0, 0, 0, 1, 1, 2, -1])
    weight = np.array([1.0, 1, 2, 1, 1, 0, 0])
    np.testing.assert_array_equal(class_weights(None, classes, code, weight), np.ones(3))
    np.testing.assert_allclose(class_weights("balanced", classes, code, weight), [6 / (2 * 4), 6 / (2 * 2), 1.0])
    np.testing.assert_array_equal(class_weights({"a": 2, "c": 0.5}, classes, code, weight), [2, 1, 0.5])
    np.testing.assert_array_equal(class_weights({"a": 2, "b": 1, "c": 3, "z": 9}, classes, code, weight), [2, 1, 3])
    for bad, said in (
        ("other", "is unknown"), ([1, 2, 3], "must be a dict"), ({"a": 1, "z": 2}, r"\['b', 'c'\], are not in class_weight"),
        ({"a": 0}, "positive number"), ({"a": np.inf}, "positive number"), ({"a": -1.0}, "positive number"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            class_weights(bad, classes, code, weight)


def test_what_a_fit_begins_with():
    X, y = data(12)
    weight = np.linspace(0, 1.1, 12)
    some = Labelled.of(SVC(class_weight={0: 2.0, 1: 3.0, 2: 5.0}), X, y, weight)
    assert some.code.dtype == np.intp and some.target.dtype == np.float64
    np.testing.assert_array_equal(some.code, y)
    np.testing.assert_allclose(some.effective, weight * np.array([2.0, 3.0, 5.0])[y])
    np.testing.assert_array_equal(
        Labelled.of(SVC(class_weight="balanced"), X, y, weight, balanced=False).factors, np.ones(3)
    )
    plain = Labelled.of(SVR(), X, y, weight)
    np.testing.assert_array_equal(plain.effective, weight)
    np.testing.assert_array_equal(plain.target, y)
    assert len(plain.classes) == len(plain.factors) == 0
    outlier = Labelled.of(OneClassSVM(), X, None, None)
    assert not outlier.target.any() and outlier.weight.tolist() == [1.0] * 12
    for machine in (SVC(), SVR(), LinearSVC()):
        with pytest.raises(ValueError, match=f"{type(machine).__name__} requires y to be passed"):
            Labelled.of(machine, X, None, None)


@pytest.mark.parametrize("ranks", [2, 3])
def test_labels_of_ranks_are_those_of_one(ranks):
    y = np.array([7, 3, 3, 9, 7, 3, 9, 9, 1])
    weight = np.where(y == 1, 0.0, np.linspace(0.5, 2, 9))
    whole = encoded_classes(y, weight)
    factors = class_weights("balanced", *whole, weight)
    cut = np.array_split(np.arange(9), ranks)

    def work(comm):
        mine = cut[comm.rank]
        classes, code = encoded_classes(y[mine], weight[mine], comm)
        return classes, code, class_weights("balanced", classes, code, weight[mine], comm)

    for (classes, code, own), mine in zip(Threads.run(ranks, work, timeout=30), cut):
        np.testing.assert_array_equal(classes, whole[0])
        np.testing.assert_array_equal(code, whole[1][mine])
        np.testing.assert_allclose(own, factors, rtol=1e-14)


# ---- probabilities


def test_folds_spread_each_class_and_leave_out_what_does_not_count():
    X, y = data(47)
    weight = np.where(np.arange(47) % 6 == 5, 0.0, 1.0)
    some = Labelled.of(SVC(), X, y, weight)
    fold = _probability._folds(SVC(), some)
    assert (fold[weight == 0] == -1).all()
    for c in range(3):
        count = np.bincount(fold[(y == c) & (weight > 0)], minlength=5)
        assert len(count) == 5 and count.max() - count.min() <= 1
        assert count[c] == count.max()  # classes begin at different folds
    np.testing.assert_array_equal(fold, _probability._folds(SVC(random_state=0), some))
    assert not np.array_equal(fold, _probability._folds(SVC(random_state=1), some))


def test_values_of_a_machine_that_knows_fewer_classes_stand_where_they_belong():
    values = np.arange(1.0, 7.0).reshape(2, 3)
    out = _probability.by_pair(values, np.array([0, 2, 3]), 4)  # pairs 01 02 03 12 13 23
    np.testing.assert_array_equal(out, [[np.nan, 1, 2, np.nan, np.nan, 3], [np.nan, 4, 5, np.nan, np.nan, 6]])
    two = _probability.by_pair(values[:, :1], np.array([1, 2]), 3)
    np.testing.assert_array_equal(two, [[np.nan, np.nan, -1], [np.nan, np.nan, -4]])
    np.testing.assert_array_equal(_probability.by_pair(values[:, :1], np.array([0, 1]), 2), values[:, :1])


def test_a_sigmoid_for_each_pair_from_its_rows_alone():
    X, y = data(60)
    weight = np.where(np.arange(60) % 7 == 0, 0.0, 1.5)
    values = np.random.default_rng(0).normal(size=(60, 3))
    values[4] = np.nan
    a, b = _probability.sigmoids(values, Labelled.of(SVC(), X, y, weight))
    for k, (i, j) in enumerate(combinations(range(3), 2)):
        rows = np.isin(y, (i, j)) & (weight > 0) & np.isfinite(values[:, k])
        assert (a[k], b[k]) == _probability.sigmoid(values[rows, k], y[rows] == i, weight[rows])
    two = y < 2
    a, b = _probability.sigmoids(values[two][:, :1], Labelled.of(SVC(), X[two], y[two], weight[two]))
    rows = two & (weight > 0) & np.isfinite(values[:, 0])
    assert (a[0], b[0]) == _probability.sigmoid(values[rows, 0], y[rows] == 1, weight[rows])


@pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_sigmoids_of_the_decisions_in_pieces(classes, monkeypatch):
    X, y = data(60, classes)
    model = SVC(probability=True, decision_function_shape="ovo").fit(X, y)
    decisions = model.decision_function(X).reshape(60, -1)
    pair = np.clip(1 / (1 + np.exp(decisions * model._probA + model._probB)), 1e-7, 1 - 1e-7)
    wanted = np.column_stack([1 - pair[:, 0], pair[:, 0]]) if classes == 2 else _probability.coupled(pair, classes)
    np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-9)
    monkeypatch.setattr(_probability, "ROWS", 7)
    np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-9)
    monkeypatch.setattr(type(model), "_pair_decisions", lambda self, X: 1e9 * np.ones((len(X), len(model._probA))))
    far = model.predict_proba(X[:2])
    assert far.min() > 0 and far.max() < 1  # nothing is certain
    if classes == 2:
        np.testing.assert_allclose(np.sort(far[0]), [1e-7, 1 - 1e-7])
    with pytest.warns(FutureWarning, match="probA_"):
        np.testing.assert_array_equal(model.probA_, model._probA)
    with pytest.warns(FutureWarning, match="probB_"):
        np.testing.assert_array_equal(SVC().fit(X, y).probB_, [])
    assert not hasattr(SVC(), "predict_proba") and hasattr(SVC(probability=True), "predict_log_proba")


# ---- checkpoints: what is solved, and states in an order of their own


def test_two_descriptions_differ_by_what_is_not_the_same():
    now = {
        "machine": "SVC",
        "samples": "a",
        "labels": "b",
        "sample_weight": "c",
        "C": 1.0,
        "kernel": "rbf",
        "class_weight": [1.0, 2.0],
    }
    said = _checkpoints._differences
    assert said(dict(now), now) == []
    assert said({**now, "C": 1.0 + 1e-13}, now) == []
    assert said({**now, "C": 1.0 + 1e-11}, now) == ["C was 1.00000000001 and is 1.0"]
    assert said({**now, "samples": "x", "labels": "y", "sample_weight": "z"}, now) == ["X is another"]
    assert said({**now, "labels": "y", "sample_weight": "z"}, now) == ["y is another"]
    assert said({**now, "sample_weight": "z"}, now) == ["sample_weight is another"]
    assert said({**now, "samples": "x", "C": 2.0}, now) == ["X is another", "C was 2.0 and is 1.0"]
    assert said({**now, "machine": "SVR"}, now) == ["it is of 'SVR', this is SVC"]
    assert said("nothing", now) == ["it is of 'nothing', this is SVC"]
    assert said({**now, "class_weight": [1.0, 2.5]}, now) == ["class_weight was [1.0, 2.5] and is [1.0, 2.0]"]
    assert said({**now, "class_weight": [1.0]}, now) == ["class_weight was [1.0] and is [1.0, 2.0]"]
    assert said({k: v for k, v in now.items() if k != "kernel"}, now) == ["kernel was None and is 'rbf'"]
    assert _checkpoints._same(0.0, 0.0) and _checkpoints._same(-5.0, -5.0 - 4e-12) and not _checkpoints._same(1.0, -1.0)
    assert not _checkpoints._same(1e-300, 2e-300) and _checkpoints._same(1, 1.0) and not _checkpoints._same(2, 1)
    assert [_checkpoints.plain(v) for v in (np.float64(2.0), np.int32(3), np.inf, "x", None)] == [2.0, 3, "inf", "x", None]
    assert _checkpoints.plain(np.float32(np.nan)) == "nan"


def test_a_state_is_spelled_and_made_again():
    state = {"a": np.arange(3), "b": [None, 2, {"c": np.ones(2)}], "d": "x"}
    arrays = []
    spelled = _checkpoints._spelled(state, arrays)
    assert len(arrays) == 2 and spelled["dict"]["a"] == {"array": 0}
    made = _checkpoints._made(spelled, arrays)
    assert made["a"] is arrays[0] and made["b"][2]["c"] is arrays[1] and made["b"][:2] == [None, 2] and made["d"] == "x"


@pytest.mark.parametrize("halves", [1, 2])
def test_snapshots_are_stored_in_hash_order_and_come_back(halves):
    rng = np.random.default_rng(0)
    rank = rng.permutation(10)
    order = HashOrder(rank)
    np.testing.assert_array_equal(order.everyone[rank], np.arange(10))
    some = np.array([2, 5, 7])
    assert order.ids(some).tolist() == sorted(rank[some].tolist())
    assert order.samples(order.ids(some)).tolist() == [2, 5, 7]
    chosen = [np.array([0, 3, 4, 9]), np.array([1, 2, 8]), np.array([5, 6])]
    shots = order.of(chosen, halves)
    seen = [{"alpha": rng.random(4 * halves)}, None, {"alpha": rng.random(2 * halves), "second": rng.random(2 * halves)}]
    state = shots.stored(seen)
    assert state["alpha_of"].tolist() == [0, 2] and state["second_of"].tolist() == [2]
    first = seen[0]["alpha"].reshape(halves, 4)[:, np.argsort(rank[chosen[0]])].ravel()
    np.testing.assert_array_equal(state["alpha"][: 4 * halves], first)
    back = shots.restored(state)
    assert back[1] == {}
    for mine, then in zip(back, seen):
        for name in then or {}:
            np.testing.assert_array_equal(mine[name], then[name])
    for name, wrong in (
        ("alpha", state["alpha"][:-1]), ("alpha", state["alpha"].astype(np.float32)), ("second", state["second"] * np.nan),
        ("alpha_of", np.array([0, 1])), ("second", np.append(state["second"], 1.0)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="does not hold what"):
            shots.restored({**state, name: wrong})


@pytest.mark.parametrize("halves", [1, 2])
def test_states_of_ranks_are_those_of_one_in_hash_order(halves):
    """Ranks have samples one after the other; a file does not know how many there were."""
    rng = np.random.default_rng(1)
    counts, each = [3, 0, 4], []
    for n in counts:
        each.append((rng.permutation(n), [np.arange(0, n, 2), np.arange(n)]))
    values = [[rng.random(halves * len(some)) for some in chosen] for _, chosen in each]

    def work(comm):
        rank, chosen = each[comm.rank]
        shots = HashOrder(rank, comm).of(chosen, halves)
        state = shots.stored([{"alpha": alpha} for alpha in values[comm.rank]])
        return state, shots.restored(state)

    found = Threads.run(3, work, timeout=30)
    wanted = []
    for p in range(2):
        for h in range(halves):
            for (rank, chosen), mine in zip(each, values):
                wanted += mine[p].reshape(halves, -1)[h][np.argsort(rank[chosen[p]])].tolist()
    for (state, back), mine in zip(found, values):
        assert state["alpha"].tolist() == wanted and state["alpha_of"].tolist() == [0, 1] and len(state["second"]) == 0
        for one, other in zip(back, mine):
            np.testing.assert_array_equal(one["alpha"], other)


def test_fingerprints_do_not_know_the_order_of_rows_nor_those_that_do_not_count():
    X, y = data(20)
    weight = np.linspace(0.5, 2, 20)

    def of(X, y, weight):
        return _checkpoints.fingerprints(Labelled.of(SVC(), X, y, weight), 1)

    plain, turn = of(X, y, weight), np.random.default_rng(0).permutation(20)
    assert (plain["n_samples"], plain["n_features"], plain["n_classes"]) == (20, 4, 3)
    assert of(X[turn], y[turn], weight[turn]) == plain
    assert of(np.vstack([X, 9 * X[:1]]), np.append(y, 0), np.append(weight, 0.0)) == plain
    changed = X.copy()
    changed[3, 2] += 1e-9
    other = of(changed, y, weight)
    assert other["samples"] != plain["samples"] and other["labels"] != plain["labels"]
    swapped = y.copy()
    swapped[[0, 1]] = y[[1, 0]]
    other = of(X, swapped, weight)
    assert other["samples"] == plain["samples"] and other["labels"] != plain["labels"]
    uneven = weight.copy()
    uneven[[0, 1]] = weight[[1, 0]]
    other = of(X, y, uneven)
    assert other["samples"] == plain["samples"] and other["labels"] == plain["labels"]
    assert other["sample_weight"] != plain["sample_weight"]


def test_stages_of_divide_and_conquer_come_back_and_others_are_refused():
    rng = np.random.default_rng(2)
    order = HashOrder(rng.permutation(12))
    chosen = [np.array([0, 2, 4, 6]), np.array([1, 3, 5])]
    table = np.zeros(2, TABLE)
    table["stage"], table["level"] = "level", [2, 1]
    alphas = [rng.random(4), rng.random(3)]
    stages = Stages(order, chosen, False)
    kept = Kept(seed=77, table=table, level=1, population=np.array([1, 5, 9]), finished=alphas, stage="refine", begun=alphas)
    state = stages.stored(kept)
    back = stages.restored(state)
    assert (back.seed, back.level, back.stage) == (77, 1, "refine") and back.population.tolist() == [1, 5, 9]
    for one, other in zip(back.finished + back.begun, alphas + alphas):
        np.testing.assert_array_equal(one, other)
    none = stages.restored(stages.stored(Kept(seed=3, table=table[:0])))
    assert none.level == 0 and none.finished == [] and none.begun == [] and none.stage == ""
    nobody = stages._snapshots.stored([None, None])
    for change in (
        {"table": np.zeros(2)}, {"level": 3}, {"level": 0, "stage": "other"}, {"finished": nobody}, {"begun": nobody},
        {"population": np.array([], np.int64)}, {"population": np.array([-1, 2])}, {"population": np.array([3, 12])},
    ):  # fmt: skip
        with pytest.raises((ValueError, KeyError, IndexError)):
            stages.restored({**state, **change})
    both = Stages(order, chosen[:1], True)
    two = [rng.random(8)]
    state = both.stored(replace(kept, finished=two, begun=two))
    np.testing.assert_array_equal(both.restored(state).begun[0], two[0])
    assert both.restored({**state, "population": np.array([0, 11])}).population.tolist() == sorted(
        order.samples(np.array([0, 11]))
    )


# ---- linear machines


def linear_state(machine, X, y, vectors=1, joint=False, frame="frame"):
    samples = machine._data(Labelled.of(machine, X, y, None))
    return samples, States(machine, samples, vectors, joint, frame)


@pytest.mark.parametrize("scaling", [None, 1.0, 3.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_points_of_linear_machines_are_published_and_taken_back(intercept, scaling):
    X, y = data(40)
    for machine in (
        LinearSVC(fit_intercept=intercept, intercept_scaling=scaling),
        LinearSVR(fit_intercept=intercept, intercept_scaling=scaling),
    ):
        far = X + 1e4
        samples = machine._data(Labelled.of(machine, far, y + 50.0 if isinstance(machine, LinearSVR) else y, None))
        free = intercept and scaling is None
        assert (samples.centre is not None) == free
        w = np.random.default_rng(0).normal(size=(3, 4 + intercept))
        coef, b = machine._published(w, samples)
        np.testing.assert_array_equal(coef, w[:, :4])
        centre = np.zeros(4) if samples.centre is None else samples.centre
        expected = (w[:, 4] * (scaling or 1.0) if intercept else np.zeros(3)) - w[:, :4] @ centre + samples.level
        np.testing.assert_allclose(b, expected, rtol=1e-12)
        np.testing.assert_allclose(machine._points(coef, b, samples), w, rtol=1e-9, atol=1e-9)


def test_a_state_of_a_linear_fit_serves_as_far_as_it_is_of_the_same():
    X, y = data(30, 2)
    machine = LinearSVC()
    _, states = linear_state(machine, X, y)
    cuts = Cuts(np.ones((2, 5)), np.ones((3, 2)), np.eye(2), np.zeros(2, np.int64))
    known = Known(np.arange(5.0), cuts, np.linspace(0, 1, 30), 0.25)
    state = states.stored(known)
    assert len(state["problems"]) == 1
    past = states.restored(state)[0]
    np.testing.assert_allclose(past.start, known.w)
    np.testing.assert_array_equal(past.duals, known.duals)
    np.testing.assert_array_equal(past.cuts.a, cuts.a)
    assert past.rounding == 0.25
    other = states.restored({**state, "key": "another"})[0]
    assert other.duals is None and other.rounding is None and other.cuts is not None and other.start is not None
    framed = states.restored({**state, "frame": "another"})[0]
    assert framed.cuts is None and framed.duals is not None and framed.start is not None
    assert states.restored({**state, "problems": [None]}) == {}
    with pytest.raises(ValueError, match="does not hold"):
        states.restored({**state, "problems": state["problems"] * 2})
    mine = state["problems"][0]
    for change in (
        {"point": np.ones((1, 4))}, {"point": np.full((1, 5), np.nan)}, {"duals": np.ones(31)},
        {"duals": np.ones(30, np.float32)},
        *({"cuts": {**mine["cuts"], name: wrong}} for name, wrong in (
            ("a", np.ones((3, 5))), ("numbers", np.ones((2, 2))), ("gram", np.ones((2, 3))), ("idle", np.zeros(2)),
            ("numbers", np.array([[1.0, 1], [1, -1], [1, 1]])), ("numbers", np.array([[1.0, 1], [1, 1], [-1, 1]])),
        )),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="does not hold"):
            states.restored({**state, "problems": [{**mine, **change}]})
    negative = {**mine["cuts"], "numbers": np.array([[-1.0, -1], [0, 1], [1, 0]])}
    assert states.restored({**state, "problems": [{**mine, "cuts": negative}]})[0].cuts is not None
    assert states.restored({**state, "problems": [{**mine, "rounding": -3.0}]})[0].rounding == 0.0
    assert states.restored({**state, "problems": [{**mine, "rounding": None, "duals": None}]})[0][2:] == (None, None)
    empty = states.stored([None, Known()])
    assert empty["problems"][0] is None and empty["problems"][1] == {
        "duals": None,
        "rounding": None,
        "point": None,
        "cuts": None,
    }
    twice = states.restored({**state, "problems": [{**mine, "duals": np.ones(60)}]})[0]
    assert len(twice.duals) == 60


def test_cuts_beyond_what_a_file_shall_hold_are_left_out(monkeypatch):
    X, y = data(30, 2)
    _, states = linear_state(LinearSVC(), X, y)
    cuts = Cuts(np.ones((2, 5)), np.ones((3, 2)), np.eye(2), np.zeros(2, np.int64))
    for most, there in ((10, True), (9, False)):
        monkeypatch.setattr(_linear_state, "MOST", most)
        assert (states.stored(Known(np.arange(5.0), cuts))["problems"][0]["cuts"] is not None) == there
    joint = linear_state(LinearSVC(multi_class="crammer_singer"), *data(30), vectors=3, joint=True)[1]
    state = joint.stored(Known(np.arange(15.0), None))
    assert state["problems"][0]["point"].shape == (3, 5)
    np.testing.assert_allclose(joint.restored(state)[0].start, np.arange(15.0))


def test_equal_samples_are_one_with_the_sum_of_their_weights():
    X = np.array([[1.0, 2], [3, 4], [1, 2], [1, 2], [5, 6], [3, 4]])
    y, weight = np.array([0, 1, 0, 1, 1, 1]), np.array([1.0, 2, 4, 8, 0, 16])
    for form in (np.asarray, sp.csr_matrix):
        samples = Samples(form(X), y, weight)
        samples.merge()
        rows = samples.X.toarray() if sp.issparse(samples.X) else samples.X
        found = sorted((*row, int(t), w) for row, t, w in zip(rows.tolist(), samples.target, samples.weight))
        assert found == [(1.0, 2.0, 0, 5.0), (1.0, 2.0, 1, 8.0), (3.0, 4.0, 1, 18.0)]
        turned = Samples(form(X[::-1]), y[::-1], weight[::-1])
        turned.merge()
        other = turned.X.toarray() if sp.issparse(turned.X) else turned.X
        np.testing.assert_array_equal(rows, other)
        assert samples.level == 0.0 and samples.unit == 1.0 and samples.centre is None


def test_few_samples_are_merged_and_many_are_not(monkeypatch):
    X, y = data(30, 2)
    X, y = np.vstack([X, X]), np.append(y, y)
    for most, count in ((60, 30), (59, 60)):
        monkeypatch.setattr("maxmargin.estimators._linear.SMALL", most)
        machine = LinearSVC()
        assert machine._data(Labelled.of(machine, X, y, None)).X.shape[0] == count


@pytest.mark.parametrize("seed", range(8))
def test_half_of_the_weight_is_at_or_below_the_median(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    values, weight = rng.integers(-5, 6, n).astype(float), rng.integers(1, 5, n).astype(float)
    median = linear_module._median(values, weight)
    assert median in values
    assert weight[values <= median].sum() >= 0.5 * weight.sum() > weight[values < median].sum() - 1e-9
    cut = np.array_split(np.arange(n), 3)

    def work(comm):
        return linear_module._median(values[cut[comm.rank]], weight[cut[comm.rank]], comm)

    assert Threads.run(3, work, timeout=30) == [median] * 3


def test_a_rank_with_many_values_tells_of_a_thousand_of_them():
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=9000), rng.uniform(0.5, 2, 9000)
    told = []

    def work(comm):
        gather = comm.allgather
        comm.allgather = lambda part, *more: told.append((comm.rank, part)) or gather(part, *more)
        mine = slice(None, 8000) if comm.rank == 0 else slice(8000, None)
        return linear_module._median(values[mine], weight[mine], comm)

    found = Threads.run(2, work, timeout=30)
    assert found[0] == found[1] and all(len(part) == 1000 for _, part in told)
    middles, shares = (part for rank, part in told if rank == 0)
    order = np.argsort(values[:8000])
    np.testing.assert_array_equal(middles, values[order[4::8]])  # of eight each
    np.testing.assert_allclose(shares, weight[order].reshape(1000, 8).sum(axis=1))
    below = weight[values <= found[0]].sum() / weight.sum()
    assert abs(below - 0.5) < 0.002


@pytest.mark.parametrize("free", [True, False])
def test_level_and_unit_of_targets(free):
    X = np.random.default_rng(0).normal(size=(9, 2))
    y = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 100])
    weight = np.array([1.0, 1, 1, 1, 1, 1, 1, 1, 0])

    def measured(y, weight=weight, **options):
        machine = LinearSVR(intercept_scaling=None if free else 1.0, **options)
        samples = Samples(X, np.asarray(y, float), weight)
        machine._measure(samples)
        return samples.level, samples.unit

    level, unit = measured(y, epsilon=0.5)
    assert level == (3.0 if free else 0.0)
    size = (weight @ np.abs(y - level)) / 8 + 0.5
    assert unit == 2.0 ** round(np.log2(size))
    assert measured(y, epsilon=3.5)[0] == (3.5 if free else 0.0)  # all fit into the tube: its middle
    assert measured(y, epsilon=3.4)[0] == (3.0 if free else 0.0)
    for shift in (-100.0, -3.0, 50.0):
        for epsilon, middle in ((3.5, 3.5), (3.4, 3.0)):
            level, unit = measured(y + shift, epsilon=epsilon)
            assert level == (middle + shift if free else 0.0)
            assert unit == 2.0 ** round(np.log2((weight @ np.abs(y + shift - level)) / 8 + epsilon))
    assert measured(np.zeros(9)) == (0.0, 1.0)
    assert measured(np.full(9, 1e300), epsilon=0.0)[1] == (1.0 if free else 2.0**200)
    assert measured(1e-300 * (np.arange(9) % 2), epsilon=0.0)[1] == 2.0**-200


def test_problems_of_linear_machines_are_what_the_parameters_say():
    X, y = data(40)
    weight = np.linspace(0.5, 2, 40)
    for intercept, scaling, joint in product((True, False), (None, 2.0), (False, True)):
        machine = LinearSVC(
            C=3.0,
            fit_intercept=intercept,
            intercept_scaling=scaling,
            multi_class="crammer_singer" if joint else "ovr",
            n_jobs=2,
        )
        samples = machine._data(Labelled.of(machine, X, y, weight))
        problem = machine._problem(samples, 1)
        np.testing.assert_array_equal(problem.sign, np.where(samples.target == 1, 1.0, -1.0))
        assert problem.C == 3.0 and problem.bias == ((scaling or 1.0) if intercept else 0.0)
        assert problem.penalised == (not (intercept and scaling is None)) and problem.threads == 2
        assert machine._problem(samples, 0, 1).threads == 1
    two = LinearSVC(multi_class="crammer_singer", C=3.0)
    samples = two._data(Labelled.of(two, X[y < 2], y[y < 2], None))
    assert type(two._solver(samples, {})).__name__ == "Scaled"
    assert LinearSVC()._seed == 0 and LinearSVC(random_state=5)._seed == LinearSVC(random_state=5)._seed != 0


def test_arguments_that_do_not_go_together():
    for penalty, loss, dual, multi, solver in product(
        ("l2", "l1"),
        ("hinge", "squared_hinge"),
        (True, False, "auto"),
        ("ovr", "crammer_singer"),
        ("auto", "ocas", "newton"),
    ):
        machine = LinearSVC(penalty, loss, dual=dual, multi_class=multi, solver=solver)
        if multi == "crammer_singer":
            good = solver in ("auto", "ocas")
        elif penalty == "l1":
            good = loss == "squared_hinge" and dual is not True and solver == "auto"
        else:
            good = not (loss == "hinge" and dual is False)
        if good:
            machine._check_parameters()
        else:
            with pytest.raises(ValueError, match=r"Unsupported set of arguments|is for penalty='l2'|cannot do multi_class"):
                machine._check_parameters()
    for dual in (None, 1, "yes"):
        for make in (LinearSVC, LinearSVR):
            with pytest.raises(ValueError, match="must be 'auto', True or False"):
                make(dual=dual)._check_parameters()


def test_weights_may_be_sparse_and_decisions_stay():
    X, y = data(40)
    for model, targets in ((LinearSVC(), y), (LinearSVC(), y > 1), (LinearSVR(), X[:, 0])):
        model.fit(X, targets)
        coef, before = model.coef_, model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
        plain = X @ np.atleast_2d(coef).T + model.intercept_
        np.testing.assert_allclose(before, plain if plain.shape[1] > 1 else plain[:, 0], rtol=1e-9, atol=1e-12)
        model.sparsify()
        assert sp.issparse(model.coef_)
        after = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
        np.testing.assert_array_equal(after, before)
        model.densify().densify()
        np.testing.assert_array_equal(model.coef_, coef)
        assert model.coef_.shape == coef.shape


def test_what_cuts_depend_on_is_in_their_key():
    X, y = data(30)

    def keys(X=X, y=y, weight=None, **options):
        machine = LinearSVC(**{"intercept_scaling": None, **options})
        given = Labelled.of(machine, X, y, weight)
        samples = machine._data(given)
        return machine._fingerprint(samples), machine._frame(given, samples)

    key, frame = keys()
    assert keys(C=9.0, tol=1e-3) == (key, frame)
    for options in (
        {"loss": "hinge"},
        {"fit_intercept": False},
        {"intercept_scaling": 2.0},
        {"multi_class": "crammer_singer"},
    ):
        other = keys(**options)
        assert other[0] != key and other[1] != frame
    assert keys(class_weight={0: 2.0, 1: 1.0, 2: 1.0})[1] != frame
    assert keys(X=X.astype(np.float32))[1] != frame and keys(X=X[::-1], y=y[::-1])[1] == frame
    assert keys(X=X * 1.5)[0] != key and keys(weight=np.linspace(1, 2, 30))[0] != key and keys(y=(y + 1) % 3)[0] != key
    assert keys(X=X + 1e5)[1] != frame
    assert keys(X=sp.csr_matrix(X))[0] != key


# ---- kernel machines


def test_a_solution_to_begin_from_knows_its_f_in_the_same_precision():
    f = np.arange(10.0)
    alpha, before, rows = np.array([0.5, 1.0]), np.array([0.25, 1.0]), np.array([7, 3])
    begin = _setup.Begin(np.zeros(10), f, 2.0, np.dtype(np.float32))
    known, path = begin.known(rows, alpha, before, np.float32)
    assert known.tolist() == [7.0, 3.0] and path == pytest.approx(2.0 + 0.25 / np.finfo(float).eps + 3.0)
    assert begin.known(rows, alpha, before, np.float64) is None
    assert begin.known(rows, alpha, alpha, np.float32)[1] == 5.0
    assert _setup.Begin(np.zeros(10), None, 2.0, np.float32).known(rows, alpha, before, np.float32) is None


def test_which_precision_and_type_of_numbers():
    assert _setup.needs_double(1000, 1e-3, 1.0) and not _setup.needs_double(1001, 1e-3, 1.0)
    assert _setup.needs_double(5000, 1e-5, 1.0) and not _setup.needs_double(5000, 1.01e-5, 1.0)
    assert _setup.needs_double(5000, 1e-3, 1e4) and not _setup.needs_double(5000, 1e-3, 9999.0)
    assert _setup.row_numbers(2**31 - 1) is np.int32 and _setup.row_numbers(2**31) is np.int64


def test_what_a_kernel_machine_is_set_up_with():
    X, y = data(50)
    machine = SVC(kernel="poly", degree=2, coef0=0.5, gamma="scale", tol=1e-4, cache_size=7, shrinking=False, n_jobs=2,
                  working_set_size=8, inner_solver="gpm")  # fmt: skip
    weight = np.where(np.arange(50) % 5 == 4, 0.0, 1.0)
    setup = _setup.Setup(machine, Labelled.of(machine, X, y, weight))
    assert setup.kernel == Kernel("poly", setup.kernel.gamma, 0.5, 2) and setup.n_rows == 50 and len(setup.rows.index) == 40
    assert setup.kernel.gamma == pytest.approx(1 / (4 * X[weight > 0].var()))
    o = setup.options
    assert (o.tol, o.cache_size, o.shrinking, o.working_set_size, o.inner_solver, o.threads) == (1e-4, 7, False, 8, "gpm", 1)
    assert setup.dtype == np.float64 and sorted(setup.hash_order.rank.tolist()) == list(range(40))
    assert setup.same_rows({"index": setup.rows.index}) and not setup.same_rows(None)
    assert not setup.same_rows({"index": setup.rows.index[::-1]})
    large = SVC(n_jobs=2)
    rng = np.random.default_rng(0)
    many = rng.normal(size=(1600, 4))
    assert _setup.Setup(large, Labelled.of(large, many, many[:, 0] > 0, None)).threads == 2
    few = many[:1500]
    assert _setup.Setup(large, Labelled.of(large, few, few[:, 0] > 0, None)).threads == 1
    assert _setup.Setup(large, Labelled.of(large, few, few[:, 0] > 0, None)).dtype == np.float32
    given = SVC(kernel="precomputed")
    gram = X @ X.T
    setup = _setup.Setup(given, Labelled.of(given, gram, y, weight))
    assert setup.kernel.name == "precomputed" and setup.kernel.gamma == 1.0 and len(setup.rows.index) == 40
    function = SVC(kernel=lambda a, b: a @ b.T)
    setup = _setup.Setup(function, Labelled.of(function, X, y, weight))
    assert setup.kernel.name == "callable" and setup.kernel.function is function.kernel
    with pytest.raises(ValueError):
        _setup.Setup(SVC(gamma="scale"), Labelled.of(SVC(), X[:0], y[:0], None))


def test_clusters_far_from_each_other_are_computed_in_float64():
    rng = np.random.default_rng(0)
    for far, dtype in ((1.0, np.float32), (1000.0, np.float64)):
        X = rng.normal(size=(1200, 3)) + far * (np.arange(1200) % 2)[:, None]
        machine = SVC(gamma=0.5)
        assert _setup.Setup(machine, Labelled.of(machine, X, np.arange(1200) % 2, None)).dtype == dtype


def test_support_vectors_stand_by_class_and_then_by_row():
    X, y = data(12)
    machine = SVC()
    setup = _setup.Setup(machine, Labelled.of(machine, X, y, None))
    coef = np.zeros((2, 12))
    coef[0, [1, 4, 8]], coef[1, [0, 8, 11]] = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]
    support, vectors, kept, code = setup.expansion(coef, y)
    assert support.tolist() == [0, 1, 4, 8, 11] and code.tolist() == [0, 1, 1, 2, 2]
    np.testing.assert_array_equal(vectors, X[support])
    np.testing.assert_array_equal(kept, coef[:, support])


def test_what_is_a_table_of_numbers():
    X = np.ones((3, 2))
    assert all(
        is_matrix(some) for some in (X, X.tolist(), sp.csr_matrix(X), np.ones((0, 2)), X.astype(int), X.astype(object))
    )
    assert not any(
        is_matrix(some) for some in (X[0], ["a", "b"], [["a", "b"]], [[1], [1, 2]], np.array([["1"]]), np.ones((2, 2, 2)))
    )
    assert not is_matrix(np.array([[{}]], dtype=object)) and not is_matrix(np.zeros((2, 2), "M8[s]"))


@pytest.mark.parametrize("make", KERNEL)
def test_of_a_fit_is_said_how_it_went(make):
    X, y = data(40, 2)
    target = y if make in (SVC, NuSVC) else X[:, 0]
    model = make().fit(X, target)
    assert model.fit_status_ == 0 and model.shape_fit_ == (40, 4) and model._gamma == model._fitted_kernel.gamma
    assert 0 <= model.kkt_violation_ <= model.tol and model._precision == "float64"
    short = make(max_iter=1, working_set_size=2)
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=1\)"):
        short.fit(X, target)
    assert short.fit_status_ == 1 and short.kkt_violation_ > short.tol
    setup = SimpleNamespace(n_rows=3, X=np.ones((2, 5)), kernel=Kernel("rbf", 0.5), dtype=np.float32)
    parts = [SimpleNamespace(violation=v, status=s) for v, s in ((0.1, Status.CONVERGED), (0.3, Status.CONVERGED))]
    said = make()._about(setup, parts)
    assert (said["kkt_violation_"], said["fit_status_"], said["shape_fit_"], said["_precision"]) == (
        0.3,
        0,
        (3, 5),
        "float32",
    )
    parts.append(SimpleNamespace(violation=np.nan, status=Status.STALLED))
    said = make()._about(setup, parts)
    assert np.isnan(said["kkt_violation_"]) and said["fit_status_"] == 1


def test_dual_coefficients_in_libsvms_sign_and_by_pairs():
    X, y = data(40)
    for classes in (2, 3):
        model = SVC().fit(X[y < classes], y[y < classes])
        turned = -1.0 if classes == 2 else 1.0
        np.testing.assert_array_equal(model._dual_coef_, turned * model.dual_coef_)
        model._dual_coef_ = 2 * model._dual_coef_
        np.testing.assert_array_equal(model._dual_coef_, turned * model.dual_coef_)
        assert model._n_support is model.n_support_
    rows = model._pair_coef()
    own = np.repeat(np.arange(3), model.n_support_)
    for row, (i, j) in zip(rows, combinations(range(3), 2)):
        for v, c in enumerate(own):
            assert row[v] == (model.dual_coef_[j - 1, v] if c == i else model.dual_coef_[i, v] if c == j else 0.0)
    assert len(own) == rows.shape[1]
    linear = SVC(kernel="linear").fit(X, y)
    np.testing.assert_allclose(linear.coef_, linear._pair_coef() @ linear.support_vectors_)
    assert linear.coef_.shape == (3, 4) and not linear.coef_.flags.writeable


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_decisions_and_predictions_of_pairs(classes, shape):
    X, y = data(45, classes)
    labels = np.array(["x", "a", "m"])[y]
    model = SVC(decision_function_shape=shape).fit(X, labels)
    pair = model._pair_decisions(X)
    assert pair.shape == (45, classes * (classes - 1) // 2) and model.classes_.tolist() == sorted(set(labels))
    said = model.decision_function(X)
    if classes == 2:
        np.testing.assert_array_equal(said, pair[:, 0])
        np.testing.assert_array_equal(model.predict(X), model.classes_[(pair[:, 0] > 0).astype(int)])
        return
    wanted = pair if shape == "ovo" else multiclass.ovr_decision(pair, 3)
    np.testing.assert_array_equal(said, wanted)
    np.testing.assert_array_equal(model.predict(X), model.classes_[multiclass.pair_votes(pair, 3).argmax(axis=1)])
    model.break_ties = True
    if shape == "ovo":
        with pytest.raises(ValueError, match="break_ties must be False"):
            model.predict(X)
    else:
        np.testing.assert_array_equal(model.predict(X), model.classes_[said.argmax(axis=1)])
    tied = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0]])
    assert model._winner(tied).tolist() == [0, 1]
    model._vote_order = np.array([1, 0, 2])
    assert model._winner(tied).tolist() == [1, 1]
    model._vote_order = np.array([2, 0, 1])
    assert model._winner(tied).tolist() == [0, 2]


@pytest.mark.parametrize("make", [SVC, NuSVC])
def test_a_warm_start_begins_where_the_last_fit_of_the_same_rows_ended(make):
    X, y = data(60)
    model = make(warm_start=True, tol=1e-6).fit(X, y)
    first, objective = model.n_iter_.sum(), model.objective_
    again = model.fit(X, y)
    assert again.n_iter_.sum() < first and again.objective_ == pytest.approx(objective, rel=1e-6)
    shares = model._last["shares"]
    assert len(shares) == 3 and all((share >= 0).all() and (share <= 1 + 1e-12).all() for share in shares)
    assert make().fit(X, y).__dict__.get("_last") is None
    model.warm_start = False
    assert not hasattr(model.fit(X, y), "_last")


@pytest.mark.parametrize("make", [SVR, maxmargin.NuSVR, OneClassSVM])
def test_a_warm_start_of_one_problem_is_in_its_units(make):
    X, _ = data(60)
    t = np.sin(X[:, 0])
    options = {} if make is OneClassSVM else {"C": 2.0}
    model = make(warm_start=True, tol=1e-6, **options).fit(X, t)
    first, objective = model.n_iter_, model.objective_
    model.fit(X, t)
    assert model.n_iter_ <= max(1, first // 3) and model.objective_ == pytest.approx(objective, rel=1e-6)
    if make is not OneClassSVM:
        setup = _setup.Setup(model, Labelled.of(model, X, t, None))
        qp = model._qp(t[setup.rows.index], setup.rows.weight, setup.over)
        np.testing.assert_allclose(model._warm_alpha(setup, qp), model._last["alpha"], atol=1e-9)
        model.set_params(C=6.0)
        qp = model._qp(t[setup.rows.index], setup.rows.weight, setup.over)
        np.testing.assert_allclose(model._warm_alpha(setup, qp), 3 * model._last["alpha"], atol=1e-6)


def test_nu_machines_are_divided_by_their_margin():
    X, y = data(60)
    model = NuSVC(nu=0.3).fit(X, y)
    assert model.margin_.shape == (3,) and (model.margin_ > 0).all()
    multipliers = np.array([[1.0, 3.0], [3.0, 1.0], [2.0, 2.0]])
    np.testing.assert_array_equal(NuSVC()._scales(multipliers), [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(NuSVC()._scales(np.array([[1.0, 5.0]])), [2.0])
    np.testing.assert_array_equal(SVC()._scales(multipliers), np.ones(3))
    assert OneClassSVM()._unit() == 1.0 and SVC(C=3.0)._unit() == 3.0 and SVC(C=np.inf)._unit() == formulations.HARD_MARGIN
    weighted = NuSVC(nu=0.3, class_weight={0: 2.0, 1: 2.0, 2: 1.0}).fit(X, y)
    np.testing.assert_allclose(weighted.margin_[0], model.margin_[0], rtol=1e-3)
    bounds = np.abs(weighted.dual_coef_).max(axis=1)
    assert bounds[1] <= 2.0 / weighted.margin_.min() * (1 + 1e-9)


def test_outliers_are_below_the_offset():
    X, _ = data(80)
    model = OneClassSVM(nu=0.3).fit(X)
    scores = model._fitted_kernel(X, model.support_vectors_) @ model.dual_coef_[0]
    np.testing.assert_allclose(model.score_samples(X), scores, rtol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), scores + model.intercept_[0], rtol=1e-6, atol=1e-9)
    assert model.offset_ == -model.intercept_[0] and model.n_support_.tolist() == [len(model.support_)]
    np.testing.assert_array_equal(model.predict(X), np.where(model.decision_function(X) >= 0, 1, -1))
    model.offset_ = float(model.score_samples(X[:1])[0])
    assert model.predict(X[:1]).tolist() == [1]  # on the border is inside


# ---- predictions


@pytest.mark.parametrize("classes", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["rbf", "linear", "callable", "precomputed"])
@pytest.mark.parametrize("sparse", [False, True])
def test_decisions_of_an_expansion_are_its_sums(classes, kind, sparse, monkeypatch):
    if sparse and kind in ("callable", "precomputed"):
        return
    rng = np.random.default_rng(classes)
    counts = 3 + np.arange(classes)
    total, outputs = counts.sum(), max(1, classes - 1)
    vectors, X, coef = rng.normal(size=(total, 6)), rng.normal(size=(70, 6)), rng.normal(size=(outputs, total))
    names = {"callable": Kernel("callable", function=lambda a, b: (a @ b.T + 1) ** 2)}
    kernel = names.get(kind, Kernel(kind, 0.3))
    support = np.arange(total) * 2
    values = (
        (X @ vectors.T + 1) ** 2 if kind == "callable" else kernel(X, vectors) if kind != "precomputed" else X @ vectors.T
    )
    x = X
    if kind == "precomputed":
        x = np.full((70, 2 * total), np.nan)
        x[:, support] = values
    form = sp.csr_matrix if sparse else np.asarray
    machine = _prediction.Expansion(kernel, form(vectors), support, counts, coef, "float64", 1)
    pairs = max(1, classes * (classes - 1) // 2)
    intercept = rng.normal(size=pairs)
    ends = np.append(0, np.cumsum(counts))
    if classes <= 2:
        wanted = values @ coef.T + intercept
    else:
        wanted = np.zeros((70, pairs))
        for k, (i, j) in enumerate(combinations(range(classes), 2)):
            a, b = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            wanted[:, k] = values[:, a] @ coef[j - 1, a] + values[:, b] @ coef[i, b] + intercept[k]
    for rows in (form(x), x):
        if kind in ("precomputed", "callable") and sp.issparse(rows):
            continue
        np.testing.assert_allclose(machine.decisions(rows, intercept), wanted, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(machine.sums(rows, coef), (values @ coef.T).T, rtol=1e-9, atol=1e-9)
    at = slice(1, 3)
    np.testing.assert_allclose(machine.sums(x, coef[:, at], at), (values[:, at] @ coef[:, at].T).T, rtol=1e-9, atol=1e-9)
    few = machine.few(np.ascontiguousarray(X[:4]), intercept)
    if few is not None:
        np.testing.assert_allclose(few, wanted[:4], rtol=1e-9, atol=1e-9)
    none = _prediction.Expansion(kernel, form(vectors[:0]), support[:0], 0 * counts, coef[:, :0], "float64", 1)
    np.testing.assert_allclose(
        none.decisions(x[:, :0] if kind == "precomputed" else x, intercept), np.tile(intercept, (70, 1))
    )


def test_pieces_cover_all_rows_and_are_not_larger_than_they_may(monkeypatch):
    machine = _prediction.Expansion(Kernel("rbf", 1.0), None, None, np.ones(4), None, "float64", 1)
    for most, step in ((160, 10), (15, 1), (16, 1), (32, 2)):
        monkeypatch.setattr(_prediction, "AT_A_TIME", most)
        slices = machine.pieces(25)
        assert np.concatenate([np.arange(25)[at] for at in slices]).tolist() == list(range(25))
        assert slices[0] == slice(0, step)
    alone = replace(machine, counts=np.array([]))
    monkeypatch.setattr(_prediction, "AT_A_TIME", 7)
    assert alone.pieces(8) == [slice(0, 7), slice(7, 14)]
    for count, step in ((1, 2**24), (2**24, 1), (2**30, 1), (0, 2**24), (2**20, 16)):
        some = _prediction.value_blocks(40, count)
        assert some[0] == slice(0, step) and some[-1].start < 40 <= some[-1].stop


def test_blocks_of_rows_have_the_form_and_type_that_is_asked_for():
    for columns, size in ((3, 1 << 16), (1 << 10, 1 << 14), (1 << 15, 1024)):
        x = sp.csr_matrix((size + 5, columns))
        found = list(_prediction.row_blocks(x, True, np.float32))
        assert [at for at, _ in found] == [slice(0, size), slice(size, size + 5)]
        assert all(sp.issparse(some) and some.dtype == np.float32 for _, some in found)
    X = np.eye(4)
    for given, sparse in product((X, sp.csr_matrix(X)), (False, True)):
        ((at, some),) = _prediction.row_blocks(given, sparse, np.float32)
        assert at == slice(0, 4) and sp.issparse(some) == sparse and some.dtype == np.float32
        np.testing.assert_array_equal(some.toarray() if sparse else some, X)


def test_few_or_narrow_samples_are_computed_with_as_dense_ones():
    for rows, columns, said, made in (
        (10, 64, None, True), (10**4, 64, None, True), (10, 65, None, True), (2016, 65, None, True), (2017, 65, None, False),
        (10, 65, 2017, False), (10, 65, 2016, True), (10, 64, 10**9, True),
    ):  # fmt: skip
        assert sp.issparse(_prediction.dense_if_small(sp.csr_matrix((rows, columns)), said)) != made
    X = np.ones((2, 2))
    assert _prediction.dense_if_small(X) is X


def test_threads_are_for_work_that_is_worth_them():
    machine = _prediction.Expansion(Kernel("rbf", 1.0), None, None, None, None, "float64", 3)
    assert machine.threads(10**7) == 3 and machine.threads(10**7 - 1) == 1


def test_weights_of_a_linear_kernel_are_used_where_they_are_less_work(monkeypatch):
    for classes, count, features in product((1, 2, 3, 6), (2, 10, 40), (1, 8, 60)):
        counts = np.full(classes, count)
        rng = np.random.default_rng(0)
        vectors, coef = rng.normal(size=(counts.sum(), features)), rng.normal(size=(max(1, classes - 1), counts.sum()))
        machine = _prediction.Expansion(Kernel("linear"), vectors, np.arange(counts.sum()), counts, coef, "float64", 1)
        pairs = max(1, classes * (classes - 1) // 2)
        less = pairs * features <= counts.sum() * (features + classes - 1)
        assert (machine._weights is not None) == less
        assert replace(machine, kernel=Kernel("rbf", 1.0))._weights is None
        with monkeypatch.context() as patch:
            patch.setattr(_prediction, "MOST_WEIGHTS", pairs * features - 1)
            assert replace(machine)._weights is None
            patch.setattr(_prediction, "MOST_WEIGHTS", pairs * features)
            assert (replace(machine)._weights is not None) == less


def test_what_is_remembered_is_of_the_very_same_parts():
    class Machine:
        pass

    machine, made = Machine(), []
    one, two = [1], [2]

    def make():
        made.append(1)
        return len(made)

    every = [(one, two), (one, two), (one, [2]), (one,), (one,)]
    assert [_prediction.remembered(machine, parts, make) for parts in every] == [1, 1, 2, 3, 3]


def test_rows_that_overflow_are_computed_in_float64_or_refused_by_number():
    machine = _prediction.Expansion(Kernel("rbf", 1.0), np.ones((1, 1)), None, None, None, "float32", 1)
    x = np.arange(6.0)[:, None]

    def of(expansion, rows):
        wide = expansion.precision == "float64"
        return np.where((rows >= 5) | ((rows >= 3) & (not wide)), np.inf, rows)

    with pytest.raises(ValueError, match="1 rows of X, the first of them row 15,"):
        machine.finite(x, of, 10)
    np.testing.assert_array_equal(machine.finite(x[:5], of), x[:5])
    with pytest.raises(ValueError, match="3 rows of X, the first of them row 3,"):
        replace(machine, precision="float64").finite(x, lambda e, rows: np.where(rows >= 3, np.nan, rows))


# ---- divide and conquer, budgets, texts


@pytest.mark.parametrize("make", [DCSVC, DCSVR])
def test_one_intercept_of_clusters_is_their_mean_by_size(make):
    label = np.array([0, 0, 0, 1, 2, 2])
    model = SimpleNamespace(partition=SimpleNamespace(label=label), intercept=np.array([[1.0, 5.0], [2.0, 6.0], [4.0, 7.0]]))
    problems = [SimpleNamespace(chosen=np.arange(6)), SimpleNamespace(chosen=np.array([0, 4]))]
    found = make()._mean_intercept(problems, SimpleNamespace(model=model))
    np.testing.assert_allclose(found, [(3 * 1 + 2 + 2 * 4) / 6, (5 + 7) / 2])
    model.partition = None
    np.testing.assert_array_equal(make()._mean_intercept(problems, SimpleNamespace(model=model)), [1.0, 5.0])


def test_chunks_of_a_stream_and_their_classes():
    assert budget._announced([3, 1, 1]).tolist() == [1, 3]
    for bad, said in ((None, "must be given before"), ([2, 2], "greater than one")):
        with pytest.raises(ValueError, match=said):
            budget._announced(bad)
    model = BudgetSVC(C=2.0, class_weight={0: 2.0, 1: 3.0})
    labels = np.array([0, 1, 1], np.int32)
    np.testing.assert_array_equal(model._effective(np.array([1.0, 0.0, 2.0]), np.array([2.0, 3.0]), labels), [2.0, 0.0, 6.0])
    with pytest.raises(ValueError, match="is 0 for a row of positive weight"):
        model._effective(np.array([1e-300, 1.0, 1.0]), np.array([1e-300, 1.0]), labels)
    at_most = np.array([0.0, 0.5e30, 0.0])
    assert model._effective(at_most, np.ones(2), labels).max() == 0.5e30
    with pytest.raises(ValueError, match="above 1e\\+30"):
        model._effective(1.01 * at_most, np.ones(2), labels)
    with pytest.raises(ValueError, match="above 1e\\+30"):
        model._effective(np.array([1e300, 1.0, 1.0]), np.array([1e300, 1.0]), labels)
    X, y = data(30, 2)
    stream = BudgetSVC(random_state=0)
    with pytest.raises(ValueError, match="must be given before"):
        stream.partial_fit(X, y)
    assert stream.partial_fit(X[:0], y[:0], classes=[0, 1]) is stream and not hasattr(stream, "status_")
    stream.partial_fit(X, y)  # announced by the chunk without rows
    with pytest.raises(ValueError, match="differ from those of the first call"):
        stream.partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match=r"not announced: \[5\]"):
        stream.partial_fit(X, np.where(y, 5, 0))
    with pytest.raises(ValueError, match="give a dict of weights for a stream"):
        BudgetSVC(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    held = len(stream.support_vectors_)
    stream.budget = held - 1
    with pytest.raises(ValueError, match=f"below the {held} support vectors"):
        stream.partial_fit(X, y)
    stream.budget = held
    assert stream.partial_fit(X, y) is stream


def test_passes_are_shuffled_if_there_is_a_generator():
    plan = SimpleNamespace(rows=np.arange(20), share=np.ones(20))
    labels = np.zeros(20, np.int32)
    plain = [chunk.order for (chunk,) in budget._epochs(None, labels, plan, 3, None)]
    assert len(plain) == 3 and all((order == np.arange(20)).all() for order in plain)
    mixed = [chunk.order for (chunk,) in budget._epochs(None, labels, plan, 2, np.random.default_rng(0))]
    assert all(sorted(order.tolist()) == list(range(20)) for order in mixed) and (mixed[0] != mixed[1]).any()


def test_what_a_budgeted_machine_says_when_it_was_stopped():
    model = BudgetSVC(epochs=5, max_time=3.0)

    def said(**result):
        return model._advice(SimpleNamespace(**{"chunk": 0, "steps": 4, "n_iter": 5, "status": Status.MAX_TIME, **result}))

    assert "after 4 of the 9 rows of this chunk" in said(chunk=9) and "give smaller chunks or budget" in said(chunk=9)
    assert "after 4 of 5 passes" in said(n_iter=4) and "or lower epochs or budget" in said(n_iter=4)
    assert (
        "in the refit, after all 5 passes" in said() and "raise max_time (3.0 s), or lower refit_memory or budget." in said()
    )
    assert said(status=Status.INTERRUPTED).endswith("the model is the one reached by then.")
    assert model._control().title == "BudgetSVC, 5 passes" and model._control(passes=0).title == "BudgetSVC"
    assert model._control().max_iter == -1


def test_a_fit_in_a_few_words():
    assert [_summary.mood(s) for s in ("converged", "completed", "early", "unknown", "stalled", "max_time")] == [
        "good", "neutral", "neutral", "neutral", "bad", "bad"
    ]  # fmt: skip
    assert [_summary.share(v) for v in (0.0, 0.1, 0.12345, 0.0999, 0.0012345, 1.0)] == [
        "0 %", "10 %", "12.3 %", "10 %", "0.12 %", "100 %"
    ]  # fmt: skip
    fit = SimpleNamespace(status_="converged", dual_gap_=0.002, objective_=-4.0, timings_={"total": 1.23456})
    assert _summary.relative_gap(fit) == pytest.approx(0.0005)
    assert _summary.in_short(fit) == "converged · gap 0.05 % of the objective · 1.23 s"
    fit.objective_, fit.dual_gap_ = 0.0, 0.0
    assert _summary.relative_gap(fit) == 0.0
    fit.dual_gap_ = np.nan
    assert _summary.in_short(fit) == "converged · 1.23 s"
    fit.dual_gap_, fit.objective_, fit.timings_ = 0.1, np.inf, {}
    assert _summary.in_short(fit) == "converged"
    for status, colour in (("converged", "#1f7a4d"), ("early", "#6b7680"), ("stalled", "#c0502f")):
        fit.status_ = status
        assert colour in _summary.html_line(fit) and f">{status}<" in _summary.html_line(fit)
