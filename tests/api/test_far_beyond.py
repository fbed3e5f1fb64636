"""What goes round in cores that layers share must be held somewhere: a bound that refuses before any search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import dataflow
from hwflow.api.far_beyond import FarBeyond, refuse_far_beyond
from hwflow.boards import find_board
from hwflow.ir.graph import Graph
from hwflow.loaded_model import load
from hwflow.passes.pipeline import SHARED, UNROLLED
from hwflow.schedule.search.folding_search import Budget
from tests.models import Builder


def alike(folder: Path, side: int, loops: str) -> Graph:
    """Four convolutions of 8 channels; the last three are of one shape."""
    rng = np.random.default_rng(1)
    b, before = Builder(19, 9), 3
    x = b.requantize(b.input("x", ["N", before, side, side]), 0.05, 128)
    for _ in range(4):
        w = b.weights(rng.integers(-60, 61, (8, before, 3, 3)), 0.005)
        x = b.requantize(b.node("Relu", b.node("Conv", x, w, pads=[1, 1, 1, 1])), 0.1)
        before = 8
    b.output(x)
    return dataflow(load(b.save(folder)).quantized, loops)


def judge(graph: Graph) -> None:
    part = find_board("icebreaker").part
    budget = Budget(part.lut, part.ff, part.dsp, part.bram)
    refuse_far_beyond(graph, part, [budget], None, 12e6, budget)


def test_a_round_that_no_memory_holds(tmp_path: Path) -> None:
    """64 x 64 pixels of 8 bytes are 262,144 bits; 30 block RAMs, 16 bits a table and the flip-flops 212,640."""
    with pytest.raises(FarBeyond, match=r"must have at most 212,640 bits, not 263,656 \(.* 262,144\)"):
        judge(alike(tmp_path, 64, SHARED))


@pytest.mark.parametrize(("side", "loops"), [(64, UNROLLED), (48, SHARED)])
def test_what_may_fit(tmp_path: Path, side: int, loops: str) -> None:
    judge(alike(tmp_path, side, loops))
