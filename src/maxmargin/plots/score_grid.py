"""ScoreGridDisplay: the score over two parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.plots.canvas import RED, Display


class ScoreGridDisplay(Display):
    """Scores of a search over a grid of two parameters, C and gamma unless said otherwise.

    Parameters
    ----------
    scores : ndarray of shape (values of y, values of x)
        NaN where nothing was tried.
    x_values, y_values : sequences
    x_name, y_name, score_name : str

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : matplotlib QuadMesh
    best_ : (x, y) of the best score
    text_ : list of matplotlib Text
        The scores in the cells, if there are not too many.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.model_selection import GridSearchCV
    >>> from maxmargin import SVC
    >>> from maxmargin.plots import ScoreGridDisplay
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> search = GridSearchCV(SVC(), {"C": [0.1, 1, 10], "gamma": [0.1, 1]}, cv=3).fit(X, y)
    >>> ScoreGridDisplay.from_estimator(search).scores.shape
    (3, 2)
    """

    image_: Any
    best_: tuple[Any, Any]
    text_: list[Any]

    def __init__(
        self, scores: NDArray[np.float64], x_values: Any, y_values: Any, *, x_name: str = "gamma", y_name: str = "C",
        score_name: str = "score",
    ) -> None:
        self.scores = np.asarray(scores, np.float64)
        self.x_values, self.y_values = list(x_values), list(y_values)
        self.x_name, self.y_name, self.score_name = x_name, y_name, score_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> ScoreGridDisplay:
        """Draw the scores of a fitted search: anything that has `cv_results_`.

        Parameters
        ----------
        estimator : fitted GridSearchCV, RandomizedSearchCV, …
        ax : matplotlib Axes, optional
        **options : those of `from_cv_results`
        """
        if not hasattr(estimator, "cv_results_"):
            raise ValueError(f"{type(estimator).__name__} has no cv_results_: give a fitted search")
        return cls.from_cv_results(estimator.cv_results_, ax=ax, **options)

    @classmethod
    def from_cv_results(
        cls, cv_results: Mapping[str, Any], *, x: str = "gamma", y: str = "C", score: str = "mean_test_score",
        ax: Any = None, **style: Any,
    ) -> ScoreGridDisplay:
        """Draw the scores in a dict of results; other parameters than x and y take their best value in each cell.

        Parameters
        ----------
        cv_results : dict of arrays
        x, y : str
            Names of parameters; `svc__gamma` in a pipeline is found by its last part too.
        score : str
            Which of the results.
        ax : matplotlib Axes, optional
        **style : passed on to matplotlib's pcolormesh
        """
        if score not in cv_results:
            raise ValueError(f"score={score!r} is none of the results: {', '.join(sorted(cv_results))}")
        columns = [np.asarray(cv_results[_column(cv_results, name)]).tolist() for name in (x, y)]
        values = [sorted(set(column)) for column in columns]
        scores = np.full((len(values[1]), len(values[0])), np.nan)
        for a, b, value in zip(*columns, cv_results[score]):
            at = values[1].index(b), values[0].index(a)
            scores[at] = np.fmax(scores[at], value)
        return cls(scores, *values, x_name=x, y_name=y, score_name=score.replace("_", " ")).plot(ax=ax, **style)

    def plot(self, *, ax: Any = None, **style: Any) -> ScoreGridDisplay:
        """Draw; see `from_cv_results`."""
        ax = self._axes(ax, "ScoreGridDisplay")
        from matplotlib.patches import Rectangle

        if not np.isfinite(self.scores).any():
            raise ValueError("there is no score that is a number")
        self.image_ = ax.pcolormesh(self.scores, **({"cmap": "viridis", "edgecolors": "face"} | style))
        rows, columns = self.scores.shape
        ax.set_xticks(np.arange(columns) + 0.5, [_spelled(v) for v in self.x_values], rotation=45 if columns > 6 else 0)
        ax.set_yticks(np.arange(rows) + 0.5, [_spelled(v) for v in self.y_values])
        ax.set(xlabel=self.x_name, ylabel=self.y_name)
        i, j = np.unravel_index(np.nanargmax(self.scores), self.scores.shape)
        self.best_ = self.x_values[j], self.y_values[i]
        ax.add_patch(Rectangle((float(j), float(i)), 1, 1, fill=False, edgecolor=RED, linewidth=2.5))
        self.text_ = []
        if rows * columns <= 100:  # more would not be read
            middle = np.nanmean([np.nanmin(self.scores), np.nanmax(self.scores)])
            for (r, c), value in np.ndenumerate(self.scores):
                color = "black" if value > middle else "white"
                shown = f"{value:.3g}" if np.isfinite(value) else ""
                self.text_.append(ax.text(c + 0.5, r + 0.5, shown, ha="center", va="center", color=color, fontsize=8))
        self.figure_.colorbar(self.image_, ax=ax, label=self.score_name)
        return self


def _column(results: Mapping[str, Any], name: str) -> str:
    """The column of a parameter: param_name, or the one that ends in __name."""
    if f"param_{name}" in results:
        return f"param_{name}"
    found = [key for key in results if key.startswith("param_") and key.endswith(f"__{name}")]
    if len(found) != 1:
        known = ", ".join(key[6:] for key in results if key.startswith("param_"))
        raise ValueError(f"{name!r} is not one parameter of this search, which tried {known}: give x and y")
    return found[0]


def _spelled(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
