"""maxmargin's own model files: every machine, all of its parameters and fitted attributes, no code."""

from __future__ import annotations

import os
from copy import deepcopy
from typing import Any

from sklearn.utils.validation import check_is_fitted

from maxmargin.data.container import ModelFileError, read, write
from maxmargin.estimators._base import VERSION
from maxmargin.models.schema import MACHINES
from maxmargin.models.values import Decoder, Encoder


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted machine; the file appears complete or not at all."""
    kind = type(model)
    machine = MACHINES.get(kind.__name__)
    if machine is None or kind is not machine.kind:
        raise ValueError(
            f"{kind.__name__} is not a machine of maxmargin ({', '.join(MACHINES)}): save the machine inside it, "
            "or the whole with skops or joblib"
        )
    check_is_fitted(model)
    names = model.get_params(deep=False)
    state = {name: value for name, value in vars(model).items() if name not in names}
    encode = Encoder()
    header = {
        "format": "maxmargin model",
        "written_by": VERSION,
        "class": kind.__name__,
        "params": {name: encode(value, name) for name, value in sorted(names.items())},
        "state": {name: encode(value, name) for name, value in sorted(state.items())},
    }
    _made(header, Decoder(encode.arrays))  # what could not be read again is not written
    write(path, header, encode.arrays)


def load(path: str | os.PathLike[str], mmap: bool = False) -> Any:
    """The machine in a file of maxmargin's own format."""
    _, header, arrays = read(path, mmap)
    try:
        return _made(header, Decoder(arrays))
    except RecursionError:
        raise ModelFileError(f"{path}: values nested without end") from None
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def _made(header: dict[str, Any], decode: Decoder) -> Any:
    if header.get("format") == "maxmargin checkpoint":
        raise ModelFileError("a checkpoint of a fit, not a model: give it as `checkpoint` to the same fit")
    name = header.get("class")
    machine = MACHINES.get(name) if isinstance(name, str) else None
    if machine is None:
        raise ModelFileError(f"{name!r:.40} is not a machine of maxmargin")
    parts = {}
    for part in ("params", "state"):
        content = header.get(part)
        if not isinstance(content, dict):
            raise ModelFileError(f"there are no {part}")
        parts[part] = {name: decode(node) for name, node in content.items()}
    unknown = set(parts["params"]) - set(machine.kind._get_param_names())  # type: ignore[attr-defined]
    if unknown:
        raise ModelFileError(f"parameters {sorted(unknown)} are unknown (a newer maxmargin may have written them)")
    state = {**deepcopy(machine.later), **parts["state"]}
    machine.check(state)
    model = machine.kind(**parts["params"])
    try:
        model._validate_params()
    except ValueError as error:
        raise ModelFileError(str(error)) from None
    model.__dict__.update(state)
    return model
