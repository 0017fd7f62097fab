"""`cv_results_`: GridSearchCV's columns, and what is proven of each cell.

    params, param_NAME                        the setting
    splitK_test_score, mean_, std_, rank_     NaN where a fold was not solved; such cells rank behind the others
    mean_fit_time, std_fit_time, mean_score_time, std_score_time    seconds per fold that was solved
    status                                    see board.py
    score_bound                               the mean, or what it could be at most
    splitK_objective, splitK_gap, splitK_n_support, mean_objective, mean_gap, mean_n_support
    seconds                                   of the cell
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from maxmargin.selection.board import Board, Outcome

PER_FOLD = ("objective", "gap", "n_support")


def results_table(board: Board) -> dict[str, Any]:
    """The table of a board, a dict of arrays with one entry per cell."""
    cells = range(len(board.cells))
    table: dict[str, Any] = {
        "mean_fit_time": _over_folds(board, "seconds", np.mean),
        "std_fit_time": _over_folds(board, "seconds", np.std),
        "mean_score_time": _over_folds(board, "score_seconds", np.mean),
        "std_score_time": _over_folds(board, "score_seconds", np.std),
    }
    for name in board.cells[0]:
        table[f"param_{name}"] = np.ma.masked_array(_array([params[name] for params in board.cells]), mask=False)
    table["params"] = list(board.cells)
    for k in range(board.n_folds):
        table[f"split{k}_test_score"] = _column(board, k, "score")
    mean = np.array([board.mean(c) for c in cells])
    scores = np.array([table[f"split{k}_test_score"] for k in range(board.n_folds)])
    table["mean_test_score"] = mean
    table["std_test_score"] = np.where(np.isnan(mean), np.nan, np.std(np.where(np.isnan(scores), 0.0, scores), axis=0))
    table["rank_test_score"] = _ranks(mean)
    table["status"] = np.array([board.status(c) for c in cells])
    table["score_bound"] = np.array([board.bound(c) for c in cells])
    for what in PER_FOLD:
        for k in range(board.n_folds):
            table[f"split{k}_{what}"] = _column(board, k, what)
        table[f"mean_{what}"] = _over_folds(board, what, np.mean)
    table["seconds"] = np.array([board.seconds(c) for c in cells])
    return table


def _array(values: list[Any]) -> NDArray[Any]:
    numbers = all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in values)
    if numbers:
        return np.array(values, np.float64)
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _column(board: Board, fold: int, what: str) -> NDArray[np.float64]:
    outcomes: list[Outcome | None] = [board.outcomes(c).get(fold) for c in range(len(board.cells))]
    return np.array([np.nan if o is None else getattr(o, what) for o in outcomes], np.float64)


def _over_folds(board: Board, what: str, of: Any) -> NDArray[np.float64]:
    found = [[getattr(o, what) for o in board.outcomes(c).values()] for c in range(len(board.cells))]
    return np.array([of(values) if values else np.nan for values in found], np.float64)


def _ranks(mean: NDArray[np.float64]) -> NDArray[np.int32]:
    """1 is the best; what is not known comes last, all with the same rank, as in scikit-learn."""
    known = np.where(np.isnan(mean), np.nanmin(mean, initial=0.0) - 1.0, mean)
    return np.asarray(rankdata(-known, method="min"), np.int32)
