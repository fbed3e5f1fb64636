"""Serial port: the transmitter's waveform bit by bit, the receiver against fast, slow and broken lines."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from amaranth import Module, ResetInserter, Signal

from hdl_lib.links.uart import UartRx, UartTx, divisor_for
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.coroutines import Coroutines


def levels(byte: int) -> list[int]:
    """Start bit, data bits from the least significant, stop bit."""
    return [0, *(byte >> k & 1 for k in range(8)), 1]


def line_of(data: list[int], bit_cycles: float, gap_cycles: float = 0.0) -> list[int]:
    """Line level at each clock cycle for a sender with ``bit_cycles`` (not an integer) cycles per bit."""
    edges, level_of = [0.0], []
    for byte in data:
        for level in levels(byte):
            level_of.append(level)
            edges.append(edges[-1] + bit_cycles)
        if gap_cycles:
            level_of.append(1)
            edges.append(edges[-1] + gap_cycles)
    out, k = [], 0
    for cycle in range(int(edges[-1])):
        while edges[k + 1] <= cycle:
            k += 1
        out.append(level_of[k])
    return out


def receive(dut, line: list[int], *, take=lambda cycle: True, rx=None):
    """Feed a line, collect (cycle, byte), and the cycles of framing errors and overflows."""
    rx = dut.rx if rx is None else rx
    data, framing, overflows = [], [], []

    async def bench(ctx):
        for cycle, level in enumerate([1] * 4 + line + [1] * int(12 * dut.divisor)):
            ctx.set(rx, level)
            ctx.set(dut.o.ready, take(cycle))
            _, _, valid, ready, byte, framing_error, overflow = await ctx.tick().sample(
                dut.o.valid, dut.o.ready, dut.o.payload, dut.framing_error, dut.overflow
            )
            if valid and ready:
                data.append((cycle - 4, byte))
            if framing_error:
                framing.append(cycle - 4)
            if overflow:
                overflows.append(cycle - 4)

    Coroutines(dut).run(bench)
    return data, framing, overflows


def test_transmitter_waveform_is_the_bits_back_to_back():
    dut = UartTx(5)
    line, accepted = [], []

    async def bench(ctx):
        data = [0x55, 0x00, 0xFF, 0xA3]
        for cycle in range(4 * 50 + 20):
            ctx.set(dut.i.valid, len(accepted) < 4)
            ctx.set(dut.i.payload, data[min(len(accepted), 3)])
            _, _, ready, tx = await ctx.tick().sample(dut.i.ready, dut.tx)
            line.append(tx)
            if ready and len(accepted) < 4:
                accepted.append(cycle)

    Coroutines(dut).run(bench)
    assert accepted == [0, 50, 100, 150]
    bits = "0101010101" "0000000001" "0111111111" "0110001011"  # 0x55, 0x00, 0xff, 0xa3 written by hand
    assert line == [1] + [int(b) for b in bits for _ in range(5)] + [1] * 19


@pytest.mark.parametrize("divisor", [4, 5, 16, 87])
def test_receiver_latency_is_as_stated(divisor):
    data, framing, overflows = receive(UartRx(divisor), line_of([0xA3], divisor))
    assert data == [(2 + divisor // 2 + 9 * divisor + 1, 0xA3)]
    assert framing == overflows == []


@pytest.mark.parametrize("offset", [-0.04, -0.02, 0.0, 0.02, 0.04])
@pytest.mark.parametrize("divisor", [16, 87])
def test_receiver_follows_fast_and_slow_senders(divisor, offset):
    data = [0x00, 0xFF, 0x55, 0xAA, *random.Random(7).randbytes(8)]
    got, framing, overflows = receive(UartRx(divisor), line_of(data, divisor * (1 + offset)))
    assert [byte for _, byte in got] == data
    assert framing == overflows == []


@pytest.mark.parametrize("offset", [-0.02, 0.02])
def test_receiver_with_few_cycles_a_bit(offset):
    data = list(random.Random(8).randbytes(20))
    got, framing, _ = receive(UartRx(8), line_of(data, 8 * (1 + offset), gap_cycles=3.3))
    assert [byte for _, byte in got] == data and framing == []


def test_framing_error_drops_the_byte_and_the_next_one_is_good():
    divisor = 8
    broken = line_of([0x0F], divisor)
    broken[9 * divisor:] = [0] * divisor  # no stop bit
    line = broken + [0] * 3 * divisor + [1] * 2 * divisor + line_of([0x77], divisor)
    got, framing, _ = receive(UartRx(divisor), line)
    assert [byte for _, byte in got] == [0x77]
    assert len(framing) == 1


def test_short_pulse_is_no_start_bit():
    got, framing, _ = receive(UartRx(16), [0] * 6 + [1] * 40 + line_of([0x21], 16))
    assert [byte for _, byte in got] == [0x21] and framing == []


def test_overflow_drops_the_new_byte():
    divisor = 8
    line = line_of([1, 2, 3], divisor)
    got, _, overflows = receive(UartRx(divisor), line, take=lambda cycle: cycle >= 4 + len(line))
    assert [byte for _, byte in got] == [1]
    assert len(overflows) == 2


@pytest.mark.parametrize("gap, stall", STALLS)
def test_loop_brings_every_byte(gap, stall):
    m = Module()
    m.submodules.tx = tx = UartTx(6)
    m.submodules.rx = rx = UartRx(6)
    m.d.comb += rx.rx.eq(tx.tx)
    data = list(random.Random(3).randbytes(12))
    trace = drive(m, data, len(data), gap=gap, stall=stall, i=tx.i, o=rx.o)
    assert trace.beats == data


def test_reset_in_mid_byte():
    divisor = 8
    reset = Signal()
    dut = UartRx(divisor)
    top = ResetInserter(reset)(dut)
    got = []

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        cut = line_of([0xFF], divisor)[: 3 * divisor]
        script = [(level, 0) for level in cut] + [(1, 1)]
        script += [(level, 0) for level in line_of([0x42], divisor) + [1] * 30]
        for level, restart in script:
            ctx.set(dut.rx, level)
            ctx.set(reset, restart)
            _, _, valid, byte = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            if valid:
                got.append(byte)

    Coroutines(top).run(bench)
    assert got == [0x42]


def test_the_bits_of_a_fractional_divisor():
    """4 3/4 cycles: the ends of bits at 4.75 k, rounded up at the half, over the end of a byte as well."""
    dut = UartTx(Fraction(19, 4))
    line = []

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload, 0x55)  # every bit differs from the one before
        for _ in range(96):
            _, _, tx = await ctx.tick().sample(dut.tx)
            line.append(tx)

    Coroutines(dut).run(bench)
    edges = [k for k in range(1, len(line)) if line[k] != line[k - 1]]
    # by hand: 4.75, 9.5, 14.25, 19, 23.75, ... behind the cycle that accepts the byte
    assert edges[:9] == [1, 6, 11, 15, 20, 25, 30, 34, 39]
    assert edges == [1 + int(4.75 * k + 0.5) for k in range(len(edges))] and len(edges) == 20


@pytest.mark.parametrize("divisor", [Fraction(4), Fraction(267, 64), Fraction(319, 64), Fraction(667, 64)])
@pytest.mark.parametrize("offset", [-0.01, 0.0, 0.01])
def test_receiver_follows_its_fractional_divisor(divisor, offset):
    """Of a rounded integer 10.42 cycles are 4 % off, 4.17 as much."""
    data = [0x00, 0xFF, 0x55, 0xAA, *random.Random(9).randbytes(40)]
    line = line_of(data, float(divisor) * (1 + offset))
    got, framing, overflows = receive(UartRx(divisor), line)
    assert [byte for _, byte in got] == data and framing == overflows == []


@pytest.mark.parametrize(
    "clock, baud, divisor",
    [
        (100_000_000, 1_000_000, 100),
        (24_000_000, 115_200, Fraction(13_333, 64)),  # 208 1/3
        (Fraction(98_437_500), 1_000_000, Fraction(6_300, 64)),  # 98.4375
        (125e6, 12_000_000, Fraction(667, 64)),  # 10.41666
        (12e6, 3_000_000, 4),
    ],
)
def test_divisor(clock, baud, divisor):
    assert divisor_for(clock, baud) == divisor


def test_divisor_refuses_what_would_not_be_understood():
    with pytest.raises(ValueError) as error:
        divisor_for(12_000_000, 5_000_000)
    assert str(error.value) == "baud rate must be at most a 4th of the clock (12000000 Hz), not 5000000"
    for core in (UartRx, UartTx):
        for divisor in (3, Fraction(13, 3)):
            with pytest.raises(ValueError) as error:
                core(divisor)
            assert str(error.value) == (
                f"divisor must be a multiple of 1/64 of 4 or more (cycles), not {divisor!r}"
            )
