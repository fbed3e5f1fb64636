"""A stream from one clock to another.

Amaranth's AsyncFIFO looks up what it reads behind everything that decides whether it reads; here that address is a
register, for clocks of 200 MHz.
"""

from __future__ import annotations

from amaranth import Cat, Module, Signal, Value
from amaranth.hdl import ShapeLike
from amaranth.lib import memory, stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

DEPTH = 16  # beats: those of the smallest memory in look-up tables


class StreamCrossing(wiring.Component):
    """A queue between two clocks that need not know of each other: how many beats were written and read crosses in Gray
    code (Cummings: Simulation and synthesis techniques for asynchronous FIFO design, SNUG 2002).

    Both domains must be reset together, for at least four cycles of the slower clock, and nothing may be offered until
    as many have passed since: the queue is empty then.

    Parameters
    ----------
    shape : ShapeLike
        Of a beat.
    source, target : str
        The domains of ``i`` and of ``o``.
    pauses : bool
        ``o.valid`` falls for a cycle behind each beat. Then the registers of a beat are loaded when ``o.valid`` is low,
        a register's word, and not when ``o.ready`` says so, which comes late and would go to every bit of a wide beat.

    Members
    -------
    i : In(stream.Signature(shape)), o : Out(stream.Signature(shape))

    Timing
    ------
    A beat each cycle of the slower clock; with ``pauses`` at most every second cycle of ``target``, which a clock twice
    as fast as that of ``source`` does not notice. ``i.ready``, ``o.valid`` and ``o.payload`` are registers.
    """

    def __init__(self, shape: ShapeLike, source: str, target: str, *, pauses: bool = False):
        self.source, self.target, self.pauses = source, target, pauses
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        source, target = m.d[self.source], m.d[self.target]
        beat = Cat(self.i.payload)
        m.submodules.storage = storage = memory.Memory(shape=len(beat), depth=DEPTH, init=[])
        write, read = storage.write_port(domain=self.source), storage.read_port(domain="comb")
        written, taken = Signal(range(2 * DEPTH)), Signal(range(2 * DEPTH))

        ready, used = Signal(), Signal.like(taken)
        m.d.comb += [
            self.i.ready.eq(ready),
            write.en.eq(self.i.valid & ready),
            write.addr.eq(written[:-1]),
            write.data.eq(beat),
        ]
        source += [
            written.eq(written + write.en),
            used.eq(written - self._crossed(m, "taken", taken, self.target, self.source)),
            ready.eq(used <= DEPTH - 3),  # three beats may have come since
        ]

        valid, payload = Signal(), Signal(len(beat), reset_less=True)
        left = Signal()
        m.d.comb += [
            left.eq(self._crossed(m, "written", written, self.source, self.target) != taken),
            read.addr.eq(taken[:-1]),
            self.o.valid.eq(valid),
            Cat(self.o.payload).eq(payload),
        ]
        if self.pauses:
            with m.If(self.o.ready):
                target += valid.eq(0)
        with m.If(~valid if self.pauses else ~valid | self.o.ready):
            target += [valid.eq(left), payload.eq(read.data)]
            with m.If(left):  # decides whether the count is loaded, and is not in its sum
                target += taken.eq(taken + 1)
        return m

    def _crossed(self, m: Module, name: str, count: Signal, source: str, target: str) -> Signal:
        """Return what ``target`` knows of a count that ``source`` makes, five cycles or less later."""
        sent = Signal.like(count, name=f"{name}_sent")
        came = Signal.like(count, name=f"{name}_came")
        known = Signal.like(count, name=f"{name}_known")
        m.d[source] += sent.eq(count ^ count[1:])
        m.submodules[f"{name}_synchronizer"] = FFSynchronizer(sent, came, o_domain=target)
        m.d[target] += known.eq(_from_gray(came))
        return known


def _from_gray(code: Value) -> Value:
    return Cat(code[bit:].xor() for bit in range(len(code)))
