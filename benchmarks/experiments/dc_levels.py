"""What the levels find (DC-SVM paper, figures 1 to 4): bound and difference, support vectors, time, error, accuracy.

Figure 1 has one level with k clusters on 10,000 rows of covtype: the difference f(clusters) − f(best known) against
Theorem 1's bound over all pairs of rows, and against the difference for a random partition; solved to tol 1e-6. Between
bound and difference stand the steps that lead from one to the other, each of them an upper bound of the next. The same
at smaller C and γ shows on what they depend. In the tables of figures 2 and 3 each line is a fit that stops at one
level, all support vectors together; level 0 is the whole problem, and tol is our SVC from a cold start. CascadeSVM has
as many random parts as the level has clusters, and joins them two by two down to one. Figure 4 is the polynomial
kernel. Flat clusterings into 16, 64 and 256 clusters, of several numbers of rows and several γ, show on what it depends
how many support vectors are found. Nothing here fits an intercept.
"""

from __future__ import annotations

import itertools
import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Line, Options, Problem, discover
from benchmarks.papers import dcsvm

ROWS = {"covtype": 10_000, "ijcnn1": 20_000}  # figure 1's size for covtype
TEST_ROWS = 20_000
CLUSTERS = (8, 16, 32, 64, 128)
FLAT = (16, 64, 256)
FLAT_ROWS = (2_500, 10_000)
OTHERS = ((1.0, 32.0), (32.0, 1.0), (1.0, 1.0), (2.0**-7, 1.0))  # C and γ beside the paper's 32 and 32
WIDTHS = (8.0, 32.0, 128.0)  # γ of ijcnn1 beside its own 2
POLY = {"kernel": "poly", "degree": 3, "C": 2.0, "gamma": 1.0}  # figure 4, covtype
COEFFICIENTS, LEVEL, RANDOM = "maxmargin-dc-coefficients", "maxmargin-dc-level", "maxmargin-random-clusters"
CASCADE = "cascade-identified"
STEPS = ("theorem_1", "theorem_3", "alphas", "signed")

Record = dict[str, Any]


