"""Writes the model files that later versions must still read: python tests/data/models/write.py

A folder per version of the format. Once a version is released its folder stays as it is, whatever the code becomes.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import maxmargin
from maxmargin import DCSVC, DCSVR, SVC, SVR, BudgetSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.data.container import VERSION

MODELS = {
    "SVC": SVC(C=10, warm_start=True, class_weight={"b": 2.0}),
    "SVC-sparse": SVC(kernel="poly", degree=2, coef0=1.0),
    "NuSVC": NuSVC(nu=0.2, kernel="laplacian"),
    "SVR": SVR(C=10, epsilon=0.3, warm_start=True),
    "NuSVR": NuSVR(nu=0.2, kernel="sigmoid", gamma=0.1),
    "OneClassSVM": OneClassSVM(nu=0.2),
    "DCSVC": DCSVC(stop_level=1, levels=1, sample_size=20, fit_intercept=True, random_state=0),
    "DCSVR": DCSVR(stop_level=1, levels=1, sample_size=20, epsilon=0.3, predict_with="bcm", random_state=0),
    "LinearSVC": LinearSVC(warm_start=True, solver="ocas", tol=0.2),
    "LinearSVR": LinearSVR(warm_start=True, solver="ocas", epsilon=0.3, tol=0.2),
    "BudgetSVC": BudgetSVC(budget=8, random_state=0),
}


def answers(model, X) -> list[list[float]]:
    """Decision values, or predictions of a regressor, as a table."""
    ask = getattr(model, "decision_function", model.predict)
    return np.asarray(ask(X)).reshape(len(X), -1).tolist()


def main() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    X = np.round(rng.normal(size=(60, 2)) + 2.0 * np.array([[0, 0], [1, 0], [0, 1]])[y], 2)
    points = np.round(rng.normal(size=(12, 2)) * 2, 2)
    folder = Path(__file__).parent / f"v{VERSION}"
    folder.mkdir(exist_ok=True)
    expected = {"points": points.tolist(), "answers": {}, "report": {}}
    for name, model in MODELS.items():
        target = y.astype(float) if name in ("SVR", "NuSVR", "DCSVR", "LinearSVR") else np.array(["a", "b", "ç"], object)[y]
        model.fit(sp.csr_matrix(X) if "sparse" in name else X, target)
        maxmargin.save(model, folder / f"{name}.mxm")
        expected["answers"][name] = answers(model, points)
        numbers = [repr(float(value)) for value in (model.objective_, model.dual_gap_)]
        expected["report"][name] = [model.status_, *numbers, len(model.trace_)]
    (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
