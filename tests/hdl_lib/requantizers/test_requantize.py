"""The requantizers against plain Python integers, and against the issue-slot law."""

import random
from bisect import bisect_right
from fractions import Fraction
from math import floor

import pytest
from amaranth.hdl import Shape, signed, unsigned
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl_lib.memories.rom import Table
from hdl_lib.requantizers.constant_thresholds import ConstantThresholds
from hdl_lib.requantizers.requantize_lookup import LookupRequantizer
from hdl_lib.requantizers.requantize_mas import MultiplyAddShift
from hdl_lib.requantizers.requantize_search import SearchRequantizer
from hdl_lib.requantizers.requantize_thresholds import Thresholds
from tests.hdl_lib.bench import STALLS, drive, pack
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths


def limits(shape):
    return (-(1 << (shape.width - 1)), (1 << (shape.width - 1)) - 1) if shape.signed else (0, (1 << shape.width) - 1)


def sample(rng, shape):
    """A value of the shape: often one near its ends or near 0."""
    low, high = limits(shape)
    near = rng.choice([low, high, 0, rng.randint(low, high)]) + rng.randint(-2, 2)
    return min(max(near, low), high)


class Bench:
    """Pixels of random values (surplus lanes included) through a core, beats packed and expected values computed by
    ``function(x, lane, block)``."""

    def __init__(self, dut, function, *, pixels=12, seed=0, low=None, high=None):
        rng = random.Random(seed)
        self.dut = dut
        self.beats, self.expected, self.channel_limit = [], [], []
        for beat in range(pixels * dut.blocks):
            block = beat % dut.blocks
            xs = [sample(rng, dut.input_shape) for _ in range(dut.lanes)]
            if low is not None:
                xs = [min(max(x, low), high) for x in xs]
            self.beats.append(pack(xs, dut.input_shape.width))
            self.expected.append(pack([function(x, lane, block) for lane, x in enumerate(xs)], dut.output_shape.width))

    def run(self, latency, gap=0.0, stall=0.0):
        assert self.dut.latency == latency
        trace = drive(self.dut, self.beats, len(self.beats), gap=gap, stall=stall)
        assert trace.beats == self.expected
        if not gap and not stall:
            process = Process([(True, True)] * len(self.beats), self.dut.depth, latency)
            assert (trace.in_cycles, trace.out_cycles) == cycles(process)


def quotient(value, shift, rounding):
    """``value / 2**shift`` rounded, by the standard library's rationals (Python rounds a tie to even)."""
    exact = Fraction(value, 1 << shift)
    return {"floor": floor(exact), "half_even": round(exact), "half_odd": round(exact + 1) - 1}[rounding]


