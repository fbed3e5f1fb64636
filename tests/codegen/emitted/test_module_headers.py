"""Every module of the emitted Verilog says what it is, with the report's figures, whatever the model's names hold."""

from __future__ import annotations

import json
import re

import onnx

import hwflow
from tests.flow.networks import dense_network

HOSTILE = "*/ endmodule `define wire\n// \\"


def test_modules_and_ports_are_described(tmp_path):
    model = onnx.load(dense_network(tmp_path / "model.onnx", (4, 3, 2)))
    for node in model.graph.node:
        if node.op_type == "Gemm":
            node.name = f"{HOSTILE}{node.name}"
    onnx.save(model, tmp_path / "model.onnx")
    hwflow.compile(tmp_path / "model.onnx", "ulx3s_85f", fps=1000).write(tmp_path / "out")
    text = (tmp_path / "out" / "design.v").read_text()
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    lines = text.splitlines()
    heads = {}
    for number, line in enumerate(lines):
        if found := re.match(r"module (\w+)", line):
            begin = number
            while lines[begin - 1].startswith("//"):
                begin -= 1
            heads[found[1]] = "\n".join(lines[begin:number])
    assert len(heads) > 8 and all(heads.values()), [name for name, head in heads.items() if not head]
    layers = {layer["name"]: layer for layer in report["layers"]}
    instances = {name: instance for name, instance in manifest["names"].items() if "," not in instance}
    checked = 0
    for name, instance in instances.items():
        head = heads[f"hwflow_top__{instance}"]
        layer = next((layer for layer in layers.values() if name in layer["onnx_nodes"]), None)
        if layer is None:
            continue
        checked += 1
        assert head.startswith(f"// {instance}: {layer['op']} of the ONNX node")
        frame, latency = layer["initiation_interval"], layer["latency"]
        assert re.search(rf"A frame takes {frame:,} cycles?; latency {latency} cycles?\.", head), head
    assert checked >= 3
    hostile = next(instance for name, instance in instances.items() if HOSTILE in name)
    assert r"*/ endmodule `define wire\n// \\" in heads[f"hwflow_top__{hostile}"]
    stream = r"  (?:input|output) .*\b(?:\w+__(?:payload|valid|ready)|\w+_axis_t\w+);"
    ports = [line for line in lines if re.match(stream, line)]
    assert len(ports) > 20 and all("  // " in line for line in ports)
    assert text.isascii() and "`define" not in re.sub("(?m)//.*$", "", text)
    assert hwflow.simulate(tmp_path / "out", frames=2, simulator="icarus").ok
