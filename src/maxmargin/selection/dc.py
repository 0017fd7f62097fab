"""DCSVCCV: DCSVC that chooses C and γ inside clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from maxmargin.estimators._base import check_choice, check_flags, check_number
from maxmargin.estimators._constraints import CLASSES, INTERCEPT, KERNEL, Constraints, whole
from maxmargin.estimators._divided import EARLY_CLUSTERS
from maxmargin.estimators.dc import DCSVC
from maxmargin.problem.kernels import NATIVE
from maxmargin.runtime import Status
from maxmargin.selection.board import Board
from maxmargin.selection.clusters import ClusterFolds
from maxmargin.selection.constraints import SEARCH, values_of, without
from maxmargin.selection.grid import Params
from maxmargin.selection.machine import Selecting
from maxmargin.selection.scoring import Scoring
from maxmargin.selection.search import Engine, Found, Search, Task


class DCSVCCV(Selecting, DCSVC):
    """Support vector classification on many rows that chooses C and γ by cross-validation inside clusters.

    The rows are clustered once. In each cluster all settings and folds are solved on one small kernel matrix per γ, each
    from its neighbour's solution; a row that a fold leaves out is judged by the machine of its own cluster. The model is
    the early one of `DCSVC` at the best setting: in the clusters of the search, or where these are more than the 64 of
    `DCSVC(early=True)` and the time is not up, in those, which are larger and so give better models. For 10⁵ to 10⁶ rows;
    below some 10⁴ use `SVCCV`.

    Parameters
    ----------
    Cs, gammas : int or list of float, default=10
        Values, or how many: then a grid fitted to the data (see `maxmargin.selection`).
    cv : int, splitter or list of splits, default=5
    scoring : str, callable or None, default=None
        Any scorer of scikit-learn's that asks for decisions or predictions of its rows; None is accuracy. Others than
        that keep the decision values of all settings: settings × rows × 4 bytes.
    refit : bool, default=True
    search : {"halving", "grid"}, default="halving"
        All settings in a ninth of the rows, the best third in a third, the best third of these in all; or all in all. What
        was left says so in `cv_results_["status"]`.
    choice : {"global", "cluster"}, default="global"
        One setting for all clusters; or one γ for all and for each cluster the C that is best there (all settings are then
        tried in all clusters, whatever `search` says). A kernel that were another in each cluster would leave nothing to
        compare between them.
    extend : bool, default=False
        While the best setting lies on an end of the grid, try values beyond it.
    samples_per_cluster : int, default=1000
        On the average.
    exact : bool, default=False
        Go on from the clusters' solution to that of the whole problem, to `tol`.
    kernel, degree, coef0, sample_size, predict_with, multi_class, fit_intercept, shrinking, tol, cache_size, class_weight, \
