"""Two signed products of bytes: by hand, and random ones, in the simulator."""

import random

from amaranth.sim import Simulator

from hdl_lib.arithmetic.block_product import BytePair


def run(operands: list[tuple[list[int], list[int]]]) -> list[list[int]]:
    """The products of each cycle's operands, and before them those of the cycles until the first ones arrive."""
    pair = BytePair()
    found = []

    async def bench(ctx):
        for cycle in range(len(operands) + 2):
            found.append([ctx.get(pair.p[k]) for k in range(2)])
            a, b = operands[min(cycle, len(operands) - 1)]
            ctx.set(pair.a, a)
            ctx.set(pair.b, b)
            await ctx.tick()

    simulator = Simulator(pair)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


def test_products_by_hand():
    """Two cycles later, and zero until then."""
    operands = [
        ([-128, 127], [-128, 127]), ([-128, 127], [127, -128]), ([1, -1], [-1, -1]), ([0, 5], [-128, -7]),
        ([-3, 100], [100, -3]),
    ]  # fmt: skip
    expected = [[16384, 16129], [-16256, -16256], [-1, 1], [0, -35], [-300, -300]]
    assert run(operands) == [[0, 0], [0, 0], *expected]


def test_random_products():
    draw = random.Random(1)
    operands = [tuple([draw.randint(-128, 127) for _ in range(2)] for _ in "ab") for _ in range(300)]
    assert run(operands)[2:] == [[x * y for x, y in zip(a, b, strict=True)] for a, b in operands]
