"""ConstantMatrix against sums of products, and against the issue-slot law."""

import random

import pytest
from amaranth.hdl import Shape, signed, unsigned
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl_lib.arithmetic.adder_network import Adder, AdderNetwork
from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.matrices.constant_matrix import ConstantMatrix
from tests.hdl_lib.bench import STALLS, drive, pack
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths


def network(inputs, sums, outputs, span=1, lates=()):
    """A network of adders given as (left, left shift, right, right shift, subtract), with its matrix: coefficients,
    intervals and levels worked out here. ``lates``: levels to add, by the adder."""
    rows = [[int(k == n) for k in range(len(inputs))] for n in range(len(inputs))]
    levels, adders = [0] * len(inputs), []
    for number, (left, left_shift, right, right_shift, subtract) in enumerate(sums):
        first = [0] * len(inputs) if left is None else [c << left_shift for c in rows[left]]
        second = [c << right_shift for c in rows[right]]
        row = [a - b if subtract else a + b for a, b in zip(first, second, strict=True)]
        ends = [sorted((c * low, c * high)) for c, (low, high) in zip(row, inputs, strict=True)]
        level = 1 + max(levels[t] for t in (left, right) if t is not None) + dict(lates).get(number, 0)
        low, high = (sum(e[k] for e in ends) for k in range(2))
        adders.append(Adder(left, left_shift, right, right_shift, subtract, low, high, level))
        rows.append(row)
        levels.append(level)
    matrix = [[0] * len(inputs) if t is None else [c << shift for c in rows[t]] for t, shift in outputs]
    return AdderNetwork(tuple(inputs), tuple(adders), tuple(outputs), span), matrix


BYTE, NIBBLE = (-128, 127), (0, 15)
NETWORKS = {
    "wires": ([BYTE, NIBBLE], [], [(1, 3), (0, 0), (None, 0), (0, 2)]),
    "one": ([BYTE], [(0, 2, 0, 0, False)], [(1, 0)]),
    # every form of an adder: sums with either operand shifted, differences, a negation, operands side by side
    "forms": (
        [BYTE, NIBBLE, (3, 3)],
        [
            (0, 0, 1, 2, False), (0, 3, 1, 0, False), (0, 0, 1, 5, True), (1, 0, 0, 2, True), (0, 4, 1, 0, True),
            (None, 0, 0, 0, True), (1, 0, 1, 4, False), (8, 1, 2, 0, False),
        ],
        [(term, term % 3) for term in range(3, 11)],
    ),
    # different depths: short ways wait for long ones
    "depths": (
        [BYTE, (-5, 9), NIBBLE],
        [(0, 0, 1, 1, False), (3, 0, 2, 3, True), (4, 2, 0, 0, False), (5, 0, 1, 0, True)],
        [(6, 0), (3, 1), (2, 0), (None, 0), (4, 0)],
    ),
}


def core(name, *, vectors=1, depth=20, span=1, lates=()):
    inputs, sums, outputs = NETWORKS[name]
    adders, matrix = network(inputs, sums, outputs, span, lates)
    results = [
        sum(c * pick(c, ends) for c, ends in zip(row, inputs, strict=True))
        for row in matrix
        for pick in (lambda c, ends: ends[c < 0], lambda c, ends: ends[c > 0])
    ]
    shapes = [shape_of(min(e[0] for e in inputs), max(e[1] for e in inputs)), shape_of(min(results), max(results))]
    return ConstantMatrix(*shapes, adders, vectors=vectors, depth=depth), matrix


def stimulus(dut, matrix, beats, seed=0):
    rng = random.Random(seed)
    inputs, outputs = [], []
    for _ in range(beats):
        xs = [
            [rng.choice([low, high, rng.randint(low, high)]) for low, high in dut.network.inputs]
            for _ in range(dut.vectors)
        ]
        ys = [sum(c * x for c, x in zip(row, vector, strict=True)) for vector in xs for row in matrix]
        inputs.append(pack([x for vector in xs for x in vector], dut.input_shape.width))
        outputs.append(pack(ys, dut.output_shape.width))
    return inputs, outputs


@pytest.mark.parametrize("vectors", [1, 2])
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_values_and_cycles(name, vectors, gap, stall):
    for depth in (1, 3, 20):
        dut, matrix = core(name, vectors=vectors, depth=depth)
        beats, expected = stimulus(dut, matrix, 25)
        trace = drive(dut, beats, len(expected), gap=gap, stall=stall)
        assert trace.beats == expected
        if not gap and not stall:
            stages = {"wires": 0, "one": 1, "forms": 2, "depths": 4}[name]
            process = Process([(True, True)] * len(beats), depth, 2 + stages)
            assert (trace.in_cycles, trace.out_cycles) == cycles(process)


