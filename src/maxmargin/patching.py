"""Our machines under scikit-learn's names: an existing script needs one more line, before its imports.

    import maxmargin
    maxmargin.patch_sklearn()
    from sklearn.svm import SVC          # maxmargin.SVC

`sklearn.svm` and the module that defines its classes, `sklearn.svm._classes`, get ours. Names that somebody has imported
from there before keep scikit-learn's classes, and so do models that were fitted or pickled before.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import maxmargin

NAMES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR")
MODULES = ("sklearn.svm", "sklearn.svm._classes")
_theirs: dict[tuple[str, str], Any] = {}  # what stood there before; empty while nothing is patched


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
    for module in map(importlib.import_module, MODULES):
        for name in chosen:
            if hasattr(maxmargin, name):
                _theirs.setdefault((module.__name__, name), getattr(module, name))
                setattr(module, name, getattr(maxmargin, name))


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
    for (module, name), theirs in _theirs.items():
        setattr(importlib.import_module(module), name, theirs)
    _theirs.clear()


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
    before = dict(_theirs)
    patch_sklearn(names)
    try:
        yield
    finally:
        for place in set(_theirs) - set(before):
            setattr(importlib.import_module(place[0]), place[1], _theirs.pop(place))
