"""maxmargin's divide and conquer machines: exact, early, and models of one level as the paper compares them."""

from __future__ import annotations

import importlib
import time
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import Data, KernelModel, Model, Predictions, Problem
from benchmarks.solvers._kernel import KernelMachine

JUDGED_ROWS = 100_000  # above, the evaluator would need too many kernel values: only the score is judged


class _Divided(KernelMachine):
    """DCSVC or DCSVR; `Problem.options` go to the estimator (stop_level, k, levels, predict_with)."""

    package = "maxmargin"
    ours = True
    tasks = ("svc", "svr")
    fixed: dict[str, Any] = {}

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        missing = not hasattr(importlib.import_module("maxmargin"), "DCSVC")
        return reason or ("this maxmargin has no DCSVC" if missing else None)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        maxmargin = importlib.import_module("maxmargin")
        make = maxmargin.DCSVC if problem.task == "svc" else maxmargin.DCSVR
        same = {"n_jobs": threads, "random_state": 0, "fit_intercept": problem.fit_intercept}
        self.X, self.y = X, y
        self.estimator = make(**(self.parameters(problem, threads) | same | self.fixed | problem.options))

    def model(self, X_test: Any) -> Model:
        """Coefficients where they are the model; predictions of clusters' machines, or of very large sets, otherwise."""
        if self.estimator.level_ > 0 or self.X.shape[0] > JUDGED_ROWS:
            return Predictions(self.predict(X_test))
        return super().model(X_test)

    def extra(self) -> dict[str, float]:
        levels, last = self.estimator.levels_, self.estimator.levels_[-1]
        return super().extra() | {
            "level": float(self.estimator.level_),
            "clusters": float(last["clusters"]),
            "first_clusters": float(levels["clusters"][0]),
            "bound": float(last["bound"]),
            "n_support": float(last["n_support"]),
            "time_clustering": float(levels["time_clustering"].sum()),
            "time_solving": float(levels["time_solving"].sum()),
            "converged": float(self.estimator.status_ in ("converged", "early")),
        }


class DCExact(_Divided):
    name = "maxmargin-dc"


class DCEarly(_Divided):
    name = "maxmargin-dc-early"
    fixed = {"early": True}


class DCLevel(_Divided):
    """A model of the level that `options` ask for, by its predictions."""

    name = "maxmargin-dc-level"


class DCCoefficients(_Divided):
    """The same, by its coefficients on the whole problem, i.e. f(ᾱ) of the paper; and who its support vectors are."""

    name = "maxmargin-dc-coefficients"

    def model(self, X_test: Any) -> Model:
        return KernelMachine.model(self, X_test)

    def extra(self) -> dict[str, float]:
        """Precision and recall of the level's support vectors against those of the optimum, found here, untimed."""
        exact = importlib.import_module("maxmargin").SVC(
            C=self.estimator.C, kernel=self.estimator.kernel, gamma=self.estimator.gamma, degree=self.estimator.degree,
            coef0=self.estimator.coef0, fit_intercept=self.estimator.fit_intercept, tol=1e-4, cache_size=1000,
        )  # fmt: skip
        best, mine = exact.fit(self.X, self.y).support_, self.estimator.support_
        both = float(len(np.intersect1d(best, mine)))
        return super().extra() | {"precision": both / max(1, len(mine)), "recall": both / max(1, len(best))}


class DCConstants(_Divided):
    """With other constants of clustering than those in use: `options["constants"]`. Each fit has a process of its own."""

    name = "maxmargin-dc-constants"

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        self.module = importlib.import_module("maxmargin.divide.clustering")
        options = dict(problem.options)
        for name, value in options.pop("constants").items():
            if not hasattr(self.module, name):
                raise ValueError(f"maxmargin.divide.clustering has no constant {name}")
            setattr(self.module, name, type(getattr(self.module, name))(value))
        super().prepare(replace(problem, options=options), X, y, threads)

    def fit(self) -> None:
        """CPU seconds of one thread, which other programs on the machine disturb less than they do the clock."""
        start = time.process_time()
        super().fit()
        self.cpu = time.process_time() - start

    def extra(self) -> dict[str, float]:
        names = ("_WIDTHS", "_RESTARTS", "_BALANCE", "_FAR_ABOVE_MEAN", "_SPLIT_SAMPLE")
        used = {name: float(getattr(self.module, name)) for name in names}
        return super().extra() | used | {"cpu": self.cpu, "cut": self._cut()}

    def _cut(self) -> float:
        """The share of the kernel between different rows that the model's clusters cut, on 2,000 rows; NaN at level 0."""
        router = self.estimator._committee.router
        if router is None:
            return float("nan")
        some = self.X[np.random.default_rng(0).choice(self.X.shape[0], min(2000, self.X.shape[0]), replace=False)]
        label, gram = router.cluster(some, 1), np.abs(self.estimator._fitted_kernel(some, some))
        np.fill_diagonal(gram, 0.0)
        return float(gram[label[:, None] != label[None, :]].sum() / gram.sum())


class RandomClusters(KernelMachine):
    """Exact machines on `options["k"]` random parts of the rows, put together: what k-means is compared with."""

    name = "maxmargin-random-clusters"
    package = "maxmargin"
    ours = True
    tasks = ("svc",)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        make = importlib.import_module("maxmargin").SVC
        self.X, self.y, self.k = X, y, problem.options["k"]
        parameters = self.parameters(problem, threads) | {"fit_intercept": False, "n_jobs": threads}
        self.machines = [make(**parameters) for _ in range(self.k)]

    def fit(self) -> None:
        parts = np.array_split(np.random.default_rng(0).permutation(len(self.y)), self.k)
        self.parts = [np.sort(part) for part in parts if len(np.unique(self.y[part])) > 1]  # one class: nothing to learn
        self.machines = self.machines[: len(self.parts)]
        for machine, part in zip(self.machines, self.parts):
            machine.fit(self.X[part], self.y[part])

    def predict(self, X: Any) -> np.ndarray:
        return np.sign(sum((machine.decision_function(X) for machine in self.machines), np.zeros(X.shape[0])))

    def model(self, X_test: Any) -> Model:
        every = [machine.dual_coef_ for machine in self.machines]
        coef = np.concatenate([np.ravel(coef.toarray() if sp.issparse(coef) else coef) for coef in every])
        support = np.concatenate([part[m.support_] for m, part in zip(self.machines, self.parts)])
        return KernelModel(coef, 0.0, support)

    def extra(self) -> dict[str, float]:
        return {}
