"""scikit-learn's own checks of LinearSVC and LinearSVR, with no expected failures."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LinearSVC, LinearSVR
from maxmargin.selection import LinearSVCCV, LinearSVRCV


@parametrize_with_checks(
    [
        LinearSVC(),
        LinearSVC(loss="hinge", intercept_scaling=None),
        LinearSVC(solver="ocas", tol=1e-3),
        LinearSVC(multi_class="crammer_singer", tol=1e-3),
        LinearSVR(),
        LinearSVR(loss="squared_epsilon_insensitive", intercept_scaling=None, epsilon=0.1),
        LinearSVCCV(Cs=3, cv=3),
        LinearSVRCV(Cs=3, cv=3),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["newton", "descent", "ocas", "cpa"])
def test_clone_and_pickle_keep_the_model(solver):
    import pickle

    from sklearn.base import clone
    from sklearn.datasets import make_classification

    X, y = make_classification(80, 5, random_state=0)
    model = LinearSVC(solver=solver, tol=1e-2).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.decision_function(X) == model.decision_function(X)).all()
    assert clone(model).get_params() == model.get_params()