decision_function_shape, break_ties, max_iter, n_jobs, working_set_size, inner_solver
        As in `maxmargin.DCSVC`; kernels that are functions or matrices are not for this machine.
    verbose, max_time, callback
        Of the whole search. When the time is over, the best setting so far is fitted.
    random_state : int, RandomState or None, default=None
        Of the clusters, and of the order in which they are searched.

    Attributes
    ----------
    C_, gamma_, best_params_, best_score_, best_index_ : the choice
    cv_results_ : dict of arrays
        GridSearchCV's table, and status, objective, gap, support vectors and seconds of each cell: sums over the clusters,
        that is of the problem whose kernel is 0 between clusters.
    search_status_ : str
    n_clusters_ : int
        Of the search; `levels_` has those of the model.
    cluster_C_ : ndarray of shape (n_clusters,)
        With choice="cluster", C of each; the machine is fitted with the largest, and weights for the others.
    support_, dual_coef_, levels_, level_objective_, status_, …
        Of the machine fitted to all samples, as in `maxmargin.DCSVC`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin.selection import DCSVCCV
    >>> X, y = make_moons(4000, noise=0.2, random_state=0)
    >>> model = DCSVCCV(Cs=[0.1, 1, 10], gammas=[0.5, 2, 8], samples_per_cluster=400, random_state=0).fit(X, y)
    >>> model.best_score_ > 0.95, model.status_, model.score(X, y) > 0.95
    (True, 'early', True)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **without(KERNEL | CLASSES | INTERCEPT, "gamma", "checkpoint", "checkpoint_every"),
        **without(SEARCH, "probabilities"),
        **values_of("Cs", "gammas"),
        "kernel": [StrOptions(set(NATIVE))],
        "multi_class": [StrOptions({"ovo", "ovr"})],
        "choice": [StrOptions({"global", "cluster"})],
        "predict_with": [StrOptions({"early", "all", "bcm"})],
        "samples_per_cluster": [whole(2)],
        "sample_size": [whole(2)],
        "exact": ["boolean"],
    }
    _machine: ClassVar[type] = DCSVC
    _axes: ClassVar[dict[str, str]] = {"C": "Cs", "gamma": "gammas"}

    def __init__(
        self,
        *,
        Cs: Any = 10,
        gammas: Any = 10,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        search: str = "halving",
        extend: bool = False,
        choice: str = "global",
        samples_per_cluster: int = 1000,
        exact: bool = False,
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        predict_with: str = "early",
        sample_size: int = 1000,
        multi_class: str = "ovo",
        fit_intercept: bool = False,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[dict[str, float]], Any] | None = None,
        working_set_size: int | None = None,
        inner_solver: str = "smo",
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.search = search
        self.extend = extend
        self.choice = choice
        self.samples_per_cluster = samples_per_cluster
        self.exact = exact
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.predict_with = predict_with
        self.sample_size = sample_size
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
        self.working_set_size = working_set_size
        self.inner_solver = inner_solver

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("search", self.search, ["halving", "grid"])
        check_choice("choice", self.choice, ["global", "cluster"])
        check_flags(self, "exact")
        if self.exact and self.choice == "cluster":
            raise ValueError("exact=True solves one problem for all clusters: choice='cluster' has no meaning there")
        check_number("samples_per_cluster", self.samples_per_cluster, low=2, closed="left", integer=True,
                     remedy="about 1,000: the time of the search goes with it")
        if self.kernel not in NATIVE:
            raise ValueError(f"kernel={self.kernel!r}: the search inside clusters has {', '.join(sorted(NATIVE))} only; "
                             "use SVCCV, or GridSearchCV over DCSVC")

    def _single(self, params: Params) -> Any:
        return super()._single({"levels": 1, "stop_level": 0 if self.exact else 1, **params})

    @property
    def _method(self) -> str:
        return "grid"  # the engine halves over clusters

    def _engine(self, task: Task, scoring: Scoring) -> Engine:
        self._clusters = ClusterFolds(
            task, self._single, scoring, gamma=max(map(float, self._grid(task.data).axes["gamma"])),
            size=self.samples_per_cluster, halving=self.search == "halving" and self.choice == "global",
            random_state=self.random_state, keep_verdicts=self.choice == "cluster",
        )  # fmt: skip
        return self._clusters

    def _without_score(self, board: Board, found: Found) -> int:
        leader = self._clusters.provisional
        return super()._without_score(board, found) if leader is None else leader

    def _choose(self, board: Board, found: Found) -> None:
        super()._choose(board, found)
        engine = self.__dict__.pop("_clusters")
        self.n_clusters_ = 0 if engine.division is None else engine.division.n_clusters
        if self.refit:
            self._found, self._in_time = engine, found.status is Status.CONVERGED
        if self.choice == "cluster":
            gamma, self.cluster_C_ = engine.by_cluster(board, self.best_params_)
            self.gamma_ = gamma
            self.best_params_ = {**self.best_params_, "gamma": gamma}

    def _fitted(self, machine: Any, X: Any, y: Any, sample_weight: Any, search: Search) -> Any:
        engine, in_time = (self.__dict__.pop(name) for name in ("_found", "_in_time"))
        one = self.choice == "global" and not self.exact
        if one and in_time and engine.division is not None and engine.division.n_clusters > EARLY_CLUSTERS:
            return machine.set_params(levels=None, stop_level=0, early=True).fit(X, y, sample_weight=sample_weight)
        machine._division = engine.division
        if self.choice == "cluster" and engine.division is not None:
            machine.C = float(self.cluster_C_.max())
            share = np.append(self.cluster_C_ / machine.C, 0.0)  # of the largest C; the last is for rows that do not count
            data = engine.task.data
            sample_weight = data.weight * share[engine.division.label]
            if self.class_weight == "balanced":  # by the weights as they were
                machine.class_weight = dict(zip(data.classes.tolist(), data.factors.tolist()))
        machine.fit(X, y, sample_weight=sample_weight)
        machine.__dict__.pop("_division")
        return machine
