"""Each step of the core's budgeted descent, from the state before it, against the same step written down in NumPy."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.budget.maintenance import MAINTENANCE, MERGE_SEARCH
from maxmargin.budget.merging import merge_table, optimal_h, scaled_grids, uniform_grids
from maxmargin.data.matrix import as_matrix

Floats = NDArray[np.float64]
GRID = 33
KEPT = 1e-4  # of the smaller one, below which a merge is a removal
FORMS = [np.asarray, sp.csr_matrix]
SECONDS = ("search_seconds", "merge_seconds")


@lru_cache
def grids(kind: str) -> tuple[Floats, Floats]:
    return {"scaled": scaled_grids, "uniform": uniform_grids}[kind](GRID)


@dataclass(frozen=True)
class Rules:
    budget: int
    features: int = 3
    outputs: int = 1
    gamma: float = 0.5
    lam: float = 0.2
    intercept: bool = False
    maintenance: str = "merge"
    search: str = "lookup-wd"
    table: str = "scaled"
    drop: bool = True
    audit: bool = False
    double: bool = True
    slots: int = 0

    def core(self, state: dict[str, Any] | None = None) -> Any:
        made = (_core.BudgetSgd64 if self.double else _core.BudgetSgd32)(
            budget=self.budget, slots=self.slots or self.budget, features=self.features, outputs=self.outputs,
            gamma=self.gamma, lam=self.lam, intercept=self.intercept, maintenance=MAINTENANCE[self.maintenance],
            search=MERGE_SEARCH[self.search], table=merge_table(GRID, self.table), drop=self.drop, audit=self.audit,
        )  # fmt: skip
        if state is not None:
            made.restore(**state)
        return made


def bilinear(table: Floats, row: Floats, column: Floats) -> Floats:
    """Values between the nodes of a grid, at places in [0, 1] each way."""
    at = [np.clip(place * (len(table) - 1), 0, len(table) - 1) for place in (row, column)]
    i, j = (np.minimum(place.astype(int), len(table) - 2) for place in at)
    a, b = at[0] - i, at[1] - j
    left = (1 - a) * table[i, j] + a * table[i + 1, j]
    right = (1 - a) * table[i, j + 1] + a * table[i + 1, j + 1]
    return (1 - b) * left + b * right


def lost(t: Floats, h: Floats, r: Floats, rho: Floats) -> Floats:
    """1 + r² + 2·rho·r·k − s², what a merge at h degrades, in units of the smaller one's square."""
    far, near = t * (1 - h) ** 2, t * h**2
    cross = 2 * rho * r * np.exp(-far - near) * np.expm1(-2 * t * h * (1 - h))
    return -np.expm1(-2 * far) - r * r * np.expm1(-2 * near) + cross


def golden(t: Floats, r: Floats, rho: Floats, high: float, steps: int) -> Floats:
    """The middle of what golden section leaves of [0, high] for the h of the longest sum."""

    def length(h: Floats) -> Floats:
        a, b = np.exp(-t * (1 - h) ** 2), r * np.exp(-t * h**2)
        return a * a + b * b + 2 * rho * a * b

    share = (np.sqrt(5) - 1) / 2
    low, top = np.zeros_like(t), np.full_like(t, high)
    for _ in range(steps):
        a, b = top - share * (top - low), low + share * (top - low)
        left = length(a) > length(b)
        low, top = np.where(left, low, a), np.where(left, b, top)
    return (low + top) / 2


def newton(t: Floats, r: Floats, rho: Floats) -> Floats:
    """Four steps from 0 on h = x(x + rho)/(1 + 2·rho·x + x²), x = exp(−t(1 − 2h))/r, kept in [0, ½]."""
    h = np.zeros_like(t)
    for _ in range(4):
        x = np.exp(-t * (1 - 2 * h)) / r
        below = 1 + 2 * rho * x + x * x
        slope = 1 - 2 * t * x * (rho * (1 + x * x) + 2 * x) / below**2
        h = np.clip(h + (x * (x + rho) / below - h) / np.maximum(slope, 1e-3), 0, 0.5)
    return h


