"""One operator of the quantized stage: a graph of it, its reference, its lowering."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from hwflow.cores.operator import HardwareOperator
from hwflow.cores.registry import OPERATORS
from hwflow.ir.graph import Graph, IntArray
from hwflow.types import IntType
from hwflow.verify import golden
from tests.schedule.graphs import Builder, dataflow

I8, U4 = IntType(8, True), IntType(4, False)


def reference(op: str, inputs: list[np.ndarray], opset: int = 19, **attributes: object) -> np.ndarray:
    """One ONNX node on these arrays."""
    names = [f"i{k}" for k in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, inputs, strict=True)
    ]
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    (result,) = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    return np.asarray(result)


def paired(
    op: str, frames: Sequence[tuple[int, ...]], elements: Sequence[IntType], **attributes: object
) -> tuple[Graph, list[IntArray], IntArray]:
    """A quantized graph of one node with several inputs; random frames of each and its golden results."""
    build = Builder(np.random.default_rng(0))
    sources = [build.input(frame, element) for frame, element in zip(frames, elements, strict=True)]
    build.output(build.node(op, *sources, **attributes))
    graph = build.done()
    rng = np.random.default_rng(1)
    arrays = [rng.integers(e.min, e.max + 1, (3, *f)) for f, e in zip(frames, elements, strict=True)]
    (result,) = golden.evaluate(graph, {f"x{k}": a for k, a in enumerate(arrays)}).values()
    return graph, arrays, result


def single(
    op: str, frame: tuple[int, ...], element: IntType, **attributes: object
) -> tuple[Graph, IntArray, IntArray]:
    """A quantized graph of one node; random frames and its golden results."""
    graph, (frames,), result = paired(op, [frame], [element], **attributes)
    return graph, frames, result


def check_lowering(graph: Graph, frames: IntArray | list[IntArray], result: IntArray) -> None:
    """The dataflow graph means the same, and only hardware operators are left. ``frames``: of each input."""
    lowered = dataflow(graph)
    assert all(isinstance(OPERATORS[n.op], HardwareOperator) for n in lowered.nodes)
    arrays = frames if isinstance(frames, list) else [frames]
    (found,) = golden.evaluate(lowered, {f"x{k}": a for k, a in enumerate(arrays)}).values()
    assert np.array_equal(found, result)
    interval = graph.outputs[0].value.typed.interval
    assert interval.lo <= result.min() and result.max() <= interval.hi
