"""Shared by the data sets: splits and scaling, and seeded generators for those who lack the files."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import Data


def split(X: Any, y: np.ndarray, share: float = 0.8) -> Data:
    """A seeded 80/20 shuffle, for sets that come without a split."""
    n = X.shape[0]
    order = np.random.default_rng(0).permutation(n)
    train, test = order[: int(share * n)], order[int(share * n) :]
    return Data(X[train], y[train], X[test], y[test])


def shuffle(data: Data) -> Data:
    """Training rows in a seeded random order, so that the first k are a fair sample."""
    order = np.random.default_rng(0).permutation(data.X_train.shape[0])
    return Data(data.X_train[order], data.y_train[order], data.X_test, data.y_test, data.source)


def unit_range(data: Data, target: bool = False) -> Data:
    """Features (and the target) scaled to [0, 1] by the training rows' minimum and maximum. CSR: by the maximum only,
    which keeps zeros (all values are ≥ 0)."""
    if data.sparse:
        top = np.maximum(np.abs(data.X_train).max(axis=0).toarray().ravel(), 1e-30)
        scale = sp.diags_array(1.0 / top)
        X_train, X_test = (sp.csr_matrix(X @ scale, dtype=np.float32) for X in (data.X_train, data.X_test))
    else:
        low, high = data.X_train.min(axis=0), data.X_train.max(axis=0)
        width = np.where(high > low, high - low, 1.0)
        X_train, X_test = (((X - low) / width).astype(np.float32) for X in (data.X_train, data.X_test))
    y_train, y_test = data.y_train, data.y_test
    if target:
        low_y, width_y = y_train.min(), np.ptp(y_train)
        y_train, y_test = (y_train - low_y) / width_y, (y_test - low_y) / width_y
    return Data(X_train, y_train, X_test, y_test, data.source)


def signs(y: np.ndarray, positive: Any = 1) -> np.ndarray:
    """Labels as ±1: +1 where y equals `positive`, or is one of them."""
    return np.where(np.isin(y, positive), 1, -1).astype(np.int32)


def clouds(rng: np.random.Generator, n: int, n_test: int, d: int, positive: float = 0.5, centres: int = 40) -> Data:
    """Two classes of overlapping Gaussian clouds in [0, 1]^d, some dimensions pure noise."""
    means = rng.random((centres, d)) * (rng.random(d) < 0.7) + 0.3 * rng.random(d)
    label = np.where(np.arange(centres) < max(1, round(positive * centres)), 1, -1)
    cloud = rng.integers(centres, size=n + n_test)
    X = (means[cloud] + 0.12 * rng.standard_normal((n + n_test, d))).clip(0, 1).astype(np.float32)
    y = label[cloud].astype(np.int32)
    y[rng.random(len(y)) < 0.02] *= -1
    return Data(X[:n], y[:n], X[n:], y[n:])


def classes(
    rng: np.random.Generator, n: int, n_test: int, d: int, count: int, per_class: int = 4, spread: float = 0.12
) -> Data:
    """`count` classes, equally likely, each of a few overlapping Gaussian clouds in [0, 1]^d; labels 0 … count − 1."""
    centres = 0.5 + 0.22 * rng.standard_normal((count, 1, d)) + 0.12 * rng.standard_normal((count, per_class, d))
    label, cloud = rng.integers(count, size=n + n_test), rng.integers(per_class, size=n + n_test)
    X = (centres[label, cloud] + spread * rng.standard_normal((n + n_test, d))).clip(0, 1).astype(np.float32)
    return Data(X[:n], label[:n].astype(np.int32), X[n:], label[n:].astype(np.int32))


def topics(rng: np.random.Generator, n: int, n_test: int, d: int, count: int, words: int = 60, own: float = 0.3) -> Data:
    """Text-like CSR rows of unit length: a share `own` of a row's words comes from the 60 words of its class, the others
    from a Zipf-like vocabulary; labels 0 … count − 1."""
    total, popularity = n + n_test, 1.0 / (1.0 + np.arange(d)) ** 0.9
    label = rng.integers(count, size=total)
    vocabulary = rng.choice(d, (count, 60))
    word = rng.choice(d, (total, words), p=popularity / popularity.sum())
    topic = vocabulary[label[:, None], rng.integers(60, size=(total, words))]
    word = np.where(rng.random((total, words)) < own, topic, word)
    rarity = np.log(1.0 + d * popularity.sum() / (1.0 + popularity * d))  # as inverse document frequencies have it
    counts = sp.csr_matrix((np.ones(word.size), (np.repeat(np.arange(total), words), word.ravel())), shape=(total, d))
    X = counts @ sp.diags_array(rarity)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags_array(1.0 / norms) @ X, dtype=np.float32)
    return Data(X[:n], label[:n].astype(np.int32), X[n:], label[n:].astype(np.int32))


def bags(
    rng: np.random.Generator, n: int, n_test: int, d: int, per_row: float, positive: float = 0.5, binary: bool = True
) -> Data:
    """Sparse rows: about `per_row` features each from a skewed (Zipf-like) vocabulary, whose weights make the label."""
    popularity = 1.0 / (1.0 + np.arange(d)) ** 0.8
    chance = np.minimum(per_row * popularity / popularity.sum(), 0.9)
    total = n + n_test
    columns = [rng.choice(total, rng.binomial(total, p), replace=False) for p in chance]
    indices = np.concatenate(columns)
    features = np.repeat(np.arange(d), [len(rows) for rows in columns])
    values = np.ones(len(indices)) if binary else rng.random(len(indices)) + 0.1
    X = sp.csr_matrix((values, (indices, features)), shape=(total, d), dtype=np.float32)
    if not binary:
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X = sp.csr_matrix(sp.diags_array(1.0 / np.maximum(norms, 1e-12)) @ X, dtype=np.float32)
    score = X @ rng.standard_normal(d) / np.sqrt(per_row) + 0.5 * rng.standard_normal(total)
    y = np.where(score > np.quantile(score, 1 - positive), 1, -1).astype(np.int32)
    return Data(X[:n], y[:n], X[n:], y[n:])


def surface(rng: np.random.Generator, n: int, n_test: int, d: int) -> Data:
    """Regression: a smooth function of a few features plus noise, features and target in [0, 1]."""
    X = rng.random((n + n_test, d)).astype(np.float32)
    w = rng.standard_normal((d, 3))
    y = np.sin(3 * X @ w[:, 0] / np.sqrt(d)) + (X @ w[:, 1]) ** 2 / d + (X[:, 0] > 0.5) * X[:, 1]
    y = y + 0.05 * rng.standard_normal(len(y))
    y = (y - y.min()) / np.ptp(y)
    return Data(X[:n], y[:n], X[n:], y[n:])
