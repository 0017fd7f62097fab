"""What the machines of several ranks share: fit with a communicator, and agreement about what was given to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators._base import Machine
from maxmargin.runtime import Comm, Control, as_comm, or_all_fail, together
from maxmargin.runtime.threads import sharing
from maxmargin.runtime.together import known_to_all

OF_A_RANK = {"callback", "verbose", "n_jobs", "cache_size"}  # parameters in which ranks may differ


class OverRanks(Machine):
    """Mixed into a machine before it: each rank gives `fit` rows of its own, and all end with the same model."""

    _local: type[Any]  # the machine of `maxmargin` of the same name

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, comm: Any = None) -> Any:
        """Fit to the rows of all ranks. All ranks must call it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            This rank's rows; there may be none, and any number of them. Ranks agree about features and precision.
        y : array-like of shape (n_samples,)
            This rank's labels or targets. The classes are those of all ranks.
        sample_weight : array-like of shape (n_samples,), optional
            This rank's.
        comm : communicator of mpi4py, optional
            The ranks that share the fit; None is MPI.COMM_WORLD.

        Returns
        -------
        self
        """
        with or_all_fail(as_comm(comm)) as ranks, sharing(ranks.neighbours):
            self._comm = ranks
            try:
                return super().fit(X, y, sample_weight)
            finally:
                self.__dict__.pop("_comm", None)

    def to_local(self) -> Any:
        """The fitted machine as `maxmargin` has it: for files, ONNX and programs that know no ranks."""
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        local = self._local(**parameters)
        local.__dict__.update({name: value for name, value in vars(self).items() if name not in parameters})
        return local

    @property
    def _warns(self) -> bool:  # type: ignore[override]
        return self._comm.rank == 0

    def _control(self) -> Control:
        with together(self._comm):
            return super()._control()

    def _check_parameters(self) -> None:
        comm = self._comm
        with together(comm):
            super()._check_parameters()
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in OF_A_RANK}
        mine = {name: value.__qualname__ if hasattr(value, "__qualname__") else repr(value) for name, value in given.items()}
        first = comm.bcast(mine)
        with together(comm):
            other = [name for name in mine if mine[name] != first[name]]
            if other:
                said = ", ".join(f"{name}={mine[name]} (rank 0: {first[name]})" for name in other)
                raise ValueError(f"rank {comm.rank} has other parameters than rank 0: {said}; give all ranks the same")

    def _check_X(self, X: Any, y: Any = "no_validation", **kwargs: Any) -> Any:
        comm, labelled = self._comm, not isinstance(y, str)
        x, target = None, np.empty(0)
        with together(comm):
            if rows_of(X):
                out = super()._check_X(X, y, **kwargs)
                x, target = out if labelled else (out, target)
            elif labelled and rows_of(y):
                raise ValueError(f"Found input variables with inconsistent numbers of samples: [0, {rows_of(y)}]")
        x = self._agreed_rows(x, comm)
        return (x, target) if labelled else x

    def _agreed_rows(self, x: Any, comm: Comm) -> Any:
        """This rank's rows in the form that all have: as many features, one precision, all dense or all CSR."""
        names = getattr(self, "feature_names_in_", None)
        mine = None if x is None else (x.shape[1], x.dtype, sp.issparse(x), None if names is None else names.tolist())
        forms = {rank: form for rank, form in enumerate(comm.share(mine)) if form is not None}
        if not forms:
            raise known_to_all(ValueError(
                f"Found array with 0 sample(s) on all {comm.size} ranks while a minimum of 1 is required"
            ))
        lowest, (width, _, _, names) = next(iter(forms.items()))
        for rank, form in forms.items():
            if form[0] != width:
                raise known_to_all(ValueError(
                    f"X has {form[0]} features on rank {rank} and {width} on rank {lowest}: give all ranks the same "
                    "features (n_features= of maxmargin.data.load does, for files)"
                ))
            if form[3] != names:
                raise known_to_all(ValueError(f"the feature names of rank {rank} are not those of rank {lowest}"))
        dtype = np.result_type(*(form[1] for form in forms.values()))
        sparse = any(form[2] for form in forms.values())
        self.n_features_in_ = width
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        if x is None:
            x = np.empty((0, width), dtype)
        x = x.astype(dtype, copy=False)
        return sp.csr_matrix(x) if sparse and not sp.issparse(x) else x


def rows_of(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") and len(X.shape) else len(X)
