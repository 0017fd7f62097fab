"""DecisionRegionsDisplay: what a machine of two features says where."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.plots.canvas import CLASSES, INK, PALE_BLUE, PALE_RED, PAPER, Display

FloatArray = NDArray[np.float64]


class DecisionRegionsDisplay(Display):
    """Regions, boundary, margins, samples and support vectors of a classifier or one-class machine of two features.

    Parameters
    ----------
    x, y : ndarray
        Coordinates of the grid, one per column and row of `values`.
    values : ndarray of shape (len(y), len(x))
        Decision values of two classes or a one-class machine, or the number of the class.
    classes : ndarray or None
        The classes; None for a one-class machine.
    margins : bool
        Whether ±1 are the margins (machines of two classes).

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    surface_ : the filled contours, or for several classes the mesh
    boundary_ : the contour lines of the boundary
    scatter_ : list of matplotlib PathCollection
        Samples, one per class, if X and y were given; last the support vectors, if asked for.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC
    >>> from maxmargin.plots import DecisionRegionsDisplay
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> display = DecisionRegionsDisplay.from_estimator(SVC(gamma=2.0).fit(X, y), X, y)
    >>> display.values.shape
    (200, 200)
    """

    surface_: Any
    boundary_: Any
    scatter_: list[Any]

    def __init__(
        self, x: FloatArray, y: FloatArray, values: FloatArray, *, classes: Any = None, margins: bool = False
    ) -> None:
        self.x, self.y, self.values, self.classes, self.margins = x, y, values, classes, margins

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, grid_resolution: int = 200, support_vectors: bool = False,
        max_points: int = 1000, ax: Any = None,
    ) -> DecisionRegionsDisplay:
        """Draw what a fitted classifier or one-class machine decides around the samples X.

        Parameters
        ----------
        estimator : fitted classifier or one-class machine, or a pipeline that ends in one
        X : array-like or DataFrame of shape (n_samples, 2)
        y : array-like, optional
            Labels, to draw the samples in the colours of their classes.
        grid_resolution : int
            Points per side.
        support_vectors : bool
            Ring them; the estimator must be the machine itself, not a pipeline.
        max_points : int
            Draw at most so many of the samples.
        ax : matplotlib Axes, optional
        """
        check_is_fitted(estimator)
        names = [str(name) for name in getattr(X, "columns", ())]
        points = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"X has shape {points.shape}: regions can be drawn of two features only")
        if not hasattr(estimator, "decision_function"):
            raise ValueError(f"{type(estimator).__name__} has no decision values: regions are those of a classifier")
        low, high = points.min(axis=0), points.max(axis=0)
        room = np.where(high > low, 0.08 * (high - low), 0.5)
        x1, x2 = (np.linspace(low[k] - room[k], high[k] + room[k], grid_resolution) for k in range(2))
        grid: Any = np.stack(np.meshgrid(x1, x2), axis=-1).reshape(-1, 2)
        if names:
            grid = type(X)(grid, columns=X.columns)
        classes = getattr(estimator, "classes_", None)
        if classes is not None and len(classes) > 2:
            values = np.searchsorted(classes, estimator.predict(grid)).astype(np.float64)
        else:
            values = np.asarray(estimator.decision_function(grid), np.float64).ravel()
        display = cls(
            x1, x2, values.reshape(len(x2), len(x1)), classes=classes, margins=classes is not None and len(classes) == 2
        )  # fmt: skip
        display.plot(ax=ax)
        if names:
            display.ax_.set(xlabel=names[0], ylabel=names[1])
        if y is not None:
            display._samples(points, np.asarray(y), max_points)
        if support_vectors:
            display._support(estimator)
        return display

    def plot(self, *, ax: Any = None) -> DecisionRegionsDisplay:
        """Draw the regions, without samples."""
        ax = self._axes(ax, "DecisionRegionsDisplay")
        from matplotlib.colors import LinearSegmentedColormap, ListedColormap, to_rgb

        self.scatter_ = []
        if self.classes is not None and len(self.classes) > 2:
            pale = [tuple(0.55 + 0.45 * c for c in to_rgb(_color(k))) for k in range(len(self.classes))]
            self.surface_ = ax.pcolormesh(
                self.x, self.y, self.values, cmap=ListedColormap(pale), vmin=-0.5, vmax=len(self.classes) - 0.5,
                shading="nearest", rasterized=True,
            )  # fmt: skip
            levels = np.arange(len(self.classes) - 1) + 0.5
            self.boundary_ = ax.contour(self.x, self.y, self.values, levels=levels, colors=INK, linewidths=0.8)
            return self
        colors = LinearSegmentedColormap.from_list("margin", [PALE_RED, PAPER, PALE_BLUE])
        shade = _side(self.values) - _side(-self.values)
        self.surface_ = ax.contourf(self.x, self.y, shade, levels=np.linspace(-1, 1, 25), cmap=colors)
        self.boundary_ = ax.contour(self.x, self.y, self.values, levels=[0.0], colors=INK, linewidths=1.6)
        if self.margins:
            ax.contour(self.x, self.y, self.values, levels=[-1.0, 1.0], colors=INK, linewidths=0.8, linestyles="dashed")
        return self

    def _samples(self, points: FloatArray, y: NDArray[Any], most: int) -> None:
        chosen = np.random.default_rng(0).permutation(len(points))[:most]
        points, y = points[chosen], y[chosen]
        for label in np.unique(y):
            k = int(np.searchsorted(np.unique(y) if self.classes is None else self.classes, label))
            style = {"s": 9, "color": _color(k), "linewidths": 0, "label": str(label)}
            self.scatter_.append(self.ax_.scatter(*points[y == label].T, **style))

    def _support(self, estimator: Any) -> None:
        vectors = getattr(estimator, "support_vectors_", None)
        if vectors is None:
            raise ValueError(f"support_vectors=True: {type(estimator).__name__} has no support_vectors_")
        vectors = np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors)
        style = {"s": 40, "facecolors": "none", "edgecolors": INK, "linewidths": 0.6}
        self.scatter_.append(self.ax_.scatter(*vectors.T, **style))


def _color(k: int) -> str:
    return CLASSES[k % len(CLASSES)]


def _side(value: FloatArray) -> FloatArray:
    """Positive values from 0 to 1: each side of a boundary gets its whole range of colours, however unequal they are."""
    inside = value[value > 0]
    scale = max(float(np.quantile(inside, 0.9)), np.finfo(float).tiny) if len(inside) else 1.0
    return np.clip(value / scale, 0, 1)
