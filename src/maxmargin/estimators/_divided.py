"""What the divide and conquer machines share: parameters, the plan of levels, the run, and prediction by clusters."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from maxmargin.divide.early import Committee, Expansion, Router, trust_of
from maxmargin.divide.levels import DivideAndConquer
from maxmargin.divide.model import TABLE, DivideResult, Kept, Plan, Problem
from maxmargin.divide.progress import progress_bar
from maxmargin.estimators._base import check_choice, check_flags, check_number, check_seed, require_fitted
from maxmargin.estimators._checkpoints import HashOrder
from maxmargin.estimators._kernel import KernelMachine, check_C
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._prediction import WORTH_THREADS, remembered, row_blocks
from maxmargin.estimators._setup import Setup
from maxmargin.runtime import Control, Result, run, thread_count

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LEVELS = 4  # the paper's: 256 clusters at the bottom for k = 4
_SMALLEST = 100  # samples per bottom cluster below which there are fewer levels
_SMALLEST_EXACT = 1000  # the same on the way to the exact solution: smaller problems gain nothing by being divided
EARLY_CLUSTERS = 64  # the paper's DC-SVM (early)


class Stages:
    """Where a run of divide and conquer is, for a checkpoint's file and back."""

    def __init__(self, order: HashOrder, chosen: list[IntArray], regression: bool) -> None:
        self._order, self._chosen, self._snapshots = order, chosen, order.of(chosen, 2 if regression else 1)

    def stored(self, kept: Kept) -> dict[str, Any]:
        return {
            "seed": kept.seed, "table": kept.table, "level": kept.level, "population": self._order.ids(kept.population),
            "stage": kept.stage,
            **{name: self._snapshots.stored([{"alpha": alpha} for alpha in getattr(kept, name)])
               for name in ("finished", "begun")},
        }  # fmt: skip

    def restored(self, state: dict[str, Any]) -> Kept:
        finished, begun = (
            [mine["alpha"] for mine in self._snapshots.restored(state[name]) if mine] for name in ("finished", "begun")
        )
        table, level, stage, ids = state["table"], int(state["level"]), state["stage"], state["population"]
        levels = table[table["stage"] == "level"]["level"].tolist()
        every = {len(alphas) for alphas, there in ((finished, level > 0), (begun, stage != "")) if there}
        good = table.dtype == TABLE and every <= {len(self._chosen)} and stage in ("", "level", "refine", "whole")
        good = good and (level == 0 or len(ids) > 0)
        if not good or level not in (0, *levels) or not ((ids >= 0) & (ids < len(self._order.rank))).all():
            raise ValueError("it does not hold what its own description says")
        return Kept(int(state["seed"]), table, level, self._order.samples(ids), finished, stage, begun)


