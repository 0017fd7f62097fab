"""Small charts as inline SVG. Colours are the page's CSS variables, so that they follow dark and light.

All are 380 units wide: at 400 pixels a unit is a pixel, and text is as large as in the page around.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
WIDTH, HEIGHT = 380, 230
LEFT, RIGHT, TOP, BOTTOM = 68, 10, 10, 40  # margins, for the labels of the axes
MOST_POINTS = 400  # of one line: more cannot be seen, and pages stay small


@dataclass(frozen=True)
class Axis:
    """From values to places on the page."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    @classmethod
    def over(cls, values: Any, begin: float, end: float, log: bool = False) -> Axis:
        values = np.asarray(values, np.float64)
        values = values[np.isfinite(values) & ((values > 0) | (not log))]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0) if not log else (0.1, 1.0)
        if log:
            low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
            high = high if high > low else 10 * low
        elif not high > low:
            low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
        return cls(low, high, begin, end, log)

    def __call__(self, value: Any) -> Any:
        if self.log:
            first, last = math.log10(self.low), math.log10(self.high)
            share = (np.log10(np.maximum(value, np.finfo(float).tiny)) - first) / (last - first)
        else:
            share = (np.asarray(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Some round numbers within."""
        if self.log:
            lowest, highest = round(math.log10(self.low)), round(math.log10(self.high))
            return [10.0**k for k in range(lowest, highest + 1, max(1, math.ceil((highest - lowest) / 5)))]
        rough = (self.high - self.low) / 4
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough)
        first = math.ceil(self.low / step - 1e-9)
        return [step * k for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _frame(x: Axis, y: Axis, xlabel: str, ylabel: str) -> list[str]:
    """Grid, ticks and the names of the axes."""
    out = []
    for value in y.ticks():
        at = y(value)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        out.append(f'<text class="tick" x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    for value in x.ticks():
        place = x(value)
        anchor = "end" if place > WIDTH - RIGHT - 16 else "middle"
        where = f'x="{place:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="{anchor}"'
        out.append(f'<text class="tick" {where}>{value:.4g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text class="name" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(xlabel)}</text>')
    out.append(
        f'<text class="name" transform="translate(11 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(ylabel)}</text>'
    )
    return out


def _svg(label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"<title>{escape(label)}</title>{''.join(parts)}</svg>"
    )


def _axes(xs: Any, ys: Any, log: bool = False) -> tuple[Axis, Axis]:
    return Axis.over(xs, LEFT, WIDTH - RIGHT), Axis.over(ys, HEIGHT - BOTTOM, TOP, log)


def lines(curves: Sequence[tuple[FloatArray, FloatArray, str]], label: str, xlabel: str, ylabel: str, log: bool) -> str:
    """Curves (x, y, CSS class) over common axes; only values that are there are joined."""
    x, y = _axes(np.concatenate([c[0] for c in curves]), np.concatenate([c[1] for c in curves]), log)
    parts = _frame(x, y, xlabel, ylabel)
    for xs, ys, style in curves:
        there = np.isfinite(ys) & ((ys > 0) | (not log))
        xs, ys = xs[there], ys[there]
        if len(xs) > MOST_POINTS:
            some = np.unique(np.linspace(0, len(xs) - 1, MOST_POINTS).astype(int))
            xs, ys = xs[some], ys[some]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x(xs), y(ys)))
        parts.append(f'<polyline class="curve {style}" points="{points}"/>')
        if len(xs) <= 40:
            parts += [f'<circle class="dot {style}" cx="{a:.1f}" cy="{b:.1f}" r="2"/>' for a, b in zip(x(xs), y(ys))]
    return _svg(label, parts)


def histogram(groups: Sequence[tuple[str, FloatArray]], label: str, xlabel: str, bins: int = 30) -> str:
    """Counts of values per bin, one colour per group, over each other."""
    edges = np.histogram_bin_edges(np.concatenate([values for _, values in groups]), bins)
    counts = [np.histogram(values, edges)[0] for _, values in groups]
    x, y = _axes(edges, [0, max(count.max(initial=1) for count in counts)])
    parts = _frame(x, y, xlabel, "samples")
    for k, count in enumerate(counts):
        for i, height in enumerate(count.tolist()):
            if height:
                a, b, top = float(x(edges[i])), float(x(edges[i + 1])), float(y(height))
                size = f'x="{a:.1f}" width="{max(b - a, 0.5):.1f}" y="{top:.1f}" height="{HEIGHT - BOTTOM - top:.1f}"'
                parts.append(f'<rect class="bar c{k}" {size}/>')
    if edges[0] < 0 < edges[-1]:
        at = float(x(0.0))
        parts.append(f'<line class="zero" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
    return _svg(label, parts)


def scatter(xs: FloatArray, ys: FloatArray, label: str, xlabel: str, ylabel: str) -> str:
    """Points, and the line on which both are equal."""
    both = np.concatenate([xs, ys])
    x, y = _axes(both, both)
    (a, b), (c, d) = [(float(x(v)), float(y(v))) for v in (both.min(), both.max())]
    parts = _frame(x, y, xlabel, ylabel)
    parts.append(f'<line class="zero" x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}"/>')
    parts += [f'<circle class="dot c0" cx="{a:.1f}" cy="{b:.1f}" r="1.6"/>' for a, b in zip(x(xs), y(ys))]
    return _svg(label, parts)
