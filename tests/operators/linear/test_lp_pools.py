"""LpPool: ONNX's node tests in RTL, sums and roots by the evaluator, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwflow.api.checking import check
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import node_tests_of, passes_in_rtl
from tests.reference_agreement import agree_with_reference

IN_RTL = ("test_lppool_2d_dilations", "test_lppool_2d_strides")  # of squares: cubes are too long


def pool(power: int, scale: float, step: float, **attributes: object) -> Builder:
    b = Builder(22, 10)
    d = b.requantize(b.input("x", ["N", 2, 5, 6]), scale, 3 if power == 1 else 0, "int8")
    y = b.node("LpPool", d, kernel_shape=[2, 3], p=power, name="n", **attributes)
    b.output(b.requantize(y, step, 0, "uint8"))
    return b


@pytest.mark.parametrize("name", [name for name in node_tests_of("LpPool") if name in IN_RTL])
def test_node_tests_in_rtl(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path)


@pytest.mark.parametrize("attributes", [{}, {"pads": [1, 1, 0, 1]}, {"strides": [2, 1]}, {"auto_pad": "SAME_UPPER"}])
def test_sums_of_magnitudes(attributes: dict[str, object]) -> None:
    agree_with_reference(pool(1, 0.5, 2.0, **attributes))


def test_roots_of_squares(tmp_path: Path) -> None:
    assert compare(pool(2, 0.125, 0.25, pads=[1, 0, 1, 0]).load(tmp_path), frames=20).ok


def test_cubes_are_too_long(tmp_path: Path) -> None:
    (finding,) = check(pool(3, 0.5, 1.0).save(tmp_path))
    assert finding.rule == "approximated-operand"
