"""`python -m benchmarks run | list | report`."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

from benchmarks import harness, report
from benchmarks.base import Options, discover

RESULTS = pathlib.Path(__file__).parent / "results"
DOCS = pathlib.Path(__file__).parent.parent / "docs" / "benchmarks"


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    return int(args.command(args) or 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="maxmargin's benchmarks")
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="run experiments, print their tables, write JSON")
    run.add_argument("experiments", nargs="+", metavar="experiment")
    run.add_argument("--sets", type=_names, help="data sets, comma separated (default: the experiment's)")
    run.add_argument("--solvers", type=_names, help="solvers, comma separated (default: the experiment's)")
    run.add_argument("--repeat", type=int, help="runs per cell; the best counts (default: the experiment's, 3)")
    run.add_argument("--time-limit", type=float, metavar="S", help="seconds per fit, after that it is killed")
    run.add_argument("--threads", type=int, default=2, help="threads (cores) each solver may use (default 2)")
    run.add_argument("--rows", type=int, help="use at most so many training rows")
    run.add_argument("--tols", type=_numbers, help="tolerances, comma separated (default: the experiment's)")
    run.add_argument("--quick", action="store_true", help="2,000 rows, once, 60 s per fit: does everything work?")
    run.add_argument("--save", action="store_true", help="write to results/<experiment>.json though only a part ran")
    run.set_defaults(command=_run)
    show = commands.add_parser("list", help="list experiments, data sets and solvers")
    show.set_defaults(command=_list)
    make = commands.add_parser("report", help="write docs/benchmarks/*.md and pictures from results/*.json")
    make.add_argument("experiments", nargs="*", metavar="experiment")
    make.add_argument("--draft", action="store_true", help="print the page of the last partial run instead")
    make.set_defaults(command=_report)
    return parser


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _numbers(text: str) -> list[float]:
    return [float(value) for value in _names(text)]


def _experiments(names: list[str]) -> list[Any]:
    known = discover("experiments")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"unknown experiment {', '.join(unknown)}: choose among {', '.join(known)}")
    return [known[name]() for name in names]


def _run(args: argparse.Namespace) -> None:
    options = Options(
        args.sets, args.solvers, args.repeat, args.time_limit, args.threads, args.rows, args.tols, args.quick
    )
    partial = bool(args.solvers or args.rows or args.quick)
    for experiment in _experiments(args.experiments):
        outcome = harness.run(experiment, options, progress=True)
        draft = (partial and not args.save) or not outcome["complete"]
        path = result_path(experiment.name, draft)
        path.parent.mkdir(exist_ok=True)
        merged = merge(json.loads(path.read_text()), outcome) if path.exists() and not draft else outcome
        path.write_text(json.dumps(merged, indent=1) + "\n")
        print(f"# {experiment.title}\n\n{report.conditions(outcome)}\n\n{experiment.report(outcome)}\n")
        print(f"Written: benchmarks/results/{path.name}")
        if not outcome["complete"]:
            raise SystemExit("interrupted: what was measured so far is a draft")


def result_path(name: str, draft: bool) -> pathlib.Path:
    """Complete runs with all solvers and rows are results; others are drafts, which git ignores."""
    return RESULTS / (f"{name}.draft.json" if draft else f"{name}.json")


def merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The new run, plus the old records of data sets that it did not touch, if they were measured alike.

    Ratios are taken inside one data set, and its cells always come from one run.
    """
    alike = all(old.get(key) == new[key] for key in ("hardware", "versions", "threads", "quick"))
    touched = {record["dataset"] for record in new["records"]}
    kept = [record for record in old["records"] if record["dataset"] not in touched] if alike else []
    return new | {"records": kept + new["records"]}


def _list(args: argparse.Namespace) -> None:
    for kind in ("experiments", "datasets", "solvers"):
        print(f"{kind}:")
        for name, cls in discover(kind).items():
            text = cls.__doc__ if cls.__doc__ and "Subclass" not in cls.__doc__ else sys.modules[cls.__module__].__doc__
            print(f"  {name:24} {(text or '').strip().splitlines()[0]}")


def _report(args: argparse.Namespace) -> None:
    if args.draft:
        for experiment in _experiments(args.experiments):
            print(report.page(experiment, json.loads(result_path(experiment.name, draft=True).read_text())))
        return
    saved = [path.stem for path in sorted(RESULTS.glob("*.json")) if not path.stem.endswith(".draft")]
    DOCS.mkdir(parents=True, exist_ok=True)
    for experiment in _experiments(args.experiments or saved):
        run = json.loads(result_path(experiment.name, draft=False).read_text())
        experiment.plots(run, DOCS)
        (DOCS / f"{experiment.name}.md").write_text(report.page(experiment, run))
        print(f"docs/benchmarks/{experiment.name}.md")
    report.write_index(DOCS, {name: cls().title for name, cls in discover("experiments").items()}, set(saved))
