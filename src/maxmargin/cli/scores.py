"""How good predictions are, in the words of svm-predict and of svm-train -v, and as values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def judged(y: Any, predicted: Any, numbers: bool) -> dict[str, Any]:
    """Accuracy; or mean squared error and squared correlation of predicted numbers (NaN where one of them is constant)."""
    if not numbers:
        a, b = np.asarray(y), np.asarray(predicted)
        if (a.dtype.kind in "OUS") != (b.dtype.kind in "OUS"):
            raise ValueError(f"labels of the data, such as {a[0]!r}, and of the model, such as {b[0]!r}, are of two kinds")
        correct = int(np.sum(a == b))
        return {"accuracy": correct / len(y), "correct": correct, "rows": len(y)}
    a, b = np.asarray(y, np.float64), np.asarray(predicted, np.float64)
    u, v = a - a.mean(), b - b.mean()
    spread = float(u @ u) * float(v @ v)
    return {
        "mean_squared_error": float(np.mean((a - b) ** 2)),
        "squared_correlation": float(u @ v) ** 2 / spread if spread > 0 else math.nan,
        "rows": len(a),
    }


def predicted_lines(values: dict[str, Any]) -> list[str]:
    """As svm-predict says it."""
    if "accuracy" in values:
        return [f"Accuracy = {100 * values['accuracy']:g}% ({values['correct']}/{values['rows']}) (classification)"]
    return [
        f"Mean squared error = {values['mean_squared_error']:g} (regression)",
        f"Squared correlation coefficient = {values['squared_correlation']:g} (regression)",
    ]


def cross_validated(y: Any, predicted: Any, numbers: bool) -> tuple[list[str], dict[str, Any]]:
    """As svm-train -v says it."""
    values = judged(y, predicted, numbers)
    if not numbers:
        return [f"Cross Validation Accuracy = {100 * values['accuracy']:g}%"], values
    return [
        f"Cross Validation Mean squared error = {values['mean_squared_error']:g}",
        f"Cross Validation Squared correlation coefficient = {values['squared_correlation']:g}",
    ], values
