"""Scaling by its definition: where each value goes, what the file of ranges says, what is refused; and how good is good."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import data
from maxmargin.cli import scale
from maxmargin.cli.console import Console
from maxmargin.cli.scale import Ranges
from maxmargin.cli.scores import cross_validated, judged, predicted_lines

FORMS = [np.asarray, sp.csr_matrix, sp.csc_matrix]


def of(X, y=None, lower=-1.0, upper=1.0, labels=None) -> Ranges:
    return Ranges.of(SimpleNamespace(lower=lower, upper=upper, y=labels), X, y)


def table(rng: np.random.Generator) -> np.ndarray:
    """Mostly zeros; a column that is constant, one that is zero, one without zeros, one that is negative."""
    X = rng.normal(size=(12, 7)) * (rng.random((12, 7)) < 0.5)
    X[:, 1], X[:, 2], X[:, 3], X[:, 4] = 3.0, 0.0, rng.uniform(1, 2, 12), -np.abs(X[:, 4])
    return X


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("lower", "upper"), [(-1, 1), (0, 1), (0.25, 3), (-5, -2), (-1, 3)])
@pytest.mark.parametrize("cells", [1, 15, 1 << 22])
def test_each_value_goes_to_its_place_between_the_limits(form, lower, upper, cells, monkeypatch) -> None:
    monkeypatch.setattr(scale, "CELLS", cells)
    X, T = table(np.random.default_rng(0)), table(np.random.default_rng(1))
    ranges = of(form(X), None, lower, upper)
    low, high = X.min(axis=0), X.max(axis=0)
    assert (ranges.low == low).all() and (ranges.high == high).all() and ranges.labels is None
    for A in (X, T):
        told = ranges.scaled(form(A))
        assert told.format == "csr" and told.shape == A.shape and (told.data != 0).all()
        expected = np.zeros(A.shape)
        for j in np.flatnonzero(high > low):
            expected[:, j] = lower + (upper - lower) * (A[:, j] - low[j]) / (high[j] - low[j])
        np.testing.assert_allclose(told.toarray(), expected, rtol=1e-13, atol=1e-14)
    told = ranges.scaled(form(X)).toarray()[:, high > low]
    assert (told.min(axis=0) == lower).all() and (told.max(axis=0) == upper).all()  # exactly, whatever was rounded


@pytest.mark.parametrize("form", FORMS)
def test_what_is_scaled_stays_as_it_was(form) -> None:
    X = np.abs(table(np.random.default_rng(0)))
    given = form(X)
    of(given, None, 0, 1).scaled(given)
    assert (np.asarray(given.todense() if sp.issparse(given) else given) == X).all()


def test_ends_are_met_where_arithmetic_would_miss_them() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        X, (lower, upper) = rng.normal(size=(3, 1)), np.sort(rng.normal(size=2))
        told = of(X, None, lower, upper).scaled(X).toarray()
        assert told.max() == upper and told.min() == lower


@pytest.mark.parametrize("labels", [None, (0.0, 10.0), (-3.0, -1.0)])
def test_the_file_of_ranges_holds_limits_and_ends_of_what_varies(tmp_path, labels) -> None:
    X = np.array([[0.1, 5, 0, -1], [1 / 3, 5, 0, 0], [0.2, 5, 0, 7]])
    ranges = of(X, np.array([1.0, 2.5, 2.0]), -2, 0.5, labels)
    ranges.write(tmp_path / "ranges")
    head = "" if labels is None else f"y\n{labels[0]:g} {labels[1]:g}\n1 2.5\n"
    ends = [float(word) for word in (tmp_path / "ranges").read_text().split()[-6:]]
    assert (tmp_path / "ranges").read_text().startswith(head + "x\n-2 0.5\n1 0.1")
    assert ends == [1, 0.1, 1 / 3, 4, -1, 7]  # to the last bit
    again = Ranges.read(tmp_path / "ranges", X[:, [0, 1, 3]] @ np.eye(3, 4) * 0, Console())
    assert (again.lower, again.upper, again.labels) == (-2, 0.5, None if labels is None else (*labels, 1.0, 2.5))
    assert again.low.tolist() == [0.1, 0, 0, -1] and again.high.tolist() == [1 / 3, 0, 0, 7]
    assert (again.scaled(X) != ranges.scaled(X)).nnz == 0
    narrow = Ranges.read(tmp_path / "ranges", X[:, :1], Console())  # of data that lack the last features
    assert narrow.low.tolist() == [0.1] and narrow.high.tolist() == [1 / 3]


@pytest.mark.parametrize("form", FORMS)
def test_features_without_ranges_are_told_if_they_have_values(tmp_path, capsys, form) -> None:
    (tmp_path / "ranges").write_text("x\n0 1\n2 0 2\n9 0 1\n")
    X = np.array([[0, 1, 0, 4.0, 0], [0, 0, 0, 0, 5]])
    told = Ranges.read(str(tmp_path / "ranges"), form(X), Console())
    assert told.low.tolist() == [0] * 5 and told.high.tolist() == [0, 2, 0, 0, 0]
    expected = f"warning: 2 features, such as 4, are not in {tmp_path / 'ranges'} and are left out\n"
    assert capsys.readouterr().err == expected
    assert told.scaled(form(X)).toarray().tolist() == [[0, 0.5, 0, 0, 0], [0, 0, 0, 0, 0]]
    Ranges.read(str(tmp_path / "ranges"), form(X[:, :2]), Console())
    Ranges.read(str(tmp_path / "ranges"), form(np.c_[X[:, :2], [0, 0]]), Console())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", [
    "", "x", "x\n-1\n", "z\n-1 1\n", "y\n0 1\n", "y\n0 1\n1 2\n", "y\n0 1\n1 2\n3\nx\n-1 1\n", "x\n-1 1\n1 0\n",
    "x\n-1 1\n0 1 2\n",
    "x\n-1 1\n-3 1 2\n1 1 2\n", "x\n-1 1\n1.5 1 2\n1 2 3\n", "x\n-1 1\n1 0 inf\n", "x\n-1 1\n1 nan 1\n2 0 1\n",
    "x\n-1 1\n1 a 2\n",
    "x\na 1\n1 0 2\n", "x\n-1 1\n1 0 2 3\n",
])  # fmt: skip
def test_what_is_no_file_of_ranges(tmp_path, text) -> None:
    (tmp_path / "ranges").write_text(text)
    with pytest.raises(ValueError, match="is no file of ranges"):
        Ranges.read(str(tmp_path / "ranges"), np.ones((2, 3)), Console())


def test_a_file_of_limits_alone_leaves_all_out(tmp_path) -> None:
    (tmp_path / "ranges").write_text("x\n-1 1\n")
    assert Ranges.read(str(tmp_path / "ranges"), np.ones((2, 3)), Console()).scaled(np.ones((2, 3))).nnz == 0


@pytest.mark.parametrize(("limits", "y"), [((0, 10), [1.0, 2.0, 4.0]), ((-3, -1), [-2.0, 0.0, 5.0])])
def test_labels_go_to_their_limits(limits, y) -> None:
    y = np.array(y)
    lower, upper = limits
    told = of(np.eye(3), y, labels=limits)
    assert told.labels == (lower, upper, y.min(), y.max())
    np.testing.assert_allclose(told.scaled_labels(y), lower + (upper - lower) * (y - y.min()) / (y.max() - y.min()))
    assert of(np.eye(3), y).scaled_labels(y) is y
    with pytest.raises(ValueError, match="the labels are all 3"):
        of(np.eye(3), np.full(3, 3.0), labels=limits).scaled_labels(np.full(3, 3.0))


@pytest.mark.parametrize(("words", "code", "said"), [
    ("-l 1 -u 1", 2, "must be above"), ("-l 2 -u 1", 2, "must be above"), ("-y 1 1", 2, "must be above"),
    ("-y 2 1", 2, "must be above"), ("-l 0.5 -y 0 1", 0, ""), ("-s a -r b", 2, "not both"), ("-s a", 0, ""),
    ("--label none --data-format csv -y 0 1", 2, "are no numbers"),
])  # fmt: skip
def test_limits_that_make_sense(maxmargin, folder, words, code, said) -> None:
    (folder / "d").write_text("1,0,2\n2,1,5\n" if "csv" in words else "1 1:1 2:2\n2 1:3 2:5\n")
    done = maxmargin("scale", *words.split(), "d", "out")
    assert done.code == code and said in done.err and (folder / "out").exists() == (code == 0)
    assert (folder / "a").exists() == (words == "-s a")


@pytest.mark.parametrize("name", ["d.csv", "d.npz"])
def test_values_that_are_not_finite_are_not_scaled(maxmargin, folder, name) -> None:
    X = np.array([[1.0, np.inf], [2.0, 3.0]])
    data.save(name, sp.csr_matrix(X) if name == "d.npz" else X, [1, 2])
    done = maxmargin("scale", name, "out")
    assert done.code == 2 and "values that are not finite" in done.err and not (folder / "out").exists()


def test_words_cannot_be_scaled_but_stay(maxmargin, folder) -> None:
    (folder / "d.csv").write_text("cat,1,0\ndog,2,5\n")
    assert maxmargin("scale", "-y", 0, 1, "d.csv", "out.csv").code == 2
    assert maxmargin("scale", "d.csv", "out.csv").code == 0
    X, y = data.load("out.csv")
    assert y.tolist() == ["cat", "dog"] and X.tolist() == [[-1, -1], [1, 1]]


@pytest.mark.parametrize("name", ["-", "out", "out.csv", "out.npz", "out.npy", "out.svm.gz"])
def test_the_format_goes_by_the_name_and_is_text_on_stdout(maxmargin, folder, name) -> None:
    (folder / "d").write_text("1 1:1\n2 2:4\n")
    done = maxmargin("scale", "-l", 0, "d", name)
    assert done.code == 0 and (done.out == "1 1:1\n2 2:1\n") == (name == "-")
    if name != "-":
        X, y = data.load(name)
        assert sp.issparse(X) == (name not in ("out.csv", "out.npy")) and y.tolist() == [1, 2]
        assert np.asarray(X.todense() if sp.issparse(X) else X).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(("rows", "told"), [("1 1:1\n2 2:4\n", False), ("1 1:1\n2 2:4\n1 1:2\n", False),
                                            ("1 1:1\n1 2:1\n1 3:1\n", True)])  # fmt: skip
def test_data_that_become_dense_are_told(maxmargin, folder, rows, told) -> None:
    """More than twice as many values that are not zero: 4 of 2 and 6 of 3 are not more, 9 of 3 are."""
    (folder / "d").write_text(rows)
    done = maxmargin("scale", "d", "out")
    assert done.code == 0 and ("keeps data ≥ 0 sparse" in done.err) == told
    assert not told or "warning: 3 values that are not zero became 9" in done.err
    assert "warning" not in maxmargin("scale", "-l", 0, "d", "out").err


# ---- how good predictions are -----------------------------------------------------------------------------------------


def test_accuracy() -> None:
    told = judged(np.array([1, 2, 2, 3]), np.array([1, 2, 3, 3]), False)
    assert told == {"accuracy": 0.75, "correct": 3, "rows": 4}
    assert predicted_lines(told) == ["Accuracy = 75% (3/4) (classification)"]
    lines, values = cross_validated(np.array([1, 2, 2, 3]), np.array([1, 2, 3, 3]), False)
    assert lines == ["Cross Validation Accuracy = 75%"] and values == told
    assert judged(np.array(["a", "b"]), np.array(["a", "c"], dtype=object), False)["correct"] == 1


@pytest.mark.parametrize("words", [np.array(["a", "b"]), np.array(["a", "b"], dtype=object)])
def test_labels_of_two_kinds_are_not_compared(words) -> None:
    for pair in ((words, np.array([1, 2])), (np.array([1, 2]), words)):
        with pytest.raises(ValueError, match="are of two kinds"):
            judged(*pair, False)


def test_errors_of_numbers() -> None:
    rng = np.random.default_rng(0)
    y, z = rng.normal(5, 2, size=40), rng.normal(-3, 1, size=40)
    told = judged(y, z + 0.5 * y, True)
    error, squared = np.mean((y - z - 0.5 * y) ** 2), np.corrcoef(y, z + 0.5 * y)[0, 1] ** 2
    assert told == {"mean_squared_error": pytest.approx(error), "squared_correlation": pytest.approx(squared), "rows": 40}
    mse, scc = f"{told['mean_squared_error']:g}", f"{told['squared_correlation']:g}"
    assert predicted_lines(told) == [f"Mean squared error = {mse} (regression)",
                                     f"Squared correlation coefficient = {scc} (regression)"]  # fmt: skip
    lines, values = cross_validated(y, z + 0.5 * y, True)
    assert values == told and lines == [f"Cross Validation Mean squared error = {mse}",
                                        f"Cross Validation Squared correlation coefficient = {scc}"]  # fmt: skip
    assert math.isnan(judged(y, np.ones(40), True)["squared_correlation"])
    assert math.isnan(judged(np.ones(40), y, True)["squared_correlation"])
    assert judged(1e-2 * y, 1e-2 * z, True)["squared_correlation"] == pytest.approx(np.corrcoef(y, z)[0, 1] ** 2)
