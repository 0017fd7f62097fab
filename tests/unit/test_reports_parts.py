"""Parts of the report by their definitions: where charts put values, what tables, bars and sentences say."""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.reports import page, quality, sections, svg, words
from maxmargin.reports.svg import Axis

LEFT, RIGHT, TOP, BOTTOM = 68, 370, 10, 190  # the frame of a chart of 380 × 230


def elements(html: str, tag: str, style: str = "") -> list[dict[str, str]]:
    """The attributes of each element, and its text."""
    found = re.findall(rf"<{tag}( [^>]*?)/?>(?:([^<]*)</{tag}>)?", html)
    every = [dict(re.findall(r'([\w-]+)="([^"]*)"', given)) | {"text": text} for given, text in found]
    return [e for e in every if style in e.get("class", "").split() or not style]


# ---- axes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "log", "low", "high"), [
    ([3, -1, 2], False, -1, 3), ([3, np.nan, np.inf, 2], False, 2, 3), ([0.5, 3], True, 0.1, 10), ([0, -1, 3], True, 1, 10),
    ([0.5], True, 0.1, 1), ([10], True, 10, 100), ([1, 1], True, 1, 10), ([0.01, 1000], True, 0.01, 1000),
    ([2, 0.2], True, 0.1, 10), ([4], False, 2, 6), ([-4, -4], False, -6, -2), ([0], False, -0.5, 0.5), ([], False, 0, 1),
    ([np.nan], False, 0, 1), ([], True, 0.1, 1), ([0, -2], True, 0.1, 1), ([0, 2], False, 0, 2), ([1, -1, 0], False, -1, 1),
])  # fmt: skip
def test_an_axis_holds_what_is_there(values, log, low, high) -> None:
    axis = Axis.over(values, 5.0, 9.0, log)
    assert (axis.low, axis.high) == (pytest.approx(low), pytest.approx(high))
    assert (axis.begin, axis.end, axis.log) == (5, 9, log)
    assert Axis.over([1, 2], 0, 1).log is False and Axis(1, 2, 0, 1).log is False


@pytest.mark.parametrize(("begin", "end"), [(0.0, 100.0), (190.0, 10.0)])
def test_values_go_to_their_places(begin, end) -> None:
    for share in (0, 0.25, 0.5, 1, -0.5, 1.5):
        assert Axis(-3, 5, begin, end)(-3 + 8 * share) == pytest.approx(begin + share * (end - begin))
        assert Axis(1e-3, 1e5, begin, end, True)(10 ** (-3 + 8 * share)) == pytest.approx(begin + share * (end - begin))
    assert np.isfinite(Axis(1e-3, 1e5, begin, end, True)(np.array([0.0, -1.0]))).all()


@pytest.mark.parametrize(("low", "high", "ticks"), [
    (0, 1, [0, 0.5, 1]), (0, 4, [0, 1, 2, 3, 4]), (0, 8, [0, 2, 4, 6, 8]), (0, 20, [0, 5, 10, 15, 20]),
    (0, 40, [0, 10, 20, 30, 40]),
    (0, 9, [0, 5]), (0.5, 4.4, [1, 2, 3, 4]), (-3, 3, [-2, 0, 2]), (-0.3, 0.1, [-0.3, -0.2, -0.1, 0, 0.1]),
    (0, 30, [0, 10, 20, 30]),
    (100, 104, [100, 101, 102, 103, 104]), (0, 0.3, [0, 0.1, 0.2, 0.3]),
    (-20, -1, [-20, -15, -10, -5]), (0, 21, [0, 10, 20]),
    (0, 4.1, [0, 2, 4]),
])  # fmt: skip
def test_ticks_are_multiples_of_1_2_or_5(low, high, ticks) -> None:
    assert Axis(low, high, 0, 1).ticks() == pytest.approx(ticks, abs=1e-12)


@pytest.mark.parametrize(("lowest", "highest", "step"), [
    (0, 1, 1), (-3, 2, 1), (-3, 3, 2), (0, 10, 2), (0, 11, 3), (-300, 300, 120),
])  # fmt: skip
def test_ticks_of_a_logarithmic_axis_are_powers_of_ten(lowest, highest, step) -> None:
    ticks = Axis(10.0**lowest, 10.0**highest, 0, 1, True).ticks()
    assert ticks == pytest.approx([10.0**k for k in range(lowest, highest + 1, step)])


# ---- charts -------------------------------------------------------------------------------------------------------------


