"""The words of the harness: Data, Problem, Cell, models, and the classes that a new file subclasses.

A **data set** gives rows with their preprocessing done, a **problem** is the optimisation problem on them, a **solver**
solves problems, a **cell** is one solver on one problem, an **experiment** is a list of cells and how to show them.
Files in datasets/, solvers/ and experiments/ are found by listing the folders: there is nothing to register.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import pathlib
import pkgutil
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

LEAST_ROWS = 300  # of a scaled set: fewer may lack a class
KERNEL_TASKS = ("svc", "nu_svc", "svr", "nu_svr", "one_class")


@dataclass
class Data:
    """Rows for training and testing; `source` says whether they are real or generated."""

    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray
    source: str = "real"

    @property
    def sparse(self) -> bool:
        return bool(sp.issparse(self.X_train))

    def head(self, rows: int | None, test_rows: int | None = None) -> Data:
        """The first `rows` training rows (rows are in random order already), and the first `test_rows` test rows."""
        return Data(self.X_train[:rows], self.y_train[:rows], self.X_test[:test_rows], self.y_test[:test_rows], self.source)

    def scaled(self, share: float) -> Data:
        """The first part of the training and test rows, for a quick look; never less than LEAST_ROWS of them."""
        if share >= 1.0:
            return self
        rows, test_rows = (max(LEAST_ROWS, int(share * X.shape[0])) for X in (self.X_train, self.X_test))
        return self.head(rows, test_rows)


@dataclass(frozen=True)
class Problem:
    """What is minimised, in scikit-learn's names. C multiplies the sum of the losses.

    task: svc, nu_svc, svr, nu_svr, one_class (kernel machines), linear (½‖w‖² + C·Σ loss), linear_l1 (‖w‖₁ instead), or
    linear_svr (½‖w‖² + C·Σ loss of the residual).
    `options` are handed to our estimator as they are (cache_size, inner_solver, max_time, budget, …).
    """

    task: str
    C: float = 1.0
    nu: float = 0.5
    epsilon: float = 0.1
    kernel: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    tol: float = 1e-3
    fit_intercept: bool = True
    loss: str = "hinge"
    cache_size: float = 200.0
    options: dict[str, Any] = field(default_factory=dict)

    def same_optimum(self) -> tuple[Any, ...]:
        """A key that two problems share when their optimal values are equal: how it is solved does not count."""
        how = ("tol", "cache_size", "options")
        return tuple((k, v) for k, v in dataclasses.asdict(self).items() if k not in how)


@dataclass
class KernelModel:
    """f(x) = Σ coef_j K(x, x_j) + intercept, the x_j being training rows (`support`) or given as `vectors`."""

    coef: np.ndarray
    intercept: float
    support: np.ndarray | None = None
    vectors: Any = None


@dataclass
class PairsModel:
    """One-vs-one machines as scikit-learn lays them out: `support` by class, `n_support` of each class, `intercept` per
    pair, and in `coef` (classes − 1 rows) the coefficients of a vector in each pair of its class with another."""

    coef: np.ndarray
    intercept: np.ndarray
    support: np.ndarray
    n_support: np.ndarray


@dataclass
class LinearModel:
    """f(x) = w·x + intercept. `penalised` says that ½·intercept² is part of the objective. Several classes: a row of w
    and an intercept for each of them, against the rest.
    """

    w: np.ndarray
    intercept: float | np.ndarray = 0.0
    penalised: bool = False


@dataclass
class Predictions:
    """Only what a model says about the test rows, where there is no common objective (early)."""

    values: np.ndarray


Model = KernelModel | PairsModel | LinearModel | Predictions


class Dataset:
    """Subclass as `class Dataset(base.Dataset)` in datasets/<name>.py and write `real` and `generate`.

    Attributes: task (classification or regression), kernel (the papers' parameters for Problem), about (one line).
    """

    name = ""
    task = "classification"
    kernel: dict[str, Any] = {}
    file: str | None = None

    def real(self, npz: dict[str, Any]) -> Data:
        """Preprocess the arrays of <file>.npz (CSR parts already joined)."""
        raise NotImplementedError

    def generate(self, rng: np.random.Generator) -> Data:
        """Data of similar shape for those who do not have the file."""
        raise NotImplementedError

    def load(self) -> Data:
        folder = os.environ.get("MAXMARGIN_DATA")
        path = pathlib.Path(folder) / f"{self.file or self.name}.npz" if folder else None
        if path is not None and path.is_file():
            return self.real(_read_npz(path))
        data = self.generate(np.random.default_rng(0))
        data.source = "generated"
        return data


class Solver:
    """Subclass in solvers/<name>.py. One object solves one problem: form, prepare, fit (timed), model, predict (timed).

    form() puts rows into the shape and type that this solver likes best, prepare() builds whatever fit() needs; neither
    is timed. predict() gets rows that went through form().
    """

    name = ""
    requires: tuple[str, ...] = ()  # modules that must be importable
    package: str | None = None  # the distribution whose version is reported
    tasks: tuple[str, ...] = ()
    ours = False
    stores_kernel = True  # whether a fit keeps kernel values: decides how much memory is touched before it

    def skip(self, problem: Problem, data: Data) -> str | None:
        """Why this solver cannot run this problem on this data, or None."""
        for module in self.requires:
            if importlib.util.find_spec(module) is None:
                return f"{module} is not installed (pip install '.[bench]')"
        if problem.task not in self.tasks:
            return f"does not solve {problem.task}"
        return None

    def form(self, X: Any) -> Any:
        return X

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        raise NotImplementedError

    def fit(self) -> None:
        raise NotImplementedError

    def model(self, X_test: Any) -> Model:
        """The fitted model for the evaluator; X_test (through form()) is for those that only give Predictions."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def extra(self) -> dict[str, float]:
        """Numbers of the solver's own that a table may show (iterations, time per phase). Never its objective."""
        return {}

    def curves(self) -> dict[str, list[float]]:
        """What the solver reported turn by turn, for pictures of its convergence; the evaluator judges its end."""
        return {}


@dataclass(frozen=True)
class Cell:
    """One solver on one problem.

    rows: the first so many training rows (None: all). measure: fit, or predict (the time of predicting the test rows).
    number: fits per repetition inside one process, for fits of less than a millisecond. repeat: None means the run's.
    predict: also time the prediction of the test rows, in every turn (`predict` in the record is the best).
    kernel_pass: also time decision_function on the training rows, that is one pass over the n × |SV| kernel block.
    curves: also store what the solver says of itself turn by turn (`Solver.curves`).
    judged: whether the evaluator sees the model (it needs n × |SV| kernel entries, too many for half a million rows).
    test_rows: the first so many test rows (None: all).
    score_only: the evaluator looks at the test rows only, no objective.
    limit: seconds for this cell, where the experiment's limit is not the right one.
    alone: False where the time is of no interest; such cells run side by side.
    cores: how many cores the process is pinned to (None: as many as it has threads).
    neighbours: foreign busy processes on each of those cores while the clock runs.
    twins: the fit is on the first of those cores, and the same fit goes on and on on each of the others.
    label: anything an experiment wants to find the cell by.
    """

    dataset: str
    solver: str
    problem: Problem
    rows: int | None = None
    threads: int | None = None
    measure: str = "fit"
    number: int = 1
    repeat: int | None = None
    predict: bool = False
    kernel_pass: bool = False
    curves: bool = False
    test_rows: int | None = None
    judged: bool = True
    score_only: bool = False
    limit: float | None = None
    alone: bool = True
    cores: int | None = None
    neighbours: int = 0
    twins: bool = False
    label: str = ""


@dataclass
class Options:
    """What the command line asks for. None means the experiment's default."""

    sets: list[str] | None = None
    solvers: list[str] | None = None
    repeat: int | None = None
    time_limit: float | None = None
    threads: int = 2
    rows: int | None = None
    tols: list[float] | None = None
    quick: bool = False
    scale: float = 1.0


@dataclass(frozen=True)
class Line:
    """A number that a paper printed, beside ours. `measured` None: not measured yet, or no such data here.

    better: "less", "more", or "" where neither is. ours: one of our machines, so that worse is lost. at_least:
    `measured` is where a fit was stopped. why: what is known of the difference.
    """

    table: str
    cell: str
    unit: str
    published: float | None
    measured: float | None
    why: str = ""
    better: str = ""
    ours: bool = False
    at_least: bool = False

    @property
    def lost(self) -> bool:
        """Worse than printed by more than what printing rounds: half a per cent, or 0.05 points of accuracy."""
        if not self.ours or self.published is None or self.measured is None:
            return False
        if self.better == "less":
            return self.measured > 1.005 * self.published
        return self.better == "more" and self.measured < self.published - (0.05 if self.unit == "%" else 0.0)


class Experiment:
    """Subclass in experiments/<name>.py and write `cells`; override `report` and `plots` for more than the table.

    A cell whose objective is above the best known by more than `excess_allowed` (relative, dual value; primal value
    where there is no dual) is marked, and does not count in means; so is one whose intercept costs more than
    `intercept_allowed` of the primal value, or whose coefficients leave their bounds by more than `infeasible_allowed`.
    A tolerance on the KKT conditions is not one on the objective: where the `yardstick` solver at the same tol ends
    further above, twice its excess is allowed. `shows` are the tables and figures of papers that it measures again,
    such as "dcsvm_table2"; `run` takes these names too.
    """

    name = ""
    title = ""
    solvers: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()  # sets that are shown, but count in no mean
    baseline = "maxmargin"
    repeat = 3
    time_limit = 600.0
    excess_allowed = 1e-3
    intercept_allowed = 1e-2
    infeasible_allowed = 1e-2
    yardstick: str | None = None
    bandwidth = False  # whether to measure the machine's read bandwidth beside the cells
    shows: tuple[str, ...] = ()

    def cells(self, options: Options) -> list[Cell]:
        raise NotImplementedError

    def chosen_sets(self, options: Options) -> list[str]:
        return _choose("set", options.sets, self.sets)

    def chosen_solvers(self, options: Options) -> list[str]:
        return _choose("solver", options.solvers, self.solvers, list(discover("solvers")))

    def column(self, record: dict[str, Any]) -> str:
        """The column of a table that a record belongs to."""
        return str(record["solver"])

    def report(self, run: dict[str, Any]) -> str:
        """Markdown for docs/benchmarks/<name>.md, without title and footer."""
        from benchmarks import report

        return report.tables(self, run)

    def guess(self, cell: Cell) -> float:
        """Seconds of a fit that nobody has timed yet, for `due`."""
        return 10.0

    def compare(self, run: dict[str, Any]) -> list[Line]:
        """Published beside measured, for experiments that show something of a paper."""
        return []

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        """Write pictures into `folder` and return them."""
        return []


def _choose(noun: str, asked: list[str] | None, default: tuple[str, ...], known: list[str] | None = None) -> list[str]:
    if asked is None:
        return list(default)
    known = list(default) if known is None else known
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise SystemExit(f"unknown {noun} {', '.join(unknown)}: choose among {', '.join(known)}")
    return asked


def discover(kind: str) -> dict[str, Any]:
    """All classes of datasets/, solvers/ or experiments/ by name; a file may define several."""
    parent = {"datasets": Dataset, "solvers": Solver, "experiments": Experiment}[kind]
    package = importlib.import_module(f"benchmarks.{kind}")
    found: dict[str, Any] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"benchmarks.{kind}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, parent) and value.__module__ == module.__name__:
                if value.__name__.startswith("_"):
                    continue
                value.name = value.__dict__.get("name") or info.name
                found[value.name] = value
    return found


def _read_npz(path: pathlib.Path) -> dict[str, Any]:
    """Arrays of an npz file; parts named A_data, A_indices, A_indptr, A_shape become the CSR matrix A."""
    with np.load(path, allow_pickle=False) as npz:
        parts: dict[str, Any] = {key: npz[key] for key in npz.files}
    for key in [key for key in parts if key.endswith("_indptr")]:
        base = key.removesuffix("_indptr")
        data, indices, indptr, shape = (parts.pop(f"{base}_{part}") for part in ("data", "indices", "indptr", "shape"))
        parts[base] = sp.csr_matrix((data, indices, indptr), shape=tuple(int(s) for s in shape))
    return parts
