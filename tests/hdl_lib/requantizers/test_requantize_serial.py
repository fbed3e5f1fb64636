"""Multiply-add-shift in several steps, against plain Python integers and the issue-slot law."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import Shape, signed, unsigned
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl_lib.memories.rom import Table
from hdl_lib.requantizers.requantize_serial import SerialMultiplyAddShift, SerialSteps
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.requantizers.test_requantize import Bench, limits, sample


def core(
    x_shape, y_shape, m_shape, together, shift, low, high, lanes, channels, depth, *, words=None, seed=0, reach=40
):
    """A core with random multipliers, many of them at the ends of their shape, and random addends that suit it; and its
    function."""
    rng = random.Random(seed)
    blocks = -(-channels // lanes)
    words = words or blocks
    b_shape = signed(reach + 2)
    steps = SerialSteps(x_shape, m_shape, b_shape, together)
    fields = []
    for _ in range(words):
        word = []
        for _ in range(lanes):
            m = sample(rng, m_shape)
            least = -(1 << reach) + m * steps.offset
            unit, span = 4**steps.digits, 2 << reach
            moved = rng.choice([least, least + span - unit, rng.randrange(least, least + span)])
            word.append((m, -(-moved // unit) * unit - m * steps.offset))
        fields.append(word)
    width = steps.word_shape.width
    table = []
    for word in fields:
        stored = [steps.stored(m, b) for m, b in word]
        table += [sum(pair[k] << lane * width for lane, pair in enumerate(stored)) for k in range(2)]
    dut = SerialMultiplyAddShift(
        x_shape, y_shape, lanes=lanes, channels=channels, multiplier_shape=m_shape, addend_shape=b_shape,
        together=together, shift=shift, low=low, high=high, depth=depth,
        parameters=Table.of_words(table, lanes * width),
    )

    def function(x, lane, block):
        m, b = fields[block % words][lane]
        return max(low, min(high, m * x + b >> shift))

    return dut, function


CASES = {  # name: (steps, latency, arguments)
    "int8": (10, 6, (signed(18), signed(8), unsigned(24), 1, 34, -128, 127, 1, 4, 2)),
    "two digits per step": (6, 7, (signed(19), signed(8), signed(22), 2, 34, -128, 127, 2, 3, 2)),
    "three digits per step": (4, 8, (signed(18), signed(8), signed(12), 3, 28, -100, 90, 1, 2, 3)),
    "five digits per step": (3, 10, (unsigned(20), unsigned(8), unsigned(17), 5, 30, 0, 255, 1, 5, 8)),
    "one step of digits": (2, 8, (unsigned(5), unsigned(4), signed(5), 3, 12, 1, 14, 2, 2, 9)),
    "one bit": (2, 6, (unsigned(1), signed(4), signed(3), 1, 2, -8, 7, 1, 3, 7)),
    "one word for all": (6, 6, (signed(9), signed(6), signed(9), 1, 12, -32, 31, 2, 6, 1)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_against_integers_and_the_law(name, gap, stall):
    count, latency, arguments = CASES[name]
    dut, function = core(*arguments, words=1 if name == "one word for all" else None)
    assert (dut.steps.count, dut.latency) == (count, latency)
    bench = Bench(dut, function, pixels=6)
    trace = drive(dut, bench.beats, len(bench.beats), gap=gap, stall=stall)
    assert trace.beats == bench.expected
    if not gap and not stall:
        steps = [(step == 0, step == count - 1) for _ in bench.beats for step in range(count)]
        assert (trace.in_cycles, trace.out_cycles) == cycles(Process(steps, dut.depth, latency))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.data(), st.integers(0, 99))
def test_of_any_widths(draws, seed):
    x_shape, y_shape, m_shape = (
        Shape(draws.draw(st.integers(1, width)), draws.draw(st.booleans())) for width in (33, 10, 30)
    )
    together = draws.draw(st.integers(1, 5))
    low, high = sorted(draws.draw(st.integers(*limits(y_shape))) for _ in range(2))
    shift = 2 * SerialSteps(x_shape, m_shape, signed(9), together).digits + draws.draw(st.integers(0, 12))
    lanes, channels = draws.draw(st.integers(1, 3)), draws.draw(st.integers(1, 5))
    reach = shift + draws.draw(st.integers(1, 12))
    dut, function = core(
        x_shape, y_shape, m_shape, together, shift, low, high, lanes, channels, 3, seed=seed, reach=reach
    )
    bench = Bench(dut, function, seed=seed, pixels=5)
    assert drive(dut, bench.beats, len(bench.beats)).beats == bench.expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"together": 0}, "together must be at least 1 digit, not 0"),
        ({"shift": 9}, "shift must be at least 10, twice the digits, not 9: take the products of requantize_mas"),
        (
            {"low": 5, "high": 4},
            "low and high must be in -8..7, the range of signed(4), and in this order, not 5 and 4",
        ),
        (
            {"parameters": Table.of_words([0] * 3, 13)},
            "the table must have 2 words for each of 3 blocks or for all, of 13 bits (1 lanes of 13), not 3 of 13",
        ),
    ],
)
def test_what_is_refused(changes, message):
    arguments = {
        "lanes": 1, "channels": 3, "multiplier_shape": signed(9), "addend_shape": signed(22), "together": 1,
        "shift": 12, "low": -8, "high": 7, "parameters": Table.of_words([0] * 6, 13), "depth": 2,
    }
    with pytest.raises(ValueError) as found:
        SerialMultiplyAddShift(signed(9), signed(4), **(arguments | changes))
    assert str(found.value) == message


def test_an_addend_that_does_not_suit_the_digits_is_refused():
    steps = SerialSteps(signed(4), signed(5), signed(9), 1)  # digits make -10..5, the input is -8..7: offset 2
    assert (steps.offset, steps.digits) == (2, 2)
    assert steps.stored(3, 26) == (3, 2)  # 26 + 3 * 2 == 2 * 16
    with pytest.raises(ValueError, match=r"addend \+ multiplier \* 2 must be a multiple of 16, not 27 with 3"):
        steps.stored(3, 27)
