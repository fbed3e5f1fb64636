"""Two products in one multiplier block: which fit, by counting; the arithmetic, over every value; the split of sums."""

import numpy as np
import pytest
from amaranth.hdl import Module, Shape, Signal
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl_lib.arithmetic.multiplier import Multiplier
from hdl_lib.arithmetic.packed_product import BLOCKS, PackedSum, Packing, borrowed


def whole(bits: int, signed: bool) -> tuple[int, int]:
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def split(total, shift: int):
    """(low, high) of a number, as the hardware does it: the lower bits with sign, the upper ones plus that sign."""
    low = total & ((1 << shift) - 1)
    sign = low >> (shift - 1)
    return low - (sign << shift), (total >> shift) + sign


def operand(packing: Packing, high, low):
    """The packed operand as the table's bits make it."""
    return (borrowed(high, low) << packing.shift) + (low & ((1 << packing.shift) - 1))


@pytest.mark.parametrize(
    ("block", "inputs", "weights", "lanes", "found"),
    [  # bits of a low product (or sum) with sign, levels; by hand
        ("MULT18X18D", (0, 255), (-8, 7), 1, (12, 0)),  # -2040 .. 1785; high weights -9 .. 7 have 5 bits: 17
        ("MULT18X18D", (0, 255), (-8, 7), 2, (13, 1)),  # -4080
        ("MULT18X18D", (0, 255), (-8, 7), 4, (13, 1)),  # four of them would have 14 bits, and 19 in all
        ("MULT18X18D", (0, 255), (-7, 7), 4, (14, 2)),  # -7140 .. 7140 has 14 bits; -8 .. 7 has four: 18
        ("MULT18X18D", (0, 255), (-15, 15), 4, (13, 0)),  # +-3825; -16 .. 15 has five: 18
        ("MULT18X18D", (0, 255), (-16, 15), 4, None),  # -4080 .. 3825; -17 .. 15 has six: 19
        ("MULT18X18D", (0, 127), (-16, 15), 4, (12, 0)),  # after a Relu
        ("MULT18X18D", (-128, 127), (-128, 127), 1, None),
        ("MULT18X18D", (-32, 31), (-31, 31), 1, (11, 0)),  # -992 .. 992
        ("MULT18X18D", (-8, 7), (-8, 7), 100, (13, 5)),  # 32 * 64 = 2048; 64 * 64 would have 14 bits: 19
        ("SB_MAC16", (0, 255), (-8, 7), 1, None),  # 17 bits
        ("SB_MAC16", (0, 127), (-8, 7), 1, (11, 0)),
        ("SB_MAC16", (-8, 7), (-7, 7), 16, (11, 4)),  # +-56 * 16 = 896
        ("DSP48E2", (-128, 127), (-128, 127), 1, (16, 0)),  # 16384 has 16 bits; -129 .. 127 nine: 25
        ("DSP48E2", (-128, 127), (-127, 127), 8, (18, 3)),  # 8 * 16256 = 130048 < 2**17; eight bits: 26
        ("DSP48E2", (0, 255), (-128, 127), 4, (18, 2)),  # 4 * 32640 = 130560; nine bits: 27
        ("DSP48E2", (0, 1 << 17), (-1, 1), 1, None),  # an input of 19 bits with sign
        ("MULT18X18D", (0, 0), (-1, 1), 1, None),
        ("MULT18X18D", (0, 1), (0, 0), 1, None),
    ],
)  # fmt: skip
def test_what_fits(block, inputs, weights, lanes, found):
    packing = Packing.of(inputs, weights, lanes, BLOCKS[block])
    assert (packing and (packing.shift, packing.levels)) == found


@pytest.mark.parametrize("block", BLOCKS)
def test_every_product_of_narrow_operands(block):
    """Inputs and weights of 1 to 5 bits, of either sign: all triples, through the operand that is stored."""
    for signs in range(4):
        for x_bits in range(1, 6):
            for w_bits in range(2, 5):
                inputs, weights = whole(x_bits, bool(signs & 1)), whole(w_bits, bool(signs & 2))
                packing = Packing.of(inputs, weights, 1, BLOCKS[block])
                assert packing is not None
                x, high, low = np.meshgrid(*(np.arange(a, b + 1) for a, b in (inputs, weights, weights)))
                packed = operand(packing, high, low)
                assert np.array_equal(packed, (high << packing.shift) + low)
                product = x * packed
                assert packing.packed_products[0] <= product.min() and product.max() <= packing.packed_products[1]
                found = split(product, packing.shift)
                assert np.array_equal(found[0], x * low) and np.array_equal(found[1], x * high)


