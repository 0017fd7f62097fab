"""How a model that is one support vector too large gets back to its budget: the choices and their statistics.

    merge     the smallest |beta| is merged with the partner of its label that degrades w least (algorithm 1 of the
              paper, with m = alpha_min/(alpha_min + alpha), the reverse of what is printed there). Ties go to the
              newcomer, then to the oldest. Without a partner of its label, the smallest that has one is merged;
              when no label occurs twice, the smallest is removed. With the drop rule, which the paper does not have,
              it is also removed when merging would keep less than 1e-4 of it.
    remove    the smallest |beta| leaves, the oldest on ties.
    project   as remove, after projecting what it contributed onto the span of the others.

The loops are in native/budget/maintenance.hpp.
"""

from __future__ import annotations

from typing import Final

MAINTENANCE: Final = {"merge": 0, "remove": 1, "project": 2}
MERGE_SEARCH: Final = {"lookup-wd": 0, "lookup-h": 1, "gss": 2, "gss-precise": 3}


def merging_statistics(counters: dict[str, float]) -> dict[str, float]:
    """The paper's Table 3 from the core's counters: how often, how well and for how long the budget was maintained.

    merges, removals, projections      events; removals are support vectors that were dropped
    merging_frequency                  events per step
    mean_degradation                   |w' - w|² of an event, in units where a new support vector of weight 1 is 1
    search_seconds, other_seconds      A and B of the paper's figure 3

    After an audited run also, of the merges alone, each decided by every method without the drop rule:

    equal_to_gss, …                    the share in which two methods choose the same partner
    factor_lookup_wd, factor_gss       WD of a method's choice over that of gss-precise: the mean over the merges
    total_factor_lookup_wd, …          the same as a quotient of the sums over the merges
    useless_lookup_wd, useless_gss     the share in which the method's choice keeps less than 1e-4 of the smaller one, so
                                       that the drop rule would drop it
    """
    steps = max(counters["steps"], 1.0)
    events = counters["merges"] + counters["removals"] + counters["projections"]
    statistics = {name: counters[name] for name in ("steps", "violations", "duplicates", "merges", "removals")}
    statistics |= {
        "projections": counters["projections"],
        "merging_frequency": events / steps,
        "mean_degradation": counters["degradation"] / max(events, 1.0),
        "search_seconds": counters["search_seconds"],
        "other_seconds": counters["merge_seconds"],
    }
    audits = counters["audits"]
    if audits:
        least = counters["total_precise"]
        statistics |= {
            "equal_to_gss": counters["same_wd_gss"] / audits,
            "equal_to_precise": counters["same_wd_precise"] / audits,
            "gss_equal_to_precise": counters["same_gss_precise"] / audits,
            "factor_lookup_wd": counters["factor_wd"] / audits,
            "factor_gss": counters["factor_gss"] / audits,
            "total_factor_lookup_wd": counters["total_wd"] / least if least > 0 else 1.0,
            "total_factor_gss": counters["total_gss"] / least if least > 0 else 1.0,
            "useless_lookup_wd": counters["useless_wd"] / audits,
            "useless_gss": counters["useless_gss"] / audits,
        }
    return statistics
