"""What one fit over P ranks costs: a model of one turn, fitted to measured jobs, for more ranks and rows than are here.

    seconds(P, n) of a turn  =  work · n/P  +  fixed  +  latency · messages · ⌈log₂ P⌉  +  volume(P, n) / bandwidth

    work        seconds per row that a rank holds: kernel rows and gradient, or the passes over X
    fixed       what every rank waits for: the inner problem on rank 0, Python between two exchanges
    messages    exchanges per turn, counted; each takes ⌈log₂ P⌉ hops
    volume      bytes that pass through one rank: (2·reduced + gathered·P)·(P − 1)/P + cast, each as one rank sends it.
                What is gathered is the same in all, whatever P is (rows of the working set, hinges of a bucket), so a
                rank's part was measured at P₀ ranks and counts as gathered·P₀.

work, fixed, latency and 1/bandwidth are found by non-negative least squares on relative errors. A machine's own latency and
bandwidth may be put in place of those found here, which are those of ranks that share memory (`on`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

MOST = 1024  # ranks
PAYS = 0.5  # efficiency below which more ranks are called a waste


@dataclass(frozen=True)
class Job:
    """A measured fit: totals over its turns; bytes are what the rank that sent most handed to exchanges."""

    ranks: int
    rows: int
    turns: float
    seconds: float
    messages: float
    reduced: float
    gathered: float
    cast: float


@dataclass(frozen=True)
class Network:
    """Seconds per hop of a message, and bytes per second."""

    latency: float
    bandwidth: float


CLUSTER = Network(2e-6, 10e9)  # what 100 Gbit/s networks of today's clusters promise


@dataclass(frozen=True)
class Model:
    """Of one problem; see above. Messages and bytes are those of a turn."""

    work: float
    fixed: float
    latency: float
    per_byte: float
    messages: float
    reduced: float
    gathered: float  # in all ranks together
    cast: float

    @classmethod
    def fitted(cls, jobs: Sequence[Job]) -> Model:
        """From jobs of the same problem at several numbers of ranks (and rows); at least one has two ranks or more."""
        many = [job for job in jobs if job.ranks > 1]
        if not many:
            raise ValueError("a cost model needs a job of two ranks or more: nothing was sent by one")
        per_turn = np.array([
            [job.messages / job.turns, job.reduced / job.turns, job.gathered * job.ranks / job.turns, job.cast / job.turns]
            for job in many
        ])  # fmt: skip
        messages, reduced, gathered, cast = np.median(per_turn, axis=0).tolist()
        empty = cls(0.0, 0.0, 0.0, 0.0, messages, reduced, gathered, cast)
        seconds = np.array([job.seconds / job.turns for job in jobs])
        terms = np.array([empty.terms(job.ranks, job.rows) for job in jobs])
        found, _ = nnls(terms / seconds[:, None], np.ones(len(jobs)))
        work, fixed, latency, per_byte = found.tolist()
        return replace(empty, work=work, fixed=fixed, latency=latency, per_byte=per_byte)

    def terms(self, ranks: int, rows: float) -> tuple[float, float, float, float]:
        """What work, fixed, latency and 1/bandwidth are multiplied with."""
        hops = math.ceil(math.log2(ranks)) if ranks > 1 else 0
        away = (ranks - 1) / ranks
        volume = (2 * self.reduced + self.gathered) * away + (self.cast if ranks > 1 else 0.0)
        return rows / ranks, 1.0, self.messages * hops, volume

    def parts(self, ranks: int, rows: float) -> dict[str, float]:
        """Seconds of a turn by their cause."""
        share, one, hops, volume = self.terms(ranks, rows)
        return {"work": self.work * share, "what is not shared": self.fixed * one, "messages": self.latency * hops,
                "bytes": self.per_byte * volume}  # fmt: skip

    def seconds(self, ranks: int, rows: float) -> float:
        return sum(self.parts(ranks, rows).values())

    def on(self, network: Network) -> Model:
        return replace(self, latency=network.latency, per_byte=1 / network.bandwidth)

    def speedup(self, ranks: int, rows: float) -> float:
        return self.seconds(1, rows) / self.seconds(ranks, rows)

    def efficiency(self, ranks: int, rows: float, weak: bool = False) -> float:
        """Of strong scaling (`rows` in all) or of weak (`rows` on each rank)."""
        if weak:
            return self.seconds(1, rows) / self.seconds(ranks, rows * ranks)
        return self.speedup(ranks, rows) / ranks

    def limit(self, rows: float, weak: bool = False) -> tuple[int, str]:
        """The most ranks (a power of two) that are used to at least half, and what takes the most beside the work there."""
        ranks = 1
        while ranks < MOST and self.efficiency(2 * ranks, rows, weak) >= PAYS:
            ranks *= 2
        there = self.parts(2 * ranks, rows * 2 * ranks if weak else rows)
        there.pop("work")
        return ranks, max(there, key=lambda name: there[name])


def error(model: Model, jobs: Sequence[Job]) -> float:
    """The largest relative error of the model on measured jobs."""
    return max(abs(model.seconds(job.ranks, job.rows) * job.turns / job.seconds - 1) for job in jobs)
