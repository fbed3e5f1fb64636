"""Convolutions and pools whose cores take several windows per beat, as whole designs: values are the golden model's,
every beat comes in the cycle the schedule predicts, at the interval that the image allows."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.boards import find_board
from hwflow.ir.graph import Graph
from hwflow.schedule.schedule import schedule
from hwflow.schedule.search.folding_search import Budget
from hwflow.types import IntType
from tests.schedule.graphs import Builder, dataflow
from tests.schedule.simulation import check_simulated

PART = find_board("ulx3s_85f").part
ROOMY = Budget(1_000_000, 1_000_000, 10_000, 1_000)
U3, I3 = IntType(3, False), IntType(3, True)


def network() -> Graph:
    """An image of 8 x 8, two 3 x 3 convolutions with a maximum of 2 x 2 between them and one of all behind."""
    build = Builder(np.random.default_rng(8))
    value = build.conv2d(build.input((1, 8, 8), U3), 2, 3, 1, 1, I3)
    value = build.max_pool2d(build.requantize(value, U3), 2, 2)
    value = build.conv2d(value, 3, 3, 1, 0, I3)
    build.output(build.max_pool2d(build.requantize(value, U3), 2, 2))
    return build.done()


@pytest.mark.parametrize(
    ("target", "interval"),
    [
        (70, 65),  # one pixel per beat, and a step for the last window
        (8, 8),  # a row
    ],
)
def test_a_frame_in_pixels_by_windows_a_beat(target: int, interval: int) -> None:
    quantized = network()
    scheduled = schedule(dataflow(quantized), PART, ROOMY, target)
    check_simulated(quantized, scheduled, seed=target)
    assert scheduled.initiation_interval <= interval
