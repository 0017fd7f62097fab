"""What the four papers printed, one file of numbers each, and how it is shown beside what we measure.

A file has TITLE (the citation), CLAIMS and the paper's tables as plain data. An experiment says what it `shows`
("dcsvm_table2", "ocas_figure1"), and its `compare(run)` makes a `base.Line` of every printed number that has a
counterpart. Pages take these words as any other generated text (texts.py):

    <!-- generated: paper.lost paper=dcsvm -->       what we lose, to the paper and to the programs measured beside ours
    <!-- generated: paper.claims paper=dcsvm -->     what it claims, and what we find
    <!-- generated: paper.shown name=dcsvm_table2 --> published | measured | ratio | why they differ
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.base import Experiment, Line, discover

Run = dict[str, Any]
Runs = dict[str, Run]
NAMES = ("dcsvm", "ocas", "budget", "psmo")


class Claim(NamedTuple):
    """What a paper says, where, and the generated text that answers it (such as "dc_levels.slack")."""

    says: str
    where: str
    answer: str


def module(name: str) -> Any:
    if name not in NAMES:
        raise ValueError(f"paper={name!r}: choose among {', '.join(NAMES)}")
    return importlib.import_module(f"benchmarks.papers.{name}")


def showing() -> dict[str, list[str]]:
    """{"dcsvm_table2": ["dc", "front"], …}: which experiments measure a table or figure again, papers in order."""
    found: dict[str, list[str]] = {}
    for name, cls in discover("experiments").items():
        for shown in cls.shows:
            found.setdefault(shown, []).append(name)
    return dict(sorted(found.items(), key=lambda item: (NAMES.index(item[0].split("_")[0]), _number(item[0]))))


def _number(shown: str) -> tuple[bool, int]:
    word = shown.split("_")[1]
    return word.startswith("figure"), int("".join(c for c in word if c.isdigit()))


def title(shown: str) -> str:
    """ "dcsvm_table2" → "Table 2"."""
    word = shown.split("_")[1]
    return f"Table {word[5:]}" if word.startswith("table") else f"figure {word[6:]}"


def experiments(name: str) -> list[Experiment]:
    """All that show something of a paper."""
    module(name)
    return [cls() for cls in discover("experiments").values() if any(s.split("_")[0] == name for s in cls.shows)]


# ---- lines


def table(lines: list[Line]) -> str:
    """Published | measured | ratio | why they differ."""
    rows = [["", "cell", "published", "measured", "ratio", "why they differ"]]
    for line in lines:
        ratio = ""
        if line.published and line.measured is not None:
            ratio = f"{'> ' if line.at_least else ''}{line.measured / line.published:.3g}"
        lost = " **LOST**" if line.lost else ""
        measured = _value(line.measured, line)
        rows.append([line.table, line.cell, _value(line.published, line, False), measured + lost, ratio, line.why])
    return report.markdown(rows)


def _value(value: float | None, line: Line, ours: bool = True) -> str:
    if value is None:
        return "not measured" if ours else ""
    text = f"{value:.2f}" if line.unit == "%" else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{'> ' if ours and line.at_least else ''}{text}{' ' if line.unit else ''}{line.unit}"


def section(experiment: Experiment, run: Run) -> str:
    """The lines of an experiment, for its own page."""
    lines = experiment.compare(run) if experiment.shows else []
    return f"## Published beside measured\n\n{table(lines)}" if lines else ""


def seconds(
    table: str, cell: str, published: float | None, record: dict[str, Any] | None, why: str = "", **more: Any
) -> Line:
    """A line of fit times; a fit past its limit counts with the limit."""
    if record is None or record["status"] not in ("ok", "timeout"):
        reason = (record or {}).get("reason", "")
        return Line(table, cell, "s", published, None, why if record is None else f"{record['status']}: {reason}", "less")
    late = record["status"] == "timeout"
    time = report.limit_of(record) if late else record["best"]
    return Line(
        table,
        cell,
        "s",
        published,
        time,
        f"stopped{'; ' + why if why else ''}" if late else why,
        "less",
        at_least=late,
        **more,
    )


def accuracy(
    table: str, cell: str, published: float | None, record: dict[str, Any] | None, why: str = "", **more: Any
) -> Line:
    score = (record or {}).get("score")
    return Line(table, cell, "%", published, None if score is None else 100 * score, why, "more", **more)


# ---- what competitors win


def undominated(run: Run) -> list[dict[str, Any]]:
    """Records of other programs that no fit of ours on the same rows is as fast and as accurate as.

    Models that are marked (objective, intercept) win nothing; accuracies within 0.05 points are equal.
    """
    ours = {name for name, cls in discover("solvers").items() if cls.ours}
    done = [r for r in run["records"] if r["status"] == "ok" and r["measure"] == "fit" and r.get("best")]
    found = []
    for r in done:
        if r["solver"] in ours or r.get("mark"):
            continue
        same = [o for o in done if o["solver"] in ours and _terms(o) == _terms(r) and not o.get("mark")]
        if same and not any(o["best"] <= r["best"] and _as_good(o, r) for o in same):
            found.append(r)
    return found


def _terms(record: dict[str, Any]) -> tuple[Any, ...]:
    """What two fits must share to be compared: rows and parameters, but not how they were solved."""
    problem = record["problem"]
    kept = ("task", "C", "nu", "epsilon", "kernel", "gamma", "degree", "loss")
    return (record["dataset"], record["rows"], *(problem.get(key) for key in kept))


def _as_good(ours: dict[str, Any], other: dict[str, Any]) -> bool:
    if other.get("score") is None or ours.get("score") is None:
        return True
    return bool(ours["score"] >= other["score"] - 5e-4)


# ---- words for pages


def lost(runs: Runs, paper: str) -> str:
    """First what is worse than printed, then what other programs here do better."""
    lines, beaten, missing = [], [], []
    for experiment in experiments(paper):
        run = runs.get(experiment.name)
        if run is None:
            missing.append(f"`{experiment.name}`")
            continue
        lines += [line for line in experiment.compare(run) if line.lost]
        beaten += [(experiment, r) for r in undominated(run)]
    parts = ["**Worse than printed:**" + (f"\n\n{table(lines)}" if lines else " nothing that is measured so far.")]
    rows = [["experiment", "set", "program", "seconds", "score"]]
    for experiment, r in beaten:
        rows.append([experiment.name, report.row_name(r), r["solver"], report.seconds(r["best"]), report.score(r)])
    text = "**Other programs that no fit of ours here is both as fast and as accurate as:**"
    parts.append(f"{text}\n\n{report.markdown(rows)}" if beaten else f"{text} none.")
    if missing:
        parts.append(f"**Not measured yet:** {', '.join(missing)}.")
    return "\n\n".join(parts)


def claims(runs: Runs, paper: str) -> str:
    from benchmarks import texts

    rows = [["the paper says", "where", "we find"]]
    known = discover("experiments")
    for claim in _claims(paper):
        name, _, word = claim.answer.split()[0].partition(".")
        answers = name in known and hasattr(known[name], f"text_{word}")
        found = texts.text(claim.answer, runs) if answers else f"(not measured yet: no `{name}` that answers it)"
        rows.append([claim.says, claim.where, found])
    return report.markdown(rows)


def _claims(name: str) -> list[Claim]:
    return list(module(name).CLAIMS)


def shown(runs: Runs, name: str) -> str:
    """All lines of a table or figure, with links to the pages that have the rest."""
    known = showing()
    if name not in known:
        raise ValueError(f"name={name!r}: choose among {', '.join(known)}")
    parts = []
    for experiment in (discover("experiments")[one]() for one in known[name]):
        if experiment.name not in runs:
            parts.append(f"Not measured yet: `python -m benchmarks run {experiment.name}`.")
            continue
        lines = [line for line in experiment.compare(runs[experiment.name]) if line.table == title(name)]
        more = f"[{experiment.title}](../benchmarks/{experiment.name}.md)"
        parts.append(f"{table(lines)}\n\nMore: {more}." if lines else f"{more}.")
    return "\n\n".join(parts)


def figures(runs: Runs, paper: str) -> str:
    """What a paper says of figures that print no numbers, beside the lines of whoever shows them."""
    kind, known = module(paper), showing()
    rows = [["figure", "formulation", "sets", "published", "measured"]]
    for number, (task, sets, says) in kind.FIGURES.items():
        names = [name for name in known.get(f"{paper}_figure{number}", []) if name in runs]
        lines = [line for name in names for line in discover("experiments")[name]().compare(runs[name])]
        mine = [f"{line.cell} {line.measured:.2f}" for line in lines if line.table == f"figure {number}" and line.measured]
        rows.append([str(number), task, sets, says, "; ".join(mine) or "not measured yet"])
    return report.markdown(rows)


WORDS: dict[str, Callable[..., str]] = {"lost": lost, "claims": claims, "shown": shown, "figures": figures}
