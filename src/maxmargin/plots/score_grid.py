"""ScoreGridDisplay: the score over two parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.plots.canvas import RED, Display

_MARKS = {"dropped": ("x", "black"), "halved": ("_", "gray"), "not tried": (".", "lightgray")}


class ScoreGridDisplay(Display):
    """Scores of a search over a grid of two parameters, C and gamma unless said otherwise.

    Parameters
    ----------
    scores : ndarray of shape (values of y, values of x)
        NaN where there is none.
    x_values, y_values : sequences
    x_name, y_name, score_name : str
    statuses : ndarray of str of the same shape, optional
        Why a cell has no score: "dropped" (it cannot be the best), "halved", "not tried", …
    path : sequence of (row, column), optional
        Cells in the order in which they were finished.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : matplotlib QuadMesh
    best_ : (x, y) of the best score
    text_ : list of matplotlib Text
        The scores in the cells, if there are not too many.
    marks_ : dict of matplotlib PathCollection
        By status, the marks of cells without a score.
    path_ : matplotlib Line2D or None

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
    marks_: dict[str, Any]
    path_: Any

    def __init__(
        self, scores: NDArray[np.float64], x_values: Any, y_values: Any, *, x_name: str = "gamma", y_name: str = "C",
        score_name: str = "score", statuses: Any = None, path: Any = (),
    ) -> None:
        self.scores = np.asarray(scores, np.float64)
        self.statuses = np.full(self.scores.shape, "") if statuses is None else np.asarray(statuses)
        self.path = list(path)
        self.x_values, self.y_values = list(x_values), list(y_values)
        self.x_name, self.y_name, self.score_name = x_name, y_name, score_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> ScoreGridDisplay:
        """Draw the scores of a fitted search: anything that has `cv_results_`.

        Parameters
        ----------
        estimator : fitted SVCCV, DCSVCCV, … or GridSearchCV, RandomizedSearchCV, …
            Of our own the cells that were left or not tried are marked, and `path=True` draws the order of the others.
        ax : matplotlib Axes, optional
        **options : those of `from_cv_results`
        """
        if not hasattr(estimator, "cv_results_"):
            raise ValueError(f"{type(estimator).__name__} has no cv_results_: give a fitted search")
        return cls.from_cv_results(estimator.cv_results_, ax=ax, **options)

    @classmethod
    def from_cv_results(
        cls, cv_results: Mapping[str, Any], *, x: str = "gamma", y: str = "C", score: str = "mean_test_score",
        ax: Any = None, path: bool = False, **style: Any,
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
        path : bool
            Draw a line through the cells with a score, in the order of the table's `order` (when each was finished).
        **style : passed on to matplotlib's pcolormesh
        """
        if score not in cv_results:
            raise ValueError(f"score={score!r} is none of the results: {', '.join(sorted(cv_results))}")
        columns = [np.asarray(cv_results[_column(cv_results, name)]).tolist() for name in (x, y)]
        values = [sorted(set(column)) for column in columns]
        scores = np.full((len(values[1]), len(values[0])), np.nan)
        statuses = np.full(scores.shape, "", dtype=object)
        places = [(values[1].index(b), values[0].index(a)) for a, b in zip(*columns)]
        for at, value, status in zip(places, cv_results[score], cv_results.get("status", [""] * len(places))):
            scores[at] = np.fmax(scores[at], value)
            statuses[at] = "" if np.isfinite(scores[at]) else str(status).partition(":")[0]
        finished: list[tuple[int, int]] = []
        if path:
            order = np.asarray(cv_results.get("order", np.arange(len(places))), np.float64)
            done = [k for k in np.argsort(order, kind="stable").tolist() if np.isfinite(cv_results[score][k])]
            finished = [places[k] for k in done]
        display = cls(
            scores, *values, x_name=x, y_name=y, score_name=score.replace("_", " "), statuses=statuses, path=finished
        )
        return display.plot(ax=ax, **style)

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
        self.marks_ = self._mark(ax)
        self.path_ = None
        if self.path:
            line = np.array(self.path, np.float64) + 0.5
            (self.path_,) = ax.plot(line[:, 1], line[:, 0], color="white", linewidth=1, marker=".", alpha=0.7, label="path")
        if self.marks_:
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4, fontsize=8, frameon=False)
        self.figure_.colorbar(self.image_, ax=ax, label=self.score_name)
        return self

    def _mark(self, ax: Any) -> dict[str, Any]:
        """A mark of its own for each reason why cells have no score."""
        out = {}
        for status in sorted({str(s) for s in self.statuses.ravel()} - {""}):
            at = np.argwhere(self.statuses == status) + 0.5
            mark, color = _MARKS.get(status, ("*", RED))
            out[status] = ax.scatter(at[:, 1], at[:, 0], marker=mark, c=color, s=40, linewidths=1.2, label=status)
        return out


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
