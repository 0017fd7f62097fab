"""SVCCV: SVC that chooses C and γ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from maxmargin.estimators.svc import SVC
from maxmargin.selection.machine import Selecting


class SVCCV(Selecting, SVC):
    _machine: ClassVar[type] = SVC
    _axes: ClassVar[dict[str, str]] = {"C": "Cs", "gamma": "gammas"}

    def __init__(
        self, *, Cs: Any = 10, gammas: Any = 10, kernel: Any = "rbf", cv: Any = 5, scoring: Any = None, refit: bool = True,
        search: str = "grid", extend: bool = False, degree: int = 3, coef0: float = 0.0,
        shrinking: bool = True, tol: float = 1e-3, cache_size: float = 200, class_weight: Any = None,
        verbose: bool | int = False, max_iter: int = -1, decision_function_shape: str = "ovr", break_ties: bool = False,
        random_state: Any = None, fit_intercept: bool = True, max_time: float | None = None, n_jobs: int | None = None,
        callback: Callable[[dict[str, float]], Any] | None = None, working_set_size: int | None = None,
        inner_solver: str = "smo",
    ) -> None:  # fmt: skip
        self.Cs = Cs
        self.gammas = gammas
        self.kernel = kernel
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.search = search
        self.extend = extend
        self.degree = degree
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
        self.working_set_size = working_set_size
        self.inner_solver = inner_solver
