"""The native core for this machine: the compiled module of the best instruction-set level that it can run.

`MAXMARGIN_ISA` (v2, v3, v4 or portable) overrides the choice, for tests and bug reports. `MAXMARGIN_CORE`, the path of a
module that was built apart (with a sanitizer, say), takes the place of them all.
"""

import importlib
import importlib.util
import os
from pathlib import Path
from types import ModuleType

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


def _load() -> tuple[str, ModuleType]:
    path = os.environ.get("MAXMARGIN_CORE")
    if not path:
        level = _choose()
        return level, importlib.import_module(f"maxmargin._core_{level}")
    name = Path(path).name.split(".")[0]
    spec = importlib.util.spec_from_file_location(f"maxmargin.{name}", path)
    if spec is None or spec.loader is None or not name.startswith("_core_"):
        raise ImportError(f"MAXMARGIN_CORE={path!r} is not a compiled core: it must be the file _core_<level>.<suffix>")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return name.removeprefix("_core_"), module


ISA, _module = _load()
globals().update({k: v for k, v in vars(_module).items() if k[0] != "_"})
