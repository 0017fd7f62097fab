"""Support vector machines for large data, with a certificate for every answer."""

from maxmargin.discovery import all_estimators
from maxmargin.estimators._base import VERSION
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
from maxmargin.selection.svc import SVCCV, NuSVCCV
from maxmargin.selection.svr import SVRCV

__version__ = VERSION
__all__ = [
    "DCSVC", "DCSVR", "SVC", "SVCCV", "SVR", "SVRCV", "BudgetSVC", "LinearSVC", "LinearSVR", "NuSVC", "NuSVCCV", "NuSVR",
    "OneClassSVM", "all_estimators", "certify_fit", "load", "patch_sklearn", "patched", "report", "save", "to_onnx",
    "unpatch_sklearn",
]  # fmt: skip
