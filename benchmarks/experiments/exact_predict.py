"""Prediction time of exact models on all test rows (ijcnn1: 91,701 rows against some 2,500 support vectors)."""

from __future__ import annotations

from benchmarks.base import Cell, Experiment, Options, Problem, discover
from benchmarks.experiments.exact import ROWS


class ExactPredict(Experiment):
    title = "Exact kernel machines: prediction"
    sets = ("ijcnn1", "a9a", "mnist8")
    solvers = ("maxmargin", "scikit-learn", "sklearnex-float32", "sklearnex-float32-dense", "sklearnex-float64")
    yardstick = "scikit-learn"
    repeat = 1  # a worker predicts three times; the best counts

    def cells(self, options: Options) -> list[Cell]:
        known = discover("datasets")
        return [
            Cell(name, solver, Problem("svc", **known[name].kernel), rows=ROWS.get(name), measure="predict")
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
        ]
