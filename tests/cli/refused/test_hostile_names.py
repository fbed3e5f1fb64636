"""Names and texts of models and files do nothing to the terminal, in any command."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from hwflow.cli.tables import Table
from hwflow.cli.terminal import say
from tests.cli import models

# What a terminal obeys, what reverses or hides text, what makes a line, and a line that would look like hwflow's own.
EVIL = "\x1b[31m\r\n\x00\x07\x85\x9b2J\u202e\u2066\u200b\u2028\ufeff\u0301\U000e0041[red]'\nforged: 0 errors\n"
HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Mn", "Me"}


def assert_tame(*texts: str) -> None:
    for text in texts:
        assert not {c for c in text if unicodedata.category(c) in HIDDEN} - set("\n\t")  # of tables
        assert not any(line.strip().startswith("forged") for line in text.splitlines())


def _strings(message: Any, change: Callable[[str, str], str]) -> None:
    """Change every string of a protobuf message; ``change`` gets TYPE.FIELD."""
    for field, value in message.ListFields():
        place = f"{message.DESCRIPTOR.name}.{field.name}"
        if field.type == field.TYPE_STRING:
            if isinstance(value, str):
                setattr(message, field.name, change(place, value))
            else:
                value[:] = [change(place, item) for item in value]
        elif field.type == field.TYPE_BYTES and place in ("AttributeProto.s", "AttributeProto.strings"):
            if isinstance(value, bytes):
                setattr(message, field.name, change(place, value.decode()).encode())
            else:
                value[:] = [change(place, item.decode()).encode() for item in value]
        elif field.type == field.TYPE_MESSAGE:
            for item in [value] if hasattr(value, "ListFields") else value:
                _strings(item, change)


MEANT = {
    "NodeProto.op_type", "NodeProto.domain", "AttributeProto.name", "AttributeProto.s", "OperatorSetIdProto.domain"
}


def hostile(path: Path, kept: set[str] = MEANT) -> onnx.ModelProto:
    """Rewrite the model of that file with ``EVIL`` in every string but those in the fields ``kept``."""
    model = onnx.load(path, load_external_data=False)
    model.producer_name, model.producer_version = "producer", "1"
    model.metadata_props.add(key="key", value="value")
    for item in (model.graph, *model.graph.node, *model.graph.input, *model.graph.initializer):
        item.doc_string = "doc"
    _strings(model, lambda place, text: text if place in kept or not text else text + EVIL)
    onnx.save(model, path)
    return model


def test_all_is_hostile(hwflow, tmp_path):
    """No string of the model is as it should be: operators, functions, attributes, external files, dimensions."""
    path = models.unsupported(tmp_path / "m.onnx")
    model = onnx.load(path)
    function = model.functions.add(name="f", domain="g", input=["a"], output=["b"], attribute=["c"])
    function.opset_import.extend(model.opset_import)
    function.node.add(op_type="Relu", input=["a"], output=["b"], name="n")
    data = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    data.external_data.add(key="location", value="weights.bin")
    data.external_data.add(key="checksum", value="none")
    model.graph.quantization_annotation.add(tensor_name="t").quant_parameter_tensor_names.add(key="k", value="v")
    model.graph.sparse_initializer.add(dims=[1]).values.name = "s"
    model.graph.node[2].attribute.add(name="mode", type=onnx.AttributeProto.STRING, s=b"text")
    model.graph.node[2].metadata_props.add(key="k", value="v")
    model.graph.node[2].overload = "o"
    model.training_info.add().initialization_binding.add(key="k", value="v")
    onnx.save(model, path)
    hostile(path, kept=set())
    for command in (("check",), ("check", "--pedantic"), ("synth", "--board", "ulx3s_85f"), ("compare",), ("sim",)):
        ran = hwflow(command[0], "m.onnx", *command[1:])
        assert ran.code == 1
        assert "\\x1b[31m" in ran.out + ran.err
        assert_tame(ran.out, ran.err)


@pytest.mark.parametrize("make", [models.unsupported, models.floating, models.relu], ids=lambda make: make.__name__)
def test_refused_and_not(hwflow, tmp_path, make):
    """Findings of hwflow's own rules on valid models."""
    hostile(make(tmp_path / "m.onnx"))
    ran = hwflow("check", "m.onnx", "--pedantic")
    assert ran.code == (0 if make is models.relu else 1)
    assert "forged" in ran.out
    assert_tame(ran.out, ran.err)


