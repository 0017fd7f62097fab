"""The parts of a search by themselves, each against its definition: board, table, folds, samples, plans, matrices."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.metrics import accuracy_score, get_scorer, make_scorer, mean_squared_error
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from maxmargin import SVC, SVR, NuSVC
from maxmargin.data.rows import distinct_rows
from maxmargin.decomposition.options import Options
from maxmargin.divide.clustering import Centers, Partition
from maxmargin.estimators._labelled import Labelled
from maxmargin.problem.formulations import InfeasibleError, c_svc, epsilon_svr
from maxmargin.problem.kernels import Kernel
from maxmargin.selection import kernel as kernel_engine
from maxmargin.selection.board import Board, Outcome
from maxmargin.selection.chain import CONVERGED, DROPPED, Chain, Ended, Link
from maxmargin.selection.cluster_problems import Settings, Verdicts
from maxmargin.selection.clusters import ClusterFolds, Division, Tally, _Race
from maxmargin.selection.fits import Fits, fitted_from, part_of, support_count
from maxmargin.selection.folds import Fold, folds_of
from maxmargin.selection.grid import Grid
from maxmargin.selection.judged import Judged
from maxmargin.selection.kernel import KernelFolds, can_share
from maxmargin.selection.matrices import Matrices, but_for_rounding
from maxmargin.selection.plan import Plan
from maxmargin.selection.samples import Samples
from maxmargin.selection.scoring import Scoring
from maxmargin.selection.search import Search, Task, rungs
from maxmargin.selection.table import results_table

SEEDS = pytest.mark.parametrize("seed", range(6))


# ---- the board and its table ------------------------------------------------------------------------------------------


def history(seed: int, ceiling: float | None = 1.0) -> tuple[Board, dict[tuple[int, int], Outcome], set[int]]:
    """A board of cells of which some are known on some folds, in any order, and some are left."""
    rng = np.random.default_rng(seed)
    board, known, left = Board(3, ceiling), {}, set()
    values = np.exp(rng.normal(size=(8, 2)))
    assert board.add({"C": c, "gamma": g, "kernel": "rbf"} for c, g in values[:5]) == [0, 1, 2, 3, 4]
    assert board.add({"C": c, "gamma": g, "kernel": "rbf"} for c, g in values[5:]) == [5, 6, 7]
    for cell, fold in rng.permutation(list(itertools.product(range(8), range(3)))).tolist():
        if rng.random() < 0.25 or cell == 7:
            continue
        score = float("nan") if rng.random() < 0.05 else float(rng.integers(0, 4)) / 4
        outcome = Outcome(
            score, rng.choice(["converged"] * 9 + ["stalled"]), *rng.random(2), int(rng.integers(9)), *rng.random(2)
        )
        board.put(cell, fold, outcome)
        known[cell, fold] = outcome
    for cell in rng.choice(8, 2, replace=False).tolist():
        board.leave(cell)
        left.add(cell)
    return board, known, left


def scores(known: dict[tuple[int, int], Outcome], cell: int) -> list[float]:
    return [o.score for (c, _), o in sorted(known.items()) if c == cell]


@SEEDS
@pytest.mark.parametrize("ceiling", [1.0, None])
def test_a_board_says_what_its_outcomes_say(seed: int, ceiling: float | None) -> None:
    board, known, left = history(seed, ceiling)
    means = [float(np.mean(scores(known, c))) if len(scores(known, c)) == 3 else np.nan for c in range(8)]
    np.testing.assert_allclose([board.mean(c) for c in range(8)], means)
    best = None if np.isnan(means).all() else int(np.nanargmax(means))
    assert board.best == best and (best is None or board.best_score == pytest.approx(means[best]))
    assert board.settled == sum(3 if c in left else len(scores(known, c)) for c in range(8))
    for c in range(8):
        mine, complete = scores(known, c), len(scores(known, c)) == 3
        most = np.mean([*mine, *[np.inf if ceiling is None else ceiling] * (3 - len(mine))])
        assert board.complete(c) == complete
        if complete or not np.isnan(mine).any():
            assert board.bound(c) == pytest.approx(most, nan_ok=True)
        bad = [o.status for (cell, _), o in known.items() if cell == c and o.status != "converged"]
        assert board.status(c) in (["halved"] if c in left else ["not tried"] if not complete else bad or ["certified"])
        assert board.seconds(c) == pytest.approx(sum(o.seconds + o.score_seconds for (k, _), o in known.items() if k == c))
    for c in range(8):
        hopeless = (
            ceiling is not None and best is not None and not board.complete(c) and not board.bound(c) >= means[best] - 1e-9
        )
        assert board.wanted(c) == (c not in left and not hopeless)
        assert c in left or (board.status(c) == "dropped") == hopeless


def test_a_cell_that_may_still_be_as_good_as_the_best_is_wanted() -> None:
    board = Board(2, 1.0)
    board.add([{"C": 1.0}, {"C": 2.0}, {"C": 3.0}])
    for fold in range(2):
        board.put(1, fold, Outcome(0.75))
    board.put(0, 0, Outcome(0.5))
    board.put(2, 0, Outcome(0.25))
    assert board.wanted(0) and not board.wanted(2) and board.status(2) == "dropped"
    board.put(0, 1, Outcome(1.0))
    assert board.best == 0  # of equals the first, whenever it came
    assert board.wanted(0) and not board.wanted(2)


@SEEDS
def test_what_remains_takes_as_long_as_the_nearest_that_is_known(seed: int) -> None:
    board, known, left = history(seed)
    expected = 0.0
    for c in range(8):
        if c in left or board.complete(c):
            continue
        there = [k for k in range(8) if any(cell == k for cell, _ in known)]
        far = [sum(abs(np.log(board.cells[c][n] / board.cells[k][n])) for n in ("C", "gamma")) for k in there]
        near = there[int(np.argmin(far))]
        expected += (3 - len(board.outcomes(c))) * board.seconds(near) / len(board.outcomes(near))
    assert board.remaining() == pytest.approx(expected)
    fresh = Board(2)
    assert fresh.remaining() == 0.0 and np.isnan(fresh.best_score)
    fresh.add([{"C": 1.0}])
    assert np.isnan(fresh.remaining())


@SEEDS
def test_a_table_says_what_its_board_says(seed: int) -> None:
    board, known, _ = history(seed)
    table = results_table(board)
    mean = table["mean_test_score"]
    for c in range(8):
        mine = {fold: o for (cell, fold), o in known.items() if cell == c}
        for fold in range(3):
            for name, column in (("score", "test_score"), ("objective",) * 2, ("gap",) * 2, ("n_support",) * 2):
                expected = getattr(mine[fold], name) if fold in mine else np.nan
                np.testing.assert_equal(float(table[f"split{fold}_{column}"][c]), float(expected))
        for name, of in (("fit_time", "seconds"), ("score_time", "score_seconds")):
            values = [getattr(o, of) for o in mine.values()]
            assert table[f"mean_{name}"][c] == pytest.approx(np.mean(values) if values else np.nan, nan_ok=True)
            assert table[f"std_{name}"][c] == pytest.approx(np.std(values) if values else np.nan, nan_ok=True)
        for name in ("objective", "gap", "n_support"):
            values = [getattr(o, name) for o in mine.values()]
            assert table[f"mean_{name}"][c] == pytest.approx(np.mean(values) if values else np.nan, nan_ok=True)
        std = np.std([o.score for o in mine.values()]) if len(mine) == 3 else np.nan
        assert table["std_test_score"][c] == pytest.approx(std, nan_ok=True)
        assert table["seconds"][c] == board.seconds(c) and table["status"][c] == board.status(c)
        assert table["score_bound"][c] == pytest.approx(board.bound(c), nan_ok=True) and table["params"][c] == board.cells[c]
    assert table["rank_test_score"].tolist() == rankdata(np.where(np.isnan(mean), 9.0, -mean), method="min").tolist()
    assert table["param_C"].dtype == np.float64 and table["param_kernel"].dtype == object
    assert not np.ma.getmaskarray(table["param_C"]).any()


def test_values_that_are_no_numbers_stay_what_they_are() -> None:
    board = Board(1)
    board.add([{"flag": True, "C": 1}, {"flag": False, "C": 2.5}])
    table = results_table(board)
    assert table["param_flag"].tolist() == [True, False] and table["param_flag"].dtype == object
    assert table["param_C"].tolist() == [1.0, 2.5]


# ---- tasks, folds, rungs ----------------------------------------------------------------------------------------------


def labelled(seed: int = 0, n: int = 60, classes: int = 3, copies: bool = False) -> tuple[Labelled, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.arange(n) % classes if classes else rng.normal(size=n)
    if copies:
        X[n // 2 :], y[n // 2 :] = X[: n - n // 2], y[: n - n // 2]
    weight = rng.integers(0, 4, n).astype(float)
    weight[:classes] = 1.0
    if classes:
        return Labelled(X, y.astype(float), weight, np.array(list("abcdef"))[:classes], np.ones(classes)), np.array(
            list("abcdef")
        )[y]
    return Labelled(X, y, weight, np.empty(0), np.empty(0)), y


@pytest.mark.parametrize("square", [False, True])
def test_a_part_of_a_task_is_the_task_of_these_rows(square: bool) -> None:
    data, y = labelled()
    if square:
        data = Labelled(data.X @ data.X.T, data.target, data.weight, data.classes, data.factors)
    folds = [Fold(train, test) for train, test in KFold(3).split(data.X)]
    rows = np.flatnonzero(np.random.default_rng(1).random(60) < 0.5)
    task = Task(data, y, folds, weighed=True, square=square)
    part = task.part(rows)
    np.testing.assert_array_equal(part.data.X, data.X[rows][:, rows] if square else data.X[rows])
    np.testing.assert_array_equal(part.data.target, data.target[rows])
    np.testing.assert_array_equal(part.y, y[rows])
    for mine, whole in zip(part.folds, folds, strict=True):
        assert set(rows[mine.train]) == set(whole.train) & set(rows) and set(rows[mine.test]) == set(whole.test) & set(rows)
    np.testing.assert_array_equal(part.weight(np.arange(5)), data.weight[rows[:5]])
    assert Task(data, y, folds).weight(rows) is None


@pytest.mark.parametrize("rows", [100, 499, 1500, 1501, 5000, 14000])
@pytest.mark.parametrize("cells", [1, 2, 3, 9, 30])
def test_rungs_are_growing_parts_of_every_class(rows: int, cells: int) -> None:
    """Each has a third of the rows of the next, the first at least 500, and no more rungs than cells can be divided for."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, 2 * rows)
    weight = np.tile([0.0, 1.0], rows)
    data = Labelled(np.zeros((2 * rows, 1)), code.astype(float), weight, np.arange(3), np.ones(3))
    found = rungs(Task(data, code, []), cells, 0)
    most = max((k for k in range(9) if rows >= 500 * 3**k), default=0)
    assert len(found) == min(most, max(k for k in range(9) if cells >= 3**k))
    for k, some in enumerate(found):
        share = 3.0 ** -(len(found) - k)
        assert (weight[some] > 0).all() and (np.diff(some) > 0).all()
        assert k == 0 or set(found[k - 1]) <= set(some)
        for c in range(3):
            assert abs((code[some] == c).sum() - share * ((code == c) & (weight > 0)).sum()) <= 0.5 + 1e-9


