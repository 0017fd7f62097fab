"""The small classes inside fitted machines that a model file may hold, under names of the file's own."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

from maxmargin.budget.model import Options
from maxmargin.data.container import ModelFileError
from maxmargin.divide.clustering import Centers
from maxmargin.divide.early import Committee, Router
from maxmargin.linear.bundle import Cuts
from maxmargin.problem.kernels import Kernel


class Record:
    """A class and the fields it is made of; of a dataclass those it declares."""

    def __init__(self, kind: Any, *names: str) -> None:
        self.kind = kind
        self._declared = is_dataclass(kind)
        declared = fields(kind) if self._declared else ()
        self.fields = names or tuple(field.name for field in declared)
        self.optional = {f.name for f in declared if f.default is not MISSING or f.default_factory is not MISSING}

    def parts(self, value: Any) -> dict[str, Any]:
        """Its fields, which must be all it has: what is not stored would be missing when the model goes on."""
        if not self._declared and set(vars(value)) != set(self.fields):
            named = f"models/records.py names {self.fields} of {self.kind.__name__}"
            raise RuntimeError(f"{named}, which has {list(vars(value))}")
        return {name: getattr(value, name) for name in self.fields}

    def made(self, values: dict[str, Any]) -> Any:
        """An instance with these values; fields that came later than the file have their defaults."""
        unknown, missing = set(values) - set(self.fields), set(self.fields) - set(values) - self.optional
        if unknown or missing:
            raise ModelFileError(f"{self.kind.__name__}: fields {sorted(unknown)} are unknown, {sorted(missing)} missing")
        if self._declared:
            return self.kind(**values)
        made = self.kind.__new__(self.kind)  # one that changes: arrays of its own, not those of a file that is mapped
        made.__dict__.update({k: v.copy() if isinstance(v, np.ndarray) else v for k, v in values.items()})
        return made


RECORDS = {
    "Kernel": Record(Kernel),
    "Centers": Record(Centers),
    "Router": Record(Router),
    "Committee": Record(Committee),
    "BudgetOptions": Record(Options),
    "Cuts": Record(Cuts),
}


def name_of(value: Any) -> str | None:
    """The name under which a value is stored, if it may be."""
    return next((name for name, record in RECORDS.items() if type(value) is record.kind), None)
