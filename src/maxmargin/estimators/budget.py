"""BudgetSVC: kernel classifiers whose size is fixed in advance, trained in passes or on a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from maxmargin.budget.chunks import Chunk, Chunks, chunk_source, chunk_visits
from maxmargin.budget.maintenance import MAINTENANCE, MERGE_SEARCH, merging_statistics
from maxmargin.budget.merging import LARGEST_GRID, TABLES
from maxmargin.budget.model import Options, decision_values
from maxmargin.budget.objective import Objective
from maxmargin.budget.precision import check_gamma, check_later, needs_double
from maxmargin.budget.refit import Refit
from maxmargin.budget.sgd import Batch, BudgetResult, BudgetSolver
from maxmargin.budget.visits import Visits, plan_visits
from maxmargin.estimators._base import (
    FloatArray,
    Machine,
    check_choice,
    check_flags,
    check_number,
    check_seed,
    require_fitted,
    transactional,
)
from maxmargin.estimators._constraints import BUDGET, LARGEST_C, Constraints
from maxmargin.estimators._labelled import Labelled, class_weights, required, row_weights
from maxmargin.problem.kernels import resolve_gamma
from maxmargin.runtime import Control, Result, Status, run, thread_count
from maxmargin.runtime.threads import ONE_SLICE


class BudgetSVC(ClassifierMixin, Machine):
    """Support vector classifier with a Gaussian kernel and at most `budget` support vectors.

    Stochastic gradient descent visits the samples one by one; whenever the model would outgrow its budget, two support
    vectors are merged into one. Time per pass, prediction time and memory do not depend on how many support vectors
    the exact solution would have.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses in ½|w|² + C·Σ loss, from 1e-30 to 1e30 (times the sample weights).
    budget : int, default=500
        Largest number of support vectors.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel exp(-gamma·|x-z|²). "scale" is 1/(features·variance of X), "auto" is 1/features.
    epochs : int, default=5
        Passes over the data in `fit` and `fit_stream`.
    maintenance : {"merge", "remove", "project"}, default="merge"
        What happens to the support vector that is one too many.
    merge_search : {"lookup-wd", "lookup-h", "gss", "gss-precise"}, default="lookup-wd"
        How the merging partner is found: by a table of the weight degradation (Newton steps with more than two
        classes), by a table of the mixing coefficient, or by golden section search to 0.01 or 1e-10.
    merge_table : {"scaled", "uniform"}, default="scaled"
        What the lookups read. "uniform" is the table of the lookup-merging paper, of the weight degradation itself over
        the unit square; "scaled" is ours, which stays exact as two points approach each other. For two classes.
    grid_size : int, default=400
        Nodes per side of the lookup tables, 2 to 4,000.
    drop_useless : bool, default=True
        Drop a support vector of which even the best merge would keep less than 0.01 %. False: merge it all the same, as
        the paper does. With an inexact search ("gss") many more are dropped than have no useful partner.
    fit_intercept : bool, default=False
        Add an intercept, as a constant feature that is regularised like the rest.
    averaging : bool, default=True
        Use the average of the recent iterates instead of the last one.
    refit : bool, default=True
        After the last pass of `fit`, solve the convex problem for the coefficients on the final support vectors. Not on
        streams (`partial_fit`, `fit_stream`): it needs all rows at once.
    refit_memory : float, default=256
        Most megabytes that the refit may allocate, apart from copies of the support vectors. With more rows than fit
        in, it uses a random part of them, at least 30 per support vector; where these do not fit in (256: with a
        budget above 1,200 or so), it improves the coefficients block by block, which is less than solving for all of
        them (see `refit_`). An error if not even that fits in.
    class_weight : dict, "balanced" or None, default=None
        Factors on the sample weights by class.
    shuffle : bool, default=True
        Visit the samples in random order. If False, in the given order, every row once per pass.
    stream_size : int or None, default=None
        Samples that a stream will bring in all; it sets the regularisation 1/(C·stream_size) of `partial_fit` and
        `fit_stream`. None: the rows of the first chunk (`partial_fit`), or of all chunks (`fit_stream`, which then
        counts them in a pass of its own).
    audit : bool, default=False
        Decide every merge by "lookup-wd", "gss" and "gss-precise" and compare them in `merging_`: how often they choose
        the same partner, and the factor of the degradation over that of "gss-precise". Support vectors that are dropped
        are no merges and not compared. "lookup-h" is not compared either, and there is nothing to compare with
        `maintenance` other than "merge". The model is that of `merge_search`. Slow.
    random_state : int, RandomState or None, default=None
        Seed of the shuffling.
    n_jobs : int or None, default=None
        Threads for prediction and refit; None for all cores. Training itself uses one.
    max_time : float or None, default=None
        Seconds after which training stops and keeps what it has. The judgement of the model (`objective_`) after that
        takes about as long as `decision_function` on the training set.
    verbose : bool or int, default=False
        Show a progress bar of rows, in which the refit counts as some passes more.
    callback : callable or None, default=None
        Called with a dict after each pass; a true return value stops.

    Attributes
    ----------
    classes_ : ndarray
    support_vectors_ : ndarray of shape (n_support, n_features)
        float32, or float64 where float32 would blur the distances. In general not rows of X.
    dual_coef_ : ndarray of shape (1 or n_classes, n_support)
    intercept_ : ndarray of shape (1 or n_classes,)
    gamma_ : float
    n_iter_ : int
        Passes made, in the last call.
    objective_ : float
        Primal objective ½|w|² + C·Σ loss. After `fit` that of the model on the training set, computed in float64. On a
        stream an estimate: |w|² is that of the model, the losses are those of the rows of the last pass, each judged
        before the model learnt from it, as many of them as `stream_size` says.
    dual_gap_ : float
        NaN: a budgeted model has no dual bound.
    refit_ : dict
        What the refit did: `rows` it used, `coefficients` at a time, and whether its result was `kept` (it is if it
        lowers the objective on the training set). Empty without one.
    merging_ : dict
        How often, how well and for how long the budget was maintained, since the model was new.
    status_, trace_, timings_
        Why training stopped ("completed": all passes made), one row per pass, seconds per part, of the last call. The
        `objective` of a pass is the estimate that a stream has; that of the last row is `objective_`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import BudgetSVC
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> model = BudgetSVC(C=10, gamma=2.0, budget=50, random_state=0).fit(X, y)
    >>> len(model.support_vectors_)
    50
    >>> bool(model.score(X, y) > 0.96)
    True
    """

    _stream: Options  # of the fit so far, for partial_fit to go on
    _counters: dict[str, float]

    _parameter_constraints: ClassVar[Constraints] = BUDGET

    def __init__(
        self,
        C: float = 1.0,
        *,
        budget: int = 500,
        gamma: float | str = "scale",
        epochs: int = 5,
        maintenance: str = "merge",
        merge_search: str = "lookup-wd",
        merge_table: str = "scaled",
        grid_size: int = 400,
        drop_useless: bool = True,
        fit_intercept: bool = False,
        averaging: bool = True,
        refit: bool = True,
        refit_memory: float = 256,
        class_weight: Any = None,
        shuffle: bool = True,
        stream_size: int | None = None,
        audit: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: bool | int = False,
        callback: Callable[[dict[str, float]], Any] | None = None,
    ) -> None:
        self.C = C
        self.budget = budget
        self.gamma = gamma
        self.epochs = epochs
        self.maintenance = maintenance
        self.merge_search = merge_search
        self.merge_table = merge_table
        self.grid_size = grid_size
        self.drop_useless = drop_useless
        self.fit_intercept = fit_intercept
        self.averaging = averaging
        self.refit = refit
        self.refit_memory = refit_memory
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.stream_size = stream_size
        self.audit = audit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose
        self.callback = callback

    def _solved(self, data: Labelled, control: Control) -> tuple[Result, dict[str, Any]]:
        """`epochs` passes over all rows, then the refit of the coefficients."""
        x, weight, classes = data.X, data.weight, data.classes
        labels = np.maximum(data.code, 0).astype(np.int32)  # of rows that do not count: any
        threads = thread_count(self.n_jobs)
        plan = plan_visits(x, labels, weight, threads)
        gamma = resolve_gamma(self.gamma, x, plan.distinct, plan.total)
        effective = self._effective(weight, data.factors, labels)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        if not self.shuffle:
            order = np.flatnonzero(effective > 0)
            plan = Visits(order, effective, order, effective[order])
        elif self.class_weight is not None:
            plan = plan_visits(x, labels, effective, threads)
        budget = min(int(self.budget), len(plan.distinct))  # distinct rows never need more slots
        options = replace(self._options(x, len(classes), gamma, plan.total, len(plan.rows)), budget=budget)
        weighted = x, plan.distinct, labels, plan.total
        refit = Refit(*weighted, self.refit_memory, rng, threads, options) if self.refit else None
        epochs = _epochs(x, labels, plan, self.epochs, rng if self.shuffle else None)
        rows = self.epochs * len(plan.rows)
        judge = Objective(*weighted, options, threads)
        solver = BudgetSolver(options, epochs, refit=refit, objective=judge, rows=rows, threads=threads)
        result = run(solver, control)
        return result, self._attributes(result, classes, options, refit)

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> BudgetSVC:
        """Learn from one more chunk, each row once and in the given order. The first call must name all classes.

        A fitted model goes on where it stands, refitted or not, with the C, gamma and merging rules that it was fitted
        with. Nothing is refitted here: the rows seen before are gone. A chunk without rows, or without weight, changes
        nothing.
        """
        self._check_parameters()
        known = self._known(classes)
        if not chunk_visits((X, y, sample_weight)):
            if not hasattr(self, "_state"):
                self._announced = known  # later chunks need not name them again
            return self
        return self._learn(X, y, sample_weight, known)

    @transactional
    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, known: NDArray[Any]) -> BudgetSVC:
        """partial_fit on a chunk that counts."""
        control = self._control(passes=0)
        fresh = not hasattr(self, "_state")
        batch, weight = self._chunk(X, y, sample_weight, known, reset=fresh)
        rows = len(batch.order)
        if fresh:
            options = self._stream_options(batch, weight, known, self.stream_size or rows)
            state = counters = None
        else:
            options, state, counters = self._resumed(), self._state, self._counters
            _check_batch(batch, options)
        solver = BudgetSolver(options, [[batch]], state, counters, rows=rows, threads=thread_count(self.n_jobs))
        result = run(solver, control)
        result.chunk = rows
        self._publish(result, **self._attributes(result, known, options))
        return self

    @transactional
    def fit_stream(self, chunks: Chunks, classes: ArrayLike) -> BudgetSVC:
        """Train on data that come in chunks (X, y) or (X, y, sample_weight), one in memory at a time.

        `chunks` is a list, any other iterable that can be gone through `epochs` times, or a function that returns a
        new iterator. With `epochs=1` and `stream_size` one pass does, and an iterator will do. Rows are visited in the
        order in which they come; chunks without rows, or without weight, are skipped. An error in a chunk leaves the
        model unchanged. There is no refit, whatever `refit` says: it needs the kernel values of all rows at once.
        """
        control = self._control()
        self._check_parameters()
        known = _announced(classes)
        one_pass = chunk_source(chunks, self.epochs + (self.stream_size is None))
        size = self.stream_size or sum(chunk_visits(chunk) for chunk in one_pass())
        opening = one_pass()
        first = next(opening)
        batch, weight = self._chunk(*first, known, reset=True)
        options = self._stream_options(batch, weight, known, size)
        again = (one_pass() for _ in range(self.epochs - 1))
        epochs = (self._batches(part, known, options) for part in chain([chain([first], opening)], again))
        rows = None if self.stream_size else size * self.epochs
        result = run(BudgetSolver(options, epochs, rows=rows, threads=thread_count(self.n_jobs)), control)
        self._publish(result, **self._attributes(result, known, options))
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """f(x): one value per row for two classes, else one per row and class."""
        require_fitted(self)
        x = self._validated(X, reset=False)
        rows = np.arange(x.shape[0])
        threads = 1 if len(rows) * self.support_vectors_.size <= ONE_SLICE else thread_count(self.n_jobs)
        model = self.support_vectors_, self.dual_coef_, self.intercept_, self.gamma_
        values = decision_values(x, rows, *model, threads)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        values = self.decision_function(X)
        chosen = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def _check_parameters(self) -> None:
        check_number("C", self.C, low=1 / LARGEST_C, high=LARGEST_C, closed="both", remedy="smaller regularises more")
        check_number("budget", self.budget, low=1, closed="left", integer=True, remedy="try 100 to 1000")
        check_number("epochs", self.epochs, low=1, closed="left", integer=True)
        check_number("grid_size", self.grid_size, low=2, high=LARGEST_GRID, closed="both", integer=True)
        check_number("refit_memory", self.refit_memory, low=0, remedy="give megabytes")
        check_number("stream_size", self.stream_size, low=1, closed="left", integer=True, optional=True)
        check_choice("maintenance", self.maintenance, MAINTENANCE)
        check_choice("merge_search", self.merge_search, MERGE_SEARCH)
        check_choice("merge_table", self.merge_table, TABLES)
        check_seed(self.random_state)
        check_flags(self, "drop_useless", "fit_intercept", "averaging", "refit", "shuffle", "audit")
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ["scale", "auto"])
        else:
            check_number("gamma", self.gamma, low=0, remedy="give a positive width, 'scale' or 'auto'")

    def _control(self, passes: int | None = None) -> Control:
        self._check_run()
        passes = self.epochs if passes is None else passes
        title = type(self).__name__ + (f", {passes} passes" if passes else "")
        return Control(self.max_time, -1, self.verbose, self.callback, title)

    def _options(self, x: Any, n_classes: int, gamma: float, weight: FloatArray, visits: int) -> Options:
        if n_classes > 2 and self.merge_table != "scaled":
            raise ValueError(
                f"merge_table={self.merge_table!r} is for two classes, y has {n_classes}: the degradation then depends on "
                "more than the table holds; give merge_table='scaled'"
            )
        check_gamma(x, gamma, self.gamma)
        return Options(
            budget=int(self.budget),
            features=x.shape[1],
            outputs=1 if n_classes == 2 else n_classes,
            gamma=gamma,
            C=float(self.C),
            visits=visits,
            maintenance=self.maintenance,
            merge_search=self.merge_search,
            merge_table=self.merge_table,
            grid_size=int(self.grid_size),
            drop_useless=bool(self.drop_useless),
            intercept=bool(self.fit_intercept),
            averaging=bool(self.averaging),
            audit=bool(self.audit),
            double=needs_double(x, gamma, float(self.C), weight),
        )

    def _stream_options(self, batch: Batch, weight: FloatArray, known: NDArray[Any], visits: int) -> Options:
        """Those of a stream that begins with this batch."""
        gamma = resolve_gamma(self.gamma, batch.x, batch.order, weight[batch.order])
        return self._options(batch.x, len(known), gamma, batch.weights[batch.order], visits)

    def _known(self, classes: ArrayLike | None) -> NDArray[Any]:
        """The classes of the stream, as announced now or before."""
        held: NDArray[Any] | None = getattr(self, "classes_" if hasattr(self, "_state") else "_announced", None)
        if held is None:
            return _announced(classes)
        if classes is not None and not np.array_equal(held, _announced(classes)):
            raise ValueError(f"classes={classes!r} differ from those of the first call, {held.tolist()}")
        return held

    def _resumed(self) -> Options:
        """The options of the fit so far, with today's budget."""
        held = len(self.support_vectors_)
        if self.budget < held:
            raise ValueError(f"budget={self.budget!r} is below the {held} support vectors of the model: fit it anew")
        return replace(self._stream, budget=int(self.budget))

    def _chunk(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, known: NDArray[Any], reset: bool
    ) -> tuple[Batch, FloatArray]:
        """A validated chunk as a batch in the given order, and its sample weights."""
        required(self, y)
        x, target = self._validated(X, y, reset=reset)
        unseen = np.setdiff1d(target, known)
        if len(unseen):
            raise ValueError(f"y contains classes that were not announced: {unseen.tolist()}; known: {known.tolist()}")
        labels = np.searchsorted(known, target).astype(np.int32)
        weight = row_weights(len(target), sample_weight)
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all labels at once: give a dict of weights for a stream")
        effective = self._effective(weight, class_weights(self.class_weight, known, labels.astype(np.intp), weight), labels)
        return Batch(x, np.flatnonzero(effective > 0), labels, effective), weight

    def _effective(self, weight: FloatArray, factors: FloatArray, labels: NDArray[np.int32]) -> FloatArray:
        """Sample weights times class weights."""
        with np.errstate(over="ignore", under="ignore"):
            effective = weight * factors[labels]
        if not (effective[weight > 0] > 0).all():
            raise ValueError("sample_weight·class_weight is 0 for a row of positive weight: raise the weights")
        largest = self.C * effective.max()
        if not largest <= LARGEST_C:
            raise ValueError(f"C·sample_weight·class_weight is {largest:g}, above {LARGEST_C:g}: lower C or the weights")
        return np.asarray(effective)

    def _batches(self, chunks: Iterable[Chunk], known: NDArray[Any], options: Options) -> Iterator[Batch]:
        for chunk in chunks:
            batch, _ = self._chunk(*chunk, known, reset=False)
            _check_batch(batch, options)
            yield batch

    def _attributes(
        self, result: BudgetResult, classes: NDArray[Any], options: Options, refit: Refit | None = None
    ) -> dict[str, Any]:
        self.__dict__.pop("_announced", None)  # classes_ takes its place
        return {
            "classes_": classes,
            "support_vectors_": result.centres,
            "dual_coef_": result.coef,
            "intercept_": result.intercept,
            "gamma_": options.gamma,
            "merging_": merging_statistics(result.counters),
            "refit_": refit.summary(result.refitted) if refit is not None and refit.begun else {},
            "_state": result.state,
            "_counters": result.counters,
            "_stream": options,
        }

    def _advice(self, result: Any) -> str:
        if result.chunk:
            reached, remedy = f"after {result.steps} of the {result.chunk} rows of this chunk", "give smaller chunks"
        elif result.n_iter < self.epochs:
            reached, remedy = f"after {result.n_iter} of {self.epochs} passes", "lower epochs"
        else:
            reached, remedy = f"in the refit, after all {self.epochs} passes", "lower refit_memory"
        stopped = f"{type(self).__name__} stopped {reached} (status_={str(result.status)!r}): "
        if result.status is Status.INTERRUPTED:
            return stopped + "the model is the one reached by then."
        return stopped + f"raise max_time ({self.max_time} s), or {remedy} or budget."


def _check_batch(batch: Batch, options: Options) -> None:
    if not options.double:
        check_later(batch.x, options.gamma, batch.weights)


def _announced(classes: ArrayLike | None) -> NDArray[Any]:
    """The classes of a stream, sorted."""
    if classes is None:
        raise ValueError("classes must be given before the first chunk: later ones may bring labels that it does not have")
    known = np.unique(np.asarray(classes))
    if len(known) < 2:
        raise ValueError(f"classes={known.tolist()}: the number of classes has to be greater than one")
    return known


def _epochs(
    x: Any, labels: NDArray[np.int32], plan: Visits, epochs: int, rng: np.random.Generator | None
) -> Iterator[list[Batch]]:
    """One batch per pass, shuffled by rng if there is one."""
    for _ in range(epochs):
        yield [Batch(x, plan.rows if rng is None else rng.permutation(plan.rows), labels, plan.share)]