def test_the_frame_names_axes_and_ticks() -> None:
    html = svg.lines([(np.array([0.0, 4.0]), np.array([0.0, 8.0]), "c0")], "A <label>", "x & so", "y & so", False)
    head = '<svg viewBox="0 0 380 230" role="img" aria-label="A &lt;label&gt;"><title>A &lt;label&gt;</title>'
    assert html.startswith(head)
    grid, ticks, names = elements(html, "line", "grid"), elements(html, "text", "tick"), elements(html, "text", "name")
    places = [BOTTOM + k / 4 * (TOP - BOTTOM) for k in range(5)]
    assert [(line["x1"], line["x2"]) for line in grid] == [("68", "370")] * 5
    assert [float(line["y1"]) for line in grid] == [float(line["y2"]) for line in grid] == places
    up, along = ticks[:5], ticks[5:]
    assert [t["text"] for t in up] == ["0", "2", "4", "6", "8"] and {t["text-anchor"] for t in up} == {"end"}
    assert [float(t["y"]) - 4 for t in up] == places and {float(t["x"]) for t in up} == {LEFT - 6}
    assert [t["text"] for t in along] == ["0", "1", "2", "3", "4"] and {float(t["y"]) for t in along} == {BOTTOM + 16}
    assert [float(t["x"]) for t in along] == pytest.approx([LEFT + k / 4 * (RIGHT - LEFT) for k in range(5)], abs=0.05)
    assert [t["text-anchor"] for t in along] == ["middle"] * 4 + ["end"]  # or it would be cut off
    assert [n["text"] for n in names] == ["x &amp; so", "y &amp; so"]
    assert float(names[0]["x"]) == (LEFT + RIGHT) / 2 and names[0]["y"] == "224"
    assert names[1]["transform"] == f"translate(11 {(TOP + BOTTOM) / 2}) rotate(-90)"


@pytest.mark.parametrize(("last", "anchor"), [(345.0, "middle"), (353.9, "middle"), (354.1, "end"), (369.0, "end")])
def test_a_tick_near_the_edge_ends_there(last, anchor) -> None:
    x, y = Axis(0, 1, LEFT, last), Axis(0, 1, BOTTOM, TOP)
    assert elements("".join(svg._frame(x, y, "", "")), "text", "tick")[-1]["text-anchor"] == anchor


def points(text: str) -> np.ndarray:
    return np.array([[float(v) for v in pair.split(",")] for pair in text.split()]).reshape(-1, 2)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("n", [1, 2, 40, 41, 400, 401, 1000])
def test_curves_join_what_is_there(log, n) -> None:
    rng = np.random.default_rng(n)
    xs, ys = np.sort(rng.uniform(0, 50, n)), rng.uniform(0.5, 9, n)
    other = np.array([0.0, 25, 50, 51, 52]), np.array([0.1, np.nan, 10.0, 0.0 if log else 5.0, -1.0 if log else 5.0])
    html = svg.lines([(xs, ys, "c0"), (*other, "c1 dashed")], "l", "x", "y", log)
    x, y = Axis.over(np.r_[xs, other[0]], LEFT, RIGHT), Axis.over(np.r_[ys, other[1]], BOTTOM, TOP, log)
    first, second = elements(html, "polyline", "curve")
    assert (first["class"], second["class"]) == ("curve c0", "curve c1 dashed")
    there = np.isfinite(other[1]) & ((other[1] > 0) | (not log))
    np.testing.assert_allclose(points(second["points"]), np.c_[x(other[0][there]), y(other[1][there])], atol=0.051)
    some = np.arange(n) if n <= 400 else np.unique(np.linspace(0, n - 1, 400).astype(int))
    np.testing.assert_allclose(points(first["points"]), np.c_[x(xs[some]), y(ys[some])], atol=0.051)
    assert len(some) <= 400 and {0, n - 1} <= {*some.tolist()}
    dots = elements(html, "circle", "c0")
    assert len(dots) == (n if n <= 40 else 0) and len(elements(html, "circle", "c1")) == there.sum()
    assert [(float(d["cx"]), float(d["cy"])) for d in dots] == [tuple(p) for p in points(first["points"])][: len(dots)]


