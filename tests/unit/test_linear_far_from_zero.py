"""Samples far from 0: with a free intercept the machine is that of the same samples around 0."""

import numpy as np
import pytest
import scipy.sparse as sp
from hinge import hinge_svc

from maxmargin.data.matrix import far_centre
from maxmargin.estimators._linear import Samples


def drawn(n, d, kind=np.float64):
    """Multiples of 2⁻¹⁰, which stay what they are when whole numbers of their size are added."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(n, d)) * 2**10) / 2**10
    return X.astype(kind), np.argmax(X[:, :3] + rng.normal(size=(n, 3)), axis=1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("shift", [30.0, 1e4, 1e5])
@pytest.mark.parametrize("shape", [(800, 6), (80, 100)], ids=["narrow", "wide"])
def test_a_shift_changes_the_intercept_only(shape, shift, loss):
    X, y = drawn(*shape)
    near, far = (hinge_svc(loss=loss, tol=1e-6).fit(Z, y == 0) for Z in (X, X + shift))
    assert far.status_ == "converged"
    assert far.objective_ == pytest.approx(near.objective_, rel=2e-6)
    np.testing.assert_allclose(far.decision_function(X + shift), near.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_several_classes_far_from_zero(multi_class):
    X, y = drawn(300, 5, np.float32)
    near, far = (hinge_svc(multi_class=multi_class).fit(Z, y) for Z in (X, X + np.float32(2000)))
    assert far.status_ == "converged"
    assert far.objective_ == pytest.approx(near.objective_, rel=2e-4)


def test_a_warm_start_far_from_zero_is_proven_at_once():
    X, y = drawn(600, 5)
    model = hinge_svc(warm_start=True).fit(X + 1e4, y == 0)
    turns, objective = model.n_iter_, model.objective_
    model.fit(X + 1e4, y == 0)
    assert model.n_iter_ == 1 < turns
    assert model.objective_ == pytest.approx(objective, rel=1e-9)


def test_only_samples_far_from_zero_are_copied(tmp_path):
    X, _ = drawn(300, 5)
    assert far_centre(X) is None and far_centre(X + 5) is None and far_centre(X * 1e200 + 1e200) is None
    assert far_centre(np.hstack([X, np.ones((300, 1))])) is None  # a constant feature of the size of the others
    assert far_centre(np.ones((300, 5))) is None
    assert far_centre(sp.csr_matrix(X + 1e4)) is None
    mapped = np.memmap(tmp_path / "x", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X + 1e4
    assert far_centre(mapped) is None
    centre = far_centre((X + np.array([1e4, 0, 0, 0, 0])).astype(np.float32))
    assert centre.dtype == np.float32 and centre[0] == pytest.approx(1e4, abs=1) and not centre[1:].any()


@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0, 1000.0])
def test_float32_samples_are_solved_as_they_are(spread):
    """Moved, they and the centre add up to the samples bit by bit; float32 stays where that is possible."""
    rng = np.random.default_rng(0)
    X = (1000.0 + spread * rng.standard_t(2, size=(400, 3))).astype(np.float32)
    moved = Samples(X, np.zeros(400), np.ones(400))
    moved.move_near_zero()
    if moved.centre is None:
        assert spread == 1000.0 and moved.X is X
        return
    exact = X.astype(np.float64) - moved.centre
    np.testing.assert_array_equal(moved.X, exact)
    assert (moved.X.dtype == np.float32) == bool((exact.astype(np.float32) == exact).all())


def test_float64_samples_are_moved_within_their_rounding():
    X = 1e6 + drawn(300, 5)[0]
    moved = Samples(X, np.zeros(300), np.ones(300))
    moved.move_near_zero()
    np.testing.assert_array_equal(moved.X, X - moved.centre)
    assert moved.X.dtype == np.float64 and np.abs(moved.X).max() < 10
