"""What the golden model accepts: every refused input in full, all of them at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.errors import ModelRefused
from hwflow.ir.graph import Graph
from hwflow.verify import golden
from tests.models import Builder


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    b = Builder()
    b.output(*(b.dequantize(b.input(n, ["N", 2], "int8"), 0.5, 0, "int8") for n in ("a", "b", "c", "d", "e")))
    return b.load(tmp_path).quantized


def test_refused_inputs(graph: Graph) -> None:
    given = {
        "b": np.zeros((3, 4), int), "c": np.full((1, 2), 0.5),
        "d": np.array([[-129, 3]]), "e": np.array(5), "odd": np.zeros(1),
    }  # fmt: skip
    with pytest.raises(ModelRefused) as caught:
        golden.evaluate(graph, given)
    assert [str(f) for f in caught.value.findings] == [
        "error: input 'a': must be given, not missing (there is 'b', 'c', 'd', 'e', 'odd') [input-present]\n"
        "  remedy: add it to the .npz",
        "error: input 'b': shape must be [frames, 2], not [3, 4] [input-shape]\n  remedy: reshape it",
        "error: input 'c': elements must be integers, not float64 [input-type]\n  remedy: quantize them first",
        "error: input 'd': integers must lie in [-128, 127], not in [-129, 3] [input-range]\n  remedy: clip them",
        "error: input 'e': shape must be [frames, 2], not [] [input-shape]\n  remedy: reshape it",
    ]


def test_no_frames_are_fine(tmp_path: Path) -> None:
    b = Builder()
    c = b.node("Conv", b.requantize(b.input("x", ["N", 1, 4, 4]), 0.5), b.weights([[[[1, 2], [3, 4]]]]))
    p = b.requantize(b.node("MaxPool", c, kernel_shape=[2, 2]), 1.0)
    b.output(b.node("MatMul", b.node("Flatten", p), b.weights(np.ones((4, 3), int)), name="y"))
    results = golden.evaluate(b.load(tmp_path).quantized, {"x": np.zeros((0, 1, 4, 4), np.uint8)})
    assert results["y"].shape == (0, 3)


def test_frames_are_evaluated_in_groups_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    x = b.requantize(b.input("x", ["N", 2]), 0.5)
    b.output(b.node("MatMul", x, b.weights([[1, 2], [-3, 4]]), name="y"))
    b.output(b.node("Add", x, x, name="z"))
    graph = b.load(tmp_path).quantized
    given = {p.name: np.arange(10).reshape(5, 2) for p in graph.inputs}
    whole = golden.evaluate(graph, given)
    for elements in (1, 9, 17):
        monkeypatch.setattr(golden, "_ELEMENTS", elements)
        parts = golden.evaluate(graph, given)
        assert {name: array.tolist() for name, array in parts.items()} == {n: a.tolist() for n, a in whole.items()}
