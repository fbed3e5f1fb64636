"""Scales of what is added to each other: ratios that are powers of two, as near the ranges as these allow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import hwflow
from hwflow.api.compiler import compile
from hwflow.loaded_model import load
from hwflow.quantization.sum_scales import scales_of_sums
from tests.models import Builder


def test_scales_by_hand() -> None:
    """Steps of 4/255, 1.5/255 and 0.1/255: half of the first is more than the second and a quarter less; the third
    is less than a 32nd. Of two constants of 0 no step is asked for."""
    ranges = {"a": (-1.0, 3.0), "b": (0.0, 1.5), "c": (-0.05, 0.05), "zero": (0.0, 0.0), "d": (0.0, 0.0)}
    found = scales_of_sums([("a", "b", "c", "zero"), ("d", "zero")], ranges, (), 255)
    a = 4 / 255
    assert found == {"a": a, "b": a / 2, "c": a / 32, "zero": a}


def test_scales_beside_a_wide_one() -> None:
    """4/255 is between 2^-6 and 2^-5."""
    ranges = {"a": (-1.0, 3.0), "b": (0.0, 1.5), "wide": (-9.0, 9.0)}
    assert scales_of_sums([("a", "b", "wide")], ranges, ("wide",), 255) == {"a": 2**-5, "b": 2**-7 * 1.0}
    assert scales_of_sums([("wide",)], ranges, ("wide",), 255) == {}


def test_a_gate_of_two_products(tmp_path: Path) -> None:
    """sigmoid(W x + V z): the products are added in few bits, and the Sigmoid is a table of these."""
    rng = np.random.default_rng(1)
    b = Builder(17, 8)
    x, z = b.input("x", ["N", 5]), b.input("z", ["N", 5])
    products = [
        b.node("Gemm", value, b.constant(rng.normal(0, size, (5, 4))), name=f"of_{value}")
        for value, size in ((x, 1.0), (z, 0.3))
    ]
    b.output(b.node("Sigmoid", b.node("Add", *products), name="y"))
    path = b.save(tmp_path, "float.onnx")
    np.savez(tmp_path / "x.npz", x=rng.normal(size=(200, 5)), z=rng.normal(size=(200, 5)))
    made = hwflow.quantize(path, tmp_path / "x.npz", tmp_path / "q.onnx")
    assert made.compiles and made.qualities[0].snr_db is not None and made.qualities[0].snr_db > 35
    constants = {i.name: numpy_helper.to_array(i) for i in onnx.load(tmp_path / "q.onnx").graph.initializer}
    ratio = float(constants["of_x_scale"]) / float(constants["of_z_scale"])
    assert ratio in (1, 2, 4, 8)
    design = compile(load(tmp_path / "q.onnx"), "ulx3s_85f", fps=1)
    adders = [node for node in design.schedule.plan.graph.nodes if node.op == "scaled_add"]
    assert [node.outputs[0].typed.element.bits <= 12 for node in adders] == [True]
    assert hwflow.compare(tmp_path / "q.onnx", inputs=tmp_path / "x.npz", frames=8).unexplained == 0
