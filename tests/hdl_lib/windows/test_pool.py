"""MaxPool against max() of plain integers, and against the issue-slot law."""

import random

import pytest
from amaranth.hdl import Shape

from hdl_lib.windows.pool import MaxPool
from tests.hdl_lib.bench import STALLS, drive, pack
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths

# width, signed, channels, lanes, window, depth
CASES = [
    (8, True, 1, 1, 4, 4),
    (8, False, 1, 1, 1, 4),
    (3, True, 3, 2, 4, 4),
    (4, False, 3, 1, 2, 1),
    (5, True, 4, 1, 3, 2),
    (5, True, 5, 1, 3, 5),
    (6, True, 11, 2, 4, 3),
    (7, False, 9, 1, 1, 5),
    (1, True, 6, 1, 2, 5),
    (2, False, 7, 3, 9, 1),
]


def stimulus(width, signed, channels, lanes, window, pixels, seed=0):
    """Input beats and expected output beats; surplus lanes carry random values too."""
    rng = random.Random(seed)
    blocks = -(-channels // lanes)
    low = -(1 << (width - 1)) if signed else 0
    # Mostly values near the least one, so that the maximum is not always at the top of the range.
    bits = [width, max(1, width // 2)]
    inputs = [
        [[low + rng.getrandbits(rng.choice(bits)) for _ in range(lanes * blocks)] for _ in range(window)]
        for _ in range(pixels)
    ]
    outputs = [[max(pixel[c] for pixel in group) for c in range(lanes * blocks)] for group in inputs]

    def beats(values):
        return [pack(values[k : k + lanes], width) for k in range(0, lanes * blocks, lanes)]

    return [b for group in inputs for pixel in group for b in beats(pixel)], [b for out in outputs for b in beats(out)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_values_and_cycles(case, gap, stall):
    width, signed, channels, lanes, window, depth = case
    pixels = 7
    beats, expected = stimulus(*case[:5], pixels)
    dut = MaxPool(Shape(width, signed), channels, lanes, window, depth=depth)
    assert dut.latency == MaxPool.latency_of(channels, lanes)
    trace = drive(dut, beats, len(expected), gap=gap, stall=stall)
    assert trace.beats == expected
    if not gap and not stall:
        blocks = -(-channels // lanes)
        steps = [(True, n // blocks % window == window - 1) for n in range(pixels * window * blocks)]
        latency = 3 if blocks <= 4 else 4
        assert (trace.in_cycles, trace.out_cycles) == cycles(Process(steps, depth, latency))


@pytest.mark.parametrize("case", [(4, True, 2, 1, 3, 2), (4, True, 7, 1, 3, 5)])
def test_reset_in_mid_frame(case):
    width, signed, channels, lanes, window, depth = case
    for seed in range(3):
        beats, expected = stimulus(*case[:5], 4, seed)
        dut = MaxPool(Shape(width, signed), channels, lanes, window, depth=depth)
        assert after_reset(dut, beats, len(expected), seed=seed) == expected


def test_no_combinational_path():
    check_no_paths(MaxPool(Shape(4, True), 2, 1, 2, depth=2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(channels=0), "channels must be at least 1, not 0"),
        (dict(lanes=-1), "lanes must be at least 1, not -1"),
        (dict(window=0), "window must be at least 1 pixel, not 0"),
        (dict(depth=0), "depth must be an integer of at least 1, not 0"),
    ],
)
def test_refused(change, message):
    with pytest.raises(ValueError) as error:
        MaxPool(**(dict(shape=Shape(4), channels=1, lanes=1, window=2, depth=1) | change))
    assert str(error.value) == message
