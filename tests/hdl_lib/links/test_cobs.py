"""COBS cores against an encoder and a decoder written from the definition."""

from __future__ import annotations

import random

import pytest

from hdl_lib.links.cobs import CobsDecoder, CobsEncoder
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.links.link_host import cobs, uncobs

RNG = random.Random(3)
PACKETS = [
    b"\0", b"\0\0", b"a", b"a\0", b"\0a", bytes(range(1, 255)), bytes(range(1, 256)), bytes(range(1, 255)) + b"\0",
    b"\0" + bytes(range(1, 255)), bytes(range(256)), RNG.randbytes(300), bytes(RNG.choices([0, 1], k=60)),
]
# by hand, from the paper's definition
BY_HAND = {b"\0": b"\1\1\0", b"a": b"\2a\0", b"a\0b": b"\2a\2b\0", bytes([7] * 254): b"\xff" + bytes([7] * 254) + b"\0"}


def test_the_reference_by_hand():
    for packet, coded in BY_HAND.items():
        assert cobs(packet) == coded and uncobs(coded[:-1]) == packet


@pytest.mark.parametrize("gap, stall", STALLS)
def test_encoder(gap, stall):
    beats = [byte | (n == len(packet) - 1) << 8 for packet in PACKETS for n, byte in enumerate(packet)]
    coded = b"".join(map(cobs, PACKETS))
    trace = drive(CobsEncoder(), beats, len(coded), gap=gap, stall=stall, seed=1)
    assert bytes(trace.beats) == coded


@pytest.mark.parametrize("gap, stall", STALLS)
def test_decoder(gap, stall):
    coded = b"\0\0".join(cobs(packet)[:-1] for packet in PACKETS) + b"\0"
    beats = [byte | (n == len(packet) - 1) << 8 for packet in PACKETS for n, byte in enumerate(packet)]
    assert [beat & 0x1FF for beat in drive(CobsDecoder(), list(coded), len(beats), gap=gap, stall=stall).beats] == beats


def test_a_packet_that_is_cut_short_is_marked():
    # a block of four with two of its bytes, then a sound packet
    beats = drive(CobsDecoder(), [5, 1, 2, 0, 2, 9, 0], 3).beats
    assert [beats[0] & 0x1FF, *beats[1:]] == [1, 2 | 0x300, 9 | 0x100]  # the mark counts with the last byte
