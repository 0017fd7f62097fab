"""scikit-learn's conventions beyond its estimator checks: constraints, metadata routing, frames, set_output, HTML."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils._param_validation import generate_invalid_param_val, generate_valid_param, make_constraint
from sklearn.utils.fixes import parse_version

import maxmargin
from maxmargin import DCSVC, DCSVR, SVC, SVR, BudgetSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

KERNEL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM, DCSVC, DCSVR]
ALL = [*KERNEL, LinearSVC, LinearSVR, BudgetSVC]
SEARCHES = [maxmargin.LinearSVCCV, maxmargin.LinearSVRCV, maxmargin.DCSVCCV]
X, Y = make_classification(80, 4, random_state=0)
CASES = [(make, name) for make in (*ALL, *SEARCHES) for name in make._parameter_constraints]


def machine(make, **params):
    return make(**({"nu": 0.3} if make is NuSVC else {})).set_params(**params)


@pytest.mark.parametrize("make", [*ALL, *SEARCHES])
def test_every_parameter_has_constraints(make) -> None:
    assert set(make._parameter_constraints) == set(make().get_params())


@pytest.mark.parametrize(("make", "name"), CASES, ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_constraints_say_what_is_refused(make, name) -> None:
    constraints = [make_constraint(c) for c in make._parameter_constraints[name]]
    bad = [type("Other", (), {})()]
    for constraint in constraints:
        try:
            bad.append(generate_invalid_param_val(constraint))
        except NotImplementedError:  # of a type, or None: any other object is
            continue
    for value in bad:
        if any(constraint.is_satisfied_by(value) for constraint in constraints):
            continue
        with pytest.raises(ValueError, match=f"^{name}="):
            machine(make, **{name: value}).fit(X, Y)
    assert len(bad) > 0


@pytest.mark.parametrize(("make", "name"), CASES, ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_constraints_say_what_is_taken(make, name) -> None:
    for constraint in map(make_constraint, make._parameter_constraints[name]):
        try:
            value = generate_valid_param(constraint)
        except (NotImplementedError, ValueError):
            continue
        model = machine(make, **{name: value})
        if name == "stop_level":
            model.set_params(levels=value)
        model._control()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # probability
            model._check_parameters()


@pytest.mark.parametrize("make", ALL)
def test_sample_weights_are_routed(make) -> None:
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], len(Y))
    alone = machine(make).fit(X, Y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = machine(make).set_fit_request(sample_weight=True)
        if hasattr(routed, "set_score_request"):
            routed.set_score_request(sample_weight=False)
        scale = StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scale, routed).fit(X, Y, sample_weight=weight)
        search = GridSearchCV(routed, {"max_time": [None, 60.0]}, cv=2, scoring=lambda model, A, b: 0.0)
        search.fit(X, Y, sample_weight=weight)
    for other in (pipeline[-1], search.best_estimator_):
        if make is BudgetSVC:  # random_state=None
            continue
        np.testing.assert_array_equal(other.predict(X), alone.predict(X))


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_through_a_pipeline(make, library) -> None:
    polars = pytest.importorskip("polars") if library == "polars" else None
    if polars and parse_version(sklearn.__version__) < parse_version("1.7"):
        pytest.skip("scikit-learn 1.6 does not see the names of the newest polars' columns")
    names = ["one", "two", "three", "four"]
    frame = pd.DataFrame(X, columns=names) if polars is None else polars.DataFrame(X, schema=names)
    labels = pd.Series(Y) if polars is None else polars.Series(Y)
    model = make_pipeline(StandardScaler().set_output(transform=library), machine(make)).fit(frame, labels)
    assert list(model[-1].feature_names_in_) == names and model[-1].n_features_in_ == 4
    scaled = np.ascontiguousarray(model[0].transform(frame).to_numpy())
    if make is not BudgetSVC:
        np.testing.assert_array_equal(model.predict(frame), clone(model[-1]).fit(scaled, Y).predict(scaled))
    other = frame.rename(columns={"one": "else"}) if polars is None else frame.rename({"one": "else"})
    with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
        model[-1].predict(other)


class Wrapped:
    """What NumPy can make an array of, and nothing else: tensors of other libraries."""

    def __init__(self, values) -> None:
        self.values, self.shape = values, values.shape

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __len__(self) -> int:
        return len(self.values)


@pytest.mark.parametrize("make", ALL)
def test_what_numpy_can_make_an_array_of(make) -> None:
    model = machine(make).set_params(**({"random_state": 0} if "random_state" in make().get_params() else {}))
    weight = np.ones(len(Y))
    wrapped = clone(model).fit(Wrapped(X), Wrapped(Y), sample_weight=Wrapped(weight)).predict(Wrapped(X))
    np.testing.assert_array_equal(wrapped, model.fit(X, Y, sample_weight=weight).predict(X))


@pytest.mark.parametrize("make", ALL)
def test_tags_and_html(make) -> None:
    model = machine(make)
    tags = get_tags(model)
    regressors = (SVR, NuSVR, DCSVR, LinearSVR)
    kind = "regressor" if make in regressors else "outlier_detector" if make is OneClassSVM else "classifier"
    assert tags.estimator_type == kind and tags.input_tags.sparse
    assert tags.target_tags.required == (kind != "outlier_detector")
    if make in KERNEL:
        given = get_tags(model.set_params(kernel="precomputed"))
        assert given.input_tags.pairwise and not given.input_tags.sparse
    assert make.__name__ in model._repr_html_()


def test_the_kernel_machines_have_all_parameters_of_scikit_learn() -> None:
    import sklearn.svm as theirs

    for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"):
        ours = getattr(maxmargin, name)().get_params()
        missing = set(getattr(theirs, name)().get_params()) - set(ours)
        assert not missing
        changed = {k for k, v in getattr(theirs, name)().get_params().items() if ours[k] != v}
        assert changed <= {"probability"}  # False before scikit-learn 1.9


@pytest.mark.parametrize("make", ALL)
def test_arrays_of_other_libraries_become_numpys(make) -> None:
    xp = pytest.importorskip("array_api_strict")
    params = {"random_state": 0} if make is BudgetSVC else {}
    here = machine(make, **params).fit(X, Y)
    there = machine(make, **params).fit(xp.asarray(X), xp.asarray(Y), sample_weight=xp.ones(len(Y)))
    said = there.predict(xp.asarray(X))
    assert type(said) is np.ndarray
    np.testing.assert_array_equal(said, here.predict(X))


DISPATCHED = """
import array_api_strict as xp, numpy as np, sklearn, maxmargin
from sklearn.datasets import make_classification
X, y = make_classification(60, 4, random_state=0)
with sklearn.config_context(array_api_dispatch=True):
    for name, make in maxmargin.all_estimators():
        model = make().fit(xp.asarray(X), xp.asarray(y))
        assert type(model.predict(xp.asarray(X))) is np.ndarray, name
print("done")
"""


def test_nothing_is_dispatched_where_scikit_learn_is_told_to() -> None:
    """Its own SVMs fail there; the switch needs SciPy's, which is read once per process."""
    pytest.importorskip("array_api_strict")
    if parse_version(sklearn.__version__) < parse_version("1.7"):
        pytest.importorskip("array_api_compat")  # which later ones bring along
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", DISPATCHED], capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 0 and done.stdout.strip() == "done", done.stderr


def test_all_estimators_are_listed() -> None:
    listed = dict(maxmargin.all_estimators())
    assert set(listed.values()) >= set(ALL) and all(getattr(maxmargin, name) is make for name, make in listed.items())
    kinds = {kind: {name for name, _ in maxmargin.all_estimators(kind)} for kind in ("classifier", "regressor")}
    assert "SVC" in kinds["classifier"] and "SVR" in kinds["regressor"] and not kinds["classifier"] & kinds["regressor"]
    assert {name for name, _ in maxmargin.all_estimators(["classifier", "regressor"])} == set.union(*kinds.values())
    with pytest.raises(ValueError, match="there is no 'transformer' here; choose from classifier, regressor"):
        maxmargin.all_estimators("transformer")
