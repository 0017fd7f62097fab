"""SVCCV and NuSVCCV: classifiers that choose C (or ν) and γ by cross-validation, in little more than one fit of each γ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from maxmargin.estimators._constraints import INTERCEPT, PAIRS, Constraints
from maxmargin.estimators.svc import SVC, NuSVC
from maxmargin.selection.constraints import SEARCH, values_of
from maxmargin.selection.kernel_machine import SelectingKernel

_SHARED = {name: rule for name, rule in PAIRS.items() if name not in ("gamma", "probability", "warm_start")} | SEARCH


class SVCCV(SelectingKernel, SVC):
    """`SVC` that chooses C and γ by cross-validation: a whole grid, certified, in the time of a few fits.

    After fit it is a fitted `SVC` with the chosen C and γ: all of its attributes and methods are there. Squared distances
    are computed once for all γ, solutions begin from one another along C and from fold to fold, and settings that cannot win
    any more are dropped. None of this changes an answer: every fold of every setting that is called certified was solved to
    `tol`, and its gap is in the table.

    Parameters
    ----------
    Cs : int or list, default=10
        Values of C to try; a number means so many, fitted to the data: from √(10 / n), four decades wide.
    gammas : int or list, default=10
        Values of γ to try; a number means so many, from ⅛ to 64 times gamma="scale".
    kernel : as in `SVC`, default="rbf"
        Those without a γ ("linear", "precomputed", functions) are tried with one value of it.
    cv : int, splitter or list of splits, default=5
        As in GridSearchCV: a number of stratified folds, any splitter of scikit-learn's, or (train, test) pairs of rows.
    scoring : str or callable, optional
        As in GridSearchCV; accuracy by default.
    refit : bool, default=True
        Fit the best setting to all rows. Without it there is no model, only the choice and the table.
    search : {"grid", "halving"}, default="grid"
        "grid" tries every setting but those that an exact bound on their score rules out. "halving" tries all on a part of
        the rows, and only the best third of them on three times as many, and so on: quicker, and a guess.
    extend : bool, default=False
        While the best setting lies on an edge of the grid, try values beyond it. Without it there is an EdgeWarning.
    probabilities : bool, default=False
        Offer `predict_proba`: sigmoids of decision values that the best setting's folds give rows they have not seen. The
        class that is predicted is always the most probable one.
    max_time : float, optional
        Seconds for all of it. The best setting so far is fitted in the end; the table says what was not tried.
    verbose, callback, n_jobs, random_state, and the others
        As in `SVC`. The bar and the callback are those of the search; random is only the order of rows in halving.

    Attributes
    ----------
    C_, gamma_, best_score_, best_params_, best_index_ : the choice, its mean score over the folds, its place in the table
    cv_results_ : dict of arrays
        GridSearchCV's table, with `status` ("certified", "dropped", "halved", "not tried", or how a fold failed),
        `score_bound`, `seconds`, and objective, gap and support vectors of each fold: `split0_objective`, …, `mean_gap`.
    search_status_ : str
        "converged", or why the search stopped before: "max_time", "interrupted", "callback".
    status_, objective_, dual_gap_, trace_, …
        Of the model, as in `SVC`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC, SVCCV
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = SVCCV(Cs=[0.1, 1, 10, 100], gammas=[0.1, 1, 10]).fit(X, y)
    >>> clf.best_score_ > 0.95, isinstance(clf, SVC), clf.status_
    (True, True, 'converged')
    """

    _machine: ClassVar[type] = SVC
    _axes: ClassVar[dict[str, str]] = {"C": "Cs", "gamma": "gammas"}
    _parameter_constraints: ClassVar[Constraints] = _SHARED | INTERCEPT | values_of("Cs", "gammas")

    def __init__(
        self,
        *,
        Cs: Any = 10,
        gammas: Any = 10,
        kernel: Any = "rbf",
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        search: str = "grid",
        extend: bool = False,
        probabilities: bool = False,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
        degree: int = 3,
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        fit_intercept: bool = True,
        callback: Callable[[dict[str, float]], Any] | None = None,
        working_set_size: int | None = None,
        inner_solver: str = "smo",
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.kernel = kernel
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.search = search
        self.extend = extend
        self.probabilities = probabilities
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.degree = degree
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.fit_intercept = fit_intercept
        self.callback = callback
        self.working_set_size = working_set_size
        self.inner_solver = inner_solver


class NuSVCCV(SelectingKernel, NuSVC):
    """`NuSVC` that chooses ν and γ by cross-validation.

    Parameters and attributes are those of `SVCCV`, with `nus` in place of `Cs`.

    Parameters
    ----------
    nus : int or list, default=10
        Values of ν to try; a number means so many, from 2 % to 80 % of the largest that is feasible for the classes. A fold
        for which a value is infeasible is marked as failed, and the setting is not chosen.

    Attributes
    ----------
    nu_, gamma_ : the choice

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import NuSVCCV
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> NuSVCCV(nus=[0.05, 0.1, 0.3], gammas=[0.1, 1, 10]).fit(X, y).best_score_ > 0.95
    True
    """

    _machine: ClassVar[type] = NuSVC
    _axes: ClassVar[dict[str, str]] = {"nu": "nus", "gamma": "gammas"}
    _parameter_constraints: ClassVar[Constraints] = _SHARED | values_of("nus", "gammas")

    def __init__(
        self,
        *,
        nus: Any = 10,
        gammas: Any = 10,
        kernel: Any = "rbf",
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        search: str = "grid",
        extend: bool = False,
        probabilities: bool = False,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
        degree: int = 3,
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        callback: Callable[[dict[str, float]], Any] | None = None,
        working_set_size: int | None = None,
        inner_solver: str = "smo",
    ) -> None:
        self.nus = nus
        self.gammas = gammas
        self.kernel = kernel
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.search = search
        self.extend = extend
        self.probabilities = probabilities
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.degree = degree
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.callback = callback
        self.working_set_size = working_set_size
        self.inner_solver = inner_solver
