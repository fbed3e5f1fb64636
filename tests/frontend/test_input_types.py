"""`--input-type`: what integers a float input carries, where the user says so and no quantizer of the model."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.api.checking import check
from hwflow.api.compiler import compile
from hwflow.cli import main
from hwflow.errors import UsageError
from hwflow.frontend.input_types import InputType, parsed
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.host.inputs import choose_inputs
from hwflow.loaded_model import load
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from hwflow.verify.simulation import simulate
from tests.models import Builder

DOMAIN = "qonnx.custom_op.general"
RNG = np.random.default_rng(0)
WEIGHTS = RNG.integers(-4, 5, (6, 3)).astype(np.float32)
THRESHOLDS = np.sort(RNG.normal(0, 20, (3, 7)).astype(np.float32))


def streamlined(inputs: int = 1, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """x @ w -> MultiThreshold, as FINN leaves it: weights are integers, nothing says what x is. Two inputs: the sum."""
    nodes = [
        helper.make_node("MatMul", ["s" if inputs > 1 else "x", "w"], ["a"], "product"),
        helper.make_node("MultiThreshold", ["a", "t"], ["y"], "levels", domain=DOMAIN),
    ]
    if inputs > 1:
        nodes.insert(0, helper.make_node("Add", ["x", "z"], ["s"], "sum"))
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info(n, dtype, ["N", 6]) for n in ("x", "z")[:inputs]],
        [helper.make_tensor_value_info("y", dtype, ["N", 3])],
        [numpy_helper.from_array(WEIGHTS.astype(kind), "w"), numpy_helper.from_array(THRESHOLDS.astype(kind), "t")],
    )
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(streamlined(), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def by_hand(reals: list[list[Fraction]]) -> list[list[int]]:
    """The model's outputs in exact rationals."""
    sums = [[sum(v * int(w) for v, w in zip(frame, column, strict=True)) for column in WEIGHTS.T] for frame in reals]
    return [[sum(s >= Fraction(float(t)) for t in row) for s, row in zip(f, THRESHOLDS, strict=True)] for f in sums]


@pytest.mark.parametrize(
    ("text", "integers", "scale", "zero_point"),
    [
        ("int4", range(-8, 8), Fraction(1), 0),
        ("uint8,1/255", range(256), Fraction(1, 255), 0),
        ("int3,.5,1", range(-4, 4), Fraction(1, 2), 1),
        ("uint1", range(2), Fraction(1), 0),
        ("bipolar", (-1, 1), Fraction(1), 0),
        ("bipolar,1/3,2", (-1, 1), Fraction(1, 3), 2),
        ("int16,1e-3,-5", (-32768, -7, 0, 5, 4242, 32767), Fraction(1, 1000), -5),
    ],
)
def test_the_input_is_scale_times_integer_less_zero_point(model, text, integers, scale, zero_point):
    assert [f for f in check(model, input_types={"x": text}) if f.severity != "warning"] == []
    loaded = load(model, input_types={"x": text})
    q = RNG.choice(list(integers), (30, 6))
    reals = [[scale * (int(v) - zero_point) for v in frame] for frame in q]
    x = np.array([[float(v) for v in frame] for frame in reals], np.float32)
    hardware = golden.evaluate(loaded.quantized, port_inputs(loaded, {"x": x}))
    assert model_outputs(loaded, hardware)["y"].tolist() == by_hand(reals)
    assert (loaded.quantized.prefix, loaded.quantized.suffix) == ((), ())
    assert loaded.host_work.macs == 0


@pytest.mark.parametrize("text", ["uint8,1/255", "bipolar", "int16"])
def test_random_frames_are_of_the_type(model, text):
    loaded = load(model, input_types={"x": text})
    frames = choose_inputs(loaded, None, None, 200, np.random.default_rng(1)).arrays["x"]
    levels = port_inputs(loaded, {"x": frames})["x"]
    type_ = InputType.of(text).levels
    assert levels.min() >= type_.lo and levels.max() <= type_.hi
    assert np.ptp(levels) > 0.9 * (type_.hi - type_.lo)
    assert compare(model, input_types={"x": text}, frames=20).ok


