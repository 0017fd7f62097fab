"""`python -m benchmarks run | list | due | report`."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

from benchmarks import due, harness, papers, provenance, report, texts
from benchmarks.base import Options, discover
from benchmarks.progress import Progress

RESULTS = pathlib.Path(__file__).parent / "results"
DOCS = pathlib.Path(__file__).parent.parent / "docs" / "benchmarks"


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    return int(args.command(args) or 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="maxmargin's benchmarks")
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="run experiments, print their tables, write JSON; goes on where it was killed")
    run.add_argument(
        "experiments",
        nargs="+",
        metavar="experiment",
        help='their names, those of tables and figures (dcsvm_table2), or "due" for all that are',
    )
    run.add_argument("--sets", type=_names, help="data sets, comma separated (default: the experiment's)")
    run.add_argument("--solvers", type=_names, help="solvers, comma separated (default: the experiment's)")
    run.add_argument("--repeat", type=int, help="turns per cell; the best counts (default: the experiment's, 3)")
    run.add_argument("--limit", type=float, metavar="S", help="seconds per fit, after that it is killed")
    run.add_argument("--threads", type=int, default=2, help="threads (cores) each solver may use (default 2)")
    run.add_argument("--rows", type=int, help="use at most so many training rows")
    run.add_argument("--scale", type=_share, default=1.0, metavar="S", help="this share of all rows, for a quick look (0.1)")
    run.add_argument("--tols", type=_numbers, help="tolerances, comma separated (default: the experiment's)")
    run.add_argument("--quick", action="store_true", help="2,000 rows, once, 60 s per fit: does everything work?")
    run.add_argument("--fresh", action="store_true", help="throw away what a run that was killed had measured")
    kind = run.add_mutually_exclusive_group()
    kind.add_argument("--draft", action="store_true", help="write a draft, from any tree")
    kind.add_argument("--save", action="store_true", help="write to results/<experiment>.json though only a part ran")
    run.set_defaults(command=_run)
    show = commands.add_parser("list", help="list experiments, data sets and solvers")
    show.set_defaults(command=_list)
    again = commands.add_parser("due", help="which results must be measured again, by which commands, in how many minutes")
    again.set_defaults(command=_due)
    make = commands.add_parser("report", help="write whatever is generated: docs/benchmarks, marked places of other pages")
    make.add_argument("experiments", nargs="*", metavar="experiment")
    make.add_argument("--draft", action="store_true", help="print the page of the last draft instead")
    make.add_argument("--check", action="store_true", help="write nothing; list the files that would change")
    make.set_defaults(command=_report)
    return parser


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _numbers(text: str) -> list[float]:
    return [float(value) for value in _names(text)]


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text} is no share of the rows: give a number above 0, and 1 at most")
    return value


def _experiments(names: list[str]) -> list[Any]:
    """By their own names, or by those of the papers' tables and figures."""
    known, shown = discover("experiments"), papers.showing()
    unknown = [name for name in names if name not in known and name not in shown]
    if unknown:
        raise SystemExit(f"unknown experiment {', '.join(unknown)}: choose among {', '.join([*known, *shown])}")
    own = [one for name in names for one in ([name] if name in known else shown[name])]
    return [known[name]() for name in dict.fromkeys(own)]


