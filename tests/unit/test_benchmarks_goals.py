"""What the pages of several classes, small fits, busy machines and easy data say: reached only when it is."""

import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from benchmarks.base import discover
from benchmarks.experiments import busy, easy_dc, multiclass, small_fit

SHAPE = {"rows": 9, "features": 2, "sparse": False, "mark": None, "status": "ok", "threads": 2, "measure": "fit"}


def record(dataset, solver, best, label="", task="svc", **more):
    problem = {"task": task, "C": 1.0, "nu": 0.1, "kernel": "rbf", "gamma": 1.0, "cache_size": 200.0, "tol": 1e-3}
    return SHAPE | {"dataset": dataset, "solver": solver, "best": best, "label": label, "problem": problem} | more


def verdicts(table):
    return [line.split("|")[-2].strip() for line in table.splitlines() if "reached" in line or "LOST" in line]


def many(*rows, **changes):
    """Sets with (ours, scikit-learn, intelex) seconds of a fit, predictions of which take as long."""
    names = ("maxmargin", "scikit-learn", "sklearnex-float64")
    cells = [(f"set{i}", solver, best) for i, row in enumerate(rows) for solver, best in zip(names, row)]
    records = [record(name, solver, best, "rbf", predict=best) for name, solver, best in cells]
    records[0] |= changes
    return verdicts(multiclass.goal_table(discover("experiments")["multiclass"](), records))


def test_goals_of_several_classes():
    # two lines (all, and the kernel) for each of: fit against both peers, prediction against scikit-learn
    assert many((1, 10, 7), (1, 11, 6)) == ["reached"] * 6
    assert many((1, 100, 7), (1, 0.9, 6)) == ["LOST"] * 2 + ["reached"] * 2 + ["LOST"] * 2  # slower on one
    assert many((1, 9, 7), (1, 9, 6)) == ["reached"] * 4 + ["LOST"] * 2  # predictions ask for ten
    assert many((1, 100, 70), (1, 110, 60), mark="objective +3 %") == ["LOST"] * 6  # a wrong model of ours wins nothing
    assert many((1, 100, 70), (1, 110, 60), status="error", reason="") == ["LOST"] * 6


def test_a_peer_counts_at_its_best_and_only_with_a_good_model():
    experiment = discover("experiments")["multiclass"]()
    cached = record("a", "scikit-learn", 3.0, "rbf")
    cached["problem"]["cache_size"] = 2000.0
    records = [record("a", "maxmargin", 1.0, "rbf"), record("a", "scikit-learn", 9.0, "rbf"), cached]
    assert multiclass.ratios(experiment, records, "scikit-learn", None) == ([3.0], 0)
    cached["mark"] = "objective +3 %"
    assert multiclass.ratios(experiment, records, "scikit-learn", "rbf") == ([9.0], 0)
    alone = record("a", "maxmargin", 0.1, "rbf", threads=1)  # shown beside, not what the goal is about
    assert multiclass.ratios(experiment, [alone, *records], "scikit-learn", None) == ([9.0], 0)


def test_goals_of_small_fits():
    def said(ours, theirs, **changes):
        records = [record("ijcnn1", "maxmargin", ours), record("ijcnn1", "scikit-learn", theirs)]
        linear = {"label": small_fit.LINEAR, "task": "linear"}
        records += [record("digits", small_fit.OURS, 0.1, **linear) | changes]
        records += [record("digits", small_fit.PEER, best, **linear) for best in (0.2, 0.15)]
        records[-1]["mark"] = "objective +3 %"
        return verdicts(small_fit.goal_table(records))

    assert said(1, 2) == ["reached", "reached"]
    assert said(1, 1.9, best=0.21) == ["LOST", "LOST"]
    assert said(1, 2, best=0.16) == ["reached", "reached"]  # the faster model of the peer is not one
    assert said(1, 2, mark="objective +3 %") == ["reached", "LOST"]


def test_goals_of_busy_machines_are_about_medians():
    def said(one, two, **changes):
        records = [record("a", "maxmargin", min(t), f"SVC, {kind}", times=t, threads=n) for kind in ("idle", "busy")
                   for n, t in ((1, one), (2, two))]  # fmt: skip
        records[-1] |= changes
        return verdicts(busy.goal_table(records))

    assert said([1.0, 1.0, 5.0], [1.2, 1.3, 9.0]) == ["reached"]
    assert said([1.0, 1.0, 1.0], [0.1, 1.4, 1.4]) == ["LOST"]
    assert said([1.0], [1.0], status="timeout") == ["LOST"]


def test_goals_of_easy_data():
    def said(early, cold, **changes):
        both = [record("a", easy_dc.EARLY, early) | changes, record("a", easy_dc.COLD, cold)]
        return verdicts(easy_dc.goal_table(both))

    assert said(1.2, 1.0) == ["reached"] and said(1.3, 1.0) == ["LOST"] and said(0.1, 1.0, status="error") == ["LOST"]


@pytest.mark.parametrize("name, classes", [("letters", 26), ("text100", 100), ("satellite", 6), ("shuttle", 2)])
def test_generated_shapes(name, classes):
    data = discover("datasets")[name]().load()
    again = discover("datasets")[name]().load()
    assert len(np.unique(data.y_train)) == classes and data.source == "generated"
    assert abs(data.X_train - again.X_train).max() == 0 and (data.y_test == again.y_test).all()
