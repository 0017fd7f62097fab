"""What BudgetSVC says is true at every way a run can end, judged by code that shares nothing with it."""

import pickle
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning

from maxmargin import BudgetSVC


def dense(x):
    return np.asarray(x.todense() if sp.issparse(x) else x, dtype=np.float64)


def kernel(a, b, gamma):
    return np.exp(-gamma * ((a[:, None] - b[None]) ** 2).sum(-1))


def judged(model, x, y, weight=None):
    """The primal objective in plain NumPy, and a scale for its rounding: the same sums without signs."""
    x, vectors, coef, b = dense(x), model.support_vectors_.astype(float), model.dual_coef_, model.intercept_
    weight = np.ones(len(y)) if weight is None else weight
    gram, rows = kernel(vectors, vectors, model.gamma_), kernel(x, vectors, model.gamma_)
    wanted = np.where(np.asarray(y)[:, None] == (model.classes_[1:] if len(coef) == 1 else model.classes_), 1.0, -1.0)
    losses = np.maximum(0, 1 - wanted * (rows @ coef.T + b)).sum(axis=1)
    value = np.sum((coef @ gram) * coef) / 2 + b @ b / 2 + model.C * (weight @ losses)
    size = np.abs(coef)
    scale = np.sum((size @ gram) * size) + b @ b + model.C * (weight @ (1 + rows @ size.T + np.abs(b)).sum(axis=1))
    return value, scale


def check(model, x, y, weight=None):
    """Everything that a fit promises of its numbers."""
    assert np.isfinite(model.support_vectors_).all() and np.isfinite(model.dual_coef_).all()
    value, scale = judged(model, x, y, weight)
    assert abs(model.objective_ - value) <= 1e-9 * scale
    assert np.isnan(model.dual_gap_)
    last = model.trace_[-1]
    assert last["objective"] == model.objective_ and last["n_support"] == len(model.support_vectors_)
    assert np.isnan([last["dual"], last["gap"], last["violation"]]).all()
    assert last["iteration"] == model.n_iter_ <= len(model.trace_)
    blur = 1e-9 if model.support_vectors_.dtype == np.float64 else 3e-4
    values = kernel(dense(x), model.support_vectors_.astype(float), model.gamma_) @ model.dual_coef_.T + model.intercept_
    shown = model.decision_function(x).reshape(values.shape)
    size = 1 + np.abs(model.dual_coef_).sum() + np.abs(model.intercept_).max()
    assert np.abs(shown - values).max() <= blur * size


def attributes(model):
    """All that a fit leaves, but for seconds, in a form that can be compared."""
    held = {k: v for k, v in vars(model).items() if k not in ("timings_", "callback", "n_jobs", "verbose", "_counters")}
    held["merging_"] = {k: v for k, v in held["merging_"].items() if "seconds" not in k}
    names = [name for name in model.trace_.dtype.names if name != "time"]
    return pickle.dumps({**held, "trace_": [model.trace_[name].tobytes() for name in names]})


# ---- extreme inputs ---------------------------------------------------------------------------------------------------

powers = st.floats(-12, 12).map(lambda e: 10.0**e)
extremes = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**16),
        "n": st.integers(2, 50),
        "scales": st.lists(st.floats(-30, 30).map(lambda e: 10.0**e), min_size=1, max_size=4),
        "classes": st.integers(2, 4),
        "sparse": st.booleans(),
        "single": st.booleans(),
        "grid": st.booleans(),
        "weighted": st.booleans(),
        "C": st.floats(-8, 12).map(lambda e: 10.0**e),
        "gamma": st.one_of(st.just("scale"), st.just("auto"), powers),
        "budget": st.sampled_from([1, 3, 20, 100]),
        "maintenance": st.sampled_from(["merge", "merge", "merge", "remove", "project"]),
        "merge_search": st.sampled_from(["lookup-wd", "lookup-h", "gss", "gss-precise"]),
        "merge_table": st.sampled_from(["scaled", "uniform"]),
        "drop_useless": st.booleans(),
        "fit_intercept": st.booleans(),
        "averaging": st.booleans(),
        "refit": st.booleans(),
        "refit_memory": st.sampled_from([256, 1, 0.5]),
        "shuffle": st.booleans(),
    }
)
MACHINE = ("C", "gamma", "budget", "maintenance", "merge_search", "merge_table", "drop_useless", "fit_intercept",
           "averaging", "refit", "refit_memory", "shuffle")  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(extremes)
