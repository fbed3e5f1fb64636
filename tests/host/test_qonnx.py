"""A boundary between host and hardware inside QONNX: quantizers' results are reals there, and integers carry them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.api.checking import check
from hwflow.api.compiler import compile
from hwflow.errors import ModelRefused
from hwflow.host.boundary_models import model_outputs, port_inputs, prefix_model, suffix_model
from hwflow.host.inputs import choose_inputs
from hwflow.loaded_model import Model, load
from hwflow.onnxspec.graphs.scopes import model_opsets
from hwflow.verify import golden

DOMAIN = "qonnx.custom_op.general"
SCALES = np.array([0.5, 0.3, 0.25], np.float32)  # of the input's channels
OUT = np.float32(0.2)


def proto() -> onnx.ModelProto:
    """x / 2 -> Quant, 4 bits, a scale per channel -> Relu -> Quant, 3 bits unsigned -> Softmax."""
    constants = {
        "two": np.float32(2), "s": SCALES.reshape(1, 3, 1), "zero": np.float32(0), "four": np.float32(4),
        "t": OUT, "three": np.float32(3),
    }
    nodes = [
        helper.make_node("Div", ["x", "two"], ["half"], "half"),
        helper.make_node(
            "Quant", ["half", "s", "zero", "four"], ["q"], "first", domain=DOMAIN, signed=1, narrow=0,
            rounding_mode="ROUND",
        ),
        helper.make_node("Relu", ["q"], ["r"], "relu"),
        helper.make_node(
            "Quant", ["r", "t", "zero", "three"], ["p"], "second", domain=DOMAIN, signed=0, narrow=0,
            rounding_mode="ROUND",
        ),
        helper.make_node("Softmax", ["p"], ["y"], "last", axis=1),
    ]
    graph = helper.make_graph(
        nodes, "qonnx",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3, 2])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 19), helper.make_opsetid(DOMAIN, 1)], ir_version=9
    )


@pytest.fixture
def model(tmp_path: Path) -> Model:
    onnx.save(proto(), tmp_path / "model.onnx")
    return load(tmp_path / "model.onnx")


FRAMES = np.random.default_rng(0).normal(0, 3, (20, 3, 2)).astype(np.float32)


def levels() -> np.ndarray:
    """The first quantizer's integers by its definition: clamp(round(x / s), -8, 7)."""
    return np.clip(np.rint(FRAMES / 2 / SCALES.reshape(3, 1)), -8, 7)


def test_reals_go_in_as_integers_and_come_out_as_reals(model: Model) -> None:
    integers = port_inputs(model, {"x": FRAMES})
    (found,) = integers.values()
    np.testing.assert_array_equal(found, levels())
    assert len(np.unique(found)) == 16

    codes = np.clip(np.rint(np.maximum(levels(), 0) * SCALES.astype(float).reshape(3, 1) / float(OUT)), 0, 7)
    power = np.exp(codes * OUT)
    hardware = golden.evaluate(model.quantized, integers)
    result = model_outputs(model, hardware)["y"]
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, power / power.sum(axis=1, keepdims=True), rtol=1e-5)


def test_the_files(model: Model, tmp_path: Path) -> None:
    prefix, suffix = prefix_model(model), suffix_model(model)
    assert prefix is not None and suffix is not None
    assert [n.name for n in prefix.proto.graph.node] == ["half", "first"]
    assert [n.name for n in suffix.proto.graph.node] == ["last"]
    assert (prefix.inputs, prefix.outputs, suffix.inputs, suffix.outputs) == (("x",), ("q",), ("p",), ("y",))
    for part in (prefix, suffix):
        assert model_opsets(part.proto) == {"": 19, DOMAIN: 1}
        onnx.save(part.proto, tmp_path / "part.onnx")
        onnx.checker.check_model(part.proto)
        assert [f for f in check(tmp_path / "part.onnx") if f.severity == "error"] == []


def test_the_manifest_says_how_they_convert(model: Model, tmp_path: Path) -> None:
    out = tmp_path / "out"
    compile(model, "ulx3s_85f").write(out, until="verilog")
    host = json.loads((out / "manifest.json").read_text())["host"]
    exact = [f"{n}/{d}" for n, d in (float(s).as_integer_ratio() for s in SCALES)]
    assert host["prefix"]["outputs"] == [
        {
            "name": "q", "type": "float32", "shape": [3, 2], "port": "s_axis", "conversion": "affine",
            "range": [-8, 7], "scale": exact,
            "zero_point": ["0/1"] * 3, "scale_float": [float(s) for s in SCALES], "zero_point_float": [0.0] * 3,
            "broadcast": [3, 1],
        }
    ]
    (tensor,) = host["suffix"]["inputs"]
    assert (tensor["name"], tensor["port"], tensor["conversion"]) == ("p", "m_axis", "affine")
    assert (tensor["scale_float"], tensor["zero_point"], tensor["broadcast"]) == ([float(OUT)], ["0/1"], [])


def test_random_frames_use_all_levels(model: Model) -> None:
    chosen = choose_inputs(model, None, None, 100, np.random.default_rng(1))
    (integers,) = port_inputs(model, chosen.arrays).values()
    assert set(np.unique(integers)) == set(range(-8, 8))


def test_what_is_not_finite_is_no_level(model: Model) -> None:
    with pytest.raises(ModelRefused, match="must hold levels of its quantizer"):
        port_inputs(model, {"x": np.full((1, 3, 2), np.nan, np.float32)})
