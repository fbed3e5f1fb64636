"""BitCast against ONNX's reference evaluator and its node tests, in hardware."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from hwflow.api.checking import check
from hwflow.loaded_model import Model
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder, kind_of
from tests.onnx_node_tests.suite import NodeTest, node_tests, run


def casts(b: Builder, x: str, **attributes: Any) -> str:
    """Of int8 as uint8."""
    return b.node("Cast", b.node("BitCast", b.quantize(x, 0.5, 0, "int8"), **attributes), to=TensorProto.FLOAT)


HONOURED = [("BitCast", casts, {"to": TensorProto.UINT8})]
NODES = [("BitCast", lambda size, rank: [], lambda rank: {"to": TensorProto.UINT8})]
TESTS = [test for test in node_tests() if test.operators == "BitCast"]
# Its other node tests have bits of floats, or integers of 64 bits.


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_node_tests_in_rtl(test: NodeTest) -> None:
    assert len(TESTS) == 4
    outcome = run(test)
    assert outcome.kind == ("host" if test.name == "test_bitcast_bool_to_uint8" else "RTL"), outcome.reason


def cast(source: str, target: str, folder: Path) -> Model:
    b = Builder(26, 14)
    b.output(b.node("BitCast", b.input("x", ["N", 2, 3], source), to=kind_of(target)))
    return b.load(folder)


WIDTHS = {2: ("int2", "uint2"), 4: ("int4", "uint4"), 8: ("int8", "uint8"), 16: ("int16", "uint16"),
          32: ("int32", "uint32")}  # fmt: skip


@pytest.mark.parametrize("bits", WIDTHS)
def test_between_types_of_as_many_bits(bits: int, tmp_path: Path) -> None:
    for source, target in (WIDTHS[bits], WIDTHS[bits][::-1]):
        model = cast(source, target, tmp_path)
        low = 0 if source.startswith("u") else -(1 << bits - 1)
        x = np.random.default_rng(bits).integers(low, low + (1 << bits), (9, 2, 3))
        x[0, 0, :2] = low, low + (1 << bits) - 1
        (found,) = golden.evaluate(model.quantized, {"x": x}).values()
        given, wanted = (helper.tensor_dtype_to_np_dtype(kind_of(kind)) for kind in (source, target))
        np.testing.assert_array_equal(found, x.astype(given).view(wanted).astype(np.int64))
        if bits >= 8:
            assert compare(model, frames=5).ok


def test_in_the_middle_of_a_model(tmp_path: Path) -> None:
    """Of a comparison's result, and of what is quantized."""
    b = Builder(26, 14)
    x = b.quantize(b.input("x", ["N", 4]), 0.5, 3, "int8")
    bits = b.node("BitCast", b.node("Greater", x, b.constant(0, "int8")), to=kind_of("int8"))
    b.output(b.node("Add", b.node("BitCast", b.node("Add", x, bits), to=kind_of("uint8")), b.constant(7, "uint8")))
    result = compare(b.load(tmp_path), frames=50)
    assert result.ok, list(result.lines())


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("int8", "bool", "the type must be an integer one, not bool: bytes of int8 may be other than 0 and 1"),
        ("int32", "float", "types must be of integers, not float32: in hardware its bits are not those of an integer"),
    ],
)
def test_types_that_are_refused(source: str, target: str, message: str, tmp_path: Path) -> None:
    b = Builder(26, 14)
    y = b.node("BitCast", b.node("Neg", b.input("x", ["N", 4], source)), to=kind_of(target), name="it")
    b.output(b.requantize(b.node("Cast", y, to=TensorProto.FLOAT), 0.5))
    found = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert ("node 'it' (BitCast)", message) in [(f.where, f.message) for f in found]


def test_floats_at_a_model_s_ends_are_the_host_s(tmp_path: Path) -> None:
    b = Builder(26, 14)
    y = b.node("Neg", b.input("x", ["N", 4], "int32"))
    b.output(b.node("BitCast", y, to=kind_of("float")))
    assert not [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
