"""The schemas of report.json and manifest.json. That all designs of other tests keep to them: ``tests/conftest.py``."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from jsonschema import Draft202012Validator

import hwflow
from tests.models import Builder
from tests.schemas import schema, violations

KINDS = ("report", "manifest")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Of a dense layer and an output that is quantized, for a board with a link."""
    folder = tmp_path_factory.mktemp("design")
    b = Builder()
    x = b.requantize(b.input("x", ("N", 4)), 0.5)
    b.output(b.requantize(b.node("MatMul", x, b.weights(np.arange(12).reshape(4, 3) - 5, 0.5)), 4.0))
    onnx.save(b.build(), folder / "model.onnx")
    out = folder / "out"
    hwflow.compile(folder / "model.onnx", "icebreaker").write(out)
    return {kind: json.loads((out / f"{kind}.json").read_text()) for kind in KINDS}


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """All of them, outermost first."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(each)


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_one_and_closed(kind: str) -> None:
    found = schema(kind)
    Draft202012Validator.check_schema(found)
    assert found["$id"] == f"urn:hwflow:{kind}:1" and found["properties"]["format"]["const"] == 1
    with_keys = [entry for entry in objects(found) if entry.get("type") == "object"]
    assert len(with_keys) > 15
    for entry in with_keys:  # keys are either named, or data with values of one kind
        assert entry["additionalProperties"] is False or "properties" not in entry


DATA = {"report": {"versions", "external_sha256"}, "manifest": {
    "versions", "external_sha256", "names", "dimensions", "input_types", "sha256", "held"
}}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_key_anywhere_fails(kind: str, tables: dict[str, dict[str, Any]]) -> None:
    assert violations(kind, tables[kind]) == []
    data = [tables[kind][key] for key in DATA[kind] if key in tables[kind]]
    data += [entry["external_sha256"] for entry in objects(tables[kind]) if "external_sha256" in entry]
    for number, entry in enumerate(objects(tables[kind])):
        if not any(entry is each for each in data):
            changed = copy.deepcopy(tables[kind])
            list(objects(changed))[number]["surprise"] = 1
            assert violations(kind, changed), entry


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("report", ("timing", "initiation_interval"), 0), ("report", ("layers", 0, "requantizer"), {}),
        ("report", ("layers", 0, "resources", "lut", "predicted"), None), ("report", ("format",), 2),
        ("report", ("exactness", "requantizers", 0, "form"), "lookup"), ("report", ("multipliers", "lut", "busy"), 1.5),
        ("manifest", ("outputs", 0, "scale"), [0.5]), ("manifest", ("host", "inputs", 0, "shape"), ["N"]),
        ("manifest", ("sha256", "design.v"), "0"), ("manifest", ("timing", "exact"), True),
    ],
)  # fmt: skip
def test_a_wrong_value_fails(
    kind: str, path: tuple[str | int, ...], value: Any, tables: dict[str, dict[str, Any]]
) -> None:
    changed = copy.deepcopy(tables[kind])
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert violations(kind, changed)


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_that_is_always_there_is_required(kind: str, tables: dict[str, dict[str, Any]]) -> None:
    for key in tables[kind]:
        less = {name: value for name, value in tables[kind].items() if name != key}
        assert violations(kind, less), key


def output(path: Path, *, suffix: bool = False, move: bool = False, axis: bool = False) -> dict[str, Any]:
    """The manifest's output of a model whose result is quantized with scale 4 and zero point 3 (``axis``: 4 and 8 along
    an axis), moved and dequantized."""
    b = Builder()
    x = b.requantize(b.input("x", ("N", 4)), 0.5)
    product = b.node("MatMul", x, b.weights(np.arange(8).reshape(4, 2) - 3, 0.5))
    scale = b.constant([4, 8] if axis else 4, "float")
    zero_point = b.constant([3, 3] if axis else 3, "uint8")
    y = b.node("QuantizeLinear", product, scale, zero_point, **({"axis": 1} if axis else {}))
    if move:
        y = b.node("Reshape", y, b.constant([0, 2, 1], "int64"))
    if suffix:
        y = b.node("DequantizeLinear", y, scale, zero_point)
    b.output(y)
    onnx.save(b.build(), path / "model.onnx")
    hwflow.compile(path / "model.onnx", "icebreaker").write(path / "out")
    manifest = json.loads((path / "out" / "manifest.json").read_text())
    assert (manifest["host"]["suffix"] is not None) == suffix
    (found,) = manifest["outputs"]
    return dict(found)


def test_an_output_has_the_scale_of_its_quantizer(tmp_path: Path) -> None:
    """With and without a suffix on the host, and where elements have only moved since."""
    for number, options in enumerate(({}, {"suffix": True}, {"move": True}, {"move": True, "suffix": True})):
        (folder := tmp_path / str(number)).mkdir()
        found = output(folder, **options)
        assert (found["scale"], found["zero_point"]) == (["4/1"], ["3/1"]), options
    (folder := tmp_path / "axis").mkdir()
    found = output(folder, axis=True)
    assert (found["scale"], found["zero_point"], found["axis"]) == (["4/1", "8/1"], ["3/1", "3/1"], 0)
