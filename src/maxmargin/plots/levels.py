"""LevelsDisplay: divide and conquer, level by level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.plots.canvas import BLUE, INK, RED, Display
from maxmargin.plots.curves import machine_of


class LevelsDisplay(Display):
    """Support vectors and time of the stages of divide and conquer, from `levels_` of DCSVC or DCSVR.

    Parameters
    ----------
    levels : structured array
        `levels_` of a fitted machine.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : matplotlib BarContainer
        Support vectors per stage.
    time_line_ : matplotlib Line2D
        Seconds from the beginning to the end of each stage, on an axis of its own, `time_ax_`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import DCSVC
    >>> from maxmargin.plots import LevelsDisplay
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> display = LevelsDisplay.from_estimator(DCSVC(gamma=2.0, levels=2, random_state=0).fit(X, y))
    >>> [text.get_text() for text in display.ax_.get_xticklabels()][-1]
    'whole'
    """

    bars_: Any
    time_line_: Any
    time_ax_: Any

    def __init__(self, levels: NDArray[Any]) -> None:
        self.levels = levels

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **style: Any) -> LevelsDisplay:
        """Draw the levels of a fitted DCSVC or DCSVR, or of the one in a pipeline or search.

        Parameters
        ----------
        estimator : fitted machine, or a pipeline or search that has one
        ax : matplotlib Axes, optional
        **style : passed on to matplotlib's bar
        """
        return cls(machine_of(estimator, "levels_").levels_).plot(ax=ax, **style)

    def plot(self, *, ax: Any = None, **style: Any) -> LevelsDisplay:
        """Draw; see `from_estimator`."""
        if not len(self.levels):
            raise ValueError("no level was finished in this fit: there is nothing to show")
        ax = self._axes(ax, "LevelsDisplay")
        names = [
            f"level {row['level']}\n{row['clusters']} clusters" if row["stage"] == "level" else str(row["stage"])
            for row in self.levels
        ]
        place = np.arange(len(names))
        self.bars_ = ax.bar(place, self.levels["n_support"], **({"color": BLUE, "width": 0.6} | style))
        ax.bar_label(self.bars_, fmt="{:,.0f}")
        ax.set_xticks(place, names)
        ax.set(ylabel="support vectors", ylim=(0, 1.12 * max(1, self.levels["n_support"].max())))
        time = np.cumsum(self.levels["time_clustering"] + self.levels["time_solving"])
        self.time_ax_ = ax.twinx()
        (self.time_line_,) = self.time_ax_.plot(place, time, color=RED, marker="o")
        self.time_ax_.set_ylabel("seconds from the beginning", color=RED)
        self.time_ax_.set_ylim(0, 1.12 * max(time[-1], np.finfo(float).tiny))
        self.time_ax_.tick_params(axis="y", labelcolor=RED)
        ax.tick_params(axis="x", labelcolor=INK)
        return self
