"""The primal objective of a budgeted model on a weighted set of rows,

    ½·Σ_c (|w_c|² + b_c²) + C·Σ_i c_i·Σ_c max(0, 1 - y_ic·f_c(x_i))

over the outputs c. In float64 whatever precision the model is kept in: with C = 1000 and 500 support vectors the sums of
float32 values would be wrong in the third digit. Cost: rows·budget kernel values, some rows at a time, so that memory
does not grow with the rows and Ctrl-C is heard.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.budget.model import FloatArray, Options, decision_values, squared_norms

WORK = 1e9  # multiplications between two moments at which a second Ctrl-C is heard: some tenths of a second


class Objective:
    """For rows of x with their class numbers and weights; labels are indexed by row, weight by entry of rows."""

    def __init__(
        self,
        x: Any,
        rows: NDArray[np.int64],
        labels: NDArray[np.int32],
        weight: FloatArray,
        options: Options,
        threads: int,
    ) -> None:
        self._x, self._rows, self._labels, self._weight = x, rows, labels, weight
        self._options, self._threads = options, threads

    def __call__(self, centres: NDArray[Any], models: list[tuple[FloatArray, FloatArray]]) -> list[float]:
        """The objective of each model (coef, intercept) on these centres; kernel values are shared by them."""
        options, k = self._options, len(models)
        coef, intercept = np.vstack([m[0] for m in models]), np.concatenate([m[1] for m in models])
        losses = np.zeros(k)
        points = centres.astype(np.float64)
        step = max(512, int(WORK / (max(len(centres), 1) * (options.features + 20.0))))
        for begin in range(0, len(self._rows), step):
            rows = self._rows[begin : begin + step]
            values = decision_values(self._x, rows, points, coef, intercept, options.gamma, self._threads)
            for c in range(options.outputs):
                lack = np.maximum(0.0, 1 - signs(self._labels[rows], c, options)[:, None] * values[:, c :: options.outputs])
                losses += self._weight[begin : begin + step] @ lack
        norms = squared_norms(centres, coef, options.gamma, self._threads) + intercept**2
        return [float(v) for v in norms.reshape(k, -1).sum(axis=1) / 2 + options.C * losses]


def signs(labels: NDArray[np.int32], output: int, options: Options) -> FloatArray:
    """±1 per row for one output: with two classes there is one, of which class 1 is positive, else one per class."""
    return np.where(labels == (1 if options.outputs == 1 else output), 1.0, -1.0)
