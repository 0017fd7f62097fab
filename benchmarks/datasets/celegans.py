"""C. elegans acceptor splice sites: 100,000 windows of 398 letters, one-hot → 1,592 binary CSR features.

3.3 % positive, neighbouring windows overlap. Seeded 80/20 split → 80,000 / 20,000. A linear problem (OCAS's paper).
"""

import numpy as np
import scipy.sparse as sp

from benchmarks import base
from benchmarks.datasets import _make


def one_hot(codes):
    """Letter code c at position p becomes feature 4p + c."""
    n, length = codes.shape
    indices = (4 * np.arange(length, dtype=np.int32) + codes).ravel().astype(np.int32)
    indptr = length * np.arange(n + 1, dtype=np.int32)
    return sp.csr_matrix((np.ones(n * length, dtype=np.float32), indices, indptr), shape=(n, 4 * length))


class Dataset(base.Dataset):
    file = "celegans_acc_100000"

    def real(self, npz):
        return _make.split(one_hot(npz["X"]), _make.signs(npz["y"]))

    def generate(self, rng):
        codes = rng.choice(4, size=(100_000, 398), p=[0.32, 0.18, 0.18, 0.32]).astype(np.uint8)
        y = np.where(rng.random(len(codes)) < 0.033, 1, -1).astype(np.int32)
        motif = rng.integers(4, size=20)
        kept = (y[:, None] > 0) & (rng.random((len(codes), 20)) < 0.7)
        codes[:, 190:210] = np.where(kept, motif, codes[:, 190:210])
        return _make.split(one_hot(codes), y)
