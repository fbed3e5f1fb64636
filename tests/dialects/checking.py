"""The golden model of a network against the exact evaluation of its ONNX model."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from hwflow.errors import Finding, ModelRefused
from hwflow.host.boundary_models import model_outputs
from hwflow.ir.graph import Graph, Value
from hwflow.loaded_model import Model, load
from hwflow.passes import pipeline
from hwflow.verify import golden
from tests.dialects.exact.exact_call import Array, objects
from tests.dialects.exact.exact_model import evaluate
from tests.dialects.nets import Net


def compiled(net: Net) -> Model | tuple[Finding, ...]:
    """The model, which hardware can be made of; or why it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = net.builder.save(Path(folder))
        try:
            model = load(path)
            pipeline.run(model.quantized, pipeline.DATAFLOW)
        except ModelRefused as refused:
            return tuple(refused.findings)
    return model


def frames_of(net: Net, count: int = 3) -> list[dict[str, Array]]:
    """``count`` random frames and three at the limits of the inputs."""
    return [net.frame(seed) for seed in range(count)] + [net.frame(edge, edge) for edge in range(3)]


def assert_exact(model: Model, frames: Sequence[Mapping[str, Array]]) -> None:
    """Every integer of the quantized graph that stands for an ONNX value, and every output of it, must be what it is in
    exact arithmetic; the dataflow graph must give the same outputs. The model's own outputs, which the host computes in
    floats, must be what they are but for rounding."""
    expected = [evaluate(model.proto, frame) for frame in frames]
    graph = model.quantized
    feeds = {p.name: np.concatenate([integers_of(p.value, e[p.value.origin]) for e in expected]) for p in graph.inputs}
    traced = golden.trace(graph, feeds)
    for value, array in traced.items():
        if value.origin:
            for frame, values in enumerate(expected):
                _same_value(value, array[frame], values[value.origin])
    results = golden.evaluate(graph, feeds)
    for port in graph.outputs:
        for frame, integers in enumerate(results[port.name]):
            wanted = expected[frame][port.name]
            assert integers.shape == wanted.shape[1:] == port.shape, port.name
            shape = [1] * max(1, integers.ndim)
            shape[port.axis] = -1
            scale, zero = (np.array(v, dtype=object).reshape(shape) for v in (port.scale, port.zero_point))
            real = scale * (objects(integers) - zero)
            assert _list(real) == _list(wanted), f"output {port.name}, frame {frame}"
    _same_outputs(graph, pipeline.run(graph, pipeline.DATAFLOW), feeds)
    _same_results(model, results, expected, frames)


def integers_of(value: Value, exact: Array) -> Array:
    """What a hardware input gets for a boundary value: the integers themselves, or those a real stands for."""
    if value.meaning is None:
        return np.asarray(exact.tolist(), dtype=np.int64)
    reals = exact[0] / value.meaning.scale + value.meaning.zero_point
    return np.asarray([[int(v) for v in np.asarray(reals).reshape(-1)]], dtype=np.int64).reshape(exact.shape)


def _same_value(value: Value, integers: Array, exact: Array) -> None:
    if value.meaning is not None:
        real = value.meaning.scale * (objects(integers).reshape(exact.shape[1:]) - value.meaning.zero_point)
        assert _list(real) == _list(exact), f"value {value.origin}"
    elif all(isinstance(v, int) for v in exact.reshape(-1)):
        assert _list(integers) == _list(exact), f"value {value.origin}"


def _same_results(
    model: Model, results: Mapping[str, Array], expected: Sequence[Mapping[str, Array]],
    frames: Sequence[Mapping[str, Array]],
) -> None:
    arrays = {name: np.concatenate([frame[name] for frame in frames]) for name in frames[0]}
    for name, found in model_outputs(model, results, arrays).items():
        for frame, values in enumerate(expected):
            wanted = np.array([float(v) for v in values[name].reshape(-1)])
            np.testing.assert_allclose(
                found[frame].astype(np.float64).reshape(-1), wanted, rtol=1e-5, atol=1e-6, err_msg=f"output {name}"
            )


def _list(array: Array) -> list[object]:
    return list(np.asarray(array, dtype=object).reshape(-1).tolist())


def _same_outputs(before: Graph, after: Graph, feeds: dict[str, Array]) -> None:
    first, second = golden.evaluate(before, feeds), golden.evaluate(after, feeds)
    assert list(first) == list(second)
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], name)