class Divided(KernelMachine):
    """Parameters, the run, and prediction: what classification and regression share."""

    k: int
    levels: int | None
    stop_level: int
    early: bool
    predict_with: str
    sample_size: int
    random_state: Any
    C: float
    warm_start = False
    _division: Any = None  # clusters that are given (selection/clusters.py), for the lowest level

    levels_: NDArray[Any]
    level_: int
    level_objective_: float
    level_gap_: float
    level_violation_: float
    support_cluster_: IntArray
    cluster_intercept_: FloatArray

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_C(self.C)
        check_seed(self.random_state)
        check_number("k", self.k, low=1, closed="left", integer=True, remedy="clusters per cluster of the level above")
        check_number("levels", self.levels, low=0, closed="left", integer=True, optional=True)
        check_number("stop_level", self.stop_level, low=0, closed="left", integer=True, remedy="0 solves the whole problem")
        check_number("sample_size", self.sample_size, low=2, closed="left", integer=True)
        check_choice("predict_with", self.predict_with, ["early", "all", "bcm"])
        if self.levels is not None and self.stop_level > self.levels:
            raise ValueError(f"stop_level={self.stop_level} is below the bottom: levels={self.levels}, so give at most that")
        check_flags(self, "early")
        if self.early and self.levels == 0:
            raise ValueError("early=True stops at a level, but levels=0 has none: give at least 1, or None for the usual")
        if self.early and self.stop_level:
            raise ValueError(f"early=True chooses the level itself: leave stop_level={self.stop_level} at 0, or early=False")

    def _plan(self, n: int, control: Control) -> Plan:
        """Levels for n samples: the paper's unless given, fewer when the bottom clusters would be tiny."""
        k, stop = int(self.k), int(self.stop_level)  # k^levels would overflow a NumPy integer
        if self.early:
            stop = 1 if k == 1 else max(1, round(np.log(EARLY_CLUSTERS) / np.log(k)))
        levels = None if self.levels is None else int(self.levels)
        if levels is None:
            levels = stop if self.early else max(_LEVELS, stop)
            smallest = _SMALLEST if stop > 0 else _SMALLEST_EXACT
            while levels > 0 and n < smallest * k**levels:
                levels -= 1
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        stop, size = min(stop, levels), int(self.sample_size)
        plan = Plan(k, levels, stop, size, seed, max_iter=control.max_iter, deadline=control.deadline)
        return replace(plan, look=bool(self.early))

    def _setup(self, data: Labelled) -> Setup:
        return Setup(self, data)

    def _run(self, setup: Setup, problems: Sequence[Problem], plan: Plan) -> DivideAndConquer:
        given = None if self._division is None else self._division.partition(setup.rows)
        return DivideAndConquer(problems, setup.kernel_data(), setup.options, plan, given)

    def _divide(self, setup: Setup, problems: Sequence[Problem], control: Control) -> DivideResult:
        plan = replace(self._plan(len(setup.rows.index), control), order=setup.hash_order.everyone)
        seed = int(self.random_state) if isinstance(self.random_state, numbers.Integral) else None
        checkpoint = self._checkpoint(setup, random_state=seed)
        stages = Stages(setup.hash_order, [problem.chosen for problem in problems], isinstance(self, RegressorMixin))
        kept = checkpoint.recalled(stages.restored)
        if kept is not None:
            plan = replace(plan, kept=kept, seed=kept.seed)
        solver = self._run(setup, problems, plan)
        control = checkpoint.watched(control, stages.stored)
        with progress_bar(control.verbose, control.title) as show:

            def watch(row: dict[str, float]) -> Any:
                show(row)
                return control.callback is not None and control.callback(row)

            # max_iter limits each subproblem's solver, not the number of turns here.
            return run(solver, replace(control, max_iter=-1, verbose=False, callback=watch))

    def _level_attributes(
        self, setup: Setup, X: Any, support: IntArray, problems: Sequence[Problem], result: DivideResult
    ) -> dict[str, Any]:
        """What prediction by clusters needs, and the report on the levels."""
        model, rows = result.model, setup.rows
        router, label = None, np.zeros(len(rows.index), np.int64)
        if model.partition is not None:
            label = model.partition.label
            kept = model.partition.centers.sampled()
            vectors = None if setup.kernel.name == "precomputed" else X[rows.index[kept]]
            centers = model.partition.centers.renumbered(kept)
            router = Router(centers, model.partition.kernel, np.dtype(setup.dtype).name, vectors, rows.index[kept])
        sample = np.zeros(X.shape[0], np.int64)
        sample[rows.member] = rows.owner
        cluster = label[sample[support]]
        regression = isinstance(self, RegressorMixin)
        trust, prior = trust_of(model, problems, regression)
        known = model.certificate
        return {
            "levels_": result.levels,
            "level_": model.level,
            "level_objective_": known.objective,
            "level_gap_": known.gap,
            "level_violation_": known.violation,
            "fit_status_": int(not result.status.done),
            "support_cluster_": cluster,
            "cluster_intercept_": np.where(np.isnan(model.constant), model.intercept, model.constant),
            "_committee": Committee(router, cluster, model.intercept, model.constant, trust, prior, regression),
        }

    def _mean_intercept(self, problems: Sequence[Problem], result: DivideResult) -> FloatArray:
        """One intercept per problem: its cluster's, weighted by size, where there are several."""
        model = result.model
        if model.partition is None:
            return np.asarray(model.intercept[0])
        means = []
        for p, problem in enumerate(problems):
            size = np.bincount(model.partition.label[problem.chosen], minlength=len(model.intercept))
            means.append(float(size @ model.intercept[:, p]) / size.sum())
        return np.array(means)

    def _advice(self, result: Result) -> str:
        assert isinstance(result, DivideResult)
        done = ", ".join(f"{row['stage']} {row['level']}" for row in result.levels) or "none"
        where = f"The model is of level {result.model.level}; finished: {done}."
        if not np.isnan(result.gap):
            return f"{super()._advice(result)} {where}"
        known = result.model.certificate  # the whole problem's is not known: say what is
        level = replace(result, objective=known.objective, gap=known.gap, violation=known.violation)
        return f"{super()._advice(level)} {where} These numbers are its own: its kernel is 0 between clusters."

    def _linear_coef(self) -> Any:
        if self._committee.router is not None and self.predict_with != "all":
            raise AttributeError(
                f"coef_ does not exist at level_={self.level_} with predict_with={self.predict_with!r}: each cluster has "
                f"weights of its own; predict_with='all' adds them up"
            )
        return super()._linear_coef()

    def _decisions(self, X: Any, coef: FloatArray) -> FloatArray:
        """Decision values of each problem for the rows of X, by `predict_with`; rows × problems."""
        require_fitted(self)
        check_choice("predict_with", self.predict_with, ["early", "all", "bcm"])
        committee: Committee = self._committee
        if committee.router is None or self.predict_with == "all":
            one = coef is self._dual and len(coef) == 1
            values = self._decision_values(X, self.intercept_) if one else self._kernel_sums(X, coef) + self.intercept_
            if committee.router is not None:
                return np.asarray(values)
            return np.where(np.isnan(committee.constant), values, committee.constant)  # of what was not solved at all
        kernel = self._fitted_kernel
        precomputed = kernel.name == "precomputed"
        x = self._given_values(X) if precomputed else self._validated(X, reset=False)
        small = x.shape[0] * self.support_vectors_.size < WORTH_THREADS
        threads = 1 if small else thread_count(self.n_jobs)
        parts = (kernel, self.support_vectors_, self.support_, self._precision, committee)
        ready = remembered(self, parts, lambda: committee.ready(Expansion(*parts[:4], threads), threads))
        rule = committee.early if self.predict_with == "early" else committee.bcm
        if precomputed:
            return rule(x, ready, coef, threads)
        vectors = committee.router.vectors
        out = np.empty((x.shape[0], len(coef)))
        for at, some in row_blocks(x, sp.issparse(vectors), vectors.dtype):
            out[at] = rule(some, ready, coef, threads)
        return out
