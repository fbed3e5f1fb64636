"""Whole models: those the project did not make (skipped where their folder is absent), large ones, damaged ones."""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from hwflow.errors import ModelRefused
from hwflow.onnxspec import ResolvedModel, read_model, validate
from tests.onnxspec.build import SHARED, model, node, value
from tests.onnxspec.resolving.resolved import resolve

# Path, parameters (weights and biases), input, output. The parameters are the sums of the layers' sizes.
MODELS = [
    ("bench/cnn_ort_qdq.onnx", 8 * 9 + 8 + 16 * 72 + 16 + 64 * 10 + 10, (1, 1, 8, 8), (1, 10)),
    ("bench/cnn_qdq.onnx", 8 * 9 + 8 + 16 * 72 + 16 + 64 * 10 + 10, (1, 1, 8, 8), (1, 10)),
    ("bench/jet_qdq.onnx", 17 * 64 + 65 * 32 + 33 * 32 + 33 * 5, (1, 16), (1, 5)),
    ("bench/jet6_qdq.onnx", 17 * 64 + 65 * 32 + 33 * 32 + 33 * 5, (1, 16), (1, 5)),
    ("bench/jet_ort_qdq.onnx", 17 * 64 + 65 * 32 + 33 * 32 + 33 * 5, (1, 16), (1, 5)),
    ("bench/tfc_qdq.onnx", 785 * 64 + 65 * 64 + 65 * 64 + 65 * 10, (1, 784), (1, 10)),
    (
        "models/lenet300_mnist_int8/lenet300_mnist_int8.onnx",
        785 * 300 + 301 * 100 + 101 * 10,
        (1, 28, 28, 1),
        (1, 10),
    ),
    ("models/micro_kws_m_fp32/micro_kws_m_static_fp32.onnx", None, (1, 1960), (1, 10)),
    ("models/micro_kws_m_qdq/micro_kws_m_static_qdq.onnx", None, (1, 1960), (1, 10)),
    ("models/micro_kws_m_qoperator_std/micro_kws_m_static_qoperator_emx.onnx", None, (1, 1960), (1, 10)),
    (
        "models/mlperf_ad_autoencoder_int8/mlperf_ad_autoencoder_int8.onnx",
        641 * 128 + 3 * 129 * 128 + 129 * 8 + 9 * 128 + 3 * 129 * 128 + 129 * 640,
        (1, 640),
        (1, 640),
    ),
    ("models/mlperf_ic_resnet8_int8/mlperf_ic_resnet8_int8.onnx", None, (1, 32, 32, 3), (1, 10)),
    ("models/mlperf_kws_dscnn_int8/mlperf_kws_dscnn_int8.onnx", None, (1, 49, 10, 1), (1, 12)),
    ("models/mlperf_vww_mobilenetv1_int8/mlperf_vww_mobilenetv1_int8.onnx", None, (1, 96, 96, 3), (1, 2)),
    ("models/ort_mnist_float/mnist.onnx", None, (1, 1, 28, 28), (1, 10)),
    ("models/zoo_tfc_1w1a/TFC_1W1A.onnx", None, (1, 1, 28, 28), (1, 10)),
    ("models/zoo_tfc_2w2a/TFC_2W2A.onnx", None, (1, 1, 28, 28), (1, 10)),
]


def shared(path: str) -> Path:
    file = SHARED / path
    if not file.is_file():
        pytest.skip(f"models made by others are not part of the project: {path} is not in ../shared")
    return file


def check_consistent(resolved: ResolvedModel) -> None:
    """What ResolvedModel promises about itself."""
    known = {*resolved.inputs, *resolved.constants}
    for one in resolved.nodes:
        assert all(name in known for name in one.inputs if name)
        known.update(name for name in one.outputs if name)
    assert known == set(resolved.values)
    assert set(resolved.outputs) <= known
    assert len({one.name for one in resolved.nodes}) == len(resolved.nodes)
    assert all(one.name for one in resolved.nodes)
    for name, array in resolved.constants.items():
        assert array.shape == resolved.values[name].shape
        assert array.dtype.kind in "biufcO" and not array.flags.writeable


