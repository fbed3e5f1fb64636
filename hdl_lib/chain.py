"""Cores in series behind one queue."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from amaranth.hdl import Module, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Component, In, Out

from hdl_lib.streams.frame_sync import FrameSync
from hdl_lib.streams.output_queue import OutputQueue


class Link(NamedTuple):
    """A core of a :class:`Chain`: ``core``, its streams ``i`` and ``o``."""

    core: Component
    i: Any
    o: Any


class Chain(Component):
    """Connects cores that take and give a beat a cycle and have no queues of their own (depth 0).

    The queue at the end has the credits for all beats in the cores, so that none of these ever has to wait.

    Parameters
    ----------
    links: the cores, in order, by name; the streams between two of them have payloads of the same width.
    depth: beats of the queue; one beat per cycle needs the sum of the cores' latencies + 2.

    Members
    -------
    i: In(stream). Of the first core.
    o: Out(stream). Of the last core.
    error: Out(1). That of a frame synchroniser, which may stand first; it alone drops beats.

    Timing
    ------
    A beat enters at the first cycle with ``i.valid`` and a credit. It shows at ``o`` after the sum of the latencies of
    the cores, each without a queue, and one cycle more. Initiation interval 1 cycle per beat.

    Ordering
    --------
    Beats leave in the order they came.
    """

    def __init__(self, links: Sequence[tuple[str, Link]], *, depth: int | None) -> None:
        if not links:
            raise ValueError("links must be at least one core")
        for (_, one), (name, other) in pairwise(links):
            if (a := _width(one.o)) != (b := _width(other.i)):
                raise ValueError(f"link {name} must take beats of {a} bits, as the one before gives, not {b}")
        self.links, self.depth = tuple(links), depth
        super().__init__(
            {
                "i": In(stream.Signature(links[0][1].i.payload.shape())),
                "o": Out(stream.Signature(links[-1][1].o.payload.shape())),
                **({"error": Out(1)} if isinstance(links[0][1].core, FrameSync) else {}),
            }
        )

    @cached_property
    def queue(self) -> OutputQueue:
        """Return the queue at the end."""
        return OutputQueue(self.o.payload.shape(), self.depth)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = self.queue
        payload, valid = self.i.payload, self.i.valid & queue.available
        m.d.comb += self.i.ready.eq(queue.available)
        enters = valid
        for name, link in self.links:
            m.submodules[name] = link.core
            m.d.comb += [link.i.payload.eq(payload), link.i.valid.eq(valid)]
            payload, valid = link.o.payload, link.o.valid
            if isinstance(link.core, FrameSync):
                enters = valid
                m.d.comb += self.error.eq(link.core.error)
        m.d.comb += [queue.reserve.eq(enters), queue.payload.eq(payload), queue.push.eq(valid)]
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m


def _width(of: Any) -> int:
    return len(Value.cast(of.payload))
