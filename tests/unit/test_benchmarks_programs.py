"""The benchmarks of whole programs and of single rows: their verdicts, and that models from files are judged alike."""

from __future__ import annotations

import pathlib
import shutil
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from benchmarks import objectives
from benchmarks.base import Data, Problem, discover


def records(ours: float, theirs: float | None, **changes):
    problem = {"task": "svc", "C": 1.0, "kernel": "rbf", "gamma": 1.0, "tol": 1e-3}
    shape = {"dataset": "a", "rows": 9, "features": 2, "sparse": False, "label": ""}
    same = shape | {"problem": problem, "extra": {"text_mb": 1.0}, "times": [], "mark": None}
    late = {"status": "timeout", "best": None, "reason": "more than 90 s"}
    peer = late if theirs is None else {"status": "ok", "best": theirs}
    mine = {"solver": "maxmargin-train", "status": "ok", "best": ours}
    return [same | mine | changes, same | {"solver": "svm-train"} | peer]


@pytest.mark.parametrize(("cells", "verdict"), [
    (records(1.0, 20.0), "reached"), (records(1.0, 14.9), "LOST"), (records(1.0, None), "reached"),
    (records(10.0, None), "LOST"), (records(1.0, 20.0, mark="objective +3 %"), "LOST"),
])  # fmt: skip
def test_goals_of_whole_programs(cells, verdict) -> None:
    table = discover("experiments")["end_to_end"]()._goals({"records": cells})
    assert table.splitlines()[-1].split("|")[-2].strip() == verdict


def test_goals_of_single_rows() -> None:
    def record(solver, callers, best):
        size = {"calls": 100.0, "support_vectors": 1000.0}
        same = {"dataset": "a", "solver": solver, "label": f"{callers}", "status": "ok", "measure": "fit", "extra": size}
        return same | {"best": best, "times": [best], "problem": {"options": {"callers": callers}}}

    shown = discover("experiments")["latency"]().report({"records": [
        record("maxmargin-latency", 1, 4e-3), record("scikit-learn-latency", 1, 3e-2), record("maxmargin-latency", 2, 1e-2),
    ]})  # fmt: skip
    first, second = ([cell.strip() for cell in line.split("|")[1:-1]] for line in shown.splitlines()[2:4])
    assert first == ["1", "1,000", "40", "300", "50", "reached"] and second == ["2", "1,000", "100", "", "50", "LOST"]


@pytest.mark.skipif(not shutil.which("svm-train"), reason="LIBSVM's programs are not installed (libsvm-tools)")
def test_both_programs_reach_the_same_objective() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=120) > 0, 1, -1)
    data, problem = Data(X, y, X, y), Problem("svc", C=3.0, gamma=0.5, tol=1e-5)
    found = []
    for name in ("maxmargin-train", "svm-train"):
        solver = discover("solvers")[name]()
        assert solver.skip(problem, data) is None
        solver.prepare(problem, X, y, 1)
        solver.fit()
        found.append(objectives.evaluate(problem, data, solver.model(X), 1, False).primal)
        assert solver.extra()["model_mb"] > 0 and (solver.predict(X) == y).mean() > 0.8
    assert found[0] == pytest.approx(found[1], rel=1e-4)
