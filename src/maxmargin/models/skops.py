"""The types inside our models, for skops (https://skops.readthedocs.io), which loads only types that it is told to trust.

    skops.io.load("pipeline.skops", trusted=maxmargin.models.skops.TRUSTED)

or once per process `maxmargin.models.skops.register()`, and `skops.io.load("pipeline.skops")`. For a machine alone
`maxmargin.save` is better: it also checks that what a file holds makes sense, which skops cannot know.
"""

from __future__ import annotations

from typing import Any

from maxmargin.models.records import RECORDS
from maxmargin.models.schema import MACHINES


def _name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


_KINDS: list[Any] = [machine.kind for machine in MACHINES.values()] + [record.kind for record in RECORDS.values()]
TRUSTED = sorted(map(_name, _KINDS))


def register() -> None:
    """Let skops load our types without being told each time.

    skops has no call for it; its list of trusted estimators is what its loader reads, so ours join it.
    """
    from skops.io import _general

    trusted = getattr(_general, "SKLEARN_ESTIMATOR_TYPE_NAMES", None)
    if not isinstance(trusted, list):
        raise RuntimeError(
            "this version of skops keeps its trusted types elsewhere: pass trusted=maxmargin.models.skops.TRUSTED to load"
        )
    trusted.extend(name for name in TRUSTED if name not in trusted)
