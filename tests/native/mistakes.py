"""A mistake on purpose in the use of the core, which a sanitizer must report: python mistakes.py address|thread."""

import sys
import threading

import numpy as np

from maxmargin import _core
from maxmargin.data.matrix import as_matrix


def beyond_the_end() -> None:
    """Reads a row that the matrix does not have."""
    _core.linear_add_rows(as_matrix(np.zeros((100, 10))), np.array([100]), np.ones(1), np.zeros(10), 1)


def two_at_once() -> None:
    """Two threads write to the same margins."""
    m, q = np.zeros(200_000), np.ones(200_000)

    def advance() -> None:
        for _ in range(20):
            _core.linear_advance("hinge", m, q, 0.1, q, 1)

    threads = [threading.Thread(target=advance) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


if __name__ == "__main__":
    {"address": beyond_the_end, "thread": two_at_once}[sys.argv[1]]()
