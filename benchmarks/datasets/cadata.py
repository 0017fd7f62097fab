"""cadata (California housing): 20,640 rows × 8, regression, x and y scaled to [0, 1], 80/20. C=8, γ=1, ε=0.05."""

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    task = "regression"
    kernel = {"C": 8.0, "gamma": 1.0, "epsilon": 0.05}

    def real(self, npz):
        return _make.unit_range(_make.split(npz["X"], npz["y"]), target=True)

    def generate(self, rng):
        return _make.surface(rng, 16_512, 4_128, 8)
