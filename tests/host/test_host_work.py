"""What is left to the host is said, and warned of where it is a part of the network."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from hwflow.api.checking import check
from hwflow.cli import main
from hwflow.loaded_model import load
from tests.host.networks import classifier
from tests.models import Builder


def decoder(*, before: bool = False) -> onnx.ModelProto:
    """image [N, 2, 4, 4] -> quantized Conv of 1 x 1 taps -> ConvTranspose with float weights -> Sigmoid.

    ``before``: the input goes through a float matrix product first.
    """
    rng = np.random.default_rng(0)
    b = Builder(19, ir_version=9)
    x = b.input("image", ["N", 2, 4, 4])
    if before:
        x = b.node("MatMul", x, b.constant(rng.normal(size=(4, 4)).astype(np.float32)), name="spectrum")
    q = b.dequantize(b.quantize(x, 1 / 64, 0, "int8"), 1 / 64, 0, "int8")
    y = b.node("Conv", q, b.weights(rng.integers(-128, 128, (3, 2, 1, 1)), 1 / 64))
    y = b.dequantize(b.quantize(y, 1 / 8, 0, "int8", name="code"), 1 / 8, 0, "int8")
    up = b.constant(rng.normal(size=(3, 1, 2, 2)).astype(np.float32))
    y = b.node("ConvTranspose", y, up, name="up", strides=[2, 2])
    b.output(b.node("Sigmoid", y, name="picture"))
    return b.build()


def save(model: onnx.ModelProto, folder: Path) -> Path:
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def test_a_float_layer_behind_the_core(tmp_path):
    path = save(decoder(), tmp_path)
    (warning,) = [f for f in check(path) if f.rule == "host-work"]
    # 16 pixels: 3 outputs of 2 inputs each; 3 inputs to 4 taps each.
    assert warning.severity == "warning"
    assert warning.message == (
        "the host must run pre- and postprocessing only, not 1 linear operator with 66.7 % of the 288 "
        "multiply-accumulates of a frame: 'up' (ConvTranspose)"
    )
    assert warning.remedy.startswith("hardware ends at node 'up' (ConvTranspose): weights ")
    work = load(path).host_work
    assert (work.macs, work.total) == (192, 288)
    assert {row["name"]: row["macs"] for row in work.table()["nodes"]}["up"] == 192


def test_a_float_layer_before_the_core(tmp_path):
    (warning,) = [f for f in check(save(decoder(before=True), tmp_path)) if f.rule == "host-work"]
    # 8 rows of 4 elements by 4 come on top.
    assert "2 linear operators with 76.9 % of the 416" in warning.message
    assert "'spectrum' (MatMul), 'up' (ConvTranspose)" in warning.message
    assert warning.remedy.endswith("declare the integers of a float input: --input-type NAME=int8[,SCALE[,ZERO_POINT]]")


@pytest.mark.parametrize("tail", ["dequantize", "softmax", "arg_max"])
def test_postprocessing_is_no_reason_to_warn(tmp_path, tail):
    path = classifier(tail).save(tmp_path / "model.onnx")
    assert [f for f in check(path) if f.rule == "host-work"] == []
    assert load(path).host_work.macs == 0


def test_synth_says_it(tmp_path, capsys):
    path = save(decoder(), tmp_path)
    assert main(["synth", str(path), "--board", "ulx3s_85f", "--until", "verilog", "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert "  left to the host: " in printed.out
    assert "'up' (ConvTranspose), 'picture' (Sigmoid); 66.7 % of the 288 multiply-accumulates of a frame" in printed.out
    host = json.loads((tmp_path / "out" / "report.json").read_text())["host"]
    assert (host["macs"], host["share"]) == (192, 192 / 288)
    assert "up" in host["suffix"] and {"name": "up", "op": "ConvTranspose", "macs": 192} in host["nodes"]
    assert "warning: model 'model': the host must run pre- and postprocessing only" in printed.err
