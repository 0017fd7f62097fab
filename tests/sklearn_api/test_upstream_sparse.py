"""scikit-learn's svm/tests/test_sparse.py on our machines."""

from upstream import contents, global_random_seed, load, our_machines  # noqa: F401

module = load("test_sparse")
module.test_svm = load("test_svm")  # it borrows a test from there
globals().update(contents(module))
