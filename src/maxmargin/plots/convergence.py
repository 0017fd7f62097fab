"""ConvergenceDisplay: how a fit came to its end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.plots.canvas import Display
from maxmargin.plots.curves import QUANTITIES, curves, machine_of, shown_quantity

LABELS = {"gap": "objective − lower bound", "violation": "violation of the optimality conditions", "objective": "objective"}
AXES = {"time": "seconds", "iteration": "turns"}


class ConvergenceDisplay(Display):
    """Gap, violation or objective of a fit against time, from its `trace_`.

    Parameters
    ----------
    trace : structured array
        `trace_` of a fitted machine.
    name : str, optional
        For the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        One per problem of the fit (pair of classes, class); with quantity="objective" also the lower bounds, dashed.
    quantity_ : {"gap", "violation", "objective"}
        What is shown.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC
    >>> from maxmargin.plots import ConvergenceDisplay
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> display = ConvergenceDisplay.from_estimator(SVC(C=100, working_set_size=32).fit(X, y))
    >>> display.quantity_
    'gap'
    """

    lines_: list[Any]
    quantity_: str

    def __init__(self, trace: NDArray[Any], *, name: str | None = None) -> None:
        self.trace, self.name = trace, name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, quantity: str = "auto", x: str = "time", name: str | None = None, ax: Any = None,
        **style: Any,
    ) -> ConvergenceDisplay:
        """Draw the fit of an estimator; for several fits in one picture give the `ax_` of the first as `ax`.

        Parameters
        ----------
        estimator : fitted machine, or a pipeline or search that has one
        quantity : {"auto", "gap", "violation", "objective"}
            "gap" is the objective less the lower bound (of the final objective where engines do not know it between
            turns), "objective" both of these. "auto" is the first of gap, violation and objective that was recorded.
        x : {"time", "iteration"}
        name : str, optional
            By default the class.
        ax : matplotlib Axes, optional
        **style : passed on to matplotlib's plot
        """
        machine = machine_of(estimator, "trace_")
        display = cls(machine.trace_, name=name or type(machine).__name__)
        return display.plot(quantity=quantity, x=x, ax=ax, **style)

    def plot(self, *, quantity: str = "auto", x: str = "time", ax: Any = None, **style: Any) -> ConvergenceDisplay:
        """Draw; see `from_estimator`."""
        if quantity not in ("auto", *QUANTITIES):
            raise ValueError(f"quantity={quantity!r} must be 'auto' or one of {', '.join(QUANTITIES)}")
        if x not in AXES:
            raise ValueError(f"x={x!r} must be 'time' or 'iteration'")
        self.quantity_ = shown_quantity(self.trace, quantity, x)
        ax = self._axes(ax, "ConvergenceDisplay")
        found = curves(self.trace, self.quantity_, x)
        if not found:  # a fit of one turn: a point says what there is to say
            last = self.trace[-1:]
            self.lines_ = ax.plot(last[x], last[self.quantity_], "o", label=self.name, **style)
        else:
            color = style.pop("color", None) or ax._get_lines.get_next_color()
            many = {"alpha": max(0.15, 1 / len(found) ** 0.5)} | style
            self.lines_ = []
            for k, curve in enumerate(found):
                label = self.name if k == 0 else None
                if np.isfinite(curve.values).any():
                    self.lines_ += ax.plot(curve.x, curve.values, color=color, marker=".", label=label, **many)
                if curve.lower is not None and np.isfinite(curve.lower).any():
                    bound = f"{self.name}, lower bound" if k == 0 and self.name else None
                    self.lines_ += ax.plot(curve.x, curve.lower, color=color, linestyle="--", label=bound, **many)
        if self.quantity_ != "objective":
            ax.set_yscale("log")
        ax.set(xlabel=AXES[x], ylabel=LABELS[self.quantity_])
        if self.name is not None:
            ax.legend()
        return self
