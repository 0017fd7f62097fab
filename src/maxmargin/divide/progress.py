"""A second progress bar, for what happens inside one turn of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(show: bool, title: str, total: int | None, unit: str) -> Iterator[Callable[[], None]]:
    """Within: a function to call when one of `total` pieces is done. A tqdm bar on stderr, or nothing."""
    if not show:
        yield lambda: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=title, unit=unit, dynamic_ncols=True) as bar:

        def done() -> None:
            bar.update()

        yield done