@pytest.mark.parametrize("classes", [0, 3])
def test_folds_are_those_of_scikit_learn_on_the_rows_that_count(classes: int) -> None:
    data, y = labelled(classes=classes)
    rows = np.flatnonzero(data.weight > 0)
    groups = np.arange(60) // 5
    splits = [(np.arange(30), np.arange(30, 60)), (np.arange(60) % 2 == 0, np.arange(60) % 2 == 1)]
    own = (StratifiedKFold if classes else KFold)(4)
    for cv, inner, among in ((4, own, None), (KFold(3), KFold(3), None), (GroupKFold(3), GroupKFold(3), groups)):
        found = folds_of(cv, data, y, among)
        expected = list(inner.split(data.X[rows], y[rows], None if among is None else among[rows]))
        assert len(found) == len(expected)
        for mine, (train, test) in zip(found, expected):
            assert mine.train.tolist() == rows[train].tolist() and mine.test.tolist() == rows[test].tolist()
    for mine, (train, test) in zip(folds_of(splits, data, y), splits, strict=True):
        assert set(mine.train) == set(np.arange(60)[train]) & set(rows)
        assert set(mine.test) == set(np.arange(60)[test]) & set(rows)


@pytest.mark.parametrize(("cv", "groups", "message"), [
    (GroupKFold(2), None, "splits by groups"), (2, np.zeros(7), "7 entries for 60 rows"), ([], None, "makes no fold"),
    ([(np.arange(3), np.empty(0, int))], None, "3 rows to fit and 0 to judge"), ([([0, 60], [1])], None, "does not have"),
    ([([0, -1], [1])], None, "does not have"), ([([0, 1], [])], None, "2 rows to fit and 0"), (1, None, "cv=1"),
    ([([[0], [1]], [2])], None, "does not have"),
])  # fmt: skip
def test_folds_that_cannot_be_are_refused(cv: Any, groups: Any, message: str) -> None:
    data, y = labelled()
    data.weight[:] = 1.0
    with pytest.raises(ValueError, match=message):
        folds_of(cv, data, y, groups)


