"""What all machines with a search inside share: parameters of the search, fit = search → choice → refit, and the report."""

from __future__ import annotations

import inspect
import warnings
from functools import cache
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators._base import Machine, check_choice, check_flags, check_seed, transactional
from maxmargin.estimators._labelled import Labelled
from maxmargin.runtime import Control, Status, deferred_interrupt, run
from maxmargin.selection.board import CERTIFIED, Board
from maxmargin.selection.fits import Fits, fitted_from
from maxmargin.selection.folds import folds_of
from maxmargin.selection.grid import Facts, Grid, Params, axis, check_axis
from maxmargin.selection.scoring import Scoring
from maxmargin.selection.search import Engine, Found, Search, Task
from maxmargin.selection.table import results_table

REPORT = (
    "best_params_", "best_index_", "best_score_", "cv_results_", "n_splits_", "search_status_", "search_trace_", "_maps",
)  # fmt: skip
OF_MODELS = {"_fitted_kernel", "_gamma", "_precision", "_committee", "_maps"}  # private attributes that a refit sets


@cache
def _common(search: Any, machine: Any) -> list[str]:
    """Parameters that a search hands on to its machines."""
    mine = inspect.signature(search).parameters
    return [name for name in inspect.signature(machine).parameters if name in mine]


class EdgeWarning(UserWarning):
    """The best setting lies on an edge of the grid: a better one may lie beyond."""


