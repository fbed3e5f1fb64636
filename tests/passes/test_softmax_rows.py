"""Softmax in one node: the same integers, in the dialects' forms and for any scales; other graphs stay as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import dataflow
from hwflow.cores.registry import LEGAL
from hwflow.ir.graph import Graph
from hwflow.ir.legality import check
from hwflow.passes.softmax_rows import softmax_rows
from hwflow.verify.golden import evaluate
from tests.models import Builder


def classifier(
    shape: tuple[int, ...], before: tuple[float, int, str], after: tuple[float, int, str], *, axis: int = -1,
    twice: bool = False, opset: int = 13,
) -> Builder:
    """A Softmax between quantizers of these scales, zero points and types; ``twice``: the first is an output, too."""
    b = Builder(opset)
    scale, zero, kind = before
    x = b.requantize(b.input("x", ["N", *shape]), scale, zero, kind)
    if twice:  # behind hardware: what the host has, it gives itself
        x = b.requantize(x, 2 * scale, zero, kind)
        b.output(x)
    b.output(b.requantize(b.node("Softmax", x, axis=axis), *after[:2], kind=after[2]))
    return b


def integers(graph: Graph, seed: int) -> dict[str, np.ndarray]:
    """Rows of any elements, of small differences, equal ones, and ones with a single great element."""
    (port,) = graph.inputs
    ends = port.value.typed.interval
    rng = np.random.default_rng(seed)
    low, high = ends.lo, ends.hi
    size = port.shape[-1]
    frames = [
        rng.integers(low, high + 1, (60, *port.shape)),
        rng.integers(high - 12, high + 1, (60, *port.shape)),
        np.full((1, *port.shape), low), np.full((1, *port.shape), high),
        np.broadcast_to(np.where(np.eye(size, dtype=bool), high, low).reshape(
            size, *[1] * (len(port.shape) - 1), size
        ), (size, *port.shape)),
    ]
    return {port.name: np.concatenate(frames)}


CASES = {
    "keywords": ((12,), (0.144, 83, "int8"), (1 / 256, -128, "int8")),
    "unsigned": ((5,), (0.1, 128, "uint8"), (1 / 255, 0, "uint8")),
    "steep": ((7,), (0.9, 3, "uint8"), (0.01, 3, "uint8")),
    "flat": ((10,), (0.003, 0, "int8"), (1 / 128, 0, "int8")),
    "ties": ((4,), (0.05, 0, "int8"), (1 / 2, 0, "uint8")),
    "rows": ((3, 6), (0.11, 0, "int8"), (1 / 256, -128, "int8")),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_integers(name: str, tmp_path: Path) -> None:
    graph = dataflow(classifier(*CASES[name]).load(tmp_path).quantized)
    made = softmax_rows(graph)
    check(made, "softmax_rows", LEGAL)
    assert [node.op for node in made.nodes if node.op in ("quotient", "softmax_row")] == ["softmax_row"]
    assert [port.value.typed for port in made.outputs] == [port.value.typed for port in graph.outputs]
    x = integers(graph, 3)
    (wanted,), (found,) = evaluate(graph, x).values(), evaluate(made, x).values()
    np.testing.assert_array_equal(found, wanted)
    assert len(np.unique(wanted)) > 2


def test_one_behind_the_other(tmp_path: Path) -> None:
    b = classifier(*CASES["unsigned"])
    b.outputs.clear()
    b.output(b.requantize(b.node("Softmax", b.nodes[-1].output[0]), 1 / 100, 0))
    graph = dataflow(b.load(tmp_path).quantized)
    made = softmax_rows(graph)
    assert [node.op for node in made.nodes] == ["softmax_row"] * 2
    assert sum(node.op == "quotient" for node in graph.nodes) == 2
    x = integers(graph, 4)
    (wanted,), (found,) = evaluate(graph, x).values(), evaluate(made, x).values()
    np.testing.assert_array_equal(found, wanted)


def test_what_is_left_alone(tmp_path: Path) -> None:
    """An axis that is no pixel's channels, more distances than a table holds, elements and quotients that others read,
    a quotient that is no quantizer's."""
    twice = classifier(*CASES["unsigned"])
    twice.output(twice.requantize(twice.nodes[-3].output[0], 1 / 100, 0))
    product = Builder(13)
    x, y = (product.requantize(product.input(name, ["N", 5]), 0.1, 0, "int8") for name in ("x", "y"))
    product.output(product.requantize(product.node("Mul", product.node("Softmax", x), y), 0.01, 0, "int8"))
    others = {
        "axis": classifier((4, 3), (0.1, 0, "int8"), (1 / 256, -128, "int8"), axis=1),
        "wide": classifier((5,), (0.001, 0, "int16"), (1 / 256, -128, "int8"), opset=21),
        "elements": classifier(*CASES["unsigned"], twice=True),
        "quotients": twice,
        "product": product,
    }
    for name, builder in others.items():
        graph = dataflow(builder.load(tmp_path).quantized)
        assert any(node.op == "quotient" for node in graph.nodes), name
        assert softmax_rows(graph) is graph, name