@pytest.mark.parametrize(("shift", "zero"), [(0.0, True), (-20.0, False), (20.0, False)])
def test_a_histogram_has_a_bar_per_bin_and_group(shift, zero) -> None:
    rng = np.random.default_rng(0)
    groups = [("a", rng.normal(-1, 1, 90) + shift), ("b", rng.normal(1, 1, 60) + shift), ("none", np.zeros(0))]
    html = svg.histogram(groups, "label", "what")
    every = np.concatenate([values for _, values in groups])
    edges = np.linspace(every.min(), every.max(), 31)
    most = max(np.histogram(values, edges)[0].max() for _, values in groups)
    x = Axis(edges[0], edges[-1], LEFT, RIGHT)
    for k, (_, values) in enumerate(groups):
        counts, bars = np.histogram(values, edges)[0], elements(html, "rect", f"c{k}")
        some = np.flatnonzero(counts)
        assert len(bars) == len(some)
        for i, bar in zip(some, bars):
            assert float(bar["x"]) == pytest.approx(x(edges[i]), abs=0.06)
            assert float(bar["width"]) == pytest.approx((RIGHT - LEFT) / 30, abs=0.06)
            height = (BOTTOM - TOP) * counts[i] / most
            assert float(bar["height"]) == pytest.approx(height, abs=0.06)
            assert float(bar["y"]) + float(bar["height"]) == pytest.approx(BOTTOM, abs=0.11)
    lines = elements(html, "line", "zero")
    assert len(lines) == zero
    if zero:
        assert float(lines[0]["x1"]) == float(lines[0]["x2"]) == pytest.approx(x(0.0), abs=0.06)
        assert (lines[0]["y1"], lines[0]["y2"]) == (str(TOP), str(BOTTOM))
    assert [n["text"] for n in elements(html, "text", "name")] == ["what", "samples"]


@pytest.mark.parametrize(("values", "zero"), [
    ([0.0, 1, 2], False), ([-2.0, -1, 0], False), ([-1.0, 1], True), ([0.5, 2], False),
    ([-0.01, 1], True), ([-1, 0.01], True),
])  # fmt: skip
def test_zero_is_shown_where_values_are_on_both_sides(values, zero) -> None:
    html = svg.histogram([("", np.array(values))], "l", "x")
    assert len(elements(html, "line", "zero")) == zero
    ticks = [t["text"] for t in elements(html, "text", "tick")]
    assert ticks[0] == "0" and max(float(bar["height"]) for bar in elements(html, "rect")) == BOTTOM - TOP


def test_narrow_bars_can_be_seen_and_no_value_is_no_bar() -> None:
    bars = elements(svg.histogram([("", np.array([1.0, 2.0]))], "l", "x", bins=2000), "rect")
    assert [bar["width"] for bar in bars] == ["0.5", "0.5"]
    assert "rect" not in svg.histogram([("", np.zeros(0))], "l", "x")


def test_a_scatter_has_one_scale_and_the_line_of_equals() -> None:
    xs, ys = np.array([0.0, 1, 5]), np.array([2.0, -3, 4])
    html = svg.scatter(xs, ys, "l", "x", "y")
    x, y = Axis(-3, 5, LEFT, RIGHT), Axis(-3, 5, BOTTOM, TOP)
    dots = [(float(d["cx"]), float(d["cy"])) for d in elements(html, "circle", "c0")]
    np.testing.assert_allclose(dots, np.c_[x(xs), y(ys)], atol=0.051)
    (line,) = elements(html, "line", "zero")
    assert [float(line[name]) for name in ("x1", "y1", "x2", "y2")] == [LEFT, BOTTOM, RIGHT, TOP]


# ---- the page ---------------------------------------------------------------------------------------------------------


def test_the_document_is_title_policy_style_and_parts() -> None:
    html = page.document("a <title>", iter(["<p>one</p>", "<p>two</p>"]))
    assert html.startswith('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv=')
    assert html.count("a &lt;title&gt;") == 2 and html.endswith("<p>one</p>\n<p>two</p>\n</body></html>\n")
    for k in range(6):  # every colour that charts use has its rules, and a value in light and in dark
        assert f".curve.c{k} {{" in html and f".dot.c{k}, .bar.c{k} {{" in html and html.count(f"--c{k}: ") == 2
    assert "c6" not in html and ":root { color-scheme: light dark;" in html


def test_parts_of_the_page() -> None:
    assert page.section("a & b", "<p>", "", "</p>") == "<section><h2>a &amp; b</h2>\n<p>\n</p></section>"
    assert (page.text("a & b"), page.text("a", "soft")) == ("<p>a &amp; b</p>", '<p class="soft">a</p>')
    assert page.cards([("<1>", "a & b")]) == (
        '<div class="cards"><div class="card"><b>&lt;1&gt;</b><span>a &amp; b</span></div></div>'
    )
    chart = '<div class="chart"><h3>a &amp; b</h3><svg/></div>'
    assert page.charts(("a & b", "<svg/>"), ("none", "")) == f'<div class="charts">{chart}</div>'
    assert page.charts() == page.charts(("none", "")) == ""


