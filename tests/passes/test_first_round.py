"""A first round of constant states is one of a loop's where it is proved to be, not where it is another function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from hwflow.api.compiler import compile
from hwflow.ir.graph import Graph
from hwflow.ir.node_attributes import LoopAttributes
from hwflow.loaded_model import load
from hwflow.passes.roll_loops import roll_loops
from tests.models import Builder
from tests.passes.test_roll_loops import agrees
from tests.simulated_model import check_simulated


def steps(count: int, *, first: tuple[float, float] = (0.25, 0.125), apart: int = 1) -> Builder:
    """h' = q(W h + x_t), h of zeros at first, written out: the first step has no product. ``first``: the scales of that
    step; ``apart``: rows between the one that it takes and the next."""
    b, rng = Builder(21, 10), np.random.default_rng(1)
    x = b.requantize(b.input("x", ["N", count + apart - 1, 2]), 0.25, 3, "int8")
    weights = b.weights(rng.integers(-9, 9, (2, 2)), 0.0625)
    state = ""
    for step in range(count):
        row = b.node("Gather", x, b.constant(step + (apart - 1 if step else 0), "int64"), axis=1)
        total = b.node("Add", row, b.node("MatMul", state, weights)) if state else row
        scales = first if not state else (0.25, 0.125)
        state = b.requantize(b.requantize(total, scales[0], 5, "int8"), scales[1], -7, "int8")
    b.output(state)
    return b


def loop_of(graph: Graph) -> LoopAttributes:
    (loop,) = (node.attributes for node in roll_loops(graph).nodes if isinstance(node.attributes, LoopAttributes))
    assert isinstance(loop, LoopAttributes)
    return loop


def test_the_first_round_is_one_of_them(tmp_path: Path) -> None:
    """The state is -7 at first, which stands for 0, and nothing is left outside."""
    graph = steps(5).load(tmp_path).quantized
    (loop,) = agrees(graph)
    assert (loop.rounds, loop.first) == (5, (-7,))


@pytest.mark.parametrize(
    ("other", "rounds"), [({"first": (0.5, 0.125)}, 4), ({"first": (0.25, 0.0625)}, 3), ({"apart": 2}, 4)]
)
def test_another_function(other: dict[str, Any], rounds: int, tmp_path: Path) -> None:
    """A quantizer of another scale on the way, or at the end, which the second round reads; a row that is not the one
    before."""
    (loop,) = agrees(steps(5, **other).load(tmp_path).quantized)
    assert (loop.rounds, loop.first) == (rounds, (None,))


def test_in_hardware(tmp_path: Path) -> None:
    """The first row comes from nowhere, before the first frame does."""
    check_simulated(compile(steps(5).load(tmp_path), "ulx3s_85f", fps=50_000, loops="once"), stalls=(0, 0.5))


def test_what_quantize_writes(tmp_path: Path) -> None:
    """Quantizers of a body stand in its first round, too: the whole network is one loop."""
    from hwflow import quantize

    rng = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return onnx.numpy_helper.from_array((rng.normal(size=shape) / 2).astype(np.float32), name)

    made = helper.make_graph(
        [
            helper.make_node("RNN", ["x", "w", "r", "b"], ["", "last"], hidden_size=3),
            helper.make_node("Squeeze", ["last", "axis"], ["y"]),
        ],
        "net", [helper.make_tensor_value_info("x", 1, [5, 1, 2])], [helper.make_tensor_value_info("y", 1, [1, 3])],
        [weights("w", 1, 3, 2), weights("r", 1, 3, 3), weights("b", 1, 6),
         onnx.numpy_helper.from_array(np.array([0]), "axis")],
    )
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.savez(tmp_path / "frames.npz", x=rng.normal(size=(8, 5, 1, 2)).astype(np.float32))
    quantize(path, tmp_path / "frames.npz", tmp_path / "q.onnx")
    assert loop_of(load(tmp_path / "q.onnx").quantized).rounds == 5