def test_extreme_inputs_are_answered_truly_or_refused(case):
    rng = np.random.default_rng(case["seed"])
    shape = case["n"], len(case["scales"])
    x = (rng.integers(-1, 2, shape) if case["grid"] else rng.normal(size=shape)) * np.array(case["scales"])
    x = x.astype(np.float32 if case["single"] else np.float64)
    y = rng.permutation(np.arange(case["n"]) % case["classes"])
    weight = 10.0 ** rng.uniform(-12, 12, case["n"]) if case["weighted"] else None
    model = BudgetSVC(epochs=2, random_state=0, **{name: case[name] for name in MACHINE})
    form = sp.csr_matrix(x) if case["sparse"] else x
    try:
        model.fit(form, y, sample_weight=weight)
    except ValueError as error:
        refused = "merge_table", "refit_memory", "one class", "scale the features", "lower C"
        assert any(reason in str(error) for reason in refused), error
        assert not hasattr(model, "status_")
        return
    assert model.status_ == "completed" and len(model.support_vectors_) <= case["budget"]
    check(model, form, y, weight)
    assert np.isfinite(model.partial_fit(form, y, sample_weight=weight).decision_function(form)).all()


# ---- ways to end ------------------------------------------------------------------------------------------------------

# Megabytes with which a refit of 100 coefficients and more on 200 rows goes by blocks: by classes, and for float64
SHORT = {(2, False): 0.85, (3, False): 0.85, (2, True): 1.0, (3, True): 1.0}
SETTINGS = {"C": 5.0, "gamma": 1.0, "budget": 15, "epochs": 3, "random_state": 0, "fit_intercept": True}


@pytest.fixture
def small_steps(monkeypatch):
    """The core is called for 50 rows at a time, so that a pass over 200 has three safe points and a turn."""
    monkeypatch.setattr("maxmargin.budget.sgd.BudgetSolver._steps_per_call", lambda self: 50)


@pytest.fixture(scope="module", params=[2, 3])
def data(request):
    if request.param == 2:
        return make_moons(200, noise=0.6, random_state=0)
    return make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=1)


def at_the(k, action):
    """A replacement for Deadline.passed, which is asked once per step: act at step k."""
    seen = iter(range(10**9))
    return lambda self, margin=0.0: bool(action()) if next(seen) == k else False


def steps_of(model, x, y, monkeypatch):
    asked = []
    with monkeypatch.context() as patch:
        patch.setattr("maxmargin.runtime.deadline.Deadline.passed", lambda self, margin=0.0: asked.append(1) and False)
        whole = clone(model).fit(x, y)
    return len(asked), whole


