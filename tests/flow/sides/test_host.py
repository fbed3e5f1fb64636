"""From the model's own inputs to its own outputs: prefix.onnx, the core and suffix.onnx, as the manifest says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest

from hwflow.api.checking import check
from hwflow.loaded_model import load
from hwflow.verify import golden
from tests.host.networks import Network, branches, classifier, random_frames, real_output
from tests.models import Array

FRAMES = 12


@pytest.fixture(scope="module")
def softmax(tmp_path_factory) -> Path:
    """An emitted classifier, its model and frames with labels beside it."""
    return emitted(tmp_path_factory.mktemp("softmax"), classifier("softmax"))


def emitted(folder: Path, network: Network) -> Path:
    from hwflow.cli import main

    model = network.save(folder / "model.onnx")
    frames = random_frames(network, FRAMES)
    np.savez(folder / "inputs.npz", **frames, label=np.arange(FRAMES) % 5)
    assert main(["synth", str(model), "--board", "ulx3s_85f", "--until", "verilog", "-o", str(folder / "out")]) == 0
    return folder / "out"


def reference(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    evaluator = onnx.reference.ReferenceEvaluator(model)
    names = [i.name for i in model.graph.input]
    return dict(zip(evaluator.output_names, evaluator.run(None, {n: feeds[n] for n in names}), strict=True))


def test_the_models_outputs_come_out(hwflow, softmax, tmp_path):
    """Scales are powers of two, so that the evaluator's floats are exact up to Softmax."""
    given = np.load(softmax / "inputs.npz")
    expected = reference(onnx.load(softmax / "model.onnx"), given)["probabilities"]
    ran = hwflow("sim", softmax, "--output", tmp_path / "y.npz", "--stall", "0.3", "--seed", 2)
    assert ran.code == 0, ran.err
    with np.load(tmp_path / "y.npz") as written:
        np.testing.assert_array_equal(written["probabilities"], expected)
    right = 100 * (expected.argmax(axis=1) == given["label"]).mean()
    assert ran.out.splitlines()[-1] == f"accuracy against the labels: {right:.2f} %"
    assert f"  frame 1: {' '.join(f'{v:.6g}' for v in expected[1].tolist())}; greatest: " in ran.out


def test_a_class_is_the_models_own(hwflow, tmp_path):
    out = emitted(tmp_path, classifier("arg_max"))
    given = np.load(out / "inputs.npz")
    expected = reference(onnx.load(out / "model.onnx"), given)["class"][:5]
    ran = hwflow("sim", out, "--simulator", "icarus", "--frames", 5)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    start = lines.index("output 'class' (int64 [])")
    assert lines[start + 1 : start + 4] == [f"  frame {n}: {expected[n]}; label: {n}" for n in range(3)]
    assert lines[-1] == f"accuracy against the labels: {100 * (expected == np.arange(5)).mean():.2f} %"


@pytest.mark.parametrize(
    ("name", "network"),
    [("softmax", None), ("branches", branches()), ("sums", real_output()), ("shares", real_output(softmax=True))],
)
def test_a_host_needs_the_folder_only(softmax, tmp_path, name, network):
    """What the files and the manifest say, put together without hwflow but for the core's own arithmetic."""
    out = softmax if network is None else emitted(tmp_path, network)
    manifest = json.loads((out / "manifest.json").read_text())
    host = manifest["host"]
    told = json.loads((out / "report.json").read_text())["host"]
    parts = {part: [] if host[part] is None else host[part]["nodes"] for part in ("prefix", "suffix")}
    assert {part: told[part] for part in parts} == parts
    assert (told["macs"], told["share"]) == (0, 0.0)
    assert {row["name"] for row in told["nodes"]} == {*parts["prefix"], *parts["suffix"]}
    for part in ("prefix", "suffix"):
        assert (out / f"{part}.onnx").exists() == (host[part] is not None)
        if host[part] is not None:
            assert [f for f in check(out / host[part]["file"]) if f.severity == "error"] == []

    feeds = dict(np.load(out / "inputs.npz"))
    there = feeds | reference(onnx.load(out / host["prefix"]["file"]), feeds)
    core = load(out / "model.onnx").quantized
    assert all(t["conversion"] == "none" for t in host["prefix"]["outputs"])
    integers = golden.evaluate(core, {p.name: there[p.value.origin].astype(np.int64) for p in core.inputs})
    whole = reference(onnx.load(out / "model.onnx"), feeds)
    if host["suffix"] is None:
        assert name == "sums"
        for port in manifest["outputs"]:
            array = integers[port["name"]]
            shape = [-1 if axis == port["axis"] + 1 else 1 for axis in range(array.ndim)]
            scale, zero_point = (np.array([*map(Fraction, port[k])]).reshape(shape) for k in ("scale", "zero_point"))
            np.testing.assert_array_equal((scale * (array - zero_point)).astype(np.float32), whole[port["name"]])
        return
    for tensor in host["suffix"]["inputs"]:
        if "port" in tensor:
            there[tensor["name"]] = converted(tensor, integers[tensor["name"]])
        assert there[tensor["name"]].dtype == tensor["type"] and there[tensor["name"]].shape[1:] == (*tensor["shape"],)
    for output, array in reference(onnx.load(out / host["suffix"]["file"]), there).items():
        np.testing.assert_array_equal(array, whole[output])


def converted(tensor: Mapping[str, Any], integers: Array) -> Array:
    if tensor["conversion"] == "none":
        return integers.astype(tensor["type"])
    shape = tensor["broadcast"]
    scale, zero_point = (
        np.array([Fraction(v) for v in tensor[key]], dtype=object).reshape(shape) for key in ("scale", "zero_point")
    )
    assert prod(shape) == len(tensor["scale"]) == len(tensor["zero_point"])
    assert tensor["scale_float"] == [float(Fraction(s)) for s in tensor["scale"]]
    assert tensor["zero_point_float"] == [float(Fraction(z)) for z in tensor["zero_point"]]
    return (scale * (integers - zero_point)).astype(np.float64).astype(tensor["type"])
