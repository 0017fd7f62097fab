"""Generated sets with the shapes of well-known ones of several classes; the generator is seeded, there are no files.

`letters`: 15,000 / 5,000 rows × 16, 26 classes. `satellite`: 4,435 / 2,000 × 36, 6 classes. `zipcodes`: 7,291 / 2,007 × 256,
10 classes. `text100`: CSR, 2,000 / 1,000 × 20,000, 100 classes. `shuttle`: 43,500 / 14,500 × 9, two classes that are easy to
tell apart.
"""

from benchmarks import base
from benchmarks.datasets import _make


class Letters(base.Dataset):
    name = "letters"
    kernel = {"C": 10.0, "gamma": 1.0}

    def generate(self, rng):
        return _make.classes(rng, 15_000, 5_000, 16, 26, spread=0.17)


class Satellite(base.Dataset):
    name = "satellite"
    kernel = {"C": 10.0, "gamma": 0.5}

    def generate(self, rng):
        return _make.classes(rng, 4_435, 2_000, 36, 6, spread=0.3)


class ZipCodes(base.Dataset):
    name = "zipcodes"
    kernel = {"C": 10.0, "gamma": 0.02}

    def generate(self, rng):
        return _make.classes(rng, 7_291, 2_007, 256, 10, per_class=8, spread=0.45)


class Text100(base.Dataset):
    name = "text100"
    kernel = {"C": 1.0, "gamma": 1.0}

    def generate(self, rng):
        return _make.topics(rng, 2_000, 1_000, 20_000, 100)


class Shuttle(base.Dataset):
    name = "shuttle"
    kernel = {"C": 10.0, "gamma": 4.0}

    def generate(self, rng):
        data = _make.classes(rng, 43_500, 14_500, 9, 7, per_class=2, spread=0.05)
        data.y_train, data.y_test = (_make.signs(y, range(5)) for y in (data.y_train, data.y_test))
        return data
