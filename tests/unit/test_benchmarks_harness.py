"""The harness end to end on toys: real workers, skip reasons, errors, limits, marks, and what tables say of them."""

import dataclasses
import json
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from benchmarks import cli, harness, machine, report
from benchmarks.base import Cell, Data, Experiment, Options, Problem, Solver, discover

GOOD = Problem("svc", C=1.0, gamma=0.25)


class Toy(Experiment):
    name = "toy"
    title = "Toy"
    baseline = "scikit-learn"
    repeat = 2

    def __init__(self, cells):
        self._cells = cells

    def cells(self, options):
        return self._cells


@pytest.fixture(scope="module")
def toy_run():
    hopeless = Problem("svc", C=1.0, gamma=0.25, tol=1e3)  # stops before the first step: far from the optimum
    experiment = Toy(
        [
            Cell("iris_binary", "scikit-learn", GOOD, kernel_pass=True),
            Cell("iris_binary", "scikit-learn", hopeless, repeat=1, label="hopeless"),
            Cell("iris_binary", "scikit-learn", Problem("svc", fit_intercept=False), label="no intercept"),
            Cell("iris_binary", "scikit-learn", Problem("nu_svc", nu=0.99), label="infeasible"),
            Cell("iris", "scikit-learn", GOOD, measure="predict", repeat=1, threads=1),
        ]
    )
    return experiment, harness.run(experiment, Options(), progress=False)


def find(run, label="", dataset="iris_binary"):
    return next(r for r in run["records"] if r["label"] == label and r["dataset"] == dataset)


def test_a_good_cell_is_timed_judged_and_unmarked(toy_run):
    record = find(toy_run[1])
    assert record["status"] == "ok" and record["mark"] is None
    assert len(record["times"]) == 2 and record["best"] == min(record["times"])
    assert record["dual_excess"] == 0 and 0 <= record["gap"] < 1e-2 and record["score"] > 0.95
    assert record["kernel_pass"] > 0 and record["extra"]["iterations"] > 0
    assert record["memory"]["peak_mb"] >= record["memory"]["start_mb"] > 0
    assert record["memory"]["peak_mb"] - record["memory"]["ready_mb"] < 60  # 64 MB and more were touched before


def test_a_wrong_model_is_marked(toy_run):
    record = find(toy_run[1], "hopeless")
    assert record["status"] == "ok" and len(record["times"]) == 1
    assert record["dual_excess"] > 0.1 and record["mark"].startswith("objective +")


def test_skips_and_errors_carry_their_reason(toy_run):
    skipped, failed = find(toy_run[1], "no intercept"), find(toy_run[1], "infeasible")
    assert skipped["status"] == "skipped" and skipped["reason"] == "always fits an intercept"
    assert failed["status"] == "error" and "ValueError" in failed["reason"] and "nu" in failed["reason"]
    notes = report.reasons(toy_run[1]["records"])
    assert skipped["reason"] in notes and failed["reason"] in notes


def test_prediction_of_a_multiclass_model(toy_run):
    record = find(toy_run[1], dataset="iris")
    assert record["status"] == "ok" and record["threads"] == 1
    assert len(record["times"]) == 3 and len(record["fit_times"]) == 1
    assert record["score"] > 0.95 and 0 <= record["gap"] < 1e-2


def test_the_page_is_whole_and_tells_no_secrets(toy_run):
    experiment, run = toy_run
    text = report.page(experiment, json.loads(json.dumps(run)))
    assert "iris_binary svc C=1 γ=0.25 (150 × 4)" in text and machine.hardware() in text
    assert str(pathlib.Path.home()) not in json.dumps(run) + text
    assert str(pathlib.Path(__file__).resolve().parents[2]) not in json.dumps(run) + text


def test_cells_without_a_clock_run_side_by_side_and_may_be_judged_by_score_alone():
    untimed = {"threads": 1, "alone": False, "score_only": True, "repeat": 1, "test_rows": 50}
    cells = [Cell("iris_binary", "scikit-learn", GOOD, **untimed, label=str(i)) for i in range(3)]
    records = harness.run(Toy(cells), Options(), progress=False)["records"]
    assert [r["label"] for r in records] == ["0", "1", "2"] and all(r["status"] == "ok" for r in records)
    assert all(r["score"] > 0.9 and r["primal"] is None and r["test_rows"] == 50 for r in records)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes cannot be pinned here")
