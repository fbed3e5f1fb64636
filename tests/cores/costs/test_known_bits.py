"""What the resource models find out about known numbers, counted by hand."""

from __future__ import annotations

import numpy as np

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.memories.rom import banks_of
from hwflow.cores import costs
from hwflow.cores.costs.products.row_sums import digit_products, multiple_product
from hwflow.cores.operator import Resources
from hwflow.cores.requantizers.binary_search import comparisons
from hwflow.cores.requantizers.requantizer_core import changing_bits
from hwflow.numerics.requantizers.search_form import SearchForm
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.types import IntType

U4, I4 = IntType(4, False), IntType(4, True)


def test_a_digit_that_is_1_or_0_clears_registers() -> None:
    """1 or 0 in one digit: the input's 4 bits in registers with a reset, the sign's copy among them."""
    assert digit_products("ecp5", I4, Digits(1, False), [(1, 0)], [0]) == Resources(lut=0, ff=4)


def test_a_negative_digit_is_a_complement() -> None:
    """-1 or 0: a table for each of the 4 bits, and the bit that is missing."""
    assert digit_products("ecp5", I4, Digits(1, False), [(-1, 0)], [0]) == Resources(lut=4, ff=5)


def test_an_upper_digit_that_is_always_0_is_not_added() -> None:
    assert digit_products("ecp5", I4, Digits(2, False), [(1, 0)], [0]) == Resources(lut=0, ff=4)


def test_multiples_of_the_input() -> None:
    """1 or 2 in one digit of two bits: the columns differ, so that synthesis takes 3 for possible too. The input's 4
    bits and 5 more of its triple, whose adder has them (the lowest is the input's). Of the product's 6 bits the lowest
    and the highest are a bit or 0, the next three functions of two bits that select, two of the input's and the
    triple's (two tables each), the fifth one of the input's top bit and the triple's."""
    found = multiple_product("ecp5", U4, IntType(2, False), (1, 2))
    assert found.ff == 4 + 5 + 6
    assert found.lut == 6 + 3 * 2 + 1


def test_comparisons_that_say_nothing() -> None:
    """Thresholds 8 (not above 7, never reached) in the middle; else 0, whose bound -1 is looked at by its sign alone,
    and 4, whose bound 3 has two ones at its end."""
    idle, ones = comparisons(SearchForm(np.array([[0, 8, 4]])), [np.array([0])], I4)
    assert idle == [0]
    assert ones == 2  # of -1 and 3 together
    idle, ones = comparisons(SearchForm(np.array([[0, 5, 0]])), [np.array([0])], I4)
    assert idle == []
    assert ones == 3 + 0  # the sign; 4 ends in zeros


def test_bits_that_change() -> None:
    """100 and 101 differ in a bit; 0 and -1 in all, which are alike; a second lane of 0, 1 and 2 has two."""
    steps = [StepFunction(0, 9, (5,), (100, 101)), StepFunction(0, 9, (3, 7), (0, 1, 2))]
    assert changing_bits(steps, 2, 8) == 1 + 2
    assert changing_bits([StepFunction(0, 9, (5,), (0, -1))], 3, 8) == 3 * 1


def test_bits_of_a_table_that_change() -> None:
    """1200 words of 36 bits in three banks of 512: in the first bit 0 changes, in the second none, in the last, which
    ends with zeros, bits 0, 1 and 35."""
    top = 1 << 35
    words = [top | (k & 1) for k in range(512)] + [top | 3] * 688
    found = costs.changing_bits(words, 36)
    assert banks_of(36, 1200) == 3
    assert (found.columns, found.bits) == (1 + 3, 3)
    numbers = np.array([[word & 7, word >> 3] for word in words])
    assert costs.changing_numbers(numbers, [3, 33]) == costs.Changing(4, 3)


def test_numbers_of_a_table_that_are_zero() -> None:
    """Two lanes of 4 bits, the second one 0 in all words; -1 and 1 differ in three bits."""
    assert costs.changing_numbers(np.array([[-1, 0], [1, 0]]), [4, 4]) == costs.Changing(3, 3)


def test_block_rams_hold_what_changes() -> None:
    """1200 words of 36 bits: 3 block RAMs, of which 40 columns leave two, 36 one."""
    assert costs.rom("ecp5", 1200, 36).bram == 3
    assert costs.rom("ecp5", 1200, 36, costs.Changing(40, 36)).bram == 2
    assert costs.rom("ecp5", 1200, 36, costs.Changing(36, 12)).bram == 1
