"""Node tests of ONNX's own backend suite on floats, in RTL: quantizers stand around what is a float, and inputs of 64
bits (places, shapes) are constants, as a compiler must have them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from hwflow.api.compiler import compile
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.loaded_model import load
from hwflow.verify import golden
from tests.onnx_node_tests.cases import node_cases
from tests.onnx_node_tests.top_simulation import SimulatedTop

Array = npt.NDArray[Any]


def node_tests_of(op_type: str) -> list[str]:
    """The names of the tests of a single node of that type."""
    return sorted(c.name for c in node_cases() if [node.op_type for node in c.model.graph.node] == [op_type])


def passes_in_rtl(
    name: str, folder: Path, constants: Collection[str] | None = None, *, bits: int = 16
) -> None:
    """Golden model and hardware (at full rate, and with gaps and stalls) equal the reference evaluator bit for bit, and
    what the node test expects but for what its quantizers of 8 bits lose (nothing, where its numbers are few).
    ``constants``: the inputs that are constants; None: those of 64 bits. ``bits``: of the results, 8 or 16."""
    path, inputs, expected, finest = quantized_node(name, folder, constants, bits)
    model = onnx.load(path)
    wanted = ReferenceEvaluator(model).run(None, inputs)
    for each, of_floats, off in zip(wanted, expected, finest, strict=True):
        np.testing.assert_allclose(each, of_floats.astype(each.dtype), atol=off, rtol=0)
    design = compile(load(path), "ulx3s_85f", fps=1)
    loaded = design.model
    arrays = {n: a.reshape(-1, *loaded.resolved.values[n].shape[1:]) for n, a in inputs.items()}
    integers = port_inputs(loaded, arrays)
    results = [golden.evaluate(loaded.quantized, integers)]
    top = SimulatedTop(design.schedule.plan)
    results += [top.run(integers, gap=gap, stall=gap) for gap in (0.0, 0.3)]
    for result in results:
        for found, each in zip(model_outputs(loaded, result, arrays).values(), wanted, strict=True):
            np.testing.assert_array_equal(found.reshape(each.shape), each)


def quantized_node(
    name: str, folder: Path, constants: Collection[str] | None, bits: int
) -> tuple[Path, dict[str, Array], list[Array], list[float]]:
    """Write a node test with quantizers around its node. Return the file, what is fed, what the node test expects, and
    how far each result may be from that."""
    (case,) = (c for c in node_cases() if c.name == name)
    given, expected = ([np.asarray(_array(v)) for v in values] for values in case.data_sets[0])
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    inputs = _bound(model, given, constants)
    finest = _quantized(model, inputs, expected, bits)
    (folder / name).mkdir(exist_ok=True)
    path = folder / name / "model.onnx"
    onnx.save(model, path)
    return path, inputs, expected, finest


def _bound(model: onnx.ModelProto, given: list[Array], constants: Collection[str] | None) -> dict[str, Array]:
    """What is fed; the others become constants."""
    inputs = {}
    for info, array in zip(list(model.graph.input), given, strict=True):
        if array.dtype == np.int64 if constants is None else info.name in constants:
            model.graph.initializer.append(numpy_helper.from_array(array, info.name))
            model.graph.input.remove(info)
        elif array.dtype.kind in "iub":
            inputs[info.name] = array
        else:
            info.type.tensor_type.elem_type = TensorProto.FLOAT
            inputs[info.name] = array.astype(np.float32)
    return inputs


def _quantized(
    model: onnx.ModelProto, inputs: dict[str, Array], expected: list[Array], bits: int
) -> list[float]:
    """Put quantizers around the node; how far each result may be from that of floats."""
    graph = model.graph
    (node,) = graph.node
    del graph.node[:]
    lost = 0.0
    for name, array in inputs.items():
        if array.dtype == np.float32:
            scale = _scale(array)
            graph.node.extend(_pair(model, name, f"{name}_real", scale, TensorProto.INT8))
            lost += scale / 2 * (np.round(array / scale) * scale != array).any()
            node.input[list(node.input).index(name)] = f"{name}_real"
    graph.node.append(node)
    most = max(float(np.abs(a).max(initial=0)) for a in inputs.values())
    terms = max(a.size for a in inputs.values())
    finest = []
    for output, array in zip(graph.output, expected, strict=True):
        if array.dtype.kind in "iub":
            finest.append(0.0)
            continue
        output.type.tensor_type.elem_type = TensorProto.FLOAT
        scale = _scale(array, bits=bits)
        result = f"{output.name}_quantized"
        kind = TensorProto.INT16 if bits == 16 else TensorProto.INT8
        graph.node.extend(_pair(model, output.name, result, scale, kind))
        output.name = result
        finest.append(
            lost * max(1.0, most) * terms * 2 + scale / 2 * (np.round(array / scale) * scale != array).any()
        )
        for opset in model.opset_import:
            opset.version = max(opset.version, 22)  # which has quantizers of 16 bits
        model.ir_version = max(model.ir_version, 10)
    return finest


def _scale(array: Array, bits: int = 8) -> float:
    """A power of two, with which no number is too large; 1 where whole numbers fit."""
    most = float(np.abs(array.astype(np.float64)).max(initial=0)) or 1.0
    finest: float = 2.0 ** np.ceil(np.log2(most / ((1 << (bits - 1)) - 1)))
    return max(finest, 1.0) if (array == np.round(array)).all() else finest


def _pair(model: onnx.ModelProto, name: str, result: str, scale: float, kind: int) -> Iterator[onnx.NodeProto]:
    parameters = [f"{name}_scale", f"{name}_zero"]
    model.graph.initializer.append(numpy_helper.from_array(np.float32(scale), parameters[0]))
    zero = np.zeros((), helper.tensor_dtype_to_np_dtype(kind))
    model.graph.initializer.append(numpy_helper.from_array(zero, parameters[1]))
    yield helper.make_node("QuantizeLinear", [name, *parameters], [f"{name}_levels"])
    yield helper.make_node("DequantizeLinear", [f"{name}_levels", *parameters], [result])


def _array(value: Any) -> Array:
    """The suite has tensors of types that numpy lacks as protobuf messages."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def with_values(name: str) -> tuple[onnx.ModelProto, list[Array]]:
    """A node test's model, and what it is fed."""
    (case,) = (c for c in node_cases() if c.name == name)
    return case.model, [np.asarray(_array(v)) for v in case.data_sets[0][0]]
