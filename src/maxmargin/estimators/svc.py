"""SVC and NuSVC: kernel classifiers, binary or one-vs-one, by decomposition."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.many import Problem
from maxmargin.decomposition.options import DualResult
from maxmargin.estimators._base import check_number
from maxmargin.estimators._checkpoints import EVERY
from maxmargin.estimators._constraints import INTERCEPT, NU, PAIRS, C, Constraints
from maxmargin.estimators._kernel import check_C
from maxmargin.estimators._pairs import Pair, PairsOfClasses, Solution
from maxmargin.estimators._probability import Probabilities
from maxmargin.estimators._setup import Setup
from maxmargin.estimators._weighted_nu import WeightedNu
from maxmargin.problem.formulations import c_svc, intercept_and_r, nu_svc
from maxmargin.runtime import raised_by_all

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class SVC(Probabilities, PairsOfClasses):
    """C-support vector classification by parallel decomposition, with a certificate.

    A drop-in for `sklearn.svm.SVC`, on all cores.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the hinge losses against ½‖w‖². inf is the hard margin, solved (and certified) as C = 1e10.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        A callable takes two blocks of samples and returns their kernel values; it is asked for rows as needed, never for
        the whole matrix. Samples that are not rows of numbers (a list of strings, say) are handed to it as they are, all.
    degree, gamma, coef0 : parameters of the kernels, as in scikit-learn. gamma="scale" counts rows by their weight.
    shrinking : bool, default=True
        Leave out samples that cannot move until the final test. Changes the time, not the answer.
    probability : bool, optional
        Deprecated as in scikit-learn: `predict_proba` by five more fits. Better leave it out and use
        `CalibratedClassifierCV(SVC(), ensemble=False)`.
    tol : float, default=1e-3
        Largest violation of the optimality conditions at which a fit counts as converged.
    cache_size : float, default=200
        Megabytes for kernel rows: a hard limit.
    class_weight : dict or "balanced", optional
        Factors of C by class.
    verbose : bool, default=False
        Show a progress bar.
    max_iter : int, default=-1
        Limit on turns of the outer loop for each pair of classes, each of which optimises `working_set_size` variables (of
        a small problem all); -1: no limit.
    decision_function_shape, break_ties, random_state : as in scikit-learn; random are only the folds of `probability`.
    fit_intercept : bool, default=True
        Without it the decision function passes through zero and the dual has no equality constraint.
    max_time : float, optional
        Seconds after which the best model so far is returned, with its gap and a ConvergenceWarning.
    n_jobs : int, optional
        Threads; None: all cores available.
    callback : callable, optional
        Called after each turn with a dict (iteration, time, objective, gap, violation, n_support, active); a true
        return value stops the fit.
    working_set_size : int, optional
        Variables per turn; chosen from n by default.
    inner_solver : {"smo", "ipm", "gpm"}, default="smo"
        Solver of the QP inside a turn.
    warm_start : bool, default=False
        Start from the last fit's solution if it was on the same rows (another C, another tol).
    checkpoint : str or path, optional
        A file to which the state of the fit goes every `checkpoint_every` seconds, and from which the same fit, called again
        after it was killed, goes on. A file of another fit is refused. See docs/checkpoints.md.
    checkpoint_every : float, default=60
        Seconds between two checkpoints.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_, class_weight_, coef_, fit_status_, n_iter_
        As in scikit-learn.
    status_ : str
        "converged", or why the fit stopped before: "max_time", "max_iter", "stalled", "interrupted", "callback".
    objective_ : float
        Primal objective ½‖w‖² + Σ C_i loss_i (summed over pairs of classes).
    dual_gap_ : float
        objective_ minus the dual value: no model has an objective below objective_ − dual_gap_.
    kkt_violation_ : float
        Largest violation of the optimality conditions, what tol is compared with.
    trace_ : structured array
        One row per turn: iteration, time, objective, dual, gap, violation, n_support, active; for small problems one row per
        slice of time, with how many are `done`. The last row is the model.
    timings_ : dict
        Seconds per step, and counts of kernel rows, cache hits, inner steps.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = SVC(C=10).fit(X, y)
    >>> clf.status_, clf.score(X, y) > 0.95, clf.dual_gap_ < 0.01 * clf.objective_
    ('converged', True, True)
    """

    _parameter_constraints: ClassVar[Constraints] = PAIRS | C | INTERCEPT

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        fit_intercept: bool = True,
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[dict[str, float]], Any] | None = None,
        working_set_size: int | None = None,
        inner_solver: str = "smo",
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = EVERY,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
        self.working_set_size = working_set_size
        self.inner_solver = inner_solver
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_C(self.C)

    def _problem(self, pair: Pair) -> Problem:
        return pair.problem(c_svc(pair.y, self._unit() * pair.factor * pair.weight, self.fit_intercept))

    def _solution(self, pair: Pair, result: DualResult) -> Solution:
        return Solution(pair, result, self._unit() * pair.factor)


class NuSVC(Probabilities, PairsOfClasses):
    """ν-support vector classification: ν bounds the fraction of margin errors instead of weighing them with C.

    Parameters and attributes are those of `SVC`, with `nu` in place of `C`.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        Upper bound on the fraction of margin errors, lower bound on that of support vectors. A value too large for
        unbalanced classes is refused before any work, with the largest feasible one.
    class_weight : dict or "balanced", optional
        Factors of the losses by class, as in `SVC`: the ν-SVC without them fixes C = 1/ρ, and the C-SVC with that C
        and these factors is the model. (scikit-learn ignores this parameter; as bounds of the ν-SVC itself such
        factors would only make ν infeasible.)

    Attributes
    ----------
    margin_ : array of shape (n_pairs,)
        The margin ρ that was found. Coefficients and intercept are divided by it, unless it is not positive (there is no
        direction that tells the classes apart); `objective_` is that of the ν-SVC, before the division. With
        `class_weight` the C-SVC that was solved, and that `objective_` tells of, has C = 1/margin_ times the factors.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import NuSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> NuSVC(nu=0.2).fit(X, y).score(X, y) > 0.9
    True
    """

    _parameter_constraints: ClassVar[Constraints] = PAIRS | NU

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[dict[str, float]], Any] | None = None,
        working_set_size: int | None = None,
        inner_solver: str = "smo",
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = EVERY,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
        self.working_set_size = working_set_size
        self.inner_solver = inner_solver
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("nu", self.nu, low=0, high=1, closed="right", remedy="the fraction of margin errors allowed")

    def _problem(self, pair: Pair) -> Problem:
        setup = pair.setup
        with raised_by_all():
            qp = nu_svc(pair.y, self.nu, pair.weight, setup.over)
        if not self._weighted(pair):
            return pair.problem(qp)

        solver = partial(WeightedNu, pair.y, self.nu, pair.weight, pair.factor, pair.warm, pair.kept)
        return Problem(qp, pair.chosen, pair.classes, solver=solver, kept=pair.kept)

    def _solution(self, pair: Pair, result: DualResult) -> Solution:
        if self._weighted(pair):
            margin = result.extra["margin"]
            return Solution(pair, result, pair.factor / margin, margin=margin)
        margin = -intercept_and_r(result.multipliers)[1]
        return Solution(pair, result, np.ones(len(pair.y)), float(self._scales(result.multipliers[None])[0]), margin)

    def _scales(self, multipliers: FloatArray) -> FloatArray:
        margin = 0.5 * (multipliers[:, 1] - multipliers[:, 0])
        return np.where(margin > 0, margin, 1.0)

    @staticmethod
    def _weighted(pair: Pair) -> bool:
        (first, second), factors = pair.classes, pair.setup.data.factors
        return bool(factors[first] != factors[second])

    def _attributes(self, setup: Setup, solutions: list[Solution]) -> dict[str, Any]:
        return super()._attributes(setup, solutions) | {"margin_": np.array([s.margin for s in solutions])}
