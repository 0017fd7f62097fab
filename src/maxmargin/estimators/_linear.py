"""What LinearSVC and LinearSVR share: samples, fits, paths, files, warm starts. The solvers are in `maxmargin.linear`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Literal, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import clone
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
    check_seed,
    require_fitted,
)
from maxmargin.estimators._checkpoints import Checkpoint, check_checkpoint
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._linear_state import Past, States
from maxmargin.linear import SOLVERS, Extent, LinearProblem, LinearResult, OneVsRest, drive, intercept_of
from maxmargin.linear.over_ranks import extent_of_all
from maxmargin.runtime import Comm, Control, Result, Status, thread_count
from maxmargin.runtime.comm import ALONE
from maxmargin.runtime.threads import ONE_SLICE

SMALL = 500  # rows up to which equal samples are merged: there it costs nothing and makes weights exact to the bit
NOTHING = np.empty(0)

Memory = dict[int, Past]
L = TypeVar("L", bound="LinearMachine")


class LinearMachine(Machine):
    """A fit of weights to samples; a subclass makes problems of its targets, and its own attributes of the weights."""

    C: float
    loss: str
    fit_intercept: bool
    intercept_scaling: float | None
    solver: str
    warm_start: bool
    n_jobs: int | None
    random_state: Any
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: float
    coef_: Any  # an array, or after sparsify a CSR matrix
    intercept_: FloatArray
    _problem_type: Any = LinearProblem

    def _solved(self, data: Labelled, control: Control) -> tuple[Result, dict[str, Any]]:
        samples = self._data(data)
        memory, control = self._gone_on(data, samples, control)
        result = self._driven(samples, memory, control)
        attributes = self._attributes(result, samples)
        if self.warm_start and result.cuts:
            attributes["_memory"] = (self._fingerprint(samples), result.cuts)
        return result, attributes

    def _gone_on(self, data: Labelled, samples: Samples, control: Control) -> tuple[Memory, Control]:
        """Where to begin, at a checkpoint or from the last fit, and the run with checkpoints if they are asked for."""
        if self.checkpoint is None:
            return self._recall(samples), control
        checkpoint = Checkpoint.opened(self, data, thread_count(self.n_jobs), self._comm)
        count = len(data.classes)
        states = States(self, samples, count if count > 2 else 1, self._joint and count > 2, self._frame(data, samples))
        kept = self._comm.bcast(checkpoint.recalled(states.restored))  # the same bits on all ranks
        return self._recall(samples) if kept is None else kept, checkpoint.watched(control, states.stored)

    def _driven(self, data: Samples, memory: Memory, control: Control) -> LinearResult:
        solver = self._solver(data, memory)
        if isinstance(solver, OneVsRest):  # which limits the turns of each class
            control = replace(control, max_iter=-1)
        return drive(solver, control)

    def path(self: L, X: Any, y: Any, Cs: Iterable[float], sample_weight: ArrayLike | None = None) -> list[L]:
        """Fit one model per C, each starting from the one before; returns them in the order of `Cs`.

        Cuts bound the loss whatever C is, so they are all kept along the path, and every model has its own
        certificate. `max_time` and `max_iter` are limits per C. After Ctrl-C the models fitted so far are
        returned, those of the smallest Cs; the last of them is the best one reached for its C.
        """
        if self.checkpoint is not None:
            raise ValueError(f"checkpoint={self.checkpoint!r} is of one fit, and a path has many: leave it out")
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
            result = model._driven(data, memory, model._control())
            model.set_params(warm_start=self.warm_start)
            model._publish(result, **model._attributes(result, data))
            if result.status is Status.INTERRUPTED:
                fitted = ascending[: k + 1]
                return [model for model in models if model in fitted]
            memory = remembered(result)
        return models

    def fit_file(
        self: L, path: str | os.PathLike[str], *, cache: str | os.PathLike[str] | None = None,
        n_features: int | None = None, zero_based: bool | Literal["auto"] = "auto", dtype: DTypeLike = np.float32,
        sample_weight: ArrayLike | None = None,
    ) -> L:
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
        fitted: L = self.fit(X, y, sample_weight)
        return fitted

    def _check_parameters(self) -> None:
        check_number("C", self.C, low=0, remedy="larger C fits the training data harder")
        check_number("tol", self.tol, low=0, high=1, remedy="it is a relative duality gap, 1e-3 to 1e-8")
        check_flags(self, "fit_intercept", "warm_start")
        check_choice("solver", self.solver, SOLVERS)
        check_seed(self.random_state)
        check_checkpoint(self)
        check_number("intercept_scaling", self.intercept_scaling, low=0, optional=True,
                     remedy="the size of the constant feature, or None for a free intercept")

    def _read(self, given: Labelled) -> Samples:
        """Samples that count, with whatever targets the machine has."""
        raise NotImplementedError

    def _measure(self, data: Samples) -> None:
        """Choose level and unit of the targets, where they are numbers."""

    def _solver(self, data: Samples, memory: Memory) -> Any:
        """The solver of the whole fit. `memory` has what earlier fits left per problem."""
        raise NotImplementedError

    def _kind(self) -> tuple[Any, ...]:
        """Parameters of its own that cuts depend on."""
        raise NotImplementedError

    @property
    def _joint(self) -> bool:
        """Whether all classes are one problem."""
        return False

    @property
    def _free(self) -> bool:
        return bool(self.fit_intercept) and self.intercept_scaling is None

    @property
    def _scaling(self) -> float:
        """The size of the constant feature."""
        return 1.0 if self.intercept_scaling is None else float(self.intercept_scaling)

    @property
    def _seed(self) -> int:
        return 0 if self.random_state is None else int(check_random_state(self.random_state).randint(1 << 31))

    def _data(self, given: Labelled) -> Samples:
        """Samples in the form that the solvers take."""
        data = self._read(given)
        if data.X.shape[0] <= SMALL and self._comm.size == 1:
            data.merge()
        self._measure(data)
        if self._free:  # a free intercept makes up for any shift
            data.move_near_zero(self._comm)
        threads = thread_count(self.n_jobs)
        data.X = compacted(data.X, threads)
        data.extent = extent_of_all(Extent.of(as_matrix(data.X), data.X.shape[1], threads), self._comm)
        return data

    def _recall(self, data: Samples) -> Memory:
        """Cuts and points per problem of the last fit, as far as they serve this one."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return {}
        coef = self._coefficients()
        if not np.array_equal(getattr(self, "classes_", NOTHING), data.classes) or coef.shape[1] != data.X.shape[1]:
            return {}
        key, cuts = getattr(self, "_memory", None) or ("", [])
        same = bool(key) and key == self._fingerprint(data)
        points = self._points(coef, self.intercept_, data)
        return {k: Past(*past) for k, past in enumerate(zip_longest(cuts if same else [], points))}

    def _points(self, coef: FloatArray, intercept: FloatArray, data: Samples) -> FloatArray:
        """Weights as the solvers have them, a row per vector: in coordinates around `centre`, the intercept's last."""
        points = coef
        if self.fit_intercept:
            shift = 0.0 if data.centre is None else coef @ data.centre
            points = np.hstack([coef, ((intercept + shift - data.level) / self._scaling)[:, None]])
        return points.astype(np.float64)

    def _published(self, weights: FloatArray, data: Samples) -> tuple[FloatArray, FloatArray]:
        """The way back: coefficients and intercepts."""
        coef = np.ascontiguousarray(weights[:, : data.X.shape[1]])
        intercept = weights[:, -1] * self._scaling if self.fit_intercept else np.zeros(len(weights))
        if data.centre is not None or data.level:
            intercept = np.array([intercept_of(w, data.centre, self._scaling, data.level) for w in weights])
        return coef, np.ascontiguousarray(intercept)

    def _frame(self, given: Labelled, data: Samples) -> str:
        """What cuts depend on beside the samples, whatever their order: loss, intercept, class weights, centre, units."""
        kind = (self.loss, self.fit_intercept, self.intercept_scaling, *self._kind(), float(data.level), data.unit)
        digest = hashlib.blake2b(repr((kind, given.X.dtype.str)).encode())
        for array in (given.factors, NOTHING if data.centre is None else data.centre):
            digest.update(array.tobytes())
        return digest.hexdigest()

    def _fingerprint(self, data: Samples) -> str:
        """Cuts may be reused only where all that they depend on is the same: loss, intercept, samples, targets, weights.

        Not C, which they say nothing about. The samples are those that are solved for, around their mean or not.
        """
        kind = (self.loss, self.fit_intercept, self.intercept_scaling, data.X.shape, *self._kind())
        digest = hashlib.blake2b(repr(kind).encode())
        arrays = (data.X.data, data.X.indices, data.X.indptr) if sp.issparse(data.X) else (data.X,)
        for array in (*arrays, data.target, data.weight):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    def _attributes(self, result: LinearResult, data: Samples) -> dict[str, Any]:
        """Fitted attributes that are a linear machine's own."""
        coef, intercept = self._published(np.atleast_2d(result.w), data)
        return {"coef_": coef, "intercept_": intercept, "lower_bound_": result.lower}

    def sparsify(self: L) -> L:
        """Keep `coef_` as a sparse matrix, which pays where most of it is 0 (penalty="l1"); predictions stay the same."""
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self: L) -> L:
        """Keep `coef_` as an array again."""
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray() if hasattr(self, "classes_") else self.coef_.toarray()[0]
        return self

    def _coefficients(self) -> FloatArray:
        """A row per vector of weights, dense."""
        return np.atleast_2d(self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_)

    def _outputs(self, X: Any) -> FloatArray:
        """⟨x, w⟩ + b, one row per vector of weights."""
        require_fitted(self)
        X = self._validated(X, reset=False)
        matrix, ones, coef = as_matrix(X), np.ones(X.shape[0]), self._coefficients()
        out = np.empty((len(coef), X.shape[0]))
        threads = 1 if X.shape[0] * X.shape[1] <= ONE_SLICE else thread_count(self.n_jobs)
        for k, (w, b) in enumerate(zip(coef, self.intercept_)):
            _core.linear_outputs(matrix, np.ascontiguousarray(w), float(b), ones, NOTHING, 0, X.shape[0], out[k], threads)
        return out


