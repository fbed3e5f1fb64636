"""QDQ models as onnxruntime's static quantizer writes them, over its settings: the golden model against exact
rationals, against the reference evaluator, and against onnxruntime itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

import hwflow
from hwflow.host.boundary_models import port_inputs
from hwflow.verify import golden
from tests.dialects import ort_networks
from tests.dialects.exact import exact_model
from tests.dialects.ort_networks import SHAPE, Layers, build

FRAMES = 2


@dataclass(frozen=True)
class Settings:
    """Of quantize_static. ``opset``: of the float model."""

    activations: str = "QUInt8"
    weights: str = "QInt8"
    per_channel: bool = True
    opset: int = 13
    reduce_range: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


SETTINGS = {
    "per channel": Settings(),
    "per tensor": Settings(per_channel=False),
    "int8": Settings("QInt8"),
    "symmetric": Settings("QInt8", extra={"ActivationSymmetric": True}),
    "weights with zero points": Settings(weights="QUInt8", extra={"WeightSymmetric": False}),
    "weights with zero points, per tensor": Settings(
        weights="QUInt8", per_channel=False, extra={"WeightSymmetric": False}
    ),
    "reduced range": Settings(reduce_range=True),
    "int16": Settings("QInt16", opset=21),
    "uint16": Settings("QUInt16", opset=21),
    "int4 weights": Settings(weights="QInt4", opset=21),
    "uint4 weights": Settings(weights="QUInt4", opset=21, extra={"WeightSymmetric": False}),
    "int4 weights, per tensor": Settings(weights="QInt4", opset=21, per_channel=False),
    "activations kept": Settings(extra={"QDQKeepRemovableActivations": True}),
    "float bias": Settings(extra={"QuantizeBias": False}),
    "quantizers on weights": Settings(extra={"AddQDQPairToWeight": True}),
    "dedicated pairs": Settings(extra={"DedicatedQDQPair": True}),
    "outputs not quantized": Settings(extra={"OpTypesToExcludeOutputQuantization": ["Conv", "Gemm"]}),
    "pools forced": Settings(extra={"ForceQuantizeNoInputCheck": True}),
    "newer operator set": Settings(opset=24),
}

NETWORKS = {
    name: getattr(ort_networks, name)
    for name in (
        "plain", "clipped", "normalized", "average_pooled", "globally_pooled", "residual", "gated", "concatenated",
        "with_softmax", "with_sigmoid", "with_leaky_relu", "with_hard_swish",
    )
}

COMPILED = tuple(name for name in NETWORKS if not name.endswith("_pooled"))
"""Those that hwflow has every operator of."""


class Frames:
    """Calibration data."""

    def __init__(self, frames: list[np.ndarray]) -> None:
        self.left = iter(frames)

    def get_next(self) -> dict[str, np.ndarray] | None:
        frame = next(self.left, None)
        return None if frame is None else {"x": frame}


def quantized(network: Callable[[Layers], str], settings: Settings, path: Path) -> onnx.ModelProto:
    rng = np.random.default_rng(1)
    frames = [rng.normal(size=(1, *SHAPE)).astype(np.float32) for _ in range(12)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantize_static(
            build(network, settings.opset), path, Frames(frames), QuantFormat.QDQ, per_channel=settings.per_channel,
            activation_type=QuantType[settings.activations], weight_type=QuantType[settings.weights],
            reduce_range=settings.reduce_range, extra_options=dict(settings.extra),
        )
    return onnx.load(path)


def agrees(model: onnx.ModelProto, path: Path, folder: Path) -> None:
    """Golden model and exact rationals are equal in every integer; onnxruntime differs at most where its float
    arithmetic may; ``compare`` explains every difference from the reference evaluator."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(FRAMES, *SHAPE)).astype(np.float32)
    np.savez(folder / "x.npz", x=x)
    loaded = hwflow.load(path)
    traced = golden.trace(loaded.quantized, port_inputs(loaded, {"x": x}))
    integers = {value.origin: array for value, array in traced.items()}
    compared = set()
    for frame in range(FRAMES):
        exact = exact_model.evaluate(model, {"x": x[frame : frame + 1]})
        for node in model.graph.node:
            name = node.output[0]
            if node.op_type != "QuantizeLinear" or name not in integers:
                continue
            wanted = exact[name].astype(np.int64)
            assert integers[name][frame].reshape(-1).tolist() == wanted.reshape(-1).tolist(), name
            near_onnxruntime(model, node, exact)
            compared.add(name)
    assert len(compared) >= 2
    assert hwflow.compare(path, inputs=folder / "x.npz").unexplained == 0


