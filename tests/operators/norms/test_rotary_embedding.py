"""RotaryEmbedding by its definition: float tables of cosines and sines, positions by constants and streams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import passes_in_rtl

ANGLES = np.outer(np.arange(16), 10000.0 ** (-np.arange(4) / 4))


@pytest.mark.parametrize("positions", ["constant", "stream"])
def test_float_tables(positions: str, tmp_path: Path) -> None:
    b = Builder(23, 11)
    x = b.requantize(b.input("x", ["N", 2, 4, 8]), 0.03, 3, "int8")
    places = b.input("p", ["N", 4], "int64") if positions == "stream" else b.constant([[3, 4, 5, 6]], "int64")
    y = b.node("RotaryEmbedding", x, b.constant(np.cos(ANGLES)), b.constant(np.sin(ANGLES)), places)
    b.output(b.requantize(y, 0.02, 0, "int8"))
    assert all(row.unexplained == 0 for row in compare(b.save(tmp_path), frames=10).rows)


OF_ONNX = ("test_rotary_embedding_3d_input", "test_rotary_embedding_with_interleaved_rotary_dim")


@pytest.mark.parametrize("name", OF_ONNX)
def test_of_onnx(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path)