def chosen(search: str, table: str, single: bool, t: Floats, r: Floats, rho: Floats) -> tuple[int, float, float, float]:
    """The partner, its h, what that merge degrades, and by what share the next best is worse."""
    m, v = 1 / (1 + r), t / (4 + t)
    place = (2 * m, v) if table == "scaled" else (m, np.exp(-t))
    if search == "lookup-wd" and single:
        scores = bilinear(grids(table)[0].astype(np.float32).astype(float), *place)
        scores *= np.expm1(-t) ** 2 if table == "scaled" else (1 + r) ** 2
    else:
        if search == "lookup-h":
            h = bilinear(grids(table)[1].astype(np.float32).astype(float), *place)
        elif search == "lookup-wd":
            h = newton(t, r, rho)
        else:
            h = golden(t, r, rho, *{"gss": (1.0, 10), "gss-precise": (0.5, 47)}[search])
        scores = lost(t, h, r, rho)
    j = int(np.argmin(scores))
    apart = np.min(np.delete(scores, j), initial=np.inf) - scores[j]
    best = float(optimal_h(m[j], t[j])) if search == "lookup-wd" and single else float(h[j])
    return j, best, float(lost(t[j], np.float64(best), r[j], rho[j])), apart / max(abs(scores[j]), 1e-300)