@pytest.mark.parametrize(("span", "stages"), [(1, 4), (2, 2), (3, 2), (4, 1)])
def test_levels_between_registers(span, stages):
    dut, matrix = core("depths", span=span)
    assert (dut.network.stages, dut.latency) == (stages, 2 + stages)
    beats, expected = stimulus(dut, matrix, 20)
    assert drive(dut, beats, len(expected)).beats == expected


@pytest.mark.parametrize("lates", [((0, 2),), ((1, 1), (3, 2))])
def test_adders_made_late(lates):
    dut, matrix = core("depths", lates=lates)
    beats, expected = stimulus(dut, matrix, 20)
    assert drive(dut, beats, len(expected)).beats == expected


def test_flip_flops():
    """By hand: 9 bits behind the sum of an input of 8 bits and one of 4 shifted by 3 (-128..247), and 8 for the input
    that leaves beside it."""
    adders, _ = network([BYTE, NIBBLE], [(0, 0, 1, 3, False)], [(2, 0), (0, 0)])
    assert adders.flip_flops == 9 + 8
    later, _ = network([BYTE, NIBBLE], [(0, 0, 1, 3, False)], [(2, 0), (0, 0)], lates=((0, 1),))
    assert later.flip_flops == 9 + 16 + 4  # a stage more of both inputs in front of the sum


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_network(data):
    interval = st.tuples(st.integers(-9, 9), st.integers(0, 9)).map(lambda p: (p[0], p[0] + p[1]))
    inputs = data.draw(st.lists(interval, min_size=1, max_size=3))
    sums = []
    for known in range(len(inputs), len(inputs) + data.draw(st.integers(0, 6))):
        shifts = data.draw(st.sampled_from([(0, 0), (0, 1), (2, 0), (0, 4), (5, 0)]))
        left = data.draw(st.one_of(st.none(), st.integers(0, known - 1)))
        subtract = left is None or data.draw(st.booleans())
        left_shift, right_shift = (0, 0) if left is None else shifts
        sums.append((left, left_shift, data.draw(st.integers(0, known - 1)), right_shift, subtract))
    known = len(inputs) + len(sums)
    outputs = data.draw(st.lists(st.tuples(st.integers(0, known - 1), st.integers(0, 2)), min_size=1, max_size=3))
    adders, matrix = network(inputs, sums, outputs, data.draw(st.integers(1, 3)))
    dut = ConstantMatrix(signed(6), signed(60), adders, depth=12)
    beats, expected = stimulus(dut, matrix, 12)
    assert drive(dut, beats, len(expected)).beats == expected


def test_reset_and_paths():
    dut, matrix = core("depths", depth=3)
    beats, expected = stimulus(dut, matrix, 12)
    assert after_reset(core("depths", depth=3)[0], beats, len(expected), seed=3) == expected
    check_no_paths(dut)


SUM = Adder(0, 0, 1, 0, False, -10, 25, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vectors": 0}, "vectors must be at least 1, not 0"),
        ({"depth": -1}, "depth must be an integer of at least 0, not -1"),
        ({"input_shape": unsigned(8)}, "input_shape must hold -10..10, not be unsigned(8)"),
        ({"output_shape": signed(5)}, "output_shape must hold -10..25, not be signed(5)"),
        ({"output_shape": Shape(0)}, "output_shape must have at least 1 bit and 1 element, not 0 and 1"),
        ({"span": 0}, "span must be at least 1 level of adders, not 0"),
        ({"adders": (SUM._replace(right=2),)}, "adder 0 must add terms of 0..1, not (0, 2)"),
        ({"adders": (SUM._replace(level=0),)}, "adder 0 must have a level of at least 1, not 0"),
        ({"outputs": ((3, 0),)}, "outputs must be terms of 0..2, not 3"),
    ],
)
def test_refusals(change, message):
    given = {
        "vectors": 1, "depth": 4, "input_shape": signed(6), "output_shape": signed(8), "span": 1, "adders": (SUM,),
        "outputs": ((2, 0),), **change,
    }
    with pytest.raises(ValueError) as refusal:
        ConstantMatrix(
            given["input_shape"], given["output_shape"],
            AdderNetwork(((-10, 10), (0, 15)), given["adders"], given["outputs"], given["span"]),
            vectors=given["vectors"], depth=given["depth"],
        )
    assert str(refusal.value) == message


def test_an_adder_needs_an_unshifted_operand():
    for wrong in (SUM._replace(left_shift=1, right_shift=2), SUM._replace(left=None)):
        with pytest.raises(ValueError, match=r"^adder 0 must have a shift of 0, and subtract if left is None"):
            AdderNetwork(((-10, 10), (0, 15)), (wrong,), ((2, 0),))
