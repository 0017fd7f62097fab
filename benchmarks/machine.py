"""What a result was measured on: cores, instruction set, versions. No host names, no paths."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import pathlib
import platform
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

PACKAGES = (
    "maxmargin", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "libsvm-official", "liblinear-official",
)  # fmt: skip


def hardware() -> str:
    """Such as "2-core x86-64 (AVX2)"."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    machine = platform.machine().replace("x86_64", "x86-64").replace("AMD64", "x86-64")
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return f"{cores}-core {machine}"
    flags = set(next((line for line in text.splitlines() if line.startswith("flags")), "").split())
    levels = (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"))
    level = next((name for flag, name in levels if flag in flags), "")
    return f"{cores}-core {machine}" + (f" ({level})" if level else "")


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    if "maxmargin" in found:
        found["maxmargin"] += f" ({importlib.import_module('maxmargin._core').ISA})"
    return found


def read_bandwidth(threads: int, megabytes: int = 512, repeat: int = 7) -> float:
    """GB/s at which `threads` threads together read memory: dot products of parts of an array far beyond the caches."""
    parts = np.array_split(np.ones(megabytes * 2**20 // 8), threads)  # np.ones also touches every page
    best = float("inf")
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        for _ in range(repeat):
            start = time.perf_counter()
            list(pool.map(lambda part: part @ part, parts))
            best = min(best, time.perf_counter() - start)
    return sum(part.nbytes for part in parts) / best / 1e9
