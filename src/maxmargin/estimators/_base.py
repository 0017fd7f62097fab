"""The one fit pipeline, parameters → samples → problems → solve → attributes, and what its steps share.

    fit = _control (the clock starts) → _check_parameters → Labelled.of → _solved → _publish

A fit either sets every attribute or changes nothing: `transactional` puts the estimator back as it was when anything
fails on the way. After Ctrl-C fit returns the model reached, with a warning; a second Ctrl-C is an error like others.
"""

from __future__ import annotations

import functools
import math
import numbers
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, InconsistentVersionWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._summary import html_line
from maxmargin.runtime import Comm, Control, Result, Status, deferred_interrupt
from maxmargin.runtime.comm import ALONE

FloatArray = NDArray[np.float64]
VERSION = version("maxmargin")
FEW_VALUES = 1 << 18  # of X, whose look takes tens of microseconds; that of scikit-learn takes hundreds
DOT_VALUES = 10_000  # up to which a dot product is the shortest look; of more values linear algebra wakes its threads
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# Private attributes that only some fits set: where a warm start begins, probabilities, the order of a file that was read.
OF_SOME_FITS = {"_last", "_memory", "_probA", "_probB", "_vote_order"}
OF_ROWS = {"n_features_in_", "feature_names_in_"}  # set when rows are looked at
F = TypeVar("F", bound=Callable[..., Any])


class OtherVersionWarning(InconsistentVersionWarning):
    """A pickled machine of another version of maxmargin: it may predict otherwise, or not at all."""

    def __init__(self, name: str, then: str) -> None:
        super().__init__(estimator_name=name, current_sklearn_version=VERSION, original_sklearn_version=then)

    def __str__(self) -> str:
        return (
            f"{self.estimator_name} was pickled by maxmargin {self.original_sklearn_version} and is read by "
            f"{self.current_sklearn_version}: fit it again, or keep models as files that maxmargin.save writes"
        )


