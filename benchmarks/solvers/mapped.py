"""Approximate kernel machines of DC-SVM's Table 2: features in place of the kernel, then LIBLINEAR's dual coordinate
descent.

`llsvm`: Nyström features with k-means centres as landmarks (Zhang, Tsang & Kwok 2008; Wang et al. 2011). `fourier`:
random Fourier features (Rahimi & Recht 2007). `fastfood`: the same by Hadamard transforms (Le, Sarlós & Smola 2013).
`ltpu`: Gaussian units at k-means centres (Moody & Darken 1989). `options["features"]` of them, 3,000 unless said, as in
the paper.

LIBLINEAR runs at its own default (-s 3, eps 0.1), without intercept. The rows' features are kept in float64, as it
wants them: sets for which that takes more than MEMORY_GB are skipped.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from benchmarks.base import Data, KernelModel, Model, Predictions, Problem, Solver
from benchmarks.solvers import _blocks

FEATURES = 3000
MEMORY_GB = 6.0  # of features and LIBLINEAR's copy of them, 24 bytes per value
LIBLINEAR_TOL = 0.1
SAMPLE = 20_000  # rows from which k-means finds its centres


class _Mapped(Solver):
    requires = ("sklearn",)
    package = "scikit-learn"
    tasks = ("svc",)
    stores_kernel = False

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        need = 24e-9 * data.X_train.shape[0] * problem.options.get("features", FEATURES)
        if reason is None and problem.kernel != "rbf":
            return "is made for the Gaussian kernel"
        return reason or (f"needs {need:.0f} GB of features" if need > MEMORY_GB else None)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        from sklearn.svm import LinearSVC

        self.X, self.y, self.problem = X, y, problem
        self.features = min(int(problem.options.get("features", FEATURES)), X.shape[0])
        self.linear = LinearSVC(C=problem.C, loss="hinge", dual=True, fit_intercept=False, tol=LIBLINEAR_TOL, random_state=0)

    def fit(self) -> None:
        self.learn(self.X)
        Z = np.empty((self.X.shape[0], self.width))
        for i in range(0, self.X.shape[0], _blocks.ROWS):
            Z[i : i + _blocks.ROWS] = self.map(self.X[i : i + _blocks.ROWS])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's ConvergenceWarning: `iterations` says it
            self.linear.fit(Z, self.y)
        self.w = self.linear.coef_.ravel()

    width: int

    def learn(self, X: Any) -> None:
        raise NotImplementedError

    def map(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        blocks = range(0, X.shape[0], _blocks.ROWS)
        values = np.concatenate([self.map(X[i : i + _blocks.ROWS]) @ self.w for i in blocks])
        return np.where(values > 0, 1, -1)

    def model(self, X_test: Any) -> Model:
        return Predictions(self.predict(X_test))

    def extra(self) -> dict[str, float]:
        return {"iterations": float(np.max(self.linear.n_iter_)), "features": float(self.width)}


class Fourier(_Mapped):
    name = "fourier"

    def learn(self, X: Any) -> None:
        from sklearn.kernel_approximation import RBFSampler

        self.width = self.features
        self.sampler = RBFSampler(gamma=self.problem.gamma, n_components=self.features, random_state=0).fit(X[:1])

    def map(self, X: Any) -> np.ndarray:
        return np.asarray(self.sampler.transform(X))


class Fastfood(_Mapped):
    """V = S·H·G·Π·H·B / (σ √d) per block of d = 2^p features: a Gaussian matrix in O(d log d)."""

    name = "fastfood"

    def learn(self, X: Any) -> None:
        rng = np.random.default_rng(0)
        self.size = 1 << max(1, int(np.ceil(np.log2(X.shape[1]))))
        blocks = -(-self.features // self.size)
        self.width = blocks * self.size
        self.signs = rng.choice([-1.0, 1.0], (blocks, self.size))
        self.order = np.stack([rng.permutation(self.size) for _ in range(blocks)])
        self.gauss = rng.standard_normal((blocks, self.size))
        lengths = np.sqrt(rng.chisquare(self.size, (blocks, self.size)))  # of rows of a Gaussian matrix
        self.scale = lengths / np.linalg.norm(self.gauss, axis=1, keepdims=True)
        self.shift = rng.uniform(0, 2 * np.pi, self.width)

    def map(self, X: Any) -> np.ndarray:
        rows = np.zeros((X.shape[0], self.size))
        rows[:, : X.shape[1]] = X.toarray() if sp.issparse(X) else X
        out = np.empty((X.shape[0], self.width))
        factor = np.sqrt(2 * self.problem.gamma / self.size)  # 1 / (σ √d) with γ = 1 / 2σ²
        for b, (signs, order, gauss, scale) in enumerate(zip(self.signs, self.order, self.gauss, self.scale)):
            v = hadamard(rows * signs)[:, order] * gauss
            out[:, b * self.size : (b + 1) * self.size] = hadamard(v) * (factor * scale)
        return np.cos(out + self.shift) * np.sqrt(2 / self.width)


def hadamard(X: np.ndarray) -> np.ndarray:
    """X·H for rows of 2^p values, H not normalised: p rounds of sums and differences."""
    n, size = X.shape
    width = 1
    while width < size:
        pairs = X.reshape(n, size // (2 * width), 2, width)
        X = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2).reshape(n, size)
        width *= 2
    return X


class _Centred(_Mapped):
    """Centres by k-means on a sample of the rows; the model is a sum of kernels there."""

    def learn(self, X: Any) -> None:
        from sklearn.cluster import MiniBatchKMeans

        self.width = self.features
        sample = X[np.sort(np.random.default_rng(0).permutation(X.shape[0])[:SAMPLE])]
        means = MiniBatchKMeans(self.features, n_init=1, max_iter=10, random_state=0, init="random").fit(sample)
        self.centres = np.ascontiguousarray(means.cluster_centers_, dtype=X.dtype)

    def model(self, X_test: Any) -> Model:
        return KernelModel(self.coef(), 0.0, vectors=self.centres)

    def coef(self) -> np.ndarray:
        return np.asarray(self.w)


class Ltpu(_Centred):
    name = "ltpu"

    def map(self, X: Any) -> np.ndarray:
        return _blocks.block(self.problem, X, self.centres)


class Llsvm(_Centred):
    """Features K(x, landmarks)·M with M Mᵀ = K(landmarks, landmarks)⁻¹, so that their products are Nyström's kernel."""

    name = "llsvm"

    def learn(self, X: Any) -> None:
        super().learn(X)
        values, vectors = scipy.linalg.eigh(_blocks.block(self.problem, self.centres, self.centres).astype(np.float64))
        good = values > 1e-8 * values[-1]
        self.root = vectors[:, good] / np.sqrt(values[good])
        self.width = int(good.sum())

    def map(self, X: Any) -> np.ndarray:
        return np.asarray(_blocks.block(self.problem, X, self.centres) @ self.root)

    def coef(self) -> np.ndarray:
        return np.asarray(self.root @ self.w)
