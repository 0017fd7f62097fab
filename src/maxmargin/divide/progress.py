"""One progress bar for all stages of a fit: which it is, and how many of its subproblems are solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from maxmargin.divide.model import STAGES
from maxmargin.runtime import progress

Row = dict[str, float]


@contextmanager
def progress_bar(show: bool | int, title: str) -> Iterator[Callable[[Row], None]]:
    """Within: a function that shows a turn of DivideAndConquer. A bar or lines on stderr, or nothing."""
    if not show:
        yield lambda row: None
        return
    with progress.bar(title, "QP") as bar:

        def update(row: Row) -> None:
            stage = STAGES[int(row["stage"])]
            where = {"clustering": " for level", "level": "", "whole": " problem"}.get(stage, "")
            number = f" {row['level']:.0f}" if stage in ("clustering", "level") else ""
            bar.set_description_str(f"{title}: {stage}{where}{number}", refresh=False)
            total, done = (int(row[name]) if row[name] == row[name] else 0 for name in ("subproblems", "solved"))
            known = {"clusters": "clusters", "n_support": "support vectors", "dual": "dual", "violation": "violation"}
            bar.set_postfix({text: f"{row[name]:.4g}" for name, text in known.items() if row[name] >= 0}, refresh=False)
            bar.total = total
            bar.update(done - bar.n)  # shows at most ten times per second,
            if bar.desc != shown[0] or 0 < done == total:  # but the beginning and the end of every stage
                shown[0] = bar.desc
                bar.refresh()

        shown = [""]
        yield update
