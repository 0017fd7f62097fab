"""BudgetSVC against scikit-learn's own checks, with no expected failures."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import BudgetSVC


@parametrize_with_checks([BudgetSVC()])
def test_sklearn(estimator, check):
    check(estimator)
