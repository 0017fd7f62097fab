"""The engine of DCSVCCV: the search inside clusters, side by side, with halving over clusters.

    cluster the rows once, for all γ (the kernel that clusters are made with is widened: for all but the smallest γ it is
    the same one); in every cluster all settings and folds (cluster_problems.py); scores are those of early prediction:
    each row that a fold leaves out by the machine of its own cluster.

    grid       every setting in every cluster
    halving    all settings in a ninth of the rows (clusters drawn at random), the best third in the next two ninths, the
               best third of these in the rest. Clusters are different rows, so nothing is solved twice; a setting that is
               left has status "halved" and no score: that it would not have won is a guess, though one on thousands of rows

A cell's objective and gap are sums over its clusters: those of the problem whose kernel is 0 between clusters.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from maxmargin.data.rows import DistinctRows
from maxmargin.divide.clustering import Centers, Partition, clustering_kernel, partition
from maxmargin.estimators._labelled import class_weights
from maxmargin.estimators._setup import Setup
from maxmargin.estimators.dc import DCSVC
from maxmargin.runtime import Deadline, Turn, thread_count
from maxmargin.selection.board import Board, Outcome
from maxmargin.selection.cluster_problems import Cluster, Settings, Stopped, Verdicts
from maxmargin.selection.fits import turn_of
from maxmargin.selection.grid import Params
from maxmargin.selection.scoring import Scoring
from maxmargin.selection.search import FACTOR, Steps, Task

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LOOK = 0.1  # seconds between safe points
RUNGS = 2  # of halving before the last: a ninth of the rows, a third
LEAST_CLUSTERS = 9  # from which on there is a rung


@dataclass(frozen=True)
class Division:
    """Clusters of rows of X, kept by row: samples of a later fit may be in another order."""

    label: IntArray  # of each row, −1 where it does not count
    n_clusters: int
    centers: Centers  # whose rows are rows of X
    sample: IntArray
    kernel: Any

    @classmethod
    def of(cls, found: Partition, rows: DistinctRows, n: int) -> Division:
        label = np.full(n, -1, np.int64)
        label[rows.member] = found.label[rows.owner]
        return cls(label, found.n_clusters, _moved(found.centers, rows.index), rows.index[found.sample], found.kernel)

    def partition(self, rows: DistinctRows) -> Partition:
        """The same for the samples of a fit."""
        place = np.full(len(self.label), -1, np.int64)
        place[rows.member] = rows.owner
        centers = _moved(self.centers, place)
        return Partition(self.label[rows.index], self.n_clusters, centers, place[self.sample], self.kernel)


def _moved(centers: Centers, to: IntArray) -> Centers:
    children = {c: _moved(child, to) for c, child in centers.children.items()}
    return replace(centers, rows=to[centers.rows], children=children)


class Judge(DCSVC):
    """A machine whose decision values are known for the rows that a scorer asks for, and for no others."""

    _rows: Any
    _values: FloatArray
    _per_class: bool

    def _decisions(self, X: Any, coef: Any) -> FloatArray:
        if X is not self._rows:
            raise ValueError("this machine knows the rows of its fold only: a scorer may ask for no others")
        return self._values

    def _pair_coef(self) -> Any:
        return None

    def _one_per_class(self) -> bool:
        return self._per_class


@dataclass
class Tally:
    """What clusters have said of some cells so far: arrays cells × folds."""

    right: FloatArray
    total: FloatArray
    objective: FloatArray
    gap: FloatArray
    n_support: IntArray
    seconds: FloatArray
    proven: NDArray[np.bool_]

    @classmethod
    def zeros(cls, cells: int, folds: int) -> Tally:
        shape = (cells, folds)
        right, total, objective, gap, seconds = (np.zeros(shape) for _ in range(5))
        return cls(right, total, objective, gap, np.zeros(shape, np.int64), seconds, np.ones(shape, bool))

    def add(self, who: IntArray, verdicts: Verdicts, weight: FloatArray) -> None:
        for name in ("right", "objective", "gap", "n_support", "seconds"):
            getattr(self, name)[who] += getattr(verdicts, name)
        self.total[who] += [weight[verdicts.rows[judged]].sum() for judged in verdicts.judged]
        self.proven[who] &= verdicts.proven


class ClusterFolds:
    """`single(params)` is a DCSVC that is not fitted yet."""

    def __init__(
        self, task: Task, single: Callable[[Params], Any], scoring: Scoring, *, gamma: float, size: int, halving: bool,
        random_state: Any, keep_verdicts: bool = False,
    ) -> None:  # fmt: skip
        self.task, self.single, self.scoring, self.size, self.halving = task, single, scoring, size, halving
        self.machine = single({"gamma": gamma})
        self.threads = thread_count(self.machine.n_jobs)
        self._random = check_random_state(random_state)
        self.division: Division | None = None
        self._members: list[IntArray] = []
        self._shared: Settings | None = None
        self.keep_verdicts = keep_verdicts
        self._right: dict[int, FloatArray] = {}  # of each cell: the weight predicted right in each cluster
        self.provisional: int | None = None  # the best cell so far of a search that was stopped

    def solve(self, board: Board, cells: Sequence[int], deadline: Deadline) -> Steps:
        yield from self._prepared()
        assert self._shared is not None
        race = _Race(self, board, [c for c in cells if board.wanted(c)])
        rungs = self._rungs(len(race.left))
        try:
            for rung, clusters in enumerate(rungs):
                for c, verdicts in self._side_by_side(clusters, race.params(), deadline):
                    if verdicts is not None:
                        race.hear(verdicts)
                        self._note(c, race.left, verdicts)
                    yield turn_of(board) if verdicts is not None else None
                    if deadline.passed():
                        return
                if rung + 1 < len(rungs):
                    race.halve()
            race.finish()
            yield turn_of(board)
        finally:
            self.provisional = race.leader()

    def _note(self, cluster: int, cells: list[int], verdicts: Verdicts) -> None:
        for k, cell in enumerate(cells if self.keep_verdicts else []):
            right = self._right.setdefault(cell, np.zeros(len(self._members)))
            right[cluster] = verdicts.right[k].sum()

    def by_cluster(self, board: Board, best: Params) -> tuple[float, FloatArray]:
        """The γ that is best if each cluster has its own C, and these: of several equally good the nearest to the best."""
        found: dict[float, list[tuple[float, FloatArray]]] = {}
        for cell, right in self._right.items():
            params = board.cells[cell]
            found.setdefault(float(params["gamma"]), []).append((float(params["C"]), right))
        if not found:
            return float(best["gamma"]), np.full(max(1, len(self._members)), float(best["C"]))
        tables = {gamma: np.array([right for _, right in some]) for gamma, some in found.items()}
        gamma = max(tables, key=lambda g: float(tables[g].max(axis=0).sum()))
        values = np.array([C for C, _ in found[gamma]])
        far = np.abs(np.log(values) - np.log(float(best["C"])))
        order = np.argsort(far, kind="stable")  # argmax takes the first of several
        return gamma, values[order][np.argmax(tables[gamma][order], axis=0)]

    # ---- clusters ----------------------------------------------------------------------------------------------------

    def _prepared(self) -> Generator[Turn | None, None, None]:
        if self._shared is not None:
            return
        task, data = self.task, self.task.data
        setup = Setup(self.machine, data)
        division = yield from self._clusters(setup)
        self.division = Division.of(division, setup.rows, data.X.shape[0])
        label = self.division.label
        order = np.argsort(label, kind="stable")[np.count_nonzero(label < 0) :]
        self._members = np.split(order, np.cumsum(np.bincount(label[order], minlength=self.division.n_clusters))[:-1])
        code, n = data.code.astype(np.int64), data.X.shape[0]
        bound, test = np.zeros((len(task.folds), n)), np.zeros((len(task.folds), n), bool)
        for k, fold in enumerate(task.folds):
            bound[k] = data.weight * np.bincount(fold.train, minlength=n)
            present = np.unique(code[fold.train])
            factors = np.ones(len(data.classes))
            some = np.searchsorted(present, code[fold.train])
            factors[present] = class_weights(self.machine.class_weight, data.classes[present], some, bound[k, fold.train])
            bound[k] *= factors[code]
            test[k, fold.test] = True
        self._shared = Settings(self.machine, setup.X, code, data.weight, bound, test, len(data.classes))

    def _clusters(self, setup: Setup) -> Generator[Turn | None, None, Partition]:
        n, rows = len(setup.rows.index), setup.rows.index
        rng = np.random.default_rng(self._random.randint(np.iinfo(np.int32).max))
        data = setup.kernel_data()
        everyone = setup.hash_order.everyone
        kernel = clustering_kernel(setup.kernel, setup.X, rows[everyone[:: max(1, n // 1000)]], rng)
        own = data.source()
        source = own if kernel == setup.kernel else data.with_kernel(kernel).source()
        count = max(1, round(n / self.size))
        sample = max(int(self.machine.sample_size), 4 * count)
        return (yield from partition(source, own, everyone, count, sample, rng, everyone))

    def _rungs(self, n_cells: int) -> list[list[int]]:
        """Clusters of each rung, in random order."""
        order = self._random.permutation(len(self._members)).tolist()
        steps = RUNGS if self.halving and len(order) >= LEAST_CLUSTERS * FACTOR else 0
        steps = min(steps, int(np.log(max(1, n_cells)) / np.log(FACTOR)))
        rows = np.cumsum([len(self._members[c]) for c in order])
        cuts = [int(np.searchsorted(rows, rows[-1] * FACTOR**-k)) + 1 for k in range(steps, 0, -1)]
        return [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)])]

    def _side_by_side(
        self, clusters: list[int], cells: list[tuple[float, float]], deadline: Deadline
    ) -> Generator[tuple[int, Verdicts | None], None, None]:
        """Each cluster on a thread of its own, the largest first; the work is stopped when this is closed."""
        stop = threading.Event()
        assert self._shared is not None
        shared, keep = self._shared, not self.scoring.own

        def work(c: int) -> Verdicts | None:
            cluster = Cluster(shared, self._members[c], cells, keep)
            try:
                return cluster.solve(lambda: stop.is_set() or deadline.passed())
            except Stopped:
                return None

        with ThreadPoolExecutor(self.threads) as pool:
            order = sorted(clusters, key=lambda c: -len(self._members[c]))
            running: dict[Future[Verdicts | None], int] = {pool.submit(work, c): c for c in order}
            try:
                while running:
                    done, _ = wait(running, LOOK, FIRST_COMPLETED)
                    for future in sorted(done, key=lambda future: running[future]):
                        yield running.pop(future), future.result()
                    if not done:
                        yield -1, None
            finally:
                stop.set()
                for future in running:
                    future.cancel()


class _Race:
    """Cells that are still in it, and what clusters have said of them so far."""

    def __init__(self, engine: ClusterFolds, board: Board, cells: list[int]) -> None:
        self.engine, self.board, self.left, self.task = engine, board, cells, engine.task
        self.at = {cell: k for k, cell in enumerate(cells)}
        self.tally = Tally.zeros(len(cells), board.n_folds)
        self.values: dict[tuple[int, int], FloatArray] = {}
        self.seen = np.zeros(self.task.data.X.shape[0], bool)

    def params(self) -> list[tuple[float, float]]:
        cells = [self.board.cells[c] for c in self.left]
        return [(float(p["C"]), float(p["gamma"])) for p in cells]

    def hear(self, verdicts: Verdicts) -> None:
        self.tally.add(np.array([self.at[c] for c in self.left]), verdicts, self.task.data.weight)
        self.seen[verdicts.rows] = True
        if verdicts.values is None:
            return
        for fold, (judged, found) in enumerate(zip(verdicts.judged, verdicts.values)):
            test = self.task.folds[fold].test
            place = np.full(len(self.seen), -1, np.int64)
            place[test] = np.arange(len(test))
            at = place[verdicts.rows[judged]]
            for k, cell in enumerate(self.left):
                if (cell, fold) not in self.values:
                    self.values[cell, fold] = np.zeros((len(test), found.shape[2]), np.float32)
                self.values[cell, fold][at] = found[k]

    def halve(self) -> None:
        scores = {cell: self._mean(cell) for cell in self.left}
        order = sorted(self.left, key=lambda cell: (-scores[cell] if scores[cell] == scores[cell] else np.inf, cell))
        keep = -(-len(order) // FACTOR)
        for cell in order[keep:]:
            self.board.leave(cell)
        self.left = sorted(order[:keep])

    def finish(self) -> None:
        for cell in self.left:
            for fold in range(self.board.n_folds):
                k, begun = (self.at[cell], fold), time.perf_counter()
                score, status = self._score(cell, fold), "converged" if self.tally.proven[k] else "stalled"
                outcome = Outcome(
                    score, status, float(self.tally.objective[k]), float(self.tally.gap[k]), int(self.tally.n_support[k]),
                    float(self.tally.seconds[k]), time.perf_counter() - begun,
                )  # fmt: skip
                self.board.put(cell, fold, outcome)

    def leader(self) -> int | None:
        """The best so far, if any row was judged."""
        if not self.seen.any() or not self.left:
            return None
        scores = [self._mean(cell) for cell in self.left]
        return None if np.isnan(scores).all() else self.left[int(np.nanargmax(scores))]

    def _mean(self, cell: int) -> float:
        scores = [self._score(cell, fold) for fold in range(self.board.n_folds)]
        return float(np.mean([score for score in scores if score == score] or [np.nan]))

    def _score(self, cell: int, fold: int) -> float:
        """Over the rows that were judged so far."""
        engine, k = self.engine, (self.at[cell], fold)
        if engine.scoring.own:
            return float(self.tally.right[k] / self.tally.total[k]) if self.tally.total[k] > 0 else float("nan")
        test = self.task.folds[fold].test
        some = self.seen[test]
        if not some.any():
            return float("nan")
        judge = Judge(**engine.single(self.board.cells[cell]).get_params(deep=False))
        judge._rows, judge._values = self.task.data.X[test[some]], self.values[cell, fold][some].astype(np.float64)
        judge.classes_, judge.status_ = self.task.data.classes, "early"
        judge._per_class = engine.machine.multi_class == "ovr" and len(judge.classes_) > 2
        return engine.scoring(judge, judge._rows, self.task.y[test[some]], self.task.weight(test[some]))
