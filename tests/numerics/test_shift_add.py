"""Networks of adders for products with constant matrices: exact, small, no deeper than they need be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.numerics.shift_add import (
    Adder,
    Network,
    Output,
    depth_of,
    digits_of,
    levels_of,
    shift_add_network,
    width_of,
)

BYTE = (-128, 127)


def naive_adders(matrix: np.ndarray) -> int:
    """Nonzero digits of each row, less one, with no sharing; digits by the definition, one number at a time."""
    total = 0
    for row in matrix.tolist():
        digits = 0
        for number in row:
            while number:
                if number % 2:
                    digits += 1
                    number -= 2 - number % 4
                number //= 2
        total += max(0, digits - 1)
    return total


def check(matrix: np.ndarray, inputs: list[tuple[int, int]], seed: int = 0, extra: int = 0) -> Network:
    """The network, after its values, intervals, depth and levels have been compared with the matrix."""
    network = shift_add_network(matrix, inputs, extra)
    rng = np.random.default_rng(seed)
    low, high = (np.array(ends) for ends in zip(*inputs, strict=True))
    corners = [np.where(row > 0, one, other) for row in matrix for one, other in ((low, high), (high, low))]
    x = np.concatenate([rng.integers(low, high + 1, (50, len(inputs))), np.array(corners)])
    assert np.array_equal(network.evaluate(x), x @ matrix.T)
    assert len(network.adders) <= naive_adders(matrix) + len(matrix)
    assert network.depth <= depth_of(matrix) + extra
    assert extra or network.depth == depth_of(matrix)
    # Each term's coefficients, from unit vectors, say what it can be.
    units = Network(network.inputs, network.adders, tuple(
        Output(term, 0) for term in range(len(inputs), len(inputs) + len(network.adders))
    )).evaluate(np.eye(len(inputs), dtype=np.int64)).T if network.adders else []
    for coefficients, adder in zip(units, network.adders, strict=True):
        assert adder.low == sum(min(c * a, c * b) for c, (a, b) in zip(coefficients.tolist(), inputs, strict=True))
        assert adder.high == sum(max(c * a, c * b) for c, (a, b) in zip(coefficients.tolist(), inputs, strict=True))
    for span in (1, 2):
        levels = [0] * len(inputs) + levels_of(network, span)
        for term, adder in enumerate(network.adders, len(inputs)):
            assert all(levels[operand] < levels[term] <= network.depth for operand in adder.operands)
    return network


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_small_matrices(data: st.DataObject) -> None:
    rows, columns = (data.draw(st.integers(1, 5)) for _ in range(2))
    greatest = data.draw(st.sampled_from([1, 3, 12, 200, 100_000]))
    number = st.integers(-greatest, data.draw(st.sampled_from([0, greatest])))
    matrix = np.array([[data.draw(number) for _ in range(columns)] for _ in range(rows)])
    ends = st.tuples(st.integers(-300, 300), st.integers(-300, 300)).map(lambda pair: (min(pair), max(pair)))
    check(matrix, [data.draw(ends) for _ in range(columns)], extra=data.draw(st.integers(0, 2)))


@pytest.mark.parametrize(
    ("column", "adders"),
    [
        ([1, 2, 64, 0], 0),  # wires
        ([7], 1),  # 8 - 1
        ([-7, 7, 14], 2),  # and a negation
        ([3, 5, 7], 3),  # 2 + 1, 4 + 1, 8 - 1
        ([5, 5, 10, 20], 1),
        ([45], 2),  # 5 * 9: 10110101 in signed digits is two times 101
        ([15, 17, 255], 3),  # 255 = 256 - 1
        ([85], 2),  # 5 * 17
        ([-1], 1),
        ([-5], 2),  # nothing is added in it: 5, and its negative
        ([-3, -6], 1),  # 1 - 4
    ],
)
def test_multiples_of_one_input(column: list[int], adders: int) -> None:
    """By hand."""
    assert len(check(np.array(column).reshape(-1, 1), [BYTE]).adders) == adders


@pytest.mark.parametrize(
    ("matrix", "adders", "depth"),
    [
        ([[1, 1, 0], [1, 1, 1], [1, 1, -1]], 3, 2),  # a + b shared
        ([[1, -1], [-1, 1]], 2, 2),  # a - b, and its negative
        ([[1, -1], [-2, 2]], 2, 2),
        ([[3, 3], [5, 5]], 3, 2),  # a + b, times 3, times 5
        ([[1, 4, 0], [0, 1, 1], [1, 5, 1]], 3, 2),  # the sum of the first two rows, in no more levels than four digits
        ([[1, 1, 1, 1], [-1, -1, -1, -1]], 4, 3),  # three and a negation
        ([[1, -1, -1, -1]], 3, 2),
        ([[0, 0]], 0, 0),
    ],
)
def test_rows_that_share(matrix: list[list[int]], adders: int, depth: int) -> None:
    """By hand."""
    network = check(np.array(matrix), [BYTE] * len(matrix[0]))
    assert (len(network.adders), network.depth) == (adders, depth)


def test_columns_must_be_inputs() -> None:
    with pytest.raises(ValueError, match=r"^the matrix must have 2 columns \(inputs\), not the shape \(1, 3\)$"):
        shift_add_network(np.array([[1, 2, 3]]), [BYTE] * 2)


@pytest.mark.parametrize(
    ("rows", "columns", "greatest", "share"),
    [(16, 16, 31, 0.62), (64, 16, 31, 0.58), (32, 48, 1, 0.50), (8, 30, 127, 0.62)],
)
def test_sharing_pays(rows: int, columns: int, greatest: int, share: float) -> None:
    """At most this share of the adders without sharing, for random matrices (measured, and a little more)."""
    matrix = np.random.default_rng(5).integers(-greatest, greatest + 1, (rows, columns))
    assert len(check(matrix, [(0, 63)] * columns).adders) <= share * naive_adders(matrix)


def test_carry_chains() -> None:
    """By hand, with inputs of 4 bits: what passes by an adder takes no carry chain."""
    nibble = [(0, 15)] * 2
    expected = {
        (1, 1): 5,  # 0..30
        (1, 16): 0,  # side by side
        (1, 8): 5,  # 0..135: 8 bits, 3 of them below the other
        (1, -4): 5,  # -60..15: 7 bits with the sign, 2 of them below the other
        (-4, 1): 5,
    }
    for row, bits in expected.items():
        network = shift_add_network(np.array([row]), nibble)
        assert [network.carry_bits(adder) for adder in network.adders] == [bits], row
    # -a + 4 b: the low bits of a do not pass, -15..60 has 7 bits
    network = shift_add_network(np.array([[-1, 4]]), nibble)
    assert [network.carry_bits(adder) for adder in network.adders] == [7]


def test_widths() -> None:
    """By hand."""
    ends = [((0, 0), 0), ((0, 1), 1), ((-1, 0), 1), ((-128, 127), 8), ((-129, 0), 9), ((5, 255), 8), ((-7, -3), 4)]
    for (low, high), bits in ends:
        assert width_of(low, high) == bits


def test_signed_digits_are_canonical() -> None:
    numbers = np.arange(-300, 301)
    places = np.stack(digits_of(numbers))
    assert np.array_equal(sum(digit.astype(int) << k for k, digit in enumerate(places)), numbers)
    assert not (places[1:] * places[:-1]).any(), "no two neighbours"


def test_levels_that_save_registers() -> None:
    """By hand: x0 + x1 is wanted at the end. The chain keeps x0 up to its second adder and x1 up to its third; one
    stage more of x0 (8 bits) is less than one more of the sum (9 bits), so the sum is made last."""
    adders = (
        Adder(0, 0, 1, 0, False, -256, 254),
        Adder(0, 0, 1, 1, False, -384, 381),
        Adder(3, 0, 0, 2, False, -896, 889),
        Adder(4, 0, 1, 3, False, -1920, 1905),
    )
    network = Network((BYTE, BYTE), adders, (Output(2, 0), Output(5, 0)))
    assert levels_of(network) == [3, 1, 2, 3]
    narrow = Network((BYTE, BYTE), (Adder(0, 0, 1, 0, False, 0, 60), *adders[1:]), network.outputs)
    assert levels_of(narrow) == [2, 1, 2, 3], "were the sum of 6 bits, it would be kept instead of x0"


@pytest.mark.parametrize("seed", range(6))
def test_a_common_power_of_two_costs_nothing(seed: int) -> None:
    """Rows, or inputs, shifted by three bits: the same adders, with carry chains as long."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-40, 41, (4, 5))
    inputs = [(0, int(high)) for high in rng.integers(1, 200, 5)]
    plain, shifted = (shift_add_network(m, inputs) for m in (matrix, matrix * 8))
    chains = [[network.carry_bits(adder) for adder in network.adders] for network in (plain, shifted)]
    assert chains[0] == chains[1]
    assert [output.shift + 3 for output in plain.outputs] == [output.shift for output in shifted.outputs]


