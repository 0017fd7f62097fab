"""Numbers in prose: whatever a page says of a measurement is made from the stored results, never typed.

In README.md, docs/*.md and docs/papers/*.md everything between two markers belongs to `python -m benchmarks report`:

    <!-- generated: exact.readme -->
    a table, or sentences: what the experiment's method text_readme(run) returns
    <!-- end -->

    takes <!-- generated: dc.seconds dataset=covtype solver=maxmargin-dc label="all rows" -->68<!-- end --> s

The word behind the dot is a method `text_<word>` of the experiment, or one of the words below; keywords choose one
record by any of its fields or its problem's. Text on lines of its own stays on lines of its own. A marker that names an
unknown experiment or word, or chooses no record or several, is an error; an experiment without a result says so.
"""

from __future__ import annotations

import pathlib
import re
import shlex
from collections.abc import Callable
from typing import Any

from benchmarks import papers, report
from benchmarks.base import Experiment, discover

Record = dict[str, Any]
Run = dict[str, Any]
MARKED = re.compile(r"(<!-- generated: (.+?) -->)(\n?)(.*?)(<!-- end -->)", re.DOTALL)


def everything(runs: dict[str, Run], folder: pathlib.Path, names: list[str]) -> dict[pathlib.Path, str]:
    """The text of every generated page: one per experiment, their index, and the pages with marked places."""
    known = discover("experiments")
    pages = {folder / f"{name}.md": report.page(known[name](), runs[name]) for name in names}
    pages[folder / "index.md"] = report.index({name: cls().title for name, cls in known.items()}, set(runs))
    for path in marked_pages(folder):
        pages[path] = filled(path.read_text(encoding="utf-8"), runs)
    return pages


def marked_pages(folder: pathlib.Path) -> list[pathlib.Path]:
    """README.md, docs/*.md and docs/papers/*.md, as far as they have marked places."""
    docs = folder.parent
    pages = [docs.parent / "README.md", *sorted(docs.glob("*.md")), *sorted((docs / "papers").glob("*.md"))]
    return [path for path in pages if path.exists() and MARKED.search(path.read_text(encoding="utf-8"))]


def filled(page: str, runs: dict[str, Run]) -> str:
    """A page with all its marked places made anew."""

    def fill(found: re.Match[str]) -> str:
        opening, name, newline, _, end = found.groups()
        return f"{opening}{newline}{text(name, runs)}{newline}{end}"

    return MARKED.sub(fill, page)


def text(name: str, runs: dict[str, Run]) -> str:
    """What stands between the markers of this name."""
    first, *rest = shlex.split(name)
    title, _, word = first.partition(".")
    keys = dict(part.split("=", 1) for part in rest)
    known = discover("experiments")
    if title == "paper" and word in papers.WORDS:
        return papers.WORDS[word](runs, **keys)
    if title not in known:
        raise ValueError(f"generated: {name}: there is no experiment {title!r}, only {', '.join(known)}")
    if title not in runs:
        return "(not measured yet)"
    experiment = known[title]()
    own: Callable[..., str] | None = getattr(experiment, f"text_{word}", None)
    if own is not None:
        return own(runs[title], **keys)
    if word not in WORDS:
        raise ValueError(f"generated: {name}: {word!r} is neither text_{word} of {title} nor one of {', '.join(WORDS)}")
    return WORDS[word](experiment, runs[title], keys)


# ---- the words that every experiment knows


def chosen(run: Run, **keys: Any) -> list[Record]:
    return [record for record in run["records"] if all(_equal(field(record, key), keys[key]) for key in keys)]


def find(run: Run, **keys: Any) -> Record:
    """The one record with these fields (of its own or of its problem)."""
    found = chosen(run, **keys)
    if len(found) != 1:
        asked = " ".join(f"{key}={value}" for key, value in keys.items())
        labels = [f"{r['dataset']} {r['solver']} {r['label']!r} {report.row_name(r)}" for r in found]
        raise ValueError(f"{len(found)} records of {run['experiment']} have {asked}: {'; '.join(labels)}")
    return found[0]


def field(record: Record, name: str) -> Any:
    """A field of a record, of its problem or the problem's options, or (with a dot) of a part: memory.peak_mb."""
    problem = record["problem"]
    value: Any = {**problem.get("options", {}), **problem, **record}
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _equal(value: Any, wanted: Any) -> bool:
    try:
        return value is not None and float(value) == float(wanted)
    except (TypeError, ValueError):
        return str(value) == str(wanted)


def seconds(record: Record) -> str:
    """The time of a record, honest about those that have none."""
    if record["status"] == "timeout":
        return f"> {report.limit_of(record):g}"
    if record["status"] != "ok":
        raise ValueError(f"{record['solver']} on {record['dataset']} has no time: {record['status']}")
    return report.seconds(record["best"])


def _seconds(experiment: Experiment, run: Run, keys: dict[str, str]) -> str:
    return seconds(find(run, **keys))


def _score(experiment: Experiment, run: Run, keys: dict[str, str]) -> str:
    return report.score(find(run, **keys))


def _ratio(experiment: Experiment, run: Run, keys: dict[str, str]) -> str:
    """How many times the solver `to` (ours, unless said) is faster on the same data."""
    to = keys.pop("to", experiment.baseline)
    record, other = find(run, **keys), find(run, **(keys | {"solver": to}))
    late = record["status"] == "timeout"
    value = (report.limit_of(record) if late else record["best"]) / other["best"]
    return f"{'> ' if late else ''}{value:.2g}" if value < 100 else f"{'> ' if late else ''}{value:.0f}"


def _value(experiment: Experiment, run: Run, keys: dict[str, str]) -> str:
    """Any number: field=memory.peak_mb format=.2f scale=0.001."""
    name, form, scale = keys.pop("field"), keys.pop("format", ",.3g"), keys.pop("scale", None)
    value = field(find(run, **keys), name)
    if value is None:
        raise ValueError(f"a record of {run['experiment']} with {keys} has no {name}")
    return format(value if scale is None else value * float(scale), form)


def _mean(experiment: Experiment, run: Run, keys: dict[str, str]) -> str:
    """The arithmetic mean of a number over all records that have these fields: several seeds, say."""
    name, form, scale = keys.pop("field"), keys.pop("format", ",.3g"), float(keys.pop("scale", "1"))
    values = [field(record, name) for record in chosen(run, **keys) if record["status"] == "ok"]
    if not values or None in values:
        raise ValueError(f"records of {run['experiment']} with {keys} have no {name}")
    return format(scale * sum(values) / len(values), form)


def _conditions(experiment: Experiment, run: Run, keys: dict[str, str]) -> str:
    return report.conditions(run)


WORDS: dict[str, Callable[[Experiment, Run, dict[str, str]], str]] = {
    "seconds": _seconds,
    "score": _score,
    "ratio": _ratio,
    "value": _value,
    "mean": _mean,
    "conditions": _conditions,
}