def test_the_first_and_the_last_row_may_be_named() -> None:
    data, y = labelled()
    data.weight[:] = 1.0
    (fold,) = folds_of([([0, 59], [30])], data, y)
    assert fold.train.tolist() == [0, 59] and fold.test.tolist() == [30]


def test_time_for_the_refit_is_more_than_the_longest_fold_of_the_best_took() -> None:
    board = Board(2)
    search = Search(Grid({"C": [1.0, 2.0]}), board, None, None)  # type: ignore[arg-type]
    board.add(search.grid.cells())
    assert search.reserve() == 0.0
    for cell, fold, seconds in ((0, 0, 3.0), (0, 1, 5.0), (1, 0, 50.0), (1, 1, 50.0)):
        board.put(cell, fold, Outcome(1.0 - cell, seconds=seconds))
    assert 5.0 <= search.reserve() <= 10.0


# ---- samples and plans --------------------------------------------------------------------------------------------------


@SEEDS
@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("weights", [None, "balanced", {"a": 3.0}])
def test_sides_weigh_samples_as_their_rows_do(seed: int, classes: int, weights: Any) -> None:
    data, y = labelled(seed, classes=classes, copies=True)
    if weights is not None and not classes:
        return
    folds = [Fold(train, test) for train, test in KFold(3, shuffle=True, random_state=seed).split(data.X)]
    if classes == 4:  # one that does not see the last class
        folds.append(Fold(np.flatnonzero(data.target < 3), np.flatnonzero(data.target == 3)))
    samples = Samples(Task(data, y, folds), weights, True, 1)
    assert samples.pairs == (list(itertools.combinations(range(classes), 2)) or [(0, -1)])
    place = samples.sample_of(np.arange(60))
    assert ((place >= 0) == (data.weight > 0)).all()
    for fold, rows in ((-1, np.arange(60)), *((k, f.train) for k, f in enumerate(folds))):
        side = samples.side(fold)
        for i in range(samples.n):
            assert side.weight[i] == pytest.approx(data.weight[rows[place[rows] == i]].sum())
        assert side.test.tolist() == (place[folds[fold].test].tolist() if fold >= 0 else [])
        if not classes:
            continue
        mass = np.bincount(data.target[rows].astype(int), data.weight[rows], minlength=classes)
        assert side.present.tolist() == np.flatnonzero(mass > 0).tolist()
        for c in side.present:
            balanced = mass.sum() / ((mass > 0).sum() * mass[c])
            factor = balanced if weights == "balanced" else 1.0 if weights is None else weights.get(data.classes[c], 1.0)
            assert side.factors[c] == pytest.approx(factor)
    for pair in samples.pairs:
        mine = [i for i in range(samples.n) if not classes or samples.label[i] in pair]
        assert samples.chosen(pair).tolist() == mine
    values = samples.by_row(np.arange(float(samples.n)))
    np.testing.assert_array_equal(values, np.where(place >= 0, place, np.nan))
    np.testing.assert_array_equal(samples.target, data.target[samples.rows.index])


