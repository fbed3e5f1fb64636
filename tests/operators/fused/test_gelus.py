"""Gelus and embeddings of onnxruntime: definitions beside its kernels, and between quantizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.operators.fused.kernels import agrees, reals

X = reals(2, 3, 4) * 3


@pytest.mark.parametrize(
    ("op", "operands", "attributes"),
    [
        ("BiasGelu", [X, reals(4)], {}), ("FastGelu", [X], {}), ("FastGelu", [X, reals(4)], {}),
        ("QuickGelu", [X], {}), ("QuickGelu", [X], {"alpha": 0.7}),
    ],
)  # fmt: skip
def test_gelus(op: str, operands: list[Any], attributes: dict[str, Any], tmp_path: Path) -> None:
    agrees(op, operands, attributes)
    agrees(op, operands, attributes, opset=21)
    b = Builder(21, 10)
    x = b.dequantize(b.input("x", ["N", 3, 4], "int8"), 0.03, 3, "int8")
    y = b.node(op, x, *map(b.constant, operands[1:]), domain="com.microsoft", **attributes)
    b.output(b.quantize(b.declare(y, ["N", 3, 4]), 0.02, 0, "int8"))
    assert all(row.unexplained == 0 for row in compare(b.save(tmp_path), frames=20).rows)


WORDS, SEGMENTS = np.array([[1, 5, 2], [0, 0, 4]], np.int32), np.array([[0, 1, 1], [0, 0, 0]], np.int32)
TABLES = [reals(6, 8), reals(5, 8), reals(2, 8), reals(8), reals(8)]
MASK, PLACES = np.array([[1, 1, 0], [1, 1, 1]], np.int32), np.array([[2, 1, 0], [4, 3, 3]], np.int32)


@pytest.mark.parametrize(("mask", "places", "outputs"), [(None, None, 3), (MASK, None, 2), (MASK, PLACES, 3)])
def test_embeddings(mask: Any, places: Any, outputs: int) -> None:
    agrees(
        "EmbedLayerNormalization", [WORDS, SEGMENTS, *TABLES, mask, places], {"epsilon": 1e-6}, outputs,
        constants=range(2, 7),
    )


def test_embeddings_of_words_alone() -> None:
    agrees("EmbedLayerNormalization", [WORDS, None, *TABLES[:2], None, *TABLES[3:]], {}, 2, constants=[2, 3, 5, 6])


@pytest.mark.parametrize("more", [[reals(8)], [reals(8), reals(8)]])
def test_skipped_norms(more: list[Any]) -> None:
    agrees("SkipLayerNormalization", [reals(2, 3, 8), reals(2, 3, 8), reals(8), *more], {"epsilon": 1e-5}, 4)