def multiply_add_shift(
    x_shape, y_shape, m_shape, b_shape, shift, low, high, lanes, channels, depth, words=None, rounding="floor", part=17,
    seed=0,
):
    """A core with random parameters, and its function."""
    rng = random.Random(seed)
    blocks = -(-channels // lanes)
    words = words or blocks
    fields = [[(sample(rng, m_shape), sample(rng, b_shape)) for _ in range(lanes)] for _ in range(words)]
    width = m_shape.width + b_shape.width
    table = [
        sum((pack([m], m_shape.width) | pack([b], b_shape.width) << m_shape.width) << (lane * width)
            for lane, (m, b) in enumerate(word))
        for word in fields
    ]  # fmt: skip
    dut = MultiplyAddShift(
        x_shape, y_shape, lanes=lanes, channels=channels, multiplier_shape=m_shape, addend_shape=b_shape, shift=shift,
        low=low, high=high, parameters=Table.of_words(table, lanes * width), depth=depth, rounding=rounding,
        part=part,
    )  # fmt: skip

    def function(x, lane, block):
        m, b = fields[block % words][lane]
        return max(low, min(high, quotient(m * x + b, shift, rounding)))

    return dut, function


MAS = {  # name: (latency, arguments)
    "int8": (9, (signed(18), signed(8), signed(18), signed(30), 20, -128, 127, 2, 5, 7)),
    "int8 wide": (10, (signed(22), signed(8), signed(21), signed(40), 30, -128, 127, 1, 3, 8)),
    "wide input": (10, (signed(25), unsigned(8), unsigned(17), signed(40), 33, 0, 255, 1, 2, 8)),
    "wide multiplier": (10, (unsigned(17), unsigned(4), signed(26), signed(40), 38, 2, 13, 1, 1, 8)),
    "unsigned": (9, (unsigned(8), unsigned(8), unsigned(9), unsigned(12), 9, 0, 255, 3, 3, 7)),
    "unsigned 18": (10, (unsigned(18), unsigned(8), unsigned(17), unsigned(12), 27, 0, 255, 1, 1, 3)),
    "unsigned wide": (10, (unsigned(20), unsigned(8), unsigned(20), unsigned(12), 31, 0, 255, 1, 1, 8)),
    "no shift": (9, (signed(4), signed(12), signed(4), signed(3), 0, -2000, 2000, 1, 2, 7)),
    "always clamped low": (9, (unsigned(3), unsigned(4), unsigned(3), unsigned(3), 4, 9, 12, 1, 2, 7)),
    "shifted out": (9, (signed(4), signed(3), signed(4), signed(4), 30, -3, 3, 1, 2, 7)),
    "shifted out, unsigned": (9, (unsigned(4), signed(3), unsigned(4), unsigned(4), 30, -3, 3, 1, 2, 7)),
    "single bits": (9, (unsigned(1), signed(3), signed(1), signed(2), 0, -4, 3, 2, 3, 2)),
    "one credit": (9, (signed(6), signed(4), signed(6), signed(8), 7, -8, 7, 2, 3, 1)),
    "one word for all": (9, (signed(6), signed(4), signed(6), signed(8), 7, -7, 7, 2, 5, 7, 1)),
    # 15 and 5 bits of each operand, as a multiplier of 16 by 16 bits with sign takes them
    "parts of 15 bits": (10, (signed(20), signed(8), unsigned(20), signed(40), 30, -9, 99, 2, 3, 8, None, "floor", 15)),
    "three parts": (11, (signed(38), signed(8), signed(20), signed(50), 48, -128, 127, 1, 2, 9)),
    "ties to even": (10, (signed(12), signed(8), unsigned(1), signed(9), 5, -60, 61, 2, 5, 8, None, "half_even")),
    "ties to odd": (10, (signed(12), signed(8), unsigned(1), signed(9), 5, -60, 61, 2, 5, 8, None, "half_odd")),
    "ties every second": (10, (signed(5), signed(7), unsigned(2), signed(4), 1, -64, 63, 1, 2, 8, None, "half_even")),
    "ties, unsigned": (10, (unsigned(6), unsigned(5), unsigned(2), unsigned(4), 2, 3, 30, 3, 3, 2, None, "half_odd")),
    "ties, parts": (11, (signed(25), unsigned(8), unsigned(17), signed(40), 33, 0, 255, 1, 2, 9, None, "half_even")),
    "ties, shifted out": (10, (signed(4), signed(3), signed(4), signed(4), 30, -3, 3, 1, 2, 8, None, "half_odd")),
    "ties at the top bit": (10, (signed(4), signed(3), unsigned(1), signed(4), 4, -4, 3, 1, 2, 8, None, "half_odd")),
    "ties, unsigned top": (10, (unsigned(4), signed(3), unsigned(1), unsigned(1), 4, -4, 3, 1, 1, 8, 1, "half_odd")),
}


@pytest.mark.parametrize("name", MAS)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_multiply_add_shift(name, gap, stall):
    latency, arguments = MAS[name]
    assert MultiplyAddShift.latency_of(arguments[0], arguments[2], *arguments[11:]) == latency
    Bench(*multiply_add_shift(*arguments)).run(latency, gap, stall)


@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_parameters_in_a_block_ram_come_a_cycle_later(gap, stall):
    int8 = MAS["int8"][1]
    table = 2 * (int8[2].width + int8[3].width), 64  # 64 words of 96 bits: 2048 for each of 3 block RAMs, and no more
    assert MultiplyAddShift.latency_of(int8[0], int8[2], table=table) == 9
    arguments = (*int8[:8], 130, *int8[9:])
    assert MultiplyAddShift.latency_of(int8[0], int8[2], table=(table[0], 65)) == 10
    Bench(*multiply_add_shift(*arguments)).run(10, gap, stall)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data(), st.integers(0, 9))
