"""From options to a machine: which engine, why, and what each option is called there."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import maxmargin
from maxmargin.cli.console import Console
from maxmargin.cli.samples import Samples

TYPES = ("svc", "nu-svc", "one-class", "svr", "nu-svr")  # LIBSVM's -s 0 … 4
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")  # LIBSVM's -t 0 … 4
MACHINES: dict[str, dict[str, Any]] = {
    "exact": {
        "svc": maxmargin.SVC, "nu-svc": maxmargin.NuSVC, "one-class": maxmargin.OneClassSVM, "svr": maxmargin.SVR,
        "nu-svr": maxmargin.NuSVR,
    },
    "dc": {"svc": maxmargin.DCSVC, "svr": maxmargin.DCSVR},
    "linear": {"svc": maxmargin.LinearSVC, "svr": maxmargin.LinearSVR},
    "budget": {"svc": maxmargin.BudgetSVC},
}  # fmt: skip
# option: (its name on the command line, parameter of the machine). LIBSVM ignores those that a machine has not.
LIBSVM = {
    "C": "-c", "gamma": "-g", "degree": "-d", "coef0": "-r", "nu": "-n", "epsilon": "-p", "tol": "-e", "cache_size": "-m",
    "shrinking": "-h", "class_weight": "-wi",
}  # fmt: skip
OWN = {"early": "--early", "budget": "--budget", "epochs": "--epochs", "max_iter": "--max-iter", "random_state": "--seed"}
MANY_ROWS = 100_000  # from which on divide and conquer is the better way to the same solution (docs/index.md)
WIDE, THIN = 10_000, 0.01  # features and density that text has, for which a linear kernel is usual


def _kernel(word: str) -> str:
    """A kernel by LIBSVM's number or by name."""
    if word.isdigit() and int(word) < len(KERNELS):
        return KERNELS[int(word)]
    if word in (*KERNELS, "laplacian"):
        return word
    raise argparse.ArgumentTypeError(f"{word!r} is no kernel: 0 to 4, or {', '.join(KERNELS)}, laplacian")


def _type(word: str) -> str:
    if word.isdigit() and int(word) < len(TYPES):
        return TYPES[int(word)]
    if word in TYPES:
        return word
    raise argparse.ArgumentTypeError(f"{word!r} is no machine: 0 to 4, or {', '.join(TYPES)}")


def _gamma(word: str) -> Any:
    return word if word in ("scale", "auto") else _number(word)


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is no number") from None


def _weight(word: str) -> tuple[str, float]:
    label, _, weight = word.rpartition(":")
    return label, _number(weight)


def add_options(parser: argparse.ArgumentParser, engine: str = "auto") -> None:
    """What to train and how. Defaults are svm-train's."""
    machine = parser.add_argument_group("machine (LIBSVM's letters and defaults)")
    add = machine.add_argument
    add("-s", "--machine", type=_type, default="svc", metavar="TYPE",
        help="0-4 or svc, nu-svc, one-class, svr, nu-svr (svc)")
    add("-t", "--kernel", type=_kernel, default="rbf", metavar="KERNEL",
        help="0-4 or linear, poly, rbf, sigmoid, precomputed; laplacian (rbf)")
    add("-c", "--cost", dest="C", type=float, metavar="C", help="weight of the losses (1)")
    add("-g", "--gamma", type=_gamma, default="auto", help="number; auto is 1/features, scale 1/(features·variance) (auto)")
    add("-d", "--degree", type=int, help="of the polynomial kernel (3)")
    add("-r", "--coef0", type=float, help="of polynomial and sigmoid kernels (0)")
    add("-n", "--nu", type=float, help="of nu-svc, one-class and nu-svr (0.5)")
    add("-p", "--epsilon", type=float, help="half width of the tube of svr (0.1)")
    add("-wi", dest="_wi", metavar="WEIGHT", help="-w1 5: C of class 1 is 5·C; may be repeated", default=None)
    add("--weight", type=_weight, action="append", metavar="CLASS:W", help="the same, for any label")
    run = parser.add_argument_group("solver")
    add = run.add_argument
    add("--engine", choices=("auto", *MACHINES), default=engine, help=f"default: {engine}; auto says what it chose and why")
    add("-e", "--tol", type=float, help="stopping tolerance (0.001; the linear engine's is a relative gap, 0.0001)")
    add("-m", "--cache-size", type=float, metavar="MB", help="memory for kernel rows (200)")
    add("--shrinking", type=int, choices=(0, 1), help="-h 0 and -h 1 are the same (1)")
    add("-b", "--probabilities", dest="probability", type=int, choices=(0, 1), help="svc, nu-svc: five more fits (0)")
    add("--max-time", type=float, metavar="S", help="seconds after which the best model so far is written")
    add("--max-iter", type=int, metavar="N", help="turns after which the best model so far is written")
    add("--early", action="store_true", default=None, help="dc: stop at a level; faster, nearly as accurate")
    add("--budget", type=int, metavar="N", help="budget: largest number of support vectors (500)")
    add("--epochs", type=int, metavar="N", help="budget: passes over the data (5)")
    add("--seed", dest="random_state", type=int, help="of dc, linear, budget, and of the folds (0)")
    add("--jobs", type=int, metavar="N", help="threads (all cores)")


