"""SVRCV: regression that chooses C, ε and γ by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from maxmargin.estimators._constraints import EXACT, INTERCEPT, Constraints
from maxmargin.estimators.svr import SVR
from maxmargin.selection.constraints import SEARCH, values_of
from maxmargin.selection.kernel_machine import SelectingKernel

_OTHERS = ("gamma", "warm_start")
_SHARED = {name: rule for name, rule in (EXACT | SEARCH).items() if name not in (*_OTHERS, "probabilities")}


class SVRCV(SelectingKernel, SVR):
    """`SVR` that chooses C, γ and ε by cross-validation, each setting certified.

    Parameters and attributes that are not listed here are those of `SVCCV`; the default score is R².

    Parameters
    ----------
    Cs : int or list, default=10
        Values of C to try; a number means so many, from √(10 / n) standard deviations of y on, four decades wide.
    gammas : int or list, default=10
        Values of γ to try.
    epsilons : int or list, default=3
        Values of ε to try; a number means so many, from half the standard deviation of y down, by thirds.

    Attributes
    ----------
    C_, gamma_, epsilon_ : the choice

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVRCV
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = SVRCV(Cs=[1, 10], gammas=[0.1, 1], epsilons=[0.01, 0.1], cv=3).fit(X, np.sin(X).ravel())
    >>> model.status_, model.score(X, np.sin(X).ravel()) > 0.98
    ('converged', True)
    """

    _machine: ClassVar[type] = SVR
    _axes: ClassVar[dict[str, str]] = {"C": "Cs", "gamma": "gammas", "epsilon": "epsilons"}
    _parameter_constraints: ClassVar[Constraints] = _SHARED | INTERCEPT | values_of("Cs", "gammas", "epsilons")

    def __init__(
        self,
        *,
        Cs: Any = 10,
        gammas: Any = 10,
        epsilons: Any = 3,
        kernel: Any = "rbf",
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        search: str = "grid",
        extend: bool = False,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
        degree: int = 3,
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        max_iter: int = -1,
        fit_intercept: bool = True,
        callback: Callable[[dict[str, float]], Any] | None = None,
        working_set_size: int | None = None,
        inner_solver: str = "smo",
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
        self.kernel = kernel
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.search = search
        self.extend = extend
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.degree = degree
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.callback = callback
        self.working_set_size = working_set_size
        self.inner_solver = inner_solver
