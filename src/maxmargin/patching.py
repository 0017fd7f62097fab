"""Our machines under scikit-learn's names: an existing script needs one more line, before its imports.

    import maxmargin
    maxmargin.patch_sklearn()
    from sklearn.svm import SVC          # maxmargin.SVC

`sklearn.svm` and the module that defines its classes, `sklearn.svm._classes`, get ours. Names that somebody has imported
from there before keep scikit-learn's classes, and so do models that were fitted or pickled before. It is so for all threads
of the process; blocks of several threads may overlap.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import maxmargin

NAMES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR")
MODULES = ("sklearn.svm", "sklearn.svm._classes")
Place = tuple[str, str]
_theirs: dict[Place, Any] = {}  # what stood there before; empty while nothing is patched
_blocks: dict[Place, list[object]] = {}  # the blocks that hold a place; none where patch_sklearn was there before
_lock = threading.RLock()


def patch_sklearn(names: Iterable[str] = NAMES) -> None:
    """Put our classes into `sklearn.svm`, until `unpatch_sklearn`. Twice is once.

    Parameters
    ----------
    names : iterable of str, optional
        Some of the seven classes there; by default all that we have.

    Examples
    --------
    >>> import maxmargin, sklearn.svm
    >>> maxmargin.patch_sklearn()
    >>> sklearn.svm.SVC is maxmargin.SVC
    True
    >>> maxmargin.unpatch_sklearn()
    """
    chosen = list(names)
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        raise ValueError(f"names={chosen!r}: {', '.join(unknown)} is not in sklearn.svm; choose from {', '.join(NAMES)}")
    modules = [importlib.import_module(module) for module in MODULES]
    ours = {name: getattr(maxmargin, name) for name in chosen if hasattr(maxmargin, name)}
    with _lock:
        for module in modules:
            for name, machine in ours.items():
                _theirs.setdefault((module.__name__, name), getattr(module, name))
                setattr(module, name, machine)


def unpatch_sklearn() -> None:
    """Put scikit-learn's own classes back.

    Examples
    --------
    >>> import maxmargin, sklearn.svm
    >>> maxmargin.patch_sklearn(["SVR"])
    >>> maxmargin.unpatch_sklearn()
    >>> sklearn.svm.SVR is maxmargin.SVR
    False
    """
    with _lock:
        _blocks.clear()
        for place in list(_theirs):
            _put_back(place)


def _put_back(place: Place) -> None:
    setattr(importlib.import_module(place[0]), place[1], _theirs.pop(place))


@contextmanager
def patched(names: Iterable[str] = NAMES) -> Iterator[None]:
    """Our classes in `sklearn.svm` inside the block, and what stood there before afterwards.

    Parameters
    ----------
    names : iterable of str, optional
        As in `patch_sklearn`.

    Examples
    --------
    >>> import maxmargin
    >>> with maxmargin.patched():
    ...     from sklearn.svm import SVC
    >>> SVC is maxmargin.SVC
    True
    """
    mine, chosen = object(), list(names)
    with _lock:
        before = set(_theirs)
        patch_sklearn(chosen)
        for place in _theirs:
            if place[1] in chosen and (place in _blocks or place not in before):
                _blocks.setdefault(place, []).append(mine)
    try:
        yield
    finally:
        with _lock:
            for place, holders in list(_blocks.items()):
                if mine in holders:
                    holders.remove(mine)
                    if not holders:
                        del _blocks[place]
                        _put_back(place)