def test_predictions_beside_the_fit_and_neighbours_on_the_core():
    cell = Cell("iris", "scikit-learn", GOOD, predict=True, neighbours=1, cores=1, repeat=1, threads=1, number=3)
    record = harness.run(Toy([cell]), Options(), progress=False)["records"][0]
    assert record["status"] == "ok" and len(record["times"]) == 3
    assert record["predict"] == min(record["predict_times"]) > 0


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_a_fit_beside_itself():
    cell = Cell("iris", "scikit-learn", GOOD, repeat=1, threads=1, cores=2, twins=True, judged=False)
    record = harness.run(Toy([cell]), Options(), progress=False)["records"][0]
    assert record["status"] == "ok" and record["threads"] == 1 and record["best"] > 0


def test_a_cell_may_have_less_time_than_the_run():
    experiment = Toy([Cell("iris", "scikit-learn", GOOD, number=10_000_000, limit=0.2)])
    record = harness.run(experiment, Options(time_limit=60), progress=False)["records"][0]
    assert record["status"] == "timeout" and report.limit_of(record) == 0.2


def test_a_job_past_its_limit_is_killed():
    experiment = Toy([Cell("iris", "scikit-learn", GOOD, number=10_000_000)])
    record = harness.run(experiment, Options(time_limit=0.3), progress=False)["records"][0]
    assert record["status"] == "timeout" and record["best"] is None and "0.3 s" in record["reason"]


def test_tighter_tolerances_are_not_tried_after_a_timeout():
    cell = Cell("iris", "scikit-learn", Problem("svc", tol=1e-5))
    looser = dataclasses.asdict(Problem("svc", tol=1e-3))
    late = {"solver": "scikit-learn", "problem": looser, "status": "timeout", "measure": "fit"}

    def why(**changes):
        return harness._why_not(cell, Data(None, None, None, None), discover("solvers"), [late | changes])

    assert "tol 0.001" in why()
    assert why(status="ok") is None and why(solver="libsvm") is None and why(measure="predict") is None
    assert why(problem=looser | {"options": {"inner_solver": "gpm"}}) is None  # another way to solve it may be faster


def test_a_missing_peer_says_how_to_get_it():
    class Absent(Solver):
        requires = ("no_such_module_anywhere",)
        tasks = ("svc",)

    assert "pip install" in Absent().skip(GOOD, Data(None, None, None, None))


def judged(solver, dual, tol=1e-3, **changes):
    """A record of a problem whose optimum is 10, as the evaluator fills it."""
    problem = {"task": "svc", "tol": tol}
    values = {"primal": 10.0, "primal_best": 10.0, "dual": dual, "infeasible": 0.0}
    return {"solver": solver, "dataset": "a", "rows": 9, "problem": problem, "status": "ok", **values, **changes}


def marks(*records, yardstick=None):
    experiment = Toy([])
    experiment.yardstick = yardstick
    harness.judge(list(records), experiment)
    return [record["mark"] for record in records]


def test_marks():
    good = judged("x", 10.0)
    assert marks(good, judged("y", 9.995), judged("z", 9.9)) == [None, None, "objective +1 %"]
    assert marks(good, judged("y", float("nan")))[1].startswith("objective")
    assert marks(good, judged("y", 10.0, primal=12.0))[1].startswith("intercept")
    assert marks(good, judged("y", 10.0, infeasible=0.5))[1].startswith("infeasible")
    assert marks(good, judged("y", None, primal=10.1, primal_best=10.1))[1] == "objective +1 %"
    elsewhere = judged("y", 5.0) | {"rows": 8}
    assert marks(good, elsewhere) == [None, None]


def test_the_yardstick_says_what_a_tolerance_is_worth():
    best, ours, libsvm, other = (judged("x", 10.0, 1e-5), judged("x", 9.97), judged("s", 9.98), judged("o", 9.9))
    assert marks(best, ours, libsvm, other) == [None, "objective +0.3 %", "objective +0.2 %", "objective +1 %"]
    assert marks(best, ours, libsvm, other, yardstick="s") == [None, None, None, "objective +1 %"]


