"""Serial port cores: bytes from and to an asynchronous line (8 data bits, lowest first, no parity, 1 stop bit)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from amaranth import Module, Mux, Signal, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

MINIMUM_DIVISOR = 4
PARTS = 64  # a divisor is a multiple of a 64th of a cycle


def divisor_for(clock_hz: int | float | Fraction, baud: int) -> Fraction:
    """Return the clock cycles per bit: the multiple of 1/64 that is nearest to ``clock_hz / baud``.

    That is within 0.2 % of the baud rate. Raises :class:`ValueError` below :data:`MINIMUM_DIVISOR` cycles.
    """
    divisor = Fraction(round(PARTS * Fraction(clock_hz) / baud), PARTS)
    if divisor < MINIMUM_DIVISOR:
        raise ValueError(
            f"baud rate must be at most a {MINIMUM_DIVISOR}th of the clock ({float(clock_hz):.0f} Hz), not {baud}"
        )
    return divisor


class _Bits:
    """The lengths of bits, whole cycles each, whose sum is within half a cycle of so many times the divisor.

    ``longest``: cycles; ``less_one``: the next bit's cycles less 1, from a register and a constant; ``next``: the
    statements that step on to the one behind it; ``restart``: those that begin again.
    """

    def __init__(self, divisor: int | Fraction):
        parts = divisor * PARTS
        if parts != int(parts) or divisor < MINIMUM_DIVISOR:
            raise ValueError(
                f"divisor must be a multiple of 1/{PARTS} of {MINIMUM_DIVISOR} or more (cycles), not {divisor!r}"
            )
        whole, part = divmod(int(parts), PARTS)
        self.longest = whole + bool(part)
        self.less_one: ValueLike = whole - 1
        self.next: list[Any] = []
        self.restart: list[Any] = []
        if part:
            total = Signal(range(2 * PARTS), init=PARTS // 2 + part, name="fraction")  # the highest bit: a cycle more
            self.less_one = Mux(total[-1], whole, whole - 1)
            self.next = [total.eq(total[:-1] + part)]
            self.restart = [total.eq(total.init)]


class UartRx(wiring.Component):
    """Serial line to bytes.

    Parameters
    ----------
    divisor : int or Fraction
        Clock cycles per bit: 4 or more, a multiple of 1/64.

    Members
    -------
    rx : In(1)
        The line (idle high), asynchronous: two flip-flops synchronise it.
    o : Out(stream.Signature(8))
        Bytes. One is held; the line cannot be stopped.
    framing_error : Out(1)
        High for one cycle when a stop bit is low. The byte is dropped and the line must go high before the next one.
    overflow : Out(1)
        High for one cycle when a byte ends while the one before is still held: the new byte is dropped.
    idle : Out(1)
        The line is high and no byte is being received.

    Timing
    ------
    The start bit is looked at again in its middle (a shorter pulse is ignored), each bit in its middle. For an integer
    divisor ``o.valid`` rises two (synchroniser) + ``divisor // 2 + 9 * divisor`` + one cycles after the clock edge that
    first sees the line low; for another one the product is rounded. The next start bit is looked for from the middle of
    the stop bit on, so the sender may be faster or slower by 4 % (for divisors of 16 and more; half a bit in 9.5).
    """

    def __init__(self, divisor: int | Fraction):
        self.bits = _Bits(divisor)
        self.divisor = divisor
        super().__init__(
            {
                "rx": In(1, init=1),
                "o": Out(stream.Signature(8)),
                "framing_error": Out(1),
                "overflow": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        line = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.rx, line, init=1)

        # A register says that a timer has run out, so that what happens then hangs on no comparison.
        bits = self.bits
        timer = Signal(range(bits.longest))
        tick = Signal(init=1)
        bit = Signal(range(8))
        byte = Signal(8)
        with m.If(~tick):
            m.d.sync += [timer.eq(timer - 1), tick.eq(timer == 1)]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        m.d.sync += [self.framing_error.eq(0), self.overflow.eq(0)]

        with m.FSM(name="state"):
            with m.State("Idle"):
                m.d.comb += self.idle.eq(line)
                with m.If(~line):
                    m.d.sync += [timer.eq(self.divisor // 2 - 1), tick.eq(0), *bits.restart]
                    m.next = "Start"
            with m.State("Start"), m.If(tick):
                m.d.sync += [timer.eq(bits.less_one), tick.eq(0), bit.eq(0), *bits.next]
                with m.If(line):
                    m.next = "Idle"  # a glitch, not a start bit
                with m.Else():
                    m.next = "Data"
            with m.State("Data"), m.If(tick):
                m.d.sync += [timer.eq(bits.less_one), tick.eq(0), bit.eq(bit + 1), *bits.next]
                m.d.sync += byte.eq(byte[1:] | (line << 7))
                with m.If(bit == 7):
                    m.next = "Stop"
            with m.State("Stop"), m.If(tick):
                with m.If(~line):
                    m.d.sync += self.framing_error.eq(1)
                    m.next = "Break"
                with m.Else():
                    m.next = "Idle"
                    with m.If(self.o.valid & ~self.o.ready):
                        m.d.sync += self.overflow.eq(1)
                    with m.Else():
                        m.d.sync += [self.o.valid.eq(1), self.o.payload.eq(byte)]
            with m.State("Break"), m.If(line):
                m.next = "Idle"
        return m


class UartTx(wiring.Component):
    """Bytes to a serial line.

    Parameters
    ----------
    divisor : int or Fraction
        Clock cycles per bit: 4 or more, a multiple of 1/64.

    Members
    -------
    i : In(stream.Signature(8))
        Bytes.
    tx : Out(1)
        The line, from a register, high when idle (from configuration on, too).

    Timing
    ------
    A byte accepted at cycle t: start bit in cycles t + 1 to t + divisor, data bits and the stop bit after it,
    ``i.ready`` again at t + 10 * divisor, each rounded down or up. So bytes offered without gap follow each other
    without gap, on the average in 10 * divisor cycles.
    """

    def __init__(self, divisor: int | Fraction):
        self.bits = _Bits(divisor)
        self.divisor = divisor
        super().__init__({"i": In(stream.Signature(8)), "tx": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        # Registers say what comparisons would, so that no bit of the line hangs on a counter's carry: a byte is under
        # way, a bit ends, the cycle before that, it is the stop bit.
        busy, tick, early, stop = Signal(), Signal(), Signal(), Signal()
        bits = self.bits
        timer = Signal(range(bits.longest))
        left = Signal(range(10), init=9)  # bits before the stop bit, the one on the line included
        shift = Signal(9, init=0x1FF)  # the bit on the line is bit 0; ones follow: stop bit and idle line
        m.d.comb += [self.i.ready.eq(~busy), self.tx.eq(shift[0])]
        with m.If(~busy):
            m.d.sync += [timer.eq(bits.less_one), tick.eq(0), early.eq(0), left.eq(9), stop.eq(0)]
            with m.If(self.i.valid):
                m.d.sync += [shift.eq(self.i.payload << 1), busy.eq(1), *bits.next]
        with m.Else():
            m.d.sync += [timer.eq(timer - 1), tick.eq(timer == 1), early.eq(timer == 2)]
            with m.If(tick):
                m.d.sync += [shift.eq((shift >> 1) | 0x100), timer.eq(bits.less_one), *bits.next]
                m.d.sync += [left.eq(left - 1), stop.eq(left == 1)]
            with m.If(stop & early):  # the stop bit's last cycle is the one in which the next byte is accepted
                m.d.sync += busy.eq(0)
        return m
