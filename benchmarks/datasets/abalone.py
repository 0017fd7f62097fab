"""abalone: 4,177 rows × 10, regression, x and y scaled to [0, 1], seeded 80/20 split. C=8, γ=1, ε=0.05."""

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    task = "regression"
    kernel = {"C": 8.0, "gamma": 1.0, "epsilon": 0.05}

    def real(self, npz):
        return _make.unit_range(_make.split(npz["X"], npz["y"]), target=True)

    def generate(self, rng):
        return _make.surface(rng, 3_341, 836, 10)