@dataclass
class Plain:
    """A model as arrays; `sums` are those of beta over the steps of both windows, the intercept's in the last column."""

    rules: Rules
    x: Floats
    beta: Floats
    sums: Floats  # (2, outputs, support vectors + 1)
    label: NDArray[np.int64]
    born: NDArray[np.int64]
    bias: Floats
    time: float
    starts: Floats
    due: float
    moves: float
    counters: dict[str, float] = field(default_factory=dict)
    sure: float = np.inf  # how far the decisions of the step were from being others

    @classmethod
    def of(cls, rules: Rules, state: dict[str, Any]) -> Plain:
        beta, bias, clock = state["beta"].astype(float), state["bias"].astype(float), state["clock"]
        whole = np.column_stack([beta, bias])
        sums = state["windows"].reshape(2, rules.outputs, -1) + whole * clock[0]
        return cls(rules, state["centres"].astype(float), beta, sums, state["label"].astype(int), state["born"],
                   bias, clock[0], clock[1:3].copy(), clock[3], clock[4])  # fmt: skip

    def count(self, **more: float) -> None:
        for name, value in more.items():
            self.counters[name] = self.counters.get(name, 0.0) + value

    def sizes(self) -> Floats:
        return np.sqrt((self.beta**2).sum(axis=0))

    def kernel(self, z: Floats) -> Floats:
        return np.exp(-self.rules.gamma * ((self.x - z) ** 2).sum(axis=1))

    def step(self, z: Floats, label: int, weight: float) -> None:
        rules = self.rules
        scale = 1 / (rules.lam * self.time) if self.time else 0.0
        f = scale * (self.beta @ self.kernel(z) + self.bias)
        if self.time >= self.due or self.moves >= rules.budget:
            self.starts = np.array([self.starts[1], self.time])
            self.sums = np.stack([self.sums[1], np.zeros_like(self.sums[1])])
            self.due, self.moves = max(self.time + 1, np.floor(1.05 * self.time)), 0.0
        self.time += 1
        y = np.array([1.0 if label == (1 if rules.outputs == 1 else c) else -1.0 for c in range(rules.outputs)])
        lack = 1 - y * f
        said = int(f[0] > 0) if rules.outputs == 1 else int(np.argmax(f))
        if self.time > 1:
            lead = np.abs(f[0]) if rules.outputs == 1 else np.diff(np.sort(f))[-1]
            size = scale * (np.abs(self.beta) @ self.kernel(z) + np.abs(self.bias)).max()
            self.sure = min(self.sure, np.abs(lack).min(), lead / size if size else np.inf)
        violation = bool((lack > 0).any())
        self.count(steps=1, violations=violation, loss=weight * lack[lack > 0].sum(), weight=weight,
                   correct=weight * (said == label))  # fmt: skip
        if violation and weight > 0:
            self.learn(z, label, np.where(lack > 0, y * weight, 0.0))
        self.sums += np.column_stack([self.beta, self.bias])

    def learn(self, z: Floats, label: int, delta: Floats) -> None:
        if self.rules.intercept:
            self.bias = self.bias + delta
        twins = np.flatnonzero((self.x == z).all(axis=1) & (self.label == label))
        if len(twins):
            self.beta[:, twins[0]] += delta
            self.count(duplicates=1)
            return
        sizes = self.sizes()
        self.x = np.vstack([self.x, z])
        self.beta = np.column_stack([self.beta, delta])
        self.sums = np.concatenate([self.sums[..., :-1], np.zeros((2, len(delta), 1)), self.sums[..., -1:]], axis=2)
        self.label, self.born = np.append(self.label, label), np.append(self.born, int(self.time))
        if len(self.x) <= self.rules.budget:
            return
        new = len(self.x) - 1
        if self.rules.maintenance == "merge" and np.linalg.norm(delta) <= sizes.min() and label in self.label[:new]:
            self.merge(new)
        else:
            self.maintain()

    def maintain(self) -> None:
        """The smallest, the oldest of those, leaves in the way of the rules."""
        order = np.lexsort((self.born, self.sizes()))
        paired = [i for i in order if np.count_nonzero(self.label == self.label[i]) > 1]
        if self.rules.maintenance == "merge" and paired and self.sizes()[paired[0]] > 0:
            self.merge(paired[0])
        elif self.rules.maintenance == "project":
            self.project(order[0])
        else:
            self.drop(order[0])

    def drop(self, i: int) -> None:
        self.count(removals=1, degradation=float(self.sizes()[i]) ** 2)
        self.discard(i)

    def discard(self, i: int) -> None:
        """The last one takes its place."""
        last = len(self.x) - 1
        for array in (self.x, self.label, self.born):
            array[i] = array[last]
        self.beta[:, i], self.sums[..., i] = self.beta[:, last], self.sums[..., last]
        self.x, self.label, self.born = self.x[:last], self.label[:last], self.born[:last]
        self.beta, self.sums = self.beta[:, :last].copy(), np.delete(self.sums, last, axis=2)

    def merge(self, i: int) -> None:
        rules, sizes = self.rules, self.sizes()
        among = np.array([j for j in np.flatnonzero(self.label == self.label[i]) if j != i])
        t = rules.gamma * ((self.x[among] - self.x[i]) ** 2).sum(axis=1)
        r, rho = sizes[among] / sizes[i], np.ones(len(among))
        if rules.outputs > 1:
            rho = np.minimum(self.beta[:, i] @ self.beta[:, among] / (sizes[i] * sizes[among]), 1)
        ways = {s: chosen(s, rules.table, rules.outputs == 1, t, r, rho) for s in (rules.search, *AUDITED[rules.audit])}
        place, h, score, apart = ways[rules.search]
        self.sure = min(self.sure, abs(score - 1 + KEPT) if rules.drop else np.inf)
        if rules.drop and score > 1 - KEPT:
            self.drop(i)
            return
        flat = r[place] < 1.05 and (abs(t[place] - 2) < 0.3 or rules.search == "gss")  # other places for z are as good
        self.sure = min(self.sure, apart, 0.0 if flat else np.inf)
        if rules.audit:
            self.audit(ways)
        j = among[place]
        k = np.exp(-t[place] * (1 - h) ** 2), np.exp(-t[place] * h**2)
        self.x[j] = h * self.x[i] + (1 - h) * self.x[j]
        for held in (self.beta, self.sums[0], self.sums[1]):
            held[:, j] = k[0] * held[:, i] + k[1] * held[:, j]
        self.moves += 1
        self.count(merges=1, degradation=score * float(sizes[i]) ** 2)
        self.discard(i)

    def audit(self, ways: dict[str, tuple[int, float, float, float]]) -> None:
        precise, gss, wd = ways["gss-precise"], ways["gss"], ways["lookup-wd"]
        self.sure = min(self.sure, *(way[3] for way in (precise, gss, wd)), *(abs(way[2] - 1 + KEPT) for way in (gss, wd)))
        self.count(
            audits=1, same_gss_precise=gss[0] == precise[0], same_wd_precise=wd[0] == precise[0],
            same_wd_gss=wd[0] == gss[0], factor_gss=gss[2] / precise[2], factor_wd=wd[2] / precise[2],
            useless_gss=gss[2] > 1 - KEPT, useless_wd=wd[2] > 1 - KEPT, total_precise=precise[2],
            total_gss=gss[2], total_wd=wd[2],
        )  # fmt: skip

    def project(self, i: int) -> None:
        """The combination of the others that is nearest to it, by conjugate gradients from 0."""
        others = np.delete(np.arange(len(self.x)), i)
        distance = ((self.x[:, None] - self.x) ** 2).sum(axis=2)
        gram = np.exp(-self.rules.gamma * distance)
        K, k = gram[np.ix_(others, others)], gram[others, i]
        a, residual = np.zeros(len(k)), k.copy()
        direction, goal = residual.copy(), 1e-8 * (k @ k)
        for _ in range(50):
            norm, image = residual @ residual, K @ direction
            self.sure = min(self.sure, abs(norm / goal - 1))
            if norm <= goal:
                break
            length = norm / (image @ direction)
            a += length * direction
            residual -= length * image
            direction = residual + residual @ residual / norm * direction
        self.count(projections=1, degradation=max(0.0, 1 - 2 * a @ k + a @ K @ a) * float(self.sizes()[i]) ** 2)
        for held in (self.beta, self.sums[0], self.sums[1]):
            held[:, others] += a * held[:, [i]]
        self.discard(i)

    def state(self) -> dict[str, Floats]:
        return {"centres": self.x, "beta": self.beta, "sums": self.sums, "label": self.label, "born": self.born,
                "bias": self.bias, "clock": np.array([self.time, *self.starts, self.due, self.moves])}  # fmt: skip


