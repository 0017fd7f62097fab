"""Where our machines differ on purpose from what scikit-learn's own tests of its SVMs expect: the test, and why.

A departure must really be one (a test that passes fails the suite, unless the last bits decide), there are at most 5 % of
what applies, and each is told to users: `documented` is a piece of docs/migration.md.
"""

from __future__ import annotations

from dataclasses import dataclass

AT_MOST = 0.05


@dataclass(frozen=True)
class Departure:
    reason: str
    documented: str
    certain: bool = True  # else it fails or passes by the last bits


TURNS = Departure(
    "max_iter counts turns of the outer loop, and six samples are solved in the first", "turns of the outer loop"
)
SPARSE = Departure(
    "a machine fitted to dense rows predicts sparse ones, which there is an error", "sparse rows after a dense fit"
)
COEFFICIENTS = Departure(
    "the same kernel by name, as a function and as a Gram matrix goes different ways: coefficients agree to tol, not to six "
    "decimals",
    "The same kernel by name, as a function and as a Gram matrix",
    certain=False,
)
DEPARTURES = {
    "test_svm::test_libsvm_convergence_warnings": TURNS,
    "test_sparse::test_timeout": TURNS,
    "test_svm::test_bad_input": SPARSE,
    "test_svm::test_svr_errors": Departure(
        "a kernel function that returns a block of the wrong shape is found by fit, not by predict",
        "a block of the wrong shape",
    ),
    "test_svm::test_linear_svm_convergence_warnings": Departure(
        "a linear machine that stops early names the gap and what to raise, not LIBLINEAR", "warns in words of its own"
    ),
    "test_svm::test_precomputed": COEFFICIENTS,
    "test_svm::test_svc_clone_with_callable_kernel": COEFFICIENTS,
}

# Tests of functions that are LIBSVM's and LIBLINEAR's wrappers, or scikit-learn's choice between the solvers of the latter.
PRIVATE = {"test_svm::test_libsvm_iris", "test_svm::test_dual_auto", "test_svm::test_dual_auto_edge_cases"}
