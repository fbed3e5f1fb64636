"""Width converter: regrouping written a second time in Python, cycles of the law, every ratio."""

import random

import pytest
from amaranth.hdl import signed, unsigned
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hdl_lib.streams.width_converter import WidthConverter
from tests.hdl_lib.bench import STALLS, drive, pack
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths

CASES = [  # channels, lanes in, lanes out, depth
    (8, 1, 4, 2),
    (6, 1, 4, 2),
    (7, 2, 6, 2),
    (5, 2, 8, 1),
    (3, 4, 8, 2),
    (8, 4, 1, 2),
    (6, 4, 1, 2),
    (7, 6, 2, 3),
    (3, 8, 4, 2),
    (1, 3, 1, 1),
    (12, 4, 6, 2),
    (7, 3, 2, 2),
    (5, 2, 3, 1),
    (10, 6, 4, 4),
    (7, 3, 7, 2),
    (7, 7, 3, 2),
    (8, 5, 8, 1),
    (5, 5, 3, 3),
]


def beats_of(pixels, lanes, width, surplus):
    """Pixels (lists of elements) as beats of ``lanes``; ``surplus()`` gives the value of a surplus lane."""
    out = []
    for pixel in pixels:
        for start in range(0, len(pixel), lanes):
            elements = pixel[start : start + lanes]
            out.append(pack(elements + [surplus() for _ in range(lanes - len(elements))], width))
    return out


def traffic(channels, lanes_in, lanes_out, width, count, seed):
    rng = random.Random(seed)
    pixels = [[rng.getrandbits(width) for _ in range(channels)] for _ in range(count)]
    given_beats = beats_of(pixels, lanes_in, width, lambda: rng.getrandbits(width))  # surplus lanes hold garbage
    return given_beats, beats_of(pixels, lanes_out, width, lambda: 0)


def steps_up(channels, lanes_in, lanes_out, pixels):
    """One step for each input beat: it produces when it fills an output beat or ends the pixel."""
    steps = []
    for _ in range(pixels):
        elements = 0
        while elements < channels:
            elements += lanes_in
            steps.append((True, elements % lanes_out == 0 or elements >= channels))
    return steps


def steps_down(channels, lanes_in, lanes_out, pixels):
    """One step for each output beat: it consumes when it is the first out of an input beat."""
    return [(start % lanes_in == 0, True) for _ in range(pixels) for start in range(0, channels, lanes_out)]


def processes(channels, lanes_in, lanes_out, depth, pixels):
    if lanes_out % lanes_in == 0 or lanes_in < lanes_out == channels:
        return [Process(steps_up(channels, lanes_in, lanes_out, pixels), depth, 1)]
    if lanes_in % lanes_out == 0 or lanes_out < lanes_in == channels:
        return [Process(steps_down(channels, lanes_in, lanes_out, pixels), depth, 1)]
    common = next(n for n in range(lanes_in, lanes_in * lanes_out + 1) if n % lanes_in == n % lanes_out == 0)
    return [
        Process(steps_up(channels, lanes_in, common, pixels), 2, 1),
        Process(steps_down(channels, common, lanes_out, pixels), depth, 1),
    ]


@pytest.mark.parametrize(("channels", "lanes_in", "lanes_out", "depth"), CASES)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_values_and_cycles_of_the_law(channels, lanes_in, lanes_out, depth, gap, stall):
    dut = WidthConverter(signed(5), channels, lanes_in, lanes_out, depth)
    given_beats, expected = traffic(channels, lanes_in, lanes_out, 5, 7, seed=channels)
    trace = drive(dut, given_beats, len(expected), gap=gap, stall=stall)
    assert trace.beats == expected
    if not gap and not stall:
        law = processes(channels, lanes_in, lanes_out, depth, 7)
        assert (trace.in_cycles, trace.out_cycles) == cycles(*law)
        assert dut.latency == len(law)


def test_cycles_by_hand():
    # 6 elements, 1 to 4 lanes: beats out after 4 and 2 beats in; a cycle of latency.
    trace = drive(WidthConverter(8, 6, 1, 4), list(range(12)), 4)
    assert trace.in_cycles == list(range(12))
    assert trace.out_cycles == [4, 6, 10, 12]
    assert trace.beats == [0x03020100, 0x00000504, 0x09080706, 0x00000B0A]
    # 6 elements, 4 lanes to 1: four beats from the first, two from the second.
    trace = drive(WidthConverter(8, 6, 4, 1), [0x03020100, 0xFFFF0504, 0x09080706, 0xFFFF0B0A], 12)
    assert trace.in_cycles == [0, 4, 6, 10]
    assert trace.out_cycles == list(range(1, 13))
    assert trace.beats == list(range(12))


@settings(max_examples=15, deadline=None)
@given(
    channels=st.integers(1, 20),
    lanes_in=st.integers(1, 9),
    lanes_out=st.integers(1, 9),
    depth=st.integers(1, 6),
    gap=st.sampled_from([0.0, 0.5]),
    stall=st.sampled_from([0.0, 0.5]),
)
def test_any_ratio(channels, lanes_in, lanes_out, depth, gap, stall):
    assume(lanes_in != lanes_out)
    given_beats, expected = traffic(channels, lanes_in, lanes_out, 3, 5, seed=channels)
    dut = WidthConverter(unsigned(3), channels, lanes_in, lanes_out, depth)
    trace = drive(dut, given_beats, len(expected), gap=gap, stall=stall)
    assert trace.beats == expected
    if not gap and not stall:
        assert (trace.in_cycles, trace.out_cycles) == cycles(*processes(channels, lanes_in, lanes_out, depth, 5))


@pytest.mark.parametrize(("channels", "lanes_in", "lanes_out", "depth"), CASES)
def test_reset_in_mid_frame(channels, lanes_in, lanes_out, depth):
    for seed in range(2):
        dut = WidthConverter(unsigned(4), channels, lanes_in, lanes_out, depth)
        given_beats, expected = traffic(channels, lanes_in, lanes_out, 4, 5, seed)
        assert after_reset(dut, given_beats, len(expected), seed=seed) == expected


@pytest.mark.parametrize(("channels", "lanes_in", "lanes_out", "depth"), CASES)
def test_no_combinational_path(channels, lanes_in, lanes_out, depth):
    check_no_paths(WidthConverter(unsigned(4), channels, lanes_in, lanes_out, depth))


def test_wrong_arguments_are_named():
    with pytest.raises(
        ValueError, match=r"^lanes_in and lanes_out must differ, not both be 4: leave the converter out$"
    ):
        WidthConverter(8, 4, 4, 4)
    with pytest.raises(ValueError, match=r"^channels must be an integer of at least 1, not 0$"):
        WidthConverter(8, 0, 4, 2)
    with pytest.raises(ValueError, match=r"^depth must be an integer of at least 1, not 0$"):
        WidthConverter(8, 4, 4, 2, 0)
