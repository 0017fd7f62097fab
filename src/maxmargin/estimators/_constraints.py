"""Which values each parameter may have, as scikit-learn writes it down (`_parameter_constraints`), for tools that read that.

The checks themselves are in each machine's `_check_parameters`: their errors name the remedy. A test holds the two together.
"""

from __future__ import annotations

from numbers import Integral, Real
from pathlib import Path
from typing import Any

from sklearn.utils._param_validation import Interval, Options, StrOptions

from maxmargin.budget.maintenance import MAINTENANCE, MERGE_SEARCH
from maxmargin.budget.merging import LARGEST_GRID, TABLES
from maxmargin.linear import SOLVERS
from maxmargin.problem.kernels import NAMES

LARGEST_C = 1e30  # of BudgetSVC, times a weight: coefficients are up to samples times that, products of two must be numbers

Constraints = dict[str, list[Any]]


def positive(kind: Any = Real, *, inf: bool = False) -> Interval:
    return Interval(kind, 0, None, closed="right" if inf else "neither")


def whole(least: int) -> Interval:
    return Interval(Integral, least, None, closed="left")


RUN: Constraints = {
    "verbose": ["verbose"],
    "max_iter": [whole(1), Options(Integral, {-1})],
    "max_time": [positive(), None],
    "n_jobs": [whole(1), Interval(Integral, None, -1, closed="right"), None],
    "callback": [callable, None],
}
CHECKPOINT: Constraints = {
    "checkpoint": [str, Path, None],
    "checkpoint_every": [Interval(Real, 0, None, closed="left")],
}
KERNEL: Constraints = RUN | CHECKPOINT | {
    "kernel": [StrOptions(set(NAMES)), callable],
    "degree": [whole(0)],
    "gamma": [StrOptions({"scale", "auto"}), positive()],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "shrinking": ["boolean"],
    "tol": [positive()],
    "cache_size": [positive()],
    "working_set_size": [whole(2), None],
    "inner_solver": [StrOptions({"smo", "ipm", "gpm"})],
}
EXACT: Constraints = KERNEL | {"warm_start": ["boolean"]}
CLASSES: Constraints = {
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "decision_function_shape": [StrOptions({"ovr", "ovo"})],
    "break_ties": ["boolean"],
    "random_state": ["random_state"],
}
PAIRS: Constraints = EXACT | CLASSES | {"probability": ["boolean", StrOptions({"deprecated"})]}
C: Constraints = {"C": [positive(inf=True)]}
NU: Constraints = {"nu": [Interval(Real, 0, 1, closed="right")]}
EPSILON: Constraints = {"epsilon": [Interval(Real, 0, None, closed="left")]}
INTERCEPT: Constraints = {"fit_intercept": ["boolean"]}
DIVIDED: Constraints = KERNEL | C | INTERCEPT | {
    "k": [whole(1)],
    "levels": [whole(0), None],
    "stop_level": [whole(0)],
    "early": ["boolean"],
    "predict_with": [StrOptions({"early", "all", "bcm"})],
    "sample_size": [whole(2)],
    "random_state": ["random_state"],
}
LINEAR: Constraints = RUN | CHECKPOINT | INTERCEPT | {
    "C": [positive()],
    "tol": [Interval(Real, 0, 1, closed="neither")],
    "dual": [StrOptions({"auto"}), "boolean"],
    "intercept_scaling": [positive(), None],
    "random_state": ["random_state"],
    "solver": [StrOptions(set(SOLVERS))],
    "warm_start": ["boolean"],
}
BUDGET: Constraints = {name: RUN[name] for name in ("verbose", "max_time", "n_jobs", "callback")} | INTERCEPT | {
    "C": [Interval(Real, 1 / LARGEST_C, LARGEST_C, closed="both")],
    "budget": [whole(1)],
    "gamma": KERNEL["gamma"],
    "epochs": [whole(1)],
    "maintenance": [StrOptions(set(MAINTENANCE))],
    "merge_search": [StrOptions(set(MERGE_SEARCH))],
    "merge_table": [StrOptions(set(TABLES))],
    "grid_size": [Interval(Integral, 2, LARGEST_GRID, closed="both")],
    "refit_memory": [positive()],
    "stream_size": [whole(1), None],
    "class_weight": CLASSES["class_weight"],
    "random_state": ["random_state"],
    **{flag: ["boolean"] for flag in ("drop_useless", "averaging", "refit", "shuffle", "audit")},
}