class DCLevels(Experiment):
    title = "Divide and conquer: what the levels find"
    shows = ("dcsvm_figure1", "dcsvm_figure2", "dcsvm_figure3", "dcsvm_figure4")
    sets = ("covtype", "ijcnn1")
    solvers = (COEFFICIENTS, LEVEL, RANDOM, CASCADE, "maxmargin")
    baseline = "maxmargin"
    repeat = 1
    excess_allowed = float("inf")  # a level is not the optimum: the tables show how far it is

    def cells(self, options: Options) -> list[Cell]:
        known, cells = discover("datasets"), []
        for name in self.chosen_sets(options):
            kernel = dict(known[name].kernel, fit_intercept=False)
            size = {"rows": ROWS[name], "test_rows": TEST_ROWS}
            for label, terms in (
                ("", kernel),
                *((("poly ", dict(POLY, fit_intercept=False)),) if name == "covtype" else ()),
            ):
                cells += _by_level(name, terms, size, label)
            if name == "covtype":
                cells += [cell for k in CLUSTERS for cell in _figure_1_cells(kernel, size, k)]
                others = [dict(kernel, C=C, gamma=gamma) for C, gamma in OTHERS]
                cells += [cell for terms in others for k in (8, 64) for cell in _figure_1_cells(terms, size, k)]
            cells += [_flat(name, kernel, rows, k) for rows in FLAT_ROWS for k in FLAT]
            widths = WIDTHS if name == "ijcnn1" else ()
            cells += [_flat(name, dict(kernel, gamma=gamma), FLAT_ROWS[-1], 256) for gamma in widths]
        return [cell for cell in cells if cell.solver in self.chosen_solvers(options)]

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "model", "seconds", "bound", "relative difference", "precision", "recall", "accuracy, early"]]
        early = {(r["dataset"], r["label"]): r for r in run["records"] if r["solver"] == LEVEL}
        for r in run["records"]:
            shown = r["solver"] in (COEFFICIENTS, CASCADE, "maxmargin") and not r["label"].startswith(("k ", "flat "))
            if r["status"] != "ok" or not shown:
                continue
            predicting = r if r["solver"] == CASCADE else early.get((r["dataset"], r["label"]), r)
            extra, score = r.get("extra", {}), predicting.get("score")
            found = [report.number(extra.get(key), 3) for key in ("precision", "recall")]
            accuracy = "" if score is None else f"{100 * score:.2f} %"
            bound, error = report.number(extra.get("bound"), 3), report.number(r.get("dual_excess"), 2)
            name = f"CascadeSVM, {r['label']}" if r["solver"] == CASCADE else r["label"]
            lines.append([r["dataset"], name, report.seconds(r["best"]), bound, error, *found, accuracy])
        parts = [bound_table(run["records"]), slack_table(run["records"]), flat_table(run["records"])]
        parts += ["## Figures 2 to 4: level by level", report.markdown(lines)]
        parts += ["![precision and recall of the support vectors](dc_support.svg)"]
        parts += ["![time against error and accuracy](dc_levels.svg)", report.reasons(run["records"])]
        return "\n\n".join(part for part in parts if part)

    def compare(self, run: dict[str, Any]) -> list[Line]:
        """Figure 2 is the one of which a number is in the text."""
        lines = []
        for name in self.sets:
            for solver, method in ((COEFFICIENTS, "DC-SVM"), (CASCADE, "CascadeSVM")):
                mine = [r for r in run["records"] if r["dataset"] == name and r["solver"] == solver and r["status"] == "ok"]
                r = next((r for r in mine if r["label"] == "level 4" and "recall" in r["extra"]), None)
                if r is not None:
                    printed = dcsvm.SUPPORT_2 if solver == COEFFICIENTS else None
                    why = f"{r['rows']:,} rows; the set of the claim is not named"
                    cell = f"{name}, {method}, 256 clusters: recall"
                    lines.append(
                        Line("figure 2", cell, "%", printed, 100 * r["extra"]["recall"], why, "more", solver == COEFFICIENTS)
                    )
        return lines

    def text_overlap(self, run: dict[str, Any]) -> str:
        """The bound over the difference, and both beside a random partition's difference."""
        found = [row for row in slacks(run["records"]) if row["C"] == row["gamma"] == 32.0]
        if not found:
            return "(not measured yet)"
        ratios = [row["theorem_1"] / row["difference"] for row in found]
        return f"the bound is {min(ratios):,.0f} to {max(ratios):,.0f} times the difference ([why](#the-bound-of-theorem-1))"

    def text_steps(self, run: dict[str, Any]) -> str:
        """From the bound to the difference, as factors, over all numbers of clusters at the paper's C and γ."""
        found = [row for row in slacks(run["records"]) if row["C"] == row["gamma"] == 32.0]
        if not found:
            return "(not measured yet)"
        names = (*STEPS, "difference")
        pairs = [[row[a] / row[b] for row in found] for a, b in itertools.pairwise(names)]
        words = (
            "to support vectors alone (Theorem 3)",
            "from C to the alphas there are",
            "by the signs of y_i y_j",
            "by optimality",
        )
        said = [f"{report.between(values)} {word}" for values, word in zip(pairs, words)]
        usual = [row["mean_alpha"] for row in found]
        return f"{', '.join(said)}; the mean alpha of a support vector is {report.between(usual)} where C is 32"

    def text_scale(self, run: dict[str, Any]) -> str:
        """Bound and difference as parts of the difference of a random partition."""
        found = [row for row in slacks(run["records"]) if row["C"] == row["gamma"] == 32.0 and row.get("random")]
        if not found:
            return "(not measured yet)"
        said = [
            f"k = {row['k']}: {row['theorem_1'] / row['random']:.2g} and {row['difference'] / row['random']:.2g}"
            for row in found
        ]
        return "; ".join(said)

    def text_identified(self, run: dict[str, Any]) -> str:
        """Recall and precision at 256 clusters."""
        return _identified_text(run, COEFFICIENTS)

    def text_cascade(self, run: dict[str, Any]) -> str:
        return _identified_text(run, CASCADE)

    def text_flat(self, run: dict[str, Any]) -> str:
        return flat_table(run["records"], heading=False) or "(not measured yet)"

    def text_slack(self, run: dict[str, Any]) -> str:
        return slack_table(run["records"], heading=False) or "(not measured yet)"

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        records = [r for r in run["records"] if r["status"] == "ok"]
        return _figure_1(records, folder) + _figure_2(records, folder) + _figure_3(records, folder)


def _by_level(name: str, terms: dict[str, Any], size: dict[str, Any], label: str) -> list[Cell]:
    """Figures 2 to 4: levels of ours and of CascadeSVM, our SVC by tol."""
    cells = []
    for stop in (4, 3, 2, 1, 0):
        problem = Problem("svc", **terms, options={"levels": 4, "stop_level": stop})
        cells += [Cell(name, solver, problem, **size, label=f"{label}level {stop}") for solver in (COEFFICIENTS, LEVEL)]
        cascade = Problem("svc", **terms, options={"parts": 256, "merges": 2 * (4 - stop)})
        cells.append(Cell(name, CASCADE, cascade, **size, label=f"{label}level {stop}"))
    for tol in (1e-1, 1e-2, 1e-3, 1e-4):
        cells.append(Cell(name, "maxmargin", Problem("svc", **terms, tol=tol), **size, label=f"{label}tol {tol:g}"))
    return cells


