"""skops loads our models, alone and in pipelines, and is told to trust our types and no others."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import DCSVC, DCSVR, SVC, SVR, BudgetSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.models import skops
from maxmargin.models.skops import TRUSTED

sio = pytest.importorskip("skops.io")
from skops.io import _general  # noqa: E402
from skops.io.exceptions import UntrustedTypesFoundException  # noqa: E402

MODELS = [
    SVC(warm_start=True), NuSVC(nu=0.1), SVR(), NuSVR(), OneClassSVM(), DCSVC(stop_level=1, levels=1, random_state=0),
    DCSVR(stop_level=1, levels=1, random_state=0), LinearSVC(warm_start=True),
    LinearSVR(warm_start=True), BudgetSVC(budget=10, random_state=0),
]  # fmt: skip


def blobs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=120)
    return rng.normal(size=(120, 3)) + np.eye(3)[y], y


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_our_types_are_all_that_must_be_trusted(model) -> None:
    X, y = blobs()
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    raw = sio.dumps(pipeline)
    assert set(sio.get_untrusted_types(data=raw)) <= set(TRUSTED)
    assert np.array_equal(sio.loads(raw, trusted=TRUSTED).predict(X), pipeline.predict(X))


def test_registered_types_need_not_be_named(monkeypatch) -> None:
    X, y = blobs()
    model = make_pipeline(StandardScaler(), DCSVC(stop_level=1, levels=1, random_state=0)).fit(X, y)
    raw = sio.dumps(model)
    monkeypatch.setattr(_general, "SKLEARN_ESTIMATOR_TYPE_NAMES", list(_general.SKLEARN_ESTIMATOR_TYPE_NAMES))
    with pytest.raises(UntrustedTypesFoundException, match="DCSVC"):
        sio.loads(raw)
    skops.register()
    skops.register()
    assert np.array_equal(sio.loads(raw).decision_function(X), model.decision_function(X))


def test_a_skops_that_has_changed_gets_a_word(monkeypatch) -> None:
    monkeypatch.delattr(_general, "SKLEARN_ESTIMATOR_TYPE_NAMES")
    with pytest.raises(RuntimeError, match=r"trusted=maxmargin.models.skops.TRUSTED"):
        skops.register()