@pytest.mark.parametrize(
    ("block", "inputs", "weights"),
    [
        ("MULT18X18D", (0, 255), (-15, 15)),
        ("MULT18X18D", (-32, 31), (-31, 31)),
        ("SB_MAC16", (0, 127), (-8, 7)),
        ("DSP48E2", (-128, 127), (-128, 127)),
        ("DSP48E2", (0, 255), (-128, 127)),
    ],
)
def test_every_product_of_wide_operands(block, inputs, weights):
    """All pairs of weights; inputs at and beside their ends and zero. Operands keep within the block."""
    packing = Packing.of(inputs, weights, 1, BLOCKS[block])
    ends = sorted({inputs[0], inputs[0] + 1, -1, 0, 1, inputs[1] - 1, inputs[1]} & set(range(inputs[0], inputs[1] + 1)))
    x, high, low = np.meshgrid(ends, *[np.arange(weights[0], weights[1] + 1)] * 2)
    packed = operand(packing, high, low)
    limit = 1 << BLOCKS[block][0] - 1
    assert -limit <= packed.min() and packed.max() < limit
    found = split(x * packed, packing.shift)
    assert np.array_equal(found[0], x * low) and np.array_equal(found[1], x * high)


def test_a_bit_less_is_not_enough():
    """The same with a low product of one bit less than its range has: some product is split wrong."""
    packing = Packing.of((0, 255), (-8, 7), 1, BLOCKS["MULT18X18D"])
    x, high, low = np.meshgrid(np.arange(256), *[np.arange(-8, 8)] * 2)
    shift = packing.shift - 1
    found = split(x * ((high << shift) + low), shift)
    assert not np.array_equal(found[0], x * low) and not np.array_equal(found[1], x * high)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), block=st.sampled_from(sorted(BLOCKS)), lanes=st.integers(1, 20))
def test_sums_are_split_as_late_as_said(data, block, lanes):
    """Random ranges: the sum of ``2**levels`` packed products at its extremes, with zeros outside the ranges."""
    ranges = [sorted(data.draw(st.lists(st.integers(-300, 300), min_size=2, max_size=2))) for _ in range(2)]
    inputs, weights = (ranges[0][0], ranges[0][1]), (min(0, ranges[1][0] // 8), max(0, ranges[1][1] // 8))
    packing = Packing.of(inputs, weights, lanes, BLOCKS[block])
    if packing is None:
        return
    terms = min(lanes, 1 << packing.levels)
    pick = st.lists(st.sampled_from([*inputs]), min_size=terms, max_size=terms)
    pick_weight = st.lists(st.sampled_from([*weights, 0]), min_size=terms, max_size=terms)
    x, high, low = (np.array(data.draw(p)) for p in (pick, pick_weight, pick_weight))
    packed = operand(packing, high, low)
    assert np.abs(packed).max() < 1 << BLOCKS[block][0] - 1
    assert split(int((x * packed).sum()), packing.shift) == ((x * low).sum(), (x * high).sum())


@pytest.mark.parametrize("accumulated", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 5, 7, 8])
@pytest.mark.parametrize(("inputs", "weights"), [((0, 127), (-8, 7)), ((-8, 7), (-7, 7)), ((0, 15), (0, 15))])
def test_sums_in_hardware(inputs, weights, lanes, block, accumulated):
    """The core with random operands and extremes, a new set every cycle, against products of integers."""
    packing = Packing.of(inputs, weights, lanes, BLOCKS[block])
    shape = Shape.cast(range(inputs[0], inputs[1] + 1))
    core = PackedSum(packing, Multiplier(shape, packing.operand_shape, "dsp", 40), lanes, accumulated)
    m = Module()
    xs = [Signal(shape, name=f"x{k}") for k in range(lanes)]
    pairs = [Signal(packing.bits, name=f"w{k}") for k in range(lanes)]
    operands = [core.multiplier.operand(m, f"input{k}", x) for k, x in enumerate(xs)]
    assert core.multiplier.operand_latency == core.multiplier.weight_lead  # so inputs and weights come together
    latency = core.multiplier.operand_latency + core.latency
    low, (high, carry) = core.sums(m, ("0", "1"), operands, pairs, 30)
    assert (carry is not None) == accumulated
    rng = np.random.default_rng(lanes)
    count = 60

    def draw(ends: tuple[int, int]) -> np.ndarray:
        some = rng.integers(ends[0], ends[1] + 1, (count, lanes))
        return np.where(rng.random((count, lanes)) < 0.5, some, rng.choice(ends, (count, lanes)))

    x, lows, highs = draw(inputs), draw(weights), draw(weights)
    x[:2], lows[:2], highs[:2] = inputs[1], weights[0], [[weights[0]], [weights[1]]]
    got = []

    async def bench(ctx):
        for cycle in range(count + latency):
            if cycle >= latency:
                rest = ctx.get(carry) if carry is not None else 0
                got.append((ctx.get(low.value), ctx.get(high.value) + rest))
            if cycle < count:
                for lane in range(lanes):
                    ctx.set(xs[lane], int(x[cycle, lane]))
                    mask = (1 << packing.low_shape.width) - 1
                    bits = int(borrowed(highs[cycle, lane], lows[cycle, lane])) & ((1 << packing.high_shape.width) - 1)
                    ctx.set(pairs[lane], int(lows[cycle, lane]) & mask | bits << packing.low_shape.width)
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert got == list(zip((x * lows).sum(axis=1).tolist(), (x * highs).sum(axis=1).tolist(), strict=True))
