"""Definitions of onnxruntime's operators beside onnxruntime's own kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from hwflow.onnxspec import resolve_with_graph

Array = npt.NDArray[Any]

RNG = np.random.default_rng(3)


def reals(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def model_of(
    op: str, inputs: Sequence[Array | None], attributes: Mapping[str, Any], outputs: int = 1, opset: int = 17,
    constants: Sequence[int] = (),
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one node of com.microsoft, and what is fed; the inputs ``constants`` are in the model."""
    named = {f"i{k}": a for k, a in enumerate(inputs) if a is not None}
    fixed = {f"i{k}" for k in constants}
    node = helper.make_node(
        op, [f"i{k}" if a is not None else "" for k, a in enumerate(inputs)], [f"o{k}" for k in range(outputs)],
        domain="com.microsoft", name="node", **attributes,
    )
    graph = helper.make_graph(
        [node], "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in named.items() if n not in fixed
        ],
        [onnx.ValueInfoProto(name=f"o{k}") for k in range(outputs)],
        [numpy_helper.from_array(a, n) for n, a in named.items() if n in fixed],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return model, {n: a for n, a in named.items() if n not in fixed}


def by_definition(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    _, flat = resolve_with_graph(model, {}, None, whole=True)
    assert all(node.domain != "com.microsoft" for node in flat.graph.node)
    found: list[Array] = ReferenceEvaluator(flat).run(None, feeds)
    return found


def by_kernel(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    import onnxruntime  # an optional extra

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, feeds)
    return found


def agrees(*arguments: Any, **more: Any) -> None:
    """The definition's results are those of the kernel, as far as float32 goes."""
    model, feeds = model_of(*arguments, **more)
    for mine, theirs in zip(by_definition(model, feeds), by_kernel(model, feeds), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)
