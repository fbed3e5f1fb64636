"""Multiply-add-shift with products of look-up tables, against plain Python integers and the issue-slot law."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import Shape, signed, unsigned
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.memories.rom import Table
from hdl_lib.requantizers.requantize_mas import MultiplyAddShift
from tests.hdl_lib.bench import STALLS, pack
from tests.hdl_lib.requantizers.test_requantize import Bench, limits, quotient, sample


def core(x_shape, y_shape, multipliers, b_shape, shift, low, high, lanes, channels, depth, rounding="floor", seed=0):
    """A core with random multipliers within ``multipliers`` and random addends, and its function."""
    rng = random.Random(seed)
    blocks = -(-channels // lanes)
    digits = Digits.of(multipliers)
    fields = [
        [(rng.choice([*multipliers, rng.randint(*multipliers)]), sample(rng, b_shape)) for _ in range(lanes)]
        for _ in range(blocks)
    ]
    width = digits.bits + b_shape.width
    words = [
        sum(
            (digits.stored(m) | pack([b], b_shape.width) << digits.bits) << (lane * width)
            for lane, (m, b) in enumerate(word)
        )
        for word in fields
    ]
    signed_multipliers = multipliers[0] < 0
    bits = max(abs(m).bit_length() for m in multipliers) + signed_multipliers
    dut = MultiplyAddShift(
        x_shape, y_shape, lanes=lanes, channels=channels, multiplier_shape=Shape(max(1, bits), signed_multipliers),
        addend_shape=b_shape, shift=shift, low=low, high=high, parameters=Table.of_words(words, lanes * width),
        depth=depth, rounding=rounding, digits=digits,
    )

    def function(x, lane, block):
        m, b = fields[block][lane]
        return max(low, min(high, quotient(m * x + b, shift, rounding)))

    return dut, function


CASES = {  # name: (latency: 5, the levels over the digits, the rounding; arguments)
    # -2..1 is one digit, -10..5 two, -42..21 three, -170..85 four, -682..341 five
    "one digit": (6, (signed(8), signed(8), (-2, 1), signed(6), 1, -128, 127, 2, 5, 7)),
    "two digits": (6, (unsigned(8), unsigned(8), (0, 5), unsigned(6), 3, 0, 255, 1, 3, 7)),
    "three digits": (7, (signed(9), signed(6), (-11, 3), signed(9), 4, -32, 30, 2, 2, 8)),
    "four digits": (7, (signed(9), signed(6), (0, 85), signed(9), 8, -32, 30, 3, 4, 8, "half_even")),
    "wide digit": (7, (signed(9), signed(6), (0, 86), signed(9), 8, -32, 30, 1, 4, 2, "half_odd")),
    "int8": (9, (signed(22), signed(8), (0, (1 << 20) - 1), signed(40), 34, -128, 127, 1, 4, 9)),
    "nothing": (6, (signed(5), signed(4), (0, 0), signed(4), 0, -8, 7, 1, 2, 6)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_products_of_rows(name, gap, stall):
    latency, arguments = CASES[name]
    if len(arguments) > 10:
        latency += 1
    dut, function = core(*arguments)
    assert dut.multipliers == 0 and not dut.constants
    Bench(dut, function).run(latency, gap, stall)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.data(), st.integers(0, 9))
def test_of_any_widths(draws, seed):
    x_shape, y_shape, b_shape = (
        Shape(draws.draw(st.integers(1, width)), draws.draw(st.booleans())) for width in (36, 10, 48)
    )
    low, high = sorted(draws.draw(st.integers(*limits(y_shape))) for _ in range(2))
    reach = 1 << draws.draw(st.integers(1, 30))
    multipliers = -draws.draw(st.integers(0, reach)), draws.draw(st.integers(0, reach))
    lanes, channels = draws.draw(st.integers(1, 3)), draws.draw(st.integers(1, 5))
    rounding = draws.draw(st.sampled_from(["floor", "half_even", "half_odd"]))
    shift = draws.draw(st.integers(rounding != "floor", 40))
    dut, function = core(
        x_shape, y_shape, multipliers, b_shape, shift, low, high, lanes, channels, 12, rounding, seed
    )
    Bench(dut, function, seed=seed, pixels=8).run(dut.latency)