def _figure_1_cells(terms: dict[str, Any], size: dict[str, Any], k: int) -> list[Cell]:
    one = Problem("svc", **terms, tol=1e-6, options={"k": k, "levels": 1, "stop_level": 1})
    random = Problem("svc", **terms, tol=1e-6, options={"k": k})
    label, best = f"k {k}", Problem("svc", **terms, tol=1e-6)
    cells = [Cell("covtype", COEFFICIENTS, one, **size, label=label), Cell("covtype", RANDOM, random, **size, label=label)]
    return [*cells, Cell("covtype", "maxmargin", best, **size, label="k best")] if k == CLUSTERS[0] else cells


def _flat(name: str, terms: dict[str, Any], rows: int, k: int) -> Cell:
    problem = Problem("svc", **terms, options={"k": k, "levels": 1, "stop_level": 1})
    return Cell(name, COEFFICIENTS, problem, rows=rows, test_rows=2000, label=f"flat {k}")


def slacks(records: list[Record]) -> list[dict[str, float]]:
    """Of each clustering of figure 1: C, γ, k, the steps from bound to difference, and a random partition's difference."""
    done, found = [r for r in records if r["status"] == "ok" and r["label"].startswith("k ")], []
    for r in done:
        if r["solver"] != COEFFICIENTS or not set(STEPS) <= set(r["extra"]) or r.get("dual") is None:
            continue
        problem = r["problem"]
        same = [
            o for o in done if all(o["problem"][key] == problem[key] for key in ("C", "gamma")) and o.get("dual") is not None
        ]
        best = max(o["dual"] for o in same)
        random = [best - o["dual"] for o in same if o["solver"] == RANDOM and o["label"] == r["label"]]
        row = {"C": problem["C"], "gamma": problem["gamma"], "k": int(r["label"].split()[1]), "difference": best - r["dual"]}
        row |= {key: r["extra"][key] for key in (*STEPS, "cut", "mean_alpha", "recall", "precision")}
        found.append(row | ({"random": random[0]} if random else {}))
    return [row for row in found if row["difference"] > 0]


def slack_table(records: list[Record], heading: bool = True) -> str:
    head = [
        "C",
        "γ",
        "k",
        "kernel cut",
        "mean alpha",
        "Theorem 1",
        "Theorem 3",
        "with the alphas",
        "with signs",
        "difference",
    ]
    lines = [[*head, "Theorem 1 / difference", "difference, random"]]
    for row in slacks(records):
        numbers = [report.number(row[key], 3) for key in (*STEPS, "difference")]
        ratio, random = f"{row['theorem_1'] / row['difference']:,.3g}", report.number(row.get("random"), 3)
        first = [
            f"{row['C']:g}",
            f"{row['gamma']:g}",
            str(row["k"]),
            f"{100 * row['cut']:.2g} %",
            f"{row['mean_alpha']:.2g}",
        ]
        lines.append([*first, *numbers, ratio, random])
    title = "## From the bound to the difference, all of it exact\n\n" if heading else ""
    return title + report.markdown(lines) if len(lines) > 1 else ""


def flat_table(records: list[Record], heading: bool = True) -> str:
    """Who is found by flat clusterings, beside what a guess would find and how much of the kernel was cut."""
    head = [
        "set",
        "rows",
        "γ",
        "clusters",
        "rows per cluster",
        "kernel cut",
        "support vectors, of all rows",
        "recall",
        "precision",
    ]
    lines = [head]
    for r in records:
        x = r.get("extra", {})
        if r["label"].startswith("flat ") and r["status"] == "ok" and "recall" in x:
            k = int(x["clusters"])
            shares = [f"{100 * x[key]:.1f} %" if key in x else "" for key in ("cut", "support_share", "recall", "precision")]
            lines.append(
                [r["dataset"], f"{r['rows']:,}", f"{r['problem']['gamma']:g}", str(k), f"{r['rows'] / k:.0f}", *shares]
            )
    title = "## Who is found by flat clusterings\n\n" if heading else ""
    return title + report.markdown(lines) if len(lines) > 1 else ""


def _identified_text(run: dict[str, Any], solver: str) -> str:
    said = []
    for r in run["records"]:
        if r["status"] == "ok" and r["solver"] == solver and r["label"] == "level 4" and "recall" in r["extra"]:
            recall, precision = (100 * r["extra"][key] for key in ("recall", "precision"))
            said.append(f"{r['dataset']} ({r['rows']:,} rows): recall {recall:.0f} %, precision {precision:.0f} %")
    return "; ".join(said) or "(not measured yet)"


