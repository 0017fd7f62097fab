"""Parts of the pictures by their definitions: curves of a trace, phases, regions, levels, grids of scores."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.patches import Rectangle
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import plots
from maxmargin.plots import ConvergenceDisplay, CostDisplay, DecisionRegionsDisplay, LevelsDisplay, ScoreGridDisplay
from maxmargin.plots.canvas import BLUE, CLASSES, INK, PALE_BLUE, PALE_RED, PAPER, RED
from maxmargin.plots.curves import curves, machine_of, phases, shown_quantity
from maxmargin.plots.regions import _color, _side
from maxmargin.plots.score_grid import _column, _spelled

plt.switch_backend("Agg")
NAN = math.nan


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def trace(rows: Any, problems: bool = True) -> np.ndarray:
    """Problem, objective, lower bound, gap, violation, one row per second and two turns."""
    names = ("objective", "dual", "gap", "violation")
    kind = [("problem", int)] * problems + [("time", float), ("iteration", int)] + [(name, np.float32) for name in names]
    made = [((k,) if problems else ()) + (j + 1.0, 2 * j + 2, *row) for j, (k, *row) in enumerate(rows)]
    return np.array(made, dtype=kind)


# ---- the machine in it --------------------------------------------------------------------------------------------------


def test_the_machine_is_the_last_step_or_the_best() -> None:
    X, y = np.eye(4), [0, 1, 0, 1]
    machine = mm.SVC().fit(X, y)
    steps = make_pipeline(StandardScaler(), StandardScaler(), mm.SVC()).fit(X, y)
    assert machine_of(machine, "trace_") is machine and machine_of(steps, "trace_") is steps.steps[2][1]
    search = mm.SVC().fit(X, y)
    for best in (machine, steps):
        search.best_estimator_ = best
        assert machine_of(search, "trace_") is machine_of(best, "trace_")
    with pytest.raises(ValueError, match="SVC has no levels_, which this picture shows"):
        machine_of(machine, "levels_")
    for bare in (mm.SVC(), make_pipeline(StandardScaler(), mm.SVC())):
        with pytest.raises(NotFittedError):
            machine_of(bare, "steps")
    with pytest.raises(NotFittedError):
        DecisionRegionsDisplay.from_estimator(mm.SVC(), np.eye(2))


def test_names_of_the_room() -> None:
    from sklearn.calibration import CalibrationDisplay

    assert plots.CalibrationDisplay is CalibrationDisplay
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        plots.Nothing  # noqa: B018


# ---- curves -----------------------------------------------------------------------------------------------------------

FALLS = [(0, 5, 1, 4, 0.5), (0, 4, 2, 2, 0.25), (0, 3, 2.5, 0.5, 0.125)]


@pytest.mark.parametrize("x", ["time", "iteration"])
@pytest.mark.parametrize("problems", [True, False])
def test_a_curve_has_what_was_recorded_turn_by_turn(x, problems) -> None:
    told = trace(FALLS, problems)
    for quantity in ("gap", "violation", "objective"):
        (curve,) = curves(told, quantity, x)
        assert curve.x.tolist() == ([1, 2, 3] if x == "time" else [2, 4, 6]) and curve.x.dtype == np.float64
        assert curve.values.tolist() == told[quantity].tolist() and curve.values.dtype == np.float64
        assert (None if curve.lower is None else curve.lower.tolist()) == ([1, 2, 2.5] if quantity == "objective" else None)
    assert curves(told[:0], "gap", x) == curves(told[:1], "gap", x) == []
    assert len(curves(told[:2], "gap", x)) == 1


@pytest.mark.parametrize(("rows", "quantity", "expected"), [
    ([(0, 5, 1, NAN, 0), (0, 4, 2, NAN, 0), (0, 3, 2.5, 0.5, 0)], "gap", [[2, 1, 0.5]]),  # to the objective in the end
    ([(0, 5, 1, NAN, 0), (0, NAN, 2, NAN, 0)], "gap", [[4, 3]]), ([(0, NAN, 1, NAN, 0), (0, NAN, 2, 3, 0)], "gap", []),
    ([(0, 5, NAN, NAN, 0), (0, 4, 2, 2, 0), (0, 3, 2.5, 0.5, 0)], "gap", [[2, 0.5]]),
    ([(0, 5, 1, 4, 0), (0, 4, 4, 0, 0), (0, 4, 3, 1, 0)], "gap", [[4, 1]]),  # the axis is logarithmic
    ([(0, 5, 1, 4, -1), (0, 4, 4, 0, 0), (0, 4, 3, 1, NAN)], "violation", []),
    ([(0, 5, NAN, 4, 1), (0, NAN, 2, 0, 1), (0, NAN, NAN, 0, 1)], "objective", [[5, NAN]]),
    ([(0, -5, NAN, 4, 1), (0, 0, NAN, 0, 1)], "objective", [[-5, 0]]),
    ([(-1, 9, 8, 1, 1), (-1, 9, 8, 1, 1), (0, 5, 1, 4, 1), (2, 7, 1, 6, 1), (0, 4, 1, 3, 1), (2, 6, 2, 4, 1)], "gap",
     [[4, 3], [6, 4]]),
    ([(0, 5, 1, 4, 0.5), (1, 4, 1, 3, 0.25), (1, 3, 1, 2, 0.75)], "violation", [[0.25, 0.75]]),
    ([(0, 5, 1, 4, 0.5), (0, 5, 2, 3, 1.5)], "violation", [[0.5, 1.5]]),
])  # fmt: skip
def test_curves_leave_out_what_is_not_known(rows, quantity, expected) -> None:
    told = [curve.values.tolist() for curve in curves(trace(rows), quantity, "time")]
    assert len(told) == len(expected)
    for one, other in zip(told, expected):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("rows", "shown"), [
    (FALLS, "gap"), (FALLS[:1], "gap"), ([(0, o, NAN, NAN, v) for _, o, _, _, v in FALLS], "violation"),
    ([(0, o, NAN, NAN, NAN) for _, o, *_ in FALLS], "objective"), ([], "gap"),
])  # fmt: skip
def test_the_quantity_shown_is_the_first_that_has_a_curve(rows, shown) -> None:
    assert shown_quantity(trace(rows), "auto", "time") == shown
    assert shown_quantity(trace(rows), "violation", "time") == "violation"


@pytest.mark.parametrize(("timings", "told"), [
    ({"a": 1.0, "b": 2.0, "total": 4.0}, [("b", 2.0), ("a", 1.0), ("other", 1.0)]), ({"a": 1.0, "total": 1.0}, [("a", 1.0)]),
    ({"a": 0.25, "b": 0.0, "c": -1.0, "total": 4.0}, [("other", 3.75), ("a", 0.25)]), ({"a": 1}, [("a", 1.0)]), ({}, []),
    ({"rows": 3, "inner_steps": 1, "cache_hits": 2, "unshrinks": 4, "inner_fallbacks": 5, "passes": 6, "pass_seconds": 7,
      "total": 0.5}, [("other", 0.5)]),
])  # fmt: skip
def test_phases_are_what_is_positive_and_the_rest(timings, told) -> None:
    assert list(phases(timings).items()) == told


# ---- convergence --------------------------------------------------------------------------------------------------------


def shown(rows: Any, name: str | None = "fit", **options: Any) -> ConvergenceDisplay:
    return ConvergenceDisplay(trace(rows), name=name).plot(**options)


def labels(display: Any) -> list[str]:
    legend = display.ax_.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("x", ["time", "iteration"])
@pytest.mark.parametrize("quantity", ["gap", "violation", "objective"])
def test_axes_have_names_and_the_scale_of_the_quantity(x, quantity) -> None:
    display = shown(FALLS, x=x, quantity=quantity)
    names = {"gap": "objective − lower bound", "violation": "violation of the optimality conditions",
             "objective": "objective"}  # fmt: skip
    assert display.ax_.get_xlabel() == {"time": "seconds", "iteration": "turns"}[x]
    assert display.ax_.get_ylabel() == names[quantity] and display.quantity_ == quantity
    assert display.ax_.get_yscale() == ("linear" if quantity == "objective" else "log")
    assert [line.get_linestyle() for line in display.lines_] == (["-", "--"] if quantity == "objective" else ["-"])
    assert labels(display) == (["fit", "fit, lower bound"] if quantity == "objective" else ["fit"])
    assert display.lines_[0].get_xdata().tolist() == ([1, 2, 3] if x == "time" else [2, 4, 6])


@pytest.mark.parametrize(("rows", "styles"), [
    ([(0, 5, NAN, NAN, 1), (0, 4, NAN, NAN, 1)], ["-"]), ([(0, NAN, 1, NAN, 1), (0, NAN, 2, NAN, 1)], ["--"]),
    ([(0, 5, NAN, NAN, 1), (0, NAN, 2, NAN, 1)], ["-", "--"]),
])  # fmt: skip
def test_what_is_known_of_objectives_and_bounds_is_drawn(rows, styles) -> None:
    display = shown(rows, quantity="objective")
    assert [line.get_linestyle() for line in display.lines_] == styles


def test_curves_of_one_fit_share_colour_and_name_and_become_paler_the_more_they_are() -> None:
    for n in (1, 2, 4, 100):
        rows = [(k, 5 - j, j, 5 - 2 * j, 1) for k in range(n) for j in (1, 2)]
        display = shown(rows, name="fit", quantity="objective")
        assert len(display.lines_) == 2 * n and len({line.get_color() for line in display.lines_}) == 1
        assert [line.get_alpha() for line in display.lines_] == pytest.approx([max(0.15, n**-0.5)] * 2 * n)
        assert labels(display) == ["fit", "fit, lower bound"]
    display = shown(rows, alpha=0.5, color="red", linewidth=7, quantity="gap")
    assert {(line.get_alpha(), line.get_color(), line.get_linewidth()) for line in display.lines_} == {(0.5, "red", 7)}
    assert labels(shown(rows, name=None, quantity="objective")) == []


def test_a_fit_of_one_turn_is_a_point() -> None:
    display = shown([(0, 5, 1, 4, 0.5), (1, 4, 1, 3, 0.25)], quantity="gap")
    (line,) = display.lines_
    assert (line.get_marker(), line.get_xdata().tolist(), line.get_ydata().tolist()) == ("o", [2], [3])
    assert labels(display) == ["fit"]


def test_names_of_fits_are_their_classes_or_what_was_said() -> None:
    rng = np.random.default_rng(0)
    model = mm.SVC(C=100, working_set_size=2).fit(rng.normal(size=(60, 2)), rng.integers(2, size=60))
    for display in (ConvergenceDisplay, CostDisplay):
        assert display.from_estimator(model).name == "SVC" and display.from_estimator(model, name="x").name == "x"
    with pytest.raises(ValueError, match=r"x='turns' must be 'time' or 'iteration'"):
        ConvergenceDisplay.from_estimator(model, x="turns")
    for quantity in ("auto", "gap", "violation", "objective"):
        assert ConvergenceDisplay.from_estimator(model, quantity=quantity).quantity_ in (quantity, "gap")


def test_axes_that_were_given_are_used_and_others_are_new() -> None:
    _, ax = plt.subplots()
    made = [shown(FALLS, ax=ax), CostDisplay({"a": 1.0}).plot(ax=ax)]
    assert all(display.ax_ is ax and display.figure_ is ax.figure for display in made)
    assert shown(FALLS).ax_ is not ax


# ---- costs, levels ------------------------------------------------------------------------------------------------------


def test_bars_of_costs_have_names_numbers_and_the_largest_on_top() -> None:
    display = CostDisplay({"a": 1.0, "b": 2.0, "total": 4.0}, name="fit").plot()
    ax = display.ax_
    assert [bar.get_width() for bar in display.bars_] == [2, 1, 1]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["b", "a", "other"]
    assert [text.get_text() for text in ax.texts] == [" 2", " 1", " 1"] and ax.get_xlabel() == "seconds"
    assert ax.get_ylim()[0] > ax.get_ylim()[1] and ax.get_title() == "fit, 4 s"
    assert ax.get_xlim()[1] > 2.2  # room for the numbers
    assert {bar.get_facecolor() for bar in display.bars_} == {to_rgba(BLUE)}
    red = CostDisplay({"a": 1.0}).plot(color="red", height=0.5)
    assert {(bar.get_facecolor(), bar.get_height()) for bar in red.bars_} == {(to_rgba("red"), 0.5)}
    assert red.ax_.get_title() == ""
    assert CostDisplay({"a": 1.0}, name="fit").plot().ax_.get_title() == "fit"


KIND = [("stage", "U8"), ("level", int), ("clusters", int), ("n_support", int), ("time_clustering", float),
        ("time_solving", float)]  # fmt: skip


def test_levels_are_bars_of_support_vectors_and_a_line_of_time() -> None:
    rows = [("level", 2, 16, 1234, 0.5, 0.25), ("refine", 0, 1, 90, 0.25, 1), ("whole", 0, 1, 80, 0, 2)]
    levels = np.array(rows, dtype=KIND)
    display = LevelsDisplay(levels).plot()
    ax, time = display.ax_, display.time_ax_
    assert [text.get_text() for text in ax.get_xticklabels()] == ["level 2\n16 clusters", "refine", "whole"]
    assert ax.get_xticks().tolist() == [0, 1, 2] and [text.get_text() for text in ax.texts] == ["1,234", "90", "80"]
    assert [bar.get_x() + bar.get_width() / 2 for bar in display.bars_] == pytest.approx([0, 1, 2])
    assert all(bar.get_width() < 1 for bar in display.bars_) and display.bars_[0].get_facecolor() == to_rgba(BLUE)
    assert display.time_line_.get_xydata().tolist() == [[0, 0.75], [1, 2], [2, 4]] and display.time_line_.get_color() == RED
    assert (ax.get_ylabel(), time.get_ylabel()) == ("support vectors", "seconds from the beginning")
    for axes, top in ((ax, 1234), (time, 4)):  # from 0, with some room at the top
        assert axes.get_ylim()[0] == 0 and 1.05 * top < axes.get_ylim()[1] < 1.5 * top
    assert {text.get_color() for text in time.get_yticklabels()} == {RED} == {time.yaxis.label.get_color()}
    assert {text.get_color() for text in ax.get_xticklabels()} == {INK}
    wide = LevelsDisplay(levels).plot(width=0.25, color="red").bars_
    assert {(round(bar.get_width(), 9), bar.get_facecolor()) for bar in wide} == {(0.25, to_rgba("red"))}


def test_levels_without_support_vectors_or_time_have_axes_all_the_same() -> None:
    display = LevelsDisplay(np.array([("level", 1, 4, 0, 0, 0)], dtype=KIND)).plot()
    assert 1 < display.ax_.get_ylim()[1] < 1.5 and display.time_ax_.get_ylim()[1] > 0
    with pytest.raises(ValueError, match="no level was finished"):
        LevelsDisplay(np.array([], dtype=KIND)).plot()


# ---- regions ------------------------------------------------------------------------------------------------------------


class Machine(BaseEstimator):
    """Decides by the first feature less half of the second."""

    def __init__(self, classes: int | None = 2) -> None:
        self.classes = classes
        if classes is not None:
            self.classes_ = np.array([f"c{k}" for k in range(classes)])
        self.fitted_ = True

    def fit(self, X: Any, y: Any = None) -> Machine:
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        A = np.asarray(X)
        return A[:, 0] - A[:, 1] / 2

    def predict(self, X: Any) -> np.ndarray:
        places = np.clip(np.floor(np.asarray(X)[:, 0]), 0, len(self.classes_) - 1)
        return self.classes_[places.astype(int)]


POINTS = np.array([[0.0, -10], [4, 10], [2, 5]])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, list, pd.DataFrame])
@pytest.mark.parametrize("classes", [None, 2, 3, 4])
def test_the_grid_reaches_beyond_the_samples_and_has_the_values_of_the_machine(form, classes) -> None:
    machine = Machine(classes)
    given = pd.DataFrame(POINTS, columns=["one", "two"]) if form is pd.DataFrame else form(POINTS)
    display = DecisionRegionsDisplay.from_estimator(machine, given, grid_resolution=30)
    assert display.x == pytest.approx(np.linspace(-0.32, 4.32, 30))
    assert display.y == pytest.approx(np.linspace(-11.6, 11.6, 30))
    A, B = np.meshgrid(display.x, display.y)
    expected = A - B / 2 if classes in (None, 2) else np.clip(np.floor(A), 0, classes - 1)
    assert display.values.shape == (30, 30) and display.values == pytest.approx(expected)
    assert display.margins == (classes == 2) and display.scatter_ == []
    names = (display.ax_.get_xlabel(), display.ax_.get_ylabel())
    assert names == (("one", "two") if form is pd.DataFrame else ("", ""))
    default = DecisionRegionsDisplay.from_estimator(machine, given)
    assert default.values.shape == (200, 200)


def test_one_value_of_a_feature_has_room_around_it() -> None:
    display = DecisionRegionsDisplay.from_estimator(Machine(), [[3.0, 7], [3, 9]], grid_resolution=3)
    assert display.x.tolist() == [2.5, 3, 3.5] and display.y == pytest.approx([6.84, 8, 9.16])


@pytest.mark.parametrize("X", [np.zeros((3, 3)), np.zeros((3, 1)), np.zeros(2), np.zeros((2, 2, 2))])
def test_regions_are_of_two_features(X) -> None:
    with pytest.raises(ValueError, match="regions can be drawn of two features only"):
        DecisionRegionsDisplay.from_estimator(Machine(), X)


def contours(ax: Any) -> list[Any]:
    """Lines, by how they are dashed: (levels, width)."""
    return [(c.levels.tolist(), float(np.ravel(c.get_linewidths())[0])) for c in ax.collections
            if hasattr(c, "levels") and not c.filled]  # fmt: skip


@pytest.mark.parametrize("classes", [None, 2])
def test_the_boundary_is_where_the_sign_changes_and_margins_are_at_one(classes) -> None:
    display = DecisionRegionsDisplay.from_estimator(Machine(classes), POINTS, grid_resolution=40)
    lines = contours(display.ax_)
    assert display.boundary_.levels.tolist() == [0] and lines[0][0] == [0]
    assert [levels for levels, _ in lines[1:]] == ([[-1, 1]] if classes == 2 else [])
    assert all(width < lines[0][1] for _, width in lines[1:])  # thinner than the boundary
    for path in display.boundary_.get_paths():
        assert np.abs(Machine().decision_function(path.vertices)).max() < 1e-9
    surface = display.surface_
    assert (surface.levels[0], surface.levels[-1]) == (-1, 1) and 0 in np.round(surface.levels, 12)  # both sides alike
    assert surface.cmap(0.0)[:3] == to_rgb(PALE_RED) and surface.cmap(1.0)[:3] == to_rgb(PALE_BLUE)
    assert surface.cmap(0.5)[:3] == pytest.approx(to_rgb(PAPER), abs=0.02)
    drawn = surface.get_array()
    assert drawn.min() < -0.9 and drawn.max() > 0.9


@pytest.mark.parametrize("classes", [3, 5, 10])
def test_several_classes_have_a_pale_colour_each_and_boundaries_between(classes) -> None:
    display = DecisionRegionsDisplay.from_estimator(Machine(classes), POINTS * [classes / 4, 1], grid_resolution=40)
    mesh = display.surface_
    expected = [[0.55 + 0.45 * c for c in to_rgb(CLASSES[k % 8])] for k in range(classes)]
    assert np.array(mesh.cmap.colors) == pytest.approx(np.array(expected))
    assert (mesh.norm.vmin, mesh.norm.vmax) == (-0.5, classes - 0.5)
    for k in range(classes):
        assert mesh.cmap(mesh.norm(k))[:3] == pytest.approx(expected[k])
    assert display.boundary_.levels.tolist() == [k + 0.5 for k in range(classes - 1)] and mesh.get_rasterized()
    assert (mesh.get_array() == display.values).all() and contours(display.ax_) == [(display.boundary_.levels.tolist(), 0.8)]


@pytest.mark.parametrize("classes", [None, 2, 4])
def test_samples_have_the_colour_and_name_of_their_class(classes) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, size=(60, 2))
    machine = Machine(classes)
    y = np.array(["c1", "c0", "c1"] * 20) if classes in (None, 2) else np.array(["c1", "c3", "c3"] * 20)
    display = DecisionRegionsDisplay.from_estimator(machine, X, y.tolist(), grid_resolution=9)
    assert [s.get_label() for s in display.scatter_] == sorted(set(y))
    for scatter in display.scatter_:
        label = scatter.get_label()
        assert sorted(map(tuple, scatter.get_offsets().tolist())) == sorted(map(tuple, X[y == label].tolist()))
        assert scatter.get_facecolor()[0][:3] == pytest.approx(to_rgb(CLASSES[int(label[1])]))
        assert scatter.get_linewidths().tolist() == [0]
    few = DecisionRegionsDisplay.from_estimator(machine, X, y, max_points=10, grid_resolution=9)
    chosen = np.random.default_rng(0).permutation(60)[:10]
    assert sorted(map(tuple, np.concatenate([s.get_offsets() for s in few.scatter_]).tolist())) == sorted(
        map(tuple, X[chosen].tolist())
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_support_vectors_are_rings_on_top(form) -> None:
    machine = Machine()
    machine.support_vectors_ = form(POINTS[:2])  # type: ignore[attr-defined]
    y = ["c0", "c1", "c1"]
    display = DecisionRegionsDisplay.from_estimator(machine, POINTS, y, support_vectors=True, grid_resolution=9)
    rings = display.scatter_[-1]
    assert len(display.scatter_) == 3 and rings.get_offsets().tolist() == POINTS[:2].tolist()
    assert len(rings.get_facecolor()) == 0 and rings.get_edgecolor()[0].tolist() == list(to_rgba(INK))
    assert rings.get_sizes()[0] > display.scatter_[0].get_sizes()[0] and rings.get_linewidths()[0] > 0


def test_colours_repeat_when_there_are_no_more() -> None:
    assert [_color(k) for k in range(20)] == [CLASSES[k % len(CLASSES)] for k in range(20)]


@pytest.mark.parametrize(("values", "told"), [
    ([-1.0, 0, -3], [0, 0, 0]), ([1.0, 1, 1], [1, 1, 1]), ([0.0, 10], [0, 1]), (list(range(-5, 11)), None),
    ([1e-320], [1e-320 / np.finfo(float).tiny]), ([], []),
])  # fmt: skip
def test_a_side_has_its_whole_range_up_to_nine_in_ten(values, told) -> None:
    values = np.array(values, float)
    if told is None:
        told = np.clip(values / np.quantile(values[values > 0], 0.9), 0, 1)
    np.testing.assert_allclose(_side(values), told)


# ---- grids of scores ------------------------------------------------------------------------------------------------------


def grid(scores: Any, **options: Any) -> ScoreGridDisplay:
    scores = np.array(scores, float)
    rows, columns = scores.shape
    return ScoreGridDisplay(scores, np.arange(columns) + 0.5, [10**k for k in range(rows)], **options).plot()


@pytest.mark.parametrize("columns", [1, 3, 6, 7, 9])
def test_cells_have_names_at_their_middles_and_the_best_a_frame(columns) -> None:
    scores = np.random.default_rng(columns).random((3, columns))
    display = grid(scores, x_name="a", y_name="b", score_name="c")
    ax, (i, j) = display.ax_, np.unravel_index(scores.argmax(), scores.shape)
    assert ax.get_xticks().tolist() == [k + 0.5 for k in range(columns)] and ax.get_yticks().tolist() == [0.5, 1.5, 2.5]
    assert [text.get_text() for text in ax.get_xticklabels()] == [f"{k + 0.5:.3g}" for k in range(columns)]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["1", "10", "100"]
    assert {text.get_rotation() for text in ax.get_xticklabels()} == {45 if columns > 6 else 0}
    assert (ax.get_xlabel(), ax.get_ylabel(), display.figure_.axes[1].get_ylabel()) == ("a", "b", "c")
    assert display.best_ == (j + 0.5, 10**i)
    (frame,) = (patch for patch in ax.patches if isinstance(patch, Rectangle))
    assert (*frame.get_xy(), frame.get_width(), frame.get_height()) == (j, i, 1, 1)
    assert not frame.get_fill() and frame.get_edgecolor() == to_rgba(RED) and frame.get_linewidth() > 1
    assert (display.image_.get_array() == scores).all() and display.path_ is None and display.marks_ == {}
    assert ax.get_legend() is None and display.image_.cmap.name == "viridis"
    assert ScoreGridDisplay(scores, range(columns), range(3)).plot(cmap="gray").image_.cmap.name == "gray"


@pytest.mark.parametrize(("shape", "written"), [
    ((10, 10), True), ((4, 25), True), ((101, 1), False), ((3, 34), False), ((1, 1), True),
])  # fmt: skip
def test_scores_are_written_where_they_can_be_read(shape, written) -> None:
    scores = np.random.default_rng(0).random(shape)
    scores[0, 0] = 0.123456
    display = grid(scores)
    assert len(display.text_) == (scores.size if written else 0)
    middle = (scores.min() + scores.max()) / 2
    for ((i, j), value), text in zip(np.ndenumerate(scores), display.text_):
        assert text.get_position() == (j + 0.5, i + 0.5) and text.get_text() == f"{value:.3g}"
        assert text.get_color() == ("black" if value > middle else "white")


def test_cells_without_a_score_have_a_mark_by_their_reason() -> None:
    statuses = np.array([["", "dropped", "halved"], ["not tried", "odd", "dropped"]])
    display = grid([[0.5, NAN, NAN], [NAN, NAN, NAN]], statuses=statuses, path=[(0, 2), (1, 0), (0, 0)])
    assert [text.get_text() for text in display.text_] == ["0.5", "", "", "", "", ""]
    at = {name: marks.get_offsets().tolist() for name, marks in display.marks_.items()}
    assert at == {
        "dropped": [[1.5, 0.5], [2.5, 1.5]], "halved": [[2.5, 0.5]], "not tried": [[0.5, 1.5]], "odd": [[1.5, 1.5]],
    }  # fmt: skip
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [*sorted(at), "path"]
    colours = {name: tuple(marks.get_facecolor()[0]) for name, marks in display.marks_.items()}
    names = {"dropped": "black", "halved": "gray", "not tried": "lightgray", "odd": RED}
    assert colours == {name: to_rgba(color) for name, color in names.items()}
    assert len({marks.get_paths()[0].vertices.tobytes() for marks in display.marks_.values()}) == 4  # tell them apart
    assert display.path_.get_xydata().tolist() == [[2.5, 0.5], [0.5, 1.5], [0.5, 0.5]]
    assert not display.ax_.get_legend().get_frame_on()
    display.figure_.canvas.draw()
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.y1 < display.ax_.get_window_extent().y0  # below the picture
    middle = (display.ax_.get_window_extent().x0 + display.ax_.get_window_extent().x1) / 2
    assert (legend.x0 + legend.x1) / 2 == pytest.approx(middle, abs=1)


def test_no_score_at_all_is_told() -> None:
    with pytest.raises(ValueError, match="there is no score that is a number"):
        grid([[NAN, NAN]])
    assert grid([[NAN, 0.5]]).best_ == (1.5, 1)


RESULTS = {
    "param_C": np.ma.array([1.0, 1.0, 0.1, 0.1, 1.0]), "param_gamma": np.ma.array([2, 0.5, 0.5, 2, 2]),
    "mean_test_score": np.array([0.5, 0.25, 0.75, NAN, 0.625]), "rank": np.array([3, 2, 1, 5, 4]),
    "status": np.array(["certified", "certified", "certified", "dropped: too low", "certified"]),
    "order": np.array([2.0, 1.0, 3.0, NAN, 0.0]),
}  # fmt: skip


def test_a_table_of_results_becomes_a_grid() -> None:
    display = ScoreGridDisplay.from_cv_results(RESULTS, path=True)
    assert (display.x_values, display.y_values, display.x_name, display.y_name) == ([0.5, 2], [0.1, 1], "gamma", "C")
    np.testing.assert_array_equal(display.scores, [[0.75, NAN], [0.25, 0.625]])  # the best of each cell
    assert display.statuses.tolist() == [["", "dropped"], ["", ""]] and display.score_name == "mean test score"
    assert display.path == [(1, 1), (1, 0), (1, 1), (0, 0)]  # the order in which they were finished
    assert ScoreGridDisplay.from_cv_results(RESULTS).path == []
    turned = ScoreGridDisplay.from_cv_results(RESULTS, x="C", y="gamma", score="rank")
    assert turned.scores.tolist() == [[1, 2], [5, 4]] and turned.score_name == "rank" and turned.marks_ == {}
    bare = {name: column for name, column in RESULTS.items() if name not in ("status", "order")}
    display = ScoreGridDisplay.from_cv_results(bare, path=True)
    assert display.path == [(1, 1), (1, 0), (0, 0), (1, 1)] and display.marks_ == {}
    search = SimpleNamespace(cv_results_=RESULTS)
    assert ScoreGridDisplay.from_estimator(search, path=True).path == [(1, 1), (1, 0), (1, 1), (0, 0)]


@pytest.mark.parametrize(("names", "name", "told"), [
    (["param_C", "param_svc__C"], "C", "param_C"), (["param_svc__C", "mean__C"], "C", "param_svc__C"),
    (["param_a__C", "param_b__C"], "C", None), (["param_gamma", "x__C"], "C", None),
    (["param_svc__C"], "svc__C", "param_svc__C"),
    (["param_xC"], "C", None),
])  # fmt: skip
def test_a_parameter_is_found_by_its_name_or_its_end(names, name, told) -> None:
    results: dict[str, Any] = dict.fromkeys(names)
    if told is not None:
        assert _column(results, name) == told
        return
    known = ", ".join(n[6:] for n in names if n.startswith("param_"))
    with pytest.raises(ValueError, match=f"{name!r} is not one parameter of this search, which tried {known}: give"):
        _column(results, name)


@pytest.mark.parametrize(("value", "text"), [(0.123456, "0.123"), (1e-9, "1e-09"), (3, "3"), ("rbf", "rbf"), (None, "None"),
                                             (123456, "123456")])  # fmt: skip
def test_values_are_spelled_short(value, text) -> None:
    assert _spelled(value) == text
