"""TopK and TopTree on numbers worked out by hand, and what they refuse."""

import pytest
from amaranth.hdl import signed, unsigned

from hdl_lib.streams.top_k import TopK, TopTree, index_bits, result_shape
from tests.hdl_lib.bench import STALLS, drive, pack, unpack

GROUPS = [[3, -1, 3, 2], [-4, -4, -4, -4], [-4, 3, 3, -4]]


@pytest.mark.parametrize(
    ("least", "last", "expected"),
    [
        (False, False, [0, 0, 1]),
        (False, True, [2, 3, 2]),
        (True, False, [1, 0, 0]),
        (True, True, [1, 3, 3]),
    ],
)
@pytest.mark.parametrize("pixels", [1, 2, 4, 12])
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_places_of_equal_ones(least, last, expected, pixels, gap, stall):
    more = {"least": least, "last": last, "depth": 4}
    dut = TopK(signed(3), 1, 1, 4, **more) if pixels == 1 else TopTree(signed(3), 1, pixels, 4, **more)
    values = [value for group in GROUPS for value in group]
    beats = [pack(values[k : k + pixels], 3) for k in range(0, 12, pixels)]
    lanes = max(1, pixels // 4)
    trace = drive(dut, beats, 3 // lanes, gap=gap, stall=stall)
    assert [place for beat in trace.beats for place in unpack(beat, 2, lanes, signed=False)] == expected


def test_values_and_places_in_order():
    """Of 5, 9, 0, 9, 7 the first three: 9 at 1, 9 at 3, 7 at 4."""
    dut = TopK(unsigned(4), 1, 1, 5, k=3, take="both", depth=2)
    trace = drive(dut, [5, 9, 0, 9, 7], 1)
    assert unpack(trace.beats[0], 7, 3, signed=False) == [9 * 8 + 1, 9 * 8 + 3, 7 * 8 + 4]


def test_two_channels_side_by_side():
    """Channels 1, 4, 2 and -3, -1, -2: the best two of the first, then those of the second."""
    dut = TopK(signed(4), 2, 2, 3, k=2, take="value", depth=2)
    trace = drive(dut, [pack([1, -3], 4), pack([4, -1], 4), pack([2, -2], 4)], 1)
    assert unpack(trace.beats[0], 4, 4, signed=True) == [4, 2, -1, -2]


@pytest.mark.parametrize(("window", "bits"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (1000, 10)])
def test_bits_of_a_place(window, bits):
    assert index_bits(window) == bits


@pytest.mark.parametrize("k", [0, 5])
def test_k_out_of_range(k):
    with pytest.raises(ValueError, match=rf"^k must be 1 to 4 \(the window\), not {k}$"):
        TopK(signed(3), 1, 1, 4, k=k, depth=2)


def test_nothing_else_to_take():
    with pytest.raises(ValueError, match=r"^take must be one of index, value, both, not 'rank'$"):
        result_shape(signed(3), 4, "rank")
