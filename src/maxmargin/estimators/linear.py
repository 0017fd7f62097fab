"""LinearSVC: parameters, labels, fitted attributes. The solvers are in `maxmargin.linear`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from maxmargin import _core
from maxmargin.data.libsvm import cache_libsvm
from maxmargin.data.matrix import as_matrix, compacted, far_centre
from maxmargin.estimators._base import (
    FloatArray,
    Machine,
    check_choice,
    check_flags,
    check_number,
)
from maxmargin.estimators._labelled import Labelled
from maxmargin.linear import (
    SOLVERS,
    CrammerSinger,
    Extent,
    LinearProblem,
    LinearResult,
    OneVsRest,
    TwoClasses,
    drive,
    intercept_of,
    make,
)
from maxmargin.runtime import Control, Result, Status, thread_count

SIDE_BY_SIDE = 1 << 20  # stored values of X from which classes gain by running at once; below, Python is the limit
SMALL = 500  # rows up to which equal samples are merged: there it costs nothing and makes weights exact to the bit


Memory = dict[int, tuple[Any, Any]]  # class: (cuts or None, point)


class LinearSVC(ClassifierMixin, Machine):
    """Linear support vector classifier with a certified objective.

    Minimises ½‖w‖² + C Σ weight_i · loss(y_i (⟨x_i, w⟩ + b)) to a relative duality gap of `tol`: when `status_` is
    "converged", the objective is proven to be within a factor 1 + tol of the best possible.

    Parameters
    ----------
    C : float, default=1.0
        Strength of the loss; the sum over the samples is not divided by their number.
    loss : {"hinge", "squared_hinge"}, default="hinge"
    tol : float, default=1e-4
        Relative duality gap (objective − lower bound) / objective at which to stop.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One binary problem per class, or one joint problem (hinge loss only; solver "auto" or "ocas"). For two classes
        the joint problem is the binary one at twice C, and `coef_` the difference of the classes' weights.
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=None
        None: the intercept is free, as the SVM has it. A number: the intercept is the weight of a constant feature of
        that size and penalised with the others, as in LIBLINEAR and scikit-learn.
    class_weight : dict, "balanced" or None, default=None
    solver : {"auto", "ocas", "cpa", "newton", "descent"}, default="auto"
        "ocas" is the optimised cutting plane algorithm, "cpa" the standard one; "newton" follows the central path with
        Newton steps, "descent" is dual coordinate descent. All four stop by the same certificate. "auto" takes
        "descent" for wide or very sparse data (see docs/linear.md), else "newton".
    warm_start : bool, default=False
        Start from the last solution; on the same samples, labels and weights also reuse the cuts gathered, which hold
        for every C. The model returned is never worse than the one started from. "newton" begins its steps there,
        "ocas" and "cpa" their line searches; "descent" begins its duals anew and gains by the cuts. Nothing is reused when
        classes or features change. The cuts stay with the model, the data do not.
    max_iter : int, default=-1
        Limit on the solver's turns, over all classes; -1 for none.
    max_time : float or None, default=None
        Seconds; the best model so far is returned with its gap. One-vs-rest classes take turns while a limit is set, so
        that each has a model when it comes. Without one they follow each other: when Ctrl-C or `callback` stops the
        fit, classes not reached have zero weights.
    n_jobs : int or None, default=None
        Threads; None or -1 for all cores. One-vs-rest classes share them out: on all but small data they run side by
        side, which changes no result.
    random_state : int, RandomState or None, default=None
        Order of the coordinates and choice of the sample to start with; None is a fixed seed.
    verbose : bool or int, default=False
        Show a progress bar.
    callback : callable or None, default=None
        Called with a dict after each turn; a true return value stops the fit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    objective_, dual_gap_, lower_bound_ : float
        Best objective, its distance from the lower bound, and the bound; sums over the classes for "ovr".
    status_ : str
    n_iter_ : int
    trace_ : structured ndarray with one row per turn
    timings_ : dict of seconds per phase
        With the number of full `passes` over X and the `pass_seconds` they took; sums over the classes.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from maxmargin import LinearSVC
    >>> X, y = make_classification(n_samples=500, random_state=0)
    >>> model = LinearSVC(C=0.1).fit(X, y)
    >>> model.status_
    'converged'
    >>> bool(model.dual_gap_ <= 1e-4 * model.objective_)
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        tol: float = 1e-4,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        solver: str = "auto",
        warm_start: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
        callback: Callable[[dict[str, float]], Any] | None = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.tol = tol
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.solver = solver
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _solved(self, data: Labelled, control: Control) -> tuple[Result, dict[str, Any]]:
        samples = self._data(data)
        result = drive(self._solver(samples, self._recall(samples)), control)
        attributes = self._attributes(result, samples)
        if self.warm_start:
            attributes["_memory"] = (self._fingerprint(samples), result.cuts)
        return result, attributes

    def path(
        self, X: Any, y: Any, Cs: Iterable[float], sample_weight: ArrayLike | None = None
    ) -> list[LinearSVC]:
        """Fit one model per C, each starting from the one before; returns them in the order of `Cs`.

        Cuts bound the loss whatever C is, so they are all kept along the path, and every model has its own
        certificate. `max_time` and `max_iter` are limits per C. After Ctrl-C the models fitted so far are
        returned, those of the smallest Cs; the last of them is the best one reached for its C.
        """
        strengths = [float(c) for c in Cs]
        if not strengths:
            raise ValueError("Cs is empty: give at least one value of C")
        models = [clone(self).set_params(C=c, warm_start=False) for c in strengths]
        for model in models:
            model._check_parameters()
        data = models[0]._data(Labelled.of(models[0], X, y, sample_weight))
        checked = {name: value for name, value in vars(models[0]).items() if name.endswith("_")}
        memory: Memory = {}
        ascending = sorted(models, key=lambda model: model.C)  # easy problems that lead to the hard ones
        for k, model in enumerate(ascending):
            model.__dict__.update(checked)
            result = drive(model._solver(data, memory), model._control())
            model.set_params(warm_start=self.warm_start)
            model._publish(result, **model._attributes(result, data))
            if result.status is Status.INTERRUPTED:
                fitted = ascending[: k + 1]
                return [model for model in models if model in fitted]
            memory = dict(enumerate(zip_longest(result.cuts, np.atleast_2d(result.w))))  # joint: all in one
        return models

    def fit_file(
        self, path: str | os.PathLike[str], *, cache: str | os.PathLike[str] | None = None,
        n_features: int | None = None, zero_based: bool | Literal["auto"] = "auto", dtype: DTypeLike = np.float32,
        sample_weight: ArrayLike | None = None,
    ) -> LinearSVC:
        """Fit to a LIBSVM text file of any size, streamed through a compact binary cache on disk.

        Parameters
        ----------
        path : file name
        cache : folder, optional
            Where the cache `<name>.cache` goes; by default beside the file. It is used again while it is valid.
        n_features, zero_based, dtype
            As for `maxmargin.data.load`; values are kept in single precision by default.
        sample_weight
            As for `fit`: one weight per line of the file.
        """
        X, y = cache_libsvm(path, cache, n_features=n_features, zero_based=zero_based, dtype=dtype)
        fitted: LinearSVC = self.fit(X, y, sample_weight)
        return fitted

    def decision_function(self, X: Any) -> FloatArray:
        """⟨x, w⟩ + b: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        matrix, ones = as_matrix(X), np.ones(X.shape[0])
        out = np.empty((len(self.coef_), X.shape[0]))
        threads = thread_count(self.n_jobs)
        for k, (w, b) in enumerate(zip(self.coef_, self.intercept_)):
            _core.linear_outputs(matrix, np.ascontiguousarray(w), float(b), ones, 0, X.shape[0], out[k], threads)
        return np.ascontiguousarray(out[0] if len(self.classes_) == 2 else out.T)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest decision value."""
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            return np.asarray(self.classes_[(scores > 0).astype(np.intp)])
        return np.asarray(self.classes_[np.argmax(scores, axis=1)])

    def _check_parameters(self) -> None:
        check_number("C", self.C, low=0, remedy="larger C fits the training data harder")
        check_number("tol", self.tol, low=0, high=1, remedy="it is a relative duality gap, 1e-3 to 1e-8")
        check_choice("loss", self.loss, ("hinge", "squared_hinge"))
        check_flags(self, "fit_intercept", "warm_start")
        check_choice("multi_class", self.multi_class, ("ovr", "crammer_singer"))
        check_choice("solver", self.solver, SOLVERS)
        check_number("intercept_scaling", self.intercept_scaling, low=0, optional=True,
                     remedy="the size of the constant feature, or None for a free intercept")
        if self.multi_class == "crammer_singer" and self.loss != "hinge":
            raise ValueError(f"loss={self.loss!r} is not defined for multi_class='crammer_singer': use loss='hinge'")
        if self.multi_class == "crammer_singer" and self.solver not in ("auto", "ocas"):
            raise ValueError(
                f"solver={self.solver!r} cannot do multi_class='crammer_singer': the joint problem is solved by optimised "
                "cutting planes only; use solver='auto' or 'ocas'"
            )

    def _problem(self, data: _Data, positive: int, threads: int | None = None) -> LinearProblem:
        scaling = 1.0 if self.intercept_scaling is None else float(self.intercept_scaling)
        return LinearProblem(
            data.X, np.where(data.labels == positive, 1.0, -1.0), data.weight, float(self.C), loss=self.loss,
            bias=scaling if self.fit_intercept else 0.0, penalised=self.intercept_scaling is not None,
            threads=threads or thread_count(self.n_jobs), centre=data.centre, extent=data.extent,
        )

    def _data(self, given: Labelled) -> _Data:
        """Samples in the form that the solvers take."""
        data = _Data.of(given)
        if self.fit_intercept and self.intercept_scaling is None:  # a free intercept makes up for any shift
            data.move_near_zero()
        threads = thread_count(self.n_jobs)
        data.X = compacted(data.X, threads)
        data.extent = Extent.of(as_matrix(data.X), data.X.shape[1], threads)
        return data

    def _solver(self, data: _Data, memory: Memory) -> Any:
        """The solver of the whole fit: binary, one-vs-rest or joint. `memory` has what earlier fits left per class."""
        count = len(data.classes)
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(1 << 31))
        joint = self.multi_class == "crammer_singer"
        if count > 2 and joint:
            points = [start for _, start in memory.values()]
            return CrammerSinger(
                self._problem(data, 0), data.labels, count, self.tol, seed=seed, known=memory.get(0, (None, None))[0],
                start=np.concatenate(points) if points else None,
            )
        threads = thread_count(self.n_jobs)
        stored = data.X.nnz if sp.issparse(data.X) else data.X.size
        workers = min(threads, count) if count > 2 and stored >= SIDE_BY_SIDE else 1

        def build(k: int) -> Any:
            problem = self._problem(data, k if count > 2 else 1, threads // workers)
            problem.C *= 2 if joint else 1
            known, start = memory.get(k, (None, None))
            return make(problem, self.tol, self.solver, seed=seed, known=known, start=start)

        if count == 2:
            return TwoClasses(build(0)) if joint else build(0)
        limited = self.max_iter >= 0 or self.max_time is not None
        return OneVsRest(build, count, workers=workers, ordered=self.max_iter >= 0, fair=limited)

    def _recall(self, data: _Data) -> Memory:
        """Cuts and points per class of the last fit, as far as they serve this one."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return {}
        if not np.array_equal(self.classes_, data.classes) or self.coef_.shape[1] != data.X.shape[1]:
            return {}
        key, cuts = getattr(self, "_memory", None) or ("", [])
        same = bool(key) and key == self._fingerprint(data)
        points = self.coef_
        if self.fit_intercept:
            scaling = 1.0 if self.intercept_scaling is None else float(self.intercept_scaling)
            shift = 0.0 if data.centre is None else self.coef_ @ data.centre
            points = np.hstack([self.coef_, ((self.intercept_ + shift) / scaling)[:, None]])
        return dict(enumerate(zip_longest(cuts if same else [], points.astype(np.float64))))

    def _fingerprint(self, data: _Data) -> str:
        """Cuts may be reused only where all that they depend on is the same: loss, intercept, samples, labels, weights.

        Not C, which they say nothing about. The samples are those that are solved for, around their mean or not.
        """
        kind = (self.loss, self.multi_class, self.fit_intercept, self.intercept_scaling, data.X.shape, len(data.classes))
        digest = hashlib.blake2b(repr(kind).encode())
        arrays = (data.X.data, data.X.indices, data.X.indptr) if sp.issparse(data.X) else (data.X,)
        for array in (*arrays, data.labels, data.weight):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    def _attributes(self, result: LinearResult, data: _Data) -> dict[str, Any]:
        """Fitted attributes that are LinearSVC's own."""
        weights = np.atleast_2d(result.w)
        coef = np.ascontiguousarray(weights[:, : data.X.shape[1]])
        scaling = 1.0 if self.intercept_scaling is None else float(self.intercept_scaling)
        intercept = weights[:, -1] * scaling if self.fit_intercept else np.zeros(len(weights))
        if data.centre is not None:
            intercept = np.array([intercept_of(w, data.centre, scaling) for w in weights])
        return {
            "coef_": coef, "intercept_": np.ascontiguousarray(intercept),
            "classes_": data.classes, "lower_bound_": result.lower,
        }


class _Data:
    """Validated samples, less `centre`, with encoded labels and final weights."""

    def __init__(self, X: Any, labels: NDArray[np.intp], weight: FloatArray, classes: NDArray[Any]) -> None:
        self.X, self.labels, self.weight, self.classes = X, labels, weight, classes
        self.centre: FloatArray | None = None
        self.extent: Extent | None = None

    def move_near_zero(self) -> None:
        """Samples far from 0 leave intercept and weights almost undetermined: solve around their mean, on a copy.

        In float32 only where that loses nothing: a certificate is for the samples as they are. In float64 what is
        lost is within the allowance for rounding.
        """
        centre = far_centre(self.X)
        if centre is None:
            return
        less = self.X - centre
        if less.dtype == np.float32:
            back = less - self.X  # the two parts of the difference's error (Knuth)
            if (((self.X - (less - back)) - (centre + back)) != 0).any():
                less = self.X.astype(np.float64) - centre.astype(np.float64)
        self.X, self.centre = less, centre.astype(np.float64)

    @classmethod
    def of(cls, given: Labelled) -> _Data:
        X, labels, weight = given.X, given.code, given.effective
        if (labels < 0).any():  # rows of a class that is absent
            counted = given.weight > 0
            X, labels, weight = X[counted], labels[counted], weight[counted]
        if X.shape[0] <= SMALL:
            X, labels, weight = _merged(X, labels, weight)
        return cls(X, labels, weight, given.classes)


def _merged(X: Any, labels: NDArray[np.intp], weight: FloatArray) -> tuple[Any, NDArray[np.intp], FloatArray]:
    """Equal samples with equal labels become one with the sum of their weights, in an order that is theirs alone."""
    keys: dict[tuple[int, bytes], list[int]] = {}
    for i in range(X.shape[0]):
        if weight[i] > 0:
            row = X[i].tobytes() if not sp.issparse(X) else _sparse_key(X, i)
            keys.setdefault((int(labels[i]), row), []).append(i)
    groups = [keys[key] for key in sorted(keys)]
    first = np.array([group[0] for group in groups])
    return X[first], labels[first], np.array([weight[group].sum() for group in groups])


def _sparse_key(X: Any, i: int) -> bytes:
    row = slice(X.indptr[i], X.indptr[i + 1])
    return bytes(X.indices[row].astype(np.int64).tobytes() + X.data[row].tobytes())
