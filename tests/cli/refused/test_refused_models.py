"""Models that are refused: exit codes and whole messages, and that nothing is left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import models
from tests.cli.refused.refusals import DIGITS, EXPORT, READING, error, refused, synth


@pytest.mark.parametrize(
    ("make", "message", "remedy"),
    [
        (lambda p: None, "the model file must exist, but there is no such file", "check the path"),
        (lambda p: p.write_bytes(b""), "the model file must hold an ONNX model, but it is empty", EXPORT),
        (
            lambda p: p.write_text("hello\n"),
            "the model file must hold an ONNX model, but it is not a protobuf message",
            EXPORT,
        ),
        (
            lambda p: p.mkdir(),
            "the model must be a file, not a folder",
            "give the path of the .onnx file in the folder",
        ),
    ],
    ids=["missing", "empty", "text", "folder"],
)
def test_no_model(hwflow, tmp_path, make, message, remedy):
    make(tmp_path / "m.onnx")
    finding = error("file 'm.onnx'", message, "model-file", remedy)
    code = 1 if (tmp_path / "m.onnx").exists() else 2
    refused(synth(hwflow, "m.onnx"), code, finding)
    ran = hwflow("check", "m.onnx")
    assert (ran.code, ran.out, ran.err) == (code, finding + "m.onnx: 1 error, 0 warnings\n", "")
    ran = hwflow("check", "m.onnx", "--format", "json")
    assert (ran.code, ran.err) == (code, "")
    row = {"clause": "model-file", "severity": "error", "where": "file 'm.onnx'", "message": message, "remedy": remedy}
    assert json.loads(ran.out) == {"findings": [row], "errors": 1, "warnings": 0, "remarks": 0}


def test_unsupported_operators_are_named_all_at_once(hwflow, tmp_path):
    models.unsupported(tmp_path / "m.onnx")
    drawn, export = ": it draws random numbers", "export the model for inference, or feed them as an input"
    see = "see 'hwflow ops' for the supported ones; replace the node or leave it out"
    findings = [
        error(
            f"node '{name}' ({op})",
            f"operator must be one that hwflow supports, not {op}{why}",
            "supported-operator",
            remedy,
        )
        for name, op, why, remedy in (
            ("wave", "Bernoulli", drawn, export), ("determinant", "Det", "", see),
            ("ripple", "Bernoulli", drawn, export),
        )
    ]
    refused(synth(hwflow, "m.onnx"), 1, *findings)
    unsupported = "".join(findings).replace("error: node", "unsupported: node")
    assert hwflow("check", "m.onnx").out == unsupported + "m.onnx: 0 errors, 3 unsupported, 0 warnings\n"


def test_a_float_model(hwflow, tmp_path):
    models.floating(tmp_path / "m.onnx")
    ran = synth(hwflow, "m.onnx")
    first = "error: model 'm': the model must be quantized (QDQ, QOperator or QONNX), not hold float operators only"
    assert ran.err.startswith(f"{READING}{first} [quantized-model]\n  remedy: quantize the model first")
    assert (ran.code, ran.err.count("error: ")) == (1, 1)


@pytest.mark.parametrize("command", ["check", "synth", "sim", "compare"])
def test_a_trusted_folder_that_is_none(hwflow, tmp_path, command):
    models.relu(tmp_path / "m.onnx")
    board = ["--board", "icebreaker"] if command == "synth" else []
    ran = hwflow(command, "m.onnx", *board, "--trust", "nowhere")
    assert (ran.code, ran.out) == (2, "")
    assert "argument --trust: must be a folder, not 'nowhere'" in ran.err


def test_a_good_model_has_no_findings(hwflow):
    """But for its attributes, which have no doc_string."""
    ran = hwflow("check", DIGITS, "--format", "json")
    assert (ran.code, json.loads(ran.out)) == (0, {"findings": [], "errors": 0, "warnings": 0, "remarks": 1})


def test_dimensions(hwflow, tmp_path):
    models.relu(tmp_path / "m.onnx", ("N", 4, "width"))
    unbound = error(
        "input 'x'", "dimension variable 'width' (axis 2) must have a size, but the model leaves it open", "dimensions",
        "give its size with --dim width=VALUE",
    )
    refused(synth(hwflow, "m.onnx"), 1, unbound)
    unknown = error(
        "option --dim height=3",
        "--dim must name a dimension variable of the model's inputs, not 'height'",
        "dimensions",
        "the variables there are: 'width'",
    )
    refused(synth(hwflow, "m.onnx", "--dim", "width=2", "--dim", "height=3"), 1, unknown)
    frames = error(
        "input 'x'", "dimension variable 'N' counts frames, which are processed one at a time: it must be 1, not 3",
        "dimensions", "leave out --dim N=3",
    )
    refused(synth(hwflow, "m.onnx", "--dim", "width=2", "--dim", "N=3"), 1, frames)
    for option in ("width", "width=", "=3", "width=0", "width=-1", "width=x", "width=²"):
        usage = error(
            "option --dim", f"must be NAME=VALUE with VALUE at least 1, not '{option}'", "dimension-option",
            "for example --dim N=1",
        )
        refused(synth(hwflow, "m.onnx", "--dim", option), 2, usage, before="")
    simulated = ("sim", "m.onnx", "--simulator", "icarus", "--frames", 2, "--dim", "width=2")
    assert hwflow(*simulated).code == 0
    assert synth(hwflow, "m.onnx", "--dim", "width=2", board="icebreaker").code == 0
    fixed = error(
        "option --dim", "must belong to a model, but 'out' is an output folder, whose sizes are fixed",
        "dimension-option", "leave it out",
    )
    ran = hwflow("sim", "out", "--dim", "width=2")
    assert (ran.code, ran.out, ran.err) == (2, "", fixed)
    models.relu(tmp_path / "odd.onnx", ("N", 4, "-a=b"))
    assert hwflow("check", "odd.onnx", "--dim=-a=b=2").code == 0
    assert json.loads(Path("out/manifest.json").read_text())["dimensions"] == {"width": 2}
    ran = hwflow("sim", "out", "--simulator", "icarus", "--frames", 2, "--seed", 1, "--format", "json")
    assert (ran.code, json.loads(ran.out)["mismatches"]) == (0, 0)
