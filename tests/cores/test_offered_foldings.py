"""Foldings that cores offer, what they take of a table's contents, and intervals of products: small cases by hand."""

from __future__ import annotations

import numpy as np
import pytest

from hdl_lib.arithmetic.multiplier import ProductForm
from hwflow.boards import find_board
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.operator import Decision, Folding, Operator
from hwflow.cores.registry import OPERATORS, hardware
from hwflow.cores.requantizers.binary_search import comparisons
from hwflow.cores.streams.elementwise import _tables
from hwflow.ir.graph import Node
from hwflow.numerics.requantizers.search_form import SearchForm
from hwflow.types import Interval, IntType, TensorType
from tests.attributes import attributes_of
from tests.cores.cases.case_parts import I4, U4, stream
from tests.cores.harness import Case

PART = find_board("ulx3s_85f").part


def lanes(node: Node, *, whole: bool = False) -> list[int]:
    return [f.output_lanes for f in hardware(node.op).foldings(node, PART) if f.whole_vector == whole]


@pytest.mark.parametrize(
    ("channels", "in_turn", "in_parallel"),
    [
        ((6, 4), [1, 2, 3, 6], [10, 20, 40]),  # those of the first; whole pixels of both
        ((4, 6, 5), [1, 2], [15, 30, 60]),  # of the first two
        ((1, 9), [1], [10, 20, 40]),
    ],
)
def test_channels_after_one_another(channels: tuple[int, ...], in_turn: list[int], in_parallel: list[int]) -> None:
    first, *others = (stream(4, count, U4) for count in channels)
    node = Case("hand", "stream_concat", {"axis": 1}, first, (), None, tuple(others)).node()
    assert lanes(node) == in_turn
    assert lanes(node, whole=True) == in_parallel


def test_pixels_after_one_another() -> None:
    """6 and 4 pixels of 3 channels: parts of a pixel, or whole ones in a number that divides both."""
    node = Case("hand", "stream_concat", {"axis": 0}, stream(6, 3, U4), (), None, (stream(4, 3, U4),)).node()
    assert lanes(node) == [1, 2, 3, 6]


