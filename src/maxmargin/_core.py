"""The native core for this machine: the compiled module of the best instruction-set level that it can run.

`MAXMARGIN_ISA` (v2, v3, v4 or portable) overrides the choice, for tests and bug reports.
"""

import importlib
import importlib.util
import os

from maxmargin import _cpu

_LEVELS = ("v4", "v3", "v2", "portable")


def _choose() -> str:
    built = [level for level in _LEVELS if importlib.util.find_spec(f"maxmargin._core_{level}")]
    wanted = os.environ.get("MAXMARGIN_ISA")
    if wanted:
        if wanted not in built:
            raise ImportError(f"MAXMARGIN_ISA={wanted!r}: this installation has {', '.join(built)}")
        return wanted
    runnable = [level for level in built if level == "portable" or level <= _cpu.level()]
    if not runnable:
        raise ImportError(f"no module of {', '.join(built)} runs on this processor ({_cpu.level()}): build from source")
    return runnable[0]


ISA = _choose()
globals().update({k: v for k, v in vars(importlib.import_module(f"maxmargin._core_{ISA}")).items() if k[0] != "_"})
