"""Fold Loop and Scan over constants, with their bodies run by the ONNX reference evaluator.

A loop's cost cannot be seen from its size in the file. So only loops with a known number of steps and constant shapes
of all values are computed. The iteration is done here: the evaluator's own Loop (onnx 1.23.2) treats an absent
condition as false, and concatenates scan outputs along an existing axis.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, shape_inference

from hwflow.onnxspec.graphs.inline import graphs_of
from hwflow.onnxspec.graphs.operator_names import LOOP, SCAN
from hwflow.onnxspec.reading.numpy_tensors import DTYPE_NAMES, ELEMENT_TYPES, native, plain, to_tensor
from hwflow.onnxspec.resolving.resolved_model import Array, ValueInfo

_MAX_ELEMENTS = 1 << 22
"""The most elements that all steps together may compute."""

_MAX_DATA = 1024
_REARRANGED = ("scan_input_directions", "scan_output_directions", "scan_output_axes", "directions")
Shape = tuple[int, ...]


def _parameters(
    node: onnx.NodeProto, values: Mapping[str, ValueInfo], constants: Mapping[str, Array]
) -> tuple[int, list[tuple[Shape, str]], int] | None:
    """Return number of steps, shape and type of each input of the body, number of states; None if unknown."""
    infos = [values[name] if name else None for name in node.input]
    if node.op_type == LOOP:
        if len(infos) < 2 or not node.input[0] or constants[node.input[0]].size != 1:
            return None
        states = infos[2:]
        leading: list[tuple[Shape, str]] = [((), "int64"), ((), "bool")]
        if None in states:
            return None
        inputs = [*leading, *((info.shape, info.dtype) for info in states if info is not None)]
        return max(0, int(constants[node.input[0]].reshape(-1)[0])), inputs, len(states)
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type != SCAN or "num_scan_inputs" not in attributes or None in infos:
        return None
    scanned = attributes["num_scan_inputs"].i
    directions = [d for name in _REARRANGED if name in attributes for d in attributes[name].ints]
    if any(directions):
        return None
    states = infos[: len(infos) - scanned]
    axes = list(attributes["scan_input_axes"].ints) if "scan_input_axes" in attributes else [0] * scanned
    if not 0 < scanned <= len(infos) or len(axes) != scanned:
        return None
    inputs = [(info.shape, info.dtype) for info in states if info is not None]
    lengths = set()
    for info, axis in zip(infos[len(states) :], axes, strict=True):
        if info is None or not -len(info.shape) <= axis < len(info.shape):
            return None
        axis %= len(info.shape)
        lengths.add(info.shape[axis])
        inputs.append((info.shape[:axis] + info.shape[axis + 1 :], info.dtype))
    return (lengths.pop(), inputs, len(states)) if len(lengths) == 1 else None


def _elements(
    graph: onnx.GraphProto,
    inputs: list[tuple[Shape, str]],
    captured: list[tuple[ValueInfo, Array]],
    first_state: int,
    states: int,
    opsets: list[onnx.OperatorSetIdProto],
    ir_version: int,
) -> int | None:
    """Return the elements that one step computes; None if shapes may change between steps."""
    if len(graph.input) != len(inputs):
        return None

    def stated(name: str, shape: Shape, dtype: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, ELEMENT_TYPES[dtype], shape)

    body = onnx.GraphProto()
    body.CopyFrom(graph)
    del body.input[:], body.value_info[:]
    for output in body.output:
        output.ClearField("type")
    body.input.extend(stated(formal.name, *kind) for formal, kind in zip(graph.input, inputs, strict=True))
    for info, array in captured:
        if array.size <= _MAX_DATA:  # shapes and axes may depend on it
            body.initializer.append(to_tensor(info.name, array, info.dtype))
        else:
            body.input.append(stated(info.name, info.shape, info.dtype))
    model = helper.make_model(body, opset_imports=opsets, ir_version=ir_version)
    inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    shapes: dict[str, Shape] = {}
    for inner in (*inferred.input, *inferred.value_info, *inferred.output):
        kind = inner.type.tensor_type
        if not kind.HasField("shape") or not all(d.HasField("dim_value") for d in kind.shape.dim):
            return None
        shapes[inner.name] = tuple(d.dim_value for d in kind.shape.dim)
    shapes.update((tensor.name, tuple(tensor.dims)) for tensor in body.initializer)
    computed = [name for node in graph.node for name in node.output if name]
    if not all(name in shapes for name in [*computed, *(info.name for info in graph.output)]):
        return None
    first_output = 1 if first_state else 0  # a Loop's body reads the step and the condition, and computes the condition
    for number in range(states):
        if shapes[graph.output[first_output + number].name] != inputs[first_state + number][0]:
            return None
    return sum(math.prod(shapes[name]) for name in computed) + len(computed) + 1


def fold_loop(
    node: onnx.NodeProto,
    values: Mapping[str, ValueInfo],
    constants: Mapping[str, Array],
    opsets: list[onnx.OperatorSetIdProto],
    ir_version: int,
) -> dict[str, tuple[Array, str]] | None:
    """Return value and element type of each output of a Loop or Scan node of ai.onnx whose inputs and outer values are
    all constants; None for another node, or one that cannot be computed within limits.

    A step's cost is not bounded here: run this guarded."""
    if node.op_type not in (LOOP, SCAN) or not all(name in constants for name in node.input if name):
        return None
    graph = next((g for a in node.attribute if a.name == "body" for g in graphs_of(a)), None)
    if graph is None or any(n.domain not in ("", "ai.onnx") or any(map(graphs_of, n.attribute)) for n in graph.node):
        return None
    own = {name for n in graph.node for name in n.output}
    own.update(info.name for info in graph.input)
    own.update(tensor.name for tensor in graph.initializer)
    read = {name for n in graph.node for name in n.input if name}.union(info.name for info in graph.output)
    around = sorted(read - own)
    if not all(name in constants for name in around) or graph.sparse_initializer:
        return None
    try:
        parameters = _parameters(node, values, constants)
        if parameters is None:
            return None
        steps, inputs, states = parameters
        captured = [(values[name], constants[name]) for name in around]
        first_state = 2 if node.op_type == LOOP else 0
        elements = _elements(graph, inputs, captured, first_state, states, opsets, ir_version)
        if elements is None or steps * elements > _MAX_ELEMENTS:
            return None
        if steps == 0:
            return None  # without steps there are no shapes
        body = onnx.GraphProto()
        body.CopyFrom(graph)
        body.input.extend(onnx.ValueInfoProto(name=name) for name in around)
        model = helper.make_model(body, opset_imports=opsets, ir_version=ir_version)
        feeds = {name: native(constants[name], values[name].dtype) for name in around}
        given = [native(constants[name], values[name].dtype) if name else None for name in node.input]
        results = _run(node, model, [info.name for info in graph.input], feeds, given, steps, states)
        folded = {}
        for name, array in zip(node.output, results, strict=False):
            if name:
                code = helper.np_dtype_to_tensor_dtype(array.dtype)
                folded[name] = plain(np.array(array), DTYPE_NAMES[code])
        return folded if all(name in folded for name in node.output if name) else None
    except MemoryError:
        raise
    except Exception:  # anything that inference and the evaluator cannot do
        return None


