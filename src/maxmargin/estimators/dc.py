"""DCSVC and DCSVR: kernel machines by divide and conquer, exact or early."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import StrOptions

from maxmargin.decomposition.options import DualResult
from maxmargin.divide.model import Problem
from maxmargin.estimators._base import check_choice, check_number, require_fitted
from maxmargin.estimators._checkpoints import EVERY
from maxmargin.estimators._constraints import CLASSES, DIVIDED, EPSILON, Constraints
from maxmargin.estimators._divided import Divided
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._pairs import Pair, PairsOfClasses, Solution
from maxmargin.estimators._setup import Setup
from maxmargin.estimators.multiclass import ovr_decision, pair_votes
from maxmargin.problem.formulations import c_svc, epsilon_svr
from maxmargin.runtime import Control, Result

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class DCSVC(Divided, PairsOfClasses):
    """Support vector classification by divide and conquer: exact, or early for a fraction of the time.

    The samples are clustered by kernel k-means; each cluster's machine is trained on its own; their solutions start the
    next level, with fewer and larger clusters, and the last level starts the whole problem. Stopping at a level
    (`stop_level`, `early`) gives a model that sends a point to its cluster and asks that cluster's machine.

    Parameters
    ----------
    C, kernel, degree, gamma, coef0, shrinking, tol, class_weight, verbose, decision_function_shape, break_ties, n_jobs, \