def difference(record: Record, records: list[Record]) -> float:
    """f of this model above the best known: duals are judged, and f = −dual."""
    terms = ("kernel", "C", "gamma")
    alike = [r for r in records if all(r["problem"][key] == record["problem"][key] for key in terms)]
    same = [
        r["dual"]
        for r in alike
        if (r["dataset"], r["rows"]) == (record["dataset"], record["rows"]) and r.get("dual") is not None
    ]
    return float(max(same) - record["dual"])


def bounds(records: list[Record]) -> list[tuple[int, float, float, float]]:
    """k, bound, difference by k-means, difference by a random partition."""
    found = []
    for k in CLUSTERS:
        papers = [r for r in records if r["problem"]["C"] == r["problem"]["gamma"] == 32.0]
        mine = {r["solver"]: r for r in papers if r["label"] == f"k {k}" and r.get("dual") is not None}
        if COEFFICIENTS in mine and RANDOM in mine:
            ours, random = mine[COEFFICIENTS], mine[RANDOM]
            both = difference(ours, records), difference(random, records)
            bound = ours["extra"].get(
                "theorem_1", ours["extra"]["bound"]
            )  # estimated, before it was computed over all pairs
            found.append((k, float(bound), *both))
    return found


def bound_table(records: list[Record]) -> str:
    lines = [["k", "bound", "difference, k-means", "bound / difference", "difference, random"]]
    for k, bound, ours, random in bounds([r for r in records if r["status"] == "ok"]):
        ratio = f"{bound / ours:.3g}" if ours > 0 else ""
        ratio = "below the difference" if bound < ours else ratio
        lines.append([str(k), report.number(bound, 3), report.number(ours, 3), ratio, report.number(random, 3)])
    if len(lines) == 1:
        return ""
    picture = "![bound and difference](dc_bound.svg)"
    return "## Figure 1: the bound and the difference\n\n" + report.markdown(lines) + "\n\n" + picture


def _figure_1(records: list[Record], folder: pathlib.Path) -> list[pathlib.Path]:
    points = bounds(records)
    names = ("bound", "difference, k-means", "difference, random partition")
    series = {name: [(float(p[0]), p[i]) for p in points if p[i] > 0] for i, name in enumerate(names, 1)}
    series = {name: line for name, line in series.items() if line}
    if not series:
        return []
    label = ("clusters", "f − f(best)")
    panels = {"covtype": series, "covtype, log scale": series}
    return plots.lines(folder / "dc_bound.svg", panels, [label, label], [("log", "linear"), ("log", "log")])


def _figure_2(records: list[Record], folder: pathlib.Path) -> list[pathlib.Path]:
    panels: dict[str, plots.Series] = {}
    for r in records:
        if r["solver"] in (COEFFICIENTS, CASCADE) and r["label"].startswith("level"):
            who = "CascadeSVM, " if r["solver"] == CASCADE else ""
            series = panels.setdefault(r["dataset"], {})
            for name in ("precision", "recall"):
                series.setdefault(who + name, []).append((float(r["label"].split()[1]), r["extra"][name]))
    label = ("level (0: the whole problem)", "share of the support vectors")
    return plots.lines(folder / "dc_support.svg", panels, [label] * len(panels), [("linear", "linear")] * len(panels))


def _figure_3(records: list[Record], folder: pathlib.Path) -> list[pathlib.Path]:
    errors: dict[str, plots.Series] = {}
    scores: dict[str, plots.Series] = {}
    for r in records:
        if r["label"].startswith(("k ", "flat ")):
            continue
        title = r["dataset"] + (", polynomial kernel" if r["label"].startswith("poly ") else "")
        if r["solver"] != LEVEL:
            name = {"maxmargin": "SVC by tol", CASCADE: "CascadeSVM"}.get(r["solver"], "DC-SVM by level")
            line = errors.setdefault(f"{title}: error", {}).setdefault(name, [])
            line.append((r["best"], max(r["dual_excess"], 1e-9)))
        if r["solver"] != COEFFICIENTS:
            name = {"maxmargin": "SVC by tol", CASCADE: "CascadeSVM"}.get(r["solver"], "DC-SVM by level, early prediction")
            line = scores.setdefault(f"{title}: accuracy", {}).setdefault(name, [])
            line.append((r["best"], 100 * r["score"]))
    labels = [("seconds", "relative error of the objective")] * len(errors)
    labels += [("seconds", "test accuracy, %")] * len(scores)
    scales = [("log", "log")] * len(errors) + [("log", "linear")] * len(scores)
    return plots.lines(folder / "dc_levels.svg", errors | scores, labels, scales)