def test_several_inputs(tmp_path):
    onnx.save(streamlined(2), tmp_path / "model.onnx")
    loaded = load(tmp_path / "model.onnx", input_types={"x": "int4,0.5", "z": "uint2,0.25,1"})
    assert [port.name for port in loaded.quantized.inputs] == ["x", "z"]
    assert compare(loaded, frames=20).ok
    (finding,) = [f for f in check(tmp_path / "model.onnx", input_types={"x": "int4"}) if f.severity != "warning"]
    assert "'z' must be the result of DequantizeLinear" in finding.message and "--input-type" in finding.remedy


@pytest.mark.parametrize(
    ("text", "wrong", "message"),
    [
        ("int4", 5.5, "must hold -8 to 7 in steps of 1, as declared, not 5.5 in frame 1, index [5]"),
        ("int4", 8.0, "must hold -8 to 7 in steps of 1, as declared, not 8.0"),
        ("int4", float(np.nextafter(np.float32(3), np.float32(4))), "in steps of 1, as declared, not 3.0000002"),
        ("bipolar", 0.0, "must hold -1 to 1 in steps of 2, as declared, not 0.0"),
        ("uint8,1/255", 0.5, "must hold 0 to 1 in steps of 1/255, as declared, not 0.5"),
        ("uint16,1/255", 100.502, "must hold 0 to 257 in steps of 1/255"),
    ],
)
def test_frames_that_no_integers_mean(model, tmp_path, text, wrong, message):
    """Nothing is rounded in silence."""
    x = np.ones((2, 6), np.float32)
    x[1, 5] = wrong
    np.savez(tmp_path / "x.npz", x=x)
    with pytest.raises(UsageError) as refused:
        compare(model, inputs=tmp_path / "x.npz", input_types={"x": text})
    (finding,) = refused.value.findings
    assert finding.where == "input 'x'" and message in finding.message


def test_quotients_may_be_rounded_twice(model, tmp_path):
    k = np.resize(np.arange(256, dtype=np.float32), (43, 6))
    for x in (k / 255, k * np.float32(1 / 255)):
        loaded = load(model, input_types={"x": "uint8,1/255"})
        assert port_inputs(loaded, {"x": x})["x"].tolist() == k.astype(int).tolist()