def test_a_run_cut_at_any_moment_is_judged_truly(data, small_steps, monkeypatch):
    """By time or by Ctrl-C, at every safe point: passes, their turns and the refit."""
    x, y = data
    model = BudgetSVC(**SETTINGS)
    steps, whole = steps_of(model, x, y, monkeypatch)
    assert steps > 20
    for k in [*range(14), *range(14, steps, 4), steps - 1]:
        for status, action in (("max_time", lambda: True), ("interrupted", lambda: signal.raise_signal(signal.SIGINT))):
            with monkeypatch.context() as patch, pytest.warns(ConvergenceWarning, match=status):
                patch.setattr("maxmargin.runtime.interrupt._last", -float("inf"))
                patch.setattr("maxmargin.runtime.deadline.Deadline.passed", at_the(k, action))
                cut = clone(model).fit(x, y)
            assert cut.status_ == status
            assert cut.n_iter_ == min((k + 1) // 4, 3)
            assert cut.merging_["steps"] == min(50 * (k + 1), 600)
            check(cut, x, y)
    assert whole.status_ == "completed" and whole.refit_["kept"]
    check(whole, x, y)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_callback_that_stops(data, k):
    x, y = data
    seen = []
    model = BudgetSVC(**SETTINGS, callback=lambda row: seen.append(row) or len(seen) == k).fit(x, y)
    assert model.status_ == "callback" and model.n_iter_ == k == len(model.trace_) and model.refit_ == {}
    check(model, x, y)
    for row, line in zip(seen[:-1], model.trace_):  # the last row of the trace is the model's
        assert all((np.isnan(value) and np.isnan(line[name])) or line[name] == value for name, value in row.items())


@pytest.mark.parametrize("k", [1, 3])
def test_an_error_in_a_callback_changes_nothing(data, k):
    x, y = data
    model = BudgetSVC(**SETTINGS).fit(x, y)
    before = pickle.dumps(model)

    def fails(row):
        if row["iteration"] == k:
            raise ZeroDivisionError("the user's own")

    for call in (lambda: model.fit(x, y), lambda: model.partial_fit(x, y)) if k == 1 else (lambda: model.fit(x, y),):
        model.callback = fails
        with pytest.raises(ZeroDivisionError, match="the user's own"):
            call()
        model.callback = None
        assert pickle.dumps(model) == before


def test_the_refit_never_raises_the_objective(data):
    """Whatever part of the rows and coefficients it had room for."""
    x, y = data
    for C in (1e-3, 1.0, 1e6):
        model = BudgetSVC(**{**SETTINGS, "C": C, "budget": 150})
        without = clone(model).set_params(refit=False).fit(x, y)
        blocks = set()
        for memory in (256, SHORT[len(model_classes(y)), C > 1e4]):
            refitted = clone(model).set_params(refit_memory=memory).fit(x, y)
            blocks.add(refitted.refit_["coefficients"])
            assert refitted.refit_["rows"] == 200
            assert refitted.objective_ <= without.objective_
            assert refitted.refit_["kept"] or refitted.objective_ == without.objective_
            check(refitted, x, y)
        assert min(blocks) < len(without.support_vectors_) == max(blocks)


# ---- one model, however it is asked for -------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16), n=st.integers(1, 70), d=st.integers(1, 40), far=st.booleans(),
    budget=st.sampled_from([1, 31, 32, 33, 100, 300]), classes=st.sampled_from([2, 3]),
    form=st.sampled_from(["dense", "csr"]), kind=st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_one_row_or_a_batch(seed, n, d, budget, classes, form, kind, far):
    """Decision values do not depend on the batch, on a row's place in it or on the number of threads, to the last bit."""
    rng = np.random.default_rng(seed)
    train = rng.normal(size=(300, d)) + (1000 if far else 0)  # far: CSR rows are measured as dense ones, or in float64
    model = BudgetSVC(gamma=1 / d, budget=budget, epochs=1, refit=False, fit_intercept=True, random_state=0)
    model.fit(train, np.arange(300) % classes)
    x = ((rng.normal(size=(n, d)) + (1000 if far else 0)) * (rng.random((n, d)) < 0.7)).astype(kind)
    x = sp.csr_matrix(x) if form == "csr" else x
    whole = model.set_params(n_jobs=1).decision_function(x)
    np.testing.assert_array_equal(model.set_params(n_jobs=2).decision_function(x), whole)
    for row in rng.permutation(n)[:10]:
        np.testing.assert_array_equal(model.decision_function(x[row : row + 1])[0], whole[row])
    order = rng.permutation(n)
    np.testing.assert_array_equal(model.decision_function(x[order]), whole[order])


def test_threads_in_large_batches():
    """Enough rows for a team of threads, whose shares end anywhere."""
    rng = np.random.default_rng(0)
    train, x = rng.normal(size=(500, 10)), rng.normal(size=(5003, 10)).astype(np.float32)
    model = BudgetSVC(budget=200, epochs=1, refit=False, random_state=0).fit(train, np.arange(500) % 2)
    whole = model.set_params(n_jobs=1).decision_function(x)
    for threads in (2, 3, 7):
        np.testing.assert_array_equal(model.set_params(n_jobs=threads).decision_function(x), whole)
    np.testing.assert_array_equal(model.decision_function(x[4997:]), whole[4997:])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("blocks", [False, True])
def test_a_fit_does_not_depend_on_threads_or_on_who_watches(data, form, blocks, capsys):
    x, y = data
    settings = {**SETTINGS, "budget": 150, "refit_memory": SHORT[len(model_classes(y)), False] if blocks else 256}
    reference = BudgetSVC(**settings, n_jobs=1).fit(form(x), y)
    assert (reference.refit_["coefficients"] < len(reference.support_vectors_)) == blocks
    for change in ({"n_jobs": 2}, {"n_jobs": 1, "verbose": True}, {"n_jobs": 2, "callback": lambda row: None}):
        assert attributes(BudgetSVC(**settings, **change).fit(form(x), y)) == attributes(reference)


def test_float64_and_float32_rows_give_one_model(data):
    """Rows that float32 holds: the type of X does not matter, to the last bit; CSR only by rounding."""
    x, y = data[0].astype(np.float32), data[1]
    settings = {**SETTINGS, "budget": 200}  # without a merge, which turns rounding into another model
    models = [BudgetSVC(**settings).fit(form, y) for form in (x, x.astype(np.float64), sp.csr_matrix(x))]
    assert attributes(models[0]) == attributes(models[1])
    assert models[2].objective_ == pytest.approx(models[0].objective_, rel=0.02)
    for model in models:
        check(model, x, y)


def test_nothing_of_an_earlier_fit_survives(data):
    x, y = data
    rng = np.random.default_rng(0)
    other = make_classification(150, 7, n_classes=2, random_state=5)
    model = BudgetSVC(**SETTINGS)
    histories = [
        lambda m: m.fit(*other),
        lambda m: m.fit(x, y).partial_fit(x, y),
        lambda m: m.partial_fit(*other, classes=[0, 1]),
        lambda m: m.partial_fit(other[0][:0], [], classes=[5, 6]),
        lambda m: m.fit_stream([other], classes=[0, 1]),
        lambda m: m.set_params(C=1e5, maintenance="remove", drop_useless=False, refit=False).fit(x, 1 - (y > 0)),
    ]
    fits = [
        lambda m: m.fit(x, y),
        lambda m: m.fit(x, y, sample_weight=rng.permutation(np.arange(200) % 3)),
        lambda m: m.fit_stream([(x[:90], y[:90]), (x[90:], y[90:])], classes=np.unique(y)),
    ]
    for fit in fits:
        rng = np.random.default_rng(0)
        fresh = attributes(fit(clone(model)))
        for history in histories:
            rng = np.random.default_rng(0)
            assert attributes(fit(history(clone(model)).set_params(**model.get_params()))) == fresh


# ---- streams ----------------------------------------------------------------------------------------------------------


def empty(x, y, kind):
    """A chunk without rows, in some form, or without weight."""
    rows = {"rows": x[:0], "csr": sp.csr_matrix(x[:0]), "list": [], "flat": np.empty(0), "weight": x[:7], "scalar": x[:7]}
    return rows[kind], y[: 7 if kind in ("weight", "scalar") else 0], {"weight": np.zeros(7), "scalar": 0}.get(kind)


kinds = st.sampled_from(["rows", "csr", "list", "flat", "weight", "scalar"])


@settings(max_examples=40, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 200), max_size=6), holes=st.lists(st.tuples(st.integers(0, 8), kinds), max_size=5),
    weighted=st.booleans(), classes=st.sampled_from([2, 3]), announce=st.booleans(),
    stream_size=st.sampled_from([None, 200]),
)  # fmt: skip
def test_chunks_that_do_not_count_change_nothing(cuts, holes, weighted, classes, announce, stream_size):
    """Empty chunks at any place of a stream, in any form, pickled in between: the model without them, to the last bit."""
    x, y = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=classes, random_state=1)
    weight = np.random.default_rng(0).uniform(0.5, 2, 200)
    full = [(x[p], y[p], weight[p] if weighted else None) for p in np.split(np.arange(200), sorted(cuts)) if len(p)]
    stream = list(full)
    for place, kind in holes:
        stream.insert(min(place, len(stream)), empty(x, y, kind))
    settings = {**SETTINGS, "epochs": 2, "stream_size": stream_size}

    def learnt(chunks):
        model = BudgetSVC(**settings)
        for k, (rows, labels, c) in enumerate(chunks):
            named = range(classes) if announce or k == 0 else None
            before = pickle.dumps(model)
            model.partial_fit(rows, labels, classes=named, sample_weight=c)
            if not np.size(labels) or (c is not None and not np.any(c)):
                announced = pickle.loads(before)
                if not hasattr(announced, "status_"):  # all that it may remember are the classes
                    announced._announced = np.arange(classes)
                assert pickle.dumps(model) == pickle.dumps(announced)
            model = pickle.loads(pickle.dumps(model))
        return model

    assert attributes(learnt(stream)) == attributes(learnt(full))
    by_stream = [BudgetSVC(**settings).fit_stream(chunks, classes=range(classes)) for chunks in (stream, full)]
    assert attributes(by_stream[0]) == attributes(by_stream[1])


