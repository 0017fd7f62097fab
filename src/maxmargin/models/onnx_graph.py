"""Fitted machines as graphs of plain ONNX operators in float64.

ONNX has operators for support vector machines, but they work in float32 and know neither all kernels nor our machines.
So every machine is spelled out in matrix products, sums and exponentials:

    kernel values K (n × s), n rows and s support vectors  →  decision values (n × p)  →  scores, votes, labels

A point of an early divide-and-conquer model is routed by the same centres as in training; all kernel values are computed,
and those of other clusters left out.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.divide.clustering import Centers
from maxmargin.divide.early import Router
from maxmargin.estimators._divided import Divided
from maxmargin.estimators.budget import BudgetSVC
from maxmargin.estimators.linear import LinearSVC, LinearSVR
from maxmargin.estimators.oneclass import OneClassSVM
from maxmargin.problem.kernels import Kernel

FloatArray = NDArray[np.float64]

LARGEST = 2**31 - 1  # bytes of a protobuf message, and so of an ONNX model


class Graph(Protocol):
    """Where operators and constants go; both return the name of their result."""

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str: ...

    def constant(self, value: Any) -> str: ...


def outputs_of(model: Any, g: Graph, x: str) -> dict[str, str]:
    """The graph of a fitted machine on x (n × d, float64): names of its results by what they are.

    label and scores (as decision_function gives them) of a classifier or outlier detector, prediction of a regressor.
    """
    values = _decisions(model, g, x)
    if hasattr(model, "classes_"):
        winner, scores = _classified(model, g, values)
        return {"label": g.op("Gather", g.constant(labels_of(model)), winner), "scores": scores}
    values = g.op("Reshape", values, g.constant(np.array([-1])))
    if not isinstance(model, OneClassSVM):
        return {"prediction": values}
    inside = g.op("GreaterOrEqual", values, g.constant(0.0))
    return {"label": g.op("Where", inside, g.constant(np.int64(1)), g.constant(np.int64(-1))), "scores": values}


def labels_of(model: Any) -> NDArray[Any]:
    """The classes as ONNX has them: int64, float64 or strings; what is returned for an outlier detector is its ±1."""
    classes = np.asarray(getattr(model, "classes_", np.array([-1, 1])))
    if classes.dtype.kind in "biu" and not (classes.dtype.kind == "u" and classes.max() >= 2**63):
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object)
    raise ValueError(f"classes {classes.tolist()!r:.60} cannot be labels in ONNX: use numbers or strings")


# ---- from decision values to classes ---------------------------------------------------------------------------------


def _classified(model: Any, g: Graph, values: str) -> tuple[str, str]:
    """(number of the class, scores) of each row, from decision values (n × problems)."""
    n_classes = len(model.classes_)
    if n_classes == 2:
        flat = g.op("Reshape", values, g.constant(np.array([-1])))
        return g.op("Cast", g.op("Greater", flat, g.constant(0.0)), to=7), flat  # 7: int64
    if isinstance(model, (LinearSVC, BudgetSVC)) or (isinstance(model, Divided) and len(model._dual) == n_classes):
        return g.op("ArgMax", values, axis=1, keepdims=0), values  # one against the rest
    votes, score_votes, sums = _votes(g, values, n_classes)
    squeezed = g.op("Mul", g.constant(3.0), g.op("Add", g.op("Abs", sums), g.constant(1.0)))
    ordered = g.op("Add", votes if isinstance(model, Divided) else score_votes, g.op("Div", sums, squeezed))
    scores = ordered if model.decision_function_shape == "ovr" else values
    ranked = ordered if model.break_ties else votes
    order = model._vote_order
    if order is None:
        return g.op("ArgMax", ranked, axis=1, keepdims=0), scores
    places = g.constant(order.astype(np.int64))
    first = g.op("ArgMax", g.op("Gather", ranked, places, axis=1), axis=1, keepdims=0)
    return g.op("Gather", places, first), scores


def _votes(g: Graph, pair: str, n_classes: int) -> tuple[str, str, str]:
    """Votes, votes in scores, and summed decisions per class: pair (i, j) is for i when positive, 0 as in multiclass.py."""
    first = np.zeros((n_classes * (n_classes - 1) // 2, n_classes))
    second = np.zeros_like(first)
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        first[k, i] = second[k, j] = 1.0
    votes = []
    for compare in ("Greater", "GreaterOrEqual"):
        positive = g.op("Cast", g.op(compare, pair, g.constant(0.0)), to=11)  # 11: double
        won = g.op("MatMul", positive, g.constant(first - second))
        votes.append(g.op("Add", won, g.constant(second.sum(axis=0))))
    return votes[0], votes[1], g.op("MatMul", pair, g.constant(first - second))


# ---- decision values -------------------------------------------------------------------------------------------------


def _decisions(model: Any, g: Graph, x: str) -> str:
    """Decision values (n × problems)."""
    if isinstance(model, (LinearSVC, LinearSVR)):
        return g.op("Add", g.op("MatMul", x, g.constant(np.atleast_2d(model.coef_).T)), g.constant(model.intercept_))
    if isinstance(model, BudgetSVC):
        values = kernel_values(g, x, model.support_vectors_, Kernel("rbf", float(model.gamma_)))
        return _affine(g, values, model.dual_coef_, model.intercept_)
    coef = model._pair_coef() if hasattr(model, "classes_") else model._dual
    kernel: Kernel = model._fitted_kernel
    if kernel.name == "precomputed":
        values = g.op("Gather", x, g.constant(model.support_.astype(np.int64)), axis=1)
    else:
        values = kernel_values(g, x, model.support_vectors_, kernel)
    if not isinstance(model, Divided) or model.predict_with == "all" or model._committee.router is None:
        return _affine(g, values, coef, model.intercept_)
    return _early(model, g, x, values, coef) if model.predict_with == "early" else _bcm(model, g, values, coef)


def _affine(g: Graph, values: str, coef: FloatArray, intercept: FloatArray) -> str:
    """Σ_i coef[p, i] K_i + intercept[p]"""
    return g.op("Add", g.op("MatMul", values, g.constant(coef.T)), g.constant(intercept))


def kernel_values(g: Graph, x: str, vectors: Any, kernel: Kernel) -> str:
    """K(x, vectors), n × s."""
    if vectors.shape[0] * vectors.shape[1] * 8 > LARGEST:
        raise ValueError(
            f"{vectors.shape[0]} vectors of {vectors.shape[1]} features are more than the 2 GB that an ONNX model may have: "
            "select features first, or use maxmargin.save"
        )
    v = np.asarray(vectors.todense() if sp.issparse(vectors) else vectors, np.float64)
    if kernel.name == "laplacian":
        return g.op("Exp", g.op("Mul", _city_block(g, x, v), g.constant(-kernel.gamma)))
    if kernel.name == "rbf":
        return g.op("Exp", g.op("Mul", _squares(g, x, v), g.constant(-kernel.gamma)))
    if kernel.name == "linear":
        return g.op("MatMul", x, g.constant(v.T))
    if kernel.name not in ("poly", "sigmoid"):
        raise ValueError(f"a kernel that is a function ({kernel.name}) cannot be written as ONNX: use a kernel by name")
    # γ goes into the vectors: onnxruntime would fuse a product and a scalar factor, and keep the factor in float32
    scaled = g.op("Add", g.op("MatMul", x, g.constant(kernel.gamma * v.T)), g.constant(kernel.coef0))
    return g.op("Pow", scaled, g.constant(float(kernel.degree))) if kernel.name == "poly" else g.op("Tanh", scaled)


def _squares(g: Graph, x: str, v: FloatArray) -> str:
    """|x − v|² by |x|² + |v|² − 2xv, around the mean of the vectors, where little is lost to rounding."""
    mean = v.mean(axis=0) if len(v) else np.zeros(v.shape[1])
    v = v - mean
    x = g.op("Sub", x, g.constant(mean))
    own = g.op("ReduceSum", g.op("Mul", x, x), g.constant(np.array([1])), keepdims=1)
    cross = g.op("MatMul", x, g.constant(-2.0 * v.T))
    squares = g.op("Add", g.op("Add", cross, own), g.constant((v * v).sum(axis=1)))
    return g.op("Max", squares, g.constant(0.0))


def _city_block(g: Graph, x: str, v: FloatArray) -> str:
    """Σ_f |x_f − v_f|, feature by feature: n × s numbers at a time, not n × s × d."""
    from onnx import TensorProto, helper

    d, s = v.shape[1], v.shape[0]
    count = g.op("Slice", g.op("Shape", x), g.constant(np.array([0])), g.constant(np.array([1])))
    zero = helper.make_tensor("zero", TensorProto.DOUBLE, [1], [0.0])
    begin = g.op("ConstantOfShape", g.op("Concat", count, g.constant(np.array([s])), axis=0), value=zero)
    columns = g.op("Reshape", g.op("Transpose", x, perm=[1, 0]), g.constant(np.array([d, -1, 1])))
    body = helper.make_graph(
        [
            helper.make_node("Sub", ["x_f", "v_f"], ["difference"]),
            helper.make_node("Abs", ["difference"], ["distance"]),
            helper.make_node("Add", ["sum_before", "distance"], ["sum_after"]),
        ],
        "city_block",
        [
            helper.make_tensor_value_info("sum_before", TensorProto.DOUBLE, [None, s]),
            helper.make_tensor_value_info("x_f", TensorProto.DOUBLE, [None, 1]),
            helper.make_tensor_value_info("v_f", TensorProto.DOUBLE, [1, s]),
        ],
        [helper.make_tensor_value_info("sum_after", TensorProto.DOUBLE, [None, s])],
    )
    return g.op("Scan", begin, columns, g.constant(v.T.reshape(d, 1, s)), body=body, num_scan_inputs=2)


# ---- divide and conquer ----------------------------------------------------------------------------------------------


def _early(model: Any, g: Graph, x: str, values: str, coef: FloatArray) -> str:
    """Each point by the machine of its own cluster, or by that cluster's constant."""
    committee = model._committee
    cluster = _cluster(g, x, committee.router)
    column = g.op("Reshape", cluster, g.constant(np.array([-1, 1])))
    mine = g.op("Equal", column, g.constant(committee.cluster.astype(np.int64)[None, :]))
    values = g.op("Where", mine, values, g.constant(0.0))
    intercept = g.op("Gather", g.constant(committee.intercept), cluster)
    asked = g.op("Add", g.op("MatMul", values, g.constant(coef.T)), intercept)
    missing = np.isnan(committee.constant)
    ask = g.op("Cast", g.op("Gather", g.constant(missing.astype(np.int64)), cluster), to=9)  # 9: bool
    return g.op("Where", ask, asked, g.op("Gather", g.constant(np.where(missing, 0.0, committee.constant)), cluster))