def register_bits(network: Network, levels: list[int], span: int, total: int) -> int:
    """With registers after every ``span`` of ``total`` levels: each term's bits in every stage from its own to the last
    that reads it; of outputs to the end."""
    inputs = len(network.inputs)
    stages = [0] * inputs + [-(-level // span) for level in levels]
    last = {output.term: -(-total // span) + 1 for output in network.outputs}
    for stage, adder in zip(stages[inputs:], network.adders, strict=True):
        for term in adder.operands:
            last[term] = max(last.get(term, 0), stage)
    widths = [width_of(low, high) for low, high in network.intervals]
    return sum(widths[term] * (last[term] - stages[term]) for term in last if term is not None)


@pytest.mark.parametrize("span", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_each_adder_is_on_the_level_that_saves_most_registers(seed: int, span: int) -> None:
    """By the definition: from the last to the first, each is tried on every level between operands and readers, while
    all others stay; of equal levels the last."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-30, 31, (3, 3))
    network = shift_add_network(matrix, [(0, int(high)) for high in rng.integers(1, 4000, 3)])
    inputs, total = len(network.inputs), network.depth + 3
    levels = list(network.depths[inputs:])
    for place in reversed(range(len(levels))):
        first = 1 + max([0, *(levels[t - inputs] for t in network.adders[place].operands if t >= inputs)])
        readers = [n for n, adder in enumerate(network.adders) if place + inputs in adder.operands]
        latest = min([levels[n] - 1 for n in readers], default=total)
        tried = [[*levels[:place], level, *levels[place + 1 :]] for level in range(latest, first - 1, -1)]
        levels = min(tried, key=lambda some: register_bits(network, some, span, total))
    assert levels_of(network, span, total) == levels


def fewest_carry_bits(parts: list[tuple[int, int, int]], depth: int) -> int:
    """Of all ways to add numbers from 0 up to ``high << shift``, in so many levels: a number is (level, shift, high),
    and what lies below an adder's upper operand passes by it."""
    if len(parts) == 1:
        return 0
    least = 1 << 30
    for (i, a), (j, b) in itertools.combinations(enumerate(parts), 2):
        (_, shift, low), (_, upper, high) = sorted((a, b), key=lambda part: part[1])
        apart, level = upper - shift, 1 + max(a[0], b[0])
        if level > depth:
            continue
        total = low + (high << apart)
        bits = 0 if low < 1 << apart else total.bit_length() - apart
        rest = [part for k, part in enumerate(parts) if k not in (i, j)]
        least = min(least, bits + fewest_carry_bits([*rest, (level, shift, total)], depth))
    return least


@pytest.mark.parametrize(
    ("shifts", "widths"),
    [
        ((4, 3, 3, 3, 0), (1, 1, 6, 2, 1)), ((5, 0, 1, 6, 3), (1, 1, 6, 1, 2)), ((0, 3, 2, 6, 3), (6, 5, 6, 6, 6)),
        ((4, 0, 4, 2, 3), (5, 4, 1, 3, 2)), ((4, 6, 2, 0, 5), (1, 3, 4, 6, 1)),
    ],
)
def test_short_rows_take_the_fewest_carry_bits(shifts: tuple[int, ...], widths: tuple[int, ...]) -> None:
    """Where the cheapest pair first is best."""
    highs = [(1 << width) - 1 for width in widths]
    network = shift_add_network(np.array([[1 << shift for shift in shifts]]), [(0, high) for high in highs])
    wanted = fewest_carry_bits([(0, *each) for each in zip(shifts, highs, strict=True)], 3)
    assert sum(network.carry_bits(adder) for adder in network.adders) == wanted