@pytest.mark.parametrize("infeasible", [set(), {(0, -1)}, {(1, -1)}, {(1, 0)}, {(0, 1), (2, 1)}])
@pytest.mark.parametrize("wanted", [{(k, f) for k in range(3) for f in range(2)}, {(0, 1), (2, 0), (2, 1)}, {(1, 0)}])
def test_a_plan_begins_problems_from_those_before_them(infeasible: Any, wanted: Any) -> None:
    """On all rows from the last cell's; a fold from all rows, with what it did at the last cell if that is known."""
    present = {-1: [0, 1, 2], 0: [0, 1, 2], 1: [0, 2]}

    class Engine:
        task = SimpleNamespace(folds=[0, 1])
        sides: ClassVar = {fold: SimpleNamespace(present=np.array(some)) for fold, some in present.items()}
        samples = SimpleNamespace(ranges=lambda pair: (*pair, *pair))

        def qp(self, machine: int, fold: int, pair: Any) -> Any:
            if (machine, fold) in infeasible:
                raise InfeasibleError("too much")
            return c_svc(np.array([1.0, -1.0]), np.array([1.0, 2.0 + machine]))

        def extra(self, fold: int, pair: Any) -> Any:
            return np.array([fold, *pair])

    pairs, sizes = [(0, 1), (0, 2), (1, 2)], [1.0, 4.0, 6.0]
    plan = Plan(Engine(), [0, 1, 2], sizes, wanted, pairs)
    where = {(cell, problem.fold, problem.pair): p for (cell, fold), at in plan.keys.items()
             for p, problem in enumerate(plan.problems) if at.start <= p < at.stop}  # fmt: skip
    assert set(plan.keys) == wanted | {(k, -1) for k in range(3)} and len(where) == len(plan.problems)
    assert set(where) == {(k, f, pair) for k, f in plan.keys for pair in pairs
                          if (k, f) not in infeasible and set(pair) <= set(present[f])}  # fmt: skip
    assert plan.failed == dict.fromkeys(infeasible & wanted, "too much")
    for (cell, fold, pair), p in where.items():
        problem = plan.problems[p]
        before = where.get((cell - 1, -1, pair), -1)
        if fold < 0:
            assert (problem.parent, problem.like, problem.unlike) == (before, -1, -1) and not len(problem.extra)
            assert problem.ratio == (sizes[cell] / sizes[cell - 1] if cell else 1.0)
            continue
        whole, then = where.get((cell, -1, pair), -1), where.get((cell - 1, fold, pair), -1)
        beside = (then, before) if min(whole, before, then) >= 0 else (-1, -1)
        assert (problem.parent, problem.like, problem.unlike) == (whole, *beside) and problem.ratio == 1.0
        assert problem.extra.tolist() == [fold, *pair]
        assert max(problem.parent, problem.like, problem.unlike) < p


def test_a_fold_of_one_class_fails_in_a_plan() -> None:
    engine = SimpleNamespace(
        task=SimpleNamespace(folds=[0]), qp=lambda *_: c_svc(np.ones(1), np.ones(1)), extra=lambda *_: np.empty(0, int),
        sides={-1: SimpleNamespace(present=np.array([0, 1])), 0: SimpleNamespace(present=np.array([1]))},
    )  # fmt: skip
    plan = Plan(engine, [0], [1.0], {(0, 0)}, [(0, 1)])
    assert list(plan.failed) == [(0, 0)] and "one class" in plan.failed[0, 0] and len(plan.problems) == 1


# ---- kernel matrices ----------------------------------------------------------------------------------------------------


def values_of(gram: Any, n: int) -> np.ndarray:
    out = np.empty((n, n))
    gram.rows(np.arange(n), out)
    return out


@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear", "poly", "sigmoid", "precomputed"])
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("room", [1.0, 1.6, 4.0])
def test_matrices_are_the_kernels_but_for_their_noise(name: str, form: str, room: float) -> None:
    """Of any gamma after any other, with room for what they have in common and without, of more rows than a block."""
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(420, 3)) + 2.0, np.sort(rng.permutation(420)[:300])
    if form == "csr":
        X[np.abs(X) < 1.5] = 0.0
    given = X @ X.T if name == "precomputed" else sp.csr_matrix(X) if form == "csr" else X
    if name == "precomputed" and form == "csr":
        return
    matrices = Matrices(given, rows, name, 0.3, 2, 1, room * 4 * 300 * 320)
    assert matrices.fits
    for gamma in (0.1, 0.5, 0.1, 3.0):
        exact = given[np.ix_(rows, rows)] if name == "precomputed" else Kernel(name, gamma, 0.3, 2)(X[rows], X[rows])
        largest = matrices.magnitude(gamma) ** 2
        assert np.abs(exact).max() <= largest * (1 + 1e-12)
        found = values_of(matrices.gram(gamma), 300)
        assert np.abs(found - exact).max() <= matrices.noise(gamma) * largest * (1 + 1e-6) + 1e-13 * largest
        assert matrices.noise(gamma) < 1e-6


