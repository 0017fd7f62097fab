"""Partitions whose workers are this process, at once: for tests of what is asked of them and what is made of the answers."""

from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

from maxmargin.dask.partitions import Partitions


class Ref(SimpleNamespace):
    """A value, as a reference to it."""

    __hash__ = object.__hash__


class Here:
    """A carrier that calls; it remembers what was put, called and dropped. `lost(calls so far)` says what gets lost."""

    def __init__(self, lost=lambda call: None):
        self.puts, self.calls, self.dropped, self.lost = [], [], [], lost

    def put(self, value, at=None):
        self.puts.append(value)
        return Ref(value=value)

    def call(self, function, *args, at=None):
        args = [arg.value if isinstance(arg, SimpleNamespace) else arg for arg in args]
        self.calls.append((function, args))
        lost = self.lost(len(self.calls))
        return Ref(value=function(*args) if lost is None else lost)

    def wait(self, refs, seconds, every=False):
        assert every
        return refs

    def values(self, refs):
        return [ref.value for ref in refs]

    def get(self, ref):
        return ref.value

    def drop(self, refs):
        self.dropped.append(list(refs))


def partitions(X, cuts, y=None, weight=None, **options):
    """X by its partitions, which begin at `cuts`."""
    made = Partitions.__new__(Partitions)
    made.carrier = Here(**options)
    made.start = np.array([0, *cuts, X.shape[0]])
    made.blocks = [Ref(value=X[a:b], key=f"block-{k}") for k, (a, b) in enumerate(zip(made.start, made.start[1:]))]
    made.client = SimpleNamespace(nthreads=lambda: {"one": 2, "two": 1})
    made.shape, made.dtype, made.sparse = X.shape, X.dtype, sp.issparse(X)
    made.nbytes, made.names, made.y, made.weight = 8 * X.shape[0] * X.shape[1], None, y, weight
    return made
