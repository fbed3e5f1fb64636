"""Sums of table words for the digits of an input, against plain Python integers and the issue-slot law."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import Shape, signed, unsigned
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl_lib.memories.rom import Table
from hdl_lib.requantizers.requantize_multiples import Digit, MultiplesRequantizer
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.requantizers.test_requantize import Bench, limits, sample


def core(x_shape, y_shape, digits, shift, low, high, lanes, channels, depth, *, shared=False, seed=0):
    """A core with random words, many of them at the ends of their shape; and its function. ``digits``: bits, shape and
    place of each."""
    rng = random.Random(seed)
    blocks = 1 if shared else -(-channels // lanes)
    made, first = [], 0
    for bits, shape, place in digits:
        made.append(Digit(first, bits, shape, place))
        first += bits
    words = [[[sample(rng, d.shape) for _ in range(blocks << d.bits)] for d in made] for _ in range(lanes)]
    dut = MultiplesRequantizer(
        x_shape, y_shape, lanes=lanes, channels=channels, digits=made, shift=shift, low=low, high=high, depth=depth,
        shared=shared,
        tables=[
            Table.of_words([word & (1 << d.shape.width) - 1 for word in own], d.shape.width)
            for lane in words for d, own in zip(made, lane, strict=True)
        ],
    )

    def function(x, lane, block):
        total = 0
        for d, own in zip(made, words[lane], strict=True):
            value = x >> d.first & (1 << d.bits) - 1
            total += own[block % blocks << d.bits | value] << d.place
        return max(low, min(high, total >> shift))

    return dut, function


S9, U9 = signed(9), unsigned(9)
CASES = {  # name: (latency, arguments)
    "two digits": (6, (signed(8), signed(8), [(4, signed(12), 0), (4, signed(12), 4)], 7, -128, 127, 2, 5, 7)),
    "three digits": (7, (signed(7), signed(6), [(3, S9, 2), (3, S9, 3), (1, S9, 6)], 5, -32, 31, 1, 3, 8)),
    "many digits": (8, (signed(10), unsigned(8), [(2, U9, k) for k in (1, 2, 4, 6)] + [(2, S9, 9)], 9, 3, 99, 1, 4, 9)),
    "unsigned": (6, (unsigned(5), unsigned(4), [(3, unsigned(6), 0), (2, unsigned(6), 3)], 4, 0, 15, 3, 3, 6)),
    "far apart": (6, (signed(4), signed(12), [(2, signed(3), 0), (2, signed(3), 8)], 0, -2000, 2000, 1, 2, 3)),
    "far apart, unsigned": (
        6, (unsigned(4), unsigned(9), [(2, unsigned(1), 0), (2, unsigned(2), 6)], 0, 0, 511, 1, 1, 7)
    ),
    "one place": (6, (signed(4), signed(4), [(2, signed(5), 3), (2, signed(5), 3)], 5, -7, 6, 1, 4, 1)),
    "one block for all": (6, (signed(4), signed(8), [(2, S9, 1), (2, S9, 2)], 3, -99, 99, 2, 6, 7, True)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_against_integers_and_the_law(name, gap, stall):
    latency, (*arguments, last) = CASES[name]
    shared = last is True
    dut, function = core(*arguments, shared=True) if shared else core(*arguments, last)
    Bench(dut, function).run(latency, gap, stall)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.data(), st.integers(0, 99))
def test_of_any_widths(draws, seed):
    x_shape, y_shape = (Shape(draws.draw(st.integers(2, 10)), draws.draw(st.booleans())) for _ in range(2))
    cuts = sorted(draws.draw(st.sets(st.integers(1, x_shape.width - 1), min_size=1, max_size=4)))
    bits = [end - begin for begin, end in zip([0, *cuts], [*cuts, x_shape.width], strict=True)]
    places = sorted(draws.draw(st.integers(0, 9)) for _ in bits)
    shapes = [Shape(draws.draw(st.integers(1, 12)), draws.draw(st.booleans())) for _ in bits]
    low, high = sorted(draws.draw(st.integers(*limits(y_shape))) for _ in range(2))
    shift = places[0] + draws.draw(st.integers(0, 12))
    lanes, channels = draws.draw(st.integers(1, 3)), draws.draw(st.integers(1, 5))
    digits = list(zip(bits, shapes, places, strict=True))
    dut, function = core(x_shape, y_shape, digits, shift, low, high, lanes, channels, 3, seed=seed)
    bench = Bench(dut, function, seed=seed, pixels=5)
    assert drive(dut, bench.beats, len(bench.beats)).beats == bench.expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shift": -1}, "shift must be at least 0, not -1"),
        (
            {"digits": [Digit(0, 4, S9, 0)]},
            "digits must be at least 2, not 1: take the table of requantize_lookup",
        ),
        (
            {"digits": [Digit(0, 2, S9, 3), Digit(2, 2, S9, 2)]},
            "the digits' places must not fall, from at most 3 (the shift) on, not be [3, 2]",
        ),
        (
            {"digits": [Digit(0, 2, S9, 4), Digit(2, 2, S9, 4)]},
            "the digits' places must not fall, from at most 3 (the shift) on, not be [4, 4]",
        ),
        ({"tables": []}, "tables must be 2, 2 for each lane, not 0"),
        (
            {"tables": [Table.of_words([0] * 12, 9), Table.of_words([0] * 8, 9)]},
            "table 1 must have 12 words of 9 bits, not 8 of 9",
        ),
        (
            {"low": 5, "high": 4},
            "low and high must be in -8..7, the range of signed(4), and in this order, not 5 and 4",
        ),
    ],
)
def test_what_is_refused(changes, message):
    arguments = {
        "lanes": 1, "channels": 3, "digits": [Digit(0, 2, S9, 0), Digit(2, 2, S9, 2)], "shift": 3, "low": -8,
        "high": 7, "tables": [Table.of_words([0] * 12, 9)] * 2, "depth": 2,
    }
    with pytest.raises(ValueError) as found:
        MultiplesRequantizer(signed(4), signed(4), **(arguments | changes))
    assert str(found.value) == message