def test_a_stream_of_nothing_stays_unfitted():
    from sklearn.exceptions import NotFittedError

    model = BudgetSVC().partial_fit([], [], classes=["b", "a"]).partial_fit([], [])
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])
    with pytest.raises(ValueError, match="differ from those of the first call"):
        model.partial_fit([], [], classes=["a", "c"])
    with pytest.raises(ValueError, match="classes must be given"):
        BudgetSVC().partial_fit([], [])
    x = np.array([[0.0], [1.0], [2.0]])
    with pytest.raises(ValueError, match="0 sample"):
        model.partial_fit(x[:0], ["a", "b"])
    with pytest.raises(ValueError, match=r"sample_weight\.shape"):
        model.partial_fit(x, ["a", "b", "a"], sample_weight=np.zeros(2))
    assert model.partial_fit(x, ["a", "b", "a"]).classes_.tolist() == ["a", "b"]


def test_the_objective_of_a_stream_is_the_estimate_it_is_said_to_be(data):
    """½|w|² of the model, and N·C times the mean loss of the rows, each judged before it was learnt from."""
    x, y = data
    for averaging in (False, True):
        model = BudgetSVC(C=5.0, gamma=1.0, budget=15, averaging=averaging, stream_size=1000, fit_intercept=True)
        last = clone(model).set_params(averaging=False)
        losses = []
        for i in range(60):
            wanted = np.where(y[i] == (1 if len(model_classes(y)) == 2 else model_classes(y)), 1, -1)
            values = last.decision_function(x[i : i + 1]) if i else np.zeros(1)
            losses.append(np.maximum(0, 1 - wanted * values).sum())
            last.partial_fit(x[i : i + 1], y[i : i + 1], classes=np.unique(y))
        model.partial_fit(x[:60], y[:60], classes=np.unique(y))
        vectors, coef = model.support_vectors_.astype(float), model.dual_coef_
        norm = np.sum((coef @ kernel(vectors, vectors, 1.0)) * coef) + model.intercept_ @ model.intercept_
        assert model.objective_ == pytest.approx(norm / 2 + 5.0 * 1000 * np.mean(losses), rel=1e-4)
        assert len(model.trace_) == 1 and model.trace_["objective"][0] == model.objective_


