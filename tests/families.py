"""Families of QPs as the core takes them (native/decomposition/family.hpp), and what NumPy says of their solutions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CONVERGED, STALLED, STEPS, DROPPED = 2, 3, 4, 5
NOBODY = np.empty(0, np.int64)
ANY = 1e300  # a tolerance that every start keeps to


@dataclass
class One:
    """A problem on the samples a … b and c … d of the matrix; half by half, where a sample has two variables."""

    ranges: tuple[int, int, int, int]
    center: Floats
    lo: Floats
    hi: Floats
    target: list[float]
    start: Floats | None = None
    group: NDArray[np.int8] | None = None
    parent: int = -1
    like: int = -1
    unlike: int = -1
    ratio: float = 1.0
    extra: Ints = field(default_factory=lambda: NOBODY)

    @property
    def samples(self) -> Ints:
        a, b, c, d = self.ranges
        return np.r_[a:b, c:d]

    @property
    def of(self) -> NDArray[np.int8]:
        return np.zeros(len(self.center), np.int8) if self.group is None else self.group

    @property
    def begun(self) -> Floats:
        return np.zeros(len(self.center)) if self.start is None else self.start


@dataclass
class Solved:
    stage: list[int]
    beta: list[Floats]
    f: list[Floats]
    extra: list[Floats]
    judged: Floats
    steps: list[int]
    turns: list[int]
    moved: list[int]
    begun_moved: list[int]

    def same_bits(self, other: Solved) -> bool:
        mine, theirs = (
            np.concatenate([*s.beta, *s.f, *s.extra, s.judged.ravel(), s.stage, s.steps, s.turns, s.moved, s.begun_moved])
            for s in (self, other)
        )
        return mine.tobytes() == theirs.tobytes()


def gram_of(K: Floats, largest: float | None = None) -> tuple[_core.Gram, Floats]:
    """The matrix in fixed point, and its values as they are there."""
    gram = _core.Gram(len(K), float(np.abs(K).max(initial=0.0)) if largest is None else largest)
    gram.put(0, np.ascontiguousarray(K), 1)
    out = np.empty(K.shape)
    gram.rows(np.arange(len(K)), out)
    return gram, out


def state_of(problems: list[One], halves: int = 1) -> _core.FamilyState:
    numbers = {name: np.array([getattr(p, name) for p in problems], np.int64) for name in ("parent", "like", "unlike")}
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(p, name) for p in problems], dtype=np.float64)
        for name in ("center", "lo", "hi", "target")
    }
    return _core.FamilyState(
        range=np.array([p.ranges for p in problems], np.int64).ravel(),
        at=np.cumsum([0, *(len(p.samples) for p in problems)]), ratio=np.array([p.ratio for p in problems]),
        start=np.concatenate([p.begun for p in problems]), group=np.concatenate([p.of for p in problems]),
        extra_at=np.cumsum([0, *(len(p.extra) for p in problems)]), extra=np.concatenate([p.extra for p in problems]),
        groups=len(problems[0].target), halves=halves, **numbers, **parts,
    )  # fmt: skip


def solved(
    gram: _core.Gram, problems: list[One], *, halves: int = 1, tol: float = 1e-6, max_steps: int = 10**7, threads: int = 1,
    order: Ints | None = None, drop: tuple[int, ...] = (), state: _core.FamilyState | None = None,
) -> Solved:  # fmt: skip
    state = state_of(problems, halves) if state is None else state
    every = np.arange(len(problems)) if order is None else order
    family = _core.Family(gram, state, every, tol=tol, max_steps=max_steps, threads=threads)
    for p in drop:
        family.drop(p)
    assert family.run(1e9) == len(problems)
    beta, f, extra = family.solutions(0, len(problems))
    at = np.cumsum([len(p.samples) for p in problems])[:-1]
    return Solved(
        family.stage.tolist(), np.split(beta, at * halves), np.split(f, at),
        np.split(extra, np.cumsum([len(p.extra) for p in problems])[:-1]), family.judged.reshape(len(problems), -1),
        family.steps.tolist(), family.turns.tolist(), family.moved.tolist(), family.begun_moved.tolist(),
    )  # fmt: skip


def coefficients(beta: Floats, halves: int) -> Floats:
    """Of samples: the sum of their variables."""
    return np.asarray(beta.reshape(halves, -1).sum(axis=0))


def scores(problem: One, f: Floats) -> Floats:
    return problem.center - np.resize(f, len(problem.center))


def extremes(problem: One, beta: Floats, f: Floats) -> tuple[Floats, Floats]:
    """By group: the largest score that can rise, the smallest that can fall; ∓∞ if nobody can."""
    score, sets = scores(problem, f), max(1, len(problem.target))
    group = problem.of if sets > 1 else np.zeros(len(score), np.int8)
    top = [score[(group == g) & (beta < problem.hi)].max(initial=-np.inf) for g in range(sets)]
    bottom = [score[(group == g) & (beta > problem.lo)].min(initial=np.inf) for g in range(sets)]
    return np.array(top), np.array(bottom)


def violation(problem: One, beta: Floats, f: Floats) -> float:
    top, bottom = extremes(problem, beta, f)
    if not problem.target:
        return float(max(0.0, top[0], -bottom[0]))
    with np.errstate(invalid="ignore"):
        return float(np.max(np.where(np.isfinite(top) & np.isfinite(bottom), top - bottom, 0.0), initial=0.0))


def judged(problem: One, beta: Floats, f: Floats) -> Floats:
    """Dual, gap, violation, Σ|β|, Σβ²; by group its multiplier, what its sum misses its target by, Σ|β|."""
    score, groups = scores(problem, f), len(problem.target)
    top, bottom = extremes(problem, beta, f)
    level, off, mass = np.zeros(max(1, groups)), [], []
    for g in range(groups):
        mine = problem.of == g
        free = mine & (beta > problem.lo) & (beta < problem.hi)
        ends = [x for x in (top[g], bottom[g]) if np.isfinite(x)]
        level[g] = math.fsum(score[free]) / free.sum() if free.any() else sum(ends) / max(1, len(ends))
        off.append(abs(math.fsum([*beta[mine], -problem.target[g]])))
        mass.append(math.fsum(np.abs(beta[mine])))
    over = score - (level[problem.of] if groups else 0.0)
    dual = math.fsum((problem.center - 0.5 * np.resize(f, len(beta))) * beta)
    gap = math.fsum(np.where(over > 0, (problem.hi - beta) * over, (problem.lo - beta) * over))
    worst = violation(problem, beta, f)
    return np.array([dual, gap, worst, np.abs(beta).sum(), (beta**2).sum(), *level[:groups], *off, *mass])
