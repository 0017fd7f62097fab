"""Files that are larger than memory: `train` reads them from a binary cache on disk, for the engines that can.

The linear engine makes passes over rows that stay in the file; the budget engine visits them chunk by chunk. Both need
memory for labels and the model, and disk for the cache, about as much as the text. The others need all rows in memory: a
file that cannot fit is an error before any work, and one that hardly fits a warning.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.cli import samples
from maxmargin.cli.console import Console
from maxmargin.data.libsvm import cache_libsvm

SHARE = 0.5  # of the memory that is available: samples in memory take about the bytes of their text, and fits copies
PACKED = 4.0  # bytes of text in a byte of a compressed file
ENDINGS = (".gz", ".bz2", ".xz", ".zst")
MB = 1 << 20
CACHE = 200.0  # megabytes: cache_size of the machines, where -m says nothing


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files larger than memory (LIBSVM text; engines linear and budget)")
    group.add_argument("--memory", type=float, metavar="MB", help="for samples; a larger DATA is read from a cache on disk "
                       "(half of what is available), or refused by engines that need it all (all that is available)")
    group.add_argument("--cache", metavar="FOLDER", help="where the cache DATA.cache goes (beside DATA)")


def on_disk(args: argparse.Namespace) -> str | None:
    """Why the samples stay on disk; None if they are read into memory."""
    by_passes = args.engine in ("linear", "budget") or (args.engine == "auto" and args.kernel == "linear")
    able = by_passes and args.machine in ("svc", "svr") and args.data != "-"
    if not able or not Path(args.data).is_file() or not samples.text(args, args.data):
        return None
    size = _size(args.data)
    room = available() * SHARE if args.memory is None else args.memory * MB
    if size <= room:
        return None
    return f"about {size / MB:,.0f} MB of text, above {room / MB:,.0f} MB: read from a cache on disk"


def check(args: argparse.Namespace, console: Console) -> None:
    """An error if samples that an engine needs in memory cannot fit there, a warning if they hardly do."""
    if args.data == "-" or not Path(args.data).is_file():  # its length is not known; a missing file is told elsewhere
        return
    kernel_rows = 0.0 if args.engine in ("linear", "budget") else MB * (args.cache_size or CACHE)
    size, room = _size(args.data), available() if args.memory is None else args.memory * MB
    need = size + (kernel_rows if args.memory is None else 0.0)
    if need <= (room * SHARE if args.memory is None else room):
        return
    kept = f" and {kernel_rows / MB:,.0f} MB for kernel rows (-m)" if need > size else ""
    whose = "that are available" if args.memory is None else "of --memory"
    facts = f"{args.data} needs about {size / MB:,.0f} MB for its samples{kept}, of {room / MB:,.0f} MB {whose}"
    way = "--engine linear (-t 0) and --engine budget (svc) read LIBSVM text from a cache on disk"
    way += "" if samples.text(args, args.data) else ", which maxmargin convert makes of this file"
    if need > room:
        more = "" if args.memory is not None else f"; --memory {need / MB:.0f} tries all the same"
        raise ValueError(f"{facts}, and this engine must have them all in memory: {way}{more}")
    console.note(f"warning: {facts}; if that is too little, {way}")


def _size(path: str) -> float:
    """About the bytes that the samples of a file take in memory: those of its text."""
    return Path(path).stat().st_size * (PACKED if path.endswith(ENDINGS) else 1.0)


def load(args: argparse.Namespace, path: str) -> samples.Samples:
    """The samples of a file, mapped."""
    options = samples.reading(args)
    X, y = cache_libsvm(
        path, args.cache, n_features=options["n_features"], zero_based=options["zero_based"], dtype=np.float64
    )
    if not X.shape[0]:
        raise ValueError(f"{path} has no samples")
    return samples.Samples(path, X, samples.whole(y))


def fit(machine: Any, found: samples.Samples) -> None:
    """To samples that are mapped: all passes of a linear machine, or chunk by chunk."""
    if not hasattr(machine, "fit_stream"):
        machine.fit(found.X, found.y)
        return
    machine.set_params(stream_size=found.X.shape[0])  # nobody need count them

    def chunks() -> Iterator[tuple[Any, Any]]:
        for i in range(0, found.X.shape[0], samples.ROWS):
            yield found.X[i : i + samples.ROWS], found.y[i : i + samples.ROWS]

    machine.fit_stream(chunks, np.unique(found.y))


def available() -> float:
    """Bytes of memory that a new process may take: of the machine, or of the container that it is in."""
    limits = [float("inf")]
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits.append(1024.0 * float(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    with suppress(OSError, ValueError):
        limits.append(float(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)