AUDITED: dict[bool, tuple[str, ...]] = {True: ("gss-precise", "gss", "lookup-wd"), False: ()}


def assert_same(core: Any, plain: Plain, tolerance: float) -> None:
    """One model and what happened to it, to rounding."""
    found = Plain.of(plain.rules, core.state()).state()
    for name, wanted in plain.state().items():
        assert found[name].shape == wanted.shape, name
        scale = np.abs(wanted).max(initial=1e-300)
        assert (np.abs(found[name] - wanted) <= tolerance * (np.abs(wanted) + scale)).all(), (name, found[name], wanted)
    assert core.count == len(plain.x)


def rows(n: int, rules: Rules, seed: int, equal: bool) -> tuple[Any, NDArray[np.int32], Floats]:
    """Clouds that overlap, some rows twice, of weights that are few or all different, some of them 0."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, max(rules.outputs, 2), n).astype(np.int32)
    x = rng.normal(size=(n, rules.features)) + 0.8 * labels[:, None]
    x[rng.random((n, rules.features)) < 0.2] = 0
    x[6::7], labels[6::7] = x[4:-2:7], labels[4:-2:7]
    weights = rng.choice([0.0, 1.0, 2.0], n, p=[0.1, 0.7, 0.2]) if equal else rng.uniform(0.3, 3, n)
    return x.astype(np.float64 if rules.double else np.float32), labels, weights


def steps_are_plain(rules: Rules, form: Any = np.asarray, n: int = 110, equal: bool = False, first: int = 0) -> Plain:
    """One row at a time against NumPy, from the core's own state; and many rows at once have the same bits."""
    x, labels, weights = rows(n, rules, rules.budget, equal)
    matrix, whole, core = as_matrix(form(x)), rules.core(), rules.core()
    tolerance, sure = (1e-5 if rules.maintenance == "project" else 1e-6, 1e-6) if rules.double else (5e-4, 2e-3)
    totals, judged = Plain.of(rules, core.state()), 0
    core.run(matrix, np.arange(first), labels, weights)
    totals.count(**core.take_counters())
    for i in range(first, n):
        plain = Plain.of(rules, core.state())
        plain.step(x[i].astype(float), int(labels[i]), float(weights[i]))
        core.run(matrix, np.array([i]), labels, weights)
        happened = core.take_counters()
        assert all(happened.pop(name) >= 0 for name in SECONDS)
        totals.count(**happened)
        if plain.sure < sure:
            continue
        judged += 1
        assert_same(core, plain, tolerance)
        for name, value in happened.items():
            wanted = plain.counters.get(name, 0.0)
            assert value == pytest.approx(wanted, rel=10 * tolerance, abs=tolerance), (i, name)
    assert judged > (0.75 if rules.double else 0.5) * (n - first)
    whole.run(matrix, np.arange(n), labels, weights)
    for name, value in core.state().items():
        np.testing.assert_array_equal(whole.state()[name], value, err_msg=name)
    for name, value in whole.take_counters().items():
        assert name in SECONDS or value == pytest.approx(totals.counters[name], rel=1e-12, abs=1e-12), name
    return totals


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("maintenance", MAINTENANCE)
def test_each_way_to_keep_the_budget(maintenance: str, outputs: int, double: bool, form: Any) -> None:
    """Of one output and several, by dense rows and stored entries, in both precisions; windows, intercepts and counters."""
    happened = steps_are_plain(Rules(9, 3, outputs, 2.0, maintenance=maintenance, intercept=True, double=double), form)
    event = {"merge": "merges", "remove": "removals", "project": "projections"}[maintenance]
    assert happened.counters[event] > 40 and happened.counters["duplicates"] > 0


TABLED = [(search, 1, table) for search in ("lookup-wd", "lookup-h") for table in ("scaled", "uniform")]
TABLED += [("lookup-wd", 3, "scaled"), ("lookup-h", 3, "scaled")]
FREE = [(search, outputs, "scaled") for search in ("gss", "gss-precise") for outputs in (1, 3)]


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize(("search", "outputs", "table"), TABLED + FREE)
def test_each_way_to_find_a_partner(search: str, outputs: int, table: str, drop: bool) -> None:
    """With rows so far apart that some partners are of no use, and the audit of all ways side by side."""
    audit = search == "lookup-wd" and drop
    happened = steps_are_plain(Rules(7, 3, outputs, 0.8, search=search, table=table, drop=drop, audit=audit), n=70).counters
    assert happened["merges"] > 25 and happened["audits"] == (happened["merges"] if audit else 0)