working_set_size, inner_solver, checkpoint, checkpoint_every
        As in `maxmargin.SVC`.
    cache_size : float, default=200
        Megabytes for kernel rows of the whole problem. Each cluster's problem has half of it, whatever n_jobs is, so that
        the model does not depend on that.
    k : int, default=4
        Level l has k^l clusters.
    levels : int, optional
        Levels below the whole problem. By default 4 (256 clusters at the bottom for k=4), fewer when clusters would have
        less than about 1,000 samples (100 if it is to stop at a level). 0 solves the whole problem at once.
    stop_level : int, default=0
        0 solves the whole problem to `tol`, as `SVC(fit_intercept=...)` does; l ≥ 1 stops at level l.
    early : bool, default=False
        Stop at the level with 64 clusters, and start there: fast and nearly as accurate on large data. Of 10,000 samples or
        more, where few of some are support vectors, the whole problem is solved instead: then that is faster still.
    predict_with : {"early", "all", "bcm"}, default="early"
        How a model of level ≥ 1 predicts: by the cluster's own machine; by all support vectors together; by the Bayesian
        committee of all machines. The last two are the paper's comparisons: slower and less accurate.
    sample_size : int, default=1000
        Points on which kernel k-means runs.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or per class; they share each level's clusters.
    fit_intercept : bool, default=False
        As in the paper, none by default.
    max_iter : int, default=-1
        Limit on solver turns of each subproblem; -1: no limit.
    max_time : float, optional
        Seconds after which the best level finished is the model; `level_` and `levels_` say which that is. If none is,
        clusters that were not solved predict their majority (DCSVR: their median). On the way to the whole problem the
        model is level 1 until the whole problem's objective and gap are known, and its state from then on.
    callback : callable, optional
        Called a few times per second, after each finished subproblem of a level (a hundred times per level at most) and
        after each turn of refine and whole, with a row of `trace_` as a dict; a true return value stops.
    random_state : int, RandomState or None
        Seed of the clusterings. The exact solution depends on it only within `tol`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_, class_weight_, fit_status_, n_iter_
        As in scikit-learn. With multi_class="ovr" dual_coef_ has one row per class.
    status_ : str
        "converged": the whole problem was solved to `tol`. "early": the level that was asked for (`early`, `stop_level`)
        is finished. Otherwise what stopped the fit: "max_time", "max_iter", "callback", "interrupted", "stalled".
    objective_, dual_gap_, kkt_violation_ : float
        Of the whole problem, as in `maxmargin.SVC`. NaN where they are not known: a level solves another problem.
        `maxmargin.certify_fit` computes them for any level, with all its support vectors (`predict_with="all"`).
    level_ : int
        The level of the model: 0 is the whole problem. If it is not in `levels_`, the model is of an unfinished stage.
    level_objective_, level_gap_, level_violation_ : float
        Of the problem that the level solves, whose kernel is 0 between clusters, summed over them. Equal to the whole
        problem's at level 0.
    levels_ : structured array
        One row per finished stage (level, refine, whole): stage, level, clusters, largest (cluster), n_support,
        objective and gap (of the problem that the stage solves: a level's kernel is 0 between clusters, refine has
        the support vectors of level 1 only), bound (Theorem 1's on the distance of a level from the optimum, estimated
        on the sample; NaN where it is unknown), time_clustering, time_solving.
    support_cluster_ : array
        The cluster of each support vector.
    cluster_intercept_ : array of shape (n_clusters, n_problems)
        Intercepts of the clusters' machines; the constant of a cluster that predicts one, as it has samples of one class
        or was not solved.
    trace_ : structured array
        What `callback` got, and last the model: iteration, time, objective, dual, gap, violation, n_support as in
        `maxmargin.SVC`, NaN where they are not known of the whole problem; stage (0 clustering, 1 level, 2 refine,
        3 whole), level, clusters, subproblems (one per cluster and pair of classes) and how many of them are solved;
        level_objective, level_gap and bound of the last level finished. With several classes the turns of refine
        and whole say which problem (pair of classes) they tell of; -1 is all of them.
    timings_ : dict
        Seconds of clustering, solving (levels), refine, whole, total.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import DCSVC
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> early = DCSVC(C=10, gamma=2, stop_level=1, random_state=0).fit(X, y)
    >>> early.level_, early.levels_["clusters"].tolist(), early.score(X, y) > 0.95
    (1, [16, 4], True)
    >>> DCSVC(C=10, gamma=2, random_state=0).fit(X, y).level_
    0
    """

    _parameter_constraints: ClassVar[Constraints] = DIVIDED | CLASSES | {"multi_class": [StrOptions({"ovo", "ovr"})]}

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        k: int = 4,
        levels: int | None = None,
        stop_level: int = 0,
        early: bool = False,
        predict_with: str = "early",
        sample_size: int = 1000,
        multi_class: str = "ovo",
        fit_intercept: bool = False,
        shrinking: bool = True,
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
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = EVERY,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.k = k
        self.levels = levels
        self.stop_level = stop_level
        self.early = early
        self.predict_with = predict_with
        self.sample_size = sample_size
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.shrinking = shrinking
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
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("multi_class", self.multi_class, ["ovo", "ovr"])

    def _solved(self, data: Labelled, control: Control) -> tuple[Result, dict[str, Any]]:
        setup, X = self._setup(data), data.X
        classes, encoded = data.classes, data.code
        label = encoded[setup.rows.index]
        ovr = self.multi_class == "ovr" and len(classes) > 2
        pairs = list(combinations(range(len(classes)), 2))
        parts = []
        for i, j in [(c, -1) for c in range(len(classes))] if ovr else pairs:
            chosen = np.arange(len(label)) if ovr else np.flatnonzero((label == i) | (label == j))
            positive = j if len(pairs) == 1 else i
            sign = np.where(label[chosen] == positive, 1.0, -1.0)
            parts.append(Pair(setup, (i, j), chosen, sign, setup.rows.weight[chosen], data.factors[label[chosen]]))
        units = [self._unit() * part.factor for part in parts]
        problems = [
            Problem(c_svc(part.y, unit * part.weight, self.fit_intercept), part.chosen)
            for part, unit in zip(parts, units)
        ]
        result = self._divide(setup, problems, control)
        intercept = self._mean_intercept(problems, result)
        solutions = []
        for p, (part, unit) in enumerate(zip(parts, units)):
            dual = DualResult(
                result.status, int(result.iterations[p]), violation=result.violation, alpha=result.model.alphas[p],
                multipliers=intercept[p : p + 1],
            )  # fmt: skip
            solutions.append(Solution(part, dual, unit, 1.0))
        if ovr:
            attributes = self._ovr_attributes(setup, X, classes, encoded, solutions)
        else:
            attributes = self._attributes(setup, solutions)
        attributes |= self._level_attributes(setup, X, attributes["support_"], problems, result)
        return result, attributes

    def _ovr_attributes(
        self, setup: Setup, X: Any, classes: NDArray[Any], encoded: IntArray, solutions: list[Solution]
    ) -> dict[str, Any]:
        """One row of coefficients per class, over the support vectors by class."""
        rows = setup.rows
        coef = np.zeros((len(classes), X.shape[0]))
        for c, s in enumerate(solutions):
            coef[c] = rows.spread(s.result.alpha, X.shape[0], s.unit)
            coef[c, rows.member] *= s.pair.y[rows.owner]
        used = np.flatnonzero(coef.any(axis=0))
        support = used[np.argsort(encoded[used], kind="stable")]
        return {
            "classes_": classes,
            "class_weight_": setup.data.factors,
            "support_": support.astype(np.int32),
            "support_vectors_": self._support(X, support),
            "n_support_": np.bincount(encoded[support], minlength=len(classes)).astype(np.int32),
            "dual_coef_": np.ascontiguousarray(coef[:, support]),
            "intercept_": np.array([float(s.result.multipliers[0]) for s in solutions]),
            "n_iter_": np.array([s.result.n_iter for s in solutions], np.int32),
            **self._about(setup, [s.result for s in solutions]),
        }

    def _one_per_class(self) -> bool:
        return len(self.classes_) > 2 and len(self.intercept_) == len(self.classes_) == len(self._dual)

    def _pair_coef(self) -> FloatArray:
        return self._coefficients() if self._one_per_class() else super()._pair_coef()

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values: (n,) for two classes; else one column per class ("ovr") or per pair ("ovo")."""
        require_fitted(self)
        values = self._decisions(X, self._pair_coef())
        if len(self.classes_) == 2:
            return values.ravel()
        if self._one_per_class() or self.decision_function_shape == "ovo":
            return values
        return ovr_decision(values, len(self.classes_), zero_is_first=False)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each sample; several classes vote pair by pair, or the largest decision value wins (ovr)."""
        self._check_ties()
        values = self._decisions(X, self._pair_coef())
        if len(self.classes_) == 2:
            return np.asarray(self.classes_[(values.ravel() > 0).astype(np.intp)])
        if not self._one_per_class():
            n_classes = len(self.classes_)
            ties = self.break_ties
            values = ovr_decision(values, n_classes, zero_is_first=False) if ties else pair_votes(values, n_classes)
        return np.asarray(self.classes_[np.argmax(values, axis=1)])


class DCSVR(RegressorMixin, Divided):
    """ε-support vector regression by divide and conquer: exact, or early for a fraction of the time.

    Parameters and attributes not listed here are those of `maxmargin.DCSVC`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses max(0, |y − f(x)| − epsilon) against ½‖w‖².
    epsilon : float, default=0.1
        Half width of the tube inside which errors cost nothing.
    fit_intercept : bool, default=False
        As in the paper's classifier. Without it, subtract the mean of y yourself, or early prediction far from the data
        falls to 0.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import DCSVR
    >>> X = np.linspace(0, 6, 2000)[:, None]
    >>> model = DCSVR(C=10, epsilon=0.05, gamma=1, stop_level=1, random_state=0).fit(X, np.sin(X).ravel())
    >>> model.level_, model.score(X, np.sin(X).ravel()) > 0.99
    (1, True)
    """

    _parameter_constraints: ClassVar[Constraints] = DIVIDED | EPSILON

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        k: int = 4,
        levels: int | None = None,
        stop_level: int = 0,
        early: bool = False,
        predict_with: str = "early",
        sample_size: int = 1000,
        fit_intercept: bool = False,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        random_state: Any = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[dict[str, float]], Any] | None = None,
        working_set_size: int | None = None,
        inner_solver: str = "smo",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = EVERY,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.k = k
        self.levels = levels
        self.stop_level = stop_level
        self.early = early
        self.predict_with = predict_with
        self.sample_size = sample_size
        self.fit_intercept = fit_intercept
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
        self.working_set_size = working_set_size
        self.inner_solver = inner_solver
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("epsilon", self.epsilon, low=0, closed="left", remedy="the half width of the tube")

    def _solved(self, data: Labelled, control: Control) -> tuple[Result, dict[str, Any]]:
        setup, X = self._setup(data), data.X
        n = len(setup.rows.index)
        qp = epsilon_svr(data.target[setup.rows.index], self.epsilon, self._unit() * setup.rows.weight, self.fit_intercept)
        problems = [Problem(qp, np.arange(n))]
        result = self._divide(setup, problems, control)
        unit = np.full(n, self._unit())
        halves = result.model.alphas[0].reshape(2, n)
        plus, minus = (setup.rows.spread(half, X.shape[0], unit) for half in halves)
        coef = plus - minus
        support = np.flatnonzero(coef)
        attributes = {
            "support_": support.astype(np.int32),
            "support_vectors_": self._support(X, support),
            "n_support_": np.array([len(support)], np.int32),
            "dual_coef_": coef[None, support],
            "intercept_": self._mean_intercept(problems, result),
            "n_iter_": int(result.iterations[0]),
            **self._about(setup, [result]),
        }
        attributes |= self._level_attributes(setup, X, support, problems, result)
        return result, attributes

    def predict(self, X: Any) -> FloatArray:
        """Predicted target of each sample."""
        require_fitted(self)
        return self._decisions(X, self._coefficients()).ravel()
