"""A fit in a few words, for whoever shows it: notebooks, the command line, reports."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

GOOD = ("converged",)
NEUTRAL = ("completed", "early", "unknown")
COLOURS = {"good": "#1f7a4d", "neutral": "#6b7680", "bad": "#c0502f"}  # readable on white and on black


def mood(status: str) -> str:
    """How a status is to be shown: good, neutral or bad."""
    return "good" if status in GOOD else "neutral" if status in NEUTRAL else "bad"


def share(value: float) -> str:
    """A part of one, as a percentage that does not read 0 unless it is."""
    return f"{100 * value:.3g} %" if value == 0 or value >= 0.1 else f"{100 * value:.2g} %"


def relative_gap(machine: Any) -> float:
    """The gap as a part of the objective."""
    return float(machine.dual_gap_ / max(abs(machine.objective_), np.finfo(float).tiny))


def in_short(machine: Any) -> str:
    """Status, gap and time of a fitted machine: `converged · gap 0.0012 % of the objective · 0.35 s`."""
    parts = [machine.status_]
    if math.isfinite(machine.dual_gap_) and math.isfinite(machine.objective_):
        parts.append(f"gap {share(relative_gap(machine))} of the objective")
    if math.isfinite(machine.timings_.get("total", math.nan)):
        parts.append(f"{machine.timings_['total']:.3g} s")
    return " · ".join(parts)


def html_line(machine: Any) -> str:
    """The same as a line of HTML, to stand above scikit-learn's drawing of the parameters."""
    style = f"font-size:0.9em;border-left:3px solid {COLOURS[mood(machine.status_)]};padding:0 0 0 0.5em;margin:0 0 0.3em"
    return f'<div class="maxmargin-fit" style="{style}">{escape(in_short(machine))}</div>'