@pytest.mark.parametrize("maintenance", MAINTENANCE)
@pytest.mark.parametrize("budget", [1, 2, 31, 32, 33, 64, 65])
def test_budgets_around_panels_of_slots(budget: int, maintenance: str) -> None:
    """With weights that are equal, so that age decides."""
    rules = Rules(budget, 4, maintenance=maintenance, gamma=3.0)
    steps_are_plain(rules, n=budget + 30, equal=True, first=max(0, budget - 3))


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("maintenance", MAINTENANCE)
def test_a_model_too_large_loses_one_support_vector_at_a_time(maintenance: str, outputs: int, double: bool) -> None:
    """Of coefficients of any sign and size, zeros among them; down to the budget, and no further."""
    rng = np.random.default_rng(outputs)
    rules = Rules(4, 3, outputs, 2.0, maintenance=maintenance, double=double, slots=40, drop=False)
    real = np.float64 if double else np.float32
    beta = rng.normal(size=(outputs, 40)) * rng.choice([1.0, 1e-3, 30.0], 40)
    beta[:, [3, 11, 39]] = 0
    label = (beta[0] > 0).astype(np.int32) if outputs == 1 else rng.integers(0, 4, 40).astype(np.int32)
    label[-1] = 7  # nobody else's
    state = {"centres": rng.normal(size=(40, 3)).astype(real), "beta": beta, "label": label, "born": rng.permutation(40),
             "windows": rng.normal(size=(2 * outputs, 41)), "bias": rng.normal(size=outputs),
             "clock": np.array([50.0, 30.0, 40.0, 52.0, 2.0])}  # fmt: skip
    core, judged = rules.core(state), 0
    for name, value in core.state().items():
        np.testing.assert_array_equal(value, state[name], err_msg=name)
    while core.count > rules.budget:
        plain = Plain.of(rules, core.state())
        plain.maintain()
        core.reduce(1)
        happened = core.take_counters()
        if plain.sure > (1e-6 if double else 1e-2):
            judged += 1
            assert_same(core, plain, 1e-6 if double else 1e-3)
            for name in ("merges", "removals", "projections", "degradation"):
                wanted = plain.counters.get(name, 0.0)
                assert happened[name] == pytest.approx(wanted, rel=1e-6 if double else 5e-3, abs=1e-9 if double else 1e-4)
    assert judged > (25 if double else 15)
    once = rules.core(state)
    once.reduce(1000)
    core.reduce(1)
    for name, value in core.state().items():
        np.testing.assert_array_equal(once.state()[name], value, err_msg=name)


@pytest.mark.parametrize("search", MERGE_SEARCH)
@pytest.mark.parametrize("ratio", [1.3, 4.0, 1e3, 1e8])
def test_what_a_merge_degrades_is_exact_however_near_the_two_are(ratio: float, search: str) -> None:
    """|w' − w|² vanishes like the square of their distance; nothing of it may cancel."""
    for t in (1e-10, 1e-6, 1e-3, 0.049, 0.051, 0.17, 0.176, 0.34, 0.36, 0.7, 3.0, 20.0):
        rules = Rules(1, 1, gamma=1.0, lam=1e12, search=search, drop=False)
        core = rules.core()
        x = np.array([[0.0], [np.sqrt(t)]])
        core.run(as_matrix(x), np.arange(2), np.zeros(2, np.int32), np.array([ratio, 1.0]))
        happened, state = core.take_counters(), core.state()
        assert happened["merges"] == 1
        z = state["centres"][0, 0]
        h = np.float64(z / np.sqrt(t))
        assert 0 <= h <= 0.5 + 5e-3
        exact = float(lost(np.float64(t), h, np.float64(ratio), np.float64(1.0)))
        close = 1e-14 * (1 + ratio**2 * h * t) + 2e-15 * min(t * ratio, 1) * ratio
        assert abs(happened["degradation"] - exact) <= 1e-11 * exact + close * min(t, 1.0)
        if search == "lookup-wd":
            least = float(lost(np.float64(t), optimal_h(1 / (1 + ratio), t), np.float64(ratio), np.float64(1.0)))
            assert happened["degradation"] <= (1 + 1e-6) * least + 1e-9