@pytest.mark.parametrize("n", [1, 10, 300])
def test_a_matrix_fits_where_there_is_room_for_its_values(n: int) -> None:
    def fits(room: float) -> bool:
        return Matrices(np.ones((n, 1)), np.arange(n), "rbf", 0.0, 3, 1, room).fits

    assert not fits(4 * n * n - 1) and fits(4 * n * (n + 64)) and not fits(0)


def test_what_is_rounding_is_nothing() -> None:
    values = np.array([1.0, -1e-9, 1e-13, -1e-13, 0.0])
    assert but_for_rounding(values, 1.0).tolist() == [1.0, -1e-9, 0.0, 0.0, 0.0]
    assert but_for_rounding(values, 1e-3).tolist() == values.tolist()
    assert but_for_rounding(np.array([[2e-12], [2e-12]]), np.array([[1.0], [4.0]])).tolist() == [[2e-12], [0.0]]


# ---- chains -------------------------------------------------------------------------------------------------------------


def ended(rng: Any, qp: Any, K: np.ndarray, scale: float = 1.0) -> Ended:
    """A point of a problem, some of it at its bounds, and f of it."""
    upper = scale * qp.upper
    share = rng.choice([0.0, 0.3, 0.7, 1.0], len(upper))
    alpha = share * upper
    coef = (qp.sign * alpha).reshape(-1, qp.n).sum(axis=0)
    return Ended(alpha, coef, K @ coef, 10.0 * scale, np.float64, upper)


@SEEDS
@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("beside", [False, True])
def test_where_a_problem_begins_f_is_that_of_its_parents_and_of_what_has_changed(seed: int, kind: str, beside: bool) -> None:
    rng = np.random.default_rng(seed)
    n, ratio = 12, 3.0
    A = rng.normal(size=(n, n))
    K, y = A @ A.T, np.where(np.arange(n) % 2, 1.0, -1.0)
    upper = rng.uniform(1.0, 2.0, n)
    qp = c_svc(y, upper) if kind == "classes" else epsilon_svr(rng.normal(size=n), 0.1, upper)
    parent = ended(rng, qp, K, 1 / ratio)
    link = Link(qp, None, None, None, 0, 1 if beside else -1, 2 if beside else -1, ratio)  # type: ignore[arg-type]
    chain = Chain([link] * 4, Options())
    chain._ended = {0: parent}
    if beside:
        chain._ended |= {1: ended(rng, qp, K), 2: ended(rng, qp, K)}
    alpha = chain._begun(link)
    assert alpha is not None and (alpha >= 0).all() and (alpha <= qp.upper).all()
    for g, target in enumerate(qp.targets):
        assert abs((qp.sign * alpha)[qp.group == g].sum() - target) <= 1e-12
    # What f is known of may be any point, here one that differs from a parent at three samples.
    others = chain._ended[1].coef - chain._ended[2].coef if beside else np.zeros(n)
    for s in (1.0, ratio):
        coef = s * parent.coef + others
        coef[:3] += 0.25
        flat = np.concatenate([np.maximum(coef, 0), np.maximum(-coef, 0)]) if kind == "numbers" else y * coef
        known = chain._known(link, flat, np.dtype(np.float64))
        assert known is not None and np.count_nonzero(known.change) == 3
        np.testing.assert_allclose(known.f + K @ known.change, K @ coef, atol=1e-9 * np.abs(K @ coef).max())
        paths = sum(chain._ended[k].path for k in (1, 2)) if beside else 0.0
        assert known.path == pytest.approx(s * parent.path + paths)
        assert chain._known(link, flat, np.dtype(np.float32)) is None
    assert chain._known(link, rng.uniform(0.1, 0.9, len(qp.upper)) * qp.upper, np.dtype(np.float64)) is None
    assert chain._known(link, None, np.dtype(np.float64)) is None
    chain._ended.clear()
    assert chain._begun(link) is None


def test_bounds_begin_at_bounds() -> None:
    upper = np.full(6, 2.0)
    qp = c_svc(np.array([1.0, 1, 1, -1, -1, -1]), upper, fit_intercept=False)
    link = Link(qp, None, None, None, 0, ratio=2.0)  # type: ignore[arg-type]
    chain = Chain([link, link], Options())
    alpha = np.array([0.0, 1.0, 0.5, 1.0, 0.0, 0.25])
    chain._ended = {0: Ended(alpha, qp.sign * alpha, np.zeros(6), 0.0, np.float64, np.ones(6))}
    assert chain._begun(link).tolist() == [0.0, 2.0, 0.5, 2.0, 0.0, 0.25]  # type: ignore[union-attr]


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("loose", [0.0, 0.1])
@pytest.mark.parametrize("spread", [1e-6, 0.5, 9.0])
def test_folds_are_solved_as_loosely_as_their_values_spread(fold: bool, loose: float, spread: float) -> None:
    qp = c_svc(np.array([1.0, -1.0]), np.ones(2))
    link = Link(qp, None, None, None, 0, fold=fold)  # type: ignore[arg-type]
    chain = Chain([link, link], Options(tol=1e-3), loose)
    chain._ended = {0: Ended(np.zeros(2), np.zeros(2), np.array([spread, -spread]), 0.0, np.float64, np.ones(2))}
    assert chain._tol(link) == pytest.approx(max(1e-3, loose * min(1.0, spread)) if fold else 1e-3)


