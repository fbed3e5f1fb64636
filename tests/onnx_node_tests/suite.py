"""The node tests of ONNX's own backend suite whose inputs and outputs are integers or bools of at most 32 bits."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from hwflow.api.compiler import compile
from hwflow.errors import HwflowError
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.loaded_model import Model, load
from hwflow.verify import golden
from tests.onnx_node_tests.cases import node_cases
from tests.onnx_node_tests.top_simulation import SimulatedTop

Array = npt.NDArray[Any]

_TYPES = {
    TensorProto.BOOL, TensorProto.INT4, TensorProto.UINT4, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16,
    TensorProto.UINT16, TensorProto.INT32, TensorProto.UINT32,
}  # fmt: skip

# Which inputs are weights and parameters, which a compiler binds as constants.
_PARAMETERS: Mapping[str, tuple[int, ...]] = {
    "CastLike": (1,), "Clip": (1, 2), "ConvInteger": (1, 2, 3), "CumProd": (1,), "CumSum": (1,),
    "DequantizeLinear": (1, 2), "Expand": (1,), "Gather": (1,), "GatherND": (1,), "MatMulInteger": (2, 3),
    "OneHot": (1, 2),
    "Pad": (1, 2, 3),
    "Pow": (1,), "QLinearConv": (1, 2, 3, 4, 5, 6, 7, 8), "QLinearMatMul": (1, 2, 4, 5, 6, 7),
    "QuantizeLinear": (1, 2),
    "ReduceMax": (1,), "ReduceMin": (1,), "ReduceSum": (1,), "Reshape": (1,), "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,), "Tile": (1,), "TopK": (1,), "Trilu": (1,),
    "Unsqueeze": (1,),
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
    found = (_bound(case) for case in node_cases() if _qualifies(case))
    return tuple(sorted(found, key=lambda test: test.name))


def narrowed(operator: str) -> tuple[NodeTest, ...]:
    """The tests of an operator alone that do not qualify, in types that do: integers of 64 bits as such of 32, floats
    as reals between a DequantizeLinear and a QuantizeLinear. Those without elements are left out."""
    found = []
    for case in node_cases():
        if {node.op_type for node in case.model.graph.node} == {operator} and not _qualifies(case):
            bound = _bound(case)
            if bound.inputs and all(array.size for array in bound.inputs.values()):
                found.append(_narrow(bound))
    return tuple(sorted(found, key=lambda test: test.name))


_SCALE, _ZERO_IN, _ZERO_OUT = 0.5, 3, -2  # of the reals of narrowed tests, which are multiples of it


def _narrow(test: NodeTest) -> NodeTest:
    """See :func:`narrowed`."""
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    graph = model.graph
    model.ir_version = max(model.ir_version, 10)
    model.opset_import[0].version = max(model.opset_import[0].version, 21)
    del graph.value_info[:]
    (node,) = graph.node
    arrays: list[dict[str, Array]] = []
    for infos, given, zero in ((graph.input, test.inputs, _ZERO_IN), (graph.output, test.expected, _ZERO_OUT)):
        changed: dict[str, Array] = {}
        for info in infos:
            kind, array = info.type.tensor_type, given[info.name]
            if kind.elem_type == TensorProto.INT64:
                kind.elem_type, array = TensorProto.INT32, array.astype(np.int32)
            elif kind.elem_type not in _TYPES:
                array = (array.astype(np.float64) / _SCALE + zero).astype(np.int16)
                if given is test.inputs and np.abs(array).max() < 128:
                    array = array.astype(np.int8)
                kind.elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
                for name, value in (("scale", np.float32(_SCALE)), ("zero", array.dtype.type(zero))):
                    graph.initializer.append(numpy_helper.from_array(value, f"{info.name}_{name}"))
                parameters = [f"{info.name}_scale", f"{info.name}_zero"]
                real = f"{info.name}_real"
                if given is test.inputs:
                    graph.node.insert(0, helper.make_node("DequantizeLinear", [info.name, *parameters], [real]))
                    names = node.input
                else:
                    graph.node.append(helper.make_node("QuantizeLinear", [real, *parameters], [info.name]))
                    names = node.output
                names[list(names).index(info.name)] = real
            changed[info.name] = array
        arrays.append(changed)
    return NodeTest(test.name, model, *arrays)


def _qualifies(case: Any) -> bool:
    graph = case.model.graph
    read = {name for node in graph.node for name in node.input}
    parameters = _parameters(graph)
    left = [info for info in graph.input if info.name in read - parameters]
    values = [info.type for info in (*left, *graph.output)]
    return bool(left) and all(v.HasField("tensor_type") and v.tensor_type.elem_type in _TYPES for v in values)


def _parameters(graph: onnx.GraphProto) -> set[str]:
    """The names of weights and parameters."""
    return {
        node.input[place]
        for node in graph.node for place in _PARAMETERS.get(node.op_type, ()) if place < len(node.input)
    }


def _bound(case: Any) -> NodeTest:
    """A test with its parameters bound."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    read = {name for node in graph.node for name in node.input}
    parameters = _parameters(graph)
    given, expected = ([as_array(value) for value in values] for values in case.data_sets[0])
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


def as_array(value: Any) -> Array:
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
    top = SimulatedTop(design.schedule.plan)
    for gap, stall in ((0.0, 0.0), (0.3, 0.3)):
        found = top.run(integers, gap=gap, stall=stall)
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
