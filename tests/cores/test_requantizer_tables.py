"""What requantizers' costs take of their parameters: bits of tables, constants, digits. Small cases by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hdl_lib.arithmetic.multiplier import ProductForm
from hwflow.boards import find_board
from hwflow.cores import costs
from hwflow.cores.operator import Decision, Folding
from hwflow.cores.registry import hardware
from hwflow.cores.requantizers.constant_requantize import worth_offering
from hwflow.cores.requantizers.products import BlockProducts
from hwflow.cores.requantizers.requantize_parameters import ChannelParameters, ParameterBits, lane_columns
from hwflow.cores.requantizers.requantizer_core import changing_bits, form_of
from hwflow.ir.graph import Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.types import IntType
from tests.cores.cases.all_cases import CASES
from tests.cores.cases.case_parts import I8, I16, stream
from tests.cores.harness import Case

PART = find_board("ulx3s_85f").part


def node_of(scales: list[Fraction], pixels: int = 2, channels: int = 0, element: IntType = I16) -> Node:
    """Requantized to 8 bits, channel by channel; one scale is that of all."""
    stages = tuple((QuantizerStage(s, Fraction(0), (), Fraction(1), 0, I8.min, I8.max),) for s in scales)
    source = stream(pixels, channels or len(scales), element)
    return Case("hand", "requantize", {"axis": 1, "stages": stages}, source, ()).node()


def with_parameters(multipliers: list[int], addends: list[int]) -> Node[RequantizeAttributes]:
    """A node whose form has these; nobody asks what it computes."""
    node = node_of([Fraction(k + 1, 999) for k in range(len(multipliers))])
    form = form_of(node)
    assert isinstance(form, MultiplyAddShift)
    other = replace(form, multipliers=tuple(multipliers), addends=tuple(addends))
    for key in [key for key, value in node.kept.items() if value is form]:
        node.kept[key] = other
    assert form_of(node) is other
    return node


def test_bits_of_words() -> None:
    """Three channels in two lanes: words of (0, 1) and of 2 with a lane of zeros; lowest bits first, multipliers
    before addends."""
    node = with_parameters([1, 2, 3], [4, 0, -4])  # of 2 bits, and of 4 with the sign
    bits = ChannelParameters(node).bits(3, digits=False)
    one, two, three = [1, 0], [0, 1], [1, 1]
    four, none, minus = [0, 0, 1, 0], [0] * 4, [0, 0, 1, 1]
    assert bits.multipliers.tolist() == [one, two, three]
    assert bits.addends.tolist() == [four, none, minus]
    assert bits.table(2).tolist() == [one + four + two + none, three + minus + [0] * 6]
    assert bits.addends_table(2).tolist() == [four + none, minus + none]
    assert bits.addends_table(3).tolist() == [four + none + minus]
    assert bits.addend_zeros(1) == [2]
    assert bits.addend_zeros(2) == [2, costs.NOTHING]
    assert bits.addend_zeros(3) == [2, costs.NOTHING, 2]
    assert ChannelParameters(node).bits(2, digits=False).addends.tolist() == [four, none]
    odd = ParameterBits(np.zeros((2, 1), dtype=np.uint8), np.array([[0, 1, 1], [1, 0, 0]], dtype=np.uint8))
    assert odd.addend_zeros(1) == [0] and odd.addend_zeros(2) == [1, 0]


def test_constants_that_need_a_multiplier() -> None:
    """0, 4 and -8 do not; 5 and 7 have three bits, 9 four, -3 and -4 + 1 three with the sign, -7 four."""
    node = with_parameters([0, 4, -8, 5, 7, 9, -3, -7], [0] * 8)
    found = ChannelParameters(node).fixed_factors(8, 18)
    assert found == {IntType(3, False): 2, IntType(4, False): 1, IntType(3, True): 1, IntType(4, True): 1}
    assert ChannelParameters(node).fixed_factors(4, 18) == {IntType(3, False): 1}


def test_multipliers_of_lanes() -> None:
    assert lane_columns([5, 6, 7], 1) == [(5, 6, 7)]
    assert lane_columns([5, 6, 7], 2) == [(5, 7), (6, 0)]
    assert lane_columns([5, 6, 7], 4) == [(5,), (6,), (7,), (0,)]


@pytest.mark.parametrize(
    ("values", "lanes", "changing"),
    [
        ([[0, 1, 2, 3]], 1, 2),
        ([[0, 1, 2, 3]], 3, 6),  # the same in each lane
        ([[0, 3, 0]], 1, 1),  # both bits alike
        ([[4, 5]], 1, 1),
        ([[6, 6]], 1, 0),
        ([[0, 1], [2, 3]], 1, 2),  # one lane for both channels
        ([[0, 1], [2, 3]], 2, 2),  # a lane each, of one changing bit
        ([[0, 1], [2, 3]], 4, 4),
        ([[-1, 0]], 1, 1),  # all bits alike
    ],
)
def test_changing_bits_of_results(values: list[list[int]], lanes: int, changing: int) -> None:
    steps = [StepFunction.of(0, len(row) - 1, list(enumerate(row))) for row in values]
    assert changing_bits(steps, lanes, 4) == changing


@pytest.mark.parametrize(
    ("multipliers", "offered"),
    [
        ((1, 2, -4), False),  # shifts
        ((0,), False),
        ((3, 1), True),
        ((0b10101010101, 1), True),  # 6 digits
        ((sum(4**k for k in range(12)), 3), True),  # 12
        ((sum(4**k for k in range(13)), 3), False),  # 13
        ((-sum(4**k for k in range(13)), 3), False),
    ],
)
def test_where_adders_are_offered(multipliers: tuple[int, ...], offered: bool) -> None:
    assert worth_offering(MultiplyAddShift(multipliers, (0,) * len(multipliers), 9, 0, 9)) == offered


def kinds(node: Node, lanes: int) -> set[str]:
    return {str(f.multiplier) for f in hardware("requantize").foldings(node, PART) if f.input_lanes == lanes}


def test_kinds_of_multipliers() -> None:
    """Adders where each lane has one constant, products in look-up tables where several come in turn; scales that are
    powers of two need none."""
    each = node_of([Fraction(100 + 7 * c, 9999) for c in range(4)])
    assert {"", "lut", "serial"} <= kinds(each, 1) and not {"shift_add", "search"} & kinds(each, 1)
    assert {"", "shift_add"} <= kinds(each, 4) and not {"lut", "serial", "search"} & kinds(each, 4)
    alike = node_of([Fraction(100, 9999)], channels=4)
    assert {"shift_add", "search"} <= kinds(alike, 1) and "search" not in kinds(alike, 2)
    assert kinds(node_of([Fraction(1, 8)], channels=4), 1) == {""}


def test_words_and_channels_in_turn() -> None:
    """Of 3 channels in 2 lanes: two words, the last one with a lane of zeros. Whole pixels: each lane has a channel of
    its own; channels that are alike have one word."""
    node = node_of([Fraction(100 + 7 * c, 9999) for c in range(3)], pixels=4)
    form = form_of(node)
    expected = {1: (3, 3, 3, 12), 2: (3, 3, 2, 8), 3: (3, 3, 1, 4), 6: (3, 6, 1, 2)}
    for lanes, (own, channels, words, beats) in expected.items():
        core = BlockProducts(node, Folding(lanes, lanes, multiplier=ProductForm.NONE), form)
        assert (core.own, core.channels, core.words, core.cycles()) == (own, channels, words, beats)
    core = BlockProducts(node, Folding(2, 2), form)
    assert core.padded([5, 6, 7]).tolist() == [[5, 6], [7, 0]]
    assert core.packed([(np.array([[1, 2], [3, 0]]), 2), (np.array([[-1, 0], [1, 0]]), 3)]) == (
        [0b000_10_111_01, 0b000_00_001_11], 10
    )
    assert [core.wrapped(n) for n in (-129, -128, 0, 127, 128, 300)] == [127, -128, 0, 127, -128, 44]
    assert BlockProducts(node, Folding(6, 6), form).padded([5, 6, 7]).tolist() == [[5, 6, 7, 5, 6, 7]]
    alike = node_of([Fraction(100, 9999)], channels=3, pixels=4)
    core = BlockProducts(alike, Folding(2, 2), form_of(alike))
    assert (core.own, core.channels, core.words, core.cycles()) == (1, 2, 1, 8)


@pytest.mark.parametrize(
    ("channels", "lanes", "digits"),
    [
        (1, 1, [9, 10, 11]),  # a word for each value of a digit: tables of 512, 1,024, 2,048
        (5, 1, [6, 7, 8]),  # five words for each: 320, 640, 1,280
        (5, 2, [7, 8, 9]),  # three
        (5, 5, [9, 10, 11]),
    ],
)
def test_digits_of_tabled_products(channels: int, lanes: int, digits: list[int]) -> None:
    node = node_of([Fraction(10007 + 70 * c, 9999999) for c in range(channels)], element=IntType(20, True))
    tabled = [f for f in hardware("requantize").foldings(node, PART) if f.multiplier == "table"]
    assert [f.digit_bits for f in tabled if f.input_lanes == lanes] == digits


@pytest.mark.parametrize("name", dict.fromkeys(case.name for case in CASES["requantize"]))
def test_forms_do_not_share_costs(name: str) -> None:
    """A node that was asked what all of its forms cost says of each what it says of it alone."""
    case = next(case for case in CASES["requantize"] if case.name == name)
    node, operator = case.node(), hardware("requantize")
    for folding in operator.foldings(node, PART):
        decision = Decision(folding, (6,))
        alone = operator.resources(case.node(), decision, PART)
        assert operator.resources(node, decision, PART) == alone, folding
