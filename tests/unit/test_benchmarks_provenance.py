"""A result counts only if it names a clean revision of this history: the check, and all that is stored."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from benchmarks import cli, due, provenance, report
from benchmarks.base import Cell, Experiment, Problem, discover

# Measured before records named their revision, or with one that is not in this history. Each must leave this list when it
# has been measured again, which `python -m benchmarks due` plans.
TO_MEASURE_AGAIN: tuple[str, ...] = ()
RUNS = cli.stored()


def git(root, *words):
    command = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A repository of the same shape with two commits; the second changes only the docs."""
    for name in ("src/maxmargin/a.py", "native/a.hpp", "benchmarks/base.py", "benchmarks/results/exact.json", "docs/a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    try:
        git(tmp_path, "init", "-qb", "main")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("git is not at hand")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    (tmp_path / "docs/a.md").write_text("2\n")
    git(tmp_path, "commit", "-qam", "two")
    return tmp_path


@pytest.mark.parametrize("name, dirty", [
    ("src/maxmargin/a.py", True), ("native/a.hpp", True), ("native/new.hpp", True), ("benchmarks/base.py", True),
    ("docs/a.md", False), ("benchmarks/results/exact.json", False),
])  # fmt: skip
def test_a_change_to_what_is_measured_makes_the_tree_dirty(repository, name, dirty):
    clean = provenance.commit(repository)
    assert clean == git(repository, "rev-parse", "HEAD")
    (repository / name).write_text("changed\n")
    assert provenance.commit(repository) == clean + ("+" if dirty else "")
    assert ("commit them" in (provenance.refusal(repository) or "")) == dirty


def test_a_revision_that_a_rebase_would_rewrite_is_refused(repository):
    git(repository, "checkout", "-qb", "side")
    assert "not on main" not in (provenance.refusal(repository) or "")
    (repository / "native/a.hpp").write_text("2\n")
    git(repository, "commit", "-qam", "three")
    assert "not on main" in provenance.refusal(repository)


def test_without_history_nothing_can_be_a_result(tmp_path):
    assert provenance.commit(tmp_path) is None and not provenance.history(tmp_path)
    assert "unknown" in provenance.refusal(tmp_path)


def test_commits_to_the_docs_do_not_change_the_code(repository):
    after = provenance.code(repository)
    git(repository, "checkout", "-q", "HEAD~1")
    assert provenance.code(repository) == after
    (repository / "native/a.hpp").write_text("2\n")
    git(repository, "commit", "-qam", "three")
    assert provenance.code(repository) != after


def test_a_build_older_than_its_sources_or_of_another_tree_is_refused(repository, monkeypatch):
    package, built = repository / "src" / "maxmargin", repository / "site" / "maxmargin"
    built.mkdir(parents=True)
    core = built / "_core_v3.so"
    core.write_text("")
    spec = type("Spec", (), {"submodule_search_locations": [str(built), str(package)]})
    monkeypatch.setattr(provenance.importlib.util, "find_spec", lambda name: spec)
    assert provenance.refusal(repository) is None
    os.utime(core, (1, 1))
    assert "older than a.hpp" in provenance.refusal(repository)
    os.utime(core)
    spec.submodule_search_locations = [str(built)]  # not an editable installation: a copy must be the same
    assert "a.py differs" in provenance.refusal(repository)
    (built / "a.py").write_text("1\n")
    assert provenance.refusal(repository) is None


def test_faults_of_a_result(repository):
    clean = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "HEAD~1")
    (repository / "src/maxmargin/a.py").write_text("3\n")
    git(repository, "commit", "-qam", "a side branch")
    aside = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", clean)

    def faults(*commits):
        return provenance.faults({"records": [{"commit": commit} for commit in commits]}, repository)

    assert faults(clean, git(repository, "rev-parse", "HEAD~1")) == []
    assert "changes to revision" in faults(clean, clean + "+")[0]
    assert "not in the history" in faults(clean, aside)[0]
    assert "not in the history" in faults("0" * 40)[0]
    assert provenance.faults({"records": [{}]}, repository) == ["records that name no revision"]


def test_a_page_says_when_its_origin_is_not_on_record():
    good, bad = "a" * 40, "b" * 40 + "+"
    assert provenance.named({"records": [{"commit": good}]}) == "revision aaaaaaaa"
    for commits in ([good, bad], [None]):
        assert "to be measured again" in provenance.named({"records": [{"commit": c} for c in commits]})


def test_run_refuses_to_write_results_from_a_changed_tree(monkeypatch):
    monkeypatch.setattr(provenance, "refusal", lambda: "files differ")
    with pytest.raises(SystemExit, match="files differ"):
        cli.main(["run", "small_fit"])


def test_what_is_due_is_planned():
    experiments = {name: cls() for name, cls in discover("experiments").items()}
    plan = due.table(experiments, {})
    assert all(f"run {name} " in plan for name in experiments)
    assert all(0 < due.minutes(experiment, RUNS) < 240 for experiment in experiments.values())
    fresh = {name: {"records": []} for name in experiments}
    assert due.table(experiments, fresh).startswith("nothing is due") and due.due(experiments, fresh) == {}
    times = [time for time, _ in due.due(experiments, RUNS).values()]
    assert times == sorted(times)


def test_estimates_take_fits_of_the_same_size_and_the_experiments_guess_otherwise():
    class Toy(Experiment):
        name, title, repeat, time_limit, sets = "toy", "Toy", 1, 100.0, ("a", "b")

        def cells(self, options):
            return [Cell(name, "maxmargin", Problem("svc"), alone=True) for name in self.chosen_sets(options)]

        def guess(self, cell):
            return 115.0 if cell.dataset == "b" else 55.0

    def minutes(*records, **more):
        return round(60 * due.minutes(Toy(), {"other": {"records": list(records)}}, **more))

    problem = {"C": 1.0, "gamma": 1.0, "kernel": "rbf", "tol": 1e-3, "options": {}}
    part = {"dataset": "a", "solver": "maxmargin", "problem": problem, "status": "ok", "label": "", "rows": 9, "best": 1.0}
    whole = part | {"rows": 90, "best": 20.0}
    assert minutes() == 60 + 105  # the guess, but no more than the limit; five seconds beside each fit
    assert minutes(whole | {"solver": "libsvm"}, part) == 165  # a part of the rows says nothing of all
    assert minutes(part, whole) == 25 + 105 and minutes(part, whole, sets=["a"]) == 25
    assert list(due.by_set(Toy(), {})) == ["a", "b"]


def test_disturbed_fits_are_named():
    record = {"solver": "s", "dataset": "d", "status": "ok", "measure": "fit", "times": [2.0, 1.0], "best": 1.0}
    assert report.disturbed([record | {"others": [0.9, 0.0]}]) == ""  # the fit that counts was quiet
    assert "during 1 fits: s on d" in report.disturbed([record | {"others": [0.0, 0.9]}, record | {"others": [0.0, 0.01]}])
    assert report.disturbed([record]) == ""  # measured before this was known


@pytest.mark.skipif(not provenance.history(), reason="no git history here (an sdist, or a shallow clone)")
def test_stored_results_come_from_clean_revisions_of_this_history():
    found = {name: faults for name, run in RUNS.items() if (faults := provenance.faults(run))}
    assert set(found) == set(TO_MEASURE_AGAIN), {name: why for name, why in found.items() if name not in TO_MEASURE_AGAIN}
