"""Line buffers whose rows wait in memory outside: the same integers, and which streams wait for how long."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import dataflow
from hwflow.cores.external.rows_side_by_side import SideBySideAttributes
from hwflow.ir.graph import Graph
from hwflow.loaded_model import load
from hwflow.passes.outside.fetch_weights import ANY_TIMING, fetch_weights
from hwflow.passes.outside.rows_outside import row_queues, rows_outside
from hwflow.verify import golden
from tests.models import Builder


def windows(
    folder: Path, seed: int, kind: str, size: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int],
    pads: tuple[int, int, int, int], dilations: tuple[int, int] = (1, 1),
) -> Graph:
    """A convolution or pool of four channels, with a 1 x 1 convolution behind it."""
    rng = np.random.default_rng(seed)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 4, *size]), 0.05, int(rng.integers(0, 256)))
    if kind.endswith("Pool"):
        y = b.node(kind, x, kernel_shape=list(kernel), strides=list(strides), pads=list(pads))
    else:
        groups = 4 if kind == "depthwise" else 1
        w = b.weights(rng.integers(-127, 128, (8 if groups == 1 else 4, 4 // groups, *kernel)), 0.01)
        y = b.node("Conv", x, w, strides=list(strides), pads=list(pads), dilations=list(dilations), group=groups)
    y = b.requantize(y, 0.1, int(rng.integers(0, 256)))
    w = b.weights(rng.integers(-127, 128, (3, 8 if kind == "Conv" else 4, 1, 1)), 0.01)
    b.output(b.requantize(b.node("Conv", y, w), 0.1, 128))
    return dataflow(load(b.save(folder)).quantized)


FORMS = [
    ((6, 5), (3, 3), (1, 1), (1, 1, 1, 1)),
    ((6, 5), (3, 2), (1, 1), (0, 0, 0, 0)),
    ((8, 7), (3, 3), (2, 2), (1, 1, 1, 1)),
    ((8, 8), (3, 3), (2, 2), (0, 0, 1, 1)),
    ((6, 6), (2, 1), (2, 1), (0, 0, 0, 0)),
    ((9, 5), (5, 3), (3, 1), (2, 1, 1, 0)),
    ((4, 3), (3, 3), (1, 1), (2, 2, 2, 2)),
]
KINDS = ["Conv", "depthwise", "MaxPool", "AveragePool"]


@pytest.mark.parametrize(
    ("kind", "size", "kernel", "strides", "pads", "dilations"),
    [(kind, *form, (1, 1)) for kind in KINDS for form in FORMS]
    + [(kind, (9, 7), (3, 3), (1, 2), (2, 2, 2, 2), (2, 2)) for kind in KINDS[:2]],
)
def test_the_same_integers(tmp_path: Path, kind: str, size, kernel, strides, pads, dilations) -> None:
    seed = sum(kernel) + 7 * sum(strides) + 31 * sum(pads)
    graph = windows(tmp_path, seed, kind, size, kernel, strides, pads, dilations)
    ((name, queues),) = row_queues(graph).items()
    assert queues == kernel[0] - 1
    made, held = rows_outside(graph, [name])
    assert len(held) == queues
    (port,) = graph.inputs
    span = port.value.typed.interval
    x = {port.name: np.random.default_rng(seed).integers(span.lo, span.hi + 1, (3, *port.shape))}
    wanted, found = golden.evaluate(graph, x), golden.evaluate(made, x)
    assert wanted.keys() == found.keys()
    for output, values in wanted.items():
        assert np.array_equal(found[output], values)
    assert not row_queues(made)


def rows(graph: Graph) -> tuple[list[range], list[Fraction]]:
    """In which rows each input takes part, and the shares of frames that wait, of the one line buffer."""
    made, held = rows_outside(graph, list(row_queues(graph)))
    (joined,) = [n.attributes for n in made.nodes if isinstance(n.attributes, SideBySideAttributes)]
    return list(joined.spans), list(held.values())


def test_which_rows_meet(tmp_path: Path) -> None:
    """By hand: row y sees rows y + 1, y and y - 1, of which the first comes last; a row more than must wait may."""
    graph = windows(tmp_path, 1, "Conv", (6, 5), (3, 3), (1, 1), (1, 1, 1, 1))
    assert rows(graph) == ([range(5), range(6), range(1, 6)], [Fraction(2, 6), Fraction(3, 6)])


def test_which_rows_meet_with_strides(tmp_path: Path) -> None:
    """By hand: row y sees rows 2 y + 1, 2 y and 2 y - 1 of eight; of each, every second one waits."""
    graph = windows(tmp_path, 1, "Conv", (8, 5), (3, 3), (2, 1), (1, 1, 1, 1))
    assert rows(graph) == ([range(4), range(4), range(1, 4)], [Fraction(2, 4), Fraction(2, 4)])


@pytest.mark.parametrize(
    ("size", "kernel", "strides", "pads"),
    [
        ((6, 5), (1, 3), (1, 1), (0, 1, 0, 1)),  # a single row
        ((3, 5), (3, 3), (1, 1), (0, 1, 0, 1)),  # one row of windows
        ((7, 5), (3, 3), (2, 2), (1, 1, 1, 1)),  # not every second row of the image
        ((3, 5), (2, 2), (1, 1), (1, 1, 1, 1)),
    ],
)
def test_which_line_buffers_stay(tmp_path: Path, size, kernel, strides, pads) -> None:
    graph = windows(tmp_path, 1, "Conv", size, kernel, strides, pads)
    assert bool(row_queues(graph)) == (kernel == (2, 2))


def test_rows_that_are_all_padding_stay(tmp_path: Path) -> None:
    """Nothing of a frame is sent before it comes: the last tap of the first row is in the image."""
    graph = windows(tmp_path, 1, "Conv", (4, 5), (2, 2), (1, 1), (2, 1, 0, 1))
    assert not row_queues(graph)


def test_a_line_buffer_that_sends_windows_again_stays(tmp_path: Path) -> None:
    graph = windows(tmp_path, 1, "Conv", (6, 6), (3, 3), (1, 1), (1, 1, 1, 1))
    mvu = next(node.name for node in graph.nodes if node.op == "mvu")
    fetched = fetch_weights(graph, {mvu: 2}, ANY_TIMING)
    assert row_queues(graph) and not row_queues(fetched)
