"""Functions behind accumulators whose results are quantized to 16 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.errors import ModelRefused
from hwflow.loaded_model import Model
from hwflow.verify.comparison import compare
from tests.models import Builder


def network(folder: Path, function: str, channels: int, kind: str) -> Model:
    """Of 8 bits, a matrix with a scale per output, a function, a quantizer of 16 bits."""
    rng = np.random.default_rng(5)
    b = Builder(21, 10)
    x = b.dequantize(b.input("x", ["N", 16], "uint8"), 0.037, 7)
    weights = b.constant(rng.integers(-127, 128, (16, channels)), "int8")
    scales = 0.002 * rng.uniform(0.8, 1.3, channels)
    a = b.node("MatMul", x, b.dequantize(weights, scales, [0] * channels, "int8", axis=1))
    match function:
        case "Swish":
            y = b.node("Mul", a, b.node("Sigmoid", a))
        case "PRelu":
            y = b.node("PRelu", a, b.constant(rng.uniform(-0.3, 0.5, channels)))
        case "HardSwish of operators":
            limited = b.node("Clip", b.node("Add", a, b.constant(3.0)), b.constant(0.0), b.constant(6.0))
            y = b.node("Div", b.node("Mul", a, limited), b.constant(6.0))
        case _:
            y = b.node(function, a)
    b.outputs.append(b.quantize(y, 0.0002, 900 if kind == "uint16" else 0, kind))
    return b.load(folder)


@pytest.mark.parametrize("kind", ["uint16", "int16"])
@pytest.mark.parametrize("function", ["HardSwish", "Gelu", "Mish", "Swish", "PRelu", "HardSwish of operators"])
def test_agrees_with_the_reference(function: str, kind: str, tmp_path: Path) -> None:
    assert compare(network(tmp_path, function, 3, kind), frames=50).ok


def test_tables_beyond_the_part_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match="too many; largest") as refused:
        compile(network(tmp_path, "HardSwish", 8, "uint16"), "ulx3s_25f")
    finding = refused.value.findings[-1]
    assert finding.rule == "device-budget" and "bram must be at most" in finding.message
    assert "use a larger board or a smaller model" in (finding.remedy or "")
