"""`--format json`: one object on stdout with the keys that scripts rely on, whatever the verdict."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli import models

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "model.onnx"


def test_check(hwflow, tmp_path):
    models.unsupported(tmp_path / "m.onnx")
    ran = hwflow("check", "m.onnx", "--format", "json")
    table = json.loads(ran.out)
    assert ran.code == 1
    assert set(table) == {"findings", "errors", "warnings"}
    # Valid ONNX, though hwflow makes no hardware of it.
    assert (table["errors"], table["warnings"], len(table["findings"])) == (0, 0, 3)
    assert {f["severity"] for f in table["findings"]} == {"unsupported"}
    assert all(set(f) == {"clause", "severity", "where", "message", "remedy"} for f in table["findings"])


def test_sim(hwflow, tmp_path):
    models.relu(tmp_path / "m.onnx")
    ran = hwflow("sim", "m.onnx", "--simulator", "icarus", "--format", "json", "--seed", 1, "--frames", 2)
    table = json.loads(ran.out)
    assert ran.code == 0
    assert set(table) == {"frames", "mismatches", "cycles", "initiation_interval", "latency", "simulator"}
    assert (table["frames"], table["mismatches"], table["simulator"]) == (2, 0, "icarus")


def test_compare(hwflow):
    ran = hwflow("compare", DIGITS, "--frames", 2, "--format", "json")
    table = json.loads(ran.out)
    assert ran.code == 0, ran.err
    assert set(table) == {"values", "mismatches", "unexplained"}
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
    assert ran.out.splitlines()[0].split() == ["value", "elements", "mismatches", "unexplained", "max", "lsb"]
