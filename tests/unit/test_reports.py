"""The report: what it says is what the fit says; one page that needs nothing else; any machine, any names."""

from __future__ import annotations

import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.reports.svg import Axis

VOID = {"meta", "line", "rect", "circle", "polyline", "br"}


class Page(HTMLParser):
    """Text by element; fails on tags that are not closed in order, and collects all attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(html)
        assert self.open == []
        self.text = " ".join(self.words)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data.strip())


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.2, random_state=0)


def told(model, X, y=None, **options) -> Page:
    return Page(mm.report(model, X, y, **options).html)


MACHINES = [
    mm.SVC(working_set_size=32), mm.NuSVC(nu=0.3), mm.OneClassSVM(nu=0.1), mm.SVR(), mm.NuSVR(), mm.LinearSVC(),
    mm.LinearSVR(), mm.DCSVC(levels=1, k=2), mm.DCSVC(stop_level=1, levels=1, k=2, random_state=0), mm.DCSVR(levels=1, k=2),
    mm.BudgetSVC(budget=20, random_state=0),
]  # fmt: skip


@pytest.mark.parametrize("model", MACHINES, ids=lambda model: type(model).__name__)
def test_every_machine_has_a_page_that_stands_alone(moons, model) -> None:
    X, y = moons
    page = told(model.fit(X, y), X, y)
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(page.tags)
    assert not [value for _, value in page.attributes if value and re.search(r"https?:|//|url\(|javascript:", value)]
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href")]
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    for heading in ("What is proven", "How it got there", "The samples", "Parameters", "How to repeat it"):
        assert heading in page.words
    assert model.status_ in page.text and not re.search(r"\bnan\b", page.text)
    for name in model.get_params():
        assert name in page.words


def test_the_certificate_is_that_of_the_fit(moons) -> None:
    X, y = moons
    model = mm.SVC(C=10).fit(X, y)
    text = told(model, X, y, certify=True).text
    assert "The fit converged" in text and f"at most {model.dual_gap_:.3g} above the best possible" in text
    assert f"objective is {model.objective_:.10g}" in text and "Judged once more in plain NumPy" in text
    answer = mm.certify_fit(model, X, y)
    assert f"lower bound {answer.dual:.10g}" in text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stopped = mm.SVC(C=1e4, working_set_size=2, max_iter=3).fit(X, y)
    text = told(stopped, X, y).text
    assert "did not converge: the limit on turns (max_iter) came first" in text and "The fit converged" not in text


def test_what_is_not_proven_is_not_claimed(moons) -> None:
    X, y = moons
    budgeted = told(mm.BudgetSVC(budget=20, random_state=0).fit(X, y), X, y, certify=True).text
    assert "nothing is proven" in budgeted and "best possible, " not in budgeted and "could not be judged" in budgeted
    early = told(mm.DCSVC(stop_level=1, levels=1, k=2, random_state=0).fit(X, y), X, y).text
    assert "the whole problem was not solved" in early and "Nothing is known about the objective of the whole" in early


def test_a_model_of_another_program(moons, tmp_path) -> None:
    X, y = moons
    mm.save(mm.SVC().fit(X, y), tmp_path / "m", format="libsvm")
    page = told(mm.load(tmp_path / "m"), X, y)
    assert "read from a file of another program" in page.text and "above the best possible" not in page.text


def test_confusions(moons) -> None:
    X, y = make_blobs(400, centers=3, cluster_std=3, random_state=0)
    names = np.array(["cat", "dog & <b>bird</b>", "fish"])
    model = mm.SVC().fit(X, names[y])
    page = told(model, X, names[y])
    assert page.words.count("dog & <b>bird</b>") >= 2
    predicted = model.predict(X)
    for true in names:
        for guess in names:
            assert f"{int(((names[y] == true) & (predicted == guess)).sum())}" in page.words
    assert f"{100 * model.score(X, names[y]):.2f} %" in page.words


def test_names_cannot_break_the_page(moons) -> None:
    X, y = moons
    evil = "</td></table><script>alert(1)</script>\"'>"
    model = mm.SVC().fit(X, np.where(y, evil, "good"))
    page = told(model, X, np.where(y, evil, "good"), title=evil, command=evil)
    assert "script" not in page.tags and evil in page.text


def test_many_classes_list_the_largest_confusions() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = rng.integers(20, size=600)
    page = told(mm.SVC(gamma=0.1).fit(X, y), X, y)
    assert "Largest confusions" in page.words and "Confusion matrix" not in page.words


def test_numbers_to_learn(moons) -> None:
    X, _ = moons
    y = X[:, 0] + 0.1 * X[:, 1]
    model = mm.SVR(C=10).fit(X, y)
    page = told(model, X, y)
    assert f"{model.score(X, y):.4f}" in page.words and "Residuals (true − predicted)" in page.words


def test_sparse_frames_pipelines_searches_and_no_labels(moons) -> None:
    X, y = moons
    frame = pd.DataFrame(X, columns=["a", "b"])
    search = GridSearchCV(make_pipeline(StandardScaler(), mm.SVC()), {"svc__C": [1, 10]}, cv=2).fit(frame, y)
    assert "inside GridSearchCV" in told(search, frame, y).text
    model = mm.SVC().fit(X, y)
    assert "sparse (CSR), float64" in told(model, sp.csr_matrix(X), y).text
    assert "right on these samples" not in told(model, X).text
    assert told(model, X.tolist(), y.tolist()).text.count("300") >= 1


def test_many_samples_are_judged_on_some(moons, monkeypatch) -> None:
    monkeypatch.setattr("maxmargin.reports.quality.MOST_ROWS", 100)
    X, y = moons
    for form in (X, sp.csr_matrix(X), pd.DataFrame(X)):
        model = mm.SVC().fit(np.asarray(X), y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert "On 100 of the 300 samples, drawn at random." in told(model, form, y).text


def test_uneven_features_are_told(moons) -> None:
    X, y = moons
    assert "scale them" in told(mm.SVC().fit(X * [1, 1e4], y), X * [1, 1e4], y).text
    assert "scale them" not in told(mm.SVC().fit(X, y), X, y).text


def test_the_same_samples_have_the_same_fingerprint(moons) -> None:
    X, y = moons
    model = mm.SVC().fit(X, y)

    def print_of(X, y) -> str:
        return re.search(r"SHA-256 (\w{32})", told(model, X, y).text)[1]

    assert print_of(X, y) == print_of(X.copy(), y.copy()) != print_of(X[::-1].copy(), y)
    assert print_of(X, y) != print_of(X, 1 - y)


def test_saving_and_notebooks(moons, tmp_path) -> None:
    X, y = moons
    page = mm.report(mm.SVC().fit(X, y), X, y, path=tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page.html
    assert page._repr_html_().startswith("<iframe") and "<html" not in page._repr_html_()
    with pytest.raises(ValueError, match="has no status_"):
        mm.report(StandardScaler().fit(X), X)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[1.0], [1.0, 1.0], [1e-300, 1e300], [-3.0, 5.0], [0.0], [1e-9, 2e-9], [np.nan]])
def test_axes_hold_all_values_and_have_some_ticks(values, log) -> None:
    axis = Axis.over(values, 0.0, 100.0, log)
    there = np.array([v for v in values if np.isfinite(v) and (v > 0 or not log)])
    assert ((axis(there) >= -1e-6) & (axis(there) <= 100 + 1e-6)).all()
    ticks = axis.ticks()
    assert 1 <= len(ticks) <= 8 and ticks == sorted(set(ticks))
    assert all(-1e-6 <= axis(tick) <= 100 + 1e-6 for tick in ticks)


# ---- notebooks --------------------------------------------------------------------------------------------------


def test_a_fitted_machine_in_a_notebook_shows_how_it_ended(moons) -> None:
    X, y = moons
    model = mm.SVC()
    before = model._repr_mimebundle_()
    assert "maxmargin-fit" not in before["text/html"] and before["text/plain"] == "SVC()"
    model.fit(X, y)
    for html in (model._repr_mimebundle_()["text/html"], model._repr_html_()):
        line = re.match(r'<div class="maxmargin-fit"[^>]*>([^<]*)</div>', html)[1]
        assert line.startswith("converged · gap ") and re.search(r" % of the objective · [\d.e-]+ s$", line)
        assert "sk-top-container" in html  # scikit-learn's drawing is all there
    assert model._repr_mimebundle_()["text/plain"] == repr(model) == "SVC()"
    budgeted = mm.BudgetSVC(budget=20).fit(X, y)._repr_html_()
    assert "completed · " in budgeted and "gap" not in re.match(r"<div[^>]*>([^<]*)", budgeted)[1]
    assert "SVC" in make_pipeline(StandardScaler(), model)._repr_html_()


def test_the_display_option_is_respected(moons) -> None:
    import sklearn

    model = mm.SVC().fit(*moons)
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_() and not hasattr(model, "_repr_html_")
