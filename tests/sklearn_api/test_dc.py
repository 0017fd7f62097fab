"""scikit-learn's own checks on the divide and conquer machines: no expected failures."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import DCSVC, DCSVCCV, DCSVR


# levels=1 divides even the tiny data of these checks; stop_level=1 predicts by clusters.
@parametrize_with_checks(
    [
        DCSVC(levels=1, k=2), DCSVC(levels=1, k=2, stop_level=1), DCSVR(), DCSVR(levels=1, k=2, stop_level=1),
        DCSVCCV(Cs=2, gammas=2, cv=3, samples_per_cluster=20),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)
