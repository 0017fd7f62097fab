"""The table of the exact machines again, on sets that no other experiment of theirs uses.

Nothing was tuned on them, but for one thing that this table brought to light: on cifar we were slower than
scikit-learn-intelex, and how kernel rows of dense samples of many features are computed was changed after that. Parts of
the larger sets, so that the peers take minutes. For the settings of each program see the experiment `exact`.
"""

from __future__ import annotations

from benchmarks.experiments.exact import Exact


class ExactOthers(Exact):
    title = "Exact kernel machines: other sets"
    sets = ("census", "cifar", "phishing", "susy", "space_ga")
    beside = ()
    sizes = {"census": 10_000, "cifar": 3_000, "susy": 8_000}
