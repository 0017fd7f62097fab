"""What a command says: results on stdout, all else on stderr, and the exit code that a fit has earned."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from maxmargin.runtime import Status

DONE, NOT_CONVERGED, BAD_INPUT, BUG, INTERRUPTED = 0, 1, 2, 3, 130


class Console:
    """Notes for people on stderr, unless quiet; results on stdout, as lines or as one JSON object."""

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self._json = quiet, as_json

    def note(self, text: str) -> None:
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def results(self, lines: list[str], values: dict[str, Any]) -> None:
        if self._json:
            print(json.dumps(plain(values), allow_nan=False))
        else:
            print("\n".join(lines))

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Within: a warning is a line on stderr that begins so, without the place in our source."""
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)  # the one base of ours and of scikit-learn's
            warnings.simplefilter("ignore", FutureWarning)  # to programmers
            warnings.showwarning = lambda message, *where, **more: self.note(f"warning: {message}")
            yield


def plain(value: Any) -> Any:
    """A value as JSON knows it: NumPy's numbers are numbers, what is not finite is null, what is no value is its text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def code_of(status: str, interrupted: bool = False) -> int:
    """The exit code of a fit that ended so."""
    if interrupted or status == str(Status.INTERRUPTED):
        return INTERRUPTED
    return DONE if Status(status).done else NOT_CONVERGED