def transactional(fit: F) -> F:
    """Decorate a fit method: on an error the estimator is left exactly as it was before the call.

    Ctrl-C is held from its first line to its last, so that it is never torn apart.
    """

    @functools.wraps(fit)
    def guarded(self: BaseEstimator, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            with deferred_interrupt() as interrupted:
                fitted = fit(self, *args, **kwargs)
            if interrupted.is_set() and str(Status.INTERRUPTED) not in self.status_:
                late = f"Ctrl-C came when {type(self).__name__} was fitted (status_={self.status_!r}): the model is complete"
                warnings.warn(late, ConvergenceWarning, stacklevel=2)
            return fitted
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded  # type: ignore[return-value]


class Machine(BaseEstimator):
    """Base of all estimators: how long a fit may run, who watches it, and what it reports."""

    max_time: float | None
    max_iter: int
    verbose: bool | int
    callback: Callable[[dict[str, float]], Any] | None
    tol: float
    _warns = True  # of a fit that did not converge
    _comm: Comm = ALONE  # the ranks that share the fit (maxmargin.spmd)

    @transactional
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Any:
        """Fit to samples X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 and float64 are used as they are. For kernel="precomputed" the Gram matrix (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            Labels of a classifier, targets of a regressor; ignored by OneClassSVM.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C per sample, exactly: weight 2 is the sample twice, weight 0 (or below) is its absence.

        Returns
        -------
        self
        """
        control = self._control()
        self._check_parameters()
        result, attributes = self._solved(Labelled.of(self, X, y, sample_weight), control)
        self._publish(result, **attributes)
        return self

    def _check_parameters(self) -> None:
        """Raise on bad parameters, before any work."""
        raise NotImplementedError

    def _solved(self, data: Labelled, control: Control) -> tuple[Result, dict[str, Any]]:
        """From samples to problems, their solution, and the fitted attributes that are the machine's own."""
        raise NotImplementedError

    def _control(self) -> Control:
        whole = isinstance(self.max_iter, numbers.Integral) and not isinstance(self.max_iter, bool)
        if not whole or self.max_iter < -1 or self.max_iter == 0:
            raise ValueError(f"max_iter={self.max_iter!r} must be a positive integer, or -1 for no limit")
        self._check_run()
        shown = self.verbose if self._comm.rank == 0 else 0
        return Control(self.max_time, self.max_iter, shown, self.callback, type(self).__name__, comm=self._comm)

    def _check_run(self) -> None:
        """Parameters of the run that all machines have."""
        check_number("max_time", self.max_time, low=0, optional=True, remedy="give seconds, or None for no limit")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback={self.callback!r} must be callable with one dict, or None")
        if not isinstance(self.verbose, (numbers.Integral, np.bool_)) or self.verbose < 0:
            raise ValueError(f"verbose={self.verbose!r} must be True, False or a whole number: larger says more")

    def _publish(self, result: Result, **attributes: Any) -> None:
        """Set the fitted attributes, and no other is left of an earlier fit; then warn of what the user must know."""
        attributes.setdefault("n_iter_", result.n_iter)
        attributes |= {
            "status_": str(result.status),
            "objective_": result.objective,
            "dual_gap_": result.gap,
            "trace_": result.trace,
            "timings_": result.timings,
        }
        left = {name for name in vars(self) if name.endswith("_")} - OF_ROWS  # not every fit sets all of it
        for name in left | OF_SOME_FITS | set(attributes):  # those that it sets as well: they stand in their own order
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)
        if self._warns and not (result.status.done or result.status is Status.CALLBACK):
            warnings.warn(self._advice(result), ConvergenceWarning, stacklevel=4)

    def _advice(self, result: Result) -> str:
        """What happened, how good the model is, and what to change."""
        remedy = {
            Status.MAX_TIME: f"raise max_time ({self.max_time} s)",
            Status.MAX_ITER: f"raise max_iter ({self.max_iter})",
            Status.INTERRUPTED: "fit again (with warm_start=True where there is one, from here)",
            Status.STALLED: "scale the features (StandardScaler), lower C, or raise tol",
        }[result.status]
        scale = max(abs(result.objective), np.finfo(float).tiny)
        return (
            f"{type(self).__name__} stopped before tol={self.tol:g} was reached (status_={str(result.status)!r}): "
            f"duality gap {result.gap:.3g} ({result.gap / scale:.2g} of the objective), "
            f"violation {result.violation:.3g}. To go on, {remedy}."
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_maxmargin_version": VERSION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        then = state.get("_maxmargin_version", "before 0.2")
        if then != VERSION:
            warnings.warn(OtherVersionWarning(type(self).__name__, then), stacklevel=2)
        super().__setstate__({name: value for name, value in state.items() if name != "_maxmargin_version"})

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """What a notebook shows: after fit, status, gap and time above scikit-learn's drawing."""
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle and hasattr(self, "status_"):
            bundle["text/html"] = html_line(self) + bundle["text/html"]
        return bundle

    def _repr_html_inner(self) -> str:
        drawn: str = super()._repr_html_inner()
        return html_line(self) + drawn if hasattr(self, "status_") else drawn

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """By an attribute that every fit and file sets; scikit-learn would go through all of them at each prediction."""
        return hasattr(self, "status_")

    def _validated(self, X: Any, y: Any = "no_validation", *, reset: bool = True, **kwargs: Any) -> Any:
        """X (or X and y) as float32 or float64, dense C-ordered rows or CSR with sorted indices, each once.

        Copied only when it comes in another form.
        """
        if not reset and isinstance(y, str) and self._as_it_is(X):
            return X
        if reset and kwargs.keys() <= {"y_numeric"} and plain_rows(X) and plain_labels(y, len(X)):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return X, y
        options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C", "accept_large_sparse": True}
        with numpy_only():
            out = validate_data(self, X, y, reset=reset, **(options | kwargs))
        x = out[0] if isinstance(out, tuple) else out
        if sp.issparse(x) and not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
        return (x, out[1]) if isinstance(out, tuple) else x

    _check_X = _validated

    def _as_it_is(self, X: Any) -> bool:
        """Whether X is a few plain rows that validation would hand back: it takes longer than to predict them."""
        known = not hasattr(self, "feature_names_in_")
        return known and plain_rows(X) and X.shape[1] == getattr(self, "n_features_in_", None)


def numpy_only() -> AbstractContextManager[None]:
    """Where scikit-learn dispatches on the kind of array: arrays of other libraries become NumPy's, as they do elsewhere."""
    if sklearn.get_config()["array_api_dispatch"]:
        return cast("AbstractContextManager[None]", sklearn.config_context(array_api_dispatch=False))
    return nullcontext()


def require_fitted(machine: Machine) -> None:
    """scikit-learn's error unless it is fitted; its own look at a fitted one takes longer than to predict a row."""
    if "status_" not in vars(machine):
        check_is_fitted(machine)


def plain_rows(X: Any) -> bool:
    """Whether X is a small array of finite numbers, laid out as validation would hand it back."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in FLOATS
        and X.flags.c_contiguous
        and 0 < X.size <= FEW_VALUES
        and _finite(X)
    )


def _finite(X: NDArray[Any]) -> bool:
    """Whether all numbers are; of a few also False where their squares overflow, which is a case for the longer look."""
    if X.size <= DOT_VALUES:
        return math.isfinite(np.vdot(X, X))
    return bool(np.isfinite(X).all())


def plain_labels(y: Any, n: int) -> bool:
    """Whether y is an array of n whole or finite numbers."""
    if not (type(y) is np.ndarray and y.shape == (n,)):
        return False
    return y.dtype.kind in "iu" or (y.dtype.kind == "f" and bool(np.isfinite(y).all()))


def check_number(
    name: str,
    value: Any,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    closed: str = "neither",
    optional: bool = False,
    integer: bool = False,
    remedy: str = "",
) -> None:
    """Raise a ValueError that names parameter, value and range unless `value` is a number between low and high.

    `closed` says which ends belong to the range: neither, left, right or both.
    """
    if optional and value is None:
        return
    kind: Any = numbers.Integral if integer else numbers.Real
    left, right = closed in ("left", "both"), closed in ("right", "both")
    if (
        isinstance(value, kind)
        and not isinstance(value, (bool, np.bool_))
        and (value >= low if left else value > low)
        and (value <= high if right else value < high)
    ):
        return
    ends = f"{'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    noun = "an integer" if integer else "a number"
    raise ValueError(f"{name}={value!r} must be {noun} in {ends}" + (f": {remedy}" if remedy else ""))


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise a ValueError that lists the choices unless `value` is one of them."""
    known = list(choices)
    if not (isinstance(value, str) and value in known):
        raise ValueError(f"{name}={value!r} is unknown: choose one of {', '.join(map(repr, known))}")


def check_seed(random_state: Any) -> None:
    """Raise a ValueError unless scikit-learn takes it as a seed."""
    try:
        check_random_state(random_state)
    except ValueError:
        raise ValueError(f"random_state={random_state!r} must be a whole number ≥ 0, a RandomState or None") from None


def check_flags(machine: BaseEstimator, *names: str) -> None:
    """Raise a ValueError unless these parameters are True or False."""
    for name in names:
        value = getattr(machine, name)
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{name}={value!r} must be True or False")
