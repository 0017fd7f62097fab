"""scikit-learn's own checks on the exact machines: no expected failures."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM


# The sample-weight check draws classes so unequal that nu=0.5 is infeasible for them, whatever the solver: hence nu=0.3.
@parametrize_with_checks([SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()])
def test_estimator_checks(estimator, check):
    check(estimator)
