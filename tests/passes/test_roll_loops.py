"""Loops that were written out become nodes again: every value stays the same, in the quantized graph, in streams and in
hardware."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from hwflow.api.compiler import compile
from hwflow.ir.graph import Graph
from hwflow.ir.node_attributes import LoopAttributes
from hwflow.passes import pipeline
from hwflow.passes.roll_loops import roll_loops
from hwflow.verify import golden
from tests.frontend.test_control_flow import elman, info, lstm
from tests.models import Builder
from tests.simulated_model import check_simulated


def loops(graph: Graph) -> list[LoopAttributes]:
    return [node.attributes for node in graph.nodes if isinstance(node.attributes, LoopAttributes)]


def agrees(graph: Graph, *, count: int = 1) -> list[LoopAttributes]:
    """The golden models of the graph, of its loops as nodes, and of the streams of both; these nodes."""
    rolled = roll_loops(graph)
    rng = np.random.default_rng(0)
    arrays = {
        port.name: rng.integers(*_ends(port.value.typed.interval), (3, *port.shape), endpoint=True)
        for port in graph.inputs
    }
    wanted = golden.evaluate(graph, arrays)
    for other in (rolled, *(pipeline.run(graph, passes) for passes in pipeline.FORMS.values())):
        for name, found in golden.evaluate(other, arrays).items():
            np.testing.assert_array_equal(found, wanted[name])
    assert len(loops(rolled)) == count
    return loops(rolled)


def _ends(interval: Any) -> tuple[int, int]:
    return interval.lo, interval.hi


def running(steps: int, dtype: str = "int32", *, backward: bool = False, second: bool = False) -> Builder:
    """Sums of all rows up to each one, as a Scan over integers; with ``second`` twice the sum before as well."""
    b = Builder(21, 10)
    x = b.node("Cast", b.input("x", ["N", steps, 3], "int8"), to=getattr(TensorProto, dtype.upper()))
    nodes = [
        helper.make_node("Add", ["s", "g"], ["t"]), helper.make_node("Identity", ["t"], ["row"]),
        *([helper.make_node("Add", ["s", "s"], ["twice"])] if second else []),
    ]
    kind = getattr(TensorProto, dtype.upper())
    outputs = ["t", "row", *(["twice"] if second else [])]
    body = helper.make_graph(
        nodes, "step", [info("s", kind), info("g", kind)], [info(name, kind) for name in outputs]
    )
    b.node(
        "Scan", b.constant(np.array([[1, -2, 3]]), dtype), x, name="last", outputs=["all", *(["before"] * second)],
        body=body, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1] * (1 + second),
        scan_input_directions=[int(backward)], scan_output_directions=[int(backward)] * (1 + second),
    )
    b.output(b.declare("last", ["N", 3], dtype), b.declare("all", ["N", steps, 3], dtype))
    if second:
        b.output(b.declare("before", ["N", steps, 3], dtype))
    return b


@pytest.mark.parametrize("initial", [False, True])
def test_a_recurrent_layer(initial: bool, tmp_path: Path) -> None:
    """A first state of zeros is folded into the first step, which is proved to be one of the loop's all the same."""
    (loop,) = agrees(elman(5, initial=initial).load(tmp_path).quantized)
    assert loop.scanned == 1
    assert (loop.rounds, loop.first) == ((4, (None,)) if initial else (5, (0,)))  # the other's scale is another one


def test_two_states(tmp_path: Path) -> None:
    b, rng = Builder(21, 10), np.random.default_rng(3)
    x = b.requantize(b.input("x", ["N", 6, 3]), 0.25, 0, "int8")
    given = b.node("MatMul", x, b.weights(rng.integers(-9, 9, (3, 12)), 0.03125))
    b.output(lstm(b, given, b.weights(rng.integers(-9, 9, (3, 12)), 0.0625), 3, ["N"]))
    (loop,) = agrees(b.load(tmp_path).quantized)
    assert loop.rounds == 5 and len(loop.states) == 2  # without its quantizers the first step is another function


@pytest.mark.parametrize("backward", [False, True])
def test_sums_that_grow(backward: bool, tmp_path: Path) -> None:
    """Intervals differ from round to round; the loop's are as wide as the widest."""
    (loop,) = agrees(running(7, backward=backward).load(tmp_path).quantized)
    assert loop.rounds >= 6
    state = loop.body.inputs[1].value.typed.interval
    assert state.lo <= -2 - 6 * 128 and state.hi >= 3 + 6 * 127


def test_sums_that_wrap(tmp_path: Path) -> None:
    """From some round on sums exceed the type and wrap: the others stay outside."""
    graph = running(9, "int8").load(tmp_path).quantized
    assert all(loop.rounds < 9 for loop in agrees(graph, count=len(loops(roll_loops(graph)))))


def test_what_is_no_state_leaves_the_loop(tmp_path: Path) -> None:
    agrees(running(6, second=True).load(tmp_path).quantized)


def test_rounds_that_differ(tmp_path: Path) -> None:
    """The weights of one step in the middle are others: what is left on either side is too short for a loop."""
    b, rng = Builder(21, 10), np.random.default_rng(1)
    state = b.requantize(b.input("x", ["N", 2]), 0.125, 0, "int8")
    same, other = (b.weights(rng.integers(-9, 9, (2, 2)), 0.0625) for _ in range(2))
    for step in range(5):
        state = b.requantize(b.node("MatMul", state, other if step == 2 else same), 0.125, 0, "int8")
    b.output(state)
    agrees(b.load(tmp_path).quantized, count=0)


def test_equal_layers_one_after_the_other(tmp_path: Path) -> None:
    """A network that applies one layer again and again is a loop, whoever wrote it."""
    b, rng = Builder(21, 10), np.random.default_rng(1)
    state = b.requantize(b.input("x", ["N", 2]), 0.125, 0, "int8")
    weights = b.weights(rng.integers(-9, 9, (2, 2)), 0.0625)
    for _ in range(5):
        state = b.requantize(b.node("MatMul", state, weights), 0.125, 0, "int8")
    b.output(state)
    (loop,) = agrees(b.load(tmp_path).quantized)
    assert loop.rounds == 5 and loop.scanned == 0


def test_nothing_to_roll(tmp_path: Path) -> None:
    b = Builder(21, 10)
    b.output(b.requantize(b.requantize(b.input("x", ["N", 2]), 0.125, 0, "int8"), 0.25, 0, "int8"))
    graph = b.load(tmp_path).quantized
    assert roll_loops(graph) is graph


@pytest.mark.parametrize("fps", [None, 20_000])
def test_in_hardware(fps: float | None, tmp_path: Path) -> None:
    """Bit for bit and cycle for cycle, with gaps and stalls, and with the same results as with each step unrolled."""
    model = elman(6).load(tmp_path)
    found = []
    for form in ("once", "unrolled"):
        design = compile(model, "ulx3s_85f", fps=fps, loops=form)
        assert design.loops == form
        found.append(check_simulated(design, stalls=(0, 0.5)))
    for name, array in found[0].items():
        np.testing.assert_array_equal(array, found[1][name])


@pytest.mark.parametrize("make", [lambda: running(6), lambda: elman(4, initial=True)])
def test_more_in_hardware(make: Callable[[], Builder], tmp_path: Path) -> None:
    """Sums; a first state that is a stream, so that all rows come from the loop."""
    check_simulated(compile(make().load(tmp_path), "ulx3s_85f", loops="once"), stalls=(0, 0.4))
