"""The judge of several classes: equal to sums of binary evaluations, for every solver's layout."""

import itertools
import pathlib
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import svm

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from benchmarks import objectives, storage
from benchmarks.base import Data, KernelModel, PairsModel, Predictions, Problem, discover
from benchmarks.solvers.libsvm import in_sorted_order


def toy(seed, classes=4, rows=90):
    rng = np.random.default_rng(seed)
    labels = rng.choice(50, classes, replace=False)  # neither 0 … k − 1 nor in the order of their first row
    centres = 3 * rng.standard_normal((classes, 3))
    share = rng.dirichlet(9 * np.ones(classes))
    which = np.concatenate([np.arange(classes), rng.choice(classes, rows + 40 - classes, p=share)])
    X, y = rng.standard_normal((rows + 40, 3)) + centres[which], labels[which].astype(np.int32)
    order = rng.permutation(rows)
    return Data(X[order], y[order], X[rows:], y[rows:])


def parts_of(problem, data, model):
    """The binary evaluations that the judge must add up, by objects of their own for each pair."""
    labels, ends = np.unique(data.y_train), np.cumsum(model.n_support)
    blocks = [np.arange(end - count, end) for end, count in zip(ends, model.n_support)]
    for number, (i, j) in enumerate(itertools.combinations(range(len(labels)), 2)):
        rows = np.flatnonzero(np.isin(data.y_train, labels[[i, j]]))
        y = np.where(data.y_train[rows] == labels[i], 1, -1)
        both = np.concatenate([blocks[i], blocks[j]])
        coef = np.concatenate([model.coef[j - 1, blocks[i]], model.coef[i, blocks[j]]])
        binary = KernelModel(coef, float(model.intercept[number]), np.searchsorted(rows, model.support[both]))
        X = data.X_train[rows]
        yield objectives.evaluate(problem, Data(X, y, X, y), binary)


def agrees(problem, data, model):
    judged, parts = objectives.evaluate(problem, data, model), list(parts_of(problem, data, model))
    for name in ("primal", "primal_best", "dual"):
        assert getattr(judged, name) == pytest.approx(sum(getattr(p, name) for p in parts), rel=1e-10), name
    assert judged.infeasible == pytest.approx(max(p.infeasible for p in parts), abs=1e-12)
    return judged


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(3, 6),
    st.sampled_from(["svc", "nu_svc"]),
    st.sampled_from(["rbf", "linear", "poly"]),
    st.booleans(),
)
def test_any_point_is_the_sum_of_its_pairs(seed, classes, task, kernel, sparse):
    rng, data = np.random.default_rng(seed), toy(seed, classes)
    if sparse:
        data.X_train, data.X_test = sp.csr_matrix(data.X_train), sp.csr_matrix(data.X_test)
    labels = np.unique(data.y_train)
    problem = Problem(task, C=0.8, nu=0.2, kernel=kernel, gamma=0.4, coef0=1.0, degree=2)
    own = [rng.permutation(np.flatnonzero(data.y_train == label)) for label in labels]
    own = [np.sort(rows[: rng.integers(1, len(rows) + 1)]) for rows in own]
    coef = rng.standard_normal((classes - 1, sum(map(len, own))))
    intercept = rng.standard_normal(classes * (classes - 1) // 2)
    agrees(problem, data, PairsModel(coef, intercept, np.concatenate(own), np.array([len(rows) for rows in own])))


@pytest.mark.parametrize("solver", ["maxmargin", "scikit-learn", "libsvm", "sklearnex-float64"])
@pytest.mark.parametrize("task", ["svc", "nu_svc"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_every_solvers_model_is_read_right(solver, task, kernel, tmp_path):
    """A sign or an order misread would leave a gap; votes must be the solver's own predictions."""
    data, problem = toy(5), Problem(task, C=2.0, nu=0.5, kernel=kernel, gamma=0.5, tol=1e-5)
    machine = discover("solvers")[solver]()
    if reason := machine.skip(problem, data):
        pytest.skip(reason)
    machine.prepare(problem, machine.form(data.X_train), data.y_train, 1)
    machine.fit()
    X_test = machine.form(data.X_test)
    storage.save_model(machine.model(X_test), tmp_path / "model.npz")
    model = storage.load_model(tmp_path / "model.npz")
    assert isinstance(model, PairsModel)
    judged = agrees(problem, data, model)
    assert judged.infeasible < 1e-3 and -1e-9 < judged.gap < 1e-3
    said = objectives.evaluate(problem, data, Predictions(machine.predict(X_test)))
    assert judged.score == said.score


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_classes_is_no_part_of_a_machine(seed):
    data, problem = toy(seed), Problem("svc", C=2.0, gamma=0.5)
    labels = np.random.default_rng(seed).permutation(np.unique(data.y_train))
    renamed = np.argsort(labels)[np.searchsorted(np.sort(labels), data.y_train)]  # labels[renamed] is y
    assert (labels[renamed] == data.y_train).all()
    e = svm.SVC(C=2.0, gamma=0.5).fit(data.X_train, renamed)
    model = in_sorted_order(PairsModel(e.dual_coef_, e.intercept_, e.support_, e.n_support_), labels)
    judged = agrees(problem, data, model)
    assert 0 <= judged.gap < 1e-2
    expected = labels[e.predict(data.X_test)] == data.y_test
    assert judged.score == pytest.approx(np.mean(expected))


def test_a_layout_that_does_not_fit_is_refused():
    data, problem = toy(1), Problem("svc", C=2.0, gamma=0.5)
    e = svm.SVC(C=2.0, gamma=0.5).fit(data.X_train, data.y_train)
    with pytest.raises(ValueError, match="4 classes ask for"):
        objectives.evaluate(problem, data, PairsModel(e.dual_coef_[:2], e.intercept_, e.support_, e.n_support_))
    with pytest.raises(ValueError, match="order of their classes"):
        objectives.evaluate(problem, data, PairsModel(e.dual_coef_, e.intercept_, e.support_[::-1], e.n_support_))
