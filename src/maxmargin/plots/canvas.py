"""What the displays share: axes to draw on, and colours."""

from __future__ import annotations

from typing import Any

INK, RED, BLUE = "#22313f", "#c8553d", "#28666e"
PALE_RED, PALE_BLUE, PAPER = "#e8a28f", "#8fbcc0", "#fbf3ee"
CLASSES = (RED, BLUE, "#d9a441", "#6a5d94", "#5b8c5a", "#8a6d5c", "#b0567f", "#4f7cac")


class Display:
    """ax_ and figure_, as scikit-learn's displays have them."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any, name: str) -> Any:
        """The axes given, or those of a new figure."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError(f"{name}.plot needs matplotlib: pip install 'maxmargin[plot]'") from None
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax
