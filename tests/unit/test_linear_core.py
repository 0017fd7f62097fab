"""Passes over samples: dense and CSR, both precisions, one and two threads, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.data.matrix import as_matrix


def forms(x):
    yield "dense64", x
    yield "dense32", x.astype(np.float32)
    yield "csr64", sp.csr_matrix(x)
    yield "csr32", sp.csr_matrix(x.astype(np.float32))
    wide = sp.csr_matrix(x)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "csr64-int64", wide


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(7, 1), (300, 37), (3000, 20), (150, 210)])
def test_passes_match_numpy(shape, threads):
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=shape) * (rng.random(shape) < 0.3), 3).astype(np.float32).astype(np.float64)
    n, d = shape
    w, sign = rng.normal(size=d), rng.choice([-1.0, 1.0], n)
    rows = np.sort(rng.choice(n, n // 2 + 1, replace=False))
    coef = rng.uniform(0.1, 1, len(rows))
    padded = np.hstack([x, np.full((n, 1), 2.0)])
    for name, form in forms(x):
        matrix = as_matrix(form)
        out = np.empty(n)
        _core.linear_outputs(matrix, w, 0.5, sign, 0, n, out, threads)
        np.testing.assert_allclose(out, sign * (x @ w + 0.5), atol=1e-9, err_msg=name)
        total = np.zeros(d)
        _core.linear_add_rows(matrix, rows, coef, total, threads)
        np.testing.assert_allclose(total, coef @ x[rows], atol=1e-9, err_msg=name)
        norms = np.empty(n)
        _core.linear_norms(matrix, norms, threads)
        np.testing.assert_allclose(norms, (x * x).sum(1), atol=1e-9, err_msg=name)
        expected = (padded[rows].T * coef) @ padded[rows]
        for precise, accuracy in ((True, 1e-9), (False, 1e-4)):
            gram = np.zeros((d + 1, d + 1))
            _core.linear_gram(matrix, rows, coef, 2.0, precise, gram, threads)
            np.testing.assert_allclose(np.triu(gram), np.triu(expected), atol=accuracy * (1 + abs(expected).max()))
        single = np.zeros((d + 1, d + 1), np.float32)
        _core.linear_gram(matrix, rows, coef, 2.0, False, single, threads)
        np.testing.assert_allclose(np.triu(single), np.triu(expected), atol=1e-4 * (1 + abs(expected).max()))
        p, product = rng.normal(size=d + 1), np.empty(d + 1)
        _core.linear_product(matrix, rows, coef, 2.0, p, product, threads)
        np.testing.assert_allclose(product, expected @ p, atol=1e-8, err_msg=name)


def test_lazy_duals_stay_a_cut():
    """Rows that move little keep their alpha; the offset is the sum of what is stored."""
    rng = np.random.default_rng(1)
    m, weight, sign = rng.normal(size=200), rng.uniform(0, 2, 200), rng.choice([-1.0, 1.0], 200)
    alpha = np.zeros(200)
    _core.linear_duals("hinge", 0.1, 0.0, m, m, 0.0, weight, sign, np.empty(0), alpha, 1)
    before = alpha.copy()
    rows, delta, *_, offset, _, mass = _core.linear_duals(
        "hinge", 0.1, 0.05, m + 0.02, m, 0.0, weight, sign, np.empty(0), alpha, 2
    )
    np.testing.assert_allclose(alpha[rows] - before[rows], sign[rows] * delta)
    untouched = np.setdiff1d(np.arange(200), rows)
    assert len(untouched) > 0 and (alpha[untouched] == before[untouched]).all()
    assert offset == pytest.approx(alpha.sum()) and mass == pytest.approx(alpha.sum())
    assert ((alpha >= 0) & (alpha <= weight)).all()


def test_shapes_are_checked():
    matrix = as_matrix(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="shapes"):
        _core.linear_outputs(matrix, np.zeros(3), 0.0, np.ones(3), 0, 3, np.empty(3), 1)
    with pytest.raises(ValueError, match="hinge"):
        _core.linear_advance("logistic", np.zeros(3), np.zeros(3), 0.0, np.ones(3), 1)