def remembered(result: LinearResult) -> Memory:
    """What a fit leaves for another one of the same samples, with any C. A joint problem has all of it in one."""
    parts = zip_longest(result.cuts, np.atleast_2d(result.w), result.duals)
    return {k: Past(*past) for k, past in enumerate(parts)}


class Samples:
    """Validated samples, less `centre`, with numbers of classes or targets less `level`, and final weights."""

    def __init__(self, X: Any, target: NDArray[Any], weight: FloatArray, classes: NDArray[Any] = NOTHING) -> None:
        self.X, self.target, self.weight, self.classes = X, target, weight, classes
        self.centre: FloatArray | None = None
        self.level = 0.0
        self.unit = 1.0  # of the targets: a power of two near their size
        self.extent: Extent | None = None

    def merge(self) -> None:
        """Equal samples with equal targets become one with the sum of their weights, in an order that is theirs alone."""
        X, target, weight = self.X, self.target, self.weight
        keys: dict[tuple[float, bytes], list[int]] = {}
        for i in range(X.shape[0]):
            if weight[i] > 0:
                row = X[i].tobytes() if not sp.issparse(X) else _sparse_key(X, i)
                keys.setdefault((target[i].item(), row), []).append(i)
        groups = [keys[key] for key in sorted(keys)]
        first = np.array([group[0] for group in groups])
        self.X, self.target = X[first], target[first]
        self.weight = np.array([weight[group].sum() for group in groups])

    def move_near_zero(self, comm: Comm = ALONE) -> None:
        """Samples far from 0 leave intercept and weights almost undetermined: solve around their mean, on a copy.

        In float32 only where that loses nothing: a certificate is for the samples as they are. In float64 what is
        lost is within the allowance for rounding.
        """
        centre = far_centre(self.X, comm)
        if centre is None:
            return
        less = self.X - centre
        if less.dtype == np.float32:
            back = less - self.X  # the two parts of the difference's error (Knuth)
            if (((self.X - (less - back)) - (centre + back)) != 0).any():
                less = self.X.astype(np.float64) - centre.astype(np.float64)
        self.X, self.centre = less, centre.astype(np.float64)


def _sparse_key(X: Any, i: int) -> bytes:
    row = slice(X.indptr[i], X.indptr[i + 1])
    return bytes(X.indices[row].astype(np.int64).tobytes() + X.data[row].tobytes())
