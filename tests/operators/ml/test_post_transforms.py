"""The transforms of scores: values worked by hand, and the formulas in plain Python."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined
from hwflow.onnxspec.resolving.resolved_model import ValueInfo
from hwflow.operators.ml import post_transforms


def run(transform: str, rows: list[list[float]], version: int = 20) -> np.ndarray:
    """The definition's result, in float64 so that formulas can be compared closely."""
    scores = np.array(rows)
    node = helper.make_node("Node", ["s"], ["t"])
    call = Call(node, version, [ValueInfo("s", scores.shape, "float64")], [None])
    body = DialectWriter(call)
    name = post_transforms.transformed(body, "input_0", transform, "float64")
    function = body.returned(name)
    onnx.checker.check_function(function)
    nodes = [*function.node, helper.make_node("Identity", [function.output[0]], ["t"])]
    types = [helper.make_tensor_value_info(n, onnx.TensorProto.DOUBLE, [*scores.shape]) for n in ("input_0", "t")]
    graph = helper.make_graph(nodes, "g", types[:1], types[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    onnx.checker.check_model(model, full_check=True)
    with np.errstate(divide="ignore"):  # the logarithm of 0
        (result,) = ReferenceEvaluator(model).run(None, {"input_0": scores})
    return np.asarray(result)


def test_hand_worked_values() -> None:
    assert run("NONE", [[1.0, -2.0]]).tolist() == [[1.0, -2.0]]
    assert run("LOGISTIC", [[0.0, math.log(3)]]) == pytest.approx(np.array([[0.5, 0.75]]))
    assert run("SOFTMAX", [[0.0, math.log(3)]]) == pytest.approx(np.array([[0.25, 0.75]]))
    # The zero stays zero, and the two others share.
    assert run("SOFTMAX_ZERO", [[0.0, math.log(3), math.log(9)]]) == pytest.approx(np.array([[0, 0.25, 0.75]]))
    assert run("SOFTMAX_ZERO", [[0.0, 0.0, 0.0]]).tolist() == [[0.5, 0.5, 0.5]]
    assert run("PROBIT", [[0.5]]) == pytest.approx(np.array([[0.0]]), abs=1e-7)
    assert run("PROBIT", [[0.0, 1.0]]).tolist() == [[-math.inf, math.inf]]


@pytest.mark.parametrize("version", [13, 18])
def test_softmax_zero_in_plain_python(version: int) -> None:
    rows = [[1e-8, -1.0, 2.0], [-3.0, 0.0, -1.0], [-1e-6, 0.0, 5e-8], [80.0, 0.0, 79.0]]
    for row, found in zip(rows, run("SOFTMAX_ZERO", rows, version), strict=True):
        top = max(row)
        weights = [math.exp(s - top) if abs(s) > 1e-7 else s * math.exp(-top) for s in row]
        assert found == pytest.approx([w / sum(weights) for w in weights], rel=1e-9)


def test_probit_is_the_inverse_of_the_normal_distribution() -> None:
    """Winitzki's approximation is off by less than 0.002 in the inverse error function's relative error."""
    shares = [0.001, 0.02, 0.3, 0.45, 0.6, 0.99, 0.9999]
    found = run("PROBIT", [shares])[0]
    assert found == pytest.approx([NormalDist().inv_cdf(p) for p in shares], rel=4e-3)


def test_unknown_transforms_are_undefined() -> None:
    with pytest.raises(Undefined, match="must be one of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT, not 'RELU'"):
        run("RELU", [[0.0]])
