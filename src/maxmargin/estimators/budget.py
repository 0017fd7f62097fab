"""BudgetSVC: kernel classifiers whose size is fixed in advance, trained in passes or on a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from maxmargin.budget.chunks import Chunk, Chunks, chunk_source, chunk_visits
from maxmargin.budget.maintenance import MAINTENANCE, MERGE_SEARCH, merging_statistics
from maxmargin.budget.model import Options, decision_values, squared_norm
from maxmargin.budget.refit import Refit
from maxmargin.budget.sgd import Batch, BudgetResult, BudgetSolver
from maxmargin.budget.visits import Visits, plan_visits
from maxmargin.estimators._base import (
    FloatArray,
    Machine,
    check_choice,
    check_flags,
    check_number,
    class_weights,
    row_weights,
    transactional,
)
from maxmargin.problem.kernels import resolve_gamma
from maxmargin.runtime import Control, run, thread_count

LARGEST_C = 1e30  # coefficients are up to samples·C, and must stay in the range of float32


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
    grid_size : int, default=400
        Nodes per side of the lookup tables.
    fit_intercept : bool, default=False
        Add an intercept, as a constant feature that is regularised like the rest.
    averaging : bool, default=True
        Use the average of the recent iterates instead of the last one.
    refit : bool, default=True
        After the last pass of `fit`, solve the convex problem for the coefficients on the final support vectors. Not on
        streams (`partial_fit`, `fit_stream`): it needs all rows at once.
    refit_memory : float, default=256
        Megabytes for the kernel values of the refit; with more rows than fit in, it uses a random part of them.
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
        the same partner, and the mean factor of the degradation over that of "gss-precise". "lookup-h" is not compared,
        and there is nothing to compare with `maintenance` other than "merge". The model is that of `merge_search`. Slow.
    random_state : int, RandomState or None, default=None
        Seed of the shuffling.
    n_jobs : int or None, default=None
        Threads for prediction and refit; None for all cores. Training itself uses one.
    max_time : float or None, default=None
        Seconds after which training stops and keeps what it has.
    verbose : bool or int, default=False
        Show a progress bar.
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
        Primal objective. After `fit` that of the model on the training set; on a stream that of the running losses.
    dual_gap_ : float
        NaN: a budgeted model has no dual bound.
    merging_ : dict
        How often, how well and for how long the budget was maintained, since the model was new.
    status_, trace_, timings_
        Why training stopped ("completed": all passes made), one row per pass, seconds per part, of the last call.

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

    def __init__(
        self,
        C: float = 1.0,
        *,
        budget: int = 500,
        gamma: float | str = "scale",
        epochs: int = 5,
        maintenance: str = "merge",
        merge_search: str = "lookup-wd",
        grid_size: int = 400,
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
        self.grid_size = grid_size
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

    @transactional
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BudgetSVC:
        """Train on all of X for `epochs` passes, then refit the coefficients."""
        self._check_parameters()
        x, target = self._labelled(X, y)
        check_classification_targets(target)
        weight = row_weights(len(target), sample_weight)
        classes = np.unique(target[weight > 0])
        _check_classes(classes)
        labels = np.searchsorted(classes, target).astype(np.int32)
        labels[weight == 0] = 0
        threads = thread_count(self.n_jobs)
        plan = plan_visits(x, labels, weight, threads)
        gamma = resolve_gamma(self.gamma, x, plan.distinct, plan.total)
        effective = self._effective(weight, classes, labels)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        if not self.shuffle:
            order = np.flatnonzero(effective > 0)
            plan = Visits(order, effective, order, effective[order])
        elif self.class_weight is not None:
            plan = plan_visits(x, labels, effective, threads)
        budget = min(int(self.budget), len(plan.distinct))  # distinct rows never need more slots
        options = replace(self._options(x, len(classes), gamma, len(plan.rows)), budget=budget)
        refit = Refit(x, plan.distinct, labels, plan.total, self.refit_memory, rng, threads) if self.refit else None
        epochs = _epochs(x, labels, plan, self.epochs, rng if self.shuffle else None)
        objective = partial(_objective, x, labels, plan, options, threads)  # in the run: Ctrl-C must not lose the model
        result = run(BudgetSolver(options, epochs, refit=refit, objective=objective), self._control(self.epochs))
        self._publish(result, **self._attributes(result, classes, options))
        return self

    @transactional
    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> BudgetSVC:
        """Learn from one more chunk, each row once and in the given order. The first call must name all classes.

        A fitted model goes on where it stands, refitted or not, with the C, gamma and merging rules that it was fitted
        with. Nothing is refitted here: the rows seen before are gone.
        """
        fresh = not hasattr(self, "_state")
        self._check_parameters()
        known = _announced(classes) if fresh else self.classes_
        if not fresh and classes is not None and not np.array_equal(known, _announced(classes)):
            raise ValueError(f"classes={classes!r} differ from those of the first call, {known.tolist()}")
        batch, weight = self._chunk(X, y, sample_weight, known, reset=fresh)
        if fresh:
            gamma = resolve_gamma(self.gamma, batch.x, batch.order, weight[batch.order])
            options = self._options(batch.x, len(known), gamma, self.stream_size or len(batch.order))
        else:
            options = self._resumed()
            self._check_range(batch.x, options)
        state, counters = (None, None) if fresh else (self._state, self._counters)
        result = run(BudgetSolver(options, [[batch]], state, counters), self._control())
        result.chunk = len(batch.order)
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
        self._check_parameters()
        known = _announced(classes)
        one_pass = chunk_source(chunks, self.epochs + (self.stream_size is None))
        size = self.stream_size or sum(chunk_visits(chunk) for chunk in one_pass())
        opening = one_pass()
        first = next(opening)
        batch, weight = self._chunk(*first, known, reset=True)
        gamma = resolve_gamma(self.gamma, batch.x, batch.order, weight[batch.order])
        options = self._options(batch.x, len(known), gamma, size)
        again = (one_pass() for _ in range(self.epochs - 1))
        epochs = (self._batches(part, known, options) for part in chain([chain([first], opening)], again))
        result = run(BudgetSolver(options, epochs), self._control(self.epochs))
        self._publish(result, **self._attributes(result, known, options))
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """f(x): one value per row for two classes, else one per row and class."""
        check_is_fitted(self)
        x = self._validated(X, reset=False)
        threads = thread_count(self.n_jobs)
        values = decision_values(
            x, self.support_vectors_, self.dual_coef_, self.intercept_, self.gamma_, threads
        )
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
        check_number("grid_size", self.grid_size, low=2, high=10_000, closed="both", integer=True)
        check_number("refit_memory", self.refit_memory, low=0, remedy="give megabytes")
        check_number("stream_size", self.stream_size, low=1, closed="left", integer=True, optional=True)
        check_choice("maintenance", self.maintenance, MAINTENANCE)
        check_choice("merge_search", self.merge_search, MERGE_SEARCH)
        check_flags(self, "fit_intercept", "averaging", "refit", "shuffle", "audit")
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ["scale", "auto"])
        else:
            check_number("gamma", self.gamma, low=0, remedy="give a positive width, 'scale' or 'auto'")

    def _control(self, passes: int = 0) -> Control:
        check_number("max_time", self.max_time, low=0, optional=True, remedy="give seconds, or None for no limit")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback={self.callback!r} must be callable with one dict, or None")
        title = type(self).__name__ + (f", {passes} passes" if passes else "")
        return Control(self.max_time, -1, self.verbose, self.callback, title)

    def _labelled(self, X: Any, y: Any, reset: bool = True) -> tuple[Any, NDArray[Any]]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        return self._validated(X, y, reset=reset)  # type: ignore[no-any-return]

    def _options(self, x: Any, n_classes: int, gamma: float, visits: int) -> Options:
        # float32 blurs gamma·|x-z|² by about 1e-4 at these sizes of gamma·|x|²: directly for dense rows, whose
        # differences are squared, and earlier for sparse ones, which go through |x|² + |z|² - 2·x·z.
        limit = 1e3 if sp.issparse(x) else 1e6
        return Options(
            budget=int(self.budget),
            features=x.shape[1],
            outputs=1 if n_classes == 2 else n_classes,
            gamma=gamma,
            C=float(self.C),
            visits=visits,
            maintenance=self.maintenance,
            merge_search=self.merge_search,
            grid_size=int(self.grid_size),
            intercept=bool(self.fit_intercept),
            averaging=bool(self.averaging),
            audit=bool(self.audit),
            double=bool(gamma * _longest_square(x) > limit),
        )

    def _resumed(self) -> Options:
        """The options of the fit so far, with today's budget."""
        held = len(self.support_vectors_)
        if self.budget < held:
            raise ValueError(f"budget={self.budget!r} is below the {held} support vectors of the model: fit it anew")
        return replace(self._stream, budget=int(self.budget))

    @staticmethod
    def _check_range(x: Any, options: Options) -> None:
        if not options.double and max(options.gamma, 1.0) * _longest_square(x) > 1e30:
            raise ValueError("X has values beyond the range of float32, which this model is kept in: scale the features")

    def _chunk(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, known: NDArray[Any], reset: bool
    ) -> tuple[Batch, FloatArray]:
        """A validated chunk as a batch in the given order, and its sample weights."""
        x, target = self._labelled(X, y, reset=reset)
        unseen = np.setdiff1d(target, known)
        if len(unseen):
            raise ValueError(f"y contains classes that were not announced: {unseen.tolist()}; known: {known.tolist()}")
        labels = np.searchsorted(known, target).astype(np.int32)
        weight = row_weights(len(target), sample_weight)
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all labels at once: give a dict of weights for a stream")
        effective = self._effective(weight, known, labels)
        return Batch(x, np.flatnonzero(effective > 0), labels, effective), weight

    def _effective(self, weight: FloatArray, classes: NDArray[Any], labels: NDArray[np.int32]) -> FloatArray:
        """Sample weights times class weights."""
        effective = weight * class_weights(self.class_weight, classes, labels.astype(np.intp), weight)[labels]
        largest = self.C * effective.max()
        if not largest <= LARGEST_C:
            raise ValueError(f"C·sample_weight·class_weight is {largest:g}, above {LARGEST_C:g}: lower C or the weights")
        return np.asarray(effective)

    def _batches(self, chunks: Iterable[Chunk], known: NDArray[Any], options: Options) -> Iterator[Batch]:
        for chunk in chunks:
            batch, _ = self._chunk(*chunk, known, reset=False)
            self._check_range(batch.x, options)
            yield batch

    def _attributes(self, result: BudgetResult, classes: NDArray[Any], options: Options) -> dict[str, Any]:
        return {
            "classes_": classes,
            "support_vectors_": result.centres,
            "dual_coef_": result.coef,
            "intercept_": result.intercept,
            "gamma_": options.gamma,
            "merging_": merging_statistics(result.counters),
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
        return (
            f"{type(self).__name__} stopped {reached} (status_={str(result.status)!r}): "
            f"raise max_time ({self.max_time} s), or {remedy} or budget."
        )


def _longest_square(x: Any) -> float:
    """An upper bound on the largest |row|², without a copy of x."""
    if sp.issparse(x):
        largest, entries = (max(float(x.data.max()), -float(x.data.min())) if x.nnz else 0.0), np.diff(x.indptr).max()
    else:
        largest, entries = max(float(x.max()), -float(x.min())), x.shape[1]
    with np.errstate(over="ignore"):
        return float(entries * np.float64(largest) ** 2)


def _objective(
    x: Any,
    labels: NDArray[np.int32],
    plan: Visits,
    options: Options,
    threads: int,
    centres: NDArray[Any],
    coef: FloatArray,
    intercept: FloatArray,
) -> float:
    """½|w|² + C·Σ loss of the model on the training set, summed over the outputs."""
    weight = np.zeros(len(labels))
    weight[plan.distinct] = plan.total
    values = decision_values(x, centres, coef, intercept, options.gamma, threads)
    sign = np.where(labels[:, None] == (1 if options.outputs == 1 else np.arange(options.outputs)), 1.0, -1.0)
    losses = float(np.maximum(0, 1 - sign * values).sum(axis=1) @ weight)
    return squared_norm(centres, coef, intercept, options.gamma) / 2 + options.C * losses


def _announced(classes: ArrayLike | None) -> NDArray[Any]:
    """The classes of a stream, sorted."""
    if classes is None:
        raise ValueError("classes must be given before the first chunk: later ones may bring labels that it does not have")
    known = np.unique(np.asarray(classes))
    _check_classes(known)
    return known


def _check_classes(classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        raise ValueError(f"y has one class, {classes.tolist()}: a classifier needs samples of at least two classes")


def _epochs(
    x: Any, labels: NDArray[np.int32], plan: Visits, epochs: int, rng: np.random.Generator | None
) -> Iterator[list[Batch]]:
    """One batch per pass, shuffled by rng if there is one."""
    for _ in range(epochs):
        yield [Batch(x, plan.rows if rng is None else rng.permutation(plan.rows), labels, plan.share)]