def test_cells_are_numbers_to_the_right_or_text() -> None:
    html = page.table([(1234567, 0.123456, True, "a & b", None, 1e-9)], ("x & y", "z"))
    right = '<td class="number">{}</td>'.format
    cells = [right("1,234,567"), right("0.1235"), "<td>True</td>", "<td>a &amp; b</td>", "<td>None</td>", right("1e-09")]
    row = f'<tr class="rule">{"".join(cells)}</tr>'
    assert html == f'<div class="wide"><table><tr><th>x &amp; y</th><th>z</th></tr>{row}</table></div>'
    assert page.table([("a",), ("b",)]) == (
        '<div class="wide"><table><tr class="rule"><td>a</td></tr><tr class="rule"><td>b</td></tr></table></div>'
    )


@pytest.mark.parametrize(("values", "widths"), [
    ({"a": 2.0, "b": 1.0, "c": 0.0, "d": -3.0}, [70, 35, 0, 0]), ({"a": 0.25, "b": 0.5}, [35, 70]), ({"a": 0.0}, [0]),
    ({"a": -1.0, "b": 0.0}, [0, 0]), ({}, []),
])  # fmt: skip
def test_bars_are_parts_of_the_largest(values, widths) -> None:
    html = page.bars({f"<{name}>": value for name, value in values.items()})
    assert [float(w) for w in re.findall(r'style="width:([\d.]+)%"', html)] == widths
    assert re.findall(r'<div class="row"><span>&lt;(\w)&gt;</span>', html) == list(values)
    assert [e["text"] for e in elements(html, "span", "number")] == [f"{value:.3g}" for value in values.values()]
    assert [e["text"] for e in elements(page.bars(values, "<{}>".format), "span", "number")] == [
        f"&lt;{value}&gt;" for value in values.values()
    ]


def test_a_matrix_is_coloured_by_parts_of_its_rows() -> None:
    html = page.matrix(np.array([[3, 1], [0, 0]]), ["<a>", "b"])
    assert "true \\ predicted</th><th>&lt;a&gt;</th><th>b</th></tr>" in html
    cells = elements(html, "td")
    assert [(c["class"], c["style"], c["text"]) for c in cells] == [
        ("right", "--p:0.562", "3"), ("wrong", "--p:0.188", "1"), ("wrong", "--p:0.000", "0"), ("right", "--p:0.000", "0"),
    ]  # fmt: skip
    assert html.count("<th>&lt;a&gt;</th>") == html.count("<th>b</th>") == 2
    assert [c["text"] for c in elements(page.matrix(np.array([[1000]]), ["a"]), "td")] == ["1,000"]
    assert elements(page.matrix(np.array([[1]]), ["a"]), "td")[0]["style"] == "--p:0.750"


# ---- how good it is -----------------------------------------------------------------------------------------------------


def classifier(rows: int, classes: int, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(classes), rng.integers(classes, size=rows - classes)]
    X = np.c_[np.cos(y), np.sin(y)] * 2 + rng.normal(size=(rows, 2))
    return mm.SVC(gamma=0.5).fit(X, y), X, y


@pytest.mark.parametrize("classes", [2, 3, 12, 13])
def test_a_matrix_up_to_twelve_classes_and_the_largest_confusions_beyond(classes) -> None:
    model, X, y = classifier(300, classes)
    told, predicted = quality.quality(model, X, y), model.predict(X)
    html = "".join(told.body)
    counts = np.array([[((y == i) & (predicted == j)).sum() for j in range(classes)] for i in range(classes)])
    assert told.cards == [(f"{100 * (y == predicted).mean():.2f} %", "right on these samples")]
    assert ("<h3>Decision values</h3>" in html) == (classes == 2) == ("Samples of class" in html)
    if classes <= 12:
        assert page.matrix(counts, [str(k) for k in range(classes)]) in html and "Largest confusions" not in html
    else:
        wrong = [(-n, i, j) for (i, j), n in np.ndenumerate(counts) if i != j and n]
        rows = [(str(i), str(j), int(-n), int(counts[i].sum())) for n, i, j in sorted(wrong)[:12]]
        assert page.table(rows, ("true", "predicted as", "samples", "of")) in html and 'class="matrix"' not in html


