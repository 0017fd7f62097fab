"""Fitted machines as ONNX models, alone or inside a scikit-learn pipeline (skl2onnx)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators._base import VERSION, check_number
from maxmargin.models.onnx_graph import LARGEST, labels_of, outputs_of
from maxmargin.models.schema import MACHINES

OPSET = 17  # onnxruntime 1.12 (2022) and later
OLDEST_OPSET = 13  # ReduceSum takes its axes as an input from there on
IR_VERSION = 8  # that of opset 17


class _Plain:
    """Nodes and constants of a model of its own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(_tensor(value, name))
        return name


def _tensor(value: Any, name: str) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name)


def to_onnx(model: Any, *, opset: int = OPSET) -> Any:
    """A fitted machine as an ONNX model, for onnxruntime and other engines without Python or maxmargin.

    It is made of plain operators in float64, for every machine and every kernel that has a name, and answers as the
    machine does up to rounding (docs/models.md). Needs the package onnx: `pip install maxmargin[onnx]`.

    Parameters
    ----------
    model : a fitted machine of maxmargin
    opset : int, default=17
        Version of ONNX's operators, from 13 on.

    Returns
    -------
    onnx.ModelProto
        Input "X", rows of float64. Outputs "label" and "scores" (as predict and decision_function give them) of a
        classifier or OneClassSVM, "prediction" of a regressor.

    Examples
    --------
    >>> from maxmargin import SVC, to_onnx
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> onnx_model = to_onnx(SVC(C=10).fit(X, y))
    >>> [output.name for output in onnx_model.graph.output]
    ['label', 'scores']
    """
    try:
        from onnx import TensorProto, checker, helper
    except ImportError:
        raise ImportError("to_onnx needs the package onnx: pip install 'maxmargin[onnx]'") from None
    _check(model, opset)
    graph = _Plain()
    results = outputs_of(model, graph, "X")
    outputs = []
    for name, result in results.items():
        graph.nodes.append(helper.make_node("Identity", [result], [name]))
        kind = _label_type(model) if name == "label" else TensorProto.DOUBLE
        outputs.append(helper.make_tensor_value_info(name, kind, _shape(model, name)))
    inputs = [helper.make_tensor_value_info("X", TensorProto.DOUBLE, [None, model.n_features_in_])]
    whole = helper.make_graph(graph.nodes, type(model).__name__, inputs, outputs, graph.constants)
    made = helper.make_model(
        whole, opset_imports=[helper.make_opsetid("", opset)], producer_name="maxmargin", producer_version=VERSION
    )
    made.ir_version = IR_VERSION
    if made.ByteSize() > LARGEST:
        raise ValueError("the model takes more than the 2 GB that an ONNX model may have: use maxmargin.save")
    checker.check_model(made, full_check=True)
    return made


def _check(model: Any, opset: int) -> None:
    kinds = tuple(machine.kind for machine in MACHINES.values())
    if not isinstance(model, kinds):
        names = ", ".join(MACHINES)
        raise ValueError(
            f"{type(model).__name__} is not a machine of maxmargin ({names}): for a pipeline, call "
            "maxmargin.models.onnx.register_skl2onnx() and skl2onnx.to_onnx"
        )
    check_is_fitted(model)
    check_number("opset", opset, low=OLDEST_OPSET, high=1000, closed="left", integer=True, remedy="17 is usual")


def _label_type(model: Any) -> int:
    from onnx import TensorProto

    kinds = {"i": TensorProto.INT64, "f": TensorProto.DOUBLE, "O": TensorProto.STRING}
    return int(kinds[labels_of(model).dtype.kind])


def _shape(model: Any, name: str) -> list[int | None]:
    """Shape of an output, rows unknown."""
    n_classes = len(getattr(model, "classes_", ()))
    if name != "scores" or n_classes <= 2:
        return [None]
    pairs = getattr(model, "decision_function_shape", "ovr") == "ovo" and len(model.intercept_) != n_classes
    return [None, n_classes * (n_classes - 1) // 2 if pairs else n_classes]


# ---- inside skl2onnx -------------------------------------------------------------------------------------------------


class _Inside:
    """Nodes and constants as part of what skl2onnx converts."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = str(self.scope.get_unique_variable_name(f"maxmargin_{kind.lower()}"))
        self.container.add_node(
            kind, list(inputs), [name], name=self.scope.get_unique_operator_name(f"maxmargin_{kind}"),
            op_version=self.container.target_opset, **attributes,
        )  # fmt: skip
        return name

    def constant(self, value: Any) -> str:
        name = str(self.scope.get_unique_variable_name("maxmargin_constant"))
        tensor = _tensor(value, name)
        strings = list(tensor.string_data)
        self.container.add_initializer(name, tensor.data_type, list(tensor.dims), strings or tensor)
        return name


def register_skl2onnx() -> None:
    """Teach skl2onnx our machines, so that `convert_sklearn` and `to_onnx` of it take pipelines that end in one.

    Scores are those of decision_function, not probabilities; they have the type of the pipeline's input. Inside, all is
    float64: for answers equal to the pipeline's own give DoubleTensorType inputs.
    """
    from skl2onnx import update_registered_converter

    for name, machine in MACHINES.items():
        update_registered_converter(
            machine.kind, f"Maxmargin{name}", _output_types, _convert, parser=_parse, options={"zipmap": [False, True]}
        )


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    from skl2onnx._supported_operators import _get_sklearn_operator_name

    operator = scope.declare_local_operator(_get_sklearn_operator_name(type(model)), model)
    operator.inputs = inputs
    names = ["label", "scores"] if hasattr(model, "classes_") or hasattr(model, "offset_") else ["variable"]
    for name in names:
        operator.outputs.append(scope.declare_local_variable(name, _score_type(inputs[0].type, [None])))
    return operator.outputs


def _score_type(given: Any, shape: Any) -> Any:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    return (DoubleTensorType if isinstance(given, DoubleTensorType) else FloatTensorType)(shape)


def _output_types(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    model, outputs = operator.raw_operator, operator.outputs
    score = outputs[-1]
    score.type = _score_type(operator.inputs[0].type, _shape(model, "scores" if len(outputs) == 2 else "prediction"))
    if len(outputs) == 2:
        kinds = {"i": Int64TensorType, "f": DoubleTensorType, "O": StringTensorType}
        outputs[0].type = kinds[labels_of(model).dtype.kind]([None])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    _check(model, container.target_opset)
    graph = _Inside(scope, container)
    columns = [graph.op("Cast", given.full_name, to=11) for given in operator.inputs]  # 11: double
    x = columns[0] if len(columns) == 1 else graph.op("Concat", *columns, axis=1)
    for variable, result in zip(operator.outputs, outputs_of(model, graph, x).values()):
        kind = variable.type.to_onnx_type().tensor_type.elem_type
        tag = "Identity" if kind == 8 else "Cast"  # 8: string
        container.add_node(
            tag, [result], [variable.full_name], name=scope.get_unique_operator_name("maxmargin_out"),
            op_version=container.target_opset, **({} if tag == "Identity" else {"to": kind}),
        )  # fmt: skip
