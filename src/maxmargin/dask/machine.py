"""What the machines for dask collections share: the client, fitting where the rows are, prediction that is lazy."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.dask.partitions import Partitions, is_collection
from maxmargin.estimators._base import Machine


class OnDask(Machine):
    """Mixed into a machine before it: `fit` takes dask collections, `predict` returns them.

    `client` is a distributed.Client, or None for the one that was made last.
    """

    _local: type[Any]  # the machine of `maxmargin` of the same name

    def __init__(self, *, client: Any = None, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(cls._local._get_param_names())

    def __sklearn_clone__(self) -> Any:
        twin = type(self)(client=self.client, **{k: copy.deepcopy(v) for k, v in self.get_params(deep=False).items()})
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}  # a connection cannot travel

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to a dask array or frame X, of which no more than a sample and the model comes to the client.

        Parameters
        ----------
        X : dask array of shape (n_samples, n_features), or dask frame
            Divided by rows. Blocks may be CSR matrices. Best persisted on the workers.
        y : dask array or series, or array, of shape (n_samples,)
            Divided as X is, where it is not here.
        sample_weight : the same, optional

        Returns
        -------
        self
        """
        given = _Given(self._found_client(), X, y, sample_weight)
        return super().fit(given, y, None if sample_weight is None else _Weights(given))

    def _found_client(self) -> Any:
        if self.client is not None:
            return self.client
        from distributed import default_client

        try:
            return default_client()
        except ValueError:
            raise ValueError(
                "there is no Dask client: make one (from dask.distributed import Client; client = Client(...)), or give "
                f"it, {type(self).__name__}(client=...)"
            ) from None

    def _check_X(self, X: Any, y: Any = "no_validation", **kwargs: Any) -> Any:
        if not isinstance(X, _Given):
            return super()._check_X(X, y, **kwargs)
        rows = X.partitions()
        self.n_features_in_ = rows.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if rows.names is not None and all(isinstance(name, str) for name in rows.names):
            self.feature_names_in_ = np.array(rows.names, dtype=object)
        return rows, _one_column(rows.y, bool(kwargs.get("y_numeric")))

    def to_local(self) -> Any:
        """The fitted machine as `maxmargin` has it: without Dask, for files, ONNX and machines that have no cluster."""
        check_is_fitted(self)
        own = self.get_params(deep=False)
        local = self._local(**{name: own[name] for name in self._local._get_param_names()})
        known = set(own) | {"client"}
        local.__dict__.update({name: value for name, value in vars(self).items() if name not in known})
        return local

    def predict(self, X: Any) -> Any:
        """A dask array of predictions for a dask collection, computed when asked for; an array for others."""
        return self._lazily("predict", X) if is_collection(X) else super().predict(X)

    def _lazily(self, method: str, X: Any) -> Any:
        """The local machine's method on each partition; nothing is computed here."""
        from dask import delayed

        local = self.to_local()
        self._check_names(X)
        local.__dict__.pop("feature_names_in_", None)  # the partitions are arrays by then
        rows = X if hasattr(X, "chunks") else X.to_dask_array()
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has shape {rows.shape}, but {type(self).__name__} is expecting {self.n_features_in_} features as input"
            )
        rows = rows.rechunk({1: -1}) if rows.numblocks[1] > 1 else rows
        sample = getattr(local, method)(np.zeros((1, self.n_features_in_)))
        form = {"drop_axis": 1} if sample.ndim == 1 else {"chunks": (rows.chunks[0], (sample.shape[1],))}
        nothing = np.empty((0,) * sample.ndim, sample.dtype)
        return rows.map_blocks(_called, delayed(local, pure=False), method=method, meta=nothing, **form)

    def _check_names(self, X: Any) -> None:
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is not None and hasattr(X, "columns") and list(X.columns) != list(fitted):
            raise ValueError(
                f"The feature names should match those that were passed during fit: {list(fitted)}, now {list(X.columns)}"
            )


class DecidesOnDask(OnDask):
    """The same for machines that have decision values."""

    def decision_function(self, X: Any) -> Any:
        """As `predict`: a dask array for a dask collection."""
        return self._lazily("decision_function", X) if is_collection(X) else super().decision_function(X)


def no_checkpoint(machine: Any) -> None:
    """An error where a checkpoint is asked for: its file tells rows by their values, which are not here."""
    if machine.checkpoint is not None:
        raise ValueError(
            f"checkpoint={machine.checkpoint!r}: fits to dask collections have none; leave it out, or fit maxmargin's own "
            f"{type(machine).__name__}, with joblib.parallel_config('dask') if its clusters are to go to workers"
        )


class _Given:
    """What fit was given; it becomes partitions when the fit's clock runs."""

    def __init__(self, client: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._asked = client, X, y, sample_weight
        self._made: Partitions | None = None

    def partitions(self) -> Partitions:
        if self._made is None:
            self._made = Partitions(*self._asked)
        return self._made


class _Weights:
    """The weights as an array, once the partitions are there."""

    def __init__(self, given: _Given) -> None:
        self._given = given

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self._given.partitions().weight, dtype=dtype)


def _called(rows: Any, local: Any, method: str) -> Any:
    """On a worker."""
    if not rows.shape[0]:
        some = getattr(local, method)(np.zeros((1, local.n_features_in_)))
        return some[:0]
    return getattr(local, method)(rows)


def _one_column(y: Any, numbers: bool) -> Any:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity.")
    return np.asarray(y, np.float64) if numbers else y