def _run(
    node: onnx.NodeProto,
    body: onnx.ModelProto,
    formal: list[str],
    feeds: dict[str, Array],
    given: list[Array | None],
    steps: int,
    states: int,
) -> list[Array]:
    """Return the outputs of the node: the last states, then the scan outputs, one row per step."""
    from onnx.reference import ReferenceEvaluator  # few models have a loop to fold

    evaluator = ReferenceEvaluator(body)
    scanned: list[list[Array]] = []
    results: Any
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if node.op_type == LOOP:
            go = True if given[1] is None else bool(given[1].reshape(-1)[0])
            current = given[2:]
            if not go:
                raise ValueError("what has no steps gives no shapes")
            for step in range(steps):
                arguments = [np.array(step, np.int64), np.array(go), *current]
                results = evaluator.run(None, {**feeds, **dict(zip(formal, arguments, strict=True))})
                current = results[1 : 1 + states]
                scanned.append(results[1 + states :])
                go = bool(np.asarray(results[0]).reshape(-1)[0])
                if not go:
                    break
        else:
            attributes = {attribute.name: attribute for attribute in node.attribute}
            current, rows = given[:states], given[states:]
            axes = list(attributes["scan_input_axes"].ints) if "scan_input_axes" in attributes else [0] * len(rows)
            for step in range(steps):
                taken = [np.take(row, step, axis) for row, axis in zip(rows, axes, strict=True) if row is not None]
                results = evaluator.run(None, {**feeds, **dict(zip(formal, [*current, *taken], strict=True))})
                current = results[:states]
                scanned.append(results[states:])
    last = [np.asarray(array) for array in current]
    return [*last, *(np.stack(column) for column in zip(*scanned, strict=True))]
