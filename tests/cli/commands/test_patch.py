"""`patch` tells what stands in its way, and leaves the folder as it was. The rest: tests/toolchain/test_patching.py."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import helper

from hwflow.api import made_from
from hwflow.api.options.synth_options import synth_options
from hwflow.api.patching.differences import differences
from hwflow.api.patching.patched_output import held_in
from hwflow.errors import ModelRefused
from hwflow.sim.digests import digests
from tests.cli.models import _quantize, relu, save


def dense(path, weights, scale=0.5):
    """Quantize, a product by weights, quantize."""
    constants = {
        "scale": np.float32(0.5), "zero": np.int8(0), "w": np.array(weights, np.int8), "w_zero": np.int8(0),
        "w_scale": np.float32(scale),
    }
    nodes = [
        *_quantize("x", "a", "first"),
        helper.make_node("DequantizeLinear", ["w", "w_scale", "w_zero"], ["v"]),
        helper.make_node("MatMul", ["a", "v"], ["b"], "dense"), *_quantize("b", "y", "last"),
    ]
    return save(path, nodes, ["N", len(weights)], constants, ["N", len(weights[0])])


def test_refusals(hwflow, tmp_path) -> None:
    relu(tmp_path / "m.onnx")
    ran = hwflow("patch", "out", "m.onnx")
    assert (ran.code, ran.err.partition(" [")[0]) == (
        2, f"error: output '{tmp_path}/out': must be an output folder of synth, not something else"
    )
    assert not (tmp_path / "out").exists()
    assert hwflow("synth", "m.onnx", "--board", "ulx3s_12f", "-o", "out", "--until", "verilog").code == 0
    names = [str(file.relative_to(tmp_path)) for file in (tmp_path / "out").rglob("*")]
    before = digests(tmp_path, names)
    ran = hwflow("patch", "out", "m.onnx")
    assert ran.code == 2
    assert "must hold its bitstream as it was built, not without it or changed since" in ran.err
    assert digests(tmp_path, names) == before
    ran = hwflow("synth", "m.onnx", "--board", "tang_nano_9k", "-o", "gowin", "--until", "verilog")
    ran = hwflow("patch", "gowin", "m.onnx", "--format", "json")
    (finding,) = json.loads(ran.out)["findings"]
    assert finding["message"] == "its part must be of the family ecp5 or ice40 to be patched, not of 'gowin'"


def test_what_differs_in_hardware(hwflow, tmp_path) -> None:
    """Weights in another order are other words of a table; three times as large ones need more bits in sums."""
    weights = np.random.default_rng(0).integers(-40, 40, (16, 8))
    for name, made in (("one", weights), ("turned", weights[::-1]), ("more", 3 * weights)):
        dense(tmp_path / f"{name}.onnx", made)
        args = ("--board", "ulx3s_12f", "--fps", "10", "-o", name, "--until", "verilog")
        assert hwflow("synth", f"{name}.onnx", *args).code == 0
    assert differences(tmp_path / "one", tmp_path / "one") == []
    assert differences(tmp_path / "one", tmp_path / "turned") == []
    assert (tmp_path / "one/design.v").read_text() != (tmp_path / "turned/design.v").read_text()  # its comment
    found = [f"{finding.where}: {finding.message}" for finding in differences(tmp_path / "one", tmp_path / "more")]
    bits = [
        next(layer["accumulator_bits"] for layer in json.loads((tmp_path / name / "report.json").read_text())["layers"]
             if layer["name"] == "dense_mvu")
        for name in ("one", "more")
    ]  # fmt: skip
    assert f"layer 'dense_mvu': accumulator_bits must be '{bits[0]}', not '{bits[1]}'" in found


def test_patchable_hardware(hwflow, tmp_path) -> None:
    """Other weights and scales are other tables in the same hardware, which computes what the other model says."""
    weights = np.random.default_rng(0).integers(-40, 40, (16, 8))
    dense(tmp_path / "one.onnx", weights, 0.013)
    dense(tmp_path / "other.onnx", 1 - weights[::-1], 0.017)
    dense(tmp_path / "large.onnx", 3 * weights, 0.013)
    args = ("--board", "ulx3s_12f", "--fps", "10", "--until", "verilog")
    assert hwflow("synth", "one.onnx", *args, "-o", "one", "--patchable", "dense").code == 0
    assert hwflow("synth", "one.onnx", *args, "-o", "own").code == 0
    own, held = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("own", "one"))
    assert "held" not in own and held["held"]["dense"]["weight_bits"] == 8
    asked = synth_options(made_from.read(tmp_path / "one")["request"]["asked"]["given"], "verilog")
    known = held_in(tmp_path / "one")
    asked.compile(tmp_path / "other.onnx", print, known=known).write(tmp_path / "other")
    assert differences(tmp_path / "one", tmp_path / "other") == []
    for table in held["weights"]:
        assert (tmp_path / "one" / table).read_text() != (tmp_path / "other" / table).read_text()
    assert hwflow("sim", "other", "--frames", "4").code == 0
    with pytest.raises(ModelRefused, match="must have sums within"):
        asked.compile(tmp_path / "large.onnx", print, known=known)
    ran = hwflow("synth", "one.onnx", *args, "-o", "none", "--patchable", "nose")
    assert ran.code == 1 and "must name nodes with constant weights, not 'nose'" in ran.err
