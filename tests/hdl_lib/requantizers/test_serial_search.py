"""A binary search in several steps, against counting bounds and the issue-slot law."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import Shape, signed, unsigned
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl_lib.memories.rom import Table
from hdl_lib.requantizers.serial_search import SerialSearch
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.requantizers.test_requantize import Bench, limits, sample


def tree(bounds):
    """Bounds in rising order as a binary tree: a node's word, those of its left side at twice its place."""
    words = [0] * (len(bounds) + 1)

    def place(node, low, high):
        if low < high:
            middle = (low + high) // 2
            words[node] = bounds[middle]
            place(2 * node, low, middle)
            place(2 * node + 1, middle + 1, high)

    place(1, 0, len(bounds))
    return words


def core(x_shape, y_shape, b_shape, stages, channels, depth, *, values=True, base=0, falling=False, words=None,
         turns=(1, 1), seed=0):  # fmt: skip
    """A core with random bounds, and random values or a number to count from; and its function."""
    rng = random.Random(seed)
    words = words or turns[0] * channels
    bounds = [sorted(sample(rng, b_shape) for _ in range((1 << stages) - 1)) for _ in range(words)]
    results = [[sample(rng, y_shape) for _ in range(1 << stages)] for _ in range(words)]

    def table(rows, width):
        return Table.of_words([word & (1 << width) - 1 for row in rows for word in row], width)

    dut = SerialSearch(
        x_shape, y_shape, channels=channels, bound_shape=b_shape, stages=stages, depth=depth, base=base,
        falling=falling, turns=turns, bounds=table(map(tree, bounds), b_shape.width),
        values=table(results, y_shape.width) if values else None,
    )

    def function(x, lane, block):
        above = sum(x > bound for bound in bounds[block % words])
        return results[block % words][above] if values else base - above if falling else base + above

    return dut, function


# name: (steps, latency, arguments, options): a step to begin, three for each comparison; two cycles, two more where a
# value is read
CASES = {
    "values": (25, 4, (signed(18), signed(8), signed(19), 8, 3, 2), {}),
    "one stage": (4, 4, (signed(12), unsigned(5), signed(12), 1, 1, 1), {}),
    "count": (16, 2, (unsigned(9), unsigned(6), unsigned(9), 5, 4, 3), {"values": False, "base": 30}),
    "count down": (10, 2, (signed(6), signed(5), signed(9), 3, 2, 2), {"values": False, "base": 7, "falling": True}),
    "one word for all": (13, 4, (unsigned(7), signed(4), signed(5), 4, 5, 2), {"words": 1}),
    "bit": (7, 2, (unsigned(1), unsigned(2), signed(2), 2, 3, 2), {"values": False}),
    "in banks": (33, 5, (signed(18), signed(16), signed(18), 8, 96, 2), {}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_against_counts_and_the_law(name, gap, stall):
    count, latency, arguments, options = CASES[name]
    dut, function = core(*arguments, **options)
    assert (dut.steps_of(dut.stages, dut.bound_shape.width, dut.words), dut.latency) == (count, latency)
    bench = Bench(dut, function, pixels=max(2, 24 // dut.channels))
    trace = drive(dut, bench.beats, len(bench.beats), gap=gap, stall=stall)
    assert trace.beats == bench.expected
    if not gap and not stall:
        steps = [(step == 0, step == count - 1) for _ in bench.beats for step in range(count)]
        assert (trace.in_cycles, trace.out_cycles) == cycles(Process(steps, dut.depth, latency))


def test_each_round_has_tables_of_its_own():
    """Two rounds of three pixels, three times."""
    dut, function = core(signed(10), signed(8), signed(10), 3, 2, 2, turns=(2, 3))
    bench = Bench(dut, lambda x, lane, block: x, pixels=9)
    beats = [beat for beat in bench.beats if beat is not None][:36]
    order = [2 * (place // 6 % 2) + place % 2 for place in range(len(beats))]
    signed_of = [beat - (beat >> 9 << 10) for beat in beats]
    expected = [function(x, 0, block) & 0xFF for x, block in zip(signed_of, order, strict=True)]
    assert drive(dut, beats, len(beats)).beats == expected


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.data(), st.integers(0, 99))
def test_of_any_widths(draws, seed):
    x_shape, y_shape, b_shape = (
        Shape(draws.draw(st.integers(1, width)), draws.draw(st.booleans())) for width in (33, 10, 33)
    )
    values = draws.draw(st.booleans())
    most = 6 if values else y_shape.width
    stages, channels = draws.draw(st.integers(1, most)), draws.draw(st.integers(1, 5))
    low, high = limits(y_shape)
    base = low if not values else 0
    if not values and high - low < (1 << stages) - 1:
        stages = 1
    dut, function = core(
        x_shape, y_shape, b_shape, stages, channels, 3, values=values, base=base, seed=seed
    )
    bench = Bench(dut, function, seed=seed, pixels=5)
    assert drive(dut, bench.beats, len(bench.beats)).beats == bench.expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stages": 0}, "stages must be at least 1, not 0; a constant needs no requantizer"),
        ({"bound_shape": unsigned(0)}, "bound_shape must have at least 1 bit, not 0"),
        ({"base": 9}, "base must be in -8..7, the range of signed(4), not 9"),
        ({"bound_shape": signed(8)}, "the words of bounds must have 8 bits, not 9"),
        ({"values": Table.of_words([0] * 8, 3)}, "the words of values must have 4 bits, not 3"),
        (
            {"values": Table.of_words([0] * 8, 4)},
            "values must have 12 words (4 for each of 3 blocks) or 4 for all, not 8",
        ),
        (
            {"bounds": Table.of_words([0] * 8, 9)},
            "bounds must have 12 words (4 for each of 3 blocks) or 4 for all, not 8",
        ),
    ],
)
def test_what_is_refused(changes, message):
    arguments = {
        "channels": 3, "bound_shape": signed(9), "stages": 2, "bounds": Table.of_words([0] * 12, 9), "depth": 2,
        "values": None,
    }
    with pytest.raises(ValueError) as found:
        SerialSearch(signed(9), signed(4), **(arguments | changes))
    assert str(found.value) == message
