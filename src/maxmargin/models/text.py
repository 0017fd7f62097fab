"""What LIBSVM's and LIBLINEAR's model files share: lines `key value value …` up to a last line that is a key alone."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.data.atomic import replacing
from maxmargin.data.container import ModelFileError
from maxmargin.estimators._base import check_number

FloatArray = NDArray[np.float64]


class Head:
    """The lines before the numbers, read once: each key's words, and errors that name the key."""

    def __init__(self, text: bytes, last: bytes, known: set[str], path: Any) -> None:
        self._path = path
        self.words: dict[str, list[str]] = {}
        head, found, self.rest = text.partition(b"\n" + last + b"\n")
        if not found:
            head, found, self.rest = text.replace(b"\r\n", b"\n").partition(b"\n" + last + b"\n")
        if not found:
            raise self.error(f"there is no line {last.decode()!r}: it is cut short, or not such a model")
        for line in head.decode("ascii", "replace").split("\n"):
            key, *words = line.split() or [""]
            if key not in known or key in self.words:
                raise self.error(f"{key!r:.40} is not expected here")
            self.words[key] = words
        self.first_line = head.count(b"\n") + 3  # of the numbers, counted from 1

    def error(self, trouble: str) -> ModelFileError:
        return ModelFileError(f"{self._path}: {trouble}")

    def choice(self, key: str, choices: Iterable[str]) -> str:
        known = list(choices)
        words = self._some(key, 1)
        if words[0] not in known:
            raise self.error(f"{key} {words[0]:.40} cannot be read: only {', '.join(known)}")
        return words[0]

    def whole(self, key: str, count: int | None = 1) -> list[int]:
        words = self._some(key, count)
        try:
            return [int(word) for word in words]
        except ValueError:
            raise self.error(f"{key} must be whole numbers") from None

    def real(self, key: str, count: int | None = 1) -> list[float]:
        words = self._some(key, count)
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = [math.nan]
        if not all(map(math.isfinite, values)):
            raise self.error(f"{key} must be finite numbers")
        return values

    def _some(self, key: str, count: int | None) -> list[str]:
        words = self.words.get(key)
        if words is None or (count is not None and len(words) != count):
            raise self.error(f"{key} must be there, with {'its' if count is None else count} value(s)")
        return words


def numbers(text: bytes, path: Any) -> FloatArray:
    """All numbers of a text; '_' is Python's, not theirs."""
    try:
        if b"_" in text:
            raise ValueError
        values: FloatArray = np.array(text.split(), dtype=np.float64)
    except ValueError:
        raise ModelFileError(f"{path}: there is something else than numbers among the numbers") from None
    if not np.isfinite(values).all():
        raise ModelFileError(f"{path}: a number is not finite")
    return values


def spelled(values: Iterable[Any]) -> str:
    """Numbers by as many digits as it takes to read them back to the last bit."""
    return " ".join(f"{float(value):.17g}" for value in values)


def whole_labels(model: Any, program: str) -> list[int]:
    """The classes as the integers that `program` knows them by."""
    classes = model.classes_
    fits = classes.dtype.kind in "biuf" and bool((np.abs(classes.astype(np.float64)) < 2**31).all())
    labels = [int(label) for label in classes] if fits else []
    if not fits or any(label != given for label, given in zip(labels, classes.tolist())):
        raise ValueError(
            f"classes {classes.tolist()!r:.60}: {program} knows integers of 32 bits only. "
            "Encode y (sklearn.preprocessing.LabelEncoder), or save in maxmargin's own format"
        )
    return labels


def check_kind(model: Any, kinds: tuple[type, ...], program: str) -> None:
    if type(model) not in kinds:
        raise ValueError(
            f"{type(model).__name__} has no place in {program}'s format, only {', '.join(k.__name__ for k in kinds)} "
            "have: use maxmargin.save or maxmargin.to_onnx"
        )
    check_is_fitted(model)


def uncertified(n_features: int) -> dict[str, Any]:
    """The report on a machine that somebody else fitted: nothing is known of how good it is."""
    nan = float("nan")
    return {"n_features_in_": n_features, "status_": "unknown", "objective_": nan, "dual_gap_": nan, "timings_": {}}


def read_text(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write_lines(path: str | os.PathLike[str], lines: Iterable[str]) -> None:
    with replacing(path) as file:
        for line in lines:
            file.write((line + "\n").encode("ascii"))


def features(found: int, n_features: int | None, path: Any) -> int:
    """How many features a model has: as many as it names, unless the caller knows better."""
    if n_features is None:
        return max(found, 1)
    check_number("n_features", n_features, low=1, closed="left", integer=True, remedy="or None to take it from the file")
    if n_features < found:
        raise ValueError(f"n_features={n_features} is below feature {found}, which {path} names")
    return int(n_features)