def test_few_confusions_are_all_there_are() -> None:
    counts = np.diag(np.arange(1, 15))
    counts[3, 5], counts[2, 7] = 2, 9
    _, html = quality._confusion(counts, [f"n{k}" for k in range(14)])
    assert html == page.table([("n2", "n7", 9, 12), ("n3", "n5", 2, 6)], ("true", "predicted as", "samples", "of"))


def test_decision_values_are_shown_by_class() -> None:
    model, X, y = classifier(80, 2)
    values = model.decision_function(X)
    label = "Histogram of the decision values by class"
    chart = svg.histogram([("0", values[y == 0]), ("1", values[y == 1])], label, "decision value")
    html = "".join(quality.quality(model, X, y).body)
    assert chart in html
    assert '<p>Samples of class <span class="key c0">0</span> and <span class="key c1">1</span>.</p>' in html


def test_numbers_are_judged_by_their_residuals() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 1))
    y = X[:, 0] + 0.1 * rng.normal(size=700)
    model = mm.SVR().fit(X[:50], y[:50])
    told, residual = quality.quality(model, X, y), y - model.predict(X)
    assert told.cards == [(f"{model.score(X, y):.4f}", "R² on these samples"),
                          (f"{np.sqrt(np.mean(residual**2)):.4g}", "root mean squared error")]  # fmt: skip
    html = "".join(told.body)
    assert svg.histogram([("", residual)], "Histogram of the residuals", "true − predicted") in html
    dots = elements(html, "circle", "dot")
    assert len(dots) == 600 and len(elements("".join(quality.quality(model, X[:9], y[:9]).body), "circle", "dot")) == 9


def test_one_class_says_how_many_are_outside() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = mm.OneClassSVM(nu=0.2).fit(X)
    told = quality.quality(model, X, None)
    values = model.decision_function(X)
    assert told.cards == [(f"{100 * (values < 0).mean():.3g} %", "of these samples are outside")]
    chart = svg.histogram([("", values)], "Histogram of the decision values", "decision value; outside below 0")
    assert chart in told.body[1]
    edge = SimpleNamespace(decision_function=lambda X: np.array([0.0, -1.0, 1.0, 0.5]))
    assert quality._one_class(edge, None).cards[0][0] == "25 %"


@pytest.mark.parametrize("most", [99, 100, 101])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, pd.DataFrame])
def test_many_samples_are_judged_on_some_of_them(monkeypatch, most, form) -> None:
    monkeypatch.setattr(quality, "MOST_ROWS", most)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    given = form(X)
    model = mm.SVC().fit(given, y)
    told = quality.quality(model, given, y)
    matrix = [int(c["text"]) for c in elements(told.body[1], "td")]
    assert sum(matrix) == min(most, 100)
    note = "On 99 of the 100 samples, drawn at random."
    assert told.body[0] == (page.text(note, "soft") if most < 100 else "")
    some = np.sort(np.random.default_rng(0).permutation(100)[:most])
    assert matrix[0] + matrix[1] == (y[some] == -1).sum()
    assert quality.quality(model, given, None) == quality.Quality([], [])
    one = mm.OneClassSVM(nu=0.2).fit(given)
    assert sum(1 for _ in elements("".join(quality.quality(one, given, None).body), "rect")) > 0


# ---- sections ---------------------------------------------------------------------------------------------------------


class Machine:
    """What is asked of a fitted machine."""

    def __init__(self, **more: Any) -> None:
        usual = {"status_": "converged", "objective_": 2.0, "dual_gap_": 0.5, "timings_": {"total": 1.25, "solve": 1.0},
                 "tol": 1e-3}  # fmt: skip
        self.__dict__.update(usual | more)


GAP = ("25 %", "proven distance from the optimum")


@pytest.mark.parametrize(("more", "cards"), [
    ({}, [GAP, ("1.25 s", "training")]), ({"dual_gap_": math.nan}, [("1.25 s", "training")]), ({"timings_": {}}, [GAP]),
    ({"support_vectors_": np.zeros((1234, 1))}, [GAP, ("1,234", "support vectors"), ("1.25 s", "training")]),
    ({"support_vectors_": np.zeros((9, 1)), "support_": np.arange(4)},
     [GAP, ("4", "support vectors"), ("1.25 s", "training")]),
])  # fmt: skip
def test_key_figures(more, cards) -> None:
    assert sections._cards(Machine(**more)) == cards