def test_lost_cells_are_shown_as_lost_and_marked_ones_left_out_of_the_mean():
    ours = {"status": "ok", "best": 2.0, "mark": None}
    slower, faster = {"status": "ok", "best": 8.0, "mark": None}, {"status": "ok", "best": 1.0, "mark": None}
    wrong = {"status": "ok", "best": 1.0, "mark": "objective +3 %"}
    late = {"status": "timeout", "best": None, "reason": "more than 60 s"}
    ratios = []
    assert report.time_cell(ours, ours, ratios) == "2"
    assert report.time_cell(slower, ours, ratios) == "8 (4×)"
    assert report.time_cell(faster, ours, ratios) == "1 (0.5×) **LOST**"
    assert report.time_cell(wrong, ours, ratios) == "1 (0.5×), objective +3 %"
    assert report.time_cell(late, ours, ratios) == "> 60 (> 30×)"
    assert report.time_cell(late, late, ratios).startswith("**LOST**")
    assert report.time_cell(ours | {"mark": "objective +3 %"}, None, []) == "2, objective +3 %"
    assert report.time_cell(slower, ours | {"mark": "objective +3 %"}, ratios) == "8"
    assert ratios == [4.0, 0.5, 30.0]
    assert report.geometric_mean([4.0, 0.25]) == pytest.approx(1.0)


def exact_records(*times):
    """Sets a, b, c with the times of ours, scikit-learn at 200 and 2,000 MB, and scikit-learn-intelex."""
    shape = {"rows": 9, "features": 2, "sparse": False, "label": "", "mark": None, "status": "ok"}
    records = []
    for name, row in zip("abc", times):
        cells = (("maxmargin", 200.0), ("scikit-learn", 200.0), ("scikit-learn", 2000.0), ("sklearnex-float32", 200.0))
        for (solver, cache), best in zip(cells, row):
            problem = {"task": "svc", "C": 1.0, "kernel": "rbf", "gamma": 1.0, "cache_size": cache}
            records.append(shape | {"dataset": name, "solver": solver, "problem": problem, "best": best})
    return records


def test_goals_are_lost_by_one_slow_or_one_wrong_cell():
    from benchmarks.experiments.exact import goal_table

    def goals(records):
        return goal_table(discover("experiments")["exact"](), {"records": records})

    def verdicts(*times, **changes):
        records = exact_records(*times)
        records[0] |= changes
        lines = [line.split("|") for line in goals(records).splitlines() if "slower" in line]
        return {line[1].strip(): line[-2].strip() for line in lines}

    reached = {"scikit-learn-intelex": "reached", "scikit-learn": "reached"}
    lost = dict.fromkeys(reached, "LOST")
    assert verdicts((1, 40, 20, 5), (1, 50, 13, 4)) == reached
    assert verdicts((1, 40, 20, 50), (1, 50, 13, 0.9)) == reached | {"scikit-learn-intelex": "LOST"}
    assert verdicts((1, 40, 11, 5), (1, 50, 12, 4)) == reached | {"scikit-learn": "LOST"}  # its default does not count
    assert verdicts((1, 40, 20, 5), (1, 50, 13, 4), mark="objective +3 %") == lost
    assert verdicts((1, 40, 20, 5), (1, 50, 13, 4), status="timeout") == lost
    killed = exact_records((1, 40, 20, 5), (1, 50, 13, 4))
    for record in killed[1:3]:
        record |= {"status": "timeout", "best": None, "reason": "more than 12 s"}
    assert "12.5×" in goals(killed)  # √(12·13): a lower bound
    slow = exact_records((1, 40, 20, 5), (1, 0.1, 0.1, 0.1))
    beside = [r | {"dataset": "covtype"} if r["dataset"] == "b" else r for r in slow]  # shown, but counts in no mean
    assert goals(beside).count("reached") == 2


def test_the_claim_is_made_against_each_peer_at_its_best():
    exact = discover("experiments")["exact"]()
    records = exact_records((1, 40, 10, 5), (1, 90, 10, 5))
    claim = exact.text_means({"records": records})
    assert "10 times faster than scikit-learn (60 at its default)" in claim and "5 times faster than" in claim
    assert "Slower on no set" in claim
    records[6]["best"] = 0.5
    assert "Slower than scikit-learn on b" in exact.text_means({"records": records})
    records[6] |= {"best": 0.5, "mark": "objective +3 %"}  # a wrong model is nobody's best
    assert "30 times faster than scikit-learn (60 at its default)" in exact.text_means({"records": records})


