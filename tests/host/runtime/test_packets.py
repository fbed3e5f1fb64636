"""Packets of the link protocol against values by hand, a CRC bit by bit, and the peer's own COBS."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwflow.host.runtime import packets
from tests.host.link_peer import SHA256, identity, stuffed, unstuffed

RUNS = st.lists(st.sampled_from([b"\0", b"\1" * 253, b"\2" * 254, b"\3" * 255, b"ab"]), max_size=6).map(b"".join)


@pytest.mark.parametrize(
    ("data", "coded"),
    [
        (b"", "01"), (b"\0", "0101"), (b"\0\0", "010101"), (b"\x11\x22\0\x33", "0311220233"), (b"\x11\0", "021101"),
        (b"\1" * 254, "ff" + "01" * 255), (b"\1" * 255, "ff" + "01" * 254 + "0201"),
    ],
)  # fmt: skip
def test_cobs_by_hand(data, coded):
    """Of Cheshire and Baker's rules: a code is the distance to the next zero, 255 stands for 254 bytes and no zero."""
    assert packets.cobs_encode(data).hex() == coded
    assert packets.cobs_decode(bytes.fromhex(coded)) == data


def test_cobs_may_end_with_a_full_block():
    assert packets.cobs_decode(b"\xff" + b"\1" * 254) == b"\1" * 254


@pytest.mark.parametrize("data", ["00", "0000", "02", "0511", "021100"])
def test_no_cobs(data):
    assert packets.cobs_decode(bytes.fromhex(data)) is None


@given(st.one_of(st.binary(max_size=700), RUNS))
def test_cobs_round_trip(data):
    coded = packets.cobs_encode(data)
    assert 0 not in coded
    assert len(coded) <= len(data) + 1 + len(data) // 254
    assert coded + b"\0" == stuffed(data)
    assert packets.cobs_decode(coded) == unstuffed(coded) == data


def crc(data: bytes) -> int:
    """IEEE 802.3, section 3.2.9, bit by bit."""
    register = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            feedback = (register ^ byte >> bit) & 1
            register = register >> 1 ^ (0xEDB88320 if feedback else 0)
    return register ^ 0xFFFFFFFF


NUMBER = st.integers(0, (1 << 32) - 1)


@given(st.integers(0, 255), NUMBER, NUMBER, st.integers(0, 65535), st.binary(max_size=60))
def test_packet_round_trip(kind, offset, acknowledged, room, payload):
    data = packets.pack(kind, offset, acknowledged, room, payload)
    fields = (kind, 1), (offset, 4), (acknowledged, 4), (room, 2)
    body = b"".join(number.to_bytes(size, "little") for number, size in fields) + payload
    assert data == body + crc(body).to_bytes(4, "little")
    assert packets.unpack(data) == (kind, offset, acknowledged, room, payload)


@given(st.binary(max_size=40), st.data())
def test_damage_is_seen(payload, draw):
    data = bytearray(packets.pack(4, 1, 2, 3, payload))
    data[draw.draw(st.integers(0, len(data) - 1))] ^= draw.draw(st.integers(1, 255))
    assert packets.unpack(bytes(data)) is None
    assert packets.unpack(bytes(data[: draw.draw(st.integers(0, len(data) - 1))])) is None


def test_distance_wraps():
    assert packets.distance(5, packets.MASK - 4) == 10
    assert packets.distance(packets.MASK - 4, 5) == -10
    assert packets.distance(7, 7) == 0


def test_identity():
    found = packets.identity_from(identity([(1, 64), (2, 3)], [(4, 5)], most=1400))
    assert found is not None
    assert found.table() == {
        "protocol": 1, "model_sha256": SHA256.hex(), "version": "0.1.0", "interval": 128, "clock_khz": 125_000,
        "most_payload": 1400, "receive_buffer": 2048, "transmit_buffer": 2048,
        "inputs": [{"bytes_a_beat": 1, "beats": 64}, {"bytes_a_beat": 2, "beats": 3}],
        "outputs": [{"bytes_a_beat": 4, "beats": 5}],
    }  # fmt: skip
    whole = identity([(1, 64)], [(4, 5)])
    assert packets.identity_from(whole[:-1]) is packets.identity_from(b"") is None
    assert packets.identity_from(identity([(1, 64)], [(4, 5)], version=2)) is None
    assert packets.identity_from(identity([(1, 64)], [(4, 5)], most=0)) is None


def test_counters():
    assert packets.counters_from(b"".join(n.to_bytes(4, "little") for n in range(6))) == (0, 1, 2, 3, 4, 5)
    assert packets.counters_from(b"") is None
