"""ConstantRequantizer against rationals, for every input, and against the issue-slot law."""

from fractions import Fraction
from math import floor

import pytest
from amaranth.hdl import Shape, signed, unsigned

from hdl_lib.arithmetic.adder_network import Adder, AdderNetwork
from hdl_lib.requantizers.requantize_constant import ConstantLane, ConstantRequantizer
from tests.hdl_lib.bench import STALLS, drive, pack
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths


def rounded(value, shift, rounding):
    """``value / 2**shift`` rounded (Python rounds a tie to even)."""
    exact = Fraction(value, 1 << shift)
    if rounding == "floor":
        return floor(exact)
    return round(exact) if rounding == "half_even" else round(exact + 1) - 1


def shifts(inputs, distances):
    """Products with powers of two, or with nothing."""
    outputs = tuple((None, 0) if d is None else (lane, d) for lane, d in enumerate(distances))
    return AdderNetwork(tuple(inputs), (), outputs)


INT6 = (-32, 31)


def core(rounding, low, high, *, depth=8, shift=2, held=True):
    """Lanes: x, -2 x, 4 x, nothing, and x of an interval without negative numbers; odd and even addends."""
    products = shifts([INT6] * 4 + [(3, 31)], [0, 1, 2, None, 0])
    return ConstantRequantizer(
        signed(6), signed(6), products, [False, True, False, False, True], [3, -5, 8, 6, 1],
        shift=shift, low=low, high=high, rounding=rounding, depth=depth, held=held,
    )


MULTIPLIERS, ADDENDS = [1, -2, 4, 0, -1], [3, -5, 8, 6, 1]


def stimulus(rounding, low, high, shift):
    inputs, outputs = [], []
    for x in range(-32, 32):
        xs = [x, x, x, x, max(x, 3)]
        sums = [m * v + a for m, v, a in zip(MULTIPLIERS, xs, ADDENDS, strict=True)]
        inputs.append(pack(xs, 6))
        outputs.append(pack([min(max(rounded(s, shift, rounding), low), high) for s in sums], 6))
    return inputs, outputs


LIMITS = [(-32, 31), (0, 15), (0, 6), (-5, 4), (-4, 5), (-8, 7), (-1, 0), (2, 2), (-3, -2), (-7, 8)]


@pytest.mark.parametrize("rounding", ["floor", "half_even", "half_odd"])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("shift", [1, 9])
@pytest.mark.parametrize("held", [True, False])
def test_every_input(rounding, limits, shift, held):
    beats, expected = stimulus(rounding, *limits, shift)
    assert drive(core(rounding, *limits, shift=shift, held=held), beats, len(expected)).beats == expected


def test_no_shift():
    dut = ConstantRequantizer(
        signed(6), signed(6), shifts([INT6, INT6], [0, 0]), [False, True], [2, -1], shift=0, low=-20, high=9, depth=8
    )
    beats = [pack([x, x], 6) for x in range(-32, 32)]
    expected = [pack([min(max(x + 2, -20), 9), min(max(-x - 1, -20), 9)], 6) for x in range(-32, 32)]
    assert drive(dut, beats, len(expected)).beats == expected


def test_products_of_sums():
    """5 x - 1 and 3 x (from 4 x - x), a lane of which waits for the other."""
    adders = (Adder(0, 0, 0, 2, False, -160, 155, 1), Adder(1, 2, 1, 0, True, -96, 93, 1))
    products = AdderNetwork((INT6, INT6), adders, ((2, 1), (3, 0)))
    dut = ConstantRequantizer(
        signed(6), unsigned(4), products, [False, False], [-1, 0], shift=4, low=0, high=15, rounding="half_even",
        depth=9,
    )
    assert dut.latency == 5
    beats = [pack([x, -x - 1], 6) for x in range(-32, 32)]
    expected = [
        pack([min(max(rounded(s, 4, "half_even"), 0), 15) for s in (10 * x - 1, -3 * x - 3)], 4) for x in range(-32, 32)
    ]
    assert drive(dut, beats, len(expected)).beats == expected


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize("depth", [1, 3, 6])
@pytest.mark.parametrize("held", [True, False])
def test_cycles(gap, stall, depth, held):
    dut = core("half_even", -5, 4, depth=depth, held=held)
    beats, expected = stimulus("half_even", -5, 4, 2)
    trace = drive(dut, beats, len(expected), gap=gap, stall=stall)
    assert trace.beats == expected
    if not gap and not stall:
        process = Process([(True, True)] * len(beats), depth, 4 if held else 1)
        assert (trace.in_cycles, trace.out_cycles) == cycles(process)


