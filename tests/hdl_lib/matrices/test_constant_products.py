"""ConstantProducts against sums of products, and against the issue-slot law."""

import random

import pytest
from amaranth.hdl import Shape, signed, unsigned

from hdl_lib.matrices.constant_products import ConstantProducts
from tests.hdl_lib.bench import STALLS, drive, pack
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths

# rows without any weight, with one, with powers of two; the longest has five terms: three levels
ROWS = [[3, -5, 0, 8, 127, -128], [0] * 6, [0, 0, -1, 0, 0, 0], [4, 0, 0, -7, 0, 1]]


def stimulus(shape, rows, vectors, beats, seed=0):
    rng = random.Random(seed)
    low = -(1 << shape.width - 1) if shape.signed else 0
    inputs, outputs = [], []
    for _ in range(beats):
        xs = [[low + rng.getrandbits(shape.width) for _ in rows[0]] for _ in range(vectors)]
        inputs.append(pack([x for vector in xs for x in vector], shape.width))
        outputs.append(
            pack([sum(w * x for w, x in zip(row, vector, strict=True)) for vector in xs for row in rows], 18)
        )
    return inputs, outputs


@pytest.mark.parametrize("shape", [signed(8), unsigned(6)])
@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize(("vectors", "depth"), [(1, 12), (2, 1), (3, 4)])
def test_values_and_cycles(shape, gap, stall, vectors, depth):
    dut = ConstantProducts(shape, signed(18), ROWS, vectors=vectors, depth=depth)
    beats, expected = stimulus(shape, ROWS, vectors, 20)
    trace = drive(dut, beats, len(expected), gap=gap, stall=stall)
    assert trace.beats == expected
    if not gap and not stall:
        process = Process([(True, True)] * len(beats), depth, 6 + 3)
        assert (trace.in_cycles, trace.out_cycles) == cycles(process)


def test_reset_and_paths():
    def core():
        return ConstantProducts(signed(8), signed(18), ROWS, vectors=1, depth=3)

    beats, expected = stimulus(signed(8), ROWS, 1, 12)
    assert after_reset(core(), beats, len(expected), seed=3) == expected
    check_no_paths(core())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vectors": 0}, "vectors must be at least 1, not 0"),
        ({"depth": -1}, "depth must be an integer of at least 0, not -1"),
        ({"weights": [[1, 2], [3]]}, "weights must be rows of the same length, at least 1"),
        ({"weights": [[], []]}, "weights must be rows of the same length, at least 1"),
        ({"input_shape": Shape(0)}, "input_shape must have at least 1 bit, not 0"),
    ],
)
def test_refusals(change, message):
    given = {"input_shape": signed(4), "output_shape": signed(9), "weights": ROWS, "vectors": 1, "depth": 4, **change}
    with pytest.raises(ValueError) as refusal:
        ConstantProducts(**given)
    assert str(refusal.value) == message
