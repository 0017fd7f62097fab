"""scikit-learn's own checks on the machines with a search inside: no expected failures."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVCCV, SVRCV, NuSVCCV

SMALL = {"gammas": 2, "cv": 2, "n_jobs": 1}


@parametrize_with_checks(
    [
        SVCCV(Cs=2, **SMALL),
        NuSVCCV(nus=[0.3, 0.4], gammas=1, cv=2, n_jobs=1),
        SVRCV(Cs=2, epsilons=1, **SMALL),
        SVCCV(Cs=2, search="halving", probabilities=True, **SMALL),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)
