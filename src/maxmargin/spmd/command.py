"""`mpiexec -n P python -m maxmargin.spmd COMMAND …`: the command line's train and predict, each rank with a part of a file.

Rank 0 alone speaks and writes files. Exit codes are the command line's, the same on all ranks; a rank that cannot go on
while others wait for it ends the job by MPI's Abort.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin import spmd
from maxmargin.cli import cv, engines, predict, samples, train
from maxmargin.cli.console import BAD_INPUT, DONE, Console, code_of
from maxmargin.cli.info import format_of
from maxmargin.cli.libsvm_words import translated
from maxmargin.models import load
from maxmargin.runtime import Comm, as_comm, deferred_interrupt, or_all_fail, together

EXAMPLES = """examples:
  mpiexec -n 4 python -m maxmargin.spmd train -c 10 -g 0.5 train.svm model.mxm
  mpiexec -n 4 python -m maxmargin.spmd train --checkpoint run.ckpt train.svm    (killed, goes on with any number of ranks)
  srun --mpi=pmi2 -n 64 python -m maxmargin.spmd train -t 0 --max-time 600 train.npz
  mpiexec -n 4 python -m maxmargin.spmd predict test.svm model.mxm answers.txt"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m maxmargin.spmd", description=__doc__.splitlines()[0], epilog=EXAMPLES, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name, what, work, options in (("train", "a machine from a file of samples", run, train.add_options),
                                      ("predict", "predictions for a file of samples", predict_parts, predict.add_options)):
        command = commands.add_parser(name, help=what, add_help=False, allow_abbrev=False)
        command.add_argument("--help", action="help", help="this text; so does -h")
        command.add_argument("-q", "--quiet", action="store_true", help="nothing on stderr but errors")
        command.add_argument("--json", action="store_true", help="results as one JSON object")
        options(command)
        command.set_defaults(name=name, work=work)
    return top


def main(argv: Sequence[str] | None = None, comm: Any = None) -> int:
    """Run a command line on this rank; returns the exit code, the same on all ranks."""
    try:
        ranks = as_comm(comm)
    except (ImportError, RuntimeError) as error:  # no MPI, or one that does not know of the launcher
        print(f"python -m maxmargin.spmd: error: {error}", file=sys.stderr)
        return BAD_INPUT
    words = list(sys.argv[1:] if argv is None else argv)
    heard = contextlib.nullcontext() if ranks.rank == 0 else contextlib.redirect_stderr(io.StringIO())
    with heard:  # the words are the same everywhere, and so is what is wrong with them
        args = parser().parse_args([*words[:1], *translated(words[1:])])
    console = Console(args.quiet or ranks.rank > 0, args.json)
    try:
        with or_all_fail(ranks):
            code: int = args.work(args, console, ranks)
            return code
    except (ValueError, OSError, ImportError, MemoryError) as error:
        if ranks.rank == 0:
            print(f"python -m maxmargin.spmd {args.name}: error: {error}", file=sys.stderr)
        return BAD_INPUT


def run(args: argparse.Namespace, console: Console, comm: Comm) -> int:
    with together(comm):
        _check(args)
        path = train.target(args)
    found = read(args, comm)
    labels = np.unique(np.concatenate(comm.share(np.unique(found.y)))) if args.weight else found.y
    engine = args.engine if args.engine != "auto" else _engine(args)
    rows, stored = comm.allreduce(np.array([found.X.shape[0], found.stored])).tolist()
    with together(comm):
        machine = _built(args, engine, replace(found, y=labels), console)
        train.set_checkpoint(args, machine, engine)
    with deferred_interrupt() as interrupted:  # to the end: a model that was reached is written
        console.note(f"engine {engine} ({type(machine).__name__}) on {comm.size} ranks, of which this has "
                     f"{found.X.shape[0]:,} of {rows:,} rows")
        with console.warnings_as_notes():
            machine.fit(found.X, found.y, comm=comm)
        local = machine.to_local()
        with together(comm):
            if comm.rank == 0:
                train.store(args, local, path)
        if comm.rank == 0:
            data = {"path": args.data, "rows": rows, "features": found.X.shape[1], "stored": stored}
            values = train.outcome(local) | {"engine": engine, "ranks": comm.size, "data": data, "format": args.format}
            console.results([*train.lines(local), f"model: {path}"], {"command": "train", "model": str(path), **values})
        return code_of(machine.status_, interrupted.is_set())