def trace(*rows: tuple[int, float, float, float, float]) -> np.ndarray:
    """Problem, time, objective, lower bound, violation; the gap is their difference."""
    kind = [("problem", int), ("time", float), ("objective", float), ("dual", float), ("violation", float), ("gap", float)]
    return np.array([(*row, row[2] - row[3]) for row in rows], dtype=kind)


NAN = math.nan
RUN = [(0, 1.0, 5.0, 1.0, 0.5), (0, 2.0, 4.0, 2.0, 0.25), (0, 3.0, 3.0, 2.5, 0.125)]


@pytest.mark.parametrize(("rows", "titles"), [
    (None, []), ([], []), (RUN, ["Gap", "Objective and lower bound (dashed)"]),
    (RUN[:2], ["Gap", "Objective and lower bound (dashed)"]), (RUN[:1], ["Objective − lower bound"]),
    ([(k, *row[1:]) for k in (0, 1) for row in RUN], ["Gap, 2 problems"]),
    ([(0, t, o, NAN, NAN) for _, t, o, _, _ in RUN], ["Objective"]),
    ([(0, t, NAN, d, NAN) for _, t, _, d, _ in RUN], ["Lower bound"]),
    ([(0, t, o, NAN, v) for _, t, o, _, v in RUN], ["Violation", "Objective"]),
    ([(0, t, NAN, NAN, v) for _, t, _, _, v in RUN], ["Violation"]),
    ([(0, 1.0, 5.0, NAN, 0.5), (0, 2.0, NAN, 2.0, 0.25), (0, 3.0, 4.0, NAN, NAN)], ["Violation", "Objective"]),
])  # fmt: skip
def test_curves_of_what_was_recorded(rows, titles) -> None:
    machine = Machine() if rows is None else Machine(trace_=trace(*rows))
    told = list(sections._convergence(machine))
    assert [title for title, _ in told] == titles
    for title, html in told:
        if title == "Objective − lower bound":
            assert html == page.text("One turn was enough: there is no curve.", "soft")
            continue
        ys, log = elements(html, "text", "tick"), not title.startswith(("Objective", "Lower"))
        label = {"G": "objective − lower bound", "V": "violation"}.get(title[0], "objective")
        assert [n["text"] for n in elements(html, "text", "name")] == ["seconds", label] and ys
        several = title.endswith("problems")
        assert len(elements(html, "polyline")) == (2 if several or "dashed" in title else 1)
        if title == "Gap":
            gaps = [row[2] - row[3] for row in rows]
            x, y = Axis.over([row[1] for row in rows], LEFT, RIGHT), Axis.over(gaps, BOTTOM, TOP, log)
            expected = np.c_[x([row[1] for row in rows]), y(gaps)]
            np.testing.assert_allclose(points(elements(html, "polyline")[0]["points"]), expected, atol=0.06)


def test_levels_have_a_row_each() -> None:
    kind = [("stage", "U8"), ("level", int), ("clusters", int), ("n_support", int), ("time_clustering", float),
            ("time_solving", float)]  # fmt: skip
    levels = np.array([("level", 2, 16, 100, 0.5, 0.25), ("whole", 0, 1, 1234, 0.0, 2.0)], dtype=kind)
    rows = [("level 2", 16, 100, 0.75), ("whole", 1, 1234, 2.0)]
    head = ("stage", "clusters", "support vectors", "seconds")
    assert list(sections._levels(Machine(levels_=levels))) == [("Levels", page.table(rows, head))]
    assert list(sections._levels(Machine())) == list(sections._levels(Machine(levels_=levels[:0]))) == []
    costs = page.bars({"solve": 1.0, "other": 0.25})
    assert sections._costs(Machine()) == ("Seconds per phase", costs)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, pd.DataFrame])
