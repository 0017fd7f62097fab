"""Kernel classifiers of several classes, one against one: a QP for every pair of them, solved together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from maxmargin.decomposition.apart import Apart, elsewhere
from maxmargin.decomposition.many import Problem
from maxmargin.decomposition.options import DualResult
from maxmargin.decomposition.together import BESIDE, SMALL, Together
from maxmargin.estimators._base import check_choice, check_flags, check_seed, require_fitted
from maxmargin.estimators._kernel import KernelMachine
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._setup import Begin, Setup, row_numbers
from maxmargin.estimators.multiclass import ovr_decision, pair_votes
from maxmargin.problem.formulations import QP, intercept_and_r
from maxmargin.runtime import Control, Result, run

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


class PairsOfClasses(ClassifierMixin, KernelMachine):
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
        at = (other - (other > own)) * len(rows.index) + chosen
        alpha.ravel()[at] = np.concatenate([s.result.alpha for s in solutions])
        unit.ravel()[at] = np.concatenate([s.unit for s in solutions])
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
