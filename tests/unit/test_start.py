"""What is imported when: with `import maxmargin` nothing dear, by the program no module that it does not use."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import maxmargin


def ran(code: str, *words: str) -> Any:
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_package_waits_for_nobody() -> None:
    code = "import sys, maxmargin as m; print('sklearn' in sys.modules, 'numpy' in sys.modules); m.data.load, m.SVC"
    assert ran(code) == ["False", "False"]


def test_every_public_name_is_there() -> None:
    for name in maxmargin.__all__:
        assert callable(getattr(maxmargin, name)) and name in dir(maxmargin)
    assert maxmargin.__version__ and maxmargin.data.load is not None
    with pytest.raises(AttributeError, match="module 'maxmargin' has no attribute 'svc'"):
        maxmargin.svc  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'SVM' from 'maxmargin'"):
        exec("from maxmargin import SVM")


def test_the_program_imports_what_it_uses(tmp_path) -> None:
    """A whole training, and neither pandas nor scipy.stats; afterwards both can be imported, and what has them works."""
    path = tmp_path / "a.svm"
    path.write_text("".join(f"{(-1) ** i} 1:{i % 7} 2:{i % 5}\n" for i in range(60)))
    code = """
import sys
from maxmargin.start import main
code = main()
print(code, "pandas" in sys.modules, "scipy.stats" in sys.modules)
from sklearn.utils import fixes
print(fixes.scipy.stats.norm.cdf(0.0), "scipy.stats" in sys.modules)
import scipy.stats, pandas
print(scipy.stats.norm.cdf(0.0), pandas.DataFrame({"a": [1]}).shape[0], fixes.pd.DataFrame is pandas.DataFrame)
"""
    out = ran(code, "train", "-q", str(path), str(tmp_path / "m"))
    assert out[-8:] == ["0", "False", "False", "0.5", "True", "0.5", "1", "True"]
