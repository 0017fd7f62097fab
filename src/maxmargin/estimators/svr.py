"""SVR and NuSVR: kernel regression with the ε-insensitive loss, by decomposition."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from maxmargin.decomposition.options import DualResult
from maxmargin.estimators._base import check_number, require_fitted
from maxmargin.estimators._checkpoints import EVERY
from maxmargin.estimators._constraints import EPSILON, EXACT, INTERCEPT, NU, C, Constraints, positive
from maxmargin.estimators._kernel import KernelMachine, check_C
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._setup import Setup, row_numbers
from maxmargin.problem.formulations import QP, epsilon_svr, intercept_and_r, nu_svr
from maxmargin.problem.sums import Sums
from maxmargin.runtime import Control, Result

FloatArray = NDArray[np.float64]


class _KernelRegressor(RegressorMixin, KernelMachine):
    """One QP over 2n variables that share n kernel rows; a subclass builds it."""

    C: float

    def _qp(self, t: FloatArray, weight: FloatArray, over: Sums) -> QP:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_C(self.C)

    def _solved(self, data: Labelled, control: Control) -> tuple[Result, dict[str, Any]]:
        setup = Setup(self, data)
        qp = self._qp(setup.data.target[setup.rows.index], setup.rows.weight, setup.over)
        result = setup.solve(qp, control, self._warm_alpha(setup, qp))
        return result, self._attributes(setup, qp, result)

    def _warm_alpha(self, setup: Setup, qp: QP) -> FloatArray | None:
        if self._begin_from is not None:
            shares = self._begin_from[0, -1].shares[:, setup.rows.index]
            return qp.repaired(shares.ravel() * qp.upper)
        last = getattr(self, "_last", None) if self.warm_start else None
        if not self.warm_start or not setup.same_rows(last) or last is None:
            return None
        return qp.repaired(last["alpha"] * (self._unit() / last["unit"]), setup.over)

    def _attributes(self, setup: Setup, qp: QP, result: DualResult) -> dict[str, Any]:
        unit, n_rows = np.full(qp.n, self._unit()), setup.data.X.shape[0]
        plus, minus = (setup.rows.spread(half, n_rows, unit) for half in result.alpha.reshape(2, qp.n))
        support, vectors, coef, _ = setup.expansion((plus - minus)[None], np.zeros(n_rows, np.int64))
        intercept, tube = intercept_and_r(result.multipliers)
        attributes = {
            "support_": support.astype(row_numbers(setup.n_rows)),
            "support_vectors_": vectors,
            "n_support_": np.array([len(support)], np.int32),
            "dual_coef_": np.ascontiguousarray(coef),
            "intercept_": np.array([intercept]),
            **self._about(setup, [result]),
        }
        if len(qp.targets) == 2:
            attributes["epsilon_"] = tube
        if self.warm_start:
            attributes["_last"] = {"index": setup.rows.index, "alpha": result.alpha, "unit": self._unit()}
        return attributes

    def predict(self, X: Any) -> FloatArray:
        """Predicted target of each sample."""
        require_fitted(self)
        return self._decision_values(X, self.intercept_).ravel()


class SVR(_KernelRegressor):
    """ε-support vector regression by parallel decomposition, with a certificate.

    A drop-in for `sklearn.svm.SVR`. Parameters and attributes not listed here are those of `maxmargin.SVC`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses max(0, |y − f(x)| − epsilon) against ½‖w‖².
    epsilon : float, default=0.1
        Half width of the tube inside which errors cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVR
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = SVR(C=10, epsilon=0.05).fit(X, np.sin(X).ravel())
    >>> model.status_, model.score(X, np.sin(X).ravel()) > 0.99
    ('converged', True)
    """

    _parameter_constraints: ClassVar[Constraints] = EXACT | C | EPSILON | INTERCEPT

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        fit_intercept: bool = True,
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[dict[str, float]], Any] | None = None,
        working_set_size: int | None = None,
        inner_solver: str = "smo",
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = EVERY,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
        self.working_set_size = working_set_size
        self.inner_solver = inner_solver
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("epsilon", self.epsilon, low=0, closed="left", remedy="the half width of the tube")

    def _qp(self, t: FloatArray, weight: FloatArray, over: Sums) -> QP:
        return epsilon_svr(t, self.epsilon, self._unit() * weight, self.fit_intercept)


class NuSVR(_KernelRegressor):
    """ν-support vector regression: ν bounds the fraction of samples outside the tube, whose width is found.

    A drop-in for `sklearn.svm.NuSVR`. Parameters and attributes not listed here are those of `maxmargin.SVC`.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        Upper bound on the fraction of samples outside the tube, lower bound on that of support vectors.
    C : float, default=1.0
        Weight of the losses.

    Attributes
    ----------
    epsilon_ : float
        Half width of the tube that was found.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import NuSVR
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> NuSVR(C=10, nu=0.3).fit(X, np.sin(X).ravel()).score(X, np.sin(X).ravel()) > 0.99
    True
    """

    _parameter_constraints: ClassVar[Constraints] = EXACT | NU | {"C": [positive()]}

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[dict[str, float]], Any] | None = None,
        working_set_size: int | None = None,
        inner_solver: str = "smo",
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = EVERY,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
        self.working_set_size = working_set_size
        self.inner_solver = inner_solver
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("nu", self.nu, low=0, high=1, closed="right", remedy="the fraction of errors allowed")
        check_number("C", self.C, low=0, remedy="the hard margin has no width to be found: give a finite number, or use SVR")

    def _qp(self, t: FloatArray, weight: FloatArray, over: Sums) -> QP:
        return nu_svr(t, self.nu, self._unit(), weight, over)