def test_solutions_are_forgotten_when_nothing_more_begins_from_them_and_only_what_waits_is_dropped() -> None:
    qp = c_svc(np.array([1.0, -1.0]), np.ones(2))
    parents = [-1, 0, 0, 2]
    chain = Chain([Link(qp, None, None, None, parent) for parent in parents], Options())  # type: ignore[arg-type]
    for done in range(5):
        chain._ended = {p: Chain._nothing(qp) for p in range(done)}
        chain.stage[:] = [CONVERGED] * done + [0] * (4 - done)
        chain._forget()
        # one that is done is kept while the last that begins from it, or itself, is not behind all that is open
        assert sorted(chain._ended) == [
            p for p in range(done) if max([p, *(q for q in range(4) if parents[q] == p)]) >= done
        ]
    chain.stage[:] = [CONVERGED, 1, 0, 0]
    for p in range(4):
        chain.drop(p)
    assert chain.stage.tolist() == [CONVERGED, 1, DROPPED, DROPPED]


# ---- clusters -----------------------------------------------------------------------------------------------------------


@SEEDS
def test_a_division_is_the_same_for_samples_in_another_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    X[20:] = X[:10]
    weight = rng.integers(0, 3, 30).astype(float)
    rows = distinct_rows(X, np.zeros(30), weight, merge=True, threads=1)
    n = len(rows.index)
    child = Centers(rng.permutation(n)[:2], np.array([1, 2]), np.zeros(2), np.array([1, 2]))
    centers = Centers(rng.permutation(n)[:3], np.array([2, 3]), np.zeros(2), np.array([0, -1]), {1: child})
    found = Partition(rng.integers(0, 3, n), 3, centers, rng.permutation(n)[:4], Kernel("rbf", 1.0))
    kept = Division.of(found, rows, 30)
    for row in range(30):
        mine = [rows.owner[m] for m in range(len(rows.member)) if rows.member[m] == row]
        assert kept.label[row] == (found.label[mine[0]] if mine else -1) and bool(mine) == (weight[row] > 0)
    for again in (rows, rows.reordered(rng.permutation(n))):
        moved = kept.partition(again)
        assert moved.n_clusters == 3 and moved.kernel == found.kernel
        np.testing.assert_array_equal(X[again.index[moved.sample]], X[rows.index[found.sample]])
        for mine, then in ((moved.centers, centers), (moved.centers.children[1], child)):
            np.testing.assert_array_equal(X[again.index[mine.rows]], X[rows.index[then.rows]])
            assert mine.end is then.end and mine.number is then.number
        by_row = np.full(30, -1)
        by_row[again.member] = moved.label[again.owner]
        np.testing.assert_array_equal(by_row, kept.label)


def verdicts(rng: Any, cells: int, rows: Any, judged: Any, problems: int = 0) -> Verdicts:
    shape = (cells, len(judged))
    right, objective, gap, seconds = (rng.random(shape) for _ in range(4))
    values = [rng.random((cells, len(some), problems)).astype(np.float32) for some in judged] if problems else None
    support = rng.integers(0, 9, shape)
    return Verdicts(rows, right, objective, gap, support, seconds, rng.random(shape) < 0.7, judged, values)


@SEEDS
def test_what_clusters_say_adds_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight, tally = rng.random(20), Tally.zeros(4, 2)
    said = []
    for rows, who in ((np.arange(5), [0, 1, 2, 3]), (np.arange(5, 12), [0, 2]), (np.arange(12, 20), [2])):
        judged = [np.flatnonzero(rng.random(len(rows)) < 0.5) for _ in range(2)]
        one = verdicts(rng, len(who), rows, judged)
        tally.add(np.array(who), one, weight)
        said.append((who, one))
    for cell, fold in itertools.product(range(4), range(2)):
        mine = [(one, who.index(cell)) for who, one in said if cell in who]
        for name in ("right", "objective", "gap", "n_support", "seconds"):
            assert getattr(tally, name)[cell, fold] == pytest.approx(sum(getattr(one, name)[k, fold] for one, k in mine))
        assert tally.total[cell, fold] == pytest.approx(sum(weight[one.rows[one.judged[fold]]].sum() for one, _ in mine))
        assert tally.proven[cell, fold] == all(one.proven[k, fold] for one, k in mine)


def race(cells: int, own: bool = True) -> tuple[_Race, Board]:
    data, y = labelled()
    folds = [Fold(np.arange(0, 30), np.arange(30, 60)), Fold(np.arange(30, 60), np.arange(0, 30)[::-1])]
    board = Board(2)
    board.add({"C": float(k + 1), "gamma": 0.5} for k in range(cells + 1))
    engine: Any = SimpleNamespace(task=Task(data, y, folds), scoring=SimpleNamespace(own=own))
    return _Race(engine, board, list(range(1, cells + 1))), board


@SEEDS
@pytest.mark.parametrize("cells", [1, 2, 3, 4, 7])
def test_the_best_third_of_a_race_goes_on(seed: int, cells: int) -> None:
    rng = np.random.default_rng(seed)
    mine, board = race(cells)
    means = {cell: float(rng.choice([0.2, 0.4, 0.6, np.nan])) for cell in mine.left}
    mine._mean = means.__getitem__  # type: ignore[method-assign]
    order = sorted(means, key=lambda cell: (np.isnan(means[cell]), -np.nan_to_num(means[cell]), cell))
    mine.halve()
    kept = int(np.ceil(cells / 3))
    assert mine.left == sorted(order[:kept])
    assert {cell for cell in means if board.status(cell) == "halved"} == set(order[kept:])