@pytest.mark.parametrize(("spreads", "uneven", "constant"), [
    ((1, 100), None, 0), ((1, 100.1), "1e+02", 0), ((1, 300, 0), "3e+02", 1), ((5, 0, 0), None, 2),
    ((0.01, 3, 1), "3e+02", 0),
    ((1, 1), None, 0), ((0, 0), None, 2), ((5,), None, 0), ((1, 150), "1.5e+02", 0),
])  # fmt: skip
def test_facts_of_the_samples(form, spreads, uneven, constant) -> None:
    X = np.array([[-1.0] * len(spreads), [1.0] * len(spreads), [-1.0] * len(spreads), [1.0] * len(spreads)]) * spreads
    html = sections._data(form(X), None, True)
    stored, share = 4 * sum(s > 0 for s in spreads), sum(s > 0 for s in spreads) / len(spreads)
    given = form(X)
    if sp.issparse(given):
        low, high = (f"{v:.4g}" for v in (given.data.min(), given.data.max())) if given.nnz else ("", "")
    else:
        low, high = f"{X.min():.4g}", f"{X.max():.4g}"
    percent = f"{100 * share:.3g} %"
    rows = [("samples", 4), ("features", len(spreads)),
            ("stored as", f"{'sparse (CSR)' if sp.issparse(given) else 'dense'}, float64"),
            ("not zero", f"{stored} values, {percent}"), *([("values", f"{low} to {high}")] if low else []),
            *([("constant features", constant)] if constant else [])]  # fmt: skip
    assert page.charts(("Summary", page.table(rows))) in html
    assert ("scale them" in html) == (uneven is not None) and (uneven is None or f"by a factor of {uneven}:" in html)
    np.testing.assert_allclose(sections._spread(given), spreads)


def test_spreads_are_standard_deviations() -> None:
    X = np.random.default_rng(0).normal(3, 2, size=(30, 4)) * (np.random.default_rng(1).random((30, 4)) < 0.5)
    for form in (X, sp.csr_matrix(X), sp.csc_matrix(X)):
        np.testing.assert_allclose(sections._spread(form), X.std(axis=0), rtol=1e-12)
    assert np.isfinite(sections._spread(sp.csr_matrix(np.full((7, 1), 0.1)))).all()  # no root of a rounding below 0


@pytest.mark.parametrize("classes", [1, 2, 15, 16, 20])
def test_samples_per_class_the_largest_first(classes) -> None:
    sizes = np.random.default_rng(classes).permutation(classes) + 1
    y = np.repeat([f"c{k:02d}" for k in range(classes)], sizes)
    title, html = sections._labels(y, True)
    order = sorted(range(classes), key=lambda k: -sizes[k])[:15]
    assert html == page.bars({f"c{k:02d}": float(sizes[k]) for k in order}, "{:,.0f}".format)
    assert title == "Samples per class" + (f", the 15 largest of {classes}" if classes > 15 else "")
    assert sections._labels(None, True) == sections._labels(None, False) == ("Labels", "")
    numbers = np.array([0.5, 1.5, 7])
    shown = svg.histogram([("", numbers)], "Histogram of the targets", "target")
    assert sections._labels(numbers, False) == ("Targets", shown)


def test_parameters_say_what_is_not_the_default() -> None:
    weights = dict.fromkeys(range(30), 1.0)
    model = mm.SVC(C=2.5, gamma=0.5, class_weight=weights)
    html, default = sections._parameters(model), mm.SVC().get_params(deep=False)
    changed = {"C": "default: 1.0", "gamma": f"default: {default['gamma']!r}", "class_weight": "default: None"}
    text = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    text["class_weight"] = repr(weights)[:57] + "…"
    assert html == page.section("Parameters", page.table([(n, text[n], changed.get(n, "")) for n in sorted(text)]))
    one = sections._parameters(mm.SVC(C=1))  # is no 1.0
    assert "<td>1</td><td>default: 1.0</td>" in one


@pytest.mark.parametrize(("length", "cut"), [(58, False), (60, False), (61, True), (90, True)])
def test_long_values_are_cut(length, cut) -> None:
    text = "'" + "x" * (length - 2) + "'"
    assert sections._short("x" * (length - 2)) == (text[:57] + "…" if cut else text)


def test_how_to_repeat_it() -> None:
    X, y = np.eye(2), np.array([0, 1])
    model = mm.SVC(C=3).fit(X, y)
    lines = "from maxmargin import SVC\n\nmodel = SVC(C=3).fit(X, y)"
    assert f"<pre>{lines}</pre>" in sections._repeat(model, model, X, y, None)
    assert f"<pre>{lines}  # inside Outer</pre>" in sections._repeat(type("Outer", (), {})(), model, X, y, None)
    assert "<pre>maxmargin train &lt;a&gt;</pre>" in sections._repeat(model, model, X, y, "maxmargin train <a>")


