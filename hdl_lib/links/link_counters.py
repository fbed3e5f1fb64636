"""What a link counts, and how its packet of counters reads it."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

COUNTERS = 6
COUNTED = ("frame_in", "frame_out", "damaged", "gap")
SCAN = 8 * len(COUNTED)  # cycles: two for each byte that counts


class LinkCounters(wiring.Component):
    """Six counters of 32 bits: frames in, frames out, damaged packets, packets beyond a gap, the least number of the
    core's cycles between two frames out (all ones before the second), and 1 if the core has reported an error.

    The first four lie in a memory, byte by byte. All bytes are read one after the other, again and again; what has come
    since is added, with a carry from byte to byte, and what results is written to its place and to that of a copy. The
    copy is what can be read, and stays as it is while it is.

    Parameters
    ----------
    ratio : int
        Cycles of the core in one of the counters', in which an interval is counted.

    Members
    -------
    frame_in, frame_out, damaged, gap, error : In(1)
        Counted in every cycle in which they are high (``damaged`` and ``gap`` in three of :data:`SCAN` cycles);
        ``error`` stays.
    clear : In(1)
        All begin again.
    hold : In(1)
        High while bytes are read.
    held : Out(1)
        The copy stays as it is.
    place : In(range(24))
        A byte of the counters, the least significant of the first at place 0.
    byte : Out(8)
        That byte.

    Timing
    ------
    ``held`` rises within ``3 * SCAN`` cycles. Then ``byte``, a register, follows ``place`` four cycles later. An event
    counts within ``2 * SCAN`` cycles, for the interval from the next but one on. Pauses of more than 2 ** 32 cycles are
    no interval.
    """

    def __init__(self, ratio: int = 1) -> None:
        self.ratio = ratio
        super().__init__(
            {
                **{name: In(1) for name in (*COUNTED, "error", "clear", "hold")},
                "held": Out(1),
                "place": In(range(4 * COUNTERS)),
                "byte": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        most = SCAN // 2  # bytes of the four, and as many of their copy
        m.submodules.memory = storage = memory.Memory(
            shape=8, depth=2 * most, init=[], attrs={"ram_style": "block", "no_rw_check": 1}
        )
        # What is read is never written just then. The read register is written out: synthesis takes `no_rw_check` for
        # such ones only.
        write, read = storage.write_port(), storage.read_port(domain="comb")
        # The even cycles read a byte that counts, the odd ones one of the copy.
        odd, number = Signal(), Signal(range(most))
        before, earlier = Signal.like(number), Signal.like(number)  # the bytes that are added to and copied
        begins = Signal()  # the first byte's even cycle
        m.d.comb += begins.eq(~odd & (number == 0))
        m.d.sync += odd.eq(~odd)
        with m.If(odd):
            m.d.sync += [number.eq(number + 1), before.eq(number), earlier.eq(before)]

        most_waiting = {"frame_in": SCAN, "frame_out": SCAN, "damaged": 3, "gap": 3}
        waiting = [Signal(range(most_waiting[name] + 1), name=f"{name}_waiting") for name in COUNTED]
        zeroing, zeroed = Signal(init=1), Signal()
        with m.If(self.clear):
            m.d.sync += [zeroing.eq(1), zeroed.eq(0)]
        with m.Elif(begins):
            m.d.sync += [zeroed.eq(zeroing), zeroing.eq(zeroing & ~zeroed)]
        with m.If(odd & (number == 1)):  # the last byte of the scan before was copied
            m.d.sync += self.held.eq(self.hold & ~zeroing)

        first, added, carry, total = Signal(), Signal(range(SCAN + 1)), Signal(), Signal(8)
        m.d.comb += first.eq(before[:2] == 0)
        with m.Switch(before[2:]):
            for n, count in enumerate(waiting):
                with m.Case(n):
                    m.d.comb += added.eq(count)
        for n, (name, count) in enumerate(zip(COUNTED, waiting, strict=True)):
            counted = Signal(name=f"{name}_counted")  # in the cycle in which it is added
            m.d.sync += counted.eq(odd & (number == 4 * n) & ~zeroing)
            with m.If(self.clear):
                m.d.sync += count.eq(0)
            with m.Else():
                m.d.sync += count.eq(Mux(counted, 0, count) + getattr(self, name))
        came, word = Signal(8, reset_less=True), Signal(8, reset_less=True)  # both a block RAM's own
        m.d.sync += [came.eq(read.data), word.eq(came)]
        with m.If(~odd):
            with m.If(zeroing):
                m.d.sync += [total.eq(0), carry.eq(0)]
            with m.Else():
                together = word + Mux(first, added, carry)
                m.d.sync += [total.eq(together), carry.eq(together[8])]
        m.d.comb += [
            read.addr.eq(Mux(odd, most + self.place[: len(number)], number)),
            write.addr.eq(Mux(odd, before, most + earlier)),
            write.data.eq(total),
            write.en.eq(odd | ~self.held),
        ]

        failed, again, ended = Signal(), Signal(), Signal()
        least, since = Signal(32, init=-1), Signal(33, init=self.ratio)  # the highest bit stays: too long
        m.d.sync += ended.eq(self.frame_out)
        with m.If(self.clear):
            m.d.sync += [failed.eq(0), again.eq(0), least.eq(-1)]
        with m.Else():
            m.d.sync += failed.eq(failed | self.error)
            with m.If(ended):
                m.d.sync += again.eq(1)
                with m.If(again & (since < least) & ~self.hold):
                    m.d.sync += least.eq(since)
        with m.If(ended):
            m.d.sync += since.eq(self.ratio)
        with m.Elif(~since[32]):
            m.d.sync += since.eq(since + self.ratio)
        with m.If(odd):
            m.d.sync += self.byte.eq(word)
        with m.If(self.place[4]):
            m.d.sync += self.byte.eq(
                Mux(self.place[2], Mux(self.place[:2] == 0, failed, 0), least.word_select(self.place[:2], 8))
            )
        return m
