"""Names of a model that are no Verilog names, or are taken, or differ in what Verilog cannot show."""

from __future__ import annotations

import json
import re
import subprocess

import numpy as np
import onnx
import pytest

import hwflow
from hwflow.cores.verilog_names import identifier, identifiers
from hwflow.toolchain.icarus import ICARUS
from tests.flow.networks import dense_network
from tests.flow.test_digits import lint
from tests.models import Builder

# of the nodes that become instances: Gemm and the quantizers behind it
INSTANCES = ["clk", "error", "s_axis_tdata", "1st layer", "before", "m_axis_mark"]


@pytest.fixture(scope="module")
def emitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    model = onnx.load(dense_network(folder / "model.onnx", (4, 3, 2, 2)))
    names = iter(INSTANCES)
    renamed = {"x": "m_axis tdata", "y": "clk"}
    for number, node in enumerate(model.graph.node):
        behind = node.op_type == "QuantizeLinear" and node.input[0] != "x"
        node.name = next(names) if node.op_type == "Gemm" or behind else f"a/b.{number}\\é\n`x"
        renamed |= {name: f"{node.name}/output" for name in node.output if name not in renamed}
    for values in [v for n in model.graph.node for v in (n.input, n.output)]:
        values[:] = [renamed.get(v, v) for v in values]
    model.graph.input[0].name, model.graph.output[0].name = renamed["x"], renamed["y"]
    model.graph.name = 'a name */ "é\n`define wire\\'
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, folder / "model.onnx")
    return folder


def test_it_compiles_and_computes(hwflow, emitted):
    out = emitted / "out"
    ran = hwflow("synth", emitted / "model.onnx", "--board", "icebreaker", "--until", "verilog", "-o", out)
    assert ran.code == 0, ran.err
    design = (out / "design.v").read_text()
    assert design.isascii() and "\\" not in re.sub("^//.*$", "", design, flags=re.MULTILINE)  # escapes in comments
    manifest = json.loads((out / "manifest.json").read_text())
    assert set(INSTANCES) <= set(manifest["names"])
    # a function before a quantizer is part of the quantizer's instance: several nodes may share one
    for instance in {i for text in manifest["names"].values() for i in text.split(",")}:
        assert len(re.findall(rf"^  \w+ (?:#\(.*\) )?{instance} \($", design, re.MULTILINE)) == 1, instance
    assert lint(out) == ""
    command = [*ICARUS.find().command, "-g2005", "-Wall", "-s", "hwflow_top", "-o", "x.vvp", "design.v"]
    done = subprocess.run(command, cwd=out, capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""
    ran = hwflow("sim", out, "--simulator", "icarus", "--frames", 3, "--seed", 1)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("conv1", "conv1"), ("block.0/conv", "block_0_conv"), ("3x3", "n_3x3"), ("Before", "n_Before"), ("é", "e"),
        ("a__b_", "a_b"), ("", "n"), ("/conv1/Conv", "conv1_Conv"), ("1", "n_1"), ("a b", "a_b"), ("x²", "x2"),
        ("Größe:0", "Gro_e_0"), ("層", "n"),
    ],
)
def test_identifiers_are_readable(name, expected):
    assert identifier(name) == expected


def test_identifiers_are_unique():
    # also where only the case differs, which is nothing to some file systems and tools
    found = identifiers(["a.b", "a/b", "A_b", "clk", "a_b_2"], reserved=["CLK"])
    assert found == {"a.b": "a_b", "a/b": "a_b_2", "A_b": "A_b_3", "clk": "clk_2", "a_b_2": "a_b_2_2"}


def convolution(b: Builder, x: str, name: str) -> str:
    weights = b.weights(np.arange(-4, 5).reshape(3, 3, 1, 1) % 7 - 3, 0.25)
    return b.requantize(b.node("Conv", x, weights, name=name), 0.5, 128)


def test_nodes_and_values_keep_readable_names(tmp_path):
    """Names as exporters write them: the manifest leads from each to what does its work."""
    b = Builder()
    x = b.requantize(b.input("input:0", [1, 3, 4, 4]), 0.5, 128)
    for name in ("/conv1/Conv", "3", "a.b", "a b", "reg", "Schärfe"):
        x = convolution(b, x, name)
    b.output(b.quantize(b.node("Relu", x), 0.5, 128, name="output/1"))
    hwflow.compile(b.save(tmp_path), "ulx3s_85f").write(tmp_path / "out")
    design = (tmp_path / "out" / "design.v").read_text()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {name: manifest["names"][name] for name in ("/conv1/Conv", "3", "a.b", "a b", "reg", "Schärfe")} == {
        "/conv1/Conv": "conv1_Conv_mvu",
        "3": "n_3_mvu",
        "a.b": "a_b_mvu",
        "a b": "a_b_mvu_2",
        "reg": "reg_mvu",
        "Schärfe": "Scharfe_mvu",
    }
    for instances in manifest["names"].values():
        for instance in instances.split(","):
            assert len(re.findall(rf"^  \w+ (?:#\(.*\) )?{instance} \($", design, re.MULTILINE)) == 1, instance
    ports = [(stream["name"], stream["port"]) for stream in (*manifest["inputs"], *manifest["outputs"])]
    assert ports == [("input:0", "s_axis"), ("output/1", "m_axis")]
    assert all(re.search(rf"\b{port}_tdata\b", design) for _, port in ports)
    assert design.isascii() and "\\" not in design