@SEEDS
def test_a_race_hears_values_where_their_rows_are_and_scores_what_it_has_heard(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mine, board = race(3, own=False)
    order = rng.permutation(60)
    heard: dict[tuple[int, int, int], np.ndarray] = {}
    for rows in (order[:20], order[20:45]):
        judged = [np.flatnonzero(np.isin(rows, fold.test)) for fold in mine.task.folds]
        one = verdicts(rng, 3, rows, judged, problems=2)
        mine.hear(one)
        for fold, some in enumerate(judged):
            for place, k in itertools.product(range(len(some)), range(3)):
                heard[mine.left[k], fold, int(rows[some[place]])] = one.values[fold][k, place]  # type: ignore[index]
    assert set(np.flatnonzero(mine.seen)) == set(order[:45])
    for (cell, fold, row), value in heard.items():
        place = mine.task.folds[fold].test.tolist().index(row)
        np.testing.assert_array_equal(mine.values[cell, fold][place], value)
    assert mine.params() == [(board.cells[c]["C"], board.cells[c]["gamma"]) for c in mine.left]


def test_a_race_ends_with_an_outcome_for_every_fold_of_those_that_are_left() -> None:
    rng = np.random.default_rng(0)
    mine, board = race(3)
    one = verdicts(rng, 3, np.arange(60), [fold.test for fold in mine.task.folds])
    weight = mine.task.data.weight
    one.right[:] *= weight.sum() / 3
    mine.hear(one)
    mine.left = [1, 3]
    mine.finish()
    for cell, fold in itertools.product((1, 3), range(2)):
        found, k = board.outcomes(cell)[fold], (cell - 1, fold)
        assert found.score == pytest.approx(one.right[k] / weight[mine.task.folds[fold].test].sum())
        assert found.status == ("converged" if one.proven[k] else "stalled") and found.n_support == one.n_support[k]
        assert (found.objective, found.gap, found.seconds) == (one.objective[k], one.gap[k], one.seconds[k])
    assert not board.outcomes(2) and np.isnan(race(3)[0]._mean(1))


@SEEDS
def test_each_cluster_has_the_C_that_is_best_there_and_of_equals_the_nearest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    board = Board(2)
    cells = [{"C": c, "gamma": g} for g in (0.1, 1.0) for c in (1.0, 10.0, 100.0)]
    board.add(cells)
    engine: Any = SimpleNamespace(_right={}, _members=[0] * 5, keep_verdicts=True)
    for cell in range(6):
        one: Any = SimpleNamespace(right=rng.integers(0, 3, (1, 2)).astype(float))
        for cluster in range(5):
            one.right = rng.integers(0, 3, (1, 2)).astype(float)
            ClusterFolds._note(engine, cluster, [cell], one)
            assert engine._right[cell][cluster] == one.right.sum()
    best = {"C": 10.0, "gamma": 0.1}
    gamma, values = ClusterFolds.by_cluster(engine, board, best)
    most = {
        g: sum(max(engine._right[k][c] for k in range(6) if cells[k]["gamma"] == g) for c in range(5)) for g in (0.1, 1.0)
    }
    assert most[gamma] == max(most.values())
    for c in range(5):
        table = {cells[k]["C"]: engine._right[k][c] for k in range(6) if cells[k]["gamma"] == gamma}
        top = [C for C in table if table[C] == max(table.values())]
        assert values[c] in top and abs(np.log10(values[c]) - 1) == min(abs(np.log10(C) - 1) for C in top)
    engine._right = {}
    assert ClusterFolds.by_cluster(engine, board, best)[1].tolist() == [10.0] * 5
    engine.keep_verdicts = False
    ClusterFolds._note(engine, 0, [0], one)
    assert not engine._right


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_problems_of_classes_and_what_their_values_predict(multi_class: str, classes: int) -> None:
    machine = SimpleNamespace(multi_class=multi_class)
    shared = Settings(machine, None, np.empty(0), np.empty(0), np.empty((0, 0)), np.empty((0, 0), bool), classes)
    rest = multi_class == "ovr" and classes > 2
    assert shared.problems == (
        [(c, -1) for c in range(classes)] if rest else list(itertools.combinations(range(classes), 2))
    )
    code = np.arange(classes)
    for pair in shared.problems:
        positive = pair[1] if classes == 2 else pair[0]
        assert shared.signs(pair, code).tolist() == [1.0 if c == positive else -1.0 for c in code]
    for winner in range(classes):  # who wins all of its problems is predicted
        values = np.array([[shared.signs(pair, np.array([winner]))[0] for pair in shared.problems]])
        assert shared.predicted(values).tolist() == [winner]
    if classes == 2:
        assert shared.predicted(np.array([[0.0], [1e-9], [-1e-9]])).tolist() == [0, 1, 0]


# ---- engines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("machine", "shares"), [
    (SVC(), True), (SVR(), True), (NuSVC(), True), (SVC(class_weight="balanced"), True), (SVC(kernel="precomputed"), True),
    (SVC(kernel=lambda a, b: a @ b.T), False), (SVC(inner_solver="gpm"), False), (SVC(working_set_size=8), False),
    (SVC(max_iter=5), False), (NuSVC(class_weight="balanced"), False), (KFold(), False),
])  # fmt: skip
def test_folds_are_shared_by_machines_of_the_usual_kind(machine: Any, shares: bool) -> None:
    assert can_share(machine, None) is shares  # type: ignore[arg-type]


