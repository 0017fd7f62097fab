"""What the five exact kernel machines share: parameters, one QP solve, kernel sums for prediction."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples, check_is_fitted, check_X_y

from maxmargin.decomposition.solver import MOST_STEPS
from maxmargin.estimators._base import Machine, check_choice, check_flags, check_number, require_fitted
from maxmargin.estimators._checkpoints import Checkpoint, check_checkpoint
from maxmargin.estimators._prediction import prepared
from maxmargin.estimators._setup import Begin, Setup
from maxmargin.problem.formulations import hard_margin
from maxmargin.problem.kernels import NAMES, checked_block, dense64
from maxmargin.runtime import Result, Status, thread_count

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class KernelMachine(Machine):
    """Parameters and steps common to SVC, NuSVC, SVR, NuSVR and OneClassSVM."""

    kernel: Any
    degree: int
    gamma: Any
    coef0: float
    shrinking: bool
    cache_size: float
    n_jobs: int | None
    working_set_size: int | None
    inner_solver: str
    warm_start: bool
    fit_intercept: bool = True
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: float
    _partition = "columns"  # how ranks share a fit: samples divided, or held by all ("rows")

    support_: IntArray
    support_vectors_: Any
    n_support_: IntArray
    intercept_: FloatArray
    _begin_from: dict[tuple[int, int], Begin] | None = None  # a solution, of each two classes (selection/kernel.py)
    _objects: Any = None  # what a kernel function was fitted to, if that is no matrix of numbers

    def _check_parameters(self) -> None:
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, NAMES)
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ["scale", "auto"])
        else:
            check_number("gamma", self.gamma, low=0, remedy="give a positive number, 'scale' or 'auto'")
        check_number("degree", self.degree, low=0, closed="left", integer=True)
        check_number("coef0", self.coef0)
        check_number("tol", self.tol, low=0, remedy="1e-3 is usual")
        check_number("cache_size", self.cache_size, low=0, remedy="give the megabytes for kernel rows")
        check_number("working_set_size", self.working_set_size, low=2, closed="left", integer=True, optional=True)
        check_flags(self, "shrinking", "fit_intercept", "warm_start")
        check_choice("inner_solver", self.inner_solver, ["smo", "ipm", "gpm"])
        check_checkpoint(self)
        thread_count(self.n_jobs)

    def _check_X(self, X: Any, y: Any = "no_validation", **kwargs: Any) -> Any:
        """Validated samples; a precomputed Gram matrix must be square and dense.

        A kernel function may be given any objects (strings, graphs): then its Gram matrix takes their place.
        """
        self.__dict__.pop("_objects", None)
        if callable(self.kernel) and not is_matrix(X):
            self._objects = X
            n = _num_samples(X)
            gram = checked_block(self.kernel(X, X), (n, n))
            if isinstance(y, str):
                return gram
            return gram, check_X_y(np.zeros((n, 1)), y, **kwargs)[1]
        if self.kernel == "precomputed" and sp.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported: give X.toarray()")
        out = self._validated(X, y, **kwargs)
        x = out[0] if isinstance(out, tuple) else out
        if self.kernel == "precomputed" and x.shape[0] != x.shape[1]:
            raise ValueError(
                f"kernel='precomputed': X must be the square Gram matrix of the training samples, "
                f"but its shape is {x.shape}"
            )
        return out

    def _unit(self) -> float:
        """The bound of a sample of weight 1; C=inf, the hard margin, is solved as a very large one."""
        return hard_margin(getattr(self, "C", 1.0))

    def _scales(self, multipliers: FloatArray) -> FloatArray:
        """By what the coefficients of solutions are divided in the decision function; a row of multipliers for each."""
        return np.ones(len(multipliers))

    def _about(self, setup: Setup, results: Sequence[Result]) -> dict[str, Any]:
        """Attributes that say how the fit went and what prediction needs of it."""
        return {
            "kkt_violation_": float(np.array([r.violation for r in results]).max()),  # NaN if one is
            "fit_status_": int(any(r.status is not Status.CONVERGED for r in results)),
            "shape_fit_": (setup.n_rows, setup.X.shape[1]),
            "_fitted_kernel": setup.kernel,
            "_gamma": setup.kernel.gamma,
            "_precision": np.dtype(setup.dtype).name,
        }

    def _checkpoint(self, setup: Setup, **more: Any) -> Checkpoint:
        """That of a fit: what an earlier run has left, and where this one puts its own."""
        kernel, function = setup.kernel, setup.kernel.function
        name = kernel.name if function is None else f"{function.__module__}.{getattr(function, '__qualname__', '?')}"
        numbers = {"rbf": 1, "laplacian": 1, "sigmoid": 2, "poly": 3}.get(kernel.name, 0)
        of = {key: getattr(kernel, key) for key in ("gamma", "coef0", "degree")[:numbers]}
        return Checkpoint.opened(self, setup.data, setup.threads, setup.comm, kernel=name, **of, **more)

    def _advice(self, result: Result) -> str:
        text = super()._advice(result)
        if result.status is Status.MAX_ITER:  # in the words of scikit-learn, which programs match on
            scale = "Consider pre-processing your data with StandardScaler or MinMaxScaler."
            return f"{text} Solver terminated early (max_iter={self.max_iter}).  {scale}"
        if result.status is not Status.STALLED:
            return text
        return (
            f"{text} A run stalls when turns gain nothing any more, or at {MOST_STEPS:.0e} + 1000 n inner steps "
            f"(made: {result.timings.get('inner_steps', 0):.3g})."
        )

    # ---- prediction ----------------------------------------------------------------------------------------------

    def _kernel_sums(self, X: Any, coef: FloatArray) -> FloatArray:
        """Σ_i coef[c, i] K(sv_i, x) for every row of X: (rows, outputs). Bounded memory, same bits for any batch.

        Rows whose sums overflow in float32 are summed in float64; where that overflows too, that is an error.
        """
        require_fitted(self)
        return prepared(self).finite(self._rows(X), lambda expansion, x: np.asarray(expansion.sums(x, coef).T))

    def _decision_values(
        self, X: Any, intercept: FloatArray, of: Callable[[FloatArray], FloatArray] | None = None
    ) -> FloatArray:
        """Values of each output (pair of classes) for every row of X, or what `of` makes of them, some rows at a time."""
        require_fitted(self)
        x, expansion = self._rows(X), prepared(self)
        short = expansion.few(x, intercept)
        if short is not None:
            return short if of is None else of(short)
        some: list[FloatArray] = []
        for at in expansion.pieces(x.shape[0]):
            rows = x if at.start == 0 and at.stop >= x.shape[0] else x[at]
            values = expansion.finite(rows, lambda machine, rows: machine.decisions(rows, intercept), at.start)
            some.append(values if of is None else of(values))
        return some[0] if len(some) == 1 else np.concatenate(some)

    def _rows(self, X: Any) -> Any:
        """Validated samples to predict, or their kernel values with the training samples."""
        return self._given_values(X) if self._fitted_kernel.name == "precomputed" else self._validated(X, reset=False)

    def _given_values(self, X: Any) -> Any:
        """Kernel values of X with all training samples: X itself, or the kernel function's of objects."""
        if self._objects is None:
            return self._validated(X, reset=False, accept_sparse=False)
        return checked_block(self.kernel(X, self._objects), (_num_samples(X), _num_samples(self._objects)))

    def _coefficients(self) -> FloatArray:
        """dual_coef_ for predictions; an error if a part of the model was changed and does not fit the others any more."""
        require_fitted(self)
        count = len(self.support_)
        vectors = count if self._fitted_kernel.name == "precomputed" else self.support_vectors_.shape[0]
        if not (self._dual.shape[1] == vectors == sum(self.n_support_.tolist()) == count):
            raise ValueError(
                f"The internal representation of {type(self).__name__} was altered: support_, support_vectors_, n_support_ "
                "and dual_coef_ do not speak of as many support vectors; fit it again"
            )
        return self._dual

    def _support(self, X: Any, rows: IntArray) -> Any:
        """The support vectors as they came: rows of X, or nothing where kernel values are given (as in scikit-learn)."""
        if self.kernel == "precomputed" or self._objects is not None:
            return np.empty((0, 0), dtype=X.dtype)
        return X[rows]

    @property
    def dual_coef_(self) -> Any:
        """Coefficients of the support vectors; a sparse matrix after a fit to one, as in scikit-learn."""
        if "dual_coef_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'dual_coef_': fit it first")
        return sp.csr_matrix(self._dual) if sp.issparse(self.support_vectors_) else self._dual

    @dual_coef_.setter
    def dual_coef_(self, value: Any) -> None:
        self.__dict__["dual_coef_"] = dense64(value)

    @property
    def _dual(self) -> FloatArray:
        """dual_coef_ as an array, whatever X was."""
        coef: FloatArray = self.__dict__["dual_coef_"]
        return coef

    @property
    def _dual_coef_(self) -> Any:
        """scikit-learn's inner name of dual_coef_, in LIBSVM's sign: turned for two classes."""
        return -self._dual if len(getattr(self, "classes_", ())) == 2 else self._dual

    @_dual_coef_.setter
    def _dual_coef_(self, value: Any) -> None:
        self.dual_coef_ = -dense64(value) if len(getattr(self, "classes_", ())) == 2 else value

    @property
    def _n_support(self) -> IntArray:
        """scikit-learn's other name of n_support_."""
        return self.n_support_

    @property
    def coef_(self) -> Any:
        """Weights of the features, read-only: for the linear kernel only. A sparse matrix after a fit to one."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        coef = self._linear_coef()
        if sp.issparse(self.support_vectors_):
            coef = sp.csr_matrix(coef)
            coef.data.flags.writeable = False
        else:
            coef.flags.writeable = False
        return coef

    def _linear_coef(self) -> Any:
        return self._dual @ self.support_vectors_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def is_matrix(X: Any) -> bool:
    """Whether X is a table of numbers, to be judged by scikit-learn's rules, and not a collection of other objects."""
    if sp.issparse(X) or hasattr(X, "columns"):
        return True
    try:
        array = np.asarray(X)
        return bool(array.ndim == 2 and array.dtype.kind not in "USM" and array.astype(np.float64, copy=False).size >= 0)
    except (TypeError, ValueError):  # rows of unequal lengths, or what is not a number
        return False


def check_C(C: Any) -> None:
    """C must be positive; inf is the hard margin."""
    check_number("C", C, low=0, closed="right", remedy="give a positive number; larger fits the training data more closely")
