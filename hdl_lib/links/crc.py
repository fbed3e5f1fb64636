"""The CRC of the link's packets: CRC-32 of Ethernet and zlib, a byte a cycle."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

POLYNOMIAL = 0xEDB88320  # 0x04C11DB7, its bits in the order of transmission
RESIDUE = 0xDEBB20E3  # of every message with its CRC behind it (before the final inversion)


def _after(byte: int) -> int:
    """Return what eight steps make of a register whose lowest byte is ``byte`` and whose other bits are zero."""
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


class Crc32(wiring.Component):
    """CRC-32 of a sequence of bytes.

    As Amaranth's ``CRC32_ETHERNET``, in half of the look-up tables: the byte meets the register's lowest eight bits
    once, before their sums, and a start is the registers' reset.

    Members
    -------
    start : In(1)
        Begin a new sequence; a byte of the same cycle is not counted.
    valid, data : In
        A byte (8 bits).
    shift : In(1)
        Take the lowest byte from ``crc``, so that the next one is there. ``valid`` is low.
    crc : Out(32)
        The CRC of the bytes so far, its first byte to be sent in the lowest bits.
    match_detected : Out(1)
        The last four of the bytes so far were the CRC of those before.

    Timing
    ------
    Outputs count a byte of cycle t from t + 1 on.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                **{name: In(1) for name in ("start", "valid", "shift")},
                "data": In(8),
                "crc": Out(32),
                "match_detected": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        register, met = Signal(32, init=0xFFFFFFFF), Signal(8)
        m.d.comb += [
            met.eq((register[:8] ^ self.data) & ~self.shift.replicate(8)),
            self.crc.eq(~register),
            self.match_detected.eq(register == RESIDUE),
        ]
        with m.If(self.start):
            m.d.sync += register.eq(register.init)
        with m.Elif(self.valid | self.shift):
            for n, bit in enumerate(register):
                mask = sum((_after(1 << k) >> n & 1) << k for k in range(8))
                m.d.sync += bit.eq((register[n + 8] if n < 24 else 0) ^ (met & mask).xor())
        return m