def chosen(args: argparse.Namespace, samples: Samples, format: str = "maxmargin") -> tuple[str, str]:
    """The engine and why. What was asked for is only checked."""
    kind, kernel = args.machine, args.kernel
    if args.engine != "auto":
        check(args.engine, kind, kernel, format)
        return args.engine, "asked for"
    rows, features = samples.X.shape
    size = f"{rows:,} rows × {features:,} features, {samples.density:.0%} not zero"
    if format == "libsvm":
        return "exact", f"{size}; only it has models in LIBSVM's format"
    if kind in MACHINES["linear"] and kernel == "linear":
        rest = _rest(samples) if kind == "svc" else ""
        return "linear", f"{size}; a linear kernel, so the weights are found directly{rest}"
    if format == "liblinear":
        raise ValueError("LIBLINEAR's format is for svc and svr with a linear kernel (-t 0): choose another format")
    if kind in MACHINES["dc"] and kernel in ("rbf", "laplacian") and rows > MANY_ROWS:
        return "dc", f"{size}; above {MANY_ROWS:,} rows divide and conquer reaches the same solution sooner"
    why = f"{size}; {kind} with kernel {kernel}" + (f", at most {MANY_ROWS:,} rows" if rows <= MANY_ROWS else "")
    if features > WIDE and samples.density < THIN and kernel == "rbf":
        why += ". Data as wide and sparse as text rarely need more than a linear kernel: try -t 0"
    return "exact", why


def _rest(samples: Samples) -> str:
    classes = len(np.unique(samples.y))
    return f"; {classes} classes, one against the rest (--engine exact: one against one)" if classes > 2 else ""


def check(engine: str, kind: str, kernel: str, format: str) -> None:
    """Whether an engine has such a machine, and its models such a format."""
    if kind not in MACHINES[engine]:
        raise ValueError(f"--engine {engine} has no {kind}, only {', '.join(MACHINES[engine])}: use --engine exact")
    if engine == "linear" and kernel != "linear":
        raise ValueError(f"--engine linear has no {kernel} kernel: say -t 0 (--kernel linear), or use another engine")
    if engine == "budget" and kernel != "rbf":
        raise ValueError(f"--engine budget has the rbf kernel only, not {kernel}: use --engine exact")
    if format == "libsvm" and engine != "exact":
        raise ValueError(f"LIBSVM's format has no place for models of --engine {engine}: use --engine exact")
    if format == "liblinear" and engine != "linear":
        raise ValueError(f"LIBLINEAR's format has no place for models of --engine {engine}: use --engine linear")


def built(args: argparse.Namespace, engine: str, samples: Samples, console: Console) -> Any:
    """The machine, with all options that it has. One of LIBSVM's that it has not is ignored, with a note."""
    machine = MACHINES[engine][args.machine]
    known = machine._get_param_names()
    given: dict[str, Any] = {name: getattr(args, name) for name in (*LIBSVM, *OWN) if name != "class_weight"}
    given["shrinking"] = None if given["shrinking"] is None else bool(given["shrinking"])
    given["class_weight"] = class_weight(args.weight, samples.y, console) if args.weight else None
    if args.machine == "svr" and args.epsilon is None:
        given["epsilon"] = 0.1  # svm-train's; LinearSVR has LIBLINEAR's, 0
    if args.probability:
        if "probability" not in known:
            raise ValueError(f"-b 1: {machine.__name__} has no probabilities, only svc and nu-svc of --engine exact have")
        given["probability"] = True
    given = {name: value for name, value in given.items() if value is not None}
    for name in sorted(set(given) - set(known)):
        if name in OWN and name != "random_state":
            raise ValueError(f"{OWN[name]} has no meaning for {machine.__name__} (--engine {engine}): leave it out")
        if name in LIBSVM and name != "gamma":
            console.note(f"note: {LIBSVM[name]} has no meaning for {machine.__name__}: ignored")
        given.pop(name)
    fixed = {"kernel": args.kernel, "max_time": args.max_time, "n_jobs": args.jobs, "verbose": not console.quiet}
    if engine in ("dc", "budget"):
        fixed["fit_intercept"] = True  # as the exact machines have
    if engine == "linear":  # LIBSVM's problem with a linear kernel, which is not scikit-learn's LinearSVC
        fixed |= {"loss": "hinge" if args.machine == "svc" else "epsilon_insensitive", "intercept_scaling": None}
        given = {"tol": 1e-4, "max_iter": -1, **given}
    return machine(**given, **{name: value for name, value in fixed.items() if name in known})


def class_weight(pairs: list[tuple[str, float]], y: Any, console: Console) -> dict[Any, float]:
    """{class: weight}, the classes being those of y; one that is not there is told and left out, as by LIBSVM."""
    classes = {str(label): label for label in np.unique(y).tolist()}
    out = {}
    for label, weight in pairs:
        if label.lstrip("+") in classes:
            out[classes[label.lstrip("+")]] = weight
        else:
            console.note(f"warning: class {label} of -w{label} is not in the data")
    return out
