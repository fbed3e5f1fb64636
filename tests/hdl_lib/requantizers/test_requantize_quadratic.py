"""Piecewise quadratics in hardware against plain Python integers, and against the issue-slot law."""

import random

import pytest
from amaranth.hdl import signed, unsigned

from hdl_lib.memories.rom import Table
from hdl_lib.requantizers.requantize_quadratic import Coefficients, QuadraticRequantizer
from tests.hdl_lib.bench import STALLS, drive, pack
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths


class Segments:
    """A core with random coefficients, its function, and beats of random inputs, many of them near the limits."""

    def __init__(
        self, x_shape, y_shape, first, last, shapes, bits, shift, lanes, depth, multiplier="dsp", part=17, seed=0,
        flip=None,
    ):
        rng = random.Random(seed)
        constant, slope, curvature = shapes
        segments = ((last - first) >> bits) + 3
        self.rows = [
            [[value(rng, shape) for shape in shapes] for _ in range(segments)] for _ in range(lanes)
        ]
        moved = [
            c1 + (c2 * t >> bits - 1) for lane in self.rows for _, c1, c2 in lane
            for t in (-1 << bits - 1, (1 << bits - 1) - 1)
        ]
        width = max(number.bit_length() for number in moved) + 1
        self.first, self.last, self.bits, self.shift, self.y_shape = first, last, bits, shift, y_shape
        words = [[0] * segments for _ in range(lanes)]
        for lane, rows in enumerate(self.rows):
            for segment, numbers in enumerate(rows):
                place = 0
                for number, shape in zip(numbers, shapes, strict=True):
                    words[lane][segment] |= pack([number], shape.width) << place
                    place += shape.width
        if flip is not None:
            words[0][segments // 2] ^= 1 << flip
        coefficients = Coefficients(constant, slope, curvature, signed(width), bits)
        self.dut = QuadraticRequantizer(
            x_shape, y_shape, lanes=lanes, first=first, last=last, coefficients=coefficients, shift=shift,
            tables=[Table.of_words(each, coefficients.width) for each in words], multiplier=multiplier, depth=depth,
            part=part,
        )
        inputs = [[self.near(rng, x_shape) for _ in range(lanes)] for _ in range(60)]
        self.beats = [pack(xs, x_shape.width) for xs in inputs]
        self.expected = [pack([self.result(lane, x) for lane, x in enumerate(xs)], y_shape.width) for xs in inputs]

    def near(self, rng, shape):
        low, high = ends(shape)
        x = rng.choice([self.first, self.last, rng.randint(self.first, self.last), rng.randint(low, high)])
        return min(max(x + rng.randint(-1, 1), low), high)

    def result(self, lane, x):
        """The definition, with numbers of any length."""
        segment, place = divmod(x - self.first, 1 << self.bits)
        if not self.first <= x <= self.last:
            segment, place = -1 if x < self.first else len(self.rows[lane]) - 2, 0
        constant, slope, curvature = self.rows[lane][segment + 1]
        half = 1 << self.bits - 1
        t = place - half
        whole = constant + t * (slope + curvature * t // half) // half
        return (whole >> self.shift) & ((1 << self.y_shape.width) - 1)


def ends(shape):
    return (-1 << shape.width - 1, (1 << shape.width - 1) - 1) if shape.signed else (0, (1 << shape.width) - 1)


def value(rng, shape):
    low, high = ends(shape)
    return rng.choice([low, high, rng.randint(low, high), rng.randint(low, high)])


NARROW = signed(14), signed(9), signed(6)
CORES = {  # name: (latency, arguments)
    # 6 to the word; in blocks a register at the operands, 3 of the product, and a sum, twice; the queue
    "whole range": (6 + 5 + 5 + 1, (signed(8), signed(9), -128, 127, NARROW, 4, 5, 1, 18)),
    "limits": (6 + 5 + 5 + 1, (signed(10), unsigned(8), -100, 211, NARROW, 3, 6, 2, 18)),
    "a limit below": (6 + 5 + 5 + 1, (unsigned(8), unsigned(8), 37, 255, NARROW, 2, 6, 1, 4)),
    "a first segment of few": (6 + 5 + 5 + 1, (unsigned(8), signed(9), -13, 255, NARROW, 4, 5, 1, 18)),
    "a limit above": (6 + 5 + 5 + 1, (unsigned(8), signed(8), 0, 100, NARROW, 5, 0, 1, 18)),
    "unsigned": (
        6 + 5 + 5 + 1, (unsigned(9), unsigned(8), 3, 507, (unsigned(13), unsigned(8), unsigned(5)), 5, 5, 1, 18)
    ),
    # a slope of three parts of 8 bits, whose products are added in two levels
    "parts": (
        6 + 5 + 7 + 1, (signed(9), signed(9), -200, 200, (signed(24), signed(17), signed(9)), 5, 8, 1, 20, "dsp", 8)
    ),
    # rows of two bits of the place: one level for up to two, two for three
    "rows": (6 + 3 + 3 + 1, (signed(8), signed(9), -100, 90, NARROW, 4, 5, 2, 14, "lut")),
    "more rows": (6 + 4 + 4 + 1, (signed(9), signed(9), -200, 200, NARROW, 6, 5, 1, 16, "lut")),
    "a bit of curvature": (6 + 2 + 5 + 1, (signed(8), signed(9), -128, 127, (*NARROW[:2], unsigned(1)), 4, 5, 1, 16)),
}


@pytest.mark.parametrize("name", CORES)
def test_results_and_cycles(name):
    latency, arguments = CORES[name]
    bench = Segments(*arguments)
    assert bench.dut.latency == latency
    for gap, stall in STALLS:
        trace = drive(bench.dut, bench.beats, len(bench.beats), gap=gap, stall=stall)
        assert trace.beats == bench.expected
        if not gap and not stall:
            process = Process([(True, True)] * len(bench.beats), bench.dut.depth, latency)
            assert (trace.in_cycles, trace.out_cycles) == cycles(process)


@pytest.mark.parametrize("flip", [13, 22, 28])  # the sign of the constant, of the slope, of the curvature
def test_a_twin_with_a_wrong_bit_is_found(flip):
    _, arguments = CORES["whole range"]
    bench = Segments(*arguments, flip=flip)
    x_shape = arguments[0]
    inputs = range(*ends(x_shape))
    trace = drive(bench.dut, [pack([x], x_shape.width) for x in inputs], len(inputs))
    wrong = [x for x, y in zip(inputs, trace.beats, strict=True) if y != bench.result(0, x)]
    assert wrong and {x - bench.first >> bench.bits for x in wrong} == {8}  # in the table of 18 number 9


def test_reset_in_mid_frame():
    bench = Segments(*CORES["limits"][1])
    assert after_reset(bench.dut, bench.beats, len(bench.beats), seed=1) == bench.expected


def test_no_combinational_path():
    check_no_paths(Segments(*CORES["limits"][1]).dut)


ARGUMENTS = dict(
    input_shape=signed(8), output_shape=signed(8), lanes=1, first=-20, last=50,
    coefficients=Coefficients(*NARROW, signed(10), 4), shift=5, tables=[Table.of_words([0] * 7, 29)], multiplier="dsp",
    depth=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(first=51), "last must be in -128..127, the range of signed(8), and first at most last, not 50 and 51"),
        (dict(last=128), "last must be in -128..127, the range of signed(8), and first at most last, not 128 and -20"),
        (dict(multiplier="xnor"), "multiplier must be one of dsp, lut, not 'xnor'"),
        (dict(lanes=2), "tables must be 2, one for each lane, not 1"),
        (dict(tables=[Table.of_words([0] * 6, 29)]), "table 0 must have 7 words of 29 bits, not 6 of 29"),
        (dict(tables=[Table.of_words([0] * 7, 28)]), "table 0 must have 7 words of 29 bits, not 7 of 28"),
    ],
)  # fmt: skip
def test_refused(arguments, message):
    with pytest.raises(ValueError) as error:
        QuadraticRequantizer(**ARGUMENTS | arguments)
    assert str(error.value) == message