def model_classes(y):
    return np.unique(y)


def test_a_stream_cut_by_time_goes_on_from_there(data, small_steps, monkeypatch):
    x, y = data
    model = BudgetSVC(**SETTINGS, stream_size=200)
    whole = clone(model).partial_fit(x, y, classes=np.unique(y))
    with monkeypatch.context() as patch, pytest.warns(ConvergenceWarning, match="after 100 of the 200 rows of this chunk"):
        patch.setattr("maxmargin.runtime.deadline.Deadline.passed", at_the(1, lambda: True))
        model.partial_fit(x, y, classes=np.unique(y))
    assert model.status_ == "max_time" and model.n_iter_ == 0 and model.trace_["iteration"].tolist() == [0]
    model.partial_fit(x[100:], y[100:])
    np.testing.assert_array_equal(model.dual_coef_, whole.dual_coef_)
    np.testing.assert_array_equal(model.support_vectors_, whole.support_vectors_)


def test_later_chunks_that_float32_cannot_hold_are_refused(data):
    x, y = data
    model = BudgetSVC(**SETTINGS).partial_fit(x, y, classes=np.unique(y))
    before = pickle.dumps(model)
    for form in (np.asarray, sp.csr_matrix):
        with pytest.raises(ValueError, match="range of float32"):
            model.partial_fit(form(x + 1e6), y)
    with pytest.raises(ValueError, match="sample_weight is up to 1e"):
        model.partial_fit(x, y, sample_weight=np.full(200, 1e27))
    assert pickle.dumps(model) == before
    warm = BudgetSVC(**SETTINGS).partial_fit(x + 1e6, y, classes=np.unique(y))  # float64 from the start
    assert warm.partial_fit(x + 1e9, y).support_vectors_.dtype == np.float64


