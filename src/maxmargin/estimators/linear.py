"""LinearSVC and LinearSVR: parameters, targets, fitted attributes. The solvers are in `maxmargin.linear`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import StrOptions

from maxmargin.estimators._base import (
    FloatArray,
    check_choice,
    check_number,
)
from maxmargin.estimators._checkpoints import EVERY
from maxmargin.estimators._constraints import CLASSES, EPSILON, LINEAR, Constraints
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._linear import LinearMachine, Memory, Samples
from maxmargin.estimators._linear_state import Past
from maxmargin.linear import CrammerSinger, LinearProblem, LinearResult, OneNorm, OneVsRest, Scaled, make
from maxmargin.runtime import Comm, thread_count
from maxmargin.runtime.comm import ALONE

PENALTIES = ("l2", "l1")
TELLING = 1000  # values by which a rank tells where the middle of its own lies
SIDE_BY_SIDE = 1 << 20  # stored values of X from which classes gain by running at once; below, Python is the limit


class LinearSVC(ClassifierMixin, LinearMachine):
    """Linear support vector classifier with a certified objective.

    Minimises penalty(w) + C Σ weight_i · loss(y_i (⟨x_i, w⟩ + b)) to a relative duality gap of `tol`: when `status_` is
    "converged", the objective is proven to be within a factor 1 + tol of the best possible.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        ½‖w‖², or ‖w‖₁, under which few weights differ from 0 (feature selection). "l1" goes with the squared hinge, has a
        solver of its own ("auto") and keeps a copy of X by features.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
        With multi_class="crammer_singer" always the hinge.
    dual : "auto" or bool, default="auto"
        Of no effect: every solver here works on both problems at once. `solver` chooses the method.
    tol : float, default=1e-6
        Relative duality gap (objective − lower bound) / objective at which to stop. The default is what scikit-learn's own,
        1e-4 of another quantity, reaches where it converges.
    C : float, default=1.0
        Strength of the loss; the sum over the samples is not divided by their number.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One binary problem per class, or one joint problem (solver "auto" or "ocas"). For two classes the joint problem is
        the binary one at twice C, and `coef_` the difference of the classes' weights.
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=1.0
        The intercept is the weight of a constant feature of this size and penalised with the others, as in LIBLINEAR and
        scikit-learn. None: it is free, as the SVM has it.
    class_weight : dict, "balanced" or None, default=None
    verbose : bool or int, default=0
        Show a progress bar.
    random_state : int, RandomState or None, default=None
        Order of the coordinates and choice of the sample to start with; None is a fixed seed.
    max_iter : int, default=1000
        Limit on the solver's turns for each class; -1 for none.
    solver : {"auto", "ocas", "cpa", "newton", "descent"}, default="auto"
        "ocas" is the optimised cutting plane algorithm, "cpa" the standard one; "newton" follows the central path with
        Newton steps, "descent" is dual coordinate descent. All four stop by the same certificate. "auto" takes
        "descent" for wide or very sparse data (see docs/linear.md), else "newton".
    warm_start : bool, default=False
        Start from the last solution; on the same samples, labels and weights also reuse the cuts gathered, which hold
        for every C. The model returned is never worse than the one started from. "newton" begins its steps there,
        "ocas" and "cpa" their line searches; "descent" begins its duals anew and gains by the cuts. Nothing is reused when
        classes or features change. The cuts stay with the model, the data do not.
    max_time : float or None, default=None
        Seconds; the best model so far is returned with its gap. One-vs-rest classes take turns while there is such a limit,
        so that each has a model when it comes. Without one they follow each other: when Ctrl-C or `callback` stops the
        fit, classes not reached have zero weights.
    n_jobs : int or None, default=None
        Threads; None or -1 for all cores. One-vs-rest classes share them out: on all but small data they run side by
        side, which changes no result.
    callback : callable or None, default=None
        Called with a dict after each turn; a true return value stops the fit.
    checkpoint, checkpoint_every
        As in `maxmargin.SVC`. `path` has none.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    objective_, dual_gap_, lower_bound_ : float
        Best objective, its distance from the lower bound, and the bound; sums over the classes for "ovr".
    status_ : str
    n_iter_ : int
    trace_ : structured ndarray with one row per turn
    timings_ : dict of seconds per phase
        With the number of full `passes` over X and the `pass_seconds` they took; sums over the classes.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from maxmargin import LinearSVC
    >>> X, y = make_classification(n_samples=500, random_state=0)
    >>> model = LinearSVC(C=0.1).fit(X, y)
    >>> model.status_
    'converged'
    >>> bool(model.dual_gap_ <= 1e-4 * model.objective_)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = LINEAR | {
        "penalty": [StrOptions(set(PENALTIES))],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "class_weight": CLASSES["class_weight"],
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: bool | str = "auto",
        tol: float = 1e-6,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float | None = 1.0,
        class_weight: Any = None,
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        solver: str = "auto",
        warm_start: bool = False,
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[dict[str, float]], Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = EVERY,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def decision_function(self, X: Any) -> FloatArray:
        """⟨x, w⟩ + b: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        out = self._outputs(X)
        return np.ascontiguousarray(out[0] if len(self.classes_) == 2 else out.T)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest decision value."""
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            return np.asarray(self.classes_[(scores > 0).astype(np.intp)])
        return np.asarray(self.classes_[np.argmax(scores, axis=1)])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, ("hinge", "squared_hinge"))
        check_choice("penalty", self.penalty, PENALTIES)
        check_dual(self.dual)
        check_choice("multi_class", self.multi_class, ("ovr", "crammer_singer"))
        self._check_combination()
        if self.multi_class == "crammer_singer" and self.solver not in ("auto", "ocas"):
            raise ValueError(
                f"solver={self.solver!r} cannot do multi_class='crammer_singer': the joint problem is solved by optimised "
                "cutting planes only; use solver='auto' or 'ocas'"
            )

    def _check_combination(self) -> None:
        """Refuse what scikit-learn refuses, in its words, and a solver that "l1" has not."""
        one_norm, hinge, dual = self.penalty == "l1", self.loss == "hinge", self.dual
        if not self._joint and ((one_norm and (hinge or dual is True)) or (hinge and dual is False)):
            raise ValueError(
                f"Unsupported set of arguments: the combination is not there, Parameters: penalty={self.penalty!r}, "
                f"loss={self.loss!r}, dual={dual!r}: penalty='l1' goes with loss='squared_hinge' and dual=False or 'auto', "
                "loss='hinge' with dual=True or 'auto'"
            )
        if one_norm and not self._joint and self.solver != "auto":
            raise ValueError(f"solver={self.solver!r} is for penalty='l2': penalty='l1' has its own, solver='auto'")

    def _kind(self) -> tuple[Any, ...]:
        return (self.penalty, self.multi_class)

    @property
    def _joint(self) -> bool:
        return self.multi_class == "crammer_singer"

    def _problem(self, data: Samples, positive: int, threads: int | None = None) -> LinearProblem:
        problem: LinearProblem = self._problem_type(
            data.X, np.where(data.target == positive, 1.0, -1.0), data.weight, float(self.C),
            loss="hinge" if self._joint else self.loss, bias=self._scaling if self.fit_intercept else 0.0,
            penalised=not self._free, threads=threads or thread_count(self.n_jobs), centre=data.centre, extent=data.extent,
        )
        return problem

    def _read(self, given: Labelled) -> Samples:
        X, labels, weight = given.X, given.code, given.effective
        if (labels < 0).any():  # rows of a class that is absent
            counted = given.weight > 0
            X, labels, weight = X[counted], labels[counted], weight[counted]
        return Samples(X, labels, weight, given.classes)

    def _solver(self, data: Samples, memory: Memory) -> Any:
        """Binary, one-vs-rest or joint."""
        count = len(data.classes)
        seed = self._seed
        joint = self._joint
        if count > 2 and joint:
            points = [past.start for past in memory.values() if past.start is not None]
            return CrammerSinger(
                self._problem(data, 0), data.target, count, self.tol, seed=seed, known=memory.get(0, Past()).cuts,
                start=np.concatenate(points) if points else None,
            )
        threads = thread_count(self.n_jobs)
        stored = data.X.nnz if sp.issparse(data.X) else data.X.size
        at_once = count > 2 and stored >= SIDE_BY_SIDE and self._comm.size == 1  # ranks must do one thing after the other
        workers = min(threads, count) if at_once else 1

        def build(k: int) -> Any:
            problem = self._problem(data, k if count > 2 else 1, threads // workers)
            problem.C *= 2 if joint else 1
            past = memory.get(k, Past())
            if self.penalty == "l1" and not joint:
                return OneNorm(problem, self.tol, seed=seed, start=past.start)
            return make(
                problem, self.tol, self.solver, seed=seed, known=past.cuts, start=past.start, duals=past.duals,
                rounding=past.rounding,
            )  # fmt: skip

        if count == 2:
            return Scaled(build(0), 0.5) if joint else build(0)
        return OneVsRest(build, count, workers=workers, fair=self.max_time is not None, most=self.max_iter)

    def _attributes(self, result: LinearResult, data: Samples) -> dict[str, Any]:
        return {**super()._attributes(result, data), "classes_": data.classes}


class LinearSVR(RegressorMixin, LinearMachine):
    """Linear support vector regression with a certified objective.

    Minimises ½‖w‖² + C Σ weight_i · loss(y_i − ⟨x_i, w⟩ − b) to a relative duality gap of `tol`: when `status_` is
    "converged", the objective is proven to be within a factor 1 + tol of the best possible.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube in which errors cost nothing, in the units of y.
    tol : float, default=1e-6
        Relative duality gap (objective − lower bound) / objective at which to stop.
    C : float, default=1.0
        Strength of the loss; the sum over the samples is not divided by their number.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        max(0, |error| − epsilon), or its square.
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=1.0
        The intercept is the weight of a constant feature of this size and penalised with the others, as in LIBLINEAR and
        scikit-learn. None: it is free, as the SVM has it, and the fit does not depend on where y has its zero.
    dual : "auto" or bool, default="auto"
        Of no effect: every solver here works on both problems at once. `solver` chooses the method.
    verbose : bool or int, default=0
        Show a progress bar.
    random_state : int, RandomState or None, default=None
        Order of the coordinates and choice of the sample to start with; None is a fixed seed.
    max_iter : int, default=1000
        Limit on the solver's turns; -1 for none.
    solver : {"auto", "ocas", "cpa", "newton", "descent"}, default="auto"
        As for `LinearSVC`.
    warm_start : bool, default=False
        Start from the last solution; on the same samples, targets and weights also reuse the cuts gathered, which hold
        for every C. The model returned is never worse than the one started from.
    max_time : float or None, default=None
        Seconds; the best model so far is returned with its gap.
    n_jobs : int or None, default=None
        Threads; None or -1 for all cores.
    callback : callable or None, default=None
        Called with a dict after each turn; a true return value stops the fit.
    checkpoint, checkpoint_every
        As in `maxmargin.SVC`. `path` has none.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    objective_, dual_gap_, lower_bound_ : float
        Best objective, its distance from the lower bound, and the bound.
    status_ : str
    n_iter_ : int
    trace_ : structured ndarray with one row per turn
    timings_ : dict of seconds per phase

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from maxmargin import LinearSVR
    >>> X, y = make_regression(200, 5, noise=1.0, random_state=0)
    >>> model = LinearSVR(C=10.0, epsilon=0.5, tol=1e-6).fit(X, y)
    >>> model.status_, bool(model.dual_gap_ <= 1e-6 * model.objective_), round(model.score(X, y), 2)
    ('converged', True, 1.0)
    """

    _parameter_constraints: ClassVar[Constraints] = LINEAR | EPSILON | {
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-6,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float | None = 1.0,
        dual: bool | str = "auto",
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        solver: str = "auto",
        warm_start: bool = False,
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[dict[str, float]], Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = EVERY,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def predict(self, X: Any) -> FloatArray:
        """⟨x, w⟩ + b"""
        out: FloatArray = self._outputs(X)[0]
        return out

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("epsilon", self.epsilon, low=0, closed="left", remedy="it is half the width of the tube")
        check_choice("loss", self.loss, ("epsilon_insensitive", "squared_epsilon_insensitive"))
        check_dual(self.dual)

    def _kind(self) -> tuple[Any, ...]:
        return (float(self.epsilon),)

    def _read(self, given: Labelled) -> Samples:
        return Samples(given.X, given.target, given.weight)

    def _measure(self, data: Samples) -> None:
        counted, comm = data.weight > 0, self._comm
        target, weight = data.target[counted], data.weight[counted]
        if self._free:
            # Targets that fit into the tube are met exactly at its middle; else most errors are small around the median.
            ends = np.array([-target.min(initial=np.inf), target.max(initial=-np.inf)])
            low, high = (comm.allreduce(ends, "max") * (-1, 1)).tolist()
            data.level = 0.5 * low + 0.5 * high if high - low <= 2 * self.epsilon else _median(target, weight, comm)
        error, mass = comm.allreduce(np.array([weight @ np.abs(target - data.level), weight.sum()])).tolist()
        size = error / mass + float(self.epsilon)
        if 0 < size < np.inf:  # beyond 2^±200 squares would leave float64
            data.unit = 2.0 ** float(np.clip(np.round(np.log2(size)), -200, 200))

    def _solver(self, data: Samples, memory: Memory) -> Any:
        squared = self.loss == "squared_epsilon_insensitive"
        target, unit = (data.target - data.level) / data.unit, data.unit
        tube, ones = 1 + float(self.epsilon) / unit, np.ones(len(target))
        problem: LinearProblem = self._problem_type(
            data.X, np.concatenate([ones, -ones]), np.tile(data.weight, 2), self.C if squared else self.C / unit,
            loss="squared_hinge" if squared else "hinge", bias=self._scaling if self.fit_intercept else 0.0,
            penalised=not self._free, threads=thread_count(self.n_jobs), centre=data.centre, extent=data.extent,
            shift=np.concatenate([tube - target, tube + target]), level=data.level / unit,
        )
        past = memory.get(0, Past())
        start = None if past.start is None else past.start / unit
        solver = make(
            problem, self.tol, self.solver, seed=self._seed, known=past.cuts, start=start, duals=past.duals,
            rounding=past.rounding,
        )  # fmt: skip
        return Scaled(solver, unit * unit, unit)

    def _attributes(self, result: LinearResult, data: Samples) -> dict[str, Any]:
        attributes = super()._attributes(result, data)
        return {**attributes, "coef_": attributes["coef_"][0]}


def check_dual(dual: Any) -> None:
    """scikit-learn's choice between two solvers, taken for its sake."""
    if not (dual == "auto" or isinstance(dual, (bool, np.bool_))):
        raise ValueError(f"dual={dual!r} must be 'auto', True or False (of no effect: every solver here works on both)")


def _median(values: FloatArray, weight: FloatArray, comm: Comm = ALONE) -> float:
    """Half of the weight is at or below it; nearly half, where some rank has more values than it tells of."""
    order = np.argsort(values, kind="stable")
    if comm.size > 1:
        step = -(-len(order) // TELLING) or 1
        starts = np.arange(0, len(order), step)
        some, shares = values[order[starts + np.minimum(step, len(order) - starts) // 2]], weight[order]
        shares = np.add.reduceat(shares, starts) if len(starts) else shares
        values, weight = (np.concatenate(comm.allgather(part)) for part in (some, shares))
        order = np.argsort(values, kind="stable")
    half = np.searchsorted(np.cumsum(weight[order]), 0.5 * float(weight.sum()))
    return float(values[order[min(int(half), len(values) - 1)]])
