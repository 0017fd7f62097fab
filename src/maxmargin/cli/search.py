"""The part of `maxmargin cv` that searches a grid of C and γ: options, the machine with a search inside, its table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin
from maxmargin.cli import engines, samples
from maxmargin.cli.console import Console, code_of

SEARCHES = {
    ("exact", "svc"): "SVCCV", ("exact", "svr"): "SVRCV", ("dc", "svc"): "DCSVCCV", ("linear", "svc"): "LinearSVCCV",
    ("linear", "svr"): "LinearSVRCV",
}  # fmt: skip


def _values(word: str) -> Any:
    """A number of values, or values separated by commas."""
    try:
        return [float(part) for part in word.split(",") if part] if "," in word or not word.isdigit() else int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is neither a number of values nor values such as 0.1,1,10") from None


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("search (any of --Cs, --gammas begins one)").add_argument
    add("--Cs", type=_values, metavar="N|LIST", help="values of C such as 0.1,1,10, or how many (-c)")
    add("--gammas", type=_values, metavar="N|LIST", help="values of gamma, or how many (-g)")
    add("--scoring", metavar="NAME", help="any scorer of scikit-learn's (accuracy; svr: R²)")
    add("--search", choices=("grid", "halving"), help="all settings on all rows, or first on parts of them")
    add("--extend", action="store_true", help="try values beyond an end of the grid while the best lies there")
    add("--model", metavar="FILE", help="fit the best setting to all samples and write it")


def wanted(args: argparse.Namespace) -> bool:
    return getattr(args, "Cs", None) is not None or getattr(args, "gammas", None) is not None


def run(args: argparse.Namespace, console: Console, found: samples.Samples) -> int:
    """Search, print the table and the choice, write the model if it has a name."""
    engine, why = engines.chosen(args, found)
    name = SEARCHES.get((engine, args.machine))
    if name is None:
        known = ", ".join(f"--engine {e} {m}" for e, m in SEARCHES)
        raise ValueError(f"there is no search for {args.machine} by --engine {engine}, only for {known}")
    if args.model is not None and not Path(args.model).absolute().parent.is_dir():
        raise ValueError(f"--model {args.model}: its folder is not there")
    machine = _built(args, engine, name, found, console)
    console.note(f"engine {engine} ({name}): {why}")
    with console.warnings_as_notes():
        machine.fit(found.X, found.y)
    lines, values = _table(machine)
    if args.model is not None:
        maxmargin.save(machine.chosen().set_params(verbose=False), args.model)
        lines.append(f"model: {args.model}")
    status = machine.search_status_
    values |= {"engine": engine, "reason": why, "data": found.summary(), "model": args.model, "search_status": status}
    console.results(lines, {"command": "cv", "machine": name, **values})
    return max(code_of(status), code_of(machine.status_) if args.model is not None else 0)


def _built(args: argparse.Namespace, engine: str, name: str, found: samples.Samples, console: Console) -> Any:
    cls = getattr(maxmargin, name)
    single = engines.built(args, engine, found, console).get_params(deep=False)
    known = cls._get_param_names()
    C = 1.0 if args.C is None else args.C
    search: dict[str, Any] = {
        "Cs": [C] if args.Cs is None else args.Cs, "cv": args.folds, "scoring": args.scoring, "extend": args.extend,
        "refit": args.model is not None,
    }  # fmt: skip
    if "gammas" in known:
        search["gammas"] = [args.gamma] if args.gammas is None else args.gammas
    elif args.gammas is not None:
        raise ValueError(f"--gammas has no meaning for {name}: leave it out")
    if "epsilons" in known:
        search["epsilons"] = [single["epsilon"]]
    if args.search is not None:
        search["search"] = args.search
    return cls(**{key: value for key, value in single.items() if key in known}, **search)


def _table(machine: Any) -> tuple[list[str], dict[str, Any]]:
    """One line per setting, the best last."""
    table, axes = machine.cv_results_, list(machine.best_params_)
    head = [*axes, "mean score", "std", "status", "seconds"]
    rows = []
    for k, params in enumerate(table["params"]):
        numbers = [*(params[name] for name in axes), table["mean_test_score"][k], table["std_test_score"][k]]
        rows.append([*(f"{value:.6g}" for value in numbers), str(table["status"][k]), f"{table['seconds'][k]:.3g}"])
    width = [max(len(row[j]) for row in [head, *rows]) for j in range(len(head))]
    lines = ["  ".join(word.rjust(width[j]) for j, word in enumerate(row)) for row in [head, *rows]]
    best = ", ".join(f"{name} = {value:.6g}" for name, value in machine.best_params_.items())
    lines.append(f"Best {best}: mean score {machine.best_score_:.6g} over {machine.n_splits_} folds")
    keys = ("mean_test_score", "std_test_score", "status", "seconds", "mean_objective", "mean_gap")
    cells = [{**params, **{key: table[key][k] for key in keys}} for k, params in enumerate(table["params"])]
    known = np.isfinite(table["mean_test_score"])
    return lines, {
        "best": machine.best_params_, "best_score": machine.best_score_, "folds": machine.n_splits_, "cells": cells,
        "settings": len(cells), "judged": int(known.sum()),
    }  # fmt: skip