def test_commands_on_what_compiles(hwflow, tmp_path):
    model = hostile(models.relu(tmp_path / "m.onnx"))
    assert model.graph.node[1].name == "first_dequantize" + EVIL
    synth = hwflow("synth", "m.onnx", "--board", "ulx3s_85f", "--until", "verilog", "-o", "out")
    sim = hwflow("sim", "out", "--simulator", "icarus", "--frames", 2, "--wave", "x.vcd")
    compare = hwflow("compare", "m.onnx", "--frames", 2, "--layers")
    for ran in (synth, sim, compare):
        assert ran.code == 0, ran.err
        assert_tame(ran.out, ran.err)
    assert "m\\x1b[31m" in synth.out and "y\\x1b[31m" in sim.out and "last_q\\x1b[31m" in compare.out
    kinds = (".v", ".sh", ".tcl", ".ys", ".lpf", ".py", ".json")
    texts = [path for path in (tmp_path / "out").rglob("*") if path.suffix in kinds]
    assert len(texts) > 5
    for path in texts:
        assert_tame(path.read_text())


def test_arrays_of_a_file(hwflow, tmp_path):
    models.relu(tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", **{"z\x1b\u202e\nforged": np.zeros((2, 4), np.float32)})
    ran = hwflow("compare", "m.onnx", "--input", "x.npz")
    assert ran.code == 2 and "z\\x1b\\u202e\\nforged" in ran.err
    assert_tame(ran.out, ran.err)


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "{}"),
        ("check", "m.onnx", "--dim", "{}=1"),
        ("check", "m.onnx", "--trust", "{}"),
        ("synth", "m.onnx", "--board", "{}"),
        ("synth", "m.onnx", "--board", "ulx3s_85f", "--budget", "{}=1"),
        ("synth", "m.onnx", "--board", "ulx3s_85f", "--until", "verilog", "-o", "m.onnx/{}"),
        ("sim", "{}"),
        ("compare", "m.onnx", "--input", "{}"),
        ("quantize", "m.onnx", "--calibration", "{}", "-o", "q.onnx"),
        ("{}",),
    ],
    ids=lambda arguments: " ".join(arguments).replace("{}", "EVIL"),
)
def test_arguments(hwflow, tmp_path, arguments):
    (models.floating if arguments[0] == "quantize" else models.relu)(tmp_path / "m.onnx")
    name = "name\x1b[31m\r\u202e\nforged"
    ran = hwflow(*(argument.format(name) for argument in arguments))
    assert ran.code in (1, 2)
    assert "name\\x1b[31m" in ran.out + ran.err
    assert_tame(ran.out, ran.err)


def test_the_name_of_the_file(hwflow, tmp_path):
    path = models.relu(tmp_path / "m\x1b[31m\u202e\nforged.onnx")
    ran = hwflow("check", path.name)
    assert ran.code == 0
    assert_tame(ran.out, ran.err)


def test_markup_is_not_obeyed(capsys):
    table = Table("what")
    table.add_row("[red]a[/red]\x1b[0m")
    table.print()
    say(*table.lines(80))
    say("[b]\x1b[0m\nc")
    printed = capsys.readouterr().out
    assert "[red]a[/red]\\x1b[0m" in printed and "[b]\\x1b[0m\\nc\n" in printed
    assert "\x1b" not in printed and "\u202e" not in printed