def test_the_fingerprint_is_of_values_shape_and_labels() -> None:
    X, y = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]]), np.array([1, 2])
    told = sections._fingerprint(X, y)
    digest = hashlib.sha256(b"(2, 3)" + X.tobytes() + b"[1, 2]").hexdigest()
    assert told == digest[:32]
    assert sections._fingerprint(X, None) == hashlib.sha256(b"(2, 3)" + X.tobytes()).hexdigest()[:32]
    assert sections._fingerprint(np.asfortranarray(X), y) == told
    for other in (sp.csr_matrix(X), X.reshape(3, 2), X + 1, np.array([["a", "b", "c"]] * 2, dtype=object)):
        assert sections._fingerprint(other, y) != told and len(sections._fingerprint(other, y)) == 32
    A = sp.csr_matrix(X)
    for k, part in enumerate((A.data, A.indices)):
        B = A.copy()
        (B.data, B.indices)[k][0] += 1
        assert sections._fingerprint(B, y) != sections._fingerprint(A, y) and len(part)
    objects = np.array([["a", 1], [None, 2.5]], dtype=object)
    digest = hashlib.sha256(b"(2, 2)" + repr(objects.tolist()).encode()).hexdigest()
    assert sections._fingerprint(objects, None) == digest[:32]


# ---- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "sentence"), [
    ("converged", "The fit converged: it reached"), ("completed", "The fit made all the passes"),
    ("early", "The fit stopped at a level"), ("max_time", "did not converge: the time limit"),
    ("new", "did not converge: new."),
    ("max_iter", "the limit on turns"), ("stalled", "no more progress"), ("interrupted", "it was interrupted"),
    ("callback", "the callback stopped it"),
])  # fmt: skip
def test_the_end_of_a_fit_in_words(status, sentence) -> None:
    told = words.certificate(Machine(status_=status))
    assert sentence in told[0] and len(told) == 2
    assert ("did not converge" in told[0]) == (status not in ("converged", "completed", "early"))


@pytest.mark.parametrize(("more", "sentences"), [
    ({}, ["has one below 1.5: it is at most 0.5 above the best possible, 25 % of it."]),
    ({"dual_gap_": NAN}, ["Its objective is 2. This engine has no lower bound"]),
    ({"dual_gap_": NAN, "objective_": NAN}, ["Nothing is known about the objective"]),
    ({"kkt_violation_": 0.125}, ["below 1.5", "violated by 0.125 at most (tol = 0.001)."]),
    ({"kkt_violation_": NAN}, ["below 1.5"]), ({"level_": 0, "level_gap_": 0.5, "level_objective_": 7.0}, ["below 1.5"]),
    ({"level_": 2, "level_gap_": NAN}, ["below 1.5"]), ({"level_": 2}, ["below 1.5"]), ({"level_gap_": 0.5}, ["below 1.5"]),
    ({"level_": 2, "level_gap_": 0.5, "level_objective_": 7.0},
     ["below 1.5", "The model is of level 2, which solves another problem"]),
])  # fmt: skip
def test_what_is_proven_in_words(more, sentences) -> None:
    told = words.certificate(Machine(**more))
    assert len(told) == 1 + len(sentences) and all(part in line for part, line in zip(sentences, told[1:]))
    assert len(words.certificate(Machine(status_="unknown", **more))) == 1


def test_what_was_judged_once_more_in_words() -> None:
    answer = SimpleNamespace(primal=2.0, dual=1.5, gap=0.5, relative_gap=0.25, violation=0.125, infeasibility=1e-9)
    told = words.checked(answer)
    assert told.endswith("objective 2, lower bound 1.5, gap 0.5 (25 %), violation 0.125, constraints kept to 1e-09.")
    assert "(0 %)" in words.checked(SimpleNamespace(**vars(answer) | {"relative_gap": -1e-12}))


def test_the_title_and_the_file(tmp_path) -> None:
    X, y = np.eye(4).tolist(), [0, 1, 0, 1]
    model = mm.SVC().fit(X, y)
    assert mm.report(model, X, y).title == "SVC on 4 samples × 4 features"
    assert mm.report(model, X, y, title="mine", path=tmp_path / "r.html").title == "mine"
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<title>mine</title>" in html and list(tmp_path.iterdir()) == [tmp_path / "r.html"]
    order = re.findall(r"<h2>([^<]*)</h2>", html)
    assert order == ["What is proven", "How it got there", "How good it is on these samples", "The samples", "Parameters",
                     "How to repeat it"]  # fmt: skip
    assert '<p class="badge good">SVC: converged</p>' in html


def test_machines_see_frames_as_they_saw_them_in_the_fit() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    y = (frame["a"] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of scikit-learn's: names are missing
        for model in (mm.SVC().fit(frame, y), make_pipeline(StandardScaler(), mm.SVC()).fit(frame, y)):
            html = mm.report(model, frame, y, certify=True).html
            assert f"{100 * model.score(frame, y):.2f} %" in html
