"""The cluster that the active joblib backend stands for, if it is one: Dask's (parallel_config("dask")) or Ray's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import joblib

from maxmargin.carriers.protocol import Carrier


@contextmanager
def active_carrier() -> Iterator[Carrier | None]:
    """Within: the carrier, or None where subproblems go by threads and joblib's own processes.

    A fit that itself runs on a Dask worker (a grid search there) leaves the worker's threads to its subproblems.
    """
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    kind = f"{type(backend).__module__}.{type(backend).__name__}"
    if kind == "joblib._dask.DaskDistributedBackend":
        from maxmargin.carriers.on_dask import DaskCarrier

        with backend.retrieval_context():
            yield DaskCarrier(backend.client)
    elif kind == "ray.util.joblib.ray_backend.RayBackend":
        from maxmargin.carriers.on_ray import RayCarrier

        yield RayCarrier(backend.ray_remote_args)
    else:
        yield None
