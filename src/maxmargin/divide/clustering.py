"""Two-step kernel k-means (DC-SVM paper, section 3): cluster a sample of the points, then send every point to its centre.

    μ_c = mean of φ(s) over the sampled points s of cluster c
    ‖φ(x) − μ_c‖² − K(x, x) = offset_c − 2/|c| Σ_{s in c} K(x, s),      offset_c = 1/|c|² Σ_{s, t in c} K(s, t)

    cost     m² kernel values and up to 20 passes over them per run, one or two runs; then n·m kernel values for the
             assignment

A centre is its sampled points, so routing a new point is the rule that training used. What the paper leaves open:

- A narrow kernel sees nothing: where nearly all pairs have K = 0 all points are equally far from all centres. So rbf and
  laplacian kernels are widened, for clustering only, until the distance of two random points is a few widths. Points
  close under the narrow kernel are close under the wide one.
- Random labels end in different clusters each time. Coarse levels, where a cut through a dense region costs most, try
  several and keep the one that separates least of the machine's own kernel (the bound of Theorem 1) with least
  imbalance.
- A cluster that empties takes the point farthest from its centre. A cluster far above the mean size is clustered again
  within itself, since the time of a level goes with Σ n_c². Clusters then form a tree, and a point walks down it.
- A centre that no point is nearest to is left out: there is no machine that could answer a point routed to it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.kernel_values import GivenValues, Values, pieces
from maxmargin.problem.kernels import Kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Steps = Generator[None, None, IntArray]

# Nearest centre for some points: (ids, rows of the sampled points, ends, offsets) → cluster per id, in short steps.
Nearest = Callable[[IntArray, IntArray, IntArray, FloatArray], Steps]

# Those without a reason of their own were chosen on rows held out of training rows (benchmarks/experiments/dc_constants.py).
_ITERATIONS = 20  # the paper's
_WIDTHS = 4.0  # γ d² of two random points, on the average, from which on a kernel is too narrow to cluster with
_RESTARTS = 2  # of kernel k-means at most; 64 / k of them, as fine levels gain little and take longer
_BALANCE = 0.02  # separating 2 % of the kernel is worth one more Σ n_c² of equal clusters
_FAR_ABOVE_MEAN = 2.0  # clusters larger than this many times the mean are split,
_SMALL = 2000  # unless they are so small that their QP takes a few milliseconds
_SPLIT_SAMPLE = 32  # sampled points per part of a split
_DEPTH = 10  # of splits within splits: a kernel that tells nothing apart splits off a few points at a time


class Elsewhere:
    """Kernel values of samples whose rows are not in this process: what clustering asks for."""

    rows: IntArray
    kernel: Kernel

    def gram(self, ids: IntArray) -> FloatArray:
        """K between some samples, float64."""
        raise NotImplementedError

    def nearest(self, ids: IntArray, rows: IntArray, end: IntArray, offset: FloatArray) -> Steps:
        """The nearest centre of each of some samples."""
        raise NotImplementedError


@dataclass(frozen=True)
class Centers:
    """Centres as sampled points: cluster c owns rows[end[c − 1]:end[c]]; `number[c]` is its final number.

    A cluster that was split has a child instead of a number (−1).
    Worked example: rows 7 3 | 5 | 1, end 2 3 4, number 0 −1 1, children {1: …}: a point nearest to the mean of samples
    7 and 3 is in cluster 0, one nearest to sample 5 asks the child.
    """

    rows: IntArray
    end: IntArray
    offset: FloatArray
    number: IntArray
    children: dict[int, Centers] = field(default_factory=dict)

    def assign(self, ids: IntArray, nearest: Nearest) -> Steps:
        """The cluster number of each point, walking down the tree."""
        at = yield from nearest(ids, self.rows, self.end, self.offset)
        out = self.number[at]
        for c, child in self.children.items():
            mine = np.flatnonzero(at == c)
            if len(mine):
                out[mine] = yield from child.assign(ids[mine], nearest)
        return out

    def of_clusters(self, new: IntArray) -> Centers:
        """The centres of the clusters c with new[c] ≥ 0, which is their new number; no point may be in the others."""
        kept = np.flatnonzero((self.number < 0) | (new[self.number] >= 0))
        parts = np.split(np.arange(len(self.rows)), self.end[:-1])
        rows = self.rows[np.concatenate([parts[c] for c in kept])]
        number = np.where(self.number[kept] < 0, -1, new[self.number[kept]])
        children = {i: self.children[c].of_clusters(new) for i, c in enumerate(kept.tolist()) if c in self.children}
        return Centers(rows, np.cumsum([len(parts[c]) for c in kept]), self.offset[kept], number, children)

    def sampled(self) -> IntArray:
        """All sampled points of the tree, ascending."""
        parts = [self.rows, *(child.sampled() for child in self.children.values())]
        return np.unique(np.concatenate(parts))

    def renumbered(self, kept: IntArray) -> Centers:
        """The same centres with rows counted within `kept` (ascending): for a model that keeps only those points."""
        children = {c: child.renumbered(kept) for c, child in self.children.items()}
        return replace(self, rows=np.searchsorted(kept, self.rows), children=children)


@dataclass(frozen=True)
class Partition:
    """All points in clusters 0 … n_clusters − 1, none empty, and the centres that decide it."""

    label: IntArray
    n_clusters: int
    centers: Centers
    sample: IntArray  # the points that were clustered, without those of splits
    kernel: Kernel  # what they were clustered with: routing must use the same

    def members(self) -> list[IntArray]:
        """The points of each cluster, ascending."""
        order = np.argsort(self.label, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.label, minlength=self.n_clusters))[:-1])


def clustering_kernel(kernel: Kernel, X: Any, rows: IntArray, rng: np.random.Generator) -> Kernel:
    """The kernel that clusters are made with: `kernel`, widened as the module says; `rows` are some rows of X."""
    if kernel.name not in ("rbf", "laplacian") or len(rows) < 2:
        return kernel
    difference = X[rows] - X[rng.permutation(rows)]  # the order of rows may have a meaning
    values = np.asarray(difference.data if sp.issparse(difference) else difference, dtype=np.float64)
    mean = float(np.sum(np.abs(values) if kernel.name == "laplacian" else values * values)) / len(rows)
    return replace(kernel, gamma=min(kernel.gamma, _WIDTHS / mean)) if mean > 0 else kernel


def best_kmeans(gram: FloatArray, kernel: FloatArray, k: int, rng: np.random.Generator) -> Steps:
    """The labels of several runs that leave the least of |kernel| between clusters, for the least imbalance."""
    runs = []
    for _ in range(max(1, min(_RESTARTS, 64 // k if k > 1 else 1))):
        runs.append((yield from kernel_kmeans(gram, k, rng)))
    if len(runs) == 1:
        return runs[0]
    mass = np.abs(kernel)
    everything, everyone = float(mass.sum()), np.arange(len(mass))
    total = max(everything - float(np.trace(mass)), np.finfo(float).tiny)

    def cost(label: IntArray) -> float:
        between = (everything - float(_cluster_sums(mass, label, k)[label, everyone].sum())) / total
        share = np.bincount(label, minlength=k) / len(label)
        return between + _BALANCE * k * float(share @ share)

    return min(runs, key=cost)


def kernel_kmeans(gram: FloatArray, k: int, rng: np.random.Generator) -> Steps:
    """Labels 0 … k−1 of the points of a Gram matrix, from random labels; no cluster is empty (k ≤ points)."""
    label = rng.permutation(np.arange(len(gram)) % k)
    diagonal = np.diagonal(gram)
    for _ in range(_ITERATIONS):
        distance, _ = _distances(gram, label, k)
        new = np.argmin(distance, axis=0)
        _fill_empty(new, k, distance[new, np.arange(len(gram))] + diagonal)
        if np.array_equal(new, label):
            break
        label = new
        yield None
    return label


def _cluster_sums(gram: FloatArray, label: IntArray, k: int) -> FloatArray:
    """Σ_{s in c} gram[s], clusters × points: m² additions of whole rows in a fixed order, whatever k and the threads."""
    order = np.argsort(label, kind="stable")
    end = np.cumsum(np.bincount(label, minlength=k))
    member = sp.csr_matrix((np.ones(len(label)), order, np.r_[0, end]), shape=(k, len(label)))
    return np.asarray(member @ gram)


def _distances(gram: FloatArray, label: IntArray, k: int) -> tuple[FloatArray, FloatArray]:
    """(‖φ(x) − μ_c‖² − K(x, x), clusters × points; offset_c)."""
    size = np.bincount(label, minlength=k)
    mean = _cluster_sums(gram, label, k) / size[:, None]
    offset = np.bincount(label, mean[label, np.arange(len(label))], k) / size
    return offset[:, None] - 2 * mean, offset


def _fill_empty(label: IntArray, k: int, distance: FloatArray) -> None:
    """Give each empty cluster the point farthest from its own centre, out of a cluster that has others."""
    size = np.bincount(label, minlength=k)
    for c in np.flatnonzero(size == 0):
        far = int(np.argmax(np.where(size[label] > 1, distance, -np.inf)))
        size[label[far]] -= 1
        size[c], label[far], distance[far] = 1, c, -np.inf


def partition(
    source: Values | Elsewhere, kernel: Values | Elsewhere, population: IntArray, k: int, m: int, rng: np.random.Generator,
    everyone: IntArray,
) -> Generator[None, None, Partition]:  # fmt: skip
    """All points of `source`, `everyone`, in about k clusters, found on m points sampled from `population`. Both in one
    order: for those same points in that same order clusters are the same, whatever their numbers in `source`.

    `source` has the values of the clustering kernel, `kernel` those of the machine's, for the same points. At most as
    many clusters as sampled points; a few more than k where large clusters were split.
    """
    nearest = nearest_in(source)
    n = len(source.rows)
    sample, root = yield from _centers(source, kernel, population, k, m, rng)
    label = yield from root.assign(np.arange(n), nearest)
    n_clusters = len(root.number)
    limit = max(_SMALL, _FAR_ABOVE_MEAN * n / k)
    root, n_clusters = yield from _split(source, root, label, everyone, n_clusters, limit, m, rng, _DEPTH)
    taken = np.bincount(label, minlength=n_clusters) > 0
    new = np.where(taken, np.cumsum(taken) - 1, -1)
    kernel_used = source.kernel if isinstance(source, (GivenValues, Elsewhere)) else source.samples.kernel
    return Partition(new[label], int(taken.sum()), root.of_clusters(new), sample, kernel_used)


def _centers(
    source: Values | Elsewhere, kernel: Values | Elsewhere, population: IntArray, k: int, m: int, rng: np.random.Generator
) -> Generator[None, None, tuple[IntArray, Centers]]:
    """Kernel k-means on a sample; at least two points per cluster are sampled if there are as many."""
    count = min(len(population), max(m, 2 * k))
    sample = population[np.sort(rng.choice(len(population), count, replace=False))]
    k = min(k, len(sample))
    gram = gram_matrix(source, sample)
    label = yield from best_kmeans(gram, gram if kernel is source else gram_matrix(kernel, sample), k, rng)
    _, offset = _distances(gram, label, k)
    end = np.cumsum(np.bincount(label, minlength=k))
    return sample, Centers(sample[np.argsort(label, kind="stable")], end, offset, np.arange(k))


def _split(
    source: Values | Elsewhere,
    node: Centers,
    label: IntArray,
    ids: IntArray,
    n_clusters: int,
    limit: float,
    m: int,
    rng: np.random.Generator,
    depth: int,
) -> Generator[None, None, tuple[Centers, int]]:
    """Cluster again what is larger than `limit`, to `depth` at most; `label` is changed in place.

    One part keeps the old number.
    """
    number, children = node.number.copy(), dict(node.children)
    for c in range(len(number)):
        mine = ids[label[ids] == number[c]]
        if len(mine) <= limit or depth == 0:
            continue
        parts = int(np.ceil(2 * len(mine) / limit))
        _, child = yield from _centers(source, source, mine, parts, min(m, _SPLIT_SAMPLE * parts), rng)
        inside = yield from child.assign(mine, nearest_in(source))
        if np.bincount(inside).max() == len(mine):  # all alike: nothing to split
            continue
        numbers = np.r_[number[c], n_clusters + np.arange(len(child.number) - 1)]
        child, n_clusters = replace(child, number=numbers), n_clusters + len(numbers) - 1
        label[mine] = numbers[inside]
        child, n_clusters = yield from _split(source, child, label, mine, n_clusters, limit, m, rng, depth - 1)
        number[c], children[c] = -1, child
    return replace(node, number=number, children=children), n_clusters


def gram_matrix(source: Values | Elsewhere, ids: IntArray) -> FloatArray:
    """K between some samples, float64."""
    if isinstance(source, Elsewhere):
        return source.gram(ids)
    if isinstance(source, GivenValues):
        return source.block(ids, ids)
    s, rows = source.samples, source.rows[ids]
    out = np.empty((len(ids), len(ids)), s.dtype)
    s.points.block(rows, s.points, rows, out, s.threads)
    return out.astype(np.float64)


def nearest_in(source: Values | Elsewhere) -> Nearest:
    """The assignment step for samples of one source."""
    if isinstance(source, Elsewhere):
        return source.nearest
    if isinstance(source, GivenValues):
        return lambda ids, rows, end, offset: nearest_of_blocks(lambda some: source.block(some, rows), ids, end, offset)
    s, own = source.samples, source.rows
    return lambda ids, rows, end, offset: nearest_native(s.points, own[ids], s.points, own[rows], end, offset, s.threads)


def nearest_native(
    points: Any, ids: IntArray, others: Any, rows: IntArray, end: IntArray, offset: FloatArray, threads: int
) -> Steps:
    """The assignment step in the core, in pieces of well under a second."""
    out = np.empty(len(ids), np.int64)
    for piece in pieces(len(ids), len(rows)):
        out[piece] = _core.nearest_cluster(points, ids[piece], others, rows, end, offset, threads)
        yield None
    return out


def nearest_of_blocks(block: Callable[[IntArray], FloatArray], ids: IntArray, end: IntArray, offset: FloatArray) -> Steps:
    """The assignment step for kernel values that come from Python: block(some ids) is (ids × sampled points)."""
    out = np.empty(len(ids), np.int64)
    start = np.r_[0, end[:-1]]
    step = max(1, 2**22 // int(end[-1]))  # 32 MB of kernel values at a time
    for i in range(0, len(ids), step):
        mean = np.add.reduceat(block(ids[i : i + step]), start, axis=1) / (end - start)
        out[i : i + step] = np.argmin(offset - 2 * mean, axis=1)
        yield None
    return out