def test_a_budget_far_beyond_the_rows_takes_no_memory(data):
    """A billion slots are not made for 200 rows."""
    x, y = data
    a, b = (BudgetSVC(**{**SETTINGS, "budget": budget}) for budget in (10**9, 10**9))
    a.partial_fit(x, y, classes=np.unique(y))
    for part in np.array_split(np.arange(200), 7):
        b.partial_fit(x[part], y[part], classes=np.unique(y))
    b.set_params(stream_size=None)
    assert len(a.support_vectors_) <= 200 and len(b.fit(x, y).support_vectors_) <= 200
    assert len(BudgetSVC(**{**SETTINGS, "budget": 10**9}).fit_stream([(x, y)], np.unique(y)).support_vectors_) <= 200


@pytest.mark.parametrize(
    ("weight", "C", "message"),
    [(1e-300, 1.0, "sample_weight·class_weight is 0"), (1e31, 1.0, "above 1e\\+30"), (1e300, 1e-30, "above 1e\\+30")],
)
def test_weights_out_of_range_are_refused(data, weight, C, message):
    x, y = data
    by_class = dict.fromkeys(np.unique(y).tolist(), 1e-300 if weight < 1 else 1.0)
    model = BudgetSVC(C=C, class_weight=by_class)
    for call in (
        lambda: model.fit(x, y, sample_weight=np.full(200, weight)),
        lambda: model.partial_fit(x, y, classes=np.unique(y), sample_weight=np.full(200, weight)),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("exponent", [-70, -25, 25, 70])
def test_weights_are_a_factor_of_C(data, C, exponent):
    """C/2^k and weights of 2^k are the problem with C and no weights, however far they are from 1."""
    x, y = data
    plain = BudgetSVC(**{**SETTINGS, "C": C}).fit(x, y)
    moved = BudgetSVC(**{**SETTINGS, "C": C * 2.0**-exponent}).fit(x, y, sample_weight=np.full(200, 2.0**exponent))
    check(moved, x, y, np.full(200, 2.0**exponent))
    assert moved.objective_ == pytest.approx(plain.objective_, rel=0.2)


@pytest.mark.parametrize("exponent", [-100, -20, 20, 100])
def test_scaled_features_with_a_scaled_gamma_are_the_same_problem(data, exponent):
    x, y = data
    plain = BudgetSVC(**SETTINGS).fit(x, y)
    moved = BudgetSVC(**{**SETTINGS, "gamma": 4.0**-exponent}).fit(x * 2.0**exponent, y)
    check(moved, x * 2.0**exponent, y)
    assert moved.objective_ == pytest.approx(plain.objective_, rel=0.1)


def test_gamma_that_vanishes_is_refused():
    x = np.array([[1e200], [-1e200], [2e200], [-2e200]])
    with warnings.catch_warnings(), pytest.raises(ValueError, match="scale the features"):
        warnings.simplefilter("ignore", RuntimeWarning)
        BudgetSVC().fit(x, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="scale the features"):
        BudgetSVC(gamma=1e-310).fit(x, [0, 1, 0, 1])
    check(BudgetSVC(gamma=1.0).fit(x[:, :] * 1e-60, [0, 1, 0, 1]), x * 1e-60, np.array([0, 1, 0, 1]))
