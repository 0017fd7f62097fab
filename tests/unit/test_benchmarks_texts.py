"""Pages say what the stored results say: all that is generated is up to date, and no measurement is typed by hand."""

import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from benchmarks import cli, texts

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = cli.stored()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "papers").glob("*.md"))]
# seconds, ratios, percentages and memory; sizes such as 49,990 × 22 are not measurements
RULES = (  # constants of a program or of mathematics, not measurements
    "10 times their spread", "0.7 times its size", "2 GB at most", "25 times too large", "less than 0.01 %", "5 to 10 %",
    "at most 15 % of them", "⅛ to 64 times", "from 2 % to 80 %",
)  # fmt: skip
MEASUREMENT = re.compile(r"\d ?(×(?! ?\d)|s|ms|µs|%|GB|times)(?![\w-])")


@pytest.fixture
def runs():
    problem = {"task": "svc", "C": 1.0, "kernel": "rbf", "gamma": 2.0}
    same = {"dataset": "a", "rows": 9, "features": 2, "sparse": False, "label": "", "problem": problem, "status": "ok"}
    ours = same | {"solver": "maxmargin", "best": 0.5, "score": 0.9602, "memory": {"peak_mb": 812.0}, "n_support": 2478}
    budgeted = {"problem": problem | {"options": {"budget": 5}}, "solver": "budget"}
    seeds = [same | budgeted | {"best": best} for best in (0.1, 0.4)]
    late = same | {"solver": "libsvm", "status": "timeout", "best": None, "reason": "more than 600 s"}
    peer = same | {"solver": "scikit-learn", "best": 6.0}
    return {"exact": {"experiment": "exact", "records": [ours, late, peer, *seeds]}}


def test_what_is_not_measured_says_so(runs):
    assert texts.text("exact_error.seconds solver=maxmargin", runs) == "(not measured yet)"


def test_places_are_filled_and_the_rest_is_left_alone(runs):
    page = "takes <!-- generated: exact.seconds solver=maxmargin C=1 -->?<!-- end --> s\n\n<!-- generated: exact.score " \
        "solver=maxmargin -->\nold\n\nlines\n<!-- end -->\nrest\n"  # fmt: skip
    assert texts.filled(page, runs) == page.replace("?", "0.5").replace("old\n\nlines", "96.02 %")
    assert texts.filled(texts.filled(page, runs), runs) == texts.filled(page, runs)


@pytest.mark.parametrize("name, said", [
    ("exact.ratio solver=scikit-learn", "12"), ("exact.ratio solver=libsvm", "> 1200"),
    ("exact.seconds solver=libsvm", "> 600"), ("exact.ratio solver=scikit-learn to=scikit-learn", "1"),
    ("exact.value solver=maxmargin field=memory.peak_mb scale=0.001 format=.1f", "0.8"),
    ("exact.value solver=maxmargin field=n_support format=,", "2,478"), ("exact.mean budget=5 field=best", "0.25"),
])  # fmt: skip
def test_words(runs, name, said):
    assert texts.text(name, runs) == said


@pytest.mark.parametrize("name, error", [
    ("nothing.seconds", "no experiment 'nothing'"), ("exact.nonsense", "neither text_nonsense"),
    ("exact.seconds dataset=a", "5 records of exact"), ("exact.seconds dataset=b", "0 records"),
    ("exact.value solver=maxmargin field=nonsense", "has no nonsense"), ("exact.mean C=7 field=best", "have no best"),
])  # fmt: skip
def test_a_place_that_cannot_be_filled_is_an_error(runs, name, error):
    with pytest.raises(ValueError, match=error):
        texts.text(name, runs)


@pytest.mark.skipif(not RUNS, reason="no stored results here (an sdist)")
def test_everything_generated_is_up_to_date():
    pages = texts.everything(RUNS, cli.DOCS, list(RUNS))
    stale = [path.name for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    assert not stale, f"{', '.join(stale)}: run python -m benchmarks report"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_measurement_is_typed_by_hand(page):
    text = texts.MARKED.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"^```.*?^```|^    .*?$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    for rule in RULES:
        text = text.replace(rule, "")
    typed = [line for line in text.splitlines() if MEASUREMENT.search(line)]
    assert not typed, f"{page.name}: take these from a stored result (benchmarks/texts.py): {typed}"


@pytest.mark.parametrize("path", texts.marked_pages(cli.DOCS), ids=lambda path: path.name)
def test_markers_do_not_tear_paragraphs(path):
    """In Markdown a comment that begins a line is a block of its own: the text behind it would leave its paragraph."""
    torn = [line for line in path.read_text(encoding="utf-8").splitlines() if re.match(r" {0,3}<!--.*--> *[^ ]", line)]
    assert not torn
