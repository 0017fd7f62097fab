"""Changes that no test noticed once, or ones like them where the code is another now: (room, file, text, instead)."""

NAMED: list[tuple[str, str, str, str]] = [
    # a bound that is too high, and so a false certificate
    ("linear", "linear/bundle.py", "max(self.lower, self.value), beta", "max(self.lower, 1.01 * self.value), beta"),
    ("linear", "linear/one_vs_rest.py", "lower=sum(part.lower for part in parts)", "lower=2 * sum(p.lower for p in parts)"),
    # cuts of other weights reused
    ("linear", "estimators/_linear.py", "(*arrays, data.target, data.weight):", "(*arrays, data.target):"),
    ("divide", "divide/bound.py", "scale**2", "scale"),
    ("divide", "divide/early.py", "return np.asarray(top + self.prior)", "return np.asarray(top)"),
    ("divide", "divide/whole.py", "share(len(self.problems) - p)", "share(len(self.problems))"),
    # clusters: cold, or asked where they have nothing to say
    ("divide", "divide/early.py", "asked = np.isnan(self.constant[c])", "asked = np.full(self.constant[c].shape, True)"),
    ("divide", "divide/level.py", "alpha if alpha is not None and alpha.any() else None", "None"),
    ("divide", "divide/level.py", "result.status is not Status.CONVERGED and not result.alpha.any()", "False"),
    ("divide", "divide/whole.py", "best_constant(q.qp) if bad else np.nan", "np.nan if bad else np.nan"),
    # blocks of rows that nobody needs any more kept on their workers; splits that end too soon; all threads for nobody
    ("divide", "divide/remote.py", "if b >= self._kept:", "if b > self._kept:"),
    ("divide", "divide/clustering.py", "m, rng, depth - 1)", "m, rng, depth - 2)"),
    ("divide", "divide/level.py", "int(np.count_nonzero(work > work.sum() / jobs)) if shared else 0", "0"),
    # a step of the refit that is too long; a pass's accuracy
    ("budget", "budget/newton.py", "float(move @ (problem.gram @ move)) / 2", "float(move @ (problem.gram @ move)) / 3"),
    ("budget", "budget/sgd.py", 'seen["correct"] / weight', 'seen["correct"] * weight'),
    # "balanced" without the weights of the samples
    ("estimators", "estimators/_labelled.py", "np.bincount(code[counts], weights=weight[counts], minlength=len(classes))",
     "np.bincount(code[counts], minlength=len(classes)) * 1.0"),
    # a file that changed and kept its size
    ("data", "data/libsvm.py", '"size": found.st_size, "mtime_ns": found.st_mtime_ns', '"size": found.st_size'),
    # a column outside of a sparse matrix among others; a column of a table that is a table; parts that do not add up
    ("data", "data/arrays.py", "indices.max() < self.columns", "indices.min() < self.columns"),
    ("data", "data/container.py", "not all(isinstance(name, str)", "not any(isinstance(name, str)"),
    ("data", "data/description.py", "max(highs, default=None)", "min(highs, default=None)"),
    # cost alone: a solution is its own restoration; members of the working set by their age
    ("problem", "problem/formulations.py", "if abs(excess) <= ROUNDING * over.of(alpha):", "if excess == 0:"),
    ("decomposition", "decomposition/working_set.py", "+ np.minimum(self._turns[fill], 8191)", "+ 0 * self._turns[fill]"),
    # kernel values and sums that are not what they seem
    ("decomposition", "decomposition/verified.py", "size = state.over.of(np.abs(state.coef)",
     "size = state.over.of(np.abs(state.beta).sum(axis=0)"),
    ("decomposition", "decomposition/state.py", "0.5 * np.sum(beta.sum(axis=0) * self.f))",
     "0.5 * np.sum(beta.sum(axis=0) * self.f) * (1 + 1e-9))"),
    ("problem", "problem/certificates.py", "np.minimum(upper, alpha.max(initial=0.0))", "upper"),
]  # fmt: skip

# Of the core: (room, file, text, instead).
NATIVE: list[tuple[str, str, str, str]] = [
    # the last, smaller slice of a loop is lost
    ("base", "base/threads.hpp", "  threading::share((count + size - 1) / size, threads, one);\n}\n\n// The same with",
     "  threading::share(std::max<index_t>(1, count / size), threads, one);\n}\n\n// The same with"),
    ("base", "base/threads.hpp", "out((count + size - 1) / size);", "out(std::max<index_t>(1, count / size));"),
    # losses without the weights of the samples
    ("linear", "linear/search.hpp", "loss += weight[i] * loss_of(kind, 1 - m[i]);", "loss += loss_of(kind, 1 - m[i]);"),
    # boxes that seem farther apart than they are
    ("kernel", "kernel/boxes.hpp", "T(-2 * kFar<T> + 1)", "T(-kFar<T> + 1)"),
    ("kernel", "kernel/boxes.hpp", "gap * gap : Vec<T>{}", "gap * gap * T(2) : Vec<T>{}"),
    # the best of two moves, each with one variable at its bound; the best companion, of one half of the variables
    ("decomposition", "decomposition/inner_smo.hpp", "return t.i * si + t.j * sj", "return t.i + si + t.j * sj"),
    ("decomposition", "decomposition/inner_smo.hpp", "flag(i);\n    return reduce(best[0], best[1]).at;",
     "flag(i);\n    return reduce(best[1], best[1]).at;"),
    # rows that would have room and do not come before the tile
    ("decomposition", "decomposition/part.hpp", "cache_->slots() >= active_", "cache_->slots() > active_"),
    # tiles that stay, of families: too small a matrix, places before the others
    ("decomposition", "decomposition/kept_tile.hpp", "std::size_t(ld_) * std::size_t(ld_), T(0)",
     "std::size_t(ld_) + std::size_t(ld_), T(0)"),
    ("decomposition", "decomposition/set_choice.hpp", "nth_element(rank_.begin() + fresh,",
     "nth_element(rank_.begin() - fresh,"),
    # starts of families
    ("decomposition", "decomposition/restored.hpp", "beta[v] - lo[v] : hi[v] - beta[v]; };",
     "beta[v] - lo[v] : hi[v] + beta[v]; };"),
    ("decomposition", "decomposition/restored.hpp", "(left / inside) : room(v);\n      next(v, by * share)",
     "(left / inside) : room(v);\n      next(v, by + share)"),
    # a factor's last columns
    ("decomposition", "decomposition/free_step.hpp", "a += r[l][m] * x[m], b += r[l][m] * y[m];",
     "a += r[l][m] * x[m], b += r[l][m] + y[m];"),
]  # fmt: skip
