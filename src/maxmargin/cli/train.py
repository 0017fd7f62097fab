"""`maxmargin train`: a data file in, a model file out."""

from __future__ import annotations

import argparse
import math
import os
import shlex
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin
from maxmargin.cli import cv, engines, larger, samples
from maxmargin.cli.console import Console, code_of
from maxmargin.estimators._summary import relative_gap
from maxmargin.runtime import Status, deferred_interrupt

FEW_ROWS = 2000  # whose certificate plain NumPy computes in seconds

EXAMPLES = (
    ("maxmargin train train.svm", "an RBF machine into train.svm.model"),
    ("maxmargin train -c 10 -g 0.5 --max-time 60 train.svm model.mxm", "the best model of a minute, and its gap"),
    ("maxmargin train -t 0 --json train.svm linear.mxm", "a linear machine, the outcome as JSON"),
    ("maxmargin train -c 10 --report report.html train.svm model.mxm", "and a page to look at"),
    ("maxmargin train -s 3 -c 10 --label price prices.csv prices.mxm", "regression from a table"),
    ("maxmargin train -s 0 -t 2 -c 10 -w1 2 -w-1 1 -q --format libsvm train.svm for-svm-predict.model", "for svm-predict"),
    ("maxmargin train -c 10 --checkpoint run.ckpt train.svm model.mxm", "killed, the same command goes on where it was"),
    ("maxmargin train -v 5 -c 10 train.svm", "five-fold cross-validation, no model"),
)


def add_options(parser: argparse.ArgumentParser, like_libsvm: bool = False) -> None:
    parser.add_argument("data", metavar="DATA", help="file of samples; - is standard input")
    parser.add_argument("model", metavar="MODEL", nargs="?", help="file to write; default: DATA.model in this folder")
    engines.add_options(parser, "exact" if like_libsvm else "auto")
    parser.add_argument("-v", "--folds", type=int, metavar="N", help="cross-validation with N folds instead of a model")
    parser.add_argument("--format", choices=("maxmargin", "libsvm", "liblinear"),
                        default="libsvm" if like_libsvm else "maxmargin",
                        help="of MODEL; only maxmargin's own holds status and gap (default: %(default)s)")
    parser.add_argument("--checkpoint", metavar="FILE", help="where the state of the fit goes as it runs: killed, the same "
                        "command goes on from there; removed when the model is written")
    parser.add_argument("--checkpoint-every", type=float, metavar="S", help="seconds between two of them (60)")
    parser.add_argument("--report", metavar="FILE.html", help="write a page about the model and its training samples")
    samples.add_options(parser)
    larger.add_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.folds is not None:
        larger.check(args, console)
        return cv.run(args, console)
    path = target(args)
    if args.report is not None:
        _check_target(Path(args.report), "--report")
    large = larger.on_disk(args)
    if large is None:
        larger.check(args, console)
    found = cv.read(args) if large is None else cv.read(args, larger.load)
    engine, why = engines.chosen(args, found, args.format)
    why = why if large is None else f"{why}; {large}"
    machine = engines.built(args, engine, found, console)
    _check_format(machine, args.format, found)
    set_checkpoint(args, machine, engine)
    with deferred_interrupt() as interrupted:  # to the end: a model that was reached is written
        console.note(f"engine {engine} ({type(machine).__name__}): {why}")
        with console.warnings_as_notes():
            larger.fit(machine, found) if large is not None else machine.fit(found.X, found.y)
        store(args, machine, path)
        if args.report is not None:
            page(args, machine, found)
        values = outcome(machine) | {"engine": engine, "reason": why, "data": found.summary(), "format": args.format}
        console.results([*lines(machine), f"model: {path}"], {"command": "train", "model": str(path), **values})
        return code_of(machine.status_, interrupted.is_set())


def target(args: argparse.Namespace) -> Path:
    """Where the model goes; a folder that is not there is found out before the work, not after it."""
    if args.model is None and args.data == "-":
        raise ValueError("DATA is standard input, so MODEL must be named: maxmargin train - MODEL")
    path = Path(args.model or f"{Path(args.data).name}.model")
    _check_target(path, "the model")
    return path


