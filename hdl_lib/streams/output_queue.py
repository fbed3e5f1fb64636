"""The FIFO at the end of every core: a step takes a credit when issued, and pushes its result when it is ready."""

from functools import cached_property

from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import delayed
from hdl_lib.memories.storage import StorageStyle, check_depth, count, latency_of, storage_for, style_of
from hdl_lib.shared import CommonComponent


class OutputQueue(CommonComponent):
    """A queue of ``depth`` beats with credits, so that the pipeline in front of it never stalls.

    Parameters:
        ``shape``: payload of a beat, any Amaranth shape or layout.
        ``depth``: credits, at least 1; 0: no queue, for a reader that takes each beat at once. One beat per cycle needs
        ``pipeline stages between reserve and push`` + :attr:`latency` + 1 of them. None: not known yet, so that the
        core around the queue can be converted where the platform makes the queue's module later; the queue itself
        cannot be built.
        ``style``: as for :class:`hdl_lib.streams.fifo.Fifo`; "auto" chooses among the styles of latency 1.

    Members:
        ``available`` (out 1): a credit is left (a register's output, never a function of this cycle's inputs).
        ``reserve`` (in 1): take a credit; only while ``available``.
        ``push`` (in 1), ``payload`` (in, ``shape``): write a beat, unconditionally, in the cycle of its ``reserve``
        or any later one; as many pushes as reserves, in the order the beats shall leave.
        ``o`` (out): stream of ``shape``.

    Timing: a push at cycle t shows at ``max(t + latency, handshake of the beat before + 1)``, latency 1 ("register",
    "lutram"), 3 ("block") or 0 (no queue). A handshake on ``o`` at t makes its credit available at t + 1.

    Ordering: first in, first out.
    """

    module_name = "queue"

    def __init__(self, shape, depth, *, style=StorageStyle.AUTO):
        check_depth(depth, least=0)
        self.shape = shape
        self.depth = depth
        self.style = style if not depth else style_of(shape, depth, style, block=False)
        super().__init__(
            {"shape": Shape.cast(shape).width, "depth": depth, "style": style},
            {
                "available": Out(1),
                "reserve": In(1),
                "push": In(1),
                "payload": In(shape),
                "o": Out(stream.Signature(shape)),
            },
        )

    @cached_property
    def storage(self):
        """Return the storage of the beats."""
        return storage_for(self.shape, self.depth, self.style)

    @cached_property
    def spare(self):
        """Return a register of the credits left, less one: its sign bit alone says that there are none."""
        return Signal(range(-1, self.depth), init=self.depth - 1, name="spare")

    @property
    def latency(self):
        """Return the cycles from a push into the empty queue to ``o.valid``."""
        if self.depth == 0:
            return 0
        return latency_of(StorageStyle.REGISTER if self.style == StorageStyle.AUTO else self.style)

    def issue(self, m, source, stages):
        """Return a step: each beat of ``source`` is one, takes a credit, and pushes ``stages`` cycles later."""
        step = Signal()
        m.d.comb += [
            source.ready.eq(self.available),
            step.eq(source.valid & self.available),
            self.reserve.eq(step),
            self.push.eq(delayed(m, "push", step, stages)),
        ]
        return step

    def build(self):
        m = Module()
        if self.depth == 0:
            m.d.comb += [self.available.eq(1), self.o.valid.eq(self.push)]
            m.d.comb += Value.cast(self.o.payload).eq(Value.cast(self.payload))
            return m
        m.submodules.storage = storage = self.storage
        spare = self.spare
        m.d.comb += [
            self.available.eq(spare >= 0),
            storage.push.eq(self.push),
            Value.cast(storage.payload).eq(Value.cast(self.payload)),
        ]
        count(m, spare, self.o.valid & self.o.ready, self.reserve)
        wiring.connect(m, storage.o, wiring.flipped(self.o))
        return m
