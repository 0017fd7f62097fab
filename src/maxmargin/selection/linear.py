"""LinearSVCCV and LinearSVRCV: linear machines that choose C along paths that share cuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from maxmargin.estimators._constraints import Constraints
from maxmargin.estimators.linear import LinearSVC, LinearSVR
from maxmargin.runtime import thread_count
from maxmargin.selection.constraints import SEARCH, values_of, without
from maxmargin.selection.machine import Selecting
from maxmargin.selection.paths import Paths
from maxmargin.selection.scoring import Scoring
from maxmargin.selection.search import Engine, Search, Task

_NOT = ("checkpoint", "checkpoint_every")  # of many fits


class _LinearSelecting(Selecting):
    """The engine of linear machines, and a refit that begins at a fold's solution."""

    _axes: ClassVar[dict[str, str]] = {"C": "Cs"}
    n_jobs: int | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        thread_count(self.n_jobs)

    def _engine(self, task: Task, scoring: Scoring) -> Engine:
        return Paths(task, self._single, scoring)

    def _fitted(self, machine: Any, X: Any, y: Any, sample_weight: Any, search: Search) -> Any:
        near = getattr(search.last_engine, "last", {}).get(self.best_index_)
        if near is None:
            return machine.fit(X, y, sample_weight=sample_weight)
        begin = {name: getattr(near, name) for name in ("coef_", "intercept_", "classes_") if hasattr(near, name)}
        machine.__dict__.update(begin)
        machine.warm_start = True  # no worse than the fold's machine, on all samples
        fitted = machine.fit(X, y, sample_weight=sample_weight)
        machine.warm_start = False
        machine.__dict__.pop("_memory", None)  # of the samples, which nobody asked to keep
        return fitted


class LinearSVCCV(_LinearSelecting, LinearSVC):
    """Linear support vector classifier that chooses C by cross-validation, every fit of it certified.

    Each fold is solved for all C in ascending order, each from the last solution and with all cuts gathered so far, which
    hold for every C. The machine of the best C is then fitted to all samples. See docs/selection.md.

    Parameters
    ----------
    Cs : int or list of float, default=10
        Values of C, or how many: then a grid fitted to the data, four decades wide (see `maxmargin.selection`).
    cv : int, splitter or list of splits, default=5
    scoring : str, callable or None, default=None
        Any scorer of scikit-learn's, or a callable(machine, X, y); None is accuracy.
    refit : bool, default=True
        Fit the best C to all samples. Without it there is no model, only the table.
    search : {"grid", "halving"}, default="grid"
        All values of C, or first on parts of the samples.
    extend : bool, default=False
        While the best C lies on an end of the grid, try values beyond it.
    penalty, loss, dual, tol, multi_class, fit_intercept, intercept_scaling, class_weight, max_iter, solver, n_jobs
        As in `maxmargin.LinearSVC`; max_iter for every fit.
    verbose, max_time, callback
        Of the whole search. When the time is over, the best C found so far is fitted to all samples.
    random_state : int, RandomState or None, default=None
        Also of halving.

    Attributes
    ----------
    C_, best_params_, best_score_, best_index_ : the choice
    cv_results_ : dict of arrays
        GridSearchCV's table, and status, objective, gap, support vectors and seconds of each cell.
    search_status_ : str
        "converged": every cell was tried, or is proven not to be the best.
    coef_, intercept_, classes_, objective_, dual_gap_, lower_bound_, status_, …
        Of the machine fitted to all samples, as in `maxmargin.LinearSVC`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from maxmargin.selection import LinearSVCCV
    >>> X, y = make_classification(n_samples=600, random_state=0)
    >>> model = LinearSVCCV(Cs=[0.001, 0.01, 0.1, 1.0]).fit(X, y)
    >>> model.C_ in model.Cs, model.status_, bool(model.certified_.sum() >= 2), model.best_score_ > 0.8
    (True, 'converged', True, True)
    """

    _parameter_constraints: ClassVar[Constraints] = (
        without(LinearSVC._parameter_constraints, "C", "warm_start", *_NOT) | without(SEARCH, "probabilities")
        | values_of("Cs")
    )  # fmt: skip
    _machine: ClassVar[type] = LinearSVC

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        Cs: Any = 10,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        search: str = "grid",
        extend: bool = False,
        dual: bool | str = "auto",
        tol: float = 1e-6,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float | None = 1.0,
        class_weight: Any = None,
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        solver: str = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[dict[str, float]], Any] | None = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.search = search
        self.extend = extend
        self.dual = dual
        self.tol = tol
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback


class LinearSVRCV(_LinearSelecting, LinearSVR):
    """Linear support vector regression that chooses C (and epsilon) by cross-validation, every fit of it certified.

    Parameters and attributes not listed here are those of `LinearSVCCV` and `maxmargin.LinearSVR`.

    Parameters
    ----------
    Cs : int or list of float, default=10
    epsilons : int or list of float, default=(0.0,)
        Half widths of the tube to try. Cuts depend on it: each has a path over C of its own.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from maxmargin.selection import LinearSVRCV
    >>> X, y = make_regression(300, 5, noise=5.0, random_state=0)
    >>> model = LinearSVRCV(Cs=[0.01, 1.0, 100.0, 10000.0]).fit(X, y)
    >>> model.C_ >= 1.0, round(model.score(X, y), 1)
    (True, 1.0)
    """

    _parameter_constraints: ClassVar[Constraints] = (
        without(LinearSVR._parameter_constraints, "C", "epsilon", "warm_start", *_NOT) | without(SEARCH, "probabilities")
        | values_of("Cs", "epsilons")
    )  # fmt: skip
    _machine: ClassVar[type] = LinearSVR
    _axes: ClassVar[dict[str, str]] = {"epsilon": "epsilons", "C": "Cs"}

    def __init__(
        self,
        *,
        Cs: Any = 10,
        epsilons: Any = (0.0,),
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        search: str = "grid",
        extend: bool = False,
        tol: float = 1e-6,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float | None = 1.0,
        dual: bool | str = "auto",
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        solver: str = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[dict[str, float]], Any] | None = None,
    ) -> None:
        self.Cs = Cs
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.search = search
        self.extend = extend
        self.tol = tol
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
