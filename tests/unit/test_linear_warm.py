"""A warm start after anything changed is judged as a cold one: cuts and points serve only where they hold."""

import numpy as np
import pytest
from hinge import hinge_svc

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 3))
Y = (X[:, 0] + RNG.normal(size=90) > 0).astype(int)
THREE = np.argmax(X + RNG.normal(size=(90, 3)), axis=1)
WEIGHT = RNG.uniform(0.1, 10, 90)

CHANGES = {
    "nothing": {},
    "a smaller C": {"C": 1e-3},
    "a larger C": {"C": 1e3},
    "labels": {"y": lambda y: (y + 1) % len(np.unique(y))},
    "weights": {"weight": WEIGHT[::-1] / 30},
    "no weights": {"weight": None},
    "class weights": {"class_weight": {0: 0.01}},
    "samples": {"X": lambda x: x[:, ::-1].copy()},
    "shorter samples": {"X": lambda x: 0.1 * x},
    "the loss": {"loss": "squared_hinge"},
    "no intercept": {"fit_intercept": False},
    "a penalised intercept": {"intercept_scaling": 2.0},
    "another solver": {"solver": "ocas"},
    "joint classes": {"multi_class": "crammer_singer"},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
@pytest.mark.parametrize("free", [True, False])
def test_a_warm_start_proves_no_more_than_is_true(change, y, free):
    """The example of a bound kept under another C, of weights left out of the fingerprint, of labels turned round."""
    model = hinge_svc(C=10.0, warm_start=True, fit_intercept=free, tol=1e-5).fit(X, y, WEIGHT)
    options = dict(CHANGES[change])
    x, labels = options.pop("X", lambda v: v)(X), options.pop("y", lambda v: v)(y)
    weight = options.pop("weight", WEIGHT)
    model.set_params(**options).fit(x, labels, weight)
    cold = hinge_svc(**model.get_params()).set_params(warm_start=False, tol=1e-7).fit(x, labels, weight)
    assert model.status_ == cold.status_ == "converged"
    assert model.lower_bound_ <= cold.objective_ and cold.lower_bound_ <= model.objective_
    assert model.objective_ <= cold.objective_ * (1 + 2e-5)


@pytest.mark.parametrize("solver", ["newton", "descent", "ocas", "cpa"])
def test_opposite_labels_after_a_large_C(solver):
    """The share of a cut in a mixture cannot be negative: it gave a bound of 1 where the optimum is 0.66."""
    y = np.where(np.arange(10) % 2, 1, -1)
    x = (y * np.linspace(0.1, 1, 10))[:, None]
    model = hinge_svc(1e6, loss="squared_hinge", fit_intercept=False, warm_start=True, solver=solver).fit(x, y)
    model.set_params(C=0.1).fit(x, -y)
    w = np.linspace(-3, 3, 60001)
    best = (0.5 * w**2 + 0.1 * (np.maximum(0, 1 + np.outer(y * x[:, 0], w)) ** 2).sum(axis=0)).min()
    assert model.status_ == "converged"
    assert model.lower_bound_ <= best * (1 + 1e-12) and model.objective_ <= best * (1 + 1e-4)


def test_two_joint_classes_have_half_the_bound_of_the_binary_problem_at_twice_C():
    joint = hinge_svc(0.5, multi_class="crammer_singer", tol=1e-6).fit(X, Y, WEIGHT)
    binary = hinge_svc(1.0, tol=1e-6).fit(X, Y, WEIGHT)
    for name in ("objective_", "lower_bound_", "dual_gap_"):
        assert getattr(joint, name) == 0.5 * getattr(binary, name)
    w, b = joint.coef_[0] / 2, joint.intercept_[0] / 2  # of class 1; class 0 has the opposite
    slack = np.maximum(0, 1 - np.where(Y == 1, 1, -1) * 2 * (X @ w + b))
    assert joint.objective_ == pytest.approx(w @ w + 0.5 * WEIGHT @ slack, rel=1e-12)
    for column in ("objective", "dual", "gap"):
        np.testing.assert_array_equal(joint.trace_[column], 0.5 * binary.trace_[column])


def test_cuts_of_a_fit_are_not_touched_by_the_next():
    """A fit that fails half-way must not leave the cuts of the last one in pieces."""
    model = hinge_svc(solver="ocas", warm_start=True).fit(X, Y)
    before = [np.copy(array) for array in vars(model._memory[1][0]).values()]

    def fail(row):
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        model.set_params(C=5.0, callback=fail).fit(X, Y)
    for array, kept in zip(before, vars(model._memory[1][0]).values()):
        np.testing.assert_array_equal(array, kept)
