"""What each machine is made of, and whether what was read makes sense: shapes, types, ranges.

The core trusts the arrays of a fitted machine, so a file's are judged here before it sees them. A new fitted attribute
needs a line here (tests/unit/test_models_native.py says which is missing): how it is checked, once read. Older files do
not have it: it is optional, or `later` says what they mean.

Shapes are letters (checks.py): d features, s support vectors, c classes, p problems
(pairs of classes, or classes), r rows of coefficients, k clusters, m sampled points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.budget.maintenance import MAINTENANCE, MERGE_SEARCH
from maxmargin.budget.merging import LARGEST_GRID, TABLES
from maxmargin.budget.model import Options
from maxmargin.data.container import ModelFileError
from maxmargin.divide.clustering import Centers
from maxmargin.divide.early import Committee, Router
from maxmargin.estimators.budget import BudgetSVC
from maxmargin.estimators.dc import DCSVC, DCSVR
from maxmargin.estimators.linear import LinearSVC, LinearSVR
from maxmargin.estimators.oneclass import OneClassSVM
from maxmargin.estimators.svc import SVC, NuSVC
from maxmargin.estimators.svr import SVR, NuSVR
from maxmargin.linear.bundle import Cuts
from maxmargin.models.checks import FLOATS, INTEGERS, PRECISIONS, Check
from maxmargin.problem.kernels import NAMES, Kernel

# ---- the report: the same for all ----------------------------------------------------------------------------------


def _report(c: Check) -> None:
    s = c.state
    c.size["d"] = c.whole("n_features_in_", s["n_features_in_"], 1)
    if "feature_names_in_" in s:
        names = s["feature_names_in_"]
        c.array("feature_names_in_", names, ("|O",), "d")
        c.require(all(isinstance(name, str) for name in names), "feature_names_in_", "has others than strings")
    c.require(isinstance(s["status_"], str), "status_", "is not a string")
    for name in ("objective_", "dual_gap_", "kkt_violation_", "lower_bound_", "_gamma", "offset_"):
        if name in s:
            c.number(name, s[name])
    if "trace_" in s:
        trace = s["trace_"]
        c.require(isinstance(trace, np.ndarray) and trace.ndim == 1, "trace_", "is not a table")
    if "timings_" in s:
        c.require(isinstance(s["timings_"], dict), "timings_", "is not a dict")


def _classes(c: Check) -> int:
    classes = c.state["classes_"]
    c.require(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_", "is not a vector")
    c.size["c"] = len(classes)
    c.require(len(classes) >= 2, "classes_", "has less than two classes")
    if "class_weight_" in c.state:
        c.array("class_weight_", c.state["class_weight_"], ("<f8",), "c")
    return len(classes)


# ---- kernel machines ---------------------------------------------------------------------------------------------


def _kernel(c: Check, name: str, kernel: Any) -> Kernel:
    c.require(isinstance(kernel, Kernel), name, "is not a kernel")
    c.choice(name, kernel.name, NAMES)
    c.require(kernel.function is None, name, "is a function")
    c.number(f"{name}.gamma", kernel.gamma, positive=True)
    c.number(f"{name}.coef0", kernel.coef0)
    c.require(np.isfinite(kernel.coef0), f"{name}.coef0", "is not finite")
    c.whole(f"{name}.degree", kernel.degree, 0, 2**31 - 1)
    return kernel  # type: ignore[no-any-return]


def _expansion(c: Check) -> None:
    """Support vectors, coefficients and kernel: what Σ coef K(sv, x) + b needs."""
    s = c.state
    kernel = _kernel(c, "_fitted_kernel", s["_fitted_kernel"])
    c.choice("_precision", s["_precision"], PRECISIONS)
    c.array("dual_coef_", s["dual_coef_"], ("<f8",), "r", "s")
    c.array("intercept_", s["intercept_"], ("<f8",), "p")
    counts = c.array("n_support_", s["n_support_"], INTEGERS, "parts")
    whole = (counts >= 0).all() and sum(counts.tolist()) == c.size["s"]
    c.require(whole, "n_support_", "does not add up to the support vectors")
    if kernel.name == "precomputed":
        c.indices("support_", s["support_"], "s", c.size["d"])
        c.array("support_vectors_", s["support_vectors_"], FLOATS, 0, 0)
    else:
        c.indices("support_", s["support_"], "s", 2**62, low=-1)  # −1: not known
        c.samples("support_vectors_", s["support_vectors_"], "s")
    if "fit_status_" in s:
        c.whole("fit_status_", s["fit_status_"], 0, 1)
    if "shape_fit_" in s:
        shape = s["shape_fit_"]
        c.require(isinstance(shape, tuple) and len(shape) == 2, "shape_fit_", "is not a pair")
        for size in shape:
            c.whole("shape_fit_", size, 0)


def _last(c: Check, *alphas: str, factor: float) -> None:
    """What a warm start goes on from: `factor` alphas for each sample."""
    last = c.state.get("_last")
    if last is None:
        return
    c.require(isinstance(last, dict) and {"index", *alphas} <= set(last), "_last", "is not the end of a fit")
    index = c.array("_last.index", last["index"], ("<i8",), "samples")
    found = last[alphas[0]]
    parts = found if isinstance(found, list) else [found]
    for part in parts:
        c.array("_last.alpha", part, ("<f8",), len(part) if isinstance(part, np.ndarray) else 0)
    c.same("_last.alpha", sum(map(len, parts)), int(factor * len(index)))
    if "unit" in last:
        c.number("_last.unit", last["unit"], positive=True)


def _pairs(c: Check) -> None:
    classes = _classes(c)
    c.size |= {"r": classes - 1, "p": classes * (classes - 1) // 2, "parts": classes}
    _expansion(c)
    last = c.state.get("_last")
    if isinstance(last, dict) and "alphas" in last:  # the first files: in a unit that they do not name; the next fit is cold
        del c.state["_last"]
    _last(c, "shares", factor=classes - 1)
    if "margin_" in c.state:
        c.array("margin_", c.state["margin_"], ("<f8",), "p")
    for name in ("_probA", "_probB"):
        if name in c.state:
            c.array(name, c.state[name], ("<f8",), "p")
    if "_vote_order" in c.state:
        order = c.indices("_vote_order", c.state["_vote_order"], "c", classes)
        c.same("_vote_order", len(np.unique(order)), classes)


def _regressor(c: Check) -> None:
    c.size |= {"r": 1, "p": 1, "parts": 1}
    _expansion(c)
    _last(c, "alpha", "unit", factor=2)
    if "epsilon_" in c.state:
        c.number("epsilon_", c.state["epsilon_"])


def _one_class(c: Check) -> None:
    c.size |= {"r": 1, "p": 1, "parts": 1}
    _expansion(c)
    _last(c, "alpha", factor=1)


# ---- divide and conquer ------------------------------------------------------------------------------------------


def _divided_classifier(c: Check) -> None:
    classes = _classes(c)
    c.size["parts"] = classes
    coef = c.state["dual_coef_"]
    if classes > 2 and isinstance(coef, np.ndarray) and len(coef) == classes:  # one against the rest
        c.size |= {"r": classes, "p": classes}
    else:
        c.size |= {"r": classes - 1, "p": classes * (classes - 1) // 2}
    _expansion(c)
    _divided(c)


def _divided_regressor(c: Check) -> None:
    c.size |= {"r": 1, "p": 1, "parts": 1}
    _expansion(c)
    _divided(c)


def _divided(c: Check) -> None:
    s = c.state
    committee = s["_committee"]
    c.require(isinstance(committee, Committee), "_committee", "is not a committee")
    c.require(isinstance(s["levels_"], np.ndarray) and s["levels_"].ndim == 1, "levels_", "is not a table")
    c.whole("level_", s["level_"], 0)
    for name in ("level_objective_", "level_gap_", "level_violation_"):
        c.number(name, s[name])
    c.array("cluster intercepts", committee.intercept, ("<f8",), "k", "p")
    c.array("cluster_intercept_", s["cluster_intercept_"], ("<f8",), "k", "p")
    c.array("trust", committee.trust, ("<f8",), "k", "p")
    c.array("prior", committee.prior, ("<f8",), "p")
    c.require(isinstance(committee.regression, bool), "_committee.regression", "is not True or False")
    for name, value in (("support_cluster_", s["support_cluster_"]), ("_committee.cluster", committee.cluster)):
        c.indices(name, value, "s", c.size["k"])
    c.array("constants", committee.constant, ("<f8",), "k", "p", finite=False)
    if committee.router is None:
        c.same("cluster intercepts", c.size["k"], 1)
        return
    _router(c, committee.router)


def _router(c: Check, router: Any) -> None:
    c.require(isinstance(router, Router), "_committee.router", "is not a router")
    kernel = _kernel(c, "the router's kernel", router.kernel)
    c.require(kernel.name == c.state["_fitted_kernel"].name, "the router's kernel", "is another than the machine's")
    c.choice("the router's precision", router.precision, PRECISIONS)
    if kernel.name == "precomputed":
        c.require(router.vectors is None, "the router's vectors", "are there for a precomputed kernel")
        c.indices("the router's columns", router.columns, "m", c.size["d"])
    else:
        c.samples("the router's vectors", router.vectors, "m")
        c.array("the router's columns", router.columns, INTEGERS, "m")
    _centers(c, router.centers, depth=0)


def _centers(c: Check, centers: Any, depth: int) -> None:
    c.require(isinstance(centers, Centers) and depth < 64, "the centres", "are not a tree of centres")
    name = "the centres'"
    rows = c.array(f"{name} rows", centers.rows, ("<i8",), f"rows {id(centers)}")
    c.require(len(rows) and rows.min() >= 0 and rows.max() < c.size["m"], f"{name} rows", "are not sampled points")
    end = c.array(f"{name} ends", centers.end, ("<i8",), f"centres {id(centers)}")
    c.require(len(end) and end[0] > 0 and (np.diff(end) > 0).all() and end[-1] == len(rows), f"{name} ends", "do not ascend")
    c.array(f"{name} offsets", centers.offset, ("<f8",), f"centres {id(centers)}")
    number = c.indices(f"{name} numbers", centers.number, f"centres {id(centers)}", c.size["k"], low=-1)
    c.require(number.dtype == np.int64, f"{name} numbers", "are not of 64 bits")
    c.require(isinstance(centers.children, dict), f"{name} children", "are not a dict")
    split = set(np.flatnonzero(number < 0).tolist())
    c.require(set(centers.children) == split, f"{name} children", "are not those of the clusters that were split")
    for child in centers.children.values():
        _centers(c, child, depth + 1)


# ---- linear and budgeted machines --------------------------------------------------------------------------------


def _linear(c: Check) -> None:
    classes = _classes(c)
    c.size["r"] = 1 if classes == 2 else classes
    c.array("coef_", c.state["coef_"], ("<f8",), "r", "d")
    _linear_rest(c)


def _linear_regressor(c: Check) -> None:
    c.size["r"] = 1
    c.array("coef_", c.state["coef_"], ("<f8",), "d")
    _linear_rest(c)


def _linear_rest(c: Check) -> None:
    """Intercepts and what a warm start goes on from."""
    s = c.state
    c.array("intercept_", s["intercept_"], ("<f8",), "r")
    if s.get("_memory") is None:
        return
    memory = s["_memory"]
    c.require(isinstance(memory, tuple) and len(memory) == 2 and isinstance(memory[0], str), "_memory", "is not a pair")
    c.require(isinstance(memory[1], list), "_memory", "has no list of cuts")
    c.require(len(memory[1]) in (1, c.size["r"]), "_memory", "has not the cuts of every problem")
    for number, cuts in enumerate(memory[1]):
        _cuts(c, f"cuts {number}", cuts, len(memory[1]))


def _cuts(c: Check, name: str, cuts: Any, problems: int) -> None:
    c.require(isinstance(cuts, Cuts), name, "are not cuts")
    count, length = f"number of {name}", f"length of {name}"
    c.array(name, cuts.a, ("<f8",), count, length)
    numbers = c.array(f"{name}: numbers", cuts.numbers, ("<f8",), f"numbers of {name}", count)
    c.require(len(numbers) == 3 and (numbers[1:] >= 0).all(), f"{name}: numbers", "are not offset, mass ≥ 0 and drift ≥ 0")
    c.array(f"{name}: products", cuts.gram, ("<f8",), count, count)
    c.array(f"{name}: ages", cuts.idle, ("<i8",), count)
    joint = c.size["r"] if problems == 1 else 1
    c.require(c.size[length] in (joint * c.size["d"], joint * (c.size["d"] + 1)), name, "have another length")


def _budget(c: Check) -> None:
    s, classes = c.state, _classes(c)
    c.size["r"] = 1 if classes == 2 else classes
    c.array("dual_coef_", s["dual_coef_"], ("<f8",), "r", "s")
    c.array("intercept_", s["intercept_"], ("<f8",), "r")
    c.array("support_vectors_", s["support_vectors_"], FLOATS, "s", "d")
    c.number("gamma_", s["gamma_"], positive=True)
    for name in ("merging_", "_counters"):
        c.require(isinstance(s[name], dict), name, "is not a dict")
        for key, value in s[name].items():
            c.number(f"{name}[{key!r}]", value)
    refit = s["refit_"]
    known = {"rows", "coefficients", "kept"}
    c.require(isinstance(refit, dict) and (not refit or set(refit) == known), "refit_", "is not a report of a refit")
    if refit:
        c.whole("refit_['rows']", refit["rows"], 1)
        c.whole("refit_['coefficients']", refit["coefficients"], 1)
        c.require(isinstance(refit["kept"], bool), "refit_['kept']", "is not True or False")
    _options(c, s["_stream"])
    _budget_state(c, s["_state"], "<f8" if s["_stream"].double else "<f4")


def _options(c: Check, options: Any) -> None:
    c.require(isinstance(options, Options), "_stream", "is not a set of options")
    c.same("features", c.whole("features", options.features, 1), c.size["d"])
    c.same("outputs", c.whole("outputs", options.outputs, 1), c.size["r"])
    c.whole("budget", options.budget, 1)
    c.whole("visits", options.visits, 1)
    c.whole("grid_size", options.grid_size, 2, LARGEST_GRID)
    c.number("gamma", options.gamma, positive=True)
    c.number("C", options.C, positive=True)
    c.choice("maintenance", options.maintenance, MAINTENANCE)
    c.choice("merge_search", options.merge_search, MERGE_SEARCH)
    c.choice("merge_table", options.merge_table, TABLES)
    for name in ("drop_useless", "intercept", "averaging", "audit", "double"):
        c.require(isinstance(getattr(options, name), bool), name, "is not True or False")


def _budget_state(c: Check, state: Any, real: str) -> None:
    names = {"centres", "beta", "windows", "label", "born", "bias", "clock"}
    c.require(isinstance(state, dict) and set(state) == names, "_state", "is not the state of a stream")
    c.array("centres", state["centres"], (real,), "s", "d")
    c.array("beta", state["beta"], ("<f8",), "r", "s")
    c.array("windows", state["windows"], ("<f8",), 2 * c.size["r"], c.size["s"] + 1)
    c.indices("label", state["label"], "s", max(2, c.size["r"]))
    c.require(state["label"].dtype == np.int32, "label", "is not of 32 bits")
    c.array("born", state["born"], ("<i8",), "s")
    c.array("bias", state["bias"], ("<f8",), "r")
    c.array("clock", state["clock"], ("<f8",), 5)


# ---- machines ----------------------------------------------------------------------------------------------------

_REPORT = {"n_features_in_", "status_", "objective_", "dual_gap_"}
_MAYBE = {"feature_names_in_", "n_iter_", "trace_", "timings_"}
_SUPPORT = {"support_", "support_vectors_", "n_support_", "dual_coef_", "intercept_", "_fitted_kernel", "_precision"}
_OF_KERNEL = {"kkt_violation_", "fit_status_", "shape_fit_", "_gamma"}
_LEVELS = {"levels_", "level_", "level_objective_", "level_gap_", "level_violation_"}
_LEVELS |= {"support_cluster_", "cluster_intercept_", "_committee"}


class Machine:
    """A machine, the attributes it must and may have after a fit, and what they must satisfy.

    `later` are attributes that came after a version of the format, with what older files mean by not having them.
    """

    def __init__(
        self, kind: type, check: Callable[[Check], None], required: set[str], optional: set[str], **later: Any
    ) -> None:
        self.kind, self._check, self.later = kind, check, later
        self.required, self.optional = required | _REPORT | set(later), optional | _MAYBE

    def check(self, state: dict[str, Any]) -> None:
        """Raise ModelFileError unless `state` is that of a fitted machine."""
        missing, unknown = self.required - set(state), set(state) - self.required - self.optional
        if missing or unknown:
            raise ModelFileError(
                f"{self.kind.__name__}: attributes {sorted(missing)} are missing, {sorted(unknown)} unknown (they are "
                "somebody else's, or a newer maxmargin's)"
            )
        found = Check(state)
        _report(found)
        self._check(found)


_PAIRS = (_pairs, _SUPPORT | {"classes_"}, _OF_KERNEL | {"class_weight_", "_last", "_vote_order", "_probA", "_probB"})
_REGRESSOR = (_regressor, _SUPPORT, _OF_KERNEL | {"_last"})
MACHINES = {
    machine.kind.__name__: machine
    for machine in (
        Machine(SVC, *_PAIRS),
        Machine(NuSVC, _pairs, _PAIRS[1], _PAIRS[2] | {"margin_"}),
        Machine(SVR, *_REGRESSOR),
        Machine(NuSVR, _regressor, _SUPPORT, _REGRESSOR[2] | {"epsilon_"}),
        Machine(OneClassSVM, _one_class, _SUPPORT | {"offset_"}, _OF_KERNEL | {"_last"}),
        Machine(DCSVC, _divided_classifier, _SUPPORT | _LEVELS | {"classes_"}, _OF_KERNEL | {"class_weight_"}),
        Machine(DCSVR, _divided_regressor, _SUPPORT | _LEVELS, _OF_KERNEL),
        Machine(LinearSVC, _linear, {"coef_", "intercept_", "classes_"}, {"lower_bound_", "_memory"}),
        Machine(LinearSVR, _linear_regressor, {"coef_", "intercept_"}, {"lower_bound_", "_memory"}),
        Machine(
            BudgetSVC,
            _budget,
            {"support_vectors_", "dual_coef_", "intercept_", "classes_", "gamma_", "merging_"}
            | {"_state", "_counters", "_stream"},
            set(),
            refit_={},
        ),
    )
}
