"""TruthTables against the tables read bit by bit, and against the issue-slot law."""

import random

import pytest
from amaranth.hdl import signed, unsigned

from hdl_lib.matrices.truth_tables import TableOutput, TruthTables
from tests.hdl_lib.bench import STALLS, drive, pack
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths

BITS = ((0, 0), (0, 2), (2, 1), (1, 0), (2, 2))
# Signals 5 to 10: xor, a majority, a function of four bits, a constant 1, a constant 0, a table of tables.
TABLES = (((0, 1), 0b0110), ((1, 2, 3), 0b11101000), ((0, 2, 3, 4), 0xCAFE), ((), 1), ((), 0), ((5, 7), 0b1000))
OUTPUTS = (
    TableOutput((5, 6), signed=False),
    TableOutput((7, 10, 5), signed=True),  # shares a bit with the first one
    TableOutput((8, 9, 8), signed=True),  # the constant -3
    TableOutput((), signed=False),
    TableOutput((2,), signed=True),  # an input as it is
)


def core(*, tables=TABLES, vectors=1, depth=10, stages=()):
    return TruthTables(
        unsigned(3), signed(4), elements=3, bits=BITS, tables=tables, stages=stages, outputs=OUTPUTS, vectors=vectors,
        depth=depth,
    )


def result(vector):
    """The elements of a vector's result, from the specification."""
    signals = [vector[element] >> bit & 1 for element, bit in BITS]
    for inputs, truth in TABLES:
        signals.append(truth >> sum(signals[s] << place for place, s in enumerate(inputs)) & 1)
    values = []
    for bits, with_sign in OUTPUTS:
        value = sum(signals[s] << place for place, s in enumerate(bits))
        values.append(value - (1 << len(bits)) if with_sign and value >> len(bits) - 1 else value)
    return values


def stimulus(vectors, beats, seed=0):
    rng = random.Random(seed)
    inputs, outputs = [], []
    for _ in range(beats):
        xs = [[rng.randrange(8) for _ in range(3)] for _ in range(vectors)]
        inputs.append(pack([x for vector in xs for x in vector], 3))
        outputs.append(pack([y for vector in xs for y in result(vector)], 4))
    return inputs, outputs


@pytest.mark.parametrize("vectors", [1, 2])
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_values_and_cycles(vectors, gap, stall):
    for depth in (1, 3, 10):
        beats, expected = stimulus(vectors, 40)
        trace = drive(core(vectors=vectors, depth=depth), beats, len(expected), gap=gap, stall=stall)
        assert trace.beats == expected
        if not gap and not stall:
            process = Process([(True, True)] * len(beats), depth, 2)
            assert (trace.in_cycles, trace.out_cycles) == cycles(process)


@pytest.mark.parametrize(("stages", "last"), [((0, 0, 0, 0, 0, 1), 1), ((1, 0, 2, 0, 3, 2), 3)])
def test_registers_between_tables(stages, last):
    dut = core(stages=stages)
    assert dut.latency == 2 + last
    beats, expected = stimulus(1, 30)
    trace = drive(dut, beats, len(expected))
    assert trace.beats == expected
    assert (trace.in_cycles, trace.out_cycles) == cycles(Process([(True, True)] * len(beats), 10, 2 + last))


def test_one_wrong_bit_is_found():
    """A broken twin: the same core but for one bit of one table."""
    beats, expected = stimulus(1, 200)
    wrong = (*TABLES[:2], (TABLES[2][0], TABLES[2][1] ^ 1 << 9), *TABLES[3:])
    assert drive(core(), beats, len(expected)).beats == expected
    assert drive(core(tables=wrong), beats, len(expected)).beats != expected


def test_what_is_shared_or_constant_is_not_in_the_queue():
    """Two bits, and three, of which one is shared; an input; constants and an element without bits."""
    assert len(core()._results) == 2 + 2 + 1


def test_no_paths_and_reset():
    check_no_paths(core())
    beats, expected = stimulus(1, 20)
    assert after_reset(core(depth=3), beats, len(expected), seed=3) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vectors": 0}, "vectors, elements and outputs must be at least 1, not 0, 3 and 5"),
        ({"bits": ((3, 0),)}, r"bits must be of elements 0..2 and bits 0..2, not 3 and 0"),
        ({"tables": (((5,), 1),)}, r"table 0 must read signals of 0..4, not \(5,\)"),
        ({"tables": (((0,), 4),)}, r"table 0 must have 2 bits, not be 0x4"),
        ({"stages": (0,)}, "stages must be 6, one for each table, not 1"),
        ({"stages": (1, 0, 0, 0, 0, 0)}, "table 5 must be of stage 1 at least, not 0"),
        ({"outputs": (TableOutput((0,) * 5, signed=False),)}, r"output 0 must be within signed\(4\), not have 5 bits"),
        ({"outputs": (TableOutput((11,), signed=False),)}, r"output 0 must be signals of 0..10, not \(11,\)"),
    ],
)
def test_refused(change, message):
    parameters = {"elements": 3, "bits": BITS, "tables": TABLES, "outputs": OUTPUTS, "vectors": 1, "depth": 2} | change
    with pytest.raises(ValueError, match=message):
        TruthTables(unsigned(3), signed(4), **parameters)
