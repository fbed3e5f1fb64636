"""`--format json`: one object on stdout with the keys that scripts rely on, whatever the verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hwflow.errors import Finding
from tests.cli import models

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "model.onnx"


def test_check(hwflow, tmp_path):
    models.unsupported(tmp_path / "m.onnx")
    ran = hwflow("check", "m.onnx", "--format", "json")
    table = json.loads(ran.out)
    assert ran.code == 1
    assert set(table) == {"findings", "errors", "warnings", "remarks"}
    # Valid ONNX, though hwflow makes no hardware of it.
    assert (table["errors"], table["warnings"], len(table["findings"])) == (0, 0, 3)
    assert {f["severity"] for f in table["findings"]} == {"unsupported"}
    assert all(set(f) == {"clause", "severity", "where", "message", "remedy"} for f in table["findings"])


def test_sim(hwflow, tmp_path):
    models.relu(tmp_path / "m.onnx")
    ran = hwflow("sim", "m.onnx", "--simulator", "icarus", "--format", "json", "--seed", 1, "--frames", 2)
    table = json.loads(ran.out)
    assert ran.code == 0
    assert set(table) == {
        "frames", "mismatches", "cycles", "initiation_interval", "latency", "simulator", "expected", "verdict",
        "accuracy", "seed", "stall", "inputs", "findings",
    }
    assert (table["frames"], table["mismatches"], table["simulator"]) == (2, 0, "icarus")
    assert (table["verdict"], table["seed"], table["accuracy"], table["findings"]) == ("equal", 1, None, [])
    measured = {name: table[name] for name in ("mismatches", "initiation_interval", "latency")}
    assert table["expected"] == measured


def test_compare(hwflow):
    ran = hwflow("compare", DIGITS, "--frames", 2, "--format", "json")
    table = json.loads(ran.out)
    assert ran.code == 0, ran.err
    assert set(table) == {
        "values", "mismatches", "unexplained", "verdict", "frames", "inputs", "differing_frames", "accuracy",
        "reference_accuracy", "onnxruntime", "findings", "seed",
    }
    assert (table["verdict"], table["frames"], table["findings"]) == ("equal", 2, [])
    assert 0 <= table["accuracy"] <= 1 and 0 <= table["reference_accuracy"] <= 1
    assert all(
        set(value) == {"name", "elements", "mismatches", "unexplained", "max_lsb"} for value in table["values"]
    )
    elements = {value["name"]: value["elements"] for value in table["values"]}
    assert 2 * 10 in elements.values() and 2 * 8 * 64 in elements.values()  # logits, relu1
    assert table["unexplained"] == 0


def test_compare_as_text(hwflow, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    ran = hwflow("compare", DIGITS, "--frames", 2)
    assert ran.code == 0, ran.err
    titles, first, *_ = (line.split("\t") for line in ran.out.splitlines())
    assert titles == ["value", "elements", "mismatches", "unexplained", "max lsb"]
    assert first == ["relu1_quantized", str(2 * 512), "0", "0", "0"]


def test_several_models(hwflow, tmp_path):
    """One model's table is what it is alone, with its name."""
    models.unsupported(tmp_path / "bad.onnx")
    models.relu(tmp_path / "good.onnx")
    alone = json.loads(hwflow("check", "bad.onnx", "--format", "json").out)
    ran = hwflow("check", "good.onnx", "bad.onnx", "--format", "json")
    table = json.loads(ran.out)
    assert ran.code == 1
    assert [row["model"] for row in table["models"]] == ["good.onnx", "bad.onnx"]
    assert {"model": "bad.onnx", **alone} == table["models"][1]
    assert (table["errors"], table["warnings"]) == (0, 0)
    assert hwflow("check", "good.onnx", "good.onnx").code == 0
    text = hwflow("check", "good.onnx", "bad.onnx").out
    assert text.splitlines()[0] == "good.onnx: 0 errors, 0 warnings"
    assert text.splitlines()[-1] == "bad.onnx: 0 errors, 3 unsupported, 0 warnings"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("synth", "float.onnx", "--board", "ulx3s_85f"), 1),
        (("synth", "nowhere.onnx", "--board", "ulx3s_85f"), 2),
        (("synth", "m.onnx", "--board", "ulx4"), 2),
        (("synth", "m.onnx"), 2),
        (("sim", "nowhere"), 2),
        (("sim", "m.onnx", "--input", "nowhere.npz"), 2),
        (("compare", "float.onnx"), 1),
        (("compare", "m.onnx", "--frames", "0"), 2),
        (("quantize", "m.onnx", "--calibration", "nowhere.npz", "-o", "q.onnx"), 2),
        (("boards", "--colour"), 2),
        (("frobnicate",), 2),
    ],
)
def test_refusals(hwflow, tmp_path, arguments, code):
    models.relu(tmp_path / "m.onnx")
    models.floating(tmp_path / "float.onnx")
    plain = hwflow(*arguments)
    assert (plain.code, plain.out) == (code, "")
    ran = hwflow(*arguments, "--format", "json")
    assert (ran.code, ran.err) == (code, plain.err)
    findings = json.loads(ran.out)["findings"]
    assert all(set(f) == {"clause", "severity", "where", "message", "remedy"} for f in findings)
    assert [f"[{f['clause']}]" in ran.err for f in findings] == [True] * plain.err.count("error: ")


def test_synth(hwflow, tmp_path):
    models.relu(tmp_path / "m.onnx")
    ran = hwflow("synth", "m.onnx", "--board", "icebreaker", "--until", "verilog", "-o", "out", "--format=json")
    table = json.loads(ran.out)
    assert ran.code == 0
    assert (table.pop("output"), table.pop("findings"), table.pop("unchanged")) == ("out", [], False)
    assert table == json.loads((tmp_path / "out" / "report.json").read_text())
    assert table["bitstream"] is None and table["link"]["input_bytes"] == 4


def test_a_mismatch_is_one_object(hwflow, tmp_path, monkeypatch):
    models.relu(tmp_path / "m.onnx")
    finding = Finding("bit-exact", "simulation", "1 element differs", "report it")
    monkeypatch.setattr("hwflow.verify.simulation._findings", lambda *arguments: iter([finding]))
    ran = hwflow("sim", "m.onnx", "--simulator", "icarus", "--frames", 1, "--format", "json")
    table = json.loads(ran.out)
    assert (ran.code, table["verdict"], table["findings"]) == (1, "different", [finding.table()])
    assert "error: simulation: 1 element differs [bit-exact]" in ran.err