def test_float16(tmp_path):
    onnx.save(streamlined(dtype=TensorProto.FLOAT16), tmp_path / "model.onnx")
    assert compare(tmp_path / "model.onnx", input_types={"x": "uint8,1/255"}, frames=20).ok


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["x"], "must be NAME=TYPE[,SCALE[,ZERO_POINT]], not 'x'"),
        (["x=float8"], "TYPE must be int2 to int16, uint1 to uint16 or bipolar, not 'float8' for 'x'"),
        (["x=int17"], "not 'int17'"),
        (["x=int1"], "not 'int1'"),
        (["x=uint0"], "not 'uint0'"),
        (["x="], "not ''"),
        (["x=int8,0"], "SCALE must be from 1e-37 to 1e37, not 0"),
        (["x=int8,1e-999"], "SCALE must be from 1e-37 to 1e37, not 1e-999"),
        (["x=int8,-1"], "SCALE must be a number such as 0.0078125 or a fraction such as 1/255, not '-1'"),
        (["x=int8,1/0"], "not '1/0'"),
        (["x=int8,nan"], "not 'nan'"),
        (["x=int8,1e999999999"], "not '1e999999999'"),
        (["x=int8,1,0.5"], "ZERO_POINT must be an integer, not '0.5'"),
        (["x=int8,1,2,3"], "must be NAME=TYPE[,SCALE[,ZERO_POINT]], not with 4 values"),
        (["x=int8", "x=int4"], "must name each input once, not 'x' twice"),
    ],
)
@pytest.mark.parametrize("command", ["check", "synth", "sim", "compare"])
def test_malformed_options(model, capsys, command, options, message):
    board = ["--board", "ulx3s_85f"] if command == "synth" else []
    assert main([command, str(model), *board, *(f"--input-type={o}" for o in options)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: option --input-type: ") and message in error


def test_unknown_names(model, capsys):
    assert main(["compare", str(model), "--input-type", "image=int8"]) == 2
    assert "option --input-type: must name an input of the model ('x'), not 'image'" in capsys.readouterr().err
    (finding,) = [f for f in check(model, input_types={"image": "int8"}) if f.severity != "warning"]
    assert (finding.where, finding.severity) == ("option --input-type", "error")


def test_integer_inputs_may_be_narrower(tmp_path):
    """By a type within their own, as they are."""
    b = Builder(19, ir_version=9)
    x = b.input("x", ["N", 4], kind="int8")
    b.output(b.node("Abs", x))
    path = tmp_path / "model.onnx"
    onnx.save(b.build(), path)
    (port,) = load(path, input_types={"x": "int4"}).quantized.inputs
    assert str(port.value.typed.interval) == "[-8, 7]"
    for declared, said in (("int9", "int9,1,0"), ("int4,1/2", "int4,1/2,0"), ("uint8", "uint8,1,0")):
        (finding,) = [f for f in check(path, input_types={"x": declared}) if f.severity != "warning"]
        assert str(finding) == (
            f"unsupported: input 'x': must be declared by a type within its own, int8, and without a scale, not as "
            f"{said} [input-type]\n  remedy: leave out --input-type for it, or declare the type alone"
        )


def test_quantized_inputs_need_none(tmp_path):
    """The integers are quantized once more, in hardware, which is said."""
    b = Builder(19, ir_version=9)
    b.output(b.dequantize(b.quantize(b.input("x", ["N", 4]), 0.25, 3, "int8", name="q"), 0.25, 3, "int8"))
    path = tmp_path / "model.onnx"
    onnx.save(b.build(), path)
    (warning,) = [f for f in check(path, input_types={"x": "int8,0.1"}) if f.rule == "input-type"]
    assert warning.severity == "warning"
    assert warning.message.startswith("must be declared only where the model does not quantize it, not where node ")
    assert compare(path, input_types={"x": "int8,0.1"}, frames=20).ok


def test_without_it_the_message_names_it(model):
    (finding,) = [f for f in check(model) if f.severity != "warning"]
    assert finding.rule == "hardware-operator" and "--input-type NAME=int8[,SCALE[,ZERO_POINT]]" in finding.remedy


def test_an_output_folder_knows_it(model, tmp_path, capsys):
    out = tmp_path / "out"
    compile(model, "ulx3s_85f", input_types={"x": "int4,0.5,1"}).write(out, "verilog")
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["input_types"] == {"x": "int4,1/2,1"}
    (port,) = manifest["inputs"]
    assert (port["scale"], port["zero_point"], port["element"]) == (["1/2"], ["1/1"], {"width": 4, "signed": True})
    assert manifest["host"]["prefix"] is manifest["host"]["suffix"] is None
    (source,) = manifest["host"]["inputs"]
    assert source | {"shape": None} == {
        "name": "x", "type": "float32", "shape": None, "port": "s_axis", "conversion": "affine", "range": [-8, 7],
        "scale": ["1/2"], "zero_point": ["1/1"], "scale_float": [0.5], "zero_point_float": [1.0], "broadcast": [],
    }
    simulation = simulate(out, frames=8)
    assert simulation.findings == () and simulation.outputs is not None
    assert simulation.outputs["y"].tolist() == by_hand(
        [[Fraction(float(v)) for v in frame] for frame in simulation.inputs.arrays["x"]]
    )
    assert main(["sim", str(out), "--input-type", "x=int8"]) == 2
    assert "must belong to a model, but" in capsys.readouterr().err


def test_what_is_parsed_stays_as_it_is() -> None:
    """The command line parses declarations with the other options, before the model is read."""
    declared = InputType("uint8", Fraction(1, 255))
    assert parsed({"x": declared, "y": "int4,2,-1"}) == {"x": declared, "y": InputType("int4", Fraction(2), -1)}
    assert parsed({"x": declared})["x"] is declared
