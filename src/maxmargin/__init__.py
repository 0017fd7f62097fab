"""Support vector machines for large data, with a certificate for every answer."""

from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxmargin.discovery import all_estimators
    from maxmargin.estimators.budget import BudgetSVC
    from maxmargin.estimators.dc import DCSVC, DCSVR
    from maxmargin.estimators.linear import LinearSVC, LinearSVR
    from maxmargin.estimators.oneclass import OneClassSVM
    from maxmargin.estimators.svc import SVC, NuSVC
    from maxmargin.estimators.svr import SVR, NuSVR
    from maxmargin.models import load, save
    from maxmargin.models.onnx import to_onnx
    from maxmargin.patching import patch_sklearn, patched, unpatch_sklearn
    from maxmargin.problem.fitted import certify_fit
    from maxmargin.reports import report
    from maxmargin.selection.dc import DCSVCCV
    from maxmargin.selection.linear import LinearSVCCV, LinearSVRCV
    from maxmargin.selection.svc import SVCCV, NuSVCCV
    from maxmargin.selection.svr import SVRCV

    __version__: str

__all__ = [
    "DCSVC", "DCSVCCV", "DCSVR", "SVC", "SVCCV", "SVR", "SVRCV", "BudgetSVC", "LinearSVC", "LinearSVCCV", "LinearSVR",
    "LinearSVRCV", "NuSVC", "NuSVCCV", "NuSVR", "OneClassSVM", "all_estimators", "certify_fit", "load", "patch_sklearn",
    "patched", "report", "save", "to_onnx", "unpatch_sklearn",
]  # fmt: skip

# Where each name is. They are imported when they are first asked for: scikit-learn takes more than a second, which programs
# that want to choose what it imports (start.py), or nothing of all this, need not wait for.
_WHERE = {
    **dict.fromkeys(("DCSVC", "DCSVR"), "estimators.dc"),
    **dict.fromkeys(("LinearSVC", "LinearSVR"), "estimators.linear"),
    **dict.fromkeys(("SVC", "NuSVC"), "estimators.svc"),
    **dict.fromkeys(("SVR", "NuSVR"), "estimators.svr"),
    **dict.fromkeys(("SVCCV", "NuSVCCV"), "selection.svc"),
    **dict.fromkeys(("LinearSVCCV", "LinearSVRCV"), "selection.linear"),
    **dict.fromkeys(("load", "save"), "models"),
    **dict.fromkeys(("patch_sklearn", "patched", "unpatch_sklearn"), "patching"),
    "BudgetSVC": "estimators.budget",
    "all_estimators": "discovery",
    "OneClassSVM": "estimators.oneclass",
    "DCSVCCV": "selection.dc",
    "SVRCV": "selection.svr",
    "certify_fit": "problem.fitted",
    "report": "reports",
    "to_onnx": "models.onnx",
}


# One thread at a time: Python ends in a _DeadlockError where one imports a package whose first lines import its modules, and
# another one of these modules. Not for parts of the package: modules ask for these while Python holds the locks of modules.
_importing = RLock()


def __getattr__(name: str) -> Any:
    """A public name, or a part of the package (`maxmargin.data`), imported now."""
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("maxmargin")
    elif name in _WHERE:
        with _importing:
            value = getattr(import_module(f"maxmargin.{_WHERE[name]}"), name)
    else:
        try:
            return import_module(f"maxmargin.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"maxmargin.{name}":
                raise
            raise AttributeError(f"module 'maxmargin' has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