@pytest.mark.parametrize("room", [0, 1, 10**5, 10**9])
def test_chunks_of_pairs_are_all_of_them_in_order_and_as_many_as_there_is_room_for(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, y = labelled(classes=4)
    folds = [Fold(train, test) for train, test in KFold(3).split(data.X)]
    single: Any = lambda params: SVC(**params, gamma=0.5)  # noqa: E731
    engine = KernelFolds(Task(data, y, folds), single, Scoring(SVC(), None), "C")
    monkeypatch.setattr(kernel_engine, "STATE_BYTES", room)
    chunks = list(engine._chunks(5))
    assert list(itertools.chain(*chunks)) == engine.samples.pairs and all(chunks)

    def size(pairs: Any) -> int:
        return sum(48 * len(engine.samples.chosen(pair)) * 5 * 4 for pair in pairs)

    for k, chunk in enumerate(chunks):
        assert len(chunk) == 1 or size(chunk) <= room
        assert k + 1 == len(chunks) or size([*chunk, chunks[k + 1][0]]) > room


def test_an_outcome_is_the_sum_of_its_pairs_and_counts_a_sample_of_several_once() -> None:
    data, y = labelled(classes=3)
    folds = [Fold(train, test) for train, test in KFold(3).split(data.X)]
    engine = KernelFolds(Task(data, y, folds), lambda params: SVC(**params, gamma=0.5), Scoring(SVC(), None), "C")
    values = np.random.default_rng(0).normal(size=(3, len(folds[1].test)))
    parts = [
        Judged(True, 1.0, 0.25, np.array([0, 4, 5]), values[:2]),
        Judged(True, 2.0, 0.5, np.array([4, 7]), values[2:]),
    ]
    found = engine.outcome(SVC(gamma=0.5), 1, parts, 3.5)
    assert (found.status, found.objective, found.gap, found.n_support, found.seconds) == ("converged", 3.0, 0.75, 4, 3.5)


def test_plain_fits_are_those_of_the_machine_on_the_rows_of_a_fold() -> None:
    data, y = labelled()
    folds = [Fold(train, test) for train, test in KFold(3).split(data.X)]
    for square in (False, True):
        X = data.X @ data.X.T if square else data.X
        task = Task(Labelled(X, data.target, data.weight, data.classes, data.factors), y, folds, True, square)
        make: Any = lambda params, k=square: SVC(**params, kernel="precomputed" if k else "rbf", gamma=0.5)  # noqa: E731
        board, engine = Board(3), Fits(task, make, Scoring(SVC(), None))
        board.add([{"C": 1.0}, {"C": 9.0}, {"C": 3.0}])
        board.leave(1)
        turns = list(engine.solve(board, range(3), SimpleNamespace(limit=lambda: None)))  # type: ignore[arg-type]
        assert len(turns) == 6 and not board.outcomes(1)
        for cell, k in itertools.product((0, 2), range(3)):
            train, test = folds[k].train, folds[k].test
            rows, judged = (X[train][:, train], X[test][:, train]) if square else (X[train], X[test])
            one = make(board.cells[cell]).fit(rows, y[train], sample_weight=data.weight[train])
            found = board.outcomes(cell)[k]
            assert found.score == pytest.approx(one.score(judged, y[test], sample_weight=data.weight[test]))
            assert (found.status, found.objective, found.gap) == (one.status_, one.objective_, one.dual_gap_)
            assert found.n_support == support_count(one) == len(one.support_)
            np.testing.assert_array_equal(part_of(one, X, test, train), judged)
    assert support_count(object()) == -1
    machine = fitted_from(SVC(), None, data.X, y, None)
    assert "_begin_from" not in vars(machine) and machine.status_ == "converged"


@pytest.mark.parametrize("name", [
    "accuracy", "balanced_accuracy", "f1_macro", "roc_auc", "average_precision", "matthews_corrcoef", "neg_log_loss",
    "r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_root_mean_squared_error", "neg_max_error",
    "explained_variance", "neg_median_absolute_error", None,
])  # fmt: skip
def test_no_score_is_above_the_ceiling_and_who_is_always_right_reaches_it(name: str | None) -> None:
    scoring = Scoring(SVC(), name)
    y = np.array([0, 1, 1, 0])
    best = 1.0
    if name is not None:
        perfect = np.eye(2)[y] if name == "neg_log_loss" else y.astype(float)
        best = get_scorer(name)._sign * get_scorer(name)._score_func(y, perfect)
    assert scoring.ceiling == pytest.approx(best, abs=1e-9)
    assert scoring.own == (name is None)


def test_of_other_scorers_no_ceiling_is_known() -> None:
    for scorer in (
        make_scorer(accuracy_score, greater_is_better=False), make_scorer(mean_squared_error),
        make_scorer(lambda a, b: 3.0), lambda machine, X, y: 2.0,
    ):  # fmt: skip
        assert Scoring(SVC(), scorer).ceiling is None
