"""OneClassSVM: the support of a distribution, by decomposition."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from maxmargin.estimators._base import check_number
from maxmargin.estimators._checkpoints import EVERY
from maxmargin.estimators._constraints import EXACT, NU, Constraints
from maxmargin.estimators._kernel import KernelMachine
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._setup import Setup, row_numbers
from maxmargin.problem.formulations import intercept_and_r, one_class
from maxmargin.runtime import Control, Result

FloatArray = NDArray[np.float64]


class OneClassSVM(OutlierMixin, KernelMachine):
    """One-class SVM (novelty detection) by parallel decomposition, with a certificate.

    A drop-in for `sklearn.svm.OneClassSVM`. Parameters and attributes not listed here are those of `maxmargin.SVC`.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        Upper bound on the fraction of training samples called outliers, lower bound on that of support vectors.

    Attributes
    ----------
    offset_ : float
        decision_function = score_samples − offset_.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVM(nu=0.1).fit(X)
    >>> float((model.predict(X) == -1).mean()) <= 0.12
    True
    """

    _parameter_constraints: ClassVar[Constraints] = EXACT | NU

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
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
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
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
        check_number("nu", self.nu, low=0, high=1, closed="right", remedy="the fraction of outliers allowed")

    def _solved(self, data: Labelled, control: Control) -> tuple[Result, dict[str, Any]]:
        setup = Setup(self, data)
        qp, n_rows = one_class(self.nu, setup.rows.weight, setup.over), setup.data.X.shape[0]
        last = getattr(self, "_last", None) if self.warm_start else None
        warm = None
        if self.warm_start and setup.same_rows(last) and last is not None:
            warm = qp.repaired(last["alpha"], setup.over)
        result = setup.solve(qp, control, warm)
        alpha = setup.rows.spread(result.alpha, n_rows, np.ones(qp.n))
        support, vectors, coef, _ = setup.expansion(alpha[None], np.zeros(n_rows, np.int64))
        b, _ = intercept_and_r(result.multipliers)
        attributes = {
            "support_": support.astype(row_numbers(setup.n_rows)),
            "support_vectors_": vectors,
            "n_support_": np.array([len(support)], np.int32),
            "dual_coef_": np.ascontiguousarray(coef),
            "intercept_": np.array([b]),
            "offset_": -b,
            **self._about(setup, [result]),
        }
        if self.warm_start:
            attributes["_last"] = {"index": setup.rows.index, "alpha": result.alpha}
        return result, attributes

    def score_samples(self, X: Any) -> FloatArray:
        """Σ_i alpha_i K(sv_i, x): larger is more like the training samples."""
        return self._decision_values(X, np.zeros(1)).ravel()

    def decision_function(self, X: Any) -> FloatArray:
        """Positive inside the estimated support."""
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """+1 for inliers, −1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.int64)
