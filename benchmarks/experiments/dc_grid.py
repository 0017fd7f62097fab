"""Total time over a grid of C and γ (DC-SVM paper, Table 4): early, exact, and the peers, 25 settings each.

Parts of the sets, so that the grid takes minutes; the paper used all rows. So few rows have fewer levels than many: the
table says how many clusters each machine began with. Each program has as many threads as the table says; scikit-learn
can use one only. A fit past the limit counts with the limit. As in the paper the best accuracy of the grid is that on
the test rows: it shows what the grid contains, not what a user without them would pick.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Line, Options, Problem
from benchmarks.papers import dcsvm

GRID = tuple(2.0**e for e in (-10, -6, 1, 6, 10))  # the paper's, for both
ROWS, TEST_ROWS = 10_000, 5_000
PEER_CACHE = 2000.0
SETS = {"ijcnn1": "ijcnn1", "covtype": "covtype", "census_split": "census"}
OURS = ("maxmargin-dc-early", "maxmargin-dc")
OUR_TERMS = {"fit_intercept": False}
PEER_TERMS = {"fit_intercept": True, "cache_size": PEER_CACHE}


class DCGrid(Experiment):
    title = "Divide and conquer: a grid of C and γ"
    shows = ("dcsvm_table4",)
    sets = tuple(SETS)
    solvers = (*OURS, "scikit-learn", "sklearnex-float32")
    baseline = "maxmargin-dc-early"
    repeat = 1
    time_limit = 20.0

    def cells(self, options: Options) -> list[Cell]:
        grid = (2.0**-6, 2.0) if options.quick else GRID
        return [
            Cell(
                name,
                solver,
                Problem("svc", C=C, gamma=gamma, **(OUR_TERMS if solver in OURS else PEER_TERMS)),
                rows=ROWS,
                test_rows=TEST_ROWS,
                threads=1,
                score_only=True,
            )
            for name in self.chosen_sets(options)
            for C in grid
            for gamma in grid
            for solver in self.chosen_solvers(options)
        ]

    def report(self, run: dict[str, Any]) -> str:
        head = ["set", "solver", "total seconds", "ratio to early", "settings", "over the limit", "best accuracy", "threads"]
        head += ["clusters"]
        lines = [head]
        for name in dict.fromkeys(r["dataset"] for r in run["records"]):
            first = float("nan")
            for solver in report.columns_of(self, run["records"]):
                mine = [r for r in run["records"] if r["dataset"] == name and r["solver"] == solver]
                done = [r for r in mine if r["status"] == "ok"]
                late = [r for r in mine if r["status"] == "timeout"]
                total = _total(mine)
                first = total if solver == self.baseline else first
                best = max((r["score"] for r in done if r.get("score") is not None), default=float("nan"))
                more = "> " if late else ""
                shown = [f"{more}{total:.3g}", "" if solver == self.baseline else f"{more}{total / first:.3g}×"]
                threads = {1 if solver == "scikit-learn" else r["threads"] for r in mine}
                counts = [f"{len(mine)}", f"{len(late)}", f"{100 * best:.2f} %", "/".join(map(str, sorted(threads)))]
                counts += [_clusters(done)]
                lines.append([name, solver, *shown, *counts])
        faster = _faster(run["records"])
        return "\n\n".join(part for part in (report.markdown(lines), faster, _settings(run["records"])) if part)

    def compare(self, run: dict[str, Any]) -> list[Line]:
        lines = []
        names = (("DC-SVM (early)", OURS[0]), ("DC-SVM", OURS[1]), ("LIBSVM", "scikit-learn"))
        for ours, theirs in SETS.items():
            for (method, solver), printed in zip(names, dcsvm.TABLE_4[theirs]):
                mine = [r for r in run["records"] if r["dataset"] == ours and r["solver"] == solver]
                late = any(r["status"] == "timeout" for r in mine)
                why = f"{dcsvm.MACHINE}, {dcsvm.ROWS_2[theirs]:,} rows; here {ROWS:,}"
                total = _total(mine) if mine else None
                lines.append(
                    Line("Table 4", f"{theirs}, {method}", "s", printed, total, why, "less", method != "LIBSVM", late)
                )
        printed = dcsvm.TABLE_4["webspam"][1]
        return [*lines, Line("Table 4", "webspam, DC-SVM", "s", printed, None, "the data is not at hand")]

    def text_faster(self, run: dict[str, Any]) -> str:
        return _faster(run["records"]) or "(not measured yet)"


def _total(records: list[dict[str, Any]]) -> float:
    """Seconds of all settings; a fit past the limit counts with the limit."""
    return float(
        sum(r["best"] if r["status"] == "ok" else report.limit_of(r) for r in records if r["status"] in ("ok", "timeout"))
    )


def _clusters(records: list[dict[str, Any]]) -> str:
    """How many clusters the lowest level had, where the records say so."""
    found = sorted({int(r["extra"]["first_clusters"]) for r in records if "first_clusters" in r.get("extra", {})})
    return "" if not found else str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _times(records: list[dict[str, Any]]) -> dict[tuple[str, float, float], dict[str, dict[str, Any]]]:
    found: dict[tuple[str, float, float], dict[str, dict[str, Any]]] = {}
    for r in records:
        found.setdefault((r["dataset"], r["problem"]["C"], r["problem"]["gamma"]), {})[r["solver"]] = r
    return found


def _faster(records: list[dict[str, Any]]) -> str:
    """In how many settings exact divide and conquer is faster than scikit-learn."""
    pairs = [(cell["maxmargin-dc"], cell.get("scikit-learn")) for cell in _times(records).values() if OURS[1] in cell]
    known = [(a["best"], b) for a, b in pairs if a["status"] == "ok" and b and b["status"] in ("ok", "timeout")]
    wins = sum(time < (b["best"] if b["status"] == "ok" else report.limit_of(b)) for time, b in known)
    return f"Exact is faster than scikit-learn in {wins} of {len(known)} settings (the paper: 96 of 100)." if known else ""


def _settings(records: list[dict[str, Any]]) -> str:
    """The paper's tables 7 and 10: seconds and accuracy of each setting."""
    solvers = list(dict.fromkeys(r["solver"] for r in records))
    lines = [["set", "C", "γ", *solvers]]
    for (name, C, gamma), cell in _times(records).items():
        shown = []
        for solver in solvers:
            r = cell.get(solver, {"status": ""})
            ok = r["status"] == "ok" and r.get("score") is not None
            shown.append(f"{report.seconds(r['best'])} s {100 * r['score']:.2f} %" if ok else r["status"])
        lines.append([name, f"{C:.4g}", f"{gamma:.4g}", *shown])
    return "## Every setting\n\n" + report.markdown(lines)