def test_goals_of_divide_and_conquer():
    from benchmarks.experiments.dc import COLD, EARLY, EXACT, goal_table

    def verdicts(early, exact, score):
        times = {EARLY: early, EXACT: exact, COLD: 8.0}
        same = {"status": "ok", "label": "", "problem": {"kernel": "rbf"}}
        records = [same | {"dataset": "covtype_first", "solver": name, "best": t} for name, t in times.items()]
        peer = {"solver": "scikit-learn", "status": "timeout", "reason": "more than 230 s", "best": None}
        records.append(same | {"dataset": "covtype_first"} | peer)
        whole = {"dataset": "covtype", "label": "all rows", "score": score, "extra": {"converged": 1.0}}
        records.append(same | whole | {"solver": EARLY, "best": 20.0})
        return [line.split("|")[-2].strip() for line in goal_table(records).splitlines()[4:]]

    assert verdicts(1.0, 7.0, 0.9601) == ["reached"] * 3
    assert verdicts(3.0, 9.0, 0.9599) == ["LOST"] * 3


def test_a_partial_run_keeps_other_data_sets_but_not_other_conditions():
    conditions = {"hardware": "h", "versions": {}, "threads": 2, "quick": False}
    old = conditions | {"records": [{"dataset": "a", "best": 1}, {"dataset": "b", "best": 1}]}
    new = conditions | {"records": [{"dataset": "b", "best": 2}]}
    assert cli.merge(old, new)["records"] == [{"dataset": "a", "best": 1}, {"dataset": "b", "best": 2}]
    assert cli.merge(old | {"threads": 1}, new)["records"] == new["records"]
    assert cli.merge(old | {"versions": {"numpy": "1"}}, new)["records"] == new["records"]
    one, more = {"versions": {"numpy": "1"}}, {"versions": {"numpy": "1", "a peer of other experiments": "2"}}
    assert len(cli.merge(old | one, new | more)["records"]) == 2 and len(cli.merge(old | more, new | one)["records"]) == 1


def test_a_data_set_measured_on_another_machine_is_kept_and_says_so():
    old = {"hardware": "2-core (AVX2)", "versions": {"maxmargin": "0.1.0 (v3)"}, "threads": 2, "quick": False}
    old["records"] = [{"dataset": "a"}, {"dataset": "b"}, {"dataset": "c", "hardware": "1-core"}]
    new = old | {"hardware": "2-core (AVX-512)", "versions": {"maxmargin": "0.1.0 (v4)"}, "records": [{"dataset": "b"}]}
    merged = cli.merge(old, new)
    assert report.machines(merged) == "2-core (AVX-512) (b) and 2-core (AVX2) (a) and 1-core (c)"
    assert report.machines(cli.merge(merged, old)) == "2-core (AVX2) (a and b) and 1-core (c)"  # measured there once more
    assert report.machines(new) == "2-core (AVX-512)"
    bandwidth = {"read_gb_per_s": {"2": 10.0}}
    assert cli.merge(old | bandwidth, new | bandwidth)["records"] == new["records"]


def test_everything_is_found_and_makes_cells():
    sets, solvers = discover("datasets"), discover("solvers")
    assert {"ijcnn1", "iris_binary"} <= set(sets) and {"maxmargin", "scikit-learn", "libsvm"} <= set(solvers)
    for make in discover("experiments").values():
        experiment = make()
        for cell in experiment.cells(Options(quick=True)):
            assert cell.dataset in sets and cell.solver in solvers
        assert experiment.title and experiment.baseline in solvers
    with pytest.raises(SystemExit, match="unknown set nonsense: choose among ijcnn1"):
        discover("experiments")["exact"]().cells(Options(sets=["nonsense"]))


@pytest.mark.parametrize("name", ["abalone", "phishing", "susy", "reuters"])
def test_stand_ins_are_seeded_and_say_so(name, monkeypatch):
    monkeypatch.delenv("MAXMARGIN_DATA", raising=False)
    first, second = (discover("datasets")[name]().load() for _ in range(2))
    assert first.source == "generated" and first.X_train.shape[1] == first.X_test.shape[1]
    assert abs(first.X_train - second.X_train).max() == 0 and (first.y_train == second.y_train).all()