def set_checkpoint(args: argparse.Namespace, machine: Any, engine: str) -> None:
    if args.checkpoint is None:
        if args.checkpoint_every is not None:
            raise ValueError("--checkpoint-every says how often, --checkpoint FILE where: give both")
        return
    if "checkpoint" not in machine.get_params(deep=False):
        raise ValueError(f"--checkpoint has no meaning for {type(machine).__name__} (--engine {engine}): leave it out")
    machine.set_params(checkpoint=args.checkpoint)
    if args.checkpoint_every is not None:
        machine.set_params(checkpoint_every=args.checkpoint_every)


def store(args: argparse.Namespace, machine: Any, path: Path) -> None:
    """Write the model; of a fit that is done the checkpoint goes."""
    machine.set_params(verbose=False)  # whoever loads it did not ask for a bar
    if args.checkpoint is not None:
        machine.set_params(checkpoint=None)
    maxmargin.save(machine, path, format=args.format)
    if args.checkpoint is not None and Status(machine.status_).done:
        Path(args.checkpoint).unlink(missing_ok=True)  # the model has it all


def _check_target(path: Path, what: str) -> None:
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"{what} cannot be written to {path}: a folder, or its folder is not there or not writable")


def page(args: argparse.Namespace, machine: Any, found: samples.Samples) -> None:
    """The report on a model and the samples of its training."""
    title = f"{type(machine).__name__} on {Path(found.path).name}"
    certify = found.X.shape[0] <= FEW_ROWS and machine.status_ != "unknown"
    command = "maxmargin " + shlex.join(args.line)
    maxmargin.report(machine, found.X, found.y, path=args.report, title=title, certify=certify, command=command)


def _check_format(machine: Any, format: str, found: samples.Samples) -> None:
    """What the format cannot hold is found out before the work."""
    if format == "libsvm" and machine.kernel == "laplacian":
        raise ValueError("LIBSVM's format has no laplacian kernel: use --format maxmargin")
    if format != "maxmargin" and hasattr(machine, "class_weight") and found.y is not None and found.y.dtype.kind not in "iu":
        raise ValueError(f"{format}'s format knows classes that are whole numbers only: use --format maxmargin")


def outcome(machine: Any) -> dict[str, Any]:
    """What a fit says of itself, for --json."""
    size = getattr(machine, "support_vectors_", None)
    return {
        "machine": type(machine).__name__,
        "status": machine.status_,
        "objective": machine.objective_,
        "gap": machine.dual_gap_,
        "relative_gap": relative_gap(machine),
        "violation": getattr(machine, "kkt_violation_", math.nan),
        "support_vectors": None if size is None else len(getattr(machine, "support_", size)),
        "turns": int(np.sum(machine.n_iter_)) if hasattr(machine, "n_iter_") else None,
        "seconds": machine.timings_.get("total", math.nan),
        "timings": machine.timings_,
        "parameters": {name: value for name, value in machine.get_params(deep=False).items() if name != "callback"},
        "version": maxmargin.__version__,
    }


def lines(machine: Any) -> list[str]:
    """The same in words."""
    values = outcome(machine)
    ended = {"converged": "converged", "completed": "all passes made", "early": "stopped at a level, as asked",
             "unknown": "of another program, how it ended is not known"}  # fmt: skip
    took = "" if math.isnan(values["seconds"]) else f", {values['seconds']:.3g} s"
    out = [f"{values['machine']}: {ended.get(machine.status_, f'NOT CONVERGED ({machine.status_})')}{took}"]
    if math.isfinite(machine.dual_gap_):
        proven = f"at most {machine.dual_gap_:.3g} above the optimum, {values['relative_gap']:.2g} of it"
        out.append(f"objective {machine.objective_:.10g}, {proven}")
    elif math.isfinite(machine.objective_):
        out.append(f"objective {machine.objective_:.10g}, without a bound on the optimum")
    if values["support_vectors"] is not None:
        out.append(f"Total nSV = {values['support_vectors']}")
    return out
