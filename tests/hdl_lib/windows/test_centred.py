"""Centred: every element of a signed type as the distance from the least one."""

import pytest
from amaranth.hdl import signed, unsigned

from hdl_lib.windows.centred import Centred
from hdl_lib.windows.window_geometry import WindowGeometry
from hdl_lib.windows.window_image import WindowImage
from tests.hdl_lib.bench import drive, pack, unpack
from tests.hdl_lib.protocol import check_no_paths


def centred(shape, bits):
    """Around a window of one pixel, two elements: what goes in comes out."""
    point = WindowGeometry(1, 1, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))
    return Centred(WindowImage(unsigned(bits), unsigned(bits), 2, point, depth=4), shape, bits)


@pytest.mark.parametrize(("shape", "bits", "elements"), [
    (signed(4), 4, range(-8, 8)), (signed(3), 4, range(-4, 4)), (unsigned(3), 4, range(8)), (signed(1), 1, (-1, 0)),
])  # fmt: skip
def test_values(shape, bits, elements):
    beats = [(a, b) for a in elements for b in elements]
    packed = [pack(list(beat), shape.width) for beat in beats]
    trace = drive(centred(shape, bits), packed, len(beats), gap=0.3, stall=0.3)
    least = 1 << bits - 1
    found = [unpack(word, bits, 2, signed=False) for word in trace.beats]
    assert found == [[a + least, b + least] for a, b in beats]


def test_no_combinational_path():
    check_no_paths(centred(signed(4), 4), cycles=50)


@pytest.mark.parametrize("shape", [signed(5), unsigned(4)])
def test_refused(shape):
    with pytest.raises(ValueError, match=r"^shape must have values that are signed numbers of 4 bits, not be"):
        centred(shape, 4)
