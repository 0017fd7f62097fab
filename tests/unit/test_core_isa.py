"""Every instruction-set level that is built gives the same answers as the one that this machine runs by default."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap

import pytest

from maxmargin import _core, _cpu

PROGRAM = """
    import json, warnings
    import numpy as np, scipy.sparse as sp
    from maxmargin import SVC, SVR, OneClassSVM, _core
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 7)).astype(np.float32)
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 1, 1, -1)
    S = sp.csr_matrix(np.where(np.abs(X) > 0.8, X, 0))
    out = {"isa": _core.ISA}
    for kernel in ("rbf", "linear", "poly", "sigmoid", "laplacian"):
        gamma = 0.01 if kernel == "sigmoid" else 0.2
        for name, Z in (("dense", X), ("sparse", S), ("double", X[:300].astype(float))):
            m = SVC(kernel=kernel, gamma=gamma, C=0.5, tol=1e-3).fit(Z, y[: Z.shape[0]])
            out[f"{kernel} {name}"] = [m.status_, m.objective_, m.dual_gap_, *m.decision_function(Z[:5]).tolist()]
    print(json.dumps(out))
"""


def answers(level: str) -> dict:
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        env={**os.environ, "MAXMARGIN_ISA": level}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(out.stdout)


@pytest.mark.parametrize("level", ["v2", "v4"])
def test_levels_agree(level: str) -> None:
    if importlib.util.find_spec(f"maxmargin._core_{level}") is None:
        pytest.skip(f"_core_{level} is not built (a build with LEVELS=v3 has one level only)")
    if level > _cpu.level():
        pytest.skip(f"this processor runs {_cpu.level()} at most")
    other, here = answers(level), answers(_core.ISA)
    assert other.pop("isa") == level and here.pop("isa") == _core.ISA
    for case, (status, objective, gap, *scores) in here.items():
        assert status == other[case][0] == "converged", case
        # both are within their gaps of the same optimum
        assert other[case][1] == pytest.approx(objective, abs=gap + other[case][2]), case
        assert other[case][3:] == pytest.approx(scores, abs=0.02), case


@pytest.mark.parametrize(
    "setting, value, says",
    [
        ("MAXMARGIN_ISA", "v9", "MAXMARGIN_ISA='v9': this installation has"),
        ("MAXMARGIN_CORE", "/nowhere/core.so", "MAXMARGIN_CORE='/nowhere/core.so' is not a compiled core"),
        ("MAXMARGIN_CORE", "/nowhere/_core_v3.txt", "MAXMARGIN_CORE='/nowhere/_core_v3.txt' is not a compiled core"),
        ("MAXMARGIN_CORE", "/nowhere/_core_v3.so", "/nowhere/_core_v3.so: cannot open"),
    ],
)
def test_a_core_that_is_not_there_is_refused(setting: str, value: str, says: str) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAXMARGIN_")}
    command = [sys.executable, "-c", "import maxmargin._core"]
    out = subprocess.run(command, env={**environment, setting: value}, capture_output=True, text=True)
    assert out.returncode != 0 and says in out.stderr


def test_a_core_that_was_built_apart_can_be_chosen() -> None:
    spec = importlib.util.find_spec(f"maxmargin._core_{_core.ISA}")
    code = "from maxmargin import SVC, _core; fit = SVC().fit([[0], [1]], [0, 1]); print(_core.ISA, _core._module.__file__)"
    out = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "MAXMARGIN_CORE": str(spec.origin)}, capture_output=True, text=True,
    )  # fmt: skip
    assert out.stdout.split() == [_core.ISA, spec.origin], out.stderr
