"""The node tests of ONNX's own backend suite whose inputs and outputs are integers or bools of at most 32 bits."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_node_model_tests

from hwflow.api.compiler import Model, compile, load
from hwflow.errors import HwflowError
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.verify import golden
from tests.onnx_node_tests.top_simulation import simulate_top

Array = npt.NDArray[Any]

_TYPES = {
    TensorProto.BOOL, TensorProto.INT4, TensorProto.UINT4, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16,
    TensorProto.UINT16, TensorProto.INT32, TensorProto.UINT32,
}  # fmt: skip

# Which inputs are weights and parameters, which a compiler binds as constants.
_PARAMETERS: Mapping[str, tuple[int, ...]] = {
    "CastLike": (1,), "Clip": (1, 2), "ConvInteger": (1, 2, 3), "CumProd": (1,), "CumSum": (1,),
    "DequantizeLinear": (1, 2), "Expand": (1,), "Gather": (1,), "MatMulInteger": (1, 2, 3), "Pad": (1, 2, 3),
    "Pow": (1,), "QLinearConv": (1, 2, 3, 4, 5, 6, 7, 8), "QLinearMatMul": (1, 2, 3, 4, 5, 6, 7),
    "QuantizeLinear": (1, 2),
    "ReduceMax": (1,), "ReduceMin": (1,), "ReduceSum": (1,), "Reshape": (1,), "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,), "Tile": (1,), "TopK": (1,), "Unsqueeze": (1,),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class NodeTest:
    """A model with its parameters bound, what goes in and what must come out."""

    name: str
    model: onnx.ModelProto
    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]

    @property
    def operators(self) -> str:
        return ", ".join(sorted({node.op_type for node in self.model.graph.node}))


@dataclass(frozen=True)
class Outcome:
    """``kind``: "RTL", "host" or "refused", that with the ``reason``."""

    kind: str
    reason: str = ""


@cache
def node_tests() -> tuple[NodeTest, ...]:
    """All of them that qualify, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite computes infinities and the like
        cases = load_node_model_tests()
    found = (_bound(case) for case in cases)
    return tuple(sorted((test for test in found if test is not None), key=lambda test: test.name))


def _bound(case: Any) -> NodeTest | None:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    read = {name for node in graph.node for name in node.input}
    parameters = {
        node.input[place]
        for node in graph.node for place in _PARAMETERS.get(node.op_type, ()) if place < len(node.input)
    }
    left = [info for info in graph.input if info.name in read - parameters]
    values = [info.type for info in (*left, *graph.output)]
    if not left or not all(v.HasField("tensor_type") and v.tensor_type.elem_type in _TYPES for v in values):
        return None
    given, expected = ([_array(value) for value in values] for values in case.data_sets[0])
    inputs: dict[str, Array] = {}
    for info, value in zip(list(graph.input), given, strict=True):
        if info.name in parameters:
            graph.initializer.append(numpy_helper.from_array(value, info.name))
        elif info.name in read:
            inputs[info.name] = value
        if info.name not in inputs:
            graph.input.remove(info)
    outputs = {info.name: value for info, value in zip(graph.output, expected, strict=True)}
    return NodeTest(case.name, model, inputs, outputs)


def _array(value: Any) -> Array:
    """The suite has tensors of types that numpy lacks as protobuf messages."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def run(test: NodeTest) -> Outcome:
    """Compile, and compare golden model and hardware with what is expected: AssertionError where they differ."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(test.model, path)
        try:
            model = load(path)
            integers = _golden(test, model)
        except HwflowError as refused:
            return Outcome("refused", _reason(refused))
    try:
        design = compile(model, "ulx3s_85f", fps=1)
    except HwflowError as refused:
        reason = _reason(refused)
        return Outcome("host", reason) if "not none" in reason else Outcome("refused", reason)
    graph = design.schedule.graph
    for gap, stall in ((0.0, 0.0), (0.3, 0.3)):
        found = simulate_top(graph, integers, gap=gap, stall=stall)
        _compare(test, model, model_outputs(model, found, _frames(test, model)))
    return Outcome("RTL")


def _golden(test: NodeTest, model: Model) -> dict[str, Array]:
    """The integers of the hardware's inputs, with which the golden model gives what is expected."""
    arrays = _frames(test, model)
    integers = port_inputs(model, arrays)
    _compare(test, model, model_outputs(model, golden.evaluate(model.quantized, integers), arrays))
    return integers


def _frames(test: NodeTest, model: Model) -> dict[str, Array]:
    """The inputs themselves where their first axis is frames; else one frame, with an axis in front."""
    return {name: a.reshape(-1, *model.resolved.values[name].shape[1:]) for name, a in test.inputs.items()}


def _compare(test: NodeTest, model: Model, found: Mapping[str, Array]) -> None:
    for name, expected in test.expected.items():
        result = found[name]
        assert result.dtype == expected.dtype, f"{name}: {result.dtype}, not {expected.dtype}"
        np.testing.assert_array_equal(result.reshape(expected.shape), expected, name)


def _reason(refused: HwflowError) -> str:
    return f"{refused.findings[0].where}: {refused.findings[0].message}"
