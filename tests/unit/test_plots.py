"""Pictures show what the fits report: the numbers that matplotlib was given, and the pixels that it made of them."""

from __future__ import annotations

import io
import sys

import matplotlib.colors
import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import DCSVC, DCSVR, SVC, SVR, BudgetSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.plots import (
    CalibrationDisplay,
    ConvergenceDisplay,
    CostDisplay,
    DecisionRegionsDisplay,
    LevelsDisplay,
    ScoreGridDisplay,
)
from maxmargin.plots.canvas import BLUE, RED
from maxmargin.plots.curves import phases

plt.switch_backend("Agg")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def moons():
    return make_moons(400, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def svc(moons):
    return SVC(C=100, gamma=2.0, working_set_size=32, tol=1e-5).fit(*moons)


def pixels(figure) -> np.ndarray:
    """The figure as an image, rows from the top, RGB from 0 to 1."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=80)
    out.seek(0)
    return matplotlib.image.imread(out)[..., :3]


def near(image: np.ndarray, color: str, within: float = 0.1) -> np.ndarray:
    return np.abs(image - matplotlib.colors.to_rgb(color)).max(axis=2) < within


def drawn_at(display, x: float, y: float) -> np.ndarray:
    """The colour of the picture at a point of the axes."""
    figure = display.figure_
    image = pixels(figure)
    column, row = display.ax_.transData.transform((x, y)) * 80 / figure.dpi
    return image[image.shape[0] - 1 - round(row), round(column)]


# ---- convergence ------------------------------------------------------------------------------------------------


def test_the_gap_of_a_fit_goes_down_to_its_own(svc) -> None:
    display = ConvergenceDisplay.from_estimator(svc)
    (line,) = display.lines_
    assert display.quantity_ == "gap" and display.ax_.get_yscale() == "log"
    x, y = line.get_data()
    assert np.array_equal(x, svc.trace_["time"]) and y[-1] == pytest.approx(svc.dual_gap_, rel=1e-6)
    assert (np.diff(y) <= 1e-9 * y[:-1]).all()  # lower bounds only rise
    assert np.array_equal(y[:-1], svc.objective_ - svc.trace_["dual"][:-1])
    display.ax_.get_legend().remove()
    curve = near(pixels(display.figure_), line.get_color()).nonzero()
    assert len(curve[0]) > 100
    left, right = (curve[0][side].min() for side in (curve[1] < 150, curve[1] > 350))
    assert left < right  # higher at the left


def test_objectives_and_lower_bounds_meet(moons) -> None:
    model = LinearSVC(tol=1e-6).fit(*moons)
    display = ConvergenceDisplay.from_estimator(model, quantity="objective", x="iteration")
    upper, lower = display.lines_
    assert (upper.get_ydata() >= lower.get_ydata()).all()
    assert upper.get_ydata()[-1] == model.objective_ and upper.get_linestyle() == "-" != lower.get_linestyle()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["LinearSVC", "LinearSVC, lower bound"]


def test_several_fits_in_one_picture(svc, moons) -> None:
    first = ConvergenceDisplay.from_estimator(svc, name="one")
    second = ConvergenceDisplay.from_estimator(LinearSVC().fit(*moons), name="two", ax=first.ax_)
    assert second.ax_ is first.ax_ and second.lines_[0].get_color() != first.lines_[0].get_color()
    assert [text.get_text() for text in first.ax_.get_legend().get_texts()] == ["one", "two"]


def test_several_problems_of_one_fit_have_a_curve_each() -> None:
    X, y = make_blobs(300, centers=4, random_state=0, cluster_std=3)
    model = SVC(working_set_size=8, tol=1e-5).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model)
    assert len(display.lines_) == 6 and display.quantity_ == "violation"  # the gap is known of their sum only
    assert max(line.get_ydata()[-1] for line in display.lines_) == pytest.approx(model.kkt_violation_)
    linear = ConvergenceDisplay.from_estimator(LinearSVC().fit(X, y))
    assert len(linear.lines_) == 4 and linear.quantity_ == "gap"


def test_engines_without_a_bound_show_what_they_have(moons) -> None:
    display = ConvergenceDisplay.from_estimator(BudgetSVC(budget=20, random_state=0).fit(*moons))
    assert display.quantity_ == "objective" and len(display.lines_) == 1
    one_turn = ConvergenceDisplay.from_estimator(OneClassSVM(nu=0.1).fit(moons[0]))
    assert one_turn.lines_[0].get_marker() == "o"


# ---- regions ----------------------------------------------------------------------------------------------------


def test_regions_are_where_the_machine_says(svc, moons) -> None:
    X, y = moons
    display = DecisionRegionsDisplay.from_estimator(svc, X, y, grid_resolution=60)
    grid = np.stack(np.meshgrid(display.x, display.y), axis=-1).reshape(-1, 2)
    assert np.array_equal(display.values.ravel(), svc.decision_function(grid))
    assert [scatter.get_label() for scatter in display.scatter_] == ["0", "1"]
    assert [len(scatter.get_offsets()) for scatter in display.scatter_] == [200, 200]
    bare = DecisionRegionsDisplay(display.x, display.y, display.values, classes=svc.classes_, margins=True).plot()
    for point in ([-0.9, 0.9], [0.5, -0.9], [1.9, 0.9], [-0.5, 0.2]):
        red, _, blue = drawn_at(bare, *point)
        assert (blue > red) == (svc.decision_function([point])[0] > 0)


def test_support_vectors_are_ringed(svc, moons) -> None:
    display = DecisionRegionsDisplay.from_estimator(svc, *moons, support_vectors=True)
    assert np.array_equal(display.scatter_[-1].get_offsets(), svc.support_vectors_)
    with pytest.raises(ValueError, match="LinearSVC has no support_vectors_"):
        DecisionRegionsDisplay.from_estimator(LinearSVC().fit(*moons), *moons, support_vectors=True)


def test_regions_of_several_classes() -> None:
    X, y = make_blobs(200, centers=[[-4, 0], [4, 0], [0, 4]], random_state=0)
    model = SVC().fit(X, y)
    display = DecisionRegionsDisplay.from_estimator(model, X)
    seen = {tuple(np.round(drawn_at(display, *center), 2)) for center in ([-4, 0], [4, 0], [0, 4])}
    assert len(seen) == 3 and set(np.unique(display.values)) == {0, 1, 2}


def test_regions_of_frames_pipelines_and_one_class(moons) -> None:
    frame = pd.DataFrame(moons[0], columns=["width", "height"])
    model = make_pipeline(StandardScaler(), SVC()).fit(frame, moons[1])
    display = DecisionRegionsDisplay.from_estimator(model, frame)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width", "height")
    one = DecisionRegionsDisplay.from_estimator(OneClassSVM(nu=0.1).fit(moons[0]), moons[0])
    assert one.classes is None and not one.margins


def test_regions_that_cannot_be_drawn(svc) -> None:
    with pytest.raises(ValueError, match="two features only"):
        DecisionRegionsDisplay.from_estimator(svc, np.zeros((3, 4)))
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="SVR has no decision values"):
        DecisionRegionsDisplay.from_estimator(SVR().fit(X, X[:, 0]), X)


# ---- levels, scores, costs --------------------------------------------------------------------------------------


def test_levels(moons) -> None:
    model = DCSVC(gamma=2.0, levels=2, k=2, random_state=0).fit(*moons)
    display = LevelsDisplay.from_estimator(model)
    assert [bar.get_height() for bar in display.bars_] == model.levels_["n_support"].tolist()
    names = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert names == ["level 2\n4 clusters", "level 1\n2 clusters", "refine", "whole"]
    spent = display.time_line_.get_ydata()
    assert (np.diff(spent) >= 0).all() and spent[-1] == pytest.approx(sum(model.levels_[f"time_{w}"].sum()
                                                                      for w in ("clustering", "solving")))  # fmt: skip
    assert near(pixels(display.figure_), BLUE, 0.02).mean() > 0.1  # bars


def test_a_grid_of_scores(moons) -> None:
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = {"svc__C": [0.01, 1.0], "svc__gamma": [0.01, 1.0, 100.0], "svc__shrinking": [True, False]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(*moons)
    display = ScoreGridDisplay.from_estimator(search)
    assert display.scores.shape == (2, 3) and display.scores.max() == search.best_score_
    results = search.cv_results_
    for i, C in enumerate(grid["svc__C"]):
        for j, gamma in enumerate(grid["svc__gamma"]):
            cell = (results["param_svc__C"] == C) & (results["param_svc__gamma"] == gamma)
            assert display.scores[i, j] == results["mean_test_score"][cell].max()
    best = display.y_values.index(display.best_[1]), display.x_values.index(display.best_[0])
    assert display.scores[best] == search.best_score_
    assert [text.get_text() for text in display.text_] == [f"{score:.3g}" for score in display.scores.ravel()]
    assert near(pixels(display.figure_), RED, 0.02).any()  # the frame around the best
    time = ScoreGridDisplay.from_cv_results(results, x="shrinking", y="C", score="mean_fit_time")
    assert time.scores.shape == (2, 2) and time.score_name == "mean fit time"


def test_a_search_of_ours_shows_what_it_left_and_its_path() -> None:
    results = {
        "param_C": np.array([0.1, 0.1, 1.0, 1.0, 10.0, 10.0]), "param_gamma": np.array([0.5, 2.0] * 3),
        "mean_test_score": np.array([0.7, np.nan, 0.8, 0.9, np.nan, np.nan]),
        "status": np.array(["certified", "dropped", "certified", "certified", "halved", "not tried"]),
    }  # fmt: skip
    display = ScoreGridDisplay.from_cv_results(results, path=True)
    assert set(display.marks_) == {"dropped", "halved", "not tried"} and display.best_ == (2.0, 1.0)
    assert display.marks_["dropped"].get_offsets().tolist() == [[1.5, 0.5]]
    assert display.path_.get_xydata().tolist() == [[0.5, 0.5], [0.5, 1.5], [1.5, 1.5]]
    assert [text.get_text() for text in display.text_].count("") == 3
    with_marks = pixels(display.figure_)
    without = pixels(ScoreGridDisplay.from_cv_results({k: v for k, v in results.items() if k != "status"}).figure_)
    assert with_marks.shape != without.shape or (with_marks != without).any()
    assert near(with_marks, RED, 0.02).any()


def test_a_machine_with_a_search_inside_is_drawn(moons) -> None:
    from maxmargin.selection import LinearSVCCV

    model = LinearSVCCV(Cs=[0.01, 1.0], cv=3).fit(*moons)
    results = {**model.cv_results_, "param_gamma": np.ones(2)}
    assert ScoreGridDisplay.from_cv_results(results, path=True).scores.shape == (2, 1)


def test_grids_that_make_no_sense(moons) -> None:
    search = GridSearchCV(LinearSVC(), {"C": [0.1, 1]}, cv=2).fit(*moons)
    with pytest.raises(ValueError, match="'gamma' is not one parameter of this search, which tried C"):
        ScoreGridDisplay.from_estimator(search)
    with pytest.raises(ValueError, match="score='nonsense'"):
        ScoreGridDisplay.from_cv_results(search.cv_results_, score="nonsense")
    with pytest.raises(ValueError, match="has no cv_results_"):
        ScoreGridDisplay.from_estimator(LinearSVC().fit(*moons))


@pytest.mark.parametrize("model", [
    SVC(working_set_size=32), SVC(), NuSVC(nu=0.1), SVR(), NuSVR(), OneClassSVM(nu=0.1), LinearSVC(), LinearSVR(),
    LinearSVC(solver="ocas"), LinearSVC(solver="descent"), BudgetSVC(budget=10), DCSVC(levels=1, k=2), DCSVR(levels=1, k=2),
], ids=lambda model: type(model).__name__)  # fmt: skip
@pytest.mark.parametrize("classes", [2, 4])
def test_costs_are_seconds_and_add_up(model, classes) -> None:
    X, y = make_blobs(200, centers=classes, random_state=0, cluster_std=3)
    model.set_params(**({"n_jobs": 1} if hasattr(model, "n_jobs") else {})).fit(X, y)
    display = CostDisplay.from_estimator(model)
    assert set(display.phases_) - {"other"} <= set(model.timings_)
    # a count among them (curves.NO_PHASES names those that are known) would be many times the whole
    assert sum(display.phases_.values()) == pytest.approx(model.timings_["total"], rel=0.5)
    assert [bar.get_width() for bar in display.bars_] == list(display.phases_.values())


def test_phases_of_threads_side_by_side_need_not_add_up() -> None:
    assert phases({"a": 3.0, "b": 2.0, "rows": 7.0, "total": 4.0}) == {"a": 3.0, "b": 2.0}


def test_calibration(moons) -> None:
    model = CalibratedClassifierCV(SVC(), ensemble=False).fit(*moons)
    assert CalibrationDisplay.from_estimator(model, *moons).ax_ is not None


# ---- the convention ---------------------------------------------------------------------------------------------


def test_displays_take_pipelines_and_searches_and_refuse_others(svc, moons) -> None:
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC(working_set_size=32)), {"svc__C": [1, 10]}, cv=2).fit(*moons)
    for display in (ConvergenceDisplay, CostDisplay):
        shown = display.from_estimator(search)
        assert shown.figure_ is shown.ax_.figure
        _, ax = plt.subplots()
        assert display.from_estimator(svc, ax=ax).ax_ is ax
        with pytest.raises(ValueError, match="has no"):
            display.from_estimator(StandardScaler().fit(moons[0]))
    with pytest.raises(ValueError, match="SVC has no levels_"):
        LevelsDisplay.from_estimator(svc)
    with pytest.raises(ValueError, match="quantity='nonsense'"):
        ConvergenceDisplay.from_estimator(svc, quantity="nonsense")


def test_without_matplotlib(svc, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'maxmargin\[plot\]'"):
        ConvergenceDisplay.from_estimator(svc)