class Selecting(Machine):
    """In front of a machine's class M: `_axes` are its parameters that are searched, with the search's name of each.

    A subclass lists in __init__ the parameters of M that are not searched, and those of the search: one for each axis, cv,
    scoring, refit, search, extend, random_state.
    """

    _machine: ClassVar[type]
    _axes: ClassVar[dict[str, str]]  # {"C": "Cs", "gamma": "gammas"}, in the order in which cells are listed

    cv: Any
    scoring: Any
    refit: bool
    search: str
    extend: bool
    random_state: Any
    cv_results_: dict[str, Any]

    @transactional
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, groups: Any = None) -> Any:
        """Try the settings, choose the best by cross-validation, and fit it to all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            As in the machine's own fit; scores are weighted too, where the metric can be.
        groups : array-like of shape (n_samples,), optional
            For splitters that keep groups together.

        Returns
        -------
        self
        """
        self._forget()
        control = self._control()
        self._check_parameters()
        data = Labelled.of(self, X, y, sample_weight)
        labels = data.classes[data.code] if len(data.classes) else data.target
        given = getattr(self, "kernel", None) == "precomputed"
        task = Task(data, labels, folds_of(self.cv, data, labels, groups), sample_weight is not None, given)
        grid = self._grid(data)
        scoring = Scoring(self._single(next(grid.cells())), self.scoring)
        board = Board(len(task.folds), scoring.ceiling)
        search = Search(
            grid, board, task, lambda part: self._engine(part, scoring), method=self._method, extend=self.extend,
            random_state=self.random_state, deadline=control.deadline,
        )  # fmt: skip
        found = run(search, control)
        with deferred_interrupt() as interrupted:  # Ctrl-C ended the search, not the refit
            interrupted.clear()
        self._choose(board, found)
        if self.refit:
            self._refit(data, X, y, sample_weight, control, search)
        self._tell(board, found)
        return self

    # ---- a subclass may do these in another way ----------------------------------------------------------------------

    @property
    def _method(self) -> str:
        """How the search goes about the cells; an engine that halves by itself is given all of them."""
        return self.search

    def _engine(self, task: Task, scoring: Scoring) -> Engine:
        """How folds of cells are solved on the samples of `task`, which are all or, in halving, a part of them."""
        return Fits(task, self._single, scoring)

    def _grid(self, data: Labelled) -> Grid:
        facts = Facts(data, getattr(self, "kernel", "linear"))
        return Grid({name: axis(name, getattr(self, plural), facts) for name, plural in self._axes.items()})

    def _fitted(self, machine: Any, X: Any, y: Any, sample_weight: Any, search: Search) -> Any:
        """The chosen machine, fitted to all samples: from the solution on all rows, where the engine has one."""
        seed = getattr(search.last_engine, "seeds", {}).get(self.best_index_)
        if seed is None:
            return machine.fit(X, y, sample_weight=sample_weight)
        return fitted_from(machine, seed, X, y, sample_weight)

    # ---- steps of fit ------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """A search begins from nothing, and has no model unless it fits one."""
        for name in [name for name in vars(self) if name.endswith("_") or name in OF_MODELS]:
            del self.__dict__[name]

    def _check_parameters(self) -> None:
        self._single({})._check_parameters()
        for name, plural in self._axes.items():
            given = getattr(self, plural)
            check_axis(plural, given)
            for value in () if isinstance(given, (int, np.integer)) else given:
                try:
                    self._single({name: value})._check_parameters()
                except ValueError as error:
                    raise ValueError(f"{plural}={given!r}: {error}") from None
        check_choice("search", self.search, ["grid", "halving"])
        check_flags(self, "refit", "extend", *(["probabilities"] if "probabilities" in self.get_params() else []))
        check_seed(self.random_state)

    def _single(self, params: Params) -> Any:
        """The machine with one setting, not fitted."""
        own = {name: getattr(self, name) for name in _common(cast(Any, type(self)), self._machine)}
        return self._machine(**{**own, "verbose": False, "callback": None, **params})

    def _choose(self, board: Board, found: Found) -> None:
        best = board.best
        if best is None:
            best = self._without_score(board, found)
        for name, value in board.cells[best].items():
            setattr(self, f"{name}_", value)
        self.best_params_ = board.cells[best]
        self.best_index_ = best
        self.best_score_ = board.mean(best)
        self.cv_results_ = results_table(board)
        self.n_splits_ = board.n_folds
        self.search_status_ = str(found.status)
        self.search_trace_ = found.trace

    def _without_score(self, board: Board, found: Found) -> int:
        """No cell was solved on all folds: the one with the best mean of those it was, or else the middle of the grid."""
        tried = [c for c in range(len(board.cells)) if board.outcomes(c)]
        if found.status is Status.CONVERGED and tried:
            raise ValueError(f"no setting could be judged; the first one: {board.status(tried[0])}")
        scores = {c: float(np.mean([o.score for o in board.outcomes(c).values()])) for c in tried}
        known = [c for c in tried if scores[c] == scores[c]]
        return max(known, key=lambda c: (len(board.outcomes(c)), scores[c], -c)) if known else len(board.cells) // 2

    def _refit(self, data: Labelled, X: Any, y: Any, weight: Any, control: Control, search: Search) -> None:
        machine = self._single(self.best_params_)
        machine._warns = self._warns
        limit = control.deadline.limit()
        if limit is not None:
            machine.set_params(max_time=limit)
        machine = self._fitted(machine, X, y, weight, search)
        params = machine.get_params(deep=False)
        fitted = {name: value for name, value in vars(machine).items() if name not in params and name != "_warns"}
        if "n_iter_" in fitted:  # from a solution there may be nothing to do but to look: that counts as a turn
            fitted["n_iter_"] = np.maximum(fitted["n_iter_"], 1) if np.ndim(fitted["n_iter_"]) else max(fitted["n_iter_"], 1)
        self.__dict__.update(fitted)

    def _tell(self, board: Board, found: Found) -> None:
        """Warn of a search that was cut, or of a choice on an edge of the grid."""
        if found.status is not Status.CONVERGED:
            open_ = sum(board.status(c) == "not tried" for c in range(len(board.cells)))
            if found.status is not Status.CALLBACK:
                warnings.warn(
                    f"{type(self).__name__} stopped before all settings were tried (search_status_={str(found.status)!r}): "
                    f"{open_} of {len(board.cells)} were not; the best so far has a score of {self.best_score_:.4g}. "
                    "cv_results_['status'] says which; raise max_time, or give fewer values",
                    ConvergenceWarning,
                    stacklevel=4,
                )
            return
        edges = found.grid.edges(self.best_params_)
        if edges:
            ends = {True: "largest", False: "smallest"}
            where = ", ".join(f"{name}={self.best_params_[name]:.4g} (the {ends[up]})" for name, up in edges)
            warnings.warn(
                f"{type(self).__name__}: the best setting lies on an edge of the grid, {where}: try values beyond it, or "
                "give extend=True",
                EdgeWarning,
                stacklevel=4,
            )

    def chosen(self) -> Any:
        """The machine that was chosen, by itself: of its own class, fitted to all samples, for files and pipelines."""
        check_is_fitted(self)
        machine = self._single(self.best_params_)
        mine = {*self.get_params(deep=False), *REPORT, *(f"{name}_" for name in self._axes)}
        machine.__dict__.update({name: value for name, value in vars(self).items() if name not in mine})
        return machine

    @property
    def certified_(self) -> NDArray[np.bool_]:
        """Which cells of cv_results_ are certified."""
        return np.asarray(self.cv_results_["status"] == CERTIFIED)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "status_")