def test_reset_and_paths():
    beats, expected = stimulus("half_odd", -5, 4, 2)
    assert after_reset(core("half_odd", -5, 4, depth=3), beats[:20], 20, seed=3) == expected[:20]
    check_no_paths(core("half_odd", -5, 4, depth=3))


def test_adders():
    """By hand, rounding to even by 2 bits, which adds 2. x + 5: -27..36 is 7 bits. -2 x - 3 is -65..61: 8 bits, but the
    lowest is the constant's. 4 x + 10 is -118..134: 9 bits, two of them the constant's, and what is above these in it
    is 2, so that one more passes. -x + 3: -28..0 is 6 bits."""
    dut = core("half_even", -5, 4)
    assert [lane.sum_interval() for lane in dut.lanes] == [(-27, 36), (-65, 61), (-118, 134), (8, 8), (-28, 0)]
    assert [lane.carry_bits() for lane in dut.lanes] == [7, 7, 6, 0, 6]


@pytest.mark.parametrize(
    ("ends", "low", "high", "expected"),
    [
        ((-200, 100), -128, 127, True),  # 9 bits: the upper 2 say that it is below
        ((-512, 511), -128, 127, True),  # 10 bits, the upper 3 of them
        ((-513, 511), -128, 127, False),  # 11 bits, 4
        ((0, 2047), 0, 255, True),  # 11 bits without a sign, 3
        ((0, 2048), 0, 255, False),  # 12 bits, 4
        ((-2048, 2047), 0, 4000, True),  # the sign alone
        ((-100, 100), -50, 100, False),  # a difference to -50
        ((-100, 100), -128, 99, False),
        ((-100, 100), 1, 127, False),
        ((-100, 100), -128, 127, True),  # none
    ],
)
def test_limits_that_a_few_bits_tell(ends, low, high, expected):
    lane = ConstantLane(ends, 0, False, 0, 0, low, high, "floor")
    assert lane.limited_at_once() == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"addends": []}, "there must be an input and an output of products and a sign for each addend, 0 and at"),
        ({"negative": [True]}, "there must be an input and an output of products and a sign for each addend, 2 and at"),
        ({"rounding": "up"}, "rounding must be one of floor, half_even, half_odd, not up"),
        ({"rounding": "half_odd", "shift": 0}, "shift must be at least 1 with rounding half_odd, not 0"),
        ({"shift": -1}, "shift must be at least 0 with rounding floor, not -1"),
        ({"high": 16}, "low and high must be in 0..15, the range of unsigned(4), and in this order, not 0 and 16"),
        ({"output_shape": Shape(3), "low": 5, "high": 4}, "low and high must be in 0..7, the range of unsigned(3)"),
        ({"depth": -1}, "depth must be an integer of at least 0, not -1"),
    ],
)
def test_refusals(change, message):
    given = {
        "output_shape": unsigned(4), "negative": [False] * 2, "addends": [1, 2], "shift": 1, "low": 0, "high": 15,
        "rounding": "floor", "depth": 4, **change,
    }
    shape, negative, addends = (given.pop(name) for name in ("output_shape", "negative", "addends"))
    with pytest.raises(ValueError) as refusal:
        ConstantRequantizer(signed(6), shape, shifts([INT6, INT6], [0, 1]), negative, addends, **given)
    assert str(refusal.value).startswith(message)


def test_products_with_registers_are_held():
    adders = AdderNetwork((INT6,), (Adder(0, 0, 0, 2, False, -160, 155, 1),), ((1, 0),))
    with pytest.raises(ValueError, match=r"^held must be True for products of 1 stages, which have registers$"):
        ConstantRequantizer(signed(6), signed(6), adders, [False], [0], shift=2, low=-4, high=4, depth=1, held=False)
