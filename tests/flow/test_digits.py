"""examples/digits for the ULX3S: what is emitted, what tools say about it, what it computes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from functools import reduce
from math import prod
from operator import or_
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import numpy_helper

from hwflow.cores.verilog_names import KEYWORDS
from hwflow.toolchain.icarus import ICARUS
from hwflow.toolchain.verilator import VERILATOR
from tests.flow.conftest import DIGITS, ROOT
from tests.rewritten import accept_changes

# By hand: 8x8 pixels x 8 channels x 3x3x1, 4x4 x 16 x 3x3x8, 64 x 10.
MACS = {"conv1_mvu": 64 * 8 * 9, "conv2_mvu": 16 * 16 * 72, "dense_mvu": 64 * 10}


@pytest.fixture(scope="module")
def initializers() -> dict[str, np.ndarray]:
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(DIGITS).graph.initializer}


@pytest.fixture
def manifest(digits):
    return json.loads((digits / "manifest.json").read_text())


@pytest.fixture
def report(digits):
    return json.loads((digits / "report.json").read_text())


def operand(initializers, node: str, position: int) -> np.ndarray:
    """The constant at an input of a node, through a DequantizeLinear."""
    graph = onnx.load(DIGITS).graph
    name = next(n for n in graph.node if n.name == node).input[position]
    while name not in initializers:
        name = next(n for n in graph.node if name in n.output).input[0]
    return initializers[name]


# --- what is in the folder -------------------------------------------------------------------------------------------


def test_the_folder(digits):
    assert {p.name for p in digits.iterdir()} == {
        "design.v", "weights", "manifest.json", "report.json", "model.onnx", "inputs.npz", "host", "testbench", "board",
        "prefix.onnx", "suffix.onnx", "made_from.json", "dataflow.json", "report.html",
    }
    assert (digits / "model.onnx").read_bytes() == DIGITS.read_bytes()
    assert (digits / "inputs.npz").read_bytes() == DIGITS.with_name("inputs.npz").read_bytes()
    assert {p.name for p in (digits / "board").iterdir()} >= {
        "board.json",
        "top.il",
        "top.lpf",
        "top.v",
        "simulation.v",
    }
    assert digits.stat().st_mode & 0o777 == 0o777 & ~umask()
    assert [p.name for p in digits.parent.iterdir()] == ["out"]  # nothing temporary beside it


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_manifest(digits, manifest, initializers):
    inputs, outputs = manifest.pop("inputs"), manifest.pop("outputs")
    names = manifest.pop("names")
    weights = manifest.pop("weights")
    timing = manifest.pop("timing")
    host = manifest.pop("host")
    assert [stream["stream"] for stream in manifest.pop("streams")][:1] == ["image_quantized"]
    expected = {
        "layers": {"source": "testbench/layers.v", "top": "hwflow_layers"},
        "format": 1, "top": "hwflow_top", "model": "digits", "clock": "clk", "reset": "rst", "error": "error",
        "sources": ["design.v"], "board": "ulx3s_85f", "dimensions": {}, "input_types": {},
    }
    assert {key: manifest[key] for key in expected} == expected
    scale = Fraction(float(initializers["image_scale"]))
    assert host["prefix"] == {
        "file": "prefix.onnx",
        "nodes": ["image_quantize"],
        "inputs": [{"name": "image", "type": "float32", "shape": [1, 8, 8]}],
        "outputs": [
            {
                "name": "image_quantized", "type": "uint8", "shape": [1, 8, 8], "conversion": "none",
                "port": "s_axis", "scale": [str(scale)], "zero_point": ["78/1"], "scale_float": [float(scale)],
                "zero_point_float": [78.0], "broadcast": [], "range": [0, 255],
            }
        ],
    }
    assert host["suffix"] == {
        "file": "suffix.onnx",
        "nodes": ["dense_dequantize"],
        "inputs": [
            {
                "name": "dense_quantized", "type": "uint8", "shape": [10], "conversion": "none", "port": "m_axis",
                "scale": ["1/1"], "zero_point": ["0/1"], "scale_float": [1.0], "zero_point_float": [0.0],
                "broadcast": [], "range": [0, 255],
            }
        ],
        "outputs": [{"name": "logits", "type": "float32", "shape": [10]}],
    }
    assert {p.name for p in (digits / "weights").iterdir()} == {Path(w).name for w in weights}
    assert all(w.startswith("weights/") and w.endswith(".mem") for w in weights)

    (image,), (codes,) = inputs, outputs
    keys = {
        "name", "port", "value", "pixels", "channels", "lanes", "beats", "element", "element_bytes", "shape", "order",
        "scale", "zero_point", "axis",
    }
    assert set(image) == set(codes) == keys
    assert (image["name"], image["port"], image["shape"]) == ("image", "s_axis", [1, 8, 8])
    assert (image["pixels"], image["channels"], image["lanes"], image["beats"]) == (64, 1, 1, 64)
    assert (codes["name"], codes["port"], codes["shape"]) == ("dense_quantized", "m_axis", [10])
    assert (codes["pixels"], codes["channels"], codes["lanes"], codes["beats"]) == (1, 10, 1, 10)
    for stream in (image, codes):
        assert stream["element"] == {"width": 8, "signed": False}
        assert stream["element_bytes"] == 1
        assert stream["order"] == list(range(prod(stream["shape"])))  # one channel, or one pixel: nothing to permute
    last = next(node for node in onnx.load(DIGITS).graph.node if node.name == "dense_dequantize")
    scale, zero_point = (initializers[name] for name in last.input[1:])  # which the host's last node has, too
    assert (codes["scale"], codes["zero_point"]) == ([str(Fraction(float(scale)))], [f"{int(zero_point)}/1"])

    assert set(timing) == {"initiation_interval", "latency", "frames", "last_output"}
    assert timing["frames"] == len(timing["last_output"])
    assert set(np.diff(timing["last_output"])) == {timing["initiation_interval"]}
    design = (digits / "design.v").read_text()
    for instance in ",".join(names.values()).split(","):
        # Its own, in a chain maybe, or one of all that are alike.
        module = rf"hwflow_top__((\w+__)?{instance}|fifo__\w+|width_converter__\w+)"
        assert re.search(rf"^  {module} (#\(.*\) )?{instance} \($", design, re.MULTILINE), instance
    assert {"conv1", "pool1", "conv2", "pool2", "dense", "relu1_quantize", "relu2_quantize"} <= set(names)


def test_the_report(digits, report, manifest, initializers):
    keys = [
        "model",
        "board",
        "device",
        "toolchain",
        "clock",
        "timing",
        "resources",
        "multipliers",
        "multiplier_utilization",
        "layers",
        "fifos",
        "memories",
        "exactness",
        "larger_design",
        "host",
        "seconds",
    ]
    assert [key for key in report if key in keys] == keys
    parameters = sum(operand(initializers, node, i).size for node in ("conv1", "conv2", "dense") for i in (1, 2))
    assert parameters == 1864 + 34
    sha256 = hashlib.sha256((digits / "model.onnx").read_bytes()).hexdigest()
    assert report["model"] == {
        "name": "digits", "ir_version": 8, "opset": 19, "parameters": parameters, "macs": sum(MACS.values()),
        "macs_without_padding": report["model"]["macs_without_padding"], "sha256": sha256, "external_sha256": {},
    }
    assert (report["board"], report["device"], report["toolchain"]) == ("ulx3s_85f", "LFE5U-85F", "trellis")
    assert report["clock"] == {"target_mhz": 125.0, "fmax_mhz": None}
    interval = report["timing"]["initiation_interval"]
    assert report["timing"] == {
        "initiation_interval": manifest["timing"]["initiation_interval"],
        "latency": manifest["timing"]["latency"],
        "frames_per_second": 125e6 / interval,
    }
    # 23,680 multiply-accumulates on 156 multiplier blocks take 152 cycles at least; some of look-up tables come on top.
    assert interval < 152
    assert set(report["resources"]) == {"lut", "ff", "dsp", "bram"}
    available = {"lut": 83_640, "ff": 83_640, "dsp": 156, "bram": 208}
    for name, row in report["resources"].items():
        assert set(row) == {"predicted", "synthesized", "available", "glue"}
        assert row["synthesized"] is row["glue"] is None and row["available"] == available[name]
        assert 0 < row["predicted"] <= row["available"]
    nodes = [("image_quantize", "QuantizeLinear"), ("dense_dequantize", "DequantizeLinear")]
    assert report["host"] == {
        "prefix": ["image_quantize"], "suffix": ["dense_dequantize"], "macs": 0, "share": 0.0,
        "nodes": [{"name": name, "op": op, "macs": 0} for name, op in nodes],
    }
    assert list(report["seconds"]) == ["import", "schedule", "verilog", "synthesis", "place_route"]
    assert report["seconds"]["synthesis"] is None and report["seconds"]["place_route"] is None
    assert all(0 < report["seconds"][step] < 60 for step in ("import", "schedule", "verilog"))


def test_the_reports_layers(report, manifest):
    keys = {
        "name", "op", "onnx_nodes", "folding", "initiation_interval", "latency", "macs", "macs_without_padding",
        "multipliers",
        "accumulator_bits", "requantizer", "rounds", "instance", "resources",
    }
    layers = {layer["name"]: layer for layer in report["layers"]}
    assert all(set(layer) == keys for layer in layers.values())
    assert {name: layer["macs"] for name, layer in layers.items() if layer["macs"]} == MACS
    # Each 3x3 kernel reaches over the image's edges: of 24 x 24 taps of rows and columns 22 x 22, of 12 x 12 10 x 10.
    data = {"conv1_mvu": 8 * 22 * 22, "conv2_mvu": 16 * 8 * 10 * 10, "dense_mvu": 640}
    interval = report["timing"]["initiation_interval"]
    assert max(layer["initiation_interval"] for layer in layers.values()) == interval
    for name, pixels, rows, columns, channels in (
        ("conv1_mvu", 64, 8, 9, 1), ("conv2_mvu", 16, 16, 72, 8), ("dense_mvu", 1, 10, 64, 16),
    ):
        folding = layers[name]["folding"]
        pe, simd = folding["pe"], folding["simd"]
        by_vector, by_pixel = -(-columns // simd), columns // channels * -(-channels // simd)
        steps = pixels * (by_pixel if simd <= channels and not folding["whole_vector"] else by_vector)
        if folding["clipped"]:
            steps = data[name] // rows // channels * -(-channels // simd)
        assert layers[name]["initiation_interval"] == -(-rows // pe) * steps
        assert layers[name]["multipliers"] == pe * simd
        assert layers[name]["onnx_nodes"] == [name.removesuffix("_mvu")]
    kinds = {kind: row["multipliers"] for kind, row in report["multipliers"].items()}
    assert kinds["xnor"] == 0 and sum(layers[name]["multipliers"] for name in MACS) + kinds["requantizer"] == sum(
        kinds.values()
    )
    assert kinds["requantizer"] == report["resources"]["dsp"]["predicted"] - kinds["block"]
    assert {name: layers[name]["macs_without_padding"] for name in MACS} == data
    assert report["model"]["macs_without_padding"] == sum(data.values())
    able = kinds["block"] + kinds["lut"] + kinds["requantizer"]
    made = sum(data[name] for name in MACS if layers[name]["folding"]["multiplier"] != "shift_add")
    assert report["multiplier_utilization"] == pytest.approx(made / (interval * able))
    for fifo in report["fifos"]:
        assert set(fifo) == {"name", "width", "depth", "bits", "style", "beats_per_frame"}
        assert fifo["width"] > 0 and fifo["depth"] > 0 and fifo["bits"] == fifo["width"] * fifo["depth"]
        assert fifo["style"] in (("register",) if fifo["depth"] <= 4 else ("lutram", "block"))
    assert sum(fifo["width"] == 8 and fifo["beats_per_frame"] == 64 for fifo in report["fifos"]) >= 1  # the image


def test_the_reports_memories(digits, report, initializers):
    memories = report["memories"]
    kinds = {kind: [m for m in memories["list"] if m["kind"] == kind] for kind in ("fifo", "line_buffer", "table")}
    for kind, found in kinds.items():
        assert memories[f"{kind}_bits"] == sum(m["words"] * m["width"] for m in found)
    assert [m["name"] for m in kinds["fifo"]] == [fifo["name"] for fifo in report["fifos"]]
    assert memories["block_rams"] == report["resources"]["bram"]["predicted"]
    for memory in memories["list"]:
        if memory["storage"] == "block":
            words, bits = memory["shape"]
            assert words * bits in (16384, 18432)  # a DP16KD, without and with its ninth bits
            empty = memory["block_rams"] * words * bits - memory["bits"]
            if memory["kind"] == "fifo":
                empty += memory["width"]  # a register
            if memory["kind"] == "table":  # bits that never change take no place
                rows = [int(row, 16) for row in (digits / "weights" / f"{memory['name']}.mem").read_text().split()]
                changing = reduce(or_, (row ^ rows[0] for row in rows)).bit_count()
                empty += memory["words"] * (memory["width"] - changing)
            assert memory["waste_bits"] == empty
        else:
            assert memory["block_rams"] == 0 and memory["shape"] is None
    parameters = sum(initializers[f"{layer}_weight_quantized"].size for layer in ("conv1", "conv2", "dense"))
    assert 1 <= memories["weight_bits"] / parameters <= 8 * 1.5  # no weight has more than 8 bits; surplus lanes


def test_the_reports_exactness(report, initializers):
    """Accumulators: integer weights times the codes each input channel can have, over every input there can be."""
    found = {r["name"]: r for r in report["exactness"]["requantizers"]}
    assert report["exactness"]["proved"] == len(found) == 3
    layers = {layer["name"]: layer for layer in report["layers"]}
    for name, layer in layers.items():
        assert (layer["requantizer"] is not None) == (name in found)
        if name in found:  # scales of float32, no ties: lines with a rising slope
            shape = {k: layer["requantizer"][k] for k in ("form", "multiplier_signed", "rounding", "proved")}
            assert shape == {
                "form": "multiply-add-shift", "multiplier_signed": False, "rounding": "floor", "proved": True,
            }  # fmt: skip
            for key in ("form", "multiplier_bits", "addend_bits", "shift"):
                assert layer["requantizer"][key] == found[name][key]
    scales = {name: Fraction(float(initializers[f"{name}_scale"])) for name in ("image", "relu1", "relu2")}
    most = [255]  # greatest code of each input channel; the least is 0
    for node, source, result in (("conv1", "image", "relu1"), ("conv2", "relu1", "relu2"), ("dense", "relu2", None)):
        weights = operand(initializers, node, 1).astype(int)
        weights = weights.reshape(len(weights), len(most) if node != "dense" else 64, -1)
        codes = np.array(most if node != "dense" else np.repeat(most, 4))[None, :, None]  # 2x2 pixels per channel
        low, high = ((f(weights, 0) * codes).sum(axis=(1, 2)) for f in (np.minimum, np.maximum))
        requantizer = found[f"{result or 'dense'}_quantize"]
        assert requantizer["input_interval"] == [low.min(), high.max()]
        assert requantizer["output_interval"] == [0, 255]
        bits = next(n for n in range(1, 64) if -(1 << (n - 1)) <= low.min() and high.max() < 1 << (n - 1))
        assert layers[f"{node}_mvu"]["accumulator_bits"] == bits
        if result is not None:
            zero_point = 78 if node == "conv1" else 0
            scale = [scales[source] * Fraction(float(s)) / scales[result] for s in operand_scale(initializers, node)]
            top = high - zero_point * weights.sum(axis=(1, 2)) + operand(initializers, node, 2)
            most = [min(255, round(int(q) * s)) for q, s in zip(top, scale, strict=True)]  # round: half to even
            assert min(most) > 0


def operand_scale(initializers, node: str) -> np.ndarray:
    """Scale of each channel of a node's weights."""
    graph = onnx.load(DIGITS).graph
    weight = next(n for n in graph.node if n.name == node).input[1]
    return initializers[next(n for n in graph.node if weight in n.output).input[1]]