def test_multiply_add_shift_of_any_widths(draws, seed):
    x_shape, y_shape, m_shape, b_shape = (
        Shape(draws.draw(st.integers(1, width)), draws.draw(st.booleans())) for width in (36, 10, 36, 48)
    )
    low, high = sorted(draws.draw(st.integers(*limits(y_shape))) for _ in range(2))
    lanes, channels = draws.draw(st.integers(1, 3)), draws.draw(st.integers(1, 5))
    rounding = draws.draw(st.sampled_from(["floor", "half_even", "half_odd"]))
    shift = draws.draw(st.integers(rounding != "floor", x_shape.width + m_shape.width + 2))
    part = draws.draw(st.sampled_from([15, 17]))
    dut, function = multiply_add_shift(
        x_shape, y_shape, m_shape, b_shape, shift, low, high, lanes, channels, 12, None, rounding, part, seed
    )
    Bench(dut, function, seed=seed, pixels=8).run(dut.latency)


@pytest.mark.parametrize("rounding", ["half_even", "half_odd"])
@pytest.mark.parametrize("shift", [1, 2, 3, 4, 5, 6])
def test_every_remainder_is_rounded(rounding, shift):
    """All values of a 5-bit input, multiplier 1, addend -3, at every shift up to one beyond the sum's width."""
    word = 1 | (-3 & 0b111) << 1
    dut = MultiplyAddShift(
        signed(5), signed(6), lanes=1, channels=1, multiplier_shape=unsigned(1), addend_shape=signed(3), shift=shift,
        low=-32, high=31, parameters=Table.of_words([word], 4), depth=8, rounding=rounding,
    )  # fmt: skip
    inputs = range(-16, 16)
    trace = drive(dut, [pack([x], 5) for x in inputs], len(inputs))
    assert trace.beats == [pack([quotient(x - 3, shift, rounding)], 6) for x in inputs]


def test_multiplier_blocks():
    assert MultiplyAddShift.multipliers_of(signed(18), signed(18)) == 1
    assert MultiplyAddShift.multipliers_of(unsigned(17), signed(18)) == 1
    assert MultiplyAddShift.multipliers_of(signed(20), signed(18)) == 2
    assert MultiplyAddShift.multipliers_of(signed(20), signed(20)) == 4
    assert MultiplyAddShift.multipliers_of(unsigned(18), signed(18)) == 1  # the 18th bit alone is a selection
    assert MultiplyAddShift.multipliers_of(signed(1), signed(18)) == 0


def test_multiplier_blocks_of_constants():
    def count(multipliers, shape, parameters=None):
        words = [pack(multipliers, shape.width)] if parameters is None else parameters
        width = len(multipliers) * (shape.width + 1)
        spread = [
            sum(((word >> (lane * shape.width)) & ((1 << shape.width) - 1)) << (lane * (shape.width + 1))
                for lane in range(len(multipliers)))
            for word in words
        ]  # fmt: skip
        return MultiplyAddShift(
            signed(20), signed(8), lanes=len(multipliers), channels=len(multipliers) * len(words),
            multiplier_shape=shape, addend_shape=unsigned(1), shift=9, low=-128, high=127,
            parameters=Table.of_words(spread, width), depth=2,
        ).multipliers  # fmt: skip

    assert count([5, 0, 4], unsigned(9)) == 2  # two parts of the input; 0 and 4 need none
    assert count([-1, -4, 3], signed(9)) == 2  # minus a power of two needs none either
    assert count([-3, 5, -256], signed(9)) == 4
    assert count([(3 << 17) + 1, (1 << 17) + 7], unsigned(20)) == 4  # one part of each is a power of two
    assert count([5, 0, 4], unsigned(9), [0, 0]) == 6  # not constant


