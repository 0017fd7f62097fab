"""SVC and NuSVC: kernel classifiers, binary or one-vs-one, by decomposition."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from maxmargin.decomposition.apart import Apart, elsewhere
from maxmargin.decomposition.many import Problem
from maxmargin.decomposition.options import DualResult
from maxmargin.decomposition.together import BESIDE, SMALL, Together
from maxmargin.estimators._base import check_choice, check_flags, check_number, check_seed, require_fitted
from maxmargin.estimators._checkpoints import EVERY
from maxmargin.estimators._constraints import INTERCEPT, NU, PAIRS, C, Constraints
from maxmargin.estimators._kernel import Begin, KernelMachine, Setup, check_C, row_numbers
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._probability import Probabilities
from maxmargin.estimators._weighted_nu import WeightedNu
from maxmargin.estimators.multiclass import ovr_decision, pair_votes
from maxmargin.problem.formulations import QP, c_svc, intercept_and_r, nu_svc
from maxmargin.runtime import Control, Result, raised_by_all, run

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Pair:
    """Two classes of one fit: their numbers, samples, signs, weights, class factors; a warm start in units of the bounds.

    `kept` is the snapshot of its solver in an earlier run; `begin` a solution whose f may be known.
    """

    setup: Setup
    classes: tuple[int, int]
    chosen: IntArray
    y: FloatArray
    weight: FloatArray
    factor: FloatArray
    warm: FloatArray | None = None
    kept: dict[str, FloatArray] | None = None
    begin: Begin | None = None

    def problem(self, qp: QP) -> Problem:
        if self.kept:
            return Problem(qp, self.chosen, self.classes, qp.repaired(self.kept["alpha"], self.setup.over))
        if self.warm is None:
            return Problem(qp, self.chosen, self.classes)
        before = self.warm * qp.upper
        alpha, known = qp.repaired(before, self.setup.over), None
        if self.begin is not None:
            known = self.begin.known(self.setup.rows.index[self.chosen], alpha, before, self.setup.dtype)
        return Problem(qp, self.chosen, self.classes, alpha, known=known)


@dataclass(frozen=True)
class Solution:
    """A solved pair; alpha is bounded by unit·weight, and divided by `scale` in the decision function."""

    pair: Pair
    result: DualResult
    unit: FloatArray
    scale: float = 1.0
    margin: float = float("nan")  # ν-SVC: ρ


class _KernelClassifier(ClassifierMixin, KernelMachine):
    """Encoding of classes and the one-vs-one loop; a subclass gives the QP of two classes."""

    classes_: NDArray[Any]
    _vote_order: IntArray | None = None  # of a model read from a LIBSVM file only (models/libsvm.py)
    class_weight: Any
    decision_function_shape: str
    break_ties: bool
    random_state: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("decision_function_shape", self.decision_function_shape, ["ovr", "ovo"])
        check_flags(self, "break_ties")
        check_seed(self.random_state)

    def _problem(self, pair: Pair) -> Problem:
        """Two classes as a QP."""
        raise NotImplementedError

    def _solution(self, pair: Pair, result: DualResult) -> Solution:
        """In which unit its alphas are."""
        raise NotImplementedError

    def _solved(self, data: Labelled, control: Control) -> tuple[Result, dict[str, Any]]:
        setup = Setup(self, data)
        data = setup.data
        label = data.code[setup.rows.index]
        members = [np.flatnonzero(label == c) for c in range(len(data.classes))]
        pairs = self._pairs(setup, label, members)
        checkpoint = self._checkpoint(setup)
        order = setup.hash_order.of([pair.chosen for pair in pairs])
        kept = checkpoint.recalled(order.restored)
        pairs = [replace(pair, kept=mine) for pair, mine in zip(pairs, kept)] if kept else pairs
        problems = [self._problem(pair) for pair in pairs]
        options = replace(setup.options, beside=BESIDE if len(problems) > 1 and setup.team.size == 1 else 1)
        if setup.team.size == 1 and elsewhere(len(problems)):
            solver: Apart | Together = Apart(problems, setup.source, members, options, control, setup.kernel_data())
        else:
            solver = Together(problems, setup.source, members, options, control, setup.team)
        watched = checkpoint.watched(control, order.stored)
        result = run(solver, replace(watched, max_iter=-1))  # max_iter is a limit for each pair
        setup.widen(max(part.dtype for part in result.parts))
        solutions = [self._solution(pair, part) for pair, part in zip(pairs, result.parts)]
        return result, self._attributes(setup, solutions)

    def _pairs(self, setup: Setup, label: IntArray, members: list[IntArray]) -> list[Pair]:
        """Of each two classes the first is the positive one; of a single pair it is the second."""
        both = list(combinations(range(len(members)), 2))
        last = self._last_alphas(setup, len(both))
        pairs = []
        for k, (i, j) in enumerate(both):
            chosen = np.concatenate([members[i], members[j]])
            if len(chosen) > SMALL:
                chosen = np.sort(chosen)  # neighbours side by side: blocks of kernel values that are zero
            mine = label[chosen]
            y = np.where(mine == (j if len(both) == 1 else i), 1.0, -1.0)
            weight, factor = setup.rows.weight[chosen], setup.data.factors[mine]
            warm = last[k] if last else None
            begin = None if self._begin_from is None else self._begin_from[i, j]
            if begin is not None:
                warm = begin.shares[0][setup.rows.index[chosen]]
            pairs.append(Pair(setup, (i, j), chosen, y, weight, factor, warm, begin=begin))
        return pairs

    def _last_alphas(self, setup: Setup, n_pairs: int) -> list[FloatArray] | None:
        """For a warm start: the last fit's alphas in units of their bound, if it saw the same rows."""
        last = getattr(self, "_last", None) if self.warm_start else None
        if not self.warm_start or not setup.same_rows(last) or last is None or len(last["shares"]) != n_pairs:
            return None
        return list(last["shares"])

    def _attributes(self, setup: Setup, solutions: list[Solution]) -> dict[str, Any]:
        """Solutions of the pairs in scikit-learn's layout: support vectors by class, (classes − 1) rows of coefficients.

        Class i's coefficient for the pair (i, j) stands in row j − 1 of its columns, class j's in row i.
        """
        classes, encoded, n_rows = setup.data.classes, setup.data.code, setup.data.X.shape[0]
        rows, label = setup.rows, encoded[setup.rows.index]
        alpha, unit = (np.zeros((len(classes) - 1, len(rows.index))) for _ in range(2))
        factor = np.zeros((len(classes) - 1, len(classes)))  # of class c's alphas in each row
        (i, j), pairs = np.array([s.pair.classes for s in solutions]).T, [s.pair for s in solutions]
        chosen = np.concatenate([pair.chosen for pair in pairs])
        own = label[chosen]
        other = np.repeat(i + j, [len(pair.chosen) for pair in pairs]) - own
        row = other - (other > own)
        alpha[row, chosen] = np.concatenate([s.result.alpha for s in solutions])
        unit[row, chosen] = np.concatenate([s.unit for s in solutions])
        scale = np.array([s.scale for s in solutions])
        factor[j - 1, i] = (-1.0 if len(classes) == 2 else 1.0) / scale
        factor[i, j] = -factor[j - 1, i]
        intercept = np.array([intercept_and_r(s.result.multipliers)[0] for s in solutions]) / scale
        coef = rows.spread(alpha, n_rows, unit) * factor[:, encoded]
        results = [s.result for s in solutions]
        support, vectors, coef, code = setup.expansion(coef, encoded)
        counts = np.bincount(code, minlength=len(classes)).astype(np.int32)
        attributes = {
            "classes_": classes,
            "class_weight_": setup.data.factors,
            "support_": support.astype(row_numbers(setup.n_rows)),
            "support_vectors_": vectors,
            "n_support_": counts,
            "dual_coef_": np.ascontiguousarray(coef),
            "intercept_": intercept,
            "n_iter_": np.array([r.n_iter for r in results], np.int32),
            **self._about(setup, results),
        }
        if self.warm_start:
            bounds = [np.maximum(s.unit * s.pair.weight, np.finfo(float).tiny) for s in solutions]
            shares = [s.result.alpha / bound for s, bound in zip(solutions, bounds)]
            attributes["_last"] = {"index": rows.index, "shares": shares}
        return attributes

    def _pair_coef(self) -> FloatArray:
        """One row of coefficients per pair of classes, over all support vectors."""
        coef = self._coefficients()
        if len(self.classes_) == 2:
            return coef
        ends = np.r_[0, np.cumsum(self.n_support_)]
        rows = []
        for i, j in combinations(range(len(self.classes_)), 2):
            row = np.zeros(len(self.support_))
            row[ends[i] : ends[i + 1]] = coef[j - 1, ends[i] : ends[i + 1]]
            row[ends[j] : ends[j + 1]] = coef[i, ends[j] : ends[j + 1]]
            rows.append(row)
        return np.array(rows)

    def _linear_coef(self) -> Any:
        return self._pair_coef() @ self.support_vectors_

    def _pair_decisions(self, X: Any) -> FloatArray:
        """One column per pair of classes (i, j), positive for i; of two classes one column, positive for the second."""
        return self._decision_values(X, self.intercept_)

    def decision_function(self, X: Any) -> FloatArray:
        """Signed distances times ‖w‖: (n,) for two classes; else one column per class ("ovr") or per pair ("ovo")."""
        require_fitted(self)
        count = len(self.classes_)
        if count == 2 or self.decision_function_shape == "ovo":
            pair = self._pair_decisions(X)
            return pair.ravel() if count == 2 else pair
        return self._decision_values(X, self.intercept_, lambda pair: ovr_decision(pair, count))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each sample; several classes vote pair by pair, ties by break_ties."""
        self._check_ties()
        count = len(self.classes_)
        if count == 2:
            return np.asarray(self.classes_.take(self._pair_decisions(X).ravel() > 0))
        scores = ovr_decision if self.break_ties else pair_votes
        return np.asarray(self.classes_[self._winner(self._decision_values(X, self.intercept_, lambda p: scores(p, count)))])

    def _check_ties(self) -> None:
        require_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo': give one of them otherwise")

    def _winner(self, scores: FloatArray) -> IntArray:
        """The class of the highest score; on ties the first, or in the order of the program that made it."""
        order = self._vote_order
        return np.argmax(scores, axis=1) if order is None else np.asarray(order[np.argmax(scores[:, order], axis=1)])


class SVC(Probabilities, _KernelClassifier):
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


class NuSVC(Probabilities, _KernelClassifier):
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