@pytest.mark.parametrize(("path", "parameters", "first", "last"), MODELS, ids=[m[0].split("/")[-1] for m in MODELS])
def test_models_made_by_others(
    path: str, parameters: int | None, first: tuple[int, ...], last: tuple[int, ...]
) -> None:
    proto = read_model(shared(path))
    assert [f for f in validate(proto, path) if f.severity == "error"] == []
    resolved = resolve(proto, {})
    check_consistent(resolved)
    assert [resolved.values[name].shape for name in resolved.inputs] == [first]
    assert [resolved.values[name].shape for name in resolved.outputs] == [last]
    assert parameters is None or resolved.parameters == parameters
    # The same shapes as onnx infers where it knows them, by its own walk over the whole graph.
    if not any(n.domain == "onnx.brevitas" for n in proto.graph.node):
        inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
        for info in (*inferred.graph.value_info, *inferred.graph.output):
            if info.name in resolved.values:
                sizes = [d.dim_value if d.HasField("dim_value") else None for d in info.type.tensor_type.shape.dim]
                ours = resolved.values[info.name].shape
                assert len(sizes) == len(ours)
                assert all(size is None or size == own for size, own in zip(sizes, ours, strict=True))


@pytest.mark.parametrize("path", ["models/zoo_tfc_1w1a/TFC_1W1A.onnx", "models/zoo_tfc_2w2a/TFC_2W2A.onnx"])
def test_brevitas_export(path: str) -> None:
    resolved = resolve(read_model(shared(path)), {})
    assert not {"Shape", "Gather", "Unsqueeze", "Concat", "Constant"} & {n.op_type for n in resolved.nodes}
    (reshape,) = (n for n in resolved.nodes if n.op_type == "Reshape")
    assert resolved.values[reshape.outputs[0]].shape == (1, 784)


def dense_layers(width: int, layers: int) -> onnx.ModelProto:
    """Quantized dense layers: int8 weights, each dequantized, multiplied, quantized and dequantized again."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, object] = {"s": np.float32(0.5), "z": np.int8(0)}
    at = "x"
    for k in range(layers):
        constants[f"w{k}"] = rng.integers(-128, 128, (width, width), dtype=np.int8)
        nodes += [
            node("DequantizeLinear", [f"w{k}", "s", "z"], [f"d{k}"]),
            node("MatMul", [at, f"d{k}"], [f"m{k}"]),
            node("QuantizeLinear", [f"m{k}", "s", "z"], [f"q{k}"]),
            node("DequantizeLinear", [f"q{k}", "s", "z"], [f"y{k}"]),
        ]
        at = f"y{k}"
    return model(nodes, [value("x", ["N", width])], [value(at, ["N", width])], constants)


def test_a_megabyte_takes_a_fraction_of_a_second(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(dense_layers(64, 250).SerializeToString())
    assert path.stat().st_size > 1_000_000
    start = time.process_time()
    proto = read_model(path)
    assert validate(proto, path) == []
    resolved = resolve(proto, {})
    assert time.process_time() - start < 1
    assert len(resolved.nodes) == 1000
    assert resolved.parameters == 250 * 64 * 64
    check_consistent(resolved)


def survives(path: Path) -> None:
    """Reading, validating and resolving refuse or succeed; anything else raised is a defect."""
    try:
        proto = read_model(path)
        if all(finding.severity != "error" for finding in validate(proto, path)):
            check_consistent(resolve(proto, {}))
    except ModelRefused as refusal:
        assert refusal.findings
        assert all(f.message and f.remedy and f.where for f in refusal.findings)


def test_every_truncation(tmp_path: Path) -> None:
    whole = dense_layers(4, 2).SerializeToString()
    path = tmp_path / "m.onnx"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        survives(path)


def test_truncated_real_model(tmp_path: Path) -> None:
    whole = shared("bench/cnn_qdq.onnx").read_bytes()
    path = tmp_path / "m.onnx"
    path.write_bytes(whole[:2000])
    with pytest.raises(ModelRefused) as caught:
        read_model(path)
    assert "it ends after 2000 bytes inside graph: at least" in str(caught.value)


def test_damaged_bytes(tmp_path: Path) -> None:
    rng = random.Random(1)
    whole = dense_layers(4, 2).SerializeToString()
    path = tmp_path / "m.onnx"
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 3])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        survives(path)
