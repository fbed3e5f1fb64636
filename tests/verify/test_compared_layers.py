"""`compare --layers`: a defect in the golden model is found at the value, frame and element where it shows first."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwflow.cli import main
from hwflow.loaded_model import load
from hwflow.verify.comparison import compare
from tests.flow.sides.layered import first_sums, network, write_frames
from tests.models import Builder


def test_an_intact_model_is_equal_in_every_layer(tmp_path: Path) -> None:
    path = network().save(tmp_path)
    write_frames(tmp_path / "x.npz")
    layers = compare(path, inputs=tmp_path / "x.npz").layers
    assert [(layer.row.name, layer.node, layer.op) for layer in layers.layers] == [
        ("first_q", "first_q", "QuantizeLinear"), ("second_q", "second_q", "QuantizeLinear")
    ]
    assert layers.first is None
    assert list(layers.lines()) == ["all 2 layers equal the reference evaluator's"]
    assert layers.table()["first_difference"] is None


def test_a_wrong_weight_is_blamed(tmp_path: Path) -> None:
    """The weight from channel 0 to channel 0, 3, becomes -4. Channel 0 is 9 in one pixel of frame 1, 5 in frame 2."""
    model = load(network().save(tmp_path))
    x = write_frames(tmp_path / "x.npz")
    (node,) = (n for n in model.quantized.nodes if n.op == "conv2d" and "first" in n.sources)
    weights = node.attributes.weights.copy()
    assert weights[0, 0, 0, 0] == 3
    weights[0, 0, 0, 0] = -4
    node.attributes = replace(node.attributes, weights=weights)
    comparison = compare(model, inputs=tmp_path / "x.npz")
    assert not comparison.ok
    first = comparison.layers.first
    assert first is not None and first.row.element is not None
    right = int(first_sums(x)[1, 0, 1, 2])
    golden, reference = (int(np.rint(v / 3)) + 90 for v in (right - 7 * 9, right))
    assert (first.row.name, first.node, first.row.unexplained) == ("first_q", "first_q", 7)
    element = first.row.element
    assert (element.frame, element.index, element.explained) == (1, (0, 1, 2), False)
    assert (element.golden, element.reference) == (golden, reference)
    assert list(comparison.layers.lines()) == [
        "the first layer that differs: value 'first_q', node 'first_q' (QuantizeLinear), frame 1, element [0, 1, 2]: "
        f"golden {golden}, reference {reference}"
    ]
    table = comparison.layers.table()
    assert table["first_difference"] == table["layers"][0] == {
        "name": "first_q", "node": "first_q", "op": "QuantizeLinear", "elements": 108, "mismatches": 7,
        "unexplained": 7, "failed": "",
        "first": {"frame": 1, "index": [0, 1, 2], "golden": golden, "reference": reference, "explained": False},
    }


def test_a_rounding_is_named_as_one(tmp_path: Path) -> None:
    """0.3 / 0.2 is nearly 1.5: odd integers lie near a tie, where float32 rounds to the other side here and there."""
    b = Builder(opset=19)
    x = b.dequantize(b.input("x", ["N", 4], "int8"), 0.3, 0, "int8")
    b.output(b.quantize(x, 0.2, 0, "int8", name="y"))
    np.savez(tmp_path / "x.npz", x=np.arange(-128, 128, dtype=np.int8).reshape(64, 4))
    comparison = compare(b.save(tmp_path), inputs=tmp_path / "x.npz")
    assert comparison.ok
    first = comparison.layers.first
    assert first is not None and first.row.element is not None and first.row.element.explained
    (line,) = comparison.layers.lines()
    assert line.startswith("the first layer that differs, by float rounding: value 'y', node 'y' (QuantizeLinear), ")


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = network().save(tmp_path)
    assert main(["compare", "--layers", "--format", "json", "--frames", "2", "--seed", "1", str(path)]) == 0
    table = json.loads(capsys.readouterr().out)
    assert [layer["name"] for layer in table["layers"]] == ["first_q", "second_q"]
    assert main(["compare", "--format", "json", "--frames", "2", "--seed", "1", str(path)]) == 0
    assert json.loads(capsys.readouterr().out).keys() == table.keys() - {"layers", "first_difference"}
