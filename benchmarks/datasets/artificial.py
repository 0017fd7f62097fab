"""artificial: two Gaussians with different diagonal covariances of multiple scales, 50,000 / 50,000 rows × 500, dense,
generated.

The OCAS paper describes its set no further than that. Here: a standard deviation of each feature and class is 10^u, u
uniform in [−1, 1]; the two means differ by DISTANCE standard deviations in all, spread evenly, which gives about the
area under the ROC curve that it prints.
"""

import numpy as np

from benchmarks import base

DISTANCE = 1.5


class Dataset(base.Dataset):
    def generate(self, rng):
        n, d = 100_000, 500
        spread = 10.0 ** rng.uniform(-1, 1, (2, d))
        centre = 0.5 * DISTANCE / np.sqrt(d) * np.sqrt((spread**2).mean(axis=0)) * rng.choice([-1.0, 1.0], d)
        y = np.where(rng.random(n) < 0.5, 1, -1).astype(np.int32)
        X = rng.standard_normal((n, d), dtype=np.float32)
        X *= np.where(y[:, None] > 0, spread[0], spread[1]).astype(np.float32)
        X += (y[:, None] * centre).astype(np.float32)
        return base.Data(X[: n // 2], y[: n // 2], X[n // 2 :], y[n // 2 :])