# --- what tools say --------------------------------------------------------------------------------------------------


def test_names_are_plain(digits):
    text = (digits / "design.v").read_text()
    assert text.isascii()
    assert "\\" not in text  # an escaped identifier
    code = re.sub(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"', "", text, flags=re.DOTALL)
    checks = {"$fopen", "$fscanf", "$fclose", "$display", "$finish_and_return", "$fatal"}  # of a table's file
    assert set(re.findall(r"\$\w*", code)) <= {"$signed", "$unsigned", "$readmemh", *checks}
    # of a thousand wires that synthesis numbers, those that carry nothing that is read
    assert len(re.findall(r"(?m)^  wire .*\b_\d+_;", code)) < 10
    declared = set(re.findall(r"\b(?:wire|reg|module)\b(?:\s+signed)?(?:\s*\[[^]]*\])?\s+(\w+)", code))
    assert len(declared) > 300
    assert not declared & KEYWORDS
    top = text[text.index("module hwflow_top(") :]
    ports = set(re.findall(r"\w+", top[top.index("(") : top.index(")")]))
    axis = {f"{side}_axis_t{pin}" for side in "sm" for pin in ("data", "valid", "ready", "last")}
    assert ports == {"clk", "rst", "error"} | axis


def test_the_list_of_keywords_is_whole():
    # IEEE 1800-2017, annex B has 248; a few from each of its predecessors
    assert len(KEYWORDS) == 248
    assert {"before", "checker", "uwire", "always_ff", "nettype", "s_until_with", "showcancelled"} <= KEYWORDS


def lint(design: Path) -> str:
    """Verilator's warnings with our waivers."""
    found = VERILATOR.find()
    waivers = ROOT / "sim" / "verilator" / "waivers.vlt"
    done = subprocess.run(
        [*found.command, "--lint-only", "-Wall", "--quiet", "--top-module", "hwflow_top", str(waivers), "design.v"],
        cwd=design, env={**os.environ, **found.environment}, capture_output=True, text=True, check=False,
    )
    return done.stderr if done.returncode else ""


def test_verilator_has_nothing_to_say(digits):
    assert lint(digits) == ""


def test_waivers_are_few_and_have_a_reason():
    lines = (ROOT / "sim" / "verilator" / "waivers.vlt").read_text().splitlines()
    rules = [i for i, line in enumerate(lines) if line.startswith("lint_off")]
    assert len(rules) <= 6
    for i in rules:
        assert lines[i - 1].startswith("// ") and " -rule " in lines[i]


def test_icarus_compiles_verilog_2005_without_a_warning(digits, tmp_path):
    command = [*ICARUS.find().command, "-g2005", "-Wall", "-s", "hwflow_top", "-o", str(tmp_path / "x.vvp"), "design.v"]
    done = subprocess.run(command, cwd=digits, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_synthesis(hwflow, tmp_path):
    """yosys reads the very file that is simulated; what it counts is what was predicted. Tens of multiplier blocks are
    enough for that, and take a third of the time that all would."""
    out = tmp_path / "netlist"
    ran = hwflow("synth", DIGITS, "--board", "ulx3s_85f", "--fps", 200_000, "--until", "netlist", "-o", out)
    assert ran.code == 0, ran.err
    steps = ran.err.splitlines()[-2:]
    assert steps[0].startswith("synthesis: yosys ") and steps[1].startswith("registers: ")
    report = json.loads((out / "report.json").read_text())
    log = (out / "board" / "synthesis.log").read_text()
    assert "Executing ABC9 pass" in log
    assert not [line for line in log.splitlines() if line.startswith("Warning") and "abc" not in line.lower()]
    for name in ("dsp", "bram"):
        assert report["resources"][name]["predicted"] == report["resources"][name]["synthesized"] > 0, name
    for name in ("lut", "ff"):
        row = report["resources"][name]
        assert row["synthesized"] == pytest.approx(row["predicted"], rel=0.1), name
    cores = report["layers"]
    for name, row in report["resources"].items():
        predicted, synthesized = (sum(c["resources"][name][k] for c in cores) for k in ("predicted", "synthesized"))
        assert (predicted, synthesized + row["glue"]) == (row["predicted"], row["synthesized"]), name
        assert 0 <= row["glue"] < 40, name
        rows = [core["resources"][name] for core in cores]
        apart = sum(abs(each["predicted"] - each["synthesized"]) for each in rows)
        assert apart <= (0 if name in ("dsp", "bram") else 0.15 * row["synthesized"]), name  # registers at borders
    assert report["clock"] == {"target_mhz": 125.0, "fmax_mhz": None}
    assert report["seconds"]["synthesis"] > 0 and report["seconds"]["place_route"] is None
    assert (out / "board" / "top.json").is_file() and not (out / "board" / "top.bit").exists()
    for name in ("lut", "ff", "dsp", "bram"):
        row = next(line.split("\t") for line in ran.out.splitlines() if line.startswith(f"{name}\t"))
        assert row[1:] == [str(report["resources"][name][key]) for key in ("predicted", "synthesized", "available")]


# --- what it computes ------------------------------------------------------------------------------------------------


def table(ran) -> dict:
    return json.loads(ran.out)


def test_every_frame_is_right_and_on_time(hwflow, digits, manifest):
    ran = hwflow("sim", digits, "--format", "json")
    assert ran.code == 0, ran.err
    timing = manifest["timing"]
    measured = table(ran)
    expected = {
        "mismatches": 0, "initiation_interval": timing["initiation_interval"], "latency": timing["latency"],
    }
    assert {"frames": 360, "simulator": "verilator", "expected": expected, **expected}.items() <= measured.items()
    assert (measured["verdict"], measured["stall"], measured["findings"]) == ("equal", 0, [])
    assert measured["accuracy"] == pytest.approx(0.9833, abs=1e-4)
    # the first input beat is in cycle 0; later frames follow at the interval
    assert (
        measured["cycles"] == timing["last_output"][-1] + (360 - timing["frames"]) * timing["initiation_interval"] + 1
    )


def test_the_verdict_as_text(hwflow, digits, report):
    ran = hwflow("sim", digits, "--frames", 12, "--seed", 7)
    assert ran.code == 0
    assert ran.err.splitlines() == ["golden model", "simulating 12 frames with verilator"]
    rows = [" ".join(line.split("\t")) for line in ran.out.splitlines()]
    assert "frames 12 12 right" in rows
    interval = report["timing"]["initiation_interval"]
    assert f"initiation interval (cycles) {interval} {interval}" in rows
    assert "verdict equal equal" in rows
    assert any(row.startswith(f"simulator verilator, inputs {digits}/inputs.npz, stall 0, seed 7, ") for row in rows)


def test_the_outputs_are_the_models(hwflow, digits, tmp_path):
    """In its own terms: reals by its own name, as onnx's evaluator makes them of the same images."""
    ran = hwflow("sim", digits, "--output", tmp_path / "y.npz")
    assert ran.code == 0, ran.err
    given = np.load(digits / "inputs.npz")
    (expected,) = onnx.reference.ReferenceEvaluator(onnx.load(DIGITS)).run(None, {"image": given["input"]})
    with np.load(tmp_path / "y.npz") as written:
        assert written.files == ["logits"]
        logits = written["logits"]
    assert (logits.dtype, logits.shape) == (np.float32, (360, 10))
    # float convolutions round a few values in the middle between two integers to the other one
    assert (np.abs(logits - expected) > 1e-4).mean() < 0.01
    right = (logits.argmax(axis=1) == given["label"]).mean()
    lines = ran.out.splitlines()
    assert lines[-1] == f"accuracy against the labels: {100 * right:.2f} %"
    shown = lines[lines.index("output 'logits' (float32 [10])") + 1]
    values = " ".join(f"{v:.6g}" for v in logits[0].tolist())
    assert shown == f"  frame 0: {values}; greatest: {logits[0].argmax()}; label: {given['label'][0]}"


def test_a_wrong_design_has_no_outputs(hwflow, digits_copy, tmp_path):
    flip(digits_copy / "weights" / "dense_mvu_weights.mem", 0)
    accept_changes(digits_copy)
    ran = hwflow("sim", digits_copy, "--output", tmp_path / "y.npz")
    assert ran.code == 1
    assert "logits' (" not in ran.out and not (tmp_path / "y.npz").exists()


@pytest.mark.parametrize("seed", [1, 2])
def test_stalls_change_nothing(hwflow, digits, seed):
    ran = hwflow("sim", digits, "--stall", "0.4", "--seed", seed, "--format", "json")
    assert ran.code == 0, ran.err
    assert (table(ran)["frames"], table(ran)["mismatches"]) == (360, 0)


def test_icarus_agrees_and_writes_a_waveform(hwflow, digits, manifest, tmp_path):
    wave = tmp_path / "wave.fst"
    ran = hwflow("sim", digits, "--simulator", "icarus", "--format", "json", "--wave", wave)
    assert ran.code == 0, ran.err
    timing = manifest["timing"]
    assert {
        "frames": 4, "mismatches": 0, "cycles": timing["last_output"][3] + 1,
        "initiation_interval": timing["initiation_interval"], "latency": timing["latency"], "simulator": "icarus",
    }.items() <= table(ran).items()
    assert wave.stat().st_size > 10_000


def test_icarus_with_stalls(hwflow, digits):
    ran = hwflow(
        "sim", digits, "--simulator", "icarus", "--format", "json", "--frames", 3, "--stall", "0.4", "--seed", 3
    )
    assert ran.code == 0, ran.err
    assert (table(ran)["frames"], table(ran)["mismatches"]) == (3, 0)


def flip(path: Path, line: int) -> None:
    """The most significant bit of lane 0's weight, 8 bits of the word's low end, in one line of a memory file."""
    lines = path.read_text().splitlines()
    word = lines[line]
    lines[line] = word[:-2] + f"{int(word[-2], 16) ^ 8:x}" + word[-1]
    path.write_text("\n".join(lines) + "\n")


def test_one_wrong_digit_of_one_weight_is_found(hwflow, digits_copy):
    """A weight of one output changes by 128: no other output, and this one wherever the input is not 0 and the change
    shows after rounding."""
    report = json.loads((digits_copy / "report.json").read_text())
    folding = next(layer["folding"] for layer in report["layers"] if layer["name"] == "dense_mvu")
    simd, pe = folding["simd"], folding["pe"]
    parts = simd <= 16 and not folding["whole_vector"]  # of each of the 4 pixels of 16 channels
    words = 4 * -(-16 // simd) if parts else -(-64 // simd)  # a group of neurons
    output = 3 // pe * pe  # lane 0 of its group of neurons
    file = digits_copy / "weights" / "dense_mvu_weights.mem"
    good = file.read_bytes()
    flip(file, 3 // pe * words)
    assert hwflow("sim", digits_copy).err.count("[changed-file]") == 1  # whatever the frames show
    accept_changes(digits_copy)
    ran = hwflow("sim", digits_copy, "--format", "json")
    assert ran.code == 1
    wrong = table(ran)["mismatches"]
    assert 0 < wrong <= 360
    frame = re.fullmatch(
        rf"error: simulation: {wrong} elements in {wrong} of 360 frames differ; the first: m_axis: frame (\d+), "
        rf"beat \d+, lane \d+, element \[{output}\] of 'dense_quantized': must be \d+, not \d+ \[bit-exact\]\n"
        r"  remedy: if the output folder was changed, run 'hwflow synth' again; else report it\n",
        ran.err.split("verilator\n", 1)[1],
    )
    assert frame, ran.err
    few = hwflow("sim", digits_copy, "--format", "json", "--frames", int(frame.group(1)) + 1)
    assert (few.code, table(few)["mismatches"]) == (1, 1)  # that frame is the first indeed
    file.write_bytes(good)
    accept_changes(digits_copy)
    ran = hwflow("sim", digits_copy)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(("key", "name"), [("latency", "latency"), ("initiation_interval", "initiation interval")])
def test_timing_other_than_predicted_is_found(hwflow, digits_copy, key, name):
    path = digits_copy / "manifest.json"
    manifest = json.loads(path.read_text())
    measured = manifest["timing"][key]
    manifest["timing"][key] += 1
    path.write_text(json.dumps(manifest))
    ran = hwflow("sim", digits_copy, "--frames", 20)
    assert ran.code == 1
    assert ran.err.endswith(
        f"error: simulation: measured {name} must be the predicted {measured + 1} cycles, not {measured} "
        "[exact-timing]\n"
        "  remedy: report this model as a defect of hwflow\n"
    )
    assert "DIFFERENT" in ran.out
    ran = hwflow("sim", digits_copy, "--frames", 20, "--stall", "0.1")  # no promise of timing here
    assert ran.code == 0


@pytest.mark.parametrize(("more", "code"), [(0, 0), (100, 0), (-1, 1)])
def test_a_latency_that_is_not_exact_is_the_most_it_may_be(hwflow, digits_copy, more, code):
    path = digits_copy / "manifest.json"
    manifest = json.loads(path.read_text())
    timing = manifest["timing"]
    measured = timing["latency"]
    timing |= {"latency": measured + more, "last_output": timing["last_output"][:1], "exact": False}
    path.write_text(json.dumps(manifest))
    ran = hwflow("sim", digits_copy, "--frames", 4)
    assert ran.code == code
    assert f"at most {measured + more}" in ran.out
    assert "initiation interval" not in ran.out
    if code:
        assert (
            f"simulation: measured latency must be at most the predicted {measured + more} cycles, not {measured} "
            "[exact-timing]"
        ) in ran.err


def test_the_model_itself_can_be_simulated(hwflow):
    ran = hwflow("sim", DIGITS, "--simulator", "icarus", "--frames", 2, "--format", "json")
    assert ran.code == 0, ran.err
    assert (table(ran)["frames"], table(ran)["mismatches"]) == (2, 0)


def test_the_test_bench_runs_elsewhere_without_hwflow(digits, tmp_path):
    out = shutil.copytree(digits, tmp_path / "some where" / "else", ignore=shutil.ignore_patterns("build"))
    for package in ("hwflow", "hdl_lib", "sim", "amaranth", "onnx", "rich"):
        (tmp_path / "poison" / package).mkdir(parents=True)
        (tmp_path / "poison" / package / "__init__.py").write_text("raise ImportError('must not be needed')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "poison")}

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "testbench/run.py", *options], cwd=out, env=environment, capture_output=True, text=True,
            check=False,
        )

    done = run()
    timing = json.loads((out / "manifest.json").read_text())["timing"]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"PASS: 4 frames, 0 mismatches, {timing['last_output'][3] + 1} cycles, "
        f"initiation interval {timing['initiation_interval']}, latency {timing['latency']} (icarus)\n"
    )
    flip(out / "weights" / "dense_mvu_weights.mem", 0)
    for line in range(1, 32):
        flip(out / "weights" / "dense_mvu_weights.mem", line)
    accept_changes(out)
    done = run("--frames", "2", "--stall", "0.3")
    assert done.returncode == 1
    assert done.stderr.startswith("m_axis: frame 0, beat 0, lane 0, element [0] of 'dense_quantized': must be ")
    assert done.stdout.startswith("FAIL: 2 frames, ")
