"""The cost model of fits over ranks: it finds again what made-up costs were made of, and says where they end."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace

import numpy as np
import pytest
from benchmarks.costs import CLUSTER, MOST, Job, Model, error

TRUE = Model(work=2e-7, fixed=3e-5, latency=4e-6, per_byte=2e-10, messages=6.0, reduced=4e4, gathered=1e6, cast=9e4)


def jobs(noise: float = 0.0) -> list[Job]:
    rng = np.random.default_rng(0)
    out = []
    for ranks, rows in itertools.product((1, 2, 3, 4), (20_000, 100_000)):
        turns = 50.0 + rows / 5000
        seconds = turns * TRUE.seconds(ranks, rows) * (1 + noise * rng.normal())
        sent = turns if ranks > 1 else 0.0
        out.append(Job(ranks, rows, turns, seconds, 6.0 * sent, 4e4 * sent, 1e6 / ranks * sent, 9e4 * sent))
    return out


def test_costs_are_found_again() -> None:
    found = Model.fitted(jobs())
    assert asdict(found) == pytest.approx(asdict(TRUE), rel=1e-6)
    assert error(found, jobs()) < 1e-9


def test_noise_of_some_percent_stays_of_that_size() -> None:
    found = Model.fitted(jobs(0.02))
    assert error(found, jobs(0.02)) < 0.08
    for ranks in (8, 64, 1024):
        assert found.seconds(ranks, 1e7) == pytest.approx(TRUE.seconds(ranks, 1e7), rel=0.1)


def test_no_cost_is_negative() -> None:
    lucky = [replace(job, seconds=job.seconds * (0.7 if job.ranks > 1 else 1.0)) for job in jobs()]  # caches that add up
    assert min(asdict(Model.fitted(lucky)).values()) >= 0


def test_one_rank_alone_says_nothing_about_messages() -> None:
    with pytest.raises(ValueError, match="two ranks or more"):
        Model.fitted([job for job in jobs() if job.ranks == 1])


def test_more_rows_keep_more_ranks_busy_and_weak_scaling_ends_where_bytes_do() -> None:
    limits = [TRUE.limit(rows)[0] for rows in (1e5, 1e6, 1e7, 1e8)]
    assert limits == sorted(limits) and limits[0] < limits[-1]
    assert TRUE.limit(1e5)[1] == "bytes"  # a megabyte per turn at 5 GB/s is 0.2 ms, 24 messages at 1024 ranks are 0.24
    assert replace(TRUE, gathered=0.0, reduced=0.0, cast=0.0).limit(1e5)[1] in ("messages", "what is not shared")
    assert TRUE.limit(1e6, weak=True)[0] == MOST
    assert TRUE.efficiency(MOST, 1e6, weak=True) <= TRUE.efficiency(2, 1e6, weak=True) <= 1
    assert TRUE.speedup(2, 1e6) <= 2


def test_another_network_changes_what_is_sent_only() -> None:
    there = TRUE.on(CLUSTER)
    assert there.parts(8, 1e6)["work"] == TRUE.parts(8, 1e6)["work"]
    assert there.parts(8, 1e6)["messages"] == pytest.approx(6 * 3 * CLUSTER.latency)
