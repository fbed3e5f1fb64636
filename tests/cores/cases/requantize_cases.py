"""Cases of requantizers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.cores.operator import Folding
from hwflow.ir.graph import IntArray, Node
from hwflow.numerics.functions.piecewise import Relu
from hwflow.numerics.requantizers.stages import QuantizerStage, StepStage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.types import Interval, IntType
from tests.cores.cases.case_parts import I4, I8, I12, I16, U1, U4, constant_corners, intervals_within, stream
from tests.cores.harness import Case


def _requantize(
    name: str,
    pixels: int,
    channels: int,
    element: IntType,
    out: IntType,
    scale: Callable[[int], Fraction],
    lanes: tuple[int, ...],
    *,
    uniform: bool = False,
    narrow: bool = False,
    relu: bool = False,
    zero_point: int = 0,
) -> Case:
    """Channel c: real = scale(c) * x, then a Relu or nothing, then a quantizer of scale 1."""
    stages = tuple(
        (
            QuantizerStage(
                scale(c), Fraction(c % 3 - 1), (Relu(),) if relu else (), Fraction(1), zero_point, out.min, out.max
            ),
        )
        for c in range(1 if uniform else channels)
    )
    intervals = intervals_within(element, channels, np.random.default_rng(channels)) if narrow else ()
    source = stream(pixels, channels, element, intervals)
    return Case(
        name,
        "requantize",
        {"axis": 1, "stages": stages},
        source,
        tuple(Folding(n, n) for n in lanes),
        constant_corners,
    )


I18, I20 = IntType(18, True), IntType(20, True)

REQUANTIZE = [
    _requantize("multiply", 3, 5, I18, I8, lambda c: Fraction(97 + 13 * c, 131071), (1, 2, 3, 5, 15), zero_point=3),
    _requantize(
        "multiply_wide", 2, 3, I20, I8, lambda c: Fraction(1234567 + 34567 * c, (1 << 33) - 1), (2,), relu=True
    ),
    _requantize(  # whose addends do not fit 64 bits
        "multiply_wide", 2, 2, IntType(36, True), I16, lambda c: Fraction(1234567 + 13 * c, 3 << 42), (1, 2),
        zero_point=3,
    ),
    _requantize(  # with parameters in a block RAM
        "multiply_deep", 1, 256, I18, I8, lambda c: Fraction(48271 ** (c + 1) % 65537 + 9999, (1 << 26) - 1), (1, 2)
    ),
    _requantize("multiply_alike", 3, 4, I16, I8, lambda c: Fraction(3, 1001), (1, 3, 12), uniform=True),
    _requantize("search_ties_alike", 3, 4, I16, I8, lambda c: Fraction(3, 1000), (3,), uniform=True),
    _requantize("multiply_intervals", 2, 3, I18, I8, lambda c: Fraction(97 + 13 * c, 131071), (2,), narrow=True),
    _requantize("multiply_ties", 3, 5, I18, I8, lambda c: Fraction(1 + 2 * c, 512), (1, 2, 5)),
    _requantize("multiply_ties_odd", 3, 4, I16, I8, lambda c: Fraction(1, 128), (1, 3), zero_point=3, uniform=True),
    # Limits that are behind a register: five upper bits tell of them.
    _requantize("multiply_ties_late", 3, 4, I16, I8, lambda c: Fraction(1, 32), (1, 3), zero_point=3, uniform=True),
    _requantize("thresholds", 4, 5, I12, IntType(2, True), lambda c: Fraction(7 + c, 3000), (1, 2, 5, 10)),
    _requantize("thresholds_alike", 3, 3, I12, IntType(2, False), lambda c: Fraction(7, 3000), (1, 2, 9), uniform=True),
    _requantize("sign", 3, 2, I12, U1, lambda c: Fraction(1, 700 + c), (1, 2)),
    _requantize("table", 4, 3, I4, I8, lambda c: Fraction(31 + 9 * c, 7), (1, 2, 3, 6)),
    _requantize("table_alike", 4, 3, U4, I8, lambda c: Fraction(57, 7), (2, 12), uniform=True),
    _requantize("constant", 2, 3, I8, I8, lambda c: Fraction(1, 100000), (2,)),
]


def _function(
    name: str,
    pixels: int,
    channels: int,
    element: IntType,
    function: Callable[[IntArray, int], npt.NDArray[Any]],
    lanes: tuple[int, ...],
    *,
    uniform: bool = False,
    intervals: tuple[Interval, ...] = (),
) -> Case:
    """Channel c: function(x, c) rounded down."""
    source = stream(pixels, channels, element, intervals)
    stages = []
    for c, interval in enumerate(source.channel_intervals(1)[: 1 if uniform else channels]):
        table = np.floor(function(np.arange(interval.lo, interval.hi + 1), c)).astype(np.int64)
        stages.append((StepStage(StepFunction.of_table(interval.lo, table)),))
    return Case(
        name,
        "requantize",
        {"axis": 1, "stages": tuple(stages)},
        source,
        tuple(Folding(n, n) for n in lanes),
        function_corners,
    )


def function_corners(node: Node) -> IntArray:
    """For each channel an input of its least and of its greatest result."""
    frames = []
    for end in (min, max):
        row = [
            (s.lo, *s.breaks)[s.values.index(end(s.values))] for s in node.attributes.steps
        ]
        frames.append(np.broadcast_to(np.array(row, dtype=np.int64), node.inputs[0].typed.shape))
    return np.stack(frames)


def line(x: IntArray, multiplier: int, shift: int, low: int = -128, high: int = 127) -> IntArray:
    return ((multiplier * x + 12345 % (1 << shift)) >> shift).clip(low, high)


def smooth(x: IntArray, center: float, width: float) -> npt.NDArray[Any]:
    """Falls a little below 0 on its way from 0 up to x: neither rising nor falling."""
    return 40 * (x - center) / width / (1 + np.exp(-(x - center) / width))


def sigmoid(x: IntArray) -> npt.NDArray[Any]:
    return 32768 / (1 + np.exp(-x / 1000)) + 0.5


REQUANTIZE += [
    _function("multiply_falling", 3, 5, I18, lambda x, c: line(x, -97 - 13 * c, 17), (1, 2, 5)),
    _function("multiply_both", 3, 4, I18, lambda x, c: line(x, (97 + 13 * c, -201, 0, 45)[c], 17), (1, 3, 12)),
    _function(
        "multiply_both_intervals",
        2,
        3,
        I16,
        lambda x, c: line(x, (-1 - c, 300, -77)[c], 16),
        (2,),
        intervals=(Interval(-32768, 32767), Interval(-5, 3000), Interval(-20000, -100)),
    ),
    _function("multiply_falling_alike", 3, 4, I16, lambda x, c: line(x, -77, 15), (1, 3), uniform=True),
    _function("multiply_negated_alike", 3, 4, I16, lambda x, c: (-x).clip(-128, 127), (2,), uniform=True),
    _function("multiply_shifted_alike", 3, 4, I16, lambda x, c: -x >> 5, (2,), uniform=True),
    _function("multiply_one_limit_alike", 3, 3, I12, lambda x, c: line(x, 1, 3, -1000, 100), (1, 3), uniform=True),
    _function(
        "multiply_falling_wide", 2, 3, I20, lambda x, c: line(x, (-1234567, 1034567, -734567)[c], 31), (2,)
    ),
    _function("multiply_falling_ties", 3, 2, I16, lambda x, c: np.rint(x * (-1 if c else 3) / 256), (1, 2)),
    _function("thresholds_both", 4, 5, I12, lambda x, c: (x * (1, -1)[c % 2] // 900).clip(-1, 2), (1, 2, 5, 20)),
    _function("thresholds_falling_alike", 3, 3, I12, lambda x, c: (-x // 900).clip(-1, 1), (2,), uniform=True),
    _function("thresholds_pulse", 3, 3, I12, lambda x, c: (abs(x - 50 * c) < 300) * 1, (1, 3)),
    _function("thresholds_bases", 3, 4, I12, lambda x, c: 60 * c + (x * (1, -1)[c % 2] > 3 * c), (1, 3)),
    _function("thresholds_bases_alike", 3, 2, I12, lambda x, c: 100 + (x > 7), (2,), uniform=True),
    _function("sign_both", 3, 4, I12, lambda x, c: x * (1, -1, 1, -1)[c] >= c, (1, 3)),
    _function("sign_falling_alike", 3, 4, I12, lambda x, c: x < 5, (3,), uniform=True),
    _function("search", 3, 5, I16, lambda x, c: np.sqrt(x.clip(0) * (1 + c / 7)), (1, 2, 5, 15)),
    _function("search_alike", 3, 4, I16, lambda x, c: 127 * np.tanh(x / 9000), (1, 3, 12), uniform=True),
    _function("search_falling", 3, 3, I16, lambda x, c: 100 - np.cbrt(x.clip(0) * (1 + c)), (2,)),
    _function("search_values", 3, 5, I16, lambda x, c: smooth(x, 300 * c, 4000 + 900 * c), (1, 2, 5, 15)),
    _function("search_values_alike", 3, 4, I16, lambda x, c: smooth(x, 0, 4000), (1, 3), uniform=True),
    _function("search_values_both", 3, 3, I16, lambda x, c: (1, -1, 0)[c] * np.sqrt(x.clip(0)) - c, (1, 2)),
    _function("search_one", 2, 3, I16, lambda x, c: np.where(x > 1000 * c, 3000 * c, -7), (2,)),
    _function("quadratics_alike", 3, 4, I16, lambda x, c: 20000 * np.tanh(x / 3000), (1, 3), uniform=True),
    _function("quadratics_wide_alike", 2, 3, I16, lambda x, c: 20000 * np.tanh(x / 9000), (1,), uniform=True),
    _function("quadratics_limits_alike", 2, 3, IntType(16, False), lambda x, c: sigmoid(x - 30000), (1,), uniform=True),
    _function("table_wave", 4, 3, I8, lambda x, c: 100 * np.sin(x / 9 + c), (2,)),
]



def _constants(case: Case, lanes: int, kind: str) -> Case:
    """The case with constants in every lane."""
    return replace(case, name=f"{case.name}_constants{lanes}{kind}", foldings=(Folding(lanes, lanes, multiplier=kind),))


ADDERS = "shift_add"


def _power(channel: int) -> Fraction:
    return Fraction(1 << channel % 3, 256)


REQUANTIZE += [
    _constants(_requantize("multiply_powers", 3, 5, I12, I8, _power, ()), 5, ""),
    _constants(_requantize("multiply_powers_odd", 4, 3, I12, I4, _power, (), zero_point=1, relu=True), 6, ""),
    _constants(_requantize("multiply_powers_narrow", 2, 5, I12, U4, _power, (), narrow=True), 5, ""),
    _constants(_function("multiply_floor", 3, 3, I12, lambda x, c: line(x, 1 << 2 * c, 5, -9, 100), ()), 3, ""),
    _constants(
        _function("multiply_negated", 3, 4, I12, lambda x, c: line(x, (-4, 0, 1, -1)[c], 4, -127, 90), ()), 4, ""
    ),
    _constants(
        _function("multiply_negated_odd", 2, 2, I12, lambda x, c: np.rint((1 - 2 * c) * x / 64).clip(-7, 6), ()), 2, ""
    ),
    _constants(_requantize("multiply_ties_products", 3, 5, I18, I8, lambda c: Fraction(1 + 2 * c, 512), ()), 5, ADDERS),
    _constants(_requantize("multiply_products", 3, 5, I12, I8, lambda c: Fraction(97 + 13 * c, 8191), ()), 5, ADDERS),
    _constants(
        _function("multiply_products_both", 3, 4, I12, lambda x, c: line(x, (97, -201, 0, 45)[c], 11), ()), 4, ADDERS
    ),
    _constants(
        _requantize("multiply_alike_products", 3, 4, I12, I8, lambda c: Fraction(41, 1001), (), uniform=True), 3, ADDERS
    ),
]


def _rows(case: Case, *lanes: int) -> Case:
    """The case with products of look-up tables."""
    return replace(case, name=f"{case.name}_rows", foldings=tuple(Folding(n, n, multiplier="lut") for n in lanes))


REQUANTIZE += [
    _rows(_function("quadratics_alike", 3, 4, I16, lambda x, c: 20000 * np.tanh(x / 3000), (), uniform=True), 1),
]


def _scattered(least: int, shift: int) -> Callable[[int], Fraction]:
    """Scales that have little in common."""
    return lambda channel: Fraction(48271 ** (channel + 1) % 65537 + least, 1 << shift)


REQUANTIZE += [
    _rows(_requantize("multiply", 3, 5, I18, I8, _scattered(9999, 26), (), zero_point=3), 1, 2),
    _rows(_requantize("multiply_many", 2, 16, I20, I8, _scattered(9999, 28), ()), 1, 4),
    _rows(
        _requantize("multiply_wide", 2, 3, I20, I8, lambda c: Fraction(1234567 + 34567 * c, (1 << 33) - 1), ()), 1
    ),
    _rows(_requantize("multiply_ties", 3, 5, I18, I8, lambda c: Fraction(1 + 2 * c, 512), ()), 1, 3),
    _rows(_requantize("multiply_unsigned", 3, 4, IntType(14, False), U4, _scattered(99, 24), ()), 2),
    _rows(_function("multiply_both", 3, 4, I12, lambda x, c: line(x, (97, -201, 0, 45)[c], 11), ()), 1, 2),
]


def _serial(case: Case, *foldings: tuple[int, int]) -> Case:
    """The case in several cycles per element: (lanes, digits per step)."""
    return replace(
        case, name=f"{case.name}_serial",
        foldings=tuple(Folding(n, n, multiplier="serial", digits=together) for n, together in foldings),
    )


def _one_comparator(case: Case) -> Case:
    """The case by a search with one comparator."""
    return replace(case, name=f"{case.name}_in_steps", foldings=(Folding(1, 1, multiplier="search"),))


REQUANTIZE += [
    _serial(_requantize("multiply", 2, 5, I18, I8, _scattered(9999, 22), (), zero_point=3), (1, 1), (2, 2), (1, 3)),
    _serial(_requantize("multiply_many", 2, 24, I20, I8, _scattered(9999, 22), ()), (1, 1), (1, 2)),
    _serial(
        _requantize("multiply_alike", 3, 4, I18, I8, lambda c: Fraction(3, 1001), (), uniform=True), (1, 1), (3, 2)
    ),
    _serial(_requantize("multiply_unsigned", 3, 4, IntType(15, False), U4, _scattered(99, 24), ()), (1, 1), (2, 3)),
    _serial(
        _function("multiply_both", 3, 4, I18, lambda x, c: line(x, (97013, -201177, 0, 45001)[c], 27), ()),
        (1, 1), (1, 2), (1, 5),
    ),
    _one_comparator(
        _requantize("multiply_alike", 3, 4, I16, I8, lambda c: Fraction(3, 1001), (), uniform=True, zero_point=3)
    ),
    _one_comparator(_function("search", 3, 5, I16, lambda x, c: np.sqrt(x.clip(0) * (1 + c / 7)), ())),
    _one_comparator(_function("search_alike", 3, 4, I16, lambda x, c: 127 * np.tanh(x / 9000), (), uniform=True)),
    _one_comparator(_function("search_falling", 3, 3, I16, lambda x, c: 100 - np.cbrt(x.clip(0) * (1 + c)), ())),
    _one_comparator(_function("search_values", 3, 5, I16, lambda x, c: smooth(x, 300 * c, 4000 + 900 * c), ())),
    _one_comparator(_function("search_one", 2, 3, I16, lambda x, c: np.where(x > 1000 * c, 3000 * c, -7), ())),
    _one_comparator(_function("search_deep", 2, 16, I20, lambda x, c: 127 * np.tanh(x / (9000 + 99 * c)), ())),
]


def _tabled(case: Case, *foldings: tuple[int, int]) -> Case:
    """The case with products in tables: (lanes, bits per digit)."""
    return replace(
        case, name=f"{case.name}_tabled",
        foldings=tuple(Folding(n, n, multiplier="table", digit_bits=digit) for n, digit in foldings),
    )


REQUANTIZE += [
    _tabled(_requantize("multiply", 2, 5, I18, I8, _scattered(9999, 26), (), zero_point=3), (1, 6), (2, 7), (5, 9)),
    _tabled(_requantize("multiply_many", 2, 64, I20, I8, _scattered(9999, 28), ()), (1, 3), (2, 4)),
    _tabled(_requantize("multiply_unsigned", 3, 4, IntType(14, False), U4, _scattered(99, 24), ()), (2, 7)),
    _tabled(_requantize("multiply_alike", 3, 4, I18, I8, lambda c: Fraction(3, 1001), (), uniform=True), (3, 9)),
    _tabled(_function("multiply_both", 3, 4, I18, lambda x, c: line(x, (97013, -201177, 0, 45001)[c], 27), ()), (1, 7)),
]


def _keys(name: str, pixels: int, counts: tuple[int, ...], element: IntType, first: int = 0) -> Case:
    """Channel c: its rank among so many random numbers of ``element``, from ``first * c`` on."""
    rng, stages = np.random.default_rng(len(counts)), []
    for channel, count in enumerate(counts):
        breaks = np.unique(rng.integers(element.min + 1, element.max, count, endpoint=True))
        step = StepFunction(element.min, element.max, breaks, first * channel + np.arange(len(breaks) + 1))
        stages.append((StepStage(step),))
    source = stream(pixels, len(counts), element, ())
    return Case(name, "requantize", {"axis": 1, "stages": tuple(stages)}, source, (), function_corners)


GATES = "lut"

REQUANTIZE += [
    _constants(_keys("search_keys", 2, (3, 0, 12, 7, 31, 1), IntType(32, True), 1), 6, GATES),
    _constants(_keys("thresholds_keys", 3, (1, 2, 1, 1), IntType(20, False)), 4, GATES),
    _constants(_keys("search_keys_of_pixels", 2, (5, 2, 9), IntType(23, False)), 6, GATES),
]


def _by_row(case: Case, group: int, *, apart: bool = False) -> Case:
    """The case with the functions of its channels in turns: each for a row of ``group`` elements, twice in a frame.
    ``apart``: the stream has pixels of one element."""
    stages = case.attributes["stages"]
    rows = 2 * len(stages)
    source = stream(rows * group, 1, case.source.element) if apart else stream(rows, group, case.source.element)
    attributes = {**case.attributes, "rounds": len(stages), "row": group}
    return replace(
        case, name=f"{case.name}_by_row{'_apart' if apart else ''}", source=source, attributes=attributes,
        corners=None if case.corners is None else _row_corners,
    )


def _row_corners(node: Node) -> IntArray:
    """For each row an input of its least and of its greatest result."""
    given, shape = node.attributes, node.inputs[0].typed.shape
    frames = []
    for end in (min, max):
        column = [(s.lo, *s.breaks)[s.values.index(end(s.values))] for s in given.steps]
        rows = np.resize(np.array(column, dtype=np.int64), shape[0] * shape[1] // given.row)
        frames.append(np.repeat(rows, given.row).reshape(shape))
    return np.stack(frames)


REQUANTIZE += [
    _by_row(case, group)
    for case, group in (
        (_requantize("multiply", 3, 5, I18, I8, lambda c: Fraction(97 + 13 * c, 131071), (1, 2, 3, 6)), 6),
        (_requantize("multiply_deep", 1, 256, I18, I8, _scattered(9999, 26), (1, 2)), 2),
        (_requantize("multiply_ties", 3, 5, I18, I8, lambda c: Fraction(1 + 2 * c, 512), (2, 3)), 4),
        (_rows(_requantize("multiply", 3, 5, I18, I8, _scattered(9999, 26), (), zero_point=3), 1, 2), 4),
        (_serial(_requantize("multiply", 2, 5, I18, I8, _scattered(9999, 22), ()), (1, 1), (2, 2)), 4),
        (_requantize("thresholds", 4, 5, I12, IntType(2, True), lambda c: Fraction(7 + c, 3000), (1, 2, 5)), 5),
        (_requantize("table", 4, 3, I4, I8, lambda c: Fraction(31 + 9 * c, 7), (1, 3)), 3),
        (_function("search", 3, 5, I16, lambda x, c: np.sqrt(x.clip(0) * (1 + c / 7)), (1, 2)), 4),
        (_function("search_values", 3, 5, I16, lambda x, c: smooth(x, 300 * c, 4000 + 900 * c), (1, 3)), 3),
        (_one_comparator(_function("search", 3, 5, I16, lambda x, c: np.sqrt(x.clip(0) * (1 + c / 7)), ())), 3),
        (_one_comparator(_function("search_values", 2, 3, I16, lambda x, c: smooth(x, 300 * c, 4000), ())), 4),
        (_requantize("multiply_alike", 3, 4, I16, I8, lambda c: Fraction(3, 1001), (1, 3), uniform=True), 3),
    )
]

REQUANTIZE += [
    _by_row(case, 6, apart=True)
    for case in (
        _requantize("multiply", 3, 5, I18, I8, lambda c: Fraction(97 + 13 * c, 131071), (1, 2, 3, 6)),
        _serial(_requantize("multiply", 2, 5, I18, I8, _scattered(9999, 22), ()), (1, 1), (2, 2)),
        _function("search_values", 3, 5, I16, lambda x, c: smooth(x, 300 * c, 4000 + 900 * c), (1, 3)),
    )
]
