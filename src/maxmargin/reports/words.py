"""The certificate of a fit in words: what is proven, what is not, and why it ended."""

from __future__ import annotations

import math
from typing import Any

from maxmargin.estimators._summary import relative_gap, share

REASONS = {
    "max_time": "the time limit (max_time) came first",
    "max_iter": "the limit on turns (max_iter) came first",
    "stalled": "it made no more progress before it reached the tolerance: scale the features, lower C, or raise tol",
    "interrupted": "it was interrupted",
    "callback": "the callback stopped it",
}


def certificate(machine: Any) -> list[str]:
    """Sentences."""
    status = machine.status_
    if status == "unknown":
        return ["The model was read from a file of another program, which says nothing of how well it was trained."]
    out = [_end(machine, status)]
    if math.isfinite(machine.dual_gap_):
        bound = machine.objective_ - machine.dual_gap_
        out.append(
            f"Its objective is {machine.objective_:.10g}, and on the samples of the fit no machine with these parameters "
            f"has one below {bound:.10g}: it is at most {machine.dual_gap_:.3g} above the best possible, "
            f"{share(relative_gap(machine))} of it."
        )
    elif math.isfinite(machine.objective_):
        out.append(
            f"Its objective is {machine.objective_:.10g}. This engine has no lower bound: nothing is proven about how far "
            "that is from the best possible."
        )
    else:
        out.append("Nothing is known about the objective of the whole problem.")
    violation = getattr(machine, "kkt_violation_", math.nan)
    if math.isfinite(violation):
        out.append(f"The optimality conditions are violated by {violation:.3g} at most (tol = {machine.tol:g}).")
    level = getattr(machine, "level_", 0)
    if level and math.isfinite(getattr(machine, "level_gap_", math.nan)):
        out.append(
            f"The model is of level {level}, which solves another problem: one without a kernel between its clusters. The "
            f"objective of that, {machine.level_objective_:.6g}, is at most {machine.level_gap_:.3g} above its best."
        )
    return out


def _end(machine: Any, status: str) -> str:
    if status == "converged":
        return "The fit converged: it reached the tolerance that was asked for."
    if status == "completed":
        return "The fit made all the passes that were asked for; this engine has no tolerance to reach."
    if status == "early":
        return "The fit stopped at a level of divide and conquer, as asked; the whole problem was not solved."
    return f"The fit did not converge: {REASONS.get(status, status)}. The model is the best one reached."


def checked(answer: Any) -> str:
    """What `certify_fit` found."""
    return (
        f"Judged once more in plain NumPy, by none of the engine's code: objective {answer.primal:.10g}, lower bound "
        f"{answer.dual:.10g}, gap {answer.gap:.3g} ({share(max(answer.relative_gap, 0.0))}), violation "
        f"{answer.violation:.3g}, constraints kept to {answer.infeasibility:.1g}."
    )
