"""Products in signed digits of radix 4: the digits by hand and all of them, products and sums in the simulator."""

import numpy as np
import pytest
from amaranth.hdl import Module, Shape, Signal
from amaranth.sim import Simulator

from hdl_lib.arithmetic.digit_product import Digits, DigitSum
from hdl_lib.arithmetic.multiplier import interval


@pytest.mark.parametrize(
    ("weights", "count", "wide"),
    [  # one digit: -2 .. 1, or -2 .. 2; two: -10 .. 5, or up to 9; three: -42 .. 21, or 37; four: -170 .. 85, or 149
        ((-2, 1), 1, False), ((-1, 2), 1, True), ((-4, 3), 2, False), ((-8, 7), 2, True), ((-16, 15), 3, False),
        ((-32, 31), 3, True), ((-64, 63), 4, False), ((-128, 127), 4, True), ((-171, 0), 5, False), ((0, 10), 3, False),
    ],
)  # fmt: skip
def test_digits_that_are_enough(weights, count, wide):
    digits = Digits.of(weights)
    assert digits == Digits(count, wide)
    assert digits.bits == 2 * count + wide


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_weight_is_the_sum_of_its_digits(count, wide):
    digits = Digits(count, wide)
    weights = np.arange(digits.range[0], digits.range[1] + 1)
    words = digits.stored(weights)
    assert words.min() >= 0 and words.max() < 1 << digits.bits and len(set(words.tolist())) == len(words)
    total = np.zeros_like(weights)
    for place in range(count):
        value = words >> 2 * place & (7 if wide and place == count - 1 else 3)
        half = 4 if wide and place == count - 1 else 2
        total += (value - 2 * half * (value >= half)) * 4**place
    assert np.array_equal(total, weights)


def run(core: DigitSum, x: np.ndarray, weights: np.ndarray) -> list[int]:
    """The sums of [cycles, lanes], one row after the other."""
    m, bits = Module(), core.digits.bits
    xs = [Signal(core.input_shape, name=f"x{k}") for k in range(core.lanes)]
    ws = [Signal(bits, name=f"w{k}") for k in range(core.lanes)]
    term, carry = core.sum(m, "0", [core.operand(m, f"x{k}", x) for k, x in enumerate(xs)], ws, 40)
    assert (carry is not None) == core.accumulated
    words = core.digits.stored(weights)
    found = []

    async def bench(ctx):
        for cycle in range(len(x) + core.latency):
            if cycle >= core.latency:
                found.append(ctx.get(term.value) + (ctx.get(carry) if carry is not None else 0))
            if cycle < len(x):
                for lane in range(core.lanes):
                    ctx.set(xs[lane], int(x[cycle, lane]))
                    ctx.set(ws[lane], int(words[cycle, lane]))
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


@pytest.mark.parametrize("digits", [Digits(1, False), Digits(1, True), Digits(2, True), Digits(3, False)])
@pytest.mark.parametrize("shape", [Shape(2), Shape(2, True), Shape(4), Shape(4, True)])
def test_every_product(shape, digits):
    inputs, weights = interval(shape), digits.range
    x, w = np.meshgrid(np.arange(inputs[0], inputs[1] + 1), np.arange(weights[0], weights[1] + 1))
    found = run(DigitSum(shape, digits, 1, True), x.reshape(-1, 1), w.reshape(-1, 1))
    assert found == (x * w).ravel().tolist()


@pytest.mark.parametrize("accumulated", [False, True])
@pytest.mark.parametrize("lanes", [1, 2, 3, 5, 8])
@pytest.mark.parametrize(("shape", "count", "wide"), [(Shape(8), 4, True), (Shape(8, True), 5, False)])
def test_sums(shape, count, wide, lanes, accumulated):
    """Random operands and the extremes of both."""
    digits, rng = Digits(count, wide), np.random.default_rng(lanes)

    def draw(ends: tuple[int, int]) -> np.ndarray:
        some = rng.integers(ends[0], ends[1] + 1, (50, lanes))
        return np.where(rng.random((50, lanes)) < 0.5, some, rng.choice(ends, (50, lanes)))

    x, w = draw(interval(shape)), draw(digits.range)
    x[:4], w[:4] = np.array(interval(shape))[[0, 0, 1, 1], None], np.array(digits.range)[[0, 1, 0, 1], None]
    assert run(DigitSum(shape, digits, lanes, accumulated), x, w) == (x * w).sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("digits", "lanes", "accumulated", "latency"),
    [(Digits(1, True), 1, True, 1), (Digits(4, True), 8, True, 2 + 3), (Digits(3, False), 5, False, 2 + 3 + 1)],
)
def test_latency(digits, lanes, accumulated, latency):
    assert DigitSum(Shape(8), digits, lanes, accumulated).latency == latency
