"""Networks of look-up tables: exact, and as small as is known by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.numerics.truth_tables import BitFunction, LutNetwork, lut_network

MANY = 10_000


def function(values: list[int] | np.ndarray, bits: int, first: int = 0) -> BitFunction:
    """Of consecutive signals."""
    array = np.array(values, dtype=np.int64)
    return BitFunction(list(range(first, first + len(array).bit_length() - 1)), array, bits)


def check(inputs: int, functions: list[BitFunction]) -> LutNetwork:
    """The network, after every function has been read at every place, one by one."""
    network = lut_network(inputs, functions, MANY)
    assert network is not None
    rng = np.random.default_rng(0)
    first = 0
    for signals, values, bits in functions:
        x = rng.integers(0, 2, (len(values), inputs))
        x[:, signals] = np.arange(len(values))[:, None] >> np.arange(len(signals)) & 1
        y = network.evaluate(x)[:, first : first + bits]
        assert (y << np.arange(bits)).sum(axis=1).tolist() == values.tolist()
        first += bits
    for number, lut in enumerate(network.luts, inputs):
        assert len(lut.inputs) <= 4
        assert all(signal < number for signal in lut.inputs)
    return network


def bit_count(bits: int) -> np.ndarray:
    return np.bitwise_count(np.arange(1 << bits)).astype(np.int64)


@pytest.mark.parametrize(
    ("bits", "tables", "levels"), [(1, 0, 0), (2, 1, 1), (4, 1, 1), (5, 2, 2), (7, 2, 2), (10, 3, 2), (12, 4, 2)]
)
def test_parity_takes_a_table_for_three_further_bits(bits: int, tables: int, levels: int) -> None:
    network = check(bits, [function(bit_count(bits) % 2, 1)])
    assert (network.size, network.levels) == (tables, levels)


def test_registers_between_tables() -> None:
    """The xor of ten bits in stages of one table: two tables and the two bits left, or three tables and a register
    each for what the last one reads."""
    network = check(10, [function(bit_count(10) % 2, 1)])
    assert network.stages(2) == (0, 0, 0)
    assert network.flip_flops(2) == 0
    assert network.stages(1)[-1] == 1
    assert network.flip_flops(1) == len(network.luts[-1].inputs)


def test_a_full_adder_is_two_tables() -> None:
    assert check(3, [function(bit_count(3), 2)]).size == 2


def test_bits_that_do_not_matter_are_not_read() -> None:
    """x[1] & x[6] of eight bits; and one that is a single bit."""
    place = np.arange(256)
    network = check(8, [function(place >> 1 & place >> 6 & 1, 1), function(place >> 5 & 1, 1)])
    assert (network.size, network.read, network.outputs[1]) == (1, {1, 6, 5}, 5)


def test_equal_functions_are_made_once() -> None:
    values = np.random.default_rng(0).integers(0, 4, 64)
    once = check(6, [function(values, 2)])
    assert check(6, [function(values, 2), function(values, 2)]).size == once.size


def test_a_constant_is_no_table() -> None:
    network = check(3, [function([2] * 8, 2), BitFunction([], np.array([1]), 1)])
    assert (network.size, network.levels, network.read, network.results) == (0, 0, set(), set())


def test_a_threshold_of_a_sum_is_less_than_its_halves() -> None:
    """Twelve bits: four full adders of two tables, two tables for each of two bits of their sum, and one or two."""
    assert check(12, [function(bit_count(12) >= 6, 1)]).size <= 14


def test_no_more_tables_than_allowed() -> None:
    values = np.random.default_rng(0).integers(0, 2, 256)
    least = check(8, [function(values, 1)]).size
    assert lut_network(8, [function(values, 1)], least) is not None
    assert lut_network(8, [function(values, 1)], least - 1) is None


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 9), st.integers(1, 3), st.integers(0, 2), st.integers(0, 1 << 30))
def test_any_function(inputs: int, bits: int, smooth: int, seed: int) -> None:
    """Random ones, and those that change seldom; two of them on the same and on other signals."""
    rng = np.random.default_rng(seed)
    sums = np.cumsum(rng.integers(0, 3, 1 << inputs)) if smooth else rng.integers(0, 1 << bits, 1 << inputs)
    values = (sums >> 2 * (smooth - 1) if smooth else sums) % (1 << bits)
    check(inputs + 2, [function(values, bits), function(values[::-1], bits, smooth)])
