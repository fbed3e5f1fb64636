"""The golden model against exact arithmetic: every integer of the graph, and every output, must be equal."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from hwflow.ir.graph import Graph, Port
from hwflow.loaded_model import Model
from hwflow.passes import pipeline
from hwflow.verify import golden
from tests.dialects.exact.exact_call import bounds_of, objects
from tests.dialects.exact.exact_model import evaluate
from tests.models import Builder

Array = npt.NDArray[Any]
FRAMES = 3


def agree(builder: Builder, seed: int = 0, step: float = 0.25) -> Model:
    """Random frames through both; float inputs are multiples of ``step``, so that ties are common.

    The dataflow graph must give the same as the quantized one. Returns the model.
    """
    with tempfile.TemporaryDirectory() as folder:
        model = builder.load(Path(folder))
    rng = np.random.default_rng(seed)
    proto = model.proto
    frames = [{i.name: _random(i, rng, step) for i in proto.graph.input} for _ in range(FRAMES)]
    expected = [evaluate(proto, frame) for frame in frames]
    graph = model.quantized
    feeds = {p.name: np.concatenate([e[p.value.origin].astype(np.int64) for e in expected]) for p in graph.inputs}
    for value, array in golden.trace(graph, feeds).items():
        if all(isinstance(v, int) for v in expected[0].get(value.origin, np.array([None])).reshape(-1)):
            wanted = np.stack([e[value.origin].reshape(-1) for e in expected])
            assert array.reshape(len(frames), -1).tolist() == wanted.tolist(), value.name
    results = golden.evaluate(graph, feeds)
    for port in graph.outputs:
        for frame, integers in enumerate(results[port.name]):
            wanted = np.asarray(expected[frame][port.name][0], dtype=object)
            assert integers.shape == wanted.shape == port.shape
            assert _meaning(port, integers).tolist() == wanted.tolist(), port.name
    same(graph, pipeline.run(graph, pipeline.DATAFLOW), feeds)
    return model


def same(before: Graph, after: Graph, feeds: dict[str, Array]) -> None:
    """Both graphs give the same outputs for ``feeds``."""
    first, second = golden.evaluate(before, feeds), golden.evaluate(after, feeds)
    assert list(first) == list(second)
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], name)


def _meaning(port: Port, integers: Array) -> Array:
    """The integers as what the port says they are: reals, or themselves."""
    shape = [1] * max(1, integers.ndim)
    shape[port.axis] = -1
    scale, zero = (np.array(v, dtype=object).reshape(shape) for v in (port.scale, port.zero_point))
    reals: Array = scale * (objects(integers) - zero)
    return reals.reshape(integers.shape)


def _random(info: onnx.ValueInfoProto, rng: np.random.Generator, step: float) -> Array:
    shape = [d.dim_value or 1 for d in info.type.tensor_type.shape.dim]
    kind = TensorProto.DataType.Name(info.type.tensor_type.elem_type).lower()
    if kind == "float":
        return rng.integers(-300, 300, shape).astype(np.float32) * np.float32(step)
    if kind == "bool":
        return np.ones(shape, bool)
    low, high = bounds_of(info.type.tensor_type.elem_type)
    return rng.integers(max(low, -(1 << 20)), min(high, 1 << 20) + 1, shape)