def near_onnxruntime(model: onnx.ModelProto, node: onnx.NodeProto, exact: Mapping[str, np.ndarray]) -> None:
    """onnxruntime, without optimizations, from the integers before the node: within half a step, and its own error of
    some 64 float32 roundings of the whole range, of the exact quotient."""
    region, feeds = region_before(model, node)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3  # initializers of other regions are no news
    session = onnxruntime.InferenceSession(region.SerializeToString(), options, providers=["CPUExecutionProvider"])
    kinds = {"float": np.float32, "uint8": np.uint8, "int8": np.int8, "uint16": np.uint16, "int16": np.int16}
    arrays = {i.name: exact[i.name].astype(kinds[i.type[7:-1]]) for i in session.get_inputs()}
    assert set(arrays) == feeds
    (got,) = session.run([node.output[0]], arrays)
    low, high = np.iinfo(got.dtype).min, np.iinfo(got.dtype).max
    scale, zero = (Fraction(exact[name].item()) for name in node.input[1:3])
    quotient = np.clip(exact[node.input[0]] / scale + zero, low, high)
    bound = 0.5 + 64 * 2.0**-23 * (high - low)
    assert (abs(got.astype(object) - quotient) <= bound).all(), node.output[0]


def region_before(model: onnx.ModelProto, last: onnx.NodeProto) -> tuple[onnx.ModelProto, set[str]]:
    """The nodes that compute the result of ``last`` from quantized values before, or the input; and what those are."""
    producers = {name: node for node in model.graph.node for name in node.output}
    constants = {i.name for i in model.graph.initializer}
    chosen: set[int] = set()
    feeds: set[str] = set()
    pending = [last]
    while pending:
        node = pending.pop()
        chosen.add(id(node))
        for name in node.input:
            if not name or name in constants:
                continue
            maker = producers.get(name)
            if maker is None or (maker.op_type == "QuantizeLinear" and maker.input[0] not in constants):
                feeds.add(name)
            else:
                pending.append(maker)
    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    types = {v.name: v for v in [*onnx.shape_inference.infer_shapes(model).graph.value_info, *model.graph.input]}
    nodes = [n for n in model.graph.node if id(n) in chosen]
    for repeated, items in (
        (cut.graph.node, nodes), (cut.graph.input, [types[name] for name in sorted(feeds)]),
        (cut.graph.output, [types[last.output[0]]]), (cut.graph.value_info, []),
    ):  # fmt: skip
        del repeated[:]
        repeated.extend(items)
    return cut, feeds


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings(tmp_path, setting):
    path = tmp_path / "q.onnx"
    agrees(quantized(ort_networks.plain, SETTINGS[setting], path), path, tmp_path)


@pytest.mark.parametrize("name", NETWORKS)
def test_exact_rationals_and_onnxruntime(tmp_path, name):
    """The second implementation against a third, on every operator that the networks have."""
    model = quantized(NETWORKS[name], Settings(opset=14), tmp_path / "q.onnx")
    x = np.random.default_rng(2).normal(size=(1, *SHAPE)).astype(np.float32)
    exact = exact_model.evaluate(model, {"x": x})
    quantizers = [node for node in model.graph.node if node.op_type == "QuantizeLinear"]
    assert len(quantizers) >= 3
    for node in quantizers:
        near_onnxruntime(model, node, exact)


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("activations", ["QUInt8", "QInt8"])
def test_networks(tmp_path, name, activations):
    path = tmp_path / "q.onnx"
    agrees(quantized(NETWORKS[name], Settings(activations, opset=14), path), path, tmp_path)


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("bits", [8, 4])
def test_networks_by_hwflow(tmp_path, name, bits):
    """The same networks by the verb ``quantize``: functions on accumulators, fewer quantizers."""
    path = tmp_path / "q.onnx"
    onnx.save(build(NETWORKS[name], 14), tmp_path / "float.onnx")
    np.savez(tmp_path / "frames.npz", x=np.random.default_rng(1).normal(size=(12, *SHAPE)))
    done = hwflow.quantize(tmp_path / "float.onnx", tmp_path / "frames.npz", path, bits=bits)
    assert done.compiles
    agrees(onnx.load(path), path, tmp_path)
