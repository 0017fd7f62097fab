"""All settings and folds inside one cluster: for each γ one family of QPs on one small kernel matrix.

    minimise ½ βᵀKβ − cᵀβ    lo ≤ β ≤ hi  (and Σ β = 0 with an intercept)     for every C, fold and pair of classes

A fold is its rows with bounds 0 for those left out: their f = Kβ is then the decision value of a machine that has not seen
them. Along C a fold begins where it ended at the last C (what was at its bound is at the new one), the first C of a fold
where the fold before ended. Distances between rows are computed once for all γ (selection/matrices.py).
A fold whose rows in the cluster have one class of a pair predicts that class, as `DCSVC` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.decomposition.ending import Point, cancels, violations
from maxmargin.decomposition.solver import MOST_STEPS
from maxmargin.estimators.multiclass import pair_votes
from maxmargin.problem.formulations import hard_margin
from maxmargin.selection.chain import CONVERGED
from maxmargin.selection.matrices import Matrices, but_for_rounding

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

SLICE = 0.1  # seconds between two looks at the clock and Ctrl-C


class Stopped(Exception):
    """The run is over before this cluster is done."""


@dataclass(frozen=True)
class Settings:
    """What all clusters share: the machine, the folds by row, the classes."""

    machine: Any
    X: Any
    code: IntArray  # class of each row
    weight: FloatArray  # of each row in a score
    bound: FloatArray  # folds × rows: how much a row counts in a fit of the fold, with its class's factor; 0: not at all
    test: BoolArray  # folds × rows: which are judged
    n_classes: int

    @property
    def problems(self) -> list[tuple[int, int]]:
        """Pairs of classes; (c, −1): c against the rest."""
        if self.machine.multi_class == "ovr" and self.n_classes > 2:
            return [(c, -1) for c in range(self.n_classes)]
        return list(combinations(range(self.n_classes), 2))

    def signs(self, pair: tuple[int, int], code: IntArray) -> FloatArray:
        positive = pair[1] if self.n_classes == 2 else pair[0]
        return np.where(code == positive, 1.0, -1.0)

    def predicted(self, values: FloatArray) -> IntArray:
        """Classes from the values of the problems (rows × problems), as DCSVC.predict."""
        if self.n_classes == 2:
            return (values[:, 0] > 0).astype(np.int64)
        if self.problems[0][1] >= 0:
            values = pair_votes(values, self.n_classes)
        return np.asarray(np.argmax(values, axis=1), np.int64)


@dataclass
class Verdicts:
    """Of one cluster, arrays settings × folds: weight predicted right, objective, gap, support vectors; which are proven.

    `judged` are the places of each fold's test rows in `rows`, `values` their decision values, settings × rows × problems,
    where they are wanted.
    """

    rows: IntArray
    right: FloatArray
    objective: FloatArray
    gap: FloatArray
    n_support: IntArray
    seconds: FloatArray
    proven: BoolArray
    judged: list[IntArray]
    values: list[NDArray[np.float32]] | None = None


@dataclass(frozen=True)
class _One:
    """A problem of a family: setting, fold and pair of classes, on the rows at `ranges`."""

    setting: int
    fold: int
    problem: int
    ranges: tuple[int, int, int, int]

    @property
    def places(self) -> IntArray:
        a, b, c, d = self.ranges
        return np.concatenate([np.arange(a, b), np.arange(c, d)])


class Cluster:
    """The rows of one cluster, sorted by class. `cells` are (C, γ)."""

    def __init__(self, shared: Settings, rows: IntArray, cells: Sequence[tuple[float, float]], keep: bool) -> None:
        self.shared, self.cells = shared, cells
        self.rows = rows[np.argsort(shared.code[rows], kind="stable")]
        self.code = shared.code[self.rows]
        self.ends = np.searchsorted(self.code, np.arange(shared.n_classes + 1))
        self.bound, self.test = shared.bound[:, self.rows], shared.test[:, self.rows]
        self.weight = shared.weight[self.rows]
        folds, n = len(self.bound), len(rows)
        judged = [np.flatnonzero(mine) for mine in self.test]
        self.place = np.cumsum(self.test, axis=1) - 1  # of a test row among those of its fold
        self.values = [np.zeros((len(cells), len(mine), len(shared.problems))) for mine in judged]
        shape = (len(cells), folds)
        self.out = Verdicts(
            self.rows, np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape),
            np.ones(shape, bool), judged,
        )  # fmt: skip
        self.sides = {(p, k): self._sides(pair, k) for p, pair in enumerate(shared.problems) for k in range(folds)}
        self._used = np.zeros((len(cells), folds, n), bool)
        self._keep = keep

    def solve(self, stopped: Callable[[], bool]) -> Verdicts:
        """All of it; raises Stopped when it is to end."""
        self._constants()
        m, shared = self.shared.machine, self.shared
        matrices = Matrices(shared.X, self.rows, m.kernel, float(m.coef0), int(m.degree), 1, np.inf)
        for gamma in dict.fromkeys(g for _, g in self.cells):
            some = sorted((s for s, cell in enumerate(self.cells) if cell[1] == gamma), key=lambda s: self.cells[s][0])
            problems, parent, ratio = self._problems(some)
            if problems:
                self._family(matrices, gamma, problems, parent, ratio, stopped)
        return self._verdicts()

    # ---- problems ----------------------------------------------------------------------------------------------------

    def _ranges(self, pair: tuple[int, int]) -> tuple[int, int, int, int]:
        n = len(self.rows)
        if pair[1] < 0:
            return 0, n, n, n
        i, j = pair
        return int(self.ends[i]), int(self.ends[i + 1]), int(self.ends[j]), int(self.ends[j + 1])

    def _sides(self, pair: tuple[int, int], fold: int) -> tuple[bool, bool]:
        """Whether the fold has rows of the positive and of the negative side here."""
        sign, counts = self.shared.signs(pair, self.code), self.bound[fold] > 0
        if pair[1] >= 0:
            counts = counts & ((self.code == pair[0]) | (self.code == pair[1]))
        return bool((counts & (sign > 0)).any()), bool((counts & (sign < 0)).any())

    def _constants(self) -> None:
        """What folds of one class predict; without an intercept they have a QP, too, whose objective counts."""
        for (p, fold), (plus, minus) in self.sides.items():
            if plus != minus:
                self.values[fold][:, :, p] = 1.0 if plus else -1.0

    def _problems(self, settings: list[int]) -> tuple[list[_One], list[int], list[float]]:
        problems: list[_One] = []
        parent: list[int] = []
        ratio: list[float] = []
        at: dict[tuple[int, int], int] = {}  # the last problem of each fold and pair
        for place, s in enumerate(settings):
            for p, pair in enumerate(self.shared.problems):
                before = -1
                for fold in range(len(self.bound)):
                    sides = self.sides[p, fold]
                    if not any(sides) or (self.shared.machine.fit_intercept and not all(sides)):
                        continue  # nothing to decide
                    known = at.get((fold, p), -1)
                    parent.append(known if place else before)
                    ratio.append(self._size(s) / self._size(settings[place - 1]) if place else 1.0)
                    before = at[fold, p] = len(problems)
                    problems.append(_One(s, fold, p, self._ranges(pair)))
        return problems, parent, ratio

    def _size(self, setting: int) -> float:
        return hard_margin(self.cells[setting][0])

    def _family(
        self, matrices: Matrices, gamma: float, problems: list[_One], parent: list[int], ratio: list[float],
        stopped: Callable[[], bool],
    ) -> None:  # fmt: skip
        machine, shared, count = self.shared.machine, self.shared, len(problems)
        places = [one.places for one in problems]
        pairs = list(zip(problems, places))
        sign = np.concatenate([shared.signs(shared.problems[one.problem], self.code[at]) for one, at in pairs])
        upper = np.concatenate([self._size(one.setting) * self.bound[one.fold, at] for one, at in pairs])
        signed, groups = sign * upper, int(machine.fit_intercept)
        inside = [np.isin(np.arange(len(self.rows)), at) for at in places] if len(shared.problems) > 1 else []
        extra = [np.flatnonzero(self.test[one.fold] & ~mine) for one, mine in zip(problems, inside)] or [
            np.empty(0, np.int64) for _ in problems
        ]
        none = np.full(count, -1, np.int64)
        at = np.cumsum([0, *map(len, places)])
        state = _core.FamilyState(
            range=np.array([one.ranges for one in problems], np.int64).ravel(), at=at, parent=np.array(parent, np.int64),
            like=none, unlike=none, ratio=np.array(ratio), center=sign, lo=np.minimum(signed, 0.0),
            hi=np.maximum(signed, 0.0), start=np.zeros(len(sign)), target=np.zeros(count * groups),
            group=np.zeros(len(sign), np.int8), extra_at=np.cumsum([0, *map(len, extra)]), extra=np.concatenate(extra),
            groups=groups, halves=1,
        )  # fmt: skip
        family = _core.Family(
            matrices.gram(gamma), state, np.arange(count), tol=machine.tol, max_steps=MOST_STEPS + 1000 * len(self.rows),
            threads=1,
        )  # fmt: skip
        while family.run(SLICE) < count:
            if stopped():
                raise Stopped
        beta, f, beyond = family.solutions(0, count)
        begin, group = at[:-1], np.zeros(len(sign), np.int8)
        point = Point(
            sign, sign, upper, group, np.zeros((count, groups)), begin, beta, f, np.ones(len(sign), bool)
        )
        each = np.split(beyond, np.cumsum([len(some) for some in extra])[:-1])
        self._take(point, problems, places, extra, each, family, matrices, gamma)

    # ---- solutions ---------------------------------------------------------------------------------------------------

    def _take(
        self, point: Point, problems: list[_One], places: list[IntArray], extra: list[IntArray],
        beyond: list[FloatArray], family: Any, matrices: Matrices, gamma: float,
    ) -> None:  # fmt: skip
        tol, out = self.shared.machine.tol, self.out
        with np.errstate(all="ignore"):  # what is not a finite number is not proven
            b = point.multipliers()
            gap, dual = point.gap(b), point.dual()
            worst = violations(b.shape[1], point.extremes())
            m = matrices.magnitude(gamma)
            error = matrices.noise(gamma) * m * m * np.sqrt(point.total(np.square(point.beta)))
            sure = (worst <= tol) & cancels(error, tol) & ~point.missed() & np.isfinite(gap) & np.isfinite(dual)
        sure &= np.asarray(family.stage) == CONVERGED
        seconds = np.asarray(family.seconds)
        for k, one in enumerate(problems):
            cell = one.setting, one.fold
            out.objective[cell] += dual[k] + gap[k]
            out.gap[cell] += gap[k]
            out.seconds[cell] += seconds[k]
            out.proven[cell] &= sure[k]
            at = slice(point.begin[k], point.begin[k] + len(places[k]))
            self._used[one.setting, one.fold, places[k]] |= point.beta[at] != 0
            if not all(self.sides[one.problem, one.fold]):
                continue  # a constant
            intercept = b[k, 0] if b.shape[1] else 0.0
            judged, place = self.test[one.fold, places[k]], self.place[one.fold]
            values = self.values[one.fold][one.setting]
            f = point.f[at]
            largest = float(np.abs(f).max(initial=0.0))
            values[place[places[k][judged]], one.problem] = but_for_rounding(f[judged], largest) + intercept
            values[place[extra[k]], one.problem] = but_for_rounding(beyond[k], largest) + intercept

    def _verdicts(self) -> Verdicts:
        out = self.out
        out.n_support[:] = self._used.sum(axis=2)
        for fold, judged in enumerate(out.judged):
            for s in range(len(self.cells)):
                predicted = self.shared.predicted(self.values[fold][s])
                out.right[s, fold] = self.weight[judged] @ (predicted == self.code[judged])
        if self._keep:
            out.values = [values.astype(np.float32) for values in self.values]
        return out
