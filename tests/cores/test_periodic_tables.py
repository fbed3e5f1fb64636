# amaranth: UnusedElaboratable=no
"""Tables of constants that begin again within a frame are as long as the part that repeats."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from hwflow.boards import find_board
from hwflow.cores.operator import Decision, Folding
from hwflow.cores.registry import hardware
from hwflow.ir.integer_functions import MAXIMUM, Function, Simple
from hwflow.types import IntType, TensorType
from tests.cores.harness import FRAMES, Bench, Case, extreme_frames, golden, random_frames, together
from tests.hdl_lib.bench import STALLS

I8, U1 = IntType(8, True), IntType(1, False)
CHANNEL = np.array([-100, 7, 0, 45, -3, 99])
OF_CHANNELS = np.broadcast_to(CHANNEL, (8, 6))
OF_FRAME = np.random.default_rng(1).integers(-99, 99, (8, 6))
OF_ROWS = np.tile(OF_FRAME[:4], (2, 1))

Constants = tuple[npt.NDArray[np.int64] | None, ...]


def case(function: Function, elements: tuple[IntType, ...], constants: Constants) -> Case:
    shape = next(c.shape for c in constants if c is not None)
    first, *others = (TensorType(shape, element, element.interval) for element in elements)
    attributes = {"function": function, "constants": constants, "wrap": None}
    return Case("periodic", "elementwise", attributes, first, (), None, tuple(others))


def of(constant: npt.NDArray[np.int64]) -> Case:
    return case(MAXIMUM, (I8,), (None, constant))


PERIODS = [  # case, lanes, words of each table
    (of(OF_CHANNELS), 1, 6),
    (of(OF_CHANNELS), 2, 3),
    (of(OF_CHANNELS), 4, 2),  # the second word has two lanes without a channel
    (of(OF_CHANNELS), 6, 1),
    (of(OF_CHANNELS), 12, 1),
    (of(OF_ROWS), 3, 8),
    (of(OF_FRAME), 3, 16),
    (of(OF_CHANNELS[:7]), 2, 3),  # a prime number of pixels
    (of(np.tile([3, 4], (8, 3))), 1, 2),  # channels repeat, too
    (case(Simple("where"), (U1,), (None, OF_CHANNELS, OF_ROWS)), 2, 12),
]

each = pytest.mark.parametrize(("chosen", "lanes", "words"), PERIODS, ids=[f"{n}x{w}" for _, n, w in PERIODS])


@each
def test_their_length(chosen: Case, lanes: int, words: int) -> None:
    files = Bench(chosen, Folding(lanes, lanes), 2).build().files
    assert {len(file.words) for file in files} == {words}


@each
def test_every_frame_meets_them_from_the_start(chosen: Case, lanes: int, words: int) -> None:
    core = Bench(chosen, Folding(lanes, lanes), 4)
    first = together(random_frames(chosen, FRAMES - 1, 4), [array[:1] for array in extreme_frames(chosen, 5)])
    traces = core.run([(first, gap, stall) for gap, stall in STALLS])
    (expected,) = golden(core.node, first)
    for trace in traces:
        assert np.array_equal(core.values(trace.beats), expected)
    (after,) = golden(core.node, first)
    assert np.array_equal(core.values(core.run_after_reset(first, 7)), after)


def test_they_cost_what_repeats() -> None:
    shape = (49, 64)
    values = np.random.default_rng(2).integers(-(1 << 40), 1 << 40, 64)
    wide = IntType(44, True)
    repeated, whole = np.broadcast_to(values, shape), np.random.default_rng(3).integers(-(1 << 40), 1 << 40, shape)
    found = []
    for constant in (repeated, whole):
        node = case(MAXIMUM, (wide,), (None, constant)).node()
        decision = Decision(Folding(1, 1), (2,))
        found.append(hardware("elementwise").resources(node, decision, find_board("ulx3s_85f").part))
    few, many = found
    assert many.bram >= 8  # 3,136 words of 41 bits
    assert few.bram == 0 and few.lut <= many.lut + 41 * 4  # 64 words: four look-up tables of 16 for each bit
