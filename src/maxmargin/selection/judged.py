"""How good the solutions of a fold are, of all its pairs of classes at once, and their decision values of the rows left out.

A row of numbers per problem, as native/decomposition/judged.hpp says it of a family's: dual, gap, violation, Σ|β|, Σβ²; and
by group its multiplier, what its sum misses its target by, Σ|β|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.ending import Point, cancels, violations
from maxmargin.problem.formulations import QP, ROUNDING
from maxmargin.problem.sums import HERE
from maxmargin.selection.matrices import Matrices, but_for_rounding
from maxmargin.selection.samples import Samples

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

NUMBERS = 5  # before those by group


def numbers_of(qp: QP, beta: FloatArray, f: FloatArray) -> FloatArray:
    """The row of one problem."""
    point = Point.of(qp, beta.reshape(-1, qp.n), f)
    b = point.multipliers()
    worst = violations(len(qp.targets), point.extremes())[0]
    mine = [np.where(qp.group == g, beta, 0.0) for g in range(len(qp.targets))]
    off = [float(abs(HERE.exact(m) - t)) for m, t in zip(mine, qp.targets)]
    said = [point.dual()[0], point.gap(b)[0], worst, np.abs(beta).sum(), beta @ beta]
    return np.array([*said, *b[0], *off, *(np.abs(m).sum() for m in mine)])


@dataclass(frozen=True)
class Layout:
    """Pairs of classes one after the other, and where the values of the rows that a fold is judged by stand in
    (f of the pairs' samples, f of the extra ones)."""

    begin: IntArray  # of each pair's samples
    chosen: IntArray  # these samples
    where: IntArray  # pairs × rows

    @classmethod
    def of(cls, samples: Samples, pairs: Sequence[tuple[int, int]], extra: Sequence[IntArray], test: IntArray) -> Layout:
        chosen = [samples.chosen(pair) for pair in pairs]
        begin = np.cumsum([0, *map(len, chosen)])
        after = begin[-1] + np.cumsum([0, *map(len, extra)])
        where = np.empty((len(pairs), len(test)), np.int64)
        place = np.empty(samples.n, np.int64)
        for k, (mine, others) in enumerate(zip(chosen, extra)):
            place[mine], place[others] = begin[k] + np.arange(len(mine)), after[k] + np.arange(len(others))
            where[k] = place[test]
        return cls(begin[:-1], np.concatenate(chosen), where)


@dataclass(frozen=True)
class Judged:
    """Solutions of a fold: whether all are proven, sums over them, and decision values of the rows it is judged by."""

    proven: bool
    objective: float
    gap: float
    used: IntArray  # samples with a coefficient
    values: FloatArray  # pairs × rows


def judge(
    machine: Any, qps: Sequence[QP], layout: Layout, solution: tuple[FloatArray, FloatArray, FloatArray],
    numbers: FloatArray, tol: FloatArray | float, matrices: Matrices,
) -> Judged:  # fmt: skip
    """`solution` is β, f and f of the extra samples, problem after problem; `tol` what each was solved to."""
    beta, f, extra = solution
    groups, moved = len(qps[0].targets), np.zeros(len(qps))
    halves = qps[0].n_variables // qps[0].n
    with np.errstate(all="ignore"):  # what is not a finite number is not proven
        for k in np.flatnonzero(_missed(numbers, groups)).tolist():
            # By the rounding of many steps: restored, and what that does to f counts as its error.
            qp, at = qps[k], halves * layout.begin[k]
            mine = beta[at : at + qp.n_variables]
            mended = qp.sign * qp.repaired(qp.sign * mine)
            moved[k] = np.abs(mended - mine).sum()
            numbers[k] = numbers_of(qp, mended, f[layout.begin[k] : layout.begin[k] + qp.n])
        dual, gap, violation, absolute, square = numbers[:, :NUMBERS].T
        error, sure = precision(machine, matrices, square, moved)
        doubt = 2 * error * absolute  # of ½ βᵀKβ, and of the losses, whose samples have all of their β
        good = (violation <= tol) & sure & ~_missed(numbers, groups) & np.isfinite(gap + dual)
    b = numbers[:, NUMBERS : NUMBERS + groups]
    intercept = b.mean(axis=1) if groups else np.zeros(len(qps))
    largest = np.maximum.reduceat(np.abs(f), layout.begin)
    values = but_for_rounding(np.concatenate([f, extra])[layout.where], largest[:, None]) + intercept[:, None]
    values /= machine._scales(b)[:, None]
    used = layout.chosen[(beta.reshape(halves, -1) != 0).any(axis=0)]
    return Judged(bool(good.all()), float((dual + gap + doubt).sum()), float((gap + 2 * doubt).sum()), used, values)


def precision(
    machine: Any, matrices: Matrices, square: FloatArray, moved: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The error of f, by kernel values in fixed point, and whether they are fine enough to tell, β having moved by so much
    since; a chain's runs have values of their own, and have judged them, of β as they left it."""
    if not matrices.fits:
        return np.zeros(len(square)), moved == 0
    m = matrices.magnitude(machine.gamma)
    error = matrices.noise(machine.gamma) * m * m * np.sqrt(square)
    return error, cancels(error, machine.tol) & (2 * m * m * moved <= 1e-6 * machine.tol)


def _missed(numbers: FloatArray, groups: int) -> NDArray[np.bool_]:
    """Of each problem, whether a sum of β misses its target by more than adding it up explains."""
    off, mass = numbers[:, NUMBERS + groups : NUMBERS + 2 * groups], numbers[:, NUMBERS + 2 * groups :]
    return np.asarray((off > 4 * ROUNDING * mass).any(axis=1))
