"""What is wrong with a model, from the evaluator's numbers of all models of the same problem."""

from __future__ import annotations

from typing import Any

from benchmarks.base import Experiment, Problem


def judge(records: list[dict[str, Any]], experiment: Experiment) -> None:
    """Compare objectives among the records that share an optimum; mark those that end above it."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for record in records:
        record["mark"] = None
        if record["status"] == "ok" and record.get("primal") is not None:
            problem = Problem(**record["problem"]).same_optimum()
            key = (record["dataset"], record["rows"], problem, record.get("penalised"))
            groups.setdefault(key, []).append(record)
    for group in groups.values():
        primal = min(record["primal_best"] for record in group)
        dual = max((record["dual"] for record in group if record["dual"] is not None), default=None)
        for record in group:
            record["primal_excess"] = _relative(record["primal"] - primal, primal)
            if record["dual"] is not None:
                record["dual_excess"] = _relative(dual - record["dual"], dual)
        yardsticks = {r["problem"]["tol"]: _excess(r) for r in group if r["solver"] == experiment.yardstick}
        for record in group:
            allowed = max(experiment.excess_allowed, 2 * yardsticks.get(record["problem"]["tol"], 0.0))
            record["mark"] = _mark(record, allowed, experiment)


def _excess(record: dict[str, Any]) -> float:
    """The dual value decides, as the primal one at the same accuracy grows with C and n; without a dual, the primal."""
    return float(record.get("dual_excess", record["primal_excess"]))


def _mark(record: dict[str, Any], allowed: float, experiment: Experiment) -> str | None:
    """What is wrong with a model, or None. (A good dual point may still have a wrong intercept, or be infeasible.)"""
    excess = _excess(record)
    if not excess <= allowed:
        return f"objective +{100 * excess:.2g} %"
    by_intercept = _relative(record["primal"] - record["primal_best"], record["primal_best"])
    if not by_intercept <= experiment.intercept_allowed:
        return f"intercept: objective +{100 * by_intercept:.2g} %"
    if record.get("infeasible") is not None and not record["infeasible"] <= experiment.infeasible_allowed:
        return f"infeasible by {100 * record['infeasible']:.2g} % of the bound"
    return None


def _relative(difference: float, scale: float) -> float:
    return difference / max(abs(scale), 1e-300)
