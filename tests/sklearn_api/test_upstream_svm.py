"""scikit-learn's svm/tests/test_svm.py on our machines."""

from upstream import contents, global_random_seed, load, our_machines  # noqa: F401

globals().update(contents(load("test_svm")))