def _run(args: argparse.Namespace) -> None:
    options = Options(args.sets, args.solvers, args.repeat, args.limit, args.threads, args.rows, args.tols, args.quick)
    options.scale = args.scale
    partial = bool(args.solvers or args.rows or args.quick or args.tols or args.scale < 1.0)
    draft = args.draft or (partial and not args.save)
    refusal = provenance.refusal()
    if refusal and not draft:
        raise SystemExit(f"no result can be measured now: {refusal}. (--draft measures anyway, into a draft.)")
    for experiment in _experiments(_all_due() if args.experiments == ["due"] else args.experiments):
        path = result_path(experiment.name, draft)
        # what was measured with unknown code cannot be told from what would be measured now
        kept = Progress(None if refusal or args.quick else path.with_suffix(".partial.json"))
        try:
            outcome = harness.run(experiment, options, kept=kept, fresh=args.fresh)
        except KeyboardInterrupt:
            rest = "; the same command goes on where it was" if kept.path else ""
            raise SystemExit(f"\ninterrupted{rest}") from None
        path.parent.mkdir(exist_ok=True)
        merged = merge(json.loads(path.read_text()), outcome) if path.exists() and not draft else outcome
        path.write_text(json.dumps(merged, indent=1) + "\n")
        kept.close()
        print(f"# {experiment.title}\n\n{report.conditions(outcome)}\n\n{experiment.report(outcome)}\n")
        print(papers.section(experiment, outcome))
        print(f"Written: benchmarks/results/{path.name}")
        if loud := report.disturbed(outcome["records"]):
            print(f"THE MACHINE WAS NOT QUIET: {loud}")


def result_path(name: str, draft: bool) -> pathlib.Path:
    """Complete runs with all solvers and rows are results; others are drafts, which git ignores."""
    return RESULTS / (f"{name}.draft.json" if draft else f"{name}.json")


def merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The new run, plus the old records of data sets that it did not touch, if they were measured alike.

    Ratios are taken inside one data set, and its cells always come from one run. Each record names its own revision, and
    its machine where that is another one; where the report sets times against the machine's bandwidth, there is one alone.
    """
    one_machine = bool(old.get("read_gb_per_s") or new.get("read_gb_per_s"))
    same = ("threads", "quick", *(("hardware",) if one_machine else ()))
    # A package that is there now and was not then has no record among the old ones.
    alike = all(old.get(key) == new[key] for key in same) and _packages(old).items() <= _packages(new).items()
    touched = {record["dataset"] for record in new["records"]}
    kept = [record for record in old["records"] if record["dataset"] not in touched] if alike else []
    if old.get("hardware") != new["hardware"]:
        kept = [{"hardware": old["hardware"], **record} for record in kept]
    return new | {"records": kept + new["records"]}


def _packages(run: dict[str, Any]) -> dict[str, str]:
    """Versions, without the instruction set that ours found."""
    return {name: version.split(" ")[0] for name, version in run.get("versions", {}).items()}


def stored() -> dict[str, dict[str, Any]]:
    """All results by the name of their experiment."""
    paths = [path for path in sorted(RESULTS.glob("*.json")) if "." not in path.stem]
    return {path.stem: json.loads(path.read_text()) for path in paths}


def _list(args: argparse.Namespace) -> None:
    for kind in ("experiments", "datasets", "solvers"):
        print(f"{kind}:")
        for name, cls in discover(kind).items():
            text = cls.__doc__ if cls.__doc__ and "Subclass" not in cls.__doc__ else sys.modules[cls.__module__].__doc__
            print(f"  {name:24} {(text or '').strip().splitlines()[0]}")
    for paper in papers.NAMES:
        print(f"{papers.module(paper).TITLE}:")
        for shown, names in papers.showing().items():
            if shown.split("_")[0] == paper:
                print(f"  {shown:24} {', '.join(names)}")


def _due(args: argparse.Namespace) -> None:
    print(due.table({name: cls() for name, cls in discover("experiments").items()}, stored()))


def _all_due() -> list[str]:
    return list(due.due({name: cls() for name, cls in discover("experiments").items()}, stored()))


def _report(args: argparse.Namespace) -> int:
    if args.draft:
        for experiment in _experiments(args.experiments):
            print(report.page(experiment, json.loads(result_path(experiment.name, draft=True).read_text())))
        return 0
    runs = stored()
    chosen = _experiments(args.experiments or list(runs))
    changed = 0
    for path, text in texts.everything(runs, DOCS, [experiment.name for experiment in chosen]).items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        changed += 1
        print(path.relative_to(DOCS.parent.parent))
        if not args.check:
            path.write_text(text, encoding="utf-8")
    if not args.check:
        for experiment in chosen:
            experiment.plots(runs[experiment.name], DOCS)
    return int(args.check and changed > 0)