def _bcm(model: Any, g: Graph, values: str, coef: FloatArray) -> str:
    """Σ_c trust_c f_c is one expansion more, with each coefficient times the trust in its cluster."""
    committee = model._committee
    trust, prior = committee.trust, committee.prior
    if committee.regression:
        trust, prior = trust / (trust.sum(axis=0) - (len(trust) - 1) * prior), np.zeros_like(prior)
    weighted = coef * trust[committee.cluster].T
    return _affine(g, values, weighted, (trust * committee.intercept).sum(axis=0) + prior)


def _cluster(g: Graph, x: str, router: Router) -> str:
    """The number of each point's cluster."""
    if router.kernel.name == "precomputed":
        values = g.op("Gather", x, g.constant(router.columns.astype(np.int64)), axis=1)
    else:
        values = kernel_values(g, x, router.vectors, router.kernel)
    return _nearest(g, values, router.centers, len(router.columns))


def _nearest(g: Graph, values: str, centers: Centers, m: int) -> str:
    """argmin offset − 2 · mean kernel value with a centre's sampled points; clusters that were split ask their child."""
    size = np.diff(centers.end, prepend=0)
    mean = np.zeros((m, len(size)))
    np.add.at(mean, (centers.rows, np.repeat(np.arange(len(size)), size)), np.repeat(-2.0 / size, size))
    distance = g.op("Add", g.op("MatMul", values, g.constant(mean)), g.constant(centers.offset))
    at = g.op("ArgMin", distance, axis=1, keepdims=0)
    out = g.op("Gather", g.constant(centers.number.astype(np.int64)), at)
    for c, child in centers.children.items():
        here = g.op("Equal", at, g.constant(np.int64(c)))
        out = g.op("Where", here, _nearest(g, values, child, m), out)
    return out
