"""Which requantizers move in front of a Max, a Min or a Where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hwflow.passes import pipeline
from hwflow.passes.requantize_choices import requantize_choices
from tests.models import Builder


def levels(b: Builder, name: str, scale: float) -> str:
    """Of a scale of its own, made in hardware."""
    return b.requantize(b.requantize(b.input(name, ["N", 4]), 0.25, 3, "int8"), scale, 1, "int8")


def both(b: Builder, op: str) -> str:
    return b.node(op, levels(b, "x", 0.3), levels(b, "y", 0.7))


MODELS: dict[str, tuple[Callable[[Builder], str], bool]] = {
    "rising": (lambda b: both(b, "Max"), True),
    "falling": (lambda b: b.node("Neg", both(b, "Min")), True),
    "neither": (lambda b: b.node("Abs", both(b, "Max")), False),
    "any_behind_a_where": (
        lambda b: b.node(
            "Abs", b.node("Where", b.input("c", ["N", 4], "bool"), levels(b, "x", 0.3), levels(b, "y", 0.7))
        ),
        True,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_moves(name: str, tmp_path: Path) -> None:
    make, moves = MODELS[name]
    b = Builder(19, 9)
    b.output(b.quantize(make(b), 0.5, 0, "int8"))
    graph = requantize_choices(b.load(tmp_path).quantized)
    (port,) = graph.outputs
    assert graph.producers()[port.value].op == ("elementwise" if moves else "requantize")


def test_a_choice_that_is_read_twice_stays(tmp_path: Path) -> None:
    b = Builder(19, 9)
    greatest = both(b, "Max")
    b.output(b.quantize(greatest, 0.5, 0, "int8"), b.quantize(greatest, 0.2, 0, "int8"))
    graph = requantize_choices(b.load(tmp_path).quantized)
    assert all(graph.producers()[port.value].op == "requantize" for port in graph.outputs)


def test_one_that_stays_stops_no_other(tmp_path: Path) -> None:
    b = Builder(19, 9)
    stays = b.quantize(b.node("Abs", both(b, "Max")), 0.5, 0, "int8")
    moves = b.quantize(b.node("Max", levels(b, "z", 0.3), levels(b, "w", 0.7)), 0.5, 0, "int8")
    b.output(stays, moves)
    graph = requantize_choices(b.load(tmp_path).quantized)
    assert [graph.producers()[port.value].op for port in graph.outputs] == ["requantize", "elementwise"]


def test_nothing_is_left_of_the_ranks(tmp_path: Path) -> None:
    """Two requantizers of 8 bits in, 8 bits out."""
    b = Builder(19, 9)
    b.output(b.quantize(both(b, "Max"), 0.5, 0, "int8"))
    graph = pipeline.run(b.load(tmp_path).quantized, pipeline.DATAFLOW)
    made = [node for node in graph.nodes if node.op == "requantize"]
    assert len(made) == 2 and all(node.outputs[0].typed.element.bits <= 8 for node in made)
