"""The nearest of several centres in feature space, as the core finds it, against NumPy: around passes, blocks and slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

FORMS = [np.asarray, sp.csr_matrix]
REALS = [np.float32, np.float64]
# Around passes of 384 points; some of no points at all.
SIZES = [[0, 0], [1], [2, 2], [0, 1, 0, 0, 2, 0], [256, 128], [256, 128, 1], [1, 128, 256], [512, 256, 1, 0], [4] * 97,
         [1] * 769]  # fmt: skip
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def points(x: Any, dtype: Any, kernel: str = "linear", gamma: float = 1.0) -> Any:
    make = _core.Points32 if dtype == np.float32 else _core.Points64
    return make(as_matrix(x), kernel, gamma, 0.0, 1, np.arange(x.shape[0]), 1)


def distances(gram: Floats, end: Ints, offset: Floats) -> Floats:
    """Of every sample from every centre, less K(x, x): infinite from those of no points."""
    out = np.full((len(gram), len(end)), np.inf)
    for c, (first, last) in enumerate(zip(np.r_[0, end[:-1]], end)):
        if last > first:
            out[:, c] = offset[c] - 2 / (last - first) * gram[:, first:last].sum(axis=1)
    return out


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 31, 33, 127, 128, 129, 700])
def test_the_nearest_of_centres_and_the_first_of_those_as_near(count: int, dtype: Any, form: Any) -> None:
    """By products of small whole numbers and sizes that are powers of two, so that all is exact and ties are ties."""
    rng = np.random.default_rng(count)
    x, z = (form(rng.integers(-2, 3, (n, 3)).astype(dtype)) for n in (max(count, 1) + 5, 900))
    a, b = points(x, dtype), points(z, dtype)
    for sizes in SIZES:
        rows, chosen = rng.integers(0, x.shape[0], count), rng.integers(0, 900, sum(sizes))
        end, offset = np.cumsum(sizes), rng.integers(-3, 4, len(sizes)) / 2
        wanted = distances(sp.csr_matrix(x[rows] @ z[chosen].T).toarray().astype(float), end, offset)
        for threads in (1, 2, 3):
            found = _core.nearest_cluster(a, rows, b, chosen, end, offset, threads)
            np.testing.assert_array_equal(found, np.argmin(wanted, axis=1))
    assert count < 100 or (wanted == wanted.min(axis=1)[:, None]).sum() > count  # some are as near as others


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("count", [1023, 4097])
def test_every_sample_of_every_slice_has_its_centre(count: int, dtype: Any, form: Any) -> None:
    """Of a kernel of distances, to rounding; by any number of threads the same, and for a sample alone."""
    rng = np.random.default_rng(count)
    x = rng.normal(size=(count, 4)).astype(dtype)
    held = points(form(x), dtype, "rbf", 0.5)
    rows, chosen = rng.permutation(count), rng.integers(0, count, 400)
    chosen = chosen[np.argsort(x[chosen, 0])]
    end, offset = np.array([30, 100, 350, 385, 400]), rng.uniform(0, 0.05, 5)
    gram = np.exp(-0.5 * ((x[rows, None].astype(float) - x[chosen].astype(float)) ** 2).sum(axis=2))
    wanted = distances(gram, end, offset)
    found = _core.nearest_cluster(held, rows, held, chosen, end, offset, 1)
    assert (wanted[np.arange(count), found] <= wanted.min(axis=1) + (1e-5 if dtype == np.float32 else 1e-12)).all()
    assert len(set(found.tolist())) == 5
    for threads in (2, 3):
        np.testing.assert_array_equal(_core.nearest_cluster(held, rows, held, chosen, end, offset, threads), found)
    for i in (0, count // 2, count - 1):
        assert _core.nearest_cluster(held, rows[[i]], held, chosen, end, offset, 1)[0] == found[i]
