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

SLACK_ROWS = 20_000  # up to which the n × n kernel values of an exact bound are computed
JUDGED_ROWS = 100_000  # above, the evaluator would need too many kernel values: only the score is judged


def identified(make: Any, settings: dict[str, Any], X: Any, y: np.ndarray, mine: np.ndarray) -> dict[str, float]:
    """Precision and recall of support vectors against those of the optimum, and the share of all rows that those are."""
    best = make(**(settings | {"tol": 1e-4, "cache_size": 1000})).fit(X, y).support_
    both = float(len(np.intersect1d(best, mine)))
    found = {"precision": both / max(1, len(mine)), "recall": both / max(1, len(best))}
    return found | {"support_share": len(best) / X.shape[0]}


def _signed(machine: Any, n: int) -> np.ndarray:
    """y·alpha of all rows."""
    coef = machine.dual_coef_
    out = np.zeros(n)
    out[machine.support_] = np.ravel(coef.toarray() if sp.issparse(coef) else coef)
    return out


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
        own = {"objective": float(self.estimator.level_objective_)} if hasattr(self.estimator, "level_objective_") else {}
        return super().extra() | own | {
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
        """Who is found, and what Theorem 1's bound is made of; all of it exact, found here, untimed."""
        names = ("C", "kernel", "gamma", "degree", "coef0", "fit_intercept")
        settings = {name: getattr(self.estimator, name) for name in names}
        make = importlib.import_module("maxmargin").SVC
        own = identified(make, settings, self.X, self.y, self.estimator.support_)
        return super().extra() | own | self._slack(make(**settings, tol=1e-6, cache_size=1000))

    def _slack(self, best: Any) -> dict[str, float]:
        """The steps from Theorem 1's bound down to the difference (each an upper bound of the next):

        theorem_1 ½C² Σ|K| over the pairs that the clusters cut; theorem_3 the same over support vectors of either
        solution; alphas ½ Σ |ā ā − a* a*||K|, what is left when C becomes the alphas there are; signed ½ Σ (ā ā − a*
        a*) y y K, with the signs of y y; the difference itself is less, as ā is optimal for the clusters' kernel.
        `cut`: share of Σ|K| off the diagonal that is cut.
        """
        router = self.estimator._committee.router
        if router is None or self.X.shape[0] > SLACK_ROWS:
            return {}
        label, n = router.cluster(self.X, 1), self.X.shape[0]
        alphas = [_signed(machine, n) for machine in (self.estimator, best.fit(self.X, self.y))]
        support = (alphas[0] != 0) | (alphas[1] != 0)
        C, sums = float(self.estimator.C), dict.fromkeys(("all", "cut", "support", "alphas", "signed"), 0.0)
        for i in range(0, n, 1000):
            K = self.estimator._fitted_kernel(self.X[i : i + 1000], self.X)
            sums["all"] += float(np.abs(K).sum() - np.abs(K[np.arange(len(K)), np.arange(i, i + len(K))]).sum())
            K[label[i : i + 1000, None] == label[None, :]] = 0.0
            size = np.abs(K)
            sums["cut"] += float(size.sum())
            sums["support"] += float(size[support[i : i + 1000]][:, support].sum())
            level, optimum = (np.outer(np.abs(a[i : i + 1000]), np.abs(a)) for a in alphas)
            sums["alphas"] += float((np.abs(level - optimum) * size).sum())
            sums["signed"] += sum(sign * float(a[i : i + 1000] @ (K @ a)) for sign, a in zip((1.0, -1.0), alphas))
        bounds = {"theorem_1": C * C * sums["cut"], "theorem_3": C * C * sums["support"]}
        bounds |= {"alphas": sums["alphas"], "signed": sums["signed"]}
        usual = float(np.abs(alphas[1][alphas[1] != 0]).mean())
        halves = {name: 0.5 * value for name, value in bounds.items()}
        return halves | {"cut": sums["cut"] / max(sums["all"], 1e-300), "mean_alpha": usual}


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