@pytest.mark.parametrize("family", ["ecp5", "ice40"])
def test_constant_bits_of_weights_are_counted_where_they_are_chosen(family: str) -> None:
    """Weights of 0 and 64 have one bit that changes; others of as many bits have eight. Of a folding that is only
    compared they cost the same. The table of 128 * 512 weights is too large to look at its words."""
    device = find_board({"ecp5": "ulx3s_85f", "ice40": "icebreaker"}[family]).part
    random = np.random.default_rng(1).integers(-128, 128, (128, 512))
    found = {}
    for name, weights in (("one", random // 128 * -64), ("all", random)):
        weights[0, :2] = -128, 127  # the same type
        node = Case("hand", "mvu", {"weights": weights, "pixels_per_vector": 1}, stream(1, 512, U4), ()).node()
        for provisional in (False, True):
            decision = Decision(Folding(16, 2, 32, ProductForm.DSP), (2,),
                                provisional=provisional)
            found[name, provisional] = hardware("mvu").resources(node, decision, device)
    assert found["one", True] == found["all", True] == found["all", False]
    assert found["one", False].bram < found["all", False].bram // 3


def interval(op: str, source: TensorType, **attributes: object) -> list[Interval]:
    operator: Operator = OPERATORS[op]
    (result,) = operator.infer(attributes_of(op, **attributes), [source])
    return list(result.channel_intervals(result.channel_axis))


@pytest.mark.parametrize(
    ("width", "kernel", "stride", "pads", "pad_value", "expected"),
    [
        (4, 3, 1, (1, 1), 0, (0, 6)),  # each tap from 0 to 2
        (4, 3, 1, (1, 1), 5, (3, 15)),  # from 1 to 5
        (4, 3, 1, (0, 0), 0, (3, 6)),  # no padding
    ],
)
def test_padding_is_an_input_where_windows_reach_it(
    width: int, kernel: int, stride: int, pads: tuple[int, int], pad_value: int, expected: tuple[int, int]
) -> None:
    """Inputs of 1 and 2, weights of 1."""
    ranges = Interval(1, 2)
    image, flat = TensorType((1, 1, width), U4, ranges), TensorType((width, 1), U4, ranges)
    window = {"strides": (1, stride), "pads": (0, pads[0], 0, pads[1]), "dilations": (1, 1)}
    ones = np.ones((1, 1, 1, kernel), dtype=np.int64)
    assert interval("conv2d", image, weights=ones, pad_value=pad_value, **window) == [Interval(*expected)]
    geometry = WindowGeometry(1, width, (1, kernel), *window.values())
    columns = ones.reshape(kernel, 1)
    assert interval("depthwise", flat, weights=columns, geometry=geometry, pad_value=pad_value) == [Interval(*expected)]


@pytest.mark.parametrize(
    ("thresholds", "element", "idle", "ones"),
    [
        ([[1, 4, 9]], U4, [], 2),  # stages compare with 3, and with 0 and 8: 011 has two bits of 1 in the end
        ([[0]], U4, [0], 0),  # always reached
        ([[1]], U4, [], 0),  # x > 0
        ([[15]], U4, [], 0),  # x > 14: 1110
        ([[16]], U4, [0], 0),  # never
        ([[8]], U4, [], 3),  # x > 7
        ([[-8]], I4, [0], 0),
        ([[-7]], I4, [], 0),
        ([[0]], I4, [], 3),  # x > -1 looks at the sign alone
        ([[8]], I4, [0], 0),
        ([[0, 8, 16]], U4, [], 3 + 4),  # with 7, and with -1 and 15, which have four bits of 1 both
    ],
)
def test_what_comparisons_look_at(thresholds: list[list[int]], element: IntType, idle: list[int], ones: int) -> None:
    assert comparisons(SearchForm(np.array(thresholds)), [np.array([0])], element) == (idle, ones)


def test_comparisons_of_lanes() -> None:
    """Channels with bounds of 3, 7 and 1: two lanes, the second with one channel and a word of zeros; two alike."""
    form = SearchForm(np.array([[4], [8], [2]]))
    both, one = np.array([0, 1]), np.array([2])
    assert comparisons(form, [both], U4) == ([], 2)
    assert comparisons(form, [both, one], U4) == ([], 2)
    assert comparisons(form, [both, both], U4) == ([], 4)
    never = SearchForm(np.array([[16], [16], [16]]))
    assert comparisons(never, [both, one], U4) == ([0], 0)
    assert comparisons(never, [both, both], U4) == ([0, 0], 0)


@pytest.mark.parametrize(
    ("columns", "bits", "different"),
    [
        ([[0, 1, 2, 3]], [2], 2),
        ([[0, 3, 3, 0]], [2], 1),  # both bits alike
        ([[0, 1, 2, 3], [0, 2, 1, 3]], [2, 2], 2),  # the same two bits
        ([[4, 5, 6, 7]], [3], 2),  # the highest is constant
        ([[5, 5, 5, 5]], [3], 0),
    ],
)
def test_different_bits_of_constant_tensors(columns: list[list[int]], bits: list[int], different: int) -> None:
    words = [np.array(column)[:, None] for column in columns]
    assert _tables("ecp5", words, bits, chosen=True)[1] == different


def test_different_bits_of_constant_tensors_in_blocks() -> None:
    """A block RAM has no copies, and what is too large is not looked at; chosen, constant bits are not counted."""
    words = np.random.default_rng(2).integers(0, 16, (1000, 1))
    resources, different = _tables("ecp5", [words], [4], chosen=True)
    assert resources.bram == 1 and different == 4
    large = np.random.default_rng(2).integers(0, 2, (2000, 9))
    known, none = _tables("ecp5", [large], [8], chosen=True)
    unknown, _ = _tables("ecp5", [large], [8], chosen=False)
    assert none is None and known.bram < unknown.bram
