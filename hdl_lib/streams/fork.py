"""Fork a stream: every branch gets every beat."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.storage import StorageStyle, check_depth, latency_of
from hdl_lib.streams.output_queue import OutputQueue


class Fork(wiring.Component):
    """A copy of the input stream on each output, each with a queue of its own.

    Parameters:
        ``shape``: payload of a beat, any Amaranth shape or layout.
        ``outputs``: number of branches, at least 1.
        ``depths``: queue depth of each branch, in beats, at least 1 each; 2 each by default. A branch that lags
        behind another needs room for the lag.
        ``styles``: storage of each branch's queue, as for :class:`hdl_lib.streams.fifo.Fifo`; "auto" for each by
        default, which here chooses among the styles of latency 1.

    Members: ``i`` (in): stream of ``shape``; ``o`` (out): array of ``outputs`` streams of ``shape``.

    Timing: one step per beat, consuming and producing on every branch; the step needs a credit of *every* branch.
    Latency 1 on each branch, 3 where its style is "block"; initiation interval 1 cycle per beat if every depth is at
    least the latency + 1. Under backpressure of one branch the others get the beats already accepted, then wait.

    Ordering: first in, first out on each branch; branches are delivered independently.
    """

    latency = 1

    @staticmethod
    def latency_of(style: str) -> int:
        """Return the cycles from a step to ``valid`` on a branch whose queue has this style."""
        return latency_of(StorageStyle.REGISTER if style == StorageStyle.AUTO else style)

    def __init__(
        self,
        shape: Any,
        outputs: int,
        depths: Sequence[int] | None = None,
        styles: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(outputs, int) or outputs < 1:
            raise ValueError(f"outputs must be an integer of at least 1, not {outputs!r}")
        depths = (2,) * outputs if depths is None else tuple(depths)
        if len(depths) != outputs:
            raise ValueError(f"depths must have one entry for each of the {outputs} outputs, not {len(depths)}")
        for depth in depths:
            check_depth(depth)
        styles = (StorageStyle.AUTO,) * outputs if styles is None else tuple(styles)
        if len(styles) != outputs:
            raise ValueError(f"styles must have one entry for each of the {outputs} outputs, not {len(styles)}")
        self.shape = shape
        self.outputs = outputs
        self.depths = depths
        self.queues = [OutputQueue(shape, depth, style=s) for depth, s in zip(depths, styles, strict=True)]
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)).array(outputs)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(1)
        for k, queue in enumerate(self.queues):
            m.submodules[f"branch_{k}"] = queue
            with m.If(~queue.available):
                m.d.comb += self.i.ready.eq(0)
            m.d.comb += [
                queue.reserve.eq(self.i.valid & self.i.ready),
                queue.push.eq(self.i.valid & self.i.ready),
                Value.cast(queue.payload).eq(Value.cast(self.i.payload)),
            ]
            wiring.connect(m, queue.o, wiring.flipped(self.o[k]))
        return m
