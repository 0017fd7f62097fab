"""A file on many machines: each rank reads its own part."""

from __future__ import annotations

from typing import Any

from maxmargin import data
from maxmargin.data import Description
from maxmargin.runtime import Comm, as_comm, or_all_fail, together


def load(path: Any, *, comm: Any = None, **options: Any) -> tuple[Any, ...]:
    """This rank's part of a file: (X, y). All ranks must call it, and the parts one after the other are the file.

    LIBSVM text and CSV are cut by bytes, other formats by rows. LIBSVM text whose `n_features` or `zero_based` is not given
    is gone through once more before, each rank through its part.

    Parameters
    ----------
    path : file name
        Of one file that all ranks see. Not compressed text.
    comm : communicator of mpi4py, optional
        None is MPI.COMM_WORLD.
    **options
        The keywords of `maxmargin.data.load`, but for `part`.
    """
    with or_all_fail(as_comm(comm)) as ranks:
        part = (ranks.rank, ranks.size)
        if data.format_of(path, options.get("format")) == "libsvm":
            options = options | _columns(path, ranks, part, options)
        with together(ranks):
            return data.load(path, part=part, **options)


def _columns(path: Any, comm: Comm, part: tuple[int, int], options: dict[str, Any]) -> dict[str, Any]:
    """n_features and zero_based of the whole file."""
    n_features, zero_based = options.get("n_features"), options.get("zero_based", "auto")
    if n_features is not None and zero_based != "auto":
        return {}
    told = {name: options[name] for name in ("format", "n_jobs") if name in options}
    with together(comm):
        mine = data.describe(path, part=part, **told)
    found = sum(comm.share(mine), Description(0, 0, None, None))
    first = found.zero_based if zero_based == "auto" else bool(zero_based)
    columns = found.n_features + (first and not found.zero_based)
    return {"zero_based": first, "n_features": columns if n_features is None else n_features}
