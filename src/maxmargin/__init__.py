"""Support vector machines for large data, with a certificate for every answer."""

from maxmargin.estimators.budget import BudgetSVC
from maxmargin.estimators.dc import DCSVC, DCSVR
from maxmargin.estimators.linear import LinearSVC
from maxmargin.estimators.oneclass import OneClassSVM
from maxmargin.estimators.svc import SVC, NuSVC
from maxmargin.estimators.svr import SVR, NuSVR

__version__ = "0.1.0"
__all__ = ["DCSVC", "DCSVR", "SVC", "SVR", "BudgetSVC", "LinearSVC", "NuSVC", "NuSVR", "OneClassSVM"]
