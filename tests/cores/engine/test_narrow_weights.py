"""Weights of four bits: what engines make of them, and the bytes that they come in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hwflow.cores.engine.engine_layers import EngineLayer
from hwflow.cores.engine.engines import Engine
from hwflow.cores.engine.network_part import Network, Shape
from hwflow.cores.engine.strips import fastest
from hwflow.cores.engine.weight_stream import weight_stream
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.types import Interval, IntType

POINT = WindowGeometry(1, 2, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))


def network(weights: list[list[int]], *, diagonal: bool = False) -> Network:
    """Of a row of two pixels; multipliers 1, 2, .. of 4 bits, addends -1, -2, .. of 4 bits."""
    outputs = len(weights[0] if diagonal else weights)
    form = MultiplyAddShift(tuple(range(1, outputs + 1)), tuple(range(-1, -outputs - 1, -1)), 0, -128, 127)
    layer = EngineLayer(POINT, 0, 0, np.array(weights), diagonal, Interval(-1000, 1000), form)
    return Network((layer,), Shape(1, 2, (layer.inputs,)), IntType(8, True))


def stream(net: Network, engine: Engine) -> list[int]:
    order = fastest(net, engine, 100, 1.0)
    assert order is not None
    fetched = weight_stream(order.program(engine), net, order.made, as_bytes=True)
    assert fetched.element == IntType(8, True)
    own = weight_stream(order.program(engine), net, order.made, as_bytes=False)
    assert own.element == IntType(engine.weight_bits, True)
    few, mask = 8 // engine.weight_bits, (1 << engine.weight_bits) - 1
    split = [int(byte) >> place * engine.weight_bits & mask for byte in fetched.weights[0] for place in range(few)]
    assert [int(number) & mask for number in own.weights[0]] == split
    return [int(byte) & 255 for byte in fetched.weights[0]]


FOUR = [[1, -8, 7, 0], [-1, 2, 3, -4], [5, 6, -7, 1], [0, 0, 0, 2]]


@pytest.mark.parametrize(("weight", "bits"), [(7, 4), (-8, 4), (8, 8), (-9, 8)])
def test_bits_are_those_that_all_weights_need(weight: int, bits: int) -> None:
    assert network([[1, 2], [weight, 0]]).weight_bits == bits


def test_two_weights_in_a_byte() -> None:
    """The word's number; rows of four lanes with a multiplier and an addend; those of weights, the lowest first."""
    net = network(FOUR)
    forms = replace(net.forms, multiplier_bits=4, addend_bits=4)
    assert (net.forms.multiplier_bits, net.forms.addend_bits) == (forms.multiplier_bits, 3)  # 1 to 4, -1 to -4
    found = stream(net, Engine(4, 1, 16, 4, weight_bits=4))
    parameters = [channel | (-channel & 7) << 4 for channel in range(1, 5)]
    assert found[:2] == [1, 0]
    assert found[2:10] == [byte for each in parameters for byte in (each, 0)]
    assert found[10:] == [0x81, 0x07, 0x2F, 0xC3, 0x65, 0x19, 0x00, 0x20]


def test_a_weight_in_a_byte() -> None:
    found = stream(network(FOUR), Engine(4, 1, 16, 4))
    assert found[:2] == [1, 0]
    assert found[2 : 2 + 16 : 4] == [channel | (-channel & 7) << 4 for channel in range(1, 5)]
    assert found[2 + 16 :] == [weight & 255 for row in FOUR for weight in row]


def test_a_diagonal_word() -> None:
    """Weights of four rows, the word marked in the highest bit of its number."""
    found = stream(network([[3, -2, 7, -8]], diagonal=True), Engine(4, 1, 16, 4, weight_bits=4))
    assert found[:2] == [1, 0x80]
    assert found[10:] == [0xE3, 0x87]


def test_a_diagonal_word_that_both_taps_share() -> None:
    """It comes once; words of taps that differ come one after the other."""
    engine, window = Engine(4, 1, 16, 4, weight_bits=4), replace(POINT, kernel=(1, 2))
    for second, number, words in (
        ([3, -2, 7, -8], 1, [0xE3, 0x87]), ([3, -2, 7, -7], 2, [0xE3, 0x87, 0xE3, 0x97])
    ):
        net = network([[3, -2, 7, -8], second], diagonal=True)
        layer = replace(net.computed[0], window=window)
        found = stream(replace(net, layers=(layer,)), engine)
        assert found[:2] == [number, 0x80]
        assert found[10:] == words
        assert engine.repeats(layer) == (number == 1)


def test_rows_that_share_blocks() -> None:
    """16 lanes with 134 multiplier blocks, of which results take some: eight pairs of rows, or eight rows."""
    net = network(FOUR)
    of_result = net.forms.multipliers
    assert of_result == 1
    four, eight = (Engine(16, 6, 16, 4, weight_bits=bits).within(net, 134) for bits in (4, 8))
    assert four is not None
    assert eight is not None
    assert (four.soft, eight.soft) == (0, 8)
    less = Engine(16, 6, 16, 4, weight_bits=4).within(net, 133)
    assert less is not None
    assert less.soft == 2


def test_windows_slide_where_both_rows_of_a_block_have_lanes() -> None:
    """Three columns of each of two rows: six lanes."""
    window = WindowGeometry(4, 8, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    form = MultiplyAddShift((1,) * 8, (0,) * 8, 0, -128, 127)
    layer = EngineLayer(window, 0, 0, np.ones((9, 8), dtype=np.int64), True, Interval(-1000, 1000), form)
    assert [Engine(lanes, 1, 16, 4).slides(layer) for lanes in (2, 4, 8)] == [False, True, True]
    assert [Engine(lanes, 1, 16, 4, weight_bits=4).slides(layer) for lanes in (2, 4, 8)] == [False, False, True]
