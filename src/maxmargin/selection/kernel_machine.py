"""What SVCCV, NuSVCCV and SVRCV share: which engine, which grid, and that they are what they chose."""

from __future__ import annotations

from typing import Any

from maxmargin.selection.grid import Grid
from maxmargin.selection.kernel import KernelFolds, can_share
from maxmargin.selection.machine import Selecting
from maxmargin.selection.scoring import Scoring
from maxmargin.selection.search import Engine, Task


class SelectingKernel(Selecting):
    """Along the first axis (C or ν) solutions follow one another."""

    kernel: Any

    def _engine(self, task: Task, scoring: Scoring) -> Engine:
        path = next(iter(self._axes))
        if can_share(self._single({}), task):
            return KernelFolds(task, self._single, scoring, path)
        return super()._engine(task, scoring)

    def _grid(self, data: Any) -> Grid:
        grid = super()._grid(data)
        without = self.kernel in ("linear", "precomputed") or callable(self.kernel)
        if without and isinstance(self.gammas, int):
            grid.axes["gamma"] = [1.0]  # which these kernels do not have
        return grid

    def __getattr__(self, name: str) -> Any:
        """C, gamma, … are what was chosen: C_, gamma_, …"""
        if name in type(self)._axes and f"{name}_" in vars(self):
            return vars(self)[f"{name}_"]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


