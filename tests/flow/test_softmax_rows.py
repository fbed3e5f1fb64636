"""Networks that end with a Softmax as one core: the emitted design computes what the golden model computes, with gaps
and stalls too, and in the predicted cycles; twins with a quotient of less are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hwflow
from hdl_lib.norms import softmax_row
from hwflow.api.compiler import Design
from hwflow.passes import pipeline
from hwflow.passes.softmax_rows import softmax_rows
from tests.models import Builder
from tests.simulated_model import check_simulated


@pytest.fixture(autouse=True)
def _in_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dataflow graph goes through the pass."""
    monkeypatch.setitem(pipeline.FORMS, pipeline.UNROLLED, (*pipeline.DATAFLOW, softmax_rows))


def qdq(classes: int, scale: float, out: tuple[float, int, str]) -> Builder:
    """A dense layer between quantizers, and a Softmax."""
    rng = np.random.default_rng(classes)
    b = Builder()
    x = b.requantize(b.input("x", ["N", 6]), 0.05, 128)
    x = b.node("MatMul", x, b.weights(rng.integers(-90, 91, (6, classes)), 0.01))
    x = b.node("Softmax", b.requantize(x, scale, 5, kind="int8"))
    b.output(b.quantize(x, out[0], out[1], kind=out[2]))
    return b


def qoperator(classes: int) -> Builder:
    """The same in the QOperator dialect, its Softmax between a DequantizeLinear and a QuantizeLinear."""
    rng = np.random.default_rng(classes)
    b = Builder()
    x = b.quantize(b.input("x", ["N", 6]), 0.05, 128)
    weights = b.constant(rng.integers(-90, 91, (6, classes)), "int8")
    x = b.node(
        "QLinearMatMul", x, b.constant(0.05), b.constant(128, "uint8"), weights, b.constant(0.01),
        b.constant(0, "int8"), b.constant(0.06), b.constant(120, "uint8"),
    )
    b.output(b.quantize(b.node("Softmax", b.dequantize(x, 0.06, 120)), 1 / 256, 0))
    return b


def fused(classes: int) -> Builder:
    """The same with onnxruntime's QLinearSoftmax."""
    rng = np.random.default_rng(classes)
    b = Builder()
    x = b.requantize(b.input("x", ["N", 6]), 0.05, 128)
    x = b.node("MatMul", x, b.weights(rng.integers(-90, 91, (6, classes)), 0.01))
    x = b.quantize(x, 0.1, 120)
    x = b.node(
        "QLinearSoftmax", x, b.constant(0.1), b.constant(120, "uint8"), b.constant(1 / 256), b.constant(0, "uint8"),
        domain="com.microsoft", axis=-1, opset=13,
    )
    b.output(b.declare(x, ["N", classes], "uint8"))
    return b


NETWORKS = {
    "keywords": qdq(12, 0.144, (1 / 256, -128, "int8")),
    "unsigned": qdq(5, 0.05, (1 / 255, 0, "uint8")),
    "coarse": qdq(4, 0.25, (0.01, 3, "uint8")),
    "halves": qdq(2, 0.0004, (1, 0, "uint8")),
    "qoperator": qoperator(7),
    "fused": fused(3),
}


def designed(network: Builder, folder: Path) -> Design:
    design = hwflow.compile(network.save(folder), "icebreaker", fps=100)
    assert [node.op for node in design.schedule.graph.nodes].count("softmax_row") == 1
    return design


@pytest.mark.parametrize("name", NETWORKS)
def test_it_computes_in_the_predicted_cycles(name: str, tmp_path: Path) -> None:
    design = designed(NETWORKS[name], tmp_path)
    found = check_simulated(design, frames=4, stalls=(0.0, 0.6))
    assert all(len(np.unique(values)) > 1 for values in found.values())


def test_as_verilog(tmp_path: Path) -> None:
    out = tmp_path / "out"
    design = designed(NETWORKS["keywords"], tmp_path)
    assert design.schedule.run.exact
    design.write(out)
    assert hwflow.simulate(out, simulator="icarus", frames=3, stall=0.4, seed=5).findings == ()


def test_a_twin_without_the_rest_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two equal elements each is a half, which is rounded to 0, and anything above to 1."""
    design = designed(NETWORKS["halves"], tmp_path)
    check_simulated(design, frames=40, stalls=(0.5,))

    class Twin(softmax_row.Passes):
        def __init__(self, m, bits: int, digits: int) -> None:
            super().__init__(m, bits, digits)
            self.quotient = self.quotient | 1

    monkeypatch.setattr(softmax_row, "Passes", Twin)
    with pytest.raises(AssertionError, match="stall"):
        check_simulated(design, frames=40, stalls=(0.5,))


def test_a_twin_with_a_digit_less_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design = designed(NETWORKS["keywords"], tmp_path)

    class Twin(softmax_row.Passes):
        def __init__(self, m, bits: int, digits: int) -> None:
            super().__init__(m, bits, digits)
            self.quotient = self.quotient & ~2

    monkeypatch.setattr(softmax_row, "Passes", Twin)
    with pytest.raises(AssertionError, match="stall"):
        check_simulated(design, frames=10, stalls=(0.5,))