def thresholds(x_shape, y_shape, base, levels, lanes, channels, depth, words=None, seed=0):
    rng = random.Random(seed)
    words = words or -(-channels // lanes)
    low, high = limits(x_shape)
    never = high + 1
    pick = [[sorted(rng.choice([rng.randint(low, high), rng.randint(low, high), never]) for _ in range(levels))
             for _ in range(lanes)] for _ in range(words)]  # fmt: skip
    width = x_shape.width + 1
    table = [pack([t for lane in word for t in lane], width) for word in pick]
    dut = Thresholds(
        x_shape, y_shape, lanes=lanes, channels=channels, base=base, levels=levels,
        parameters=Table.of_words(table, lanes * levels * width), depth=depth,
    )  # fmt: skip
    return dut, lambda x, lane, block: base + bisect_right(pick[block % words][lane], x)


THRESHOLDS = {  # name: (latency, arguments)
    "one level": (5, (signed(12), unsigned(1), 0, 1, 2, 3, 6)),
    "two bits": (5, (signed(9), signed(2), -2, 3, 1, 4, 6)),
    "four levels": (5, (unsigned(6), unsigned(3), 3, 4, 1, 1, 6)),
    "five levels": (6, (unsigned(6), unsigned(3), 1, 5, 1, 1, 3)),
    "four bits": (7, (signed(16), signed(4), -8, 15, 3, 5, 8)),
    "five bits": (8, (signed(8), unsigned(5), 0, 31, 1, 2, 9)),
    "one word for all": (6, (signed(8), signed(4), -4, 8, 2, 5, 1, 1)),
}


@pytest.mark.parametrize("name", THRESHOLDS)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_thresholds(name, gap, stall):
    latency, arguments = THRESHOLDS[name]
    assert Thresholds.latency_of(arguments[3]) == latency
    Bench(*thresholds(*arguments)).run(latency, gap, stall)


def directed(x_shape, y_shape, directions, bits, lanes, channels, depth, base=None, seed=0):
    """Thresholds of these directions, with ``bits`` direction bits and, unless given, one base per channel."""
    rng = random.Random(seed)
    blocks, width, levels = -(-channels // lanes), x_shape.width + 1, len(directions)
    low, high = limits(x_shape)
    choices = [[([rng.choice([rng.randint(low, high), high + 1]) for _ in range(levels)], rng.getrandbits(bits),
                 rng.randint(*limits(y_shape))) for _ in range(lanes)] for _ in range(blocks)]  # fmt: skip
    lane_bits = levels * width + bits + (y_shape.width if base is None else 0)
    table = []
    for word in choices:
        packed = 0
        for lane, (ts, flags, own) in enumerate(word):
            field = pack(ts, width) | flags << (levels * width)
            if base is None:
                field |= pack([own], y_shape.width) << (levels * width + bits)
            packed |= field << (lane * lane_bits)
        table.append(packed)
    dut = Thresholds(
        x_shape, y_shape, lanes=lanes, channels=channels, base=base, levels=levels, depth=depth, directions=directions,
        parameters=Table.of_words(table, lanes * lane_bits),
    )  # fmt: skip

    def function(x, lane, block):
        ts, flags, own = choices[block][lane]
        falls = [d == "falling" or (d != "rising" and bool(flags >> d & 1)) for d in directions]
        total = sum((x < t) if fall else (x >= t) for t, fall in zip(ts, falls, strict=True))
        return total + (own if base is None else base)  # modulo 2 ** width: packed so

    return dut, function


UP, DOWN = "rising", "falling"
DIRECTED = {  # name: (latency, arguments)
    "one turned": (5, (signed(12), unsigned(1), [0], 1, 2, 3, 6, 0)),
    "all fall": (5, (signed(6), signed(3), [DOWN] * 3, 0, 1, 1, 6, -4)),
    "up and down": (5, (signed(6), unsigned(1), [UP, DOWN], 0, 2, 3, 6, 1)),
    "two bits": (6, (unsigned(6), unsigned(3), [UP, 1, DOWN, 0, 1], 2, 1, 3, 7, 2)),
    "own bases": (6, (signed(6), signed(8), [UP, 0, 0], 1, 2, 5, 7)),
    "own bases, two groups": (7, (signed(6), signed(4), [UP] * 6, 0, 1, 3, 8)),
    "own bases, constants": (6, (signed(6), signed(8), [DOWN], 0, 3, 3, 7)),
}


@pytest.mark.parametrize("name", DIRECTED)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_thresholds_of_both_directions(name, gap, stall):
    latency, arguments = DIRECTED[name]
    Bench(*directed(*arguments)).run(latency, gap, stall)


def search(
    x_shape, y_shape, b_shape, stages, lanes, channels, depth, values=True, base=0, falling=False, shared=False, seed=0
):
    """Random bounds of ``b_shape``, sorted; random values or a number to count from."""
    rng = random.Random(seed)
    blocks = 1 if shared else -(-channels // lanes)
    bounds = [[sorted(sample(rng, b_shape) for _ in range((1 << stages) - 1)) for _ in range(lanes)]
              for _ in range(blocks)]  # fmt: skip
    results = [[[sample(rng, y_shape) for _ in range(1 << stages)] for _ in range(lanes)] for _ in range(blocks)]
    tables = []
    for lane in range(lanes):
        for stage in range(stages):
            # the middles of 2 ** stage equal parts
            part = 1 << (stages - stage)
            places = [p * part + part // 2 - 1 for p in range(1 << stage)]
            words = [bounds[block][lane][place] for block in range(blocks) for place in places]
            tables.append(Table.of_words([pack([word], b_shape.width) for word in words], b_shape.width))
    dut = SearchRequantizer(
        x_shape, y_shape, lanes=lanes, channels=channels, bound_shape=b_shape, stages=stages, bounds=tables,
        depth=depth, base=base, falling=falling, shared=shared,
        values=[
            Table.of_words([pack([y], y_shape.width) for block in results for y in block[lane]], y_shape.width)
            for lane in range(lanes)
        ] if values else None,
    )  # fmt: skip

    def function(x, lane, block):
        above = sum(x > bound for bound in bounds[block % blocks][lane])
        return results[block % blocks][lane][above] if values else base - above if falling else base + above

    return dut, function


SEARCHES = {  # name: (latency, arguments)
    # input, comparisons, queue: 2 + stages; one cycle more to read 2 .. 16 words, two from 17 words on
    "one stage": (2 + 1 + 1, (signed(12), unsigned(5), signed(12), 1, 1, 1, 6)),
    "three stages": (2 + 3 + 2 + 1, (signed(12), unsigned(5), signed(12), 3, 1, 1, 9)),
    "blocks": (2 + 3 + 3 + 2, (signed(9), signed(4), signed(6), 3, 2, 5, 11)),
    "a word beyond 16": (2 + 2 + 1 + 2 + 2, (unsigned(8), signed(4), unsigned(8), 2, 1, 9, 11)),
    "shared": (2 + 4 + 3 + 1, (signed(9), signed(4), signed(9), 4, 2, 5, 12, True, 0, False, True)),
    "five stages": (2 + 5 + 4 + 2, (signed(7), signed(8), signed(7), 5, 1, 1, 4)),
    "rising": (2 + 3 + 2, (signed(9), signed(4), signed(9), 3, 2, 2, 8, False, -5)),
    "falling": (2 + 3 + 2, (signed(9), unsigned(4), signed(9), 3, 2, 2, 8, False, 9, True)),
    "wrapping": (2 + 3 + 3, (unsigned(9), unsigned(2), signed(5), 3, 1, 2, 8, False, 1, True)),
    "unsigned bounds": (2 + 2 + 2 + 1, (signed(7), signed(3), unsigned(5), 2, 1, 2, 1)),
    "bounds below the input": (2 + 2 + 1 + 1, (unsigned(5), signed(3), signed(7), 2, 1, 1, 8)),
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_search(name, gap, stall):
    latency, arguments = SEARCHES[name]
    Bench(*search(*arguments)).run(latency, gap, stall)


def test_every_input_is_found():
    """All values of a 6-bit input, seven bounds."""
    dut, function = search(signed(6), unsigned(4), signed(6), 3, 1, 1, 12, seed=3)
    inputs = range(-32, 32)
    trace = drive(dut, [pack([x], 6) for x in inputs], len(inputs))
    assert trace.beats == [function(x, 0, 0) for x in inputs]


def lookup(x_shape, y_shape, low, count, lanes, channels, depth, shared=False, cut=True, seed=0):
    """``count`` inputs from ``low`` on; the last block of the tables ends with them if ``cut``."""
    rng = random.Random(seed)
    blocks = 1 if shared else -(-channels // lanes)
    span = 1 << (count - 1).bit_length()
    results = [[[sample(rng, y_shape) for _ in range(span)] for _ in range(blocks)] for _ in range(lanes)]
    words = [[pack([y], y_shape.width) for block in lane for y in block] for lane in results]
    words = [lane[: (blocks - 1) * span + count] if cut else lane for lane in words]
    dut = LookupRequantizer(
        x_shape, y_shape, lanes=lanes, channels=channels, low=low, depth=depth, shared=shared,
        tables=[Table.of_words(lane, y_shape.width) for lane in words],
    )  # fmt: skip
    return dut, lambda x, lane, block: results[lane][block % blocks][x - low]


LOOKUPS = {
    "whole range": (signed(5), signed(8), -16, 32, 2, 3, 6),
    "unsigned": (unsigned(4), unsigned(3), 0, 16, 1, 1, 6),
    "part of the range": (signed(12), signed(8), -21, 37, 1, 3, 6),
    "padded": (signed(12), signed(8), 900, 9, 3, 7, 2, False, False),
    "shared": (signed(8), unsigned(6), -3, 19, 2, 5, 6, True),
    "one input": (signed(8), unsigned(6), 5, 1, 2, 3, 1),
    "one word": (signed(8), unsigned(6), 5, 1, 1, 1, 6),
}


@pytest.mark.parametrize("name", LOOKUPS)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_lookup(name, gap, stall):
    arguments = LOOKUPS[name]
    low, count = arguments[2:4]
    Bench(*lookup(*arguments), low=low, high=low + count - 1).run(5, gap, stall)


MAKERS = {
    "mas": lambda: multiply_add_shift(signed(6), signed(4), signed(6), signed(8), 7, -8, 7, 2, 5, 7),
    "mas, ties": lambda: multiply_add_shift(
        signed(6), signed(4), signed(6), signed(8), 7, -8, 7, 2, 5, 7, rounding="half_even"
    ),
    "thresholds": lambda: thresholds(signed(8), signed(4), -4, 8, 2, 5, 7),
    "directions": lambda: directed(signed(8), signed(4), [0, 0, DOWN], 1, 2, 5, 7),
    "search": lambda: search(signed(8), signed(4), signed(8), 3, 2, 5, 11),
    "search, no values": lambda: search(signed(8), signed(4), signed(8), 3, 2, 5, 7, False, -4),
    "lookup": lambda: lookup(unsigned(4), unsigned(3), 0, 16, 2, 5, 6),
}


@pytest.mark.parametrize("name", MAKERS)
def test_reset_in_mid_frame(name):
    for seed in range(3):
        bench = Bench(*MAKERS[name](), pixels=6, seed=seed)
        assert after_reset(bench.dut, bench.beats, len(bench.beats), seed=seed) == bench.expected


@pytest.mark.parametrize("name", MAKERS)
def test_no_combinational_path(name):
    check_no_paths(MAKERS[name]()[0])


MAS_ARGUMENTS = dict(
    input_shape=signed(8), output_shape=signed(4), lanes=2, channels=3, multiplier_shape=signed(6),
    addend_shape=signed(9), shift=3, low=-8, high=7, parameters=Table.of_words([0, 0], 30), depth=2,
)  # fmt: skip
THRESHOLD_ARGUMENTS = dict(
    input_shape=signed(8), output_shape=signed(4), lanes=1, channels=1, base=0, levels=3,
    parameters=Table.of_words([0], 27), depth=2,
)  # fmt: skip
LOOKUP_ARGUMENTS = dict(
    input_shape=signed(8), output_shape=signed(4), lanes=2, channels=3, low=0, tables=[Table.of_words([0] * 4, 4)] * 2,
    depth=2,
)  # fmt: skip

SEARCH_ARGUMENTS = dict(
    input_shape=signed(8), output_shape=signed(4), lanes=1, channels=2, bound_shape=signed(8), stages=2,
    bounds=[Table.of_words([0] * n, 8) for n in (2, 4)], values=[Table.of_words([0] * 8, 4)], depth=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("core", "arguments", "message"),
    [
        (MultiplyAddShift, MAS_ARGUMENTS | dict(shift=-1),
         "shift must be at least 0 with rounding floor, not -1"),
        (MultiplyAddShift, MAS_ARGUMENTS | dict(shift=0, rounding="half_odd"),
         "shift must be at least 1 with rounding half_odd, not 0"),
        (MultiplyAddShift, MAS_ARGUMENTS | dict(rounding="up"),
         "rounding must be one of floor, half_even, half_odd, not up"),
        (MultiplyAddShift, MAS_ARGUMENTS | dict(low=-9),
         "low and high must be in -8..7, the range of signed(4), and in this order, not -9 and 7"),
        (MultiplyAddShift, MAS_ARGUMENTS | dict(addend_shape=unsigned(0)),
         "addend_shape must have at least 1 bit, not 0"),
        (MultiplyAddShift, MAS_ARGUMENTS | dict(parameters=Table.of_words([0, 0], 29)),
         "the table's words must have 30 bits (2 lanes with a multiplier of 6 and an addend of 9), not 29"),
        (MultiplyAddShift, MAS_ARGUMENTS | dict(parameters=Table.of_words([0] * 3, 30)),
         "the table must have 2 words (one for each beat of a pixel) or 1 (the same for all), not 3"),
        (MultiplyAddShift, MAS_ARGUMENTS | dict(depth=-1), "depth must be an integer of at least 0, not -1"),
        (Thresholds, THRESHOLD_ARGUMENTS | dict(levels=0),
         "levels must be at least 1, not 0; a constant needs no requantizer"),
        (Thresholds, THRESHOLD_ARGUMENTS | dict(base=5),
         "base and base + levels must be in -8..7, the range of signed(4), not 5 and 8"),
        (Thresholds, THRESHOLD_ARGUMENTS | dict(parameters=Table.of_words([0], 24)),
         "the table's words must have 27 bits (1 lanes with 3 thresholds of 9), not 24"),
        (Thresholds, THRESHOLD_ARGUMENTS | dict(directions=["rising"]),
         "directions must be 3, one for each threshold, not 1"),
        (Thresholds, THRESHOLD_ARGUMENTS | dict(directions=["rising", "up", 0]),
         "a direction must be rising, falling or the number of a bit, not up"),
        (Thresholds, THRESHOLD_ARGUMENTS | dict(directions=[0, 0, 1], base=None),
         "the table's words must have 33 bits (1 lanes with 3 thresholds of 9, 2 direction bits, a base of 4), not 27"),
        (SearchRequantizer, SEARCH_ARGUMENTS | dict(stages=0),
         "stages must be at least 1, not 0; a constant needs no requantizer"),
        (SearchRequantizer, SEARCH_ARGUMENTS | dict(bound_shape=unsigned(0)),
         "bound_shape must have at least 1 bit, not 0"),
        (SearchRequantizer, SEARCH_ARGUMENTS | dict(base=9),
         "base must be in -8..7, the range of signed(4), not 9"),
        (SearchRequantizer, SEARCH_ARGUMENTS | dict(stages=3),
         "bounds must be 3 tables, 3 for each lane, not 2"),
        (SearchRequantizer, SEARCH_ARGUMENTS | dict(values=[]),
         "values must be 1 tables, one for each lane, not 0"),
        (SearchRequantizer, SEARCH_ARGUMENTS | dict(bound_shape=signed(9)),
         "the words of bounds 0 must have 9 bits, not 8"),
        (SearchRequantizer, SEARCH_ARGUMENTS | dict(values=[Table.of_words([0] * 4, 4)]),
         "values 0 must have 8 words (4 for each of 2 blocks), not 4"),
        (SearchRequantizer, SEARCH_ARGUMENTS | dict(stages=1, channels=1, bounds=[Table(None, "f", 8, 1)], values=None),
         "a table of a single word must be given as a number, not in a file"),
        (LookupRequantizer, LOOKUP_ARGUMENTS | dict(tables=[Table.of_words([0] * 4, 4)]),
         "tables must be 2, one for each lane, not 1"),
        (LookupRequantizer, LOOKUP_ARGUMENTS | dict(tables=[Table.of_words([0] * n, 4) for n in (4, 5)]),
         "table 1 must have 4 words as table 0, not 5"),
        (LookupRequantizer, LOOKUP_ARGUMENTS | dict(tables=[Table.of_words([0] * 4, n) for n in (4, 5)]),
         "the words of table 1 must have 4 bits as output_shape, not 5"),
        (LookupRequantizer, LOOKUP_ARGUMENTS | dict(channels=16, tables=[Table.of_words([0] * 9, 4)] * 2),
         "the tables must have 8 blocks of a power of two words, not 9 words in all; "
         "only the last block may be shorter"),
    ],
)  # fmt: skip
def test_refused(core, arguments, message):
    with pytest.raises(ValueError) as error:
        core(**arguments)
    assert str(error.value) == message


@pytest.mark.parametrize("shape", [signed(32), unsigned(23), signed(9)], ids=str)
def test_constant_thresholds(shape: Shape) -> None:
    """At and beside every threshold, some of which have lower or upper bits in common; a lane without any."""
    rng = random.Random(5)
    low, high = limits(shape)
    far = [low + 1, high, *(rng.randint(low + 1, high) for _ in range(9))]
    near = [(far[4] & ~0xF) + k for k in (1, 2, 8)] + [far[5] ^ 1 << shape.width - 2]
    lanes = [sorted({*far, *near} - {low}), [], [max(low + 1, 0)], sorted(far[2:5])]
    firsts = [0, 3, 1, 2]

    def dut(depth: int) -> ConstantThresholds:
        return ConstantThresholds(shape, unsigned(5), thresholds=lanes, firsts=firsts, depth=depth)

    xs = sorted({min(max(t + d, low), high) for t in lanes[0] for d in (-1, 0, 1)})
    beats = [pack([x] * 4, shape.width) for x in xs]
    expected = [pack([f + bisect_right(own, x) for own, f in zip(lanes, firsts, strict=True)], 5) for x in xs]
    for (gap, stall), depth in zip(STALLS[:2], (8, 2), strict=True):
        assert drive(dut(depth), beats, len(beats), gap=gap, stall=stall).beats == expected
    check_no_paths(dut(2))


def test_constant_thresholds_rise() -> None:
    with pytest.raises(ValueError, match="thresholds must rise, not those of lane 1"):
        ConstantThresholds(signed(20), unsigned(2), thresholds=[[1], [5, 5]], firsts=[0, 0], depth=1)
