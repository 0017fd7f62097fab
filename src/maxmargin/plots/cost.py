"""CostDisplay: where the time of a fit went."""

from __future__ import annotations

from typing import Any

from maxmargin.plots.canvas import BLUE, Display
from maxmargin.plots.curves import machine_of, phases


class CostDisplay(Display):
    """Seconds per phase of a fit, from its `timings_`.

    Parameters
    ----------
    timings : dict
        `timings_` of a fitted machine.
    name : str, optional
        For the title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : matplotlib BarContainer
    phases_ : dict of seconds per phase, the largest first
        "other" is what is in none of them. Phases of threads side by side may add up to more than the whole.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC
    >>> from maxmargin.plots import CostDisplay
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> "update" in CostDisplay.from_estimator(SVC(working_set_size=32).fit(X, y)).phases_
    True
    """

    bars_: Any
    phases_: dict[str, float]

    def __init__(self, timings: dict[str, float], *, name: str | None = None) -> None:
        self.timings, self.name = timings, name

    @classmethod
    def from_estimator(cls, estimator: Any, *, name: str | None = None, ax: Any = None, **style: Any) -> CostDisplay:
        """Draw the timings of a fitted machine, or of the one in a pipeline or search.

        Parameters
        ----------
        estimator : fitted machine, or a pipeline or search that has one
        name : str, optional
            By default the class.
        ax : matplotlib Axes, optional
        **style : passed on to matplotlib's barh
        """
        machine = machine_of(estimator, "timings_")
        return cls(machine.timings_, name=name or type(machine).__name__).plot(ax=ax, **style)

    def plot(self, *, ax: Any = None, **style: Any) -> CostDisplay:
        """Draw; see `from_estimator`."""
        ax = self._axes(ax, "CostDisplay")
        self.phases_ = phases(self.timings)
        self.bars_ = ax.barh(list(self.phases_), list(self.phases_.values()), **({"color": BLUE} | style))
        ax.bar_label(self.bars_, fmt=" {:.3g}", label_type="edge")
        ax.invert_yaxis()  # the largest on top
        ax.margins(x=0.15)  # room for the numbers
        ax.set(xlabel="seconds")
        total = self.timings.get("total")
        if self.name:
            ax.set_title(self.name + ("" if total is None else f", {total:.3g} s"))
        return self