def predict_parts(args: argparse.Namespace, console: Console, comm: Comm) -> int:
    """Each rank predicts its part of the file; rank 0 writes them in order."""
    with together(comm):
        if args.data == "-":
            raise ValueError("DATA of standard input is for one process: use `maxmargin predict`")
        with console.warnings_as_notes():
            model = load(args.model)
        if getattr(model, "kernel", None) == "precomputed":
            raise ValueError("a precomputed kernel is for one process: use `maxmargin predict`")
        predict.prepare(args, model)
    X, y = spmd.load(args.data, comm=comm, **samples.reading(args))
    predicted, lines = np.empty(0), b""
    with together(comm):
        if X.shape[1] > model.n_features_in_ and format_of(args.model) != "maxmargin":  # which does not say how many it has
            model = load(args.model, n_features=X.shape[1])
            predict.prepare(args, model)
        X = predict.fitting(X, int(model.n_features_in_), samples.text(args, args.data), console)
        if X.shape[0]:
            predicted, lines = predict.answered(args, model, X)
    each = [part for part in comm.share((predicted, y)) if len(part[0])]
    with together(comm):
        if not each:
            raise ValueError(f"{args.data} has no samples")
    _write(args, model, lines, comm)
    with together(comm):
        if comm.rank == 0:
            predict.tell(args, model, [y for _, y in each], np.concatenate([some for some, _ in each]), console)
    return DONE


def _write(args: argparse.Namespace, model: Any, lines: bytes, comm: Comm) -> None:
    """The lines of all ranks into the file, by rank 0."""
    every = comm.share(lines) if args.output is not None else []
    with together(comm):
        if comm.rank == 0:
            with predict.opened(args, model) as out:
                for part in every:
                    out.write(part)


def _check(args: argparse.Namespace) -> None:
    """What ranks cannot do is said before they read."""
    for name, given in (("-v", args.folds is not None), ("--report", args.report is not None),
                        ("-t precomputed", args.kernel == "precomputed"), ("DATA of standard input", args.data == "-"),
                        ("-b 1", bool(args.probability))):
        if given:
            raise ValueError(f"{name} is for one process: use `maxmargin train`")
    if args.engine not in ("auto", "exact", "linear"):
        raise ValueError(f"--engine {args.engine} is for one process: over ranks there are exact and linear")
    engines.check(args.engine if args.engine != "auto" else _engine(args), args.machine, args.kernel, args.format)


def _engine(args: argparse.Namespace) -> str:
    return "linear" if args.kernel == "linear" and args.machine in engines.MACHINES["linear"] else "exact"


def read(args: argparse.Namespace, comm: Comm) -> samples.Samples:
    """This rank's part, with labels that are whole numbers if those of all ranks are."""
    options = samples.reading(args)
    X, y = spmd.load(args.data, comm=comm, **options)
    whole = samples.whole(y)
    numbers = y is not None and y.dtype.kind == "f"
    all_whole = comm.allreduce(np.array(numbers and (whole is not y or not len(y)), np.int64), "min")
    found = samples.Samples(args.data, X, y.astype(np.int64) if all_whole else y)
    with together(comm):
        cv.check_labels(args, found)
    return found


def _built(args: argparse.Namespace, engine: str, found: samples.Samples, console: Console) -> Any:
    """The machine of `maxmargin.spmd` with all options that it has."""
    local = engines.built(args, engine, found, console)
    name = type(local).__name__
    if not hasattr(spmd, name):
        raise ValueError(f"{name} is for one process: use `maxmargin train`")
    return getattr(spmd, name)(**local.get_params(deep=False))
