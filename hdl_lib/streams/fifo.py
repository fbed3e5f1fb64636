"""A first-in first-out queue between two streams."""

from functools import cached_property
from typing import Any

from amaranth.hdl import Module, Shape, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.storage import StorageStyle, check_depth, latency_of, storage_for, style_of
from hdl_lib.shared import CommonComponent


class Fifo(CommonComponent):
    """A queue of exactly ``depth`` beats.

    Parameters:
        ``shape``: payload of a beat, any Amaranth shape or layout.
        ``depth``: beats it holds, at least 1. Below :attr:`latency` + 1 it does not reach one beat per cycle.
        ``style``: a :class:`hdl_lib.memories.storage.StorageStyle`: "register" (flip-flops), "lutram" (async-read
        memory), "block" (sync-read memory), or "auto" by size; the choice made is :attr:`style`.

    Members: ``i`` (in), ``o`` (out): streams of ``shape``; ``level`` (out): beats accepted and not yet delivered.

    Timing: one step per beat, consuming and producing. ``i.ready`` is ``level < depth``, from registers only. A beat
    accepted at cycle t shows at ``max(t + latency, handshake of the beat before + 1)``; a beat that leaves at t makes
    room at t + 1. Latency 1 ("register", "lutram") or 3 ("block"); initiation interval 1 cycle per beat if ``depth``
    is more than ``latency``. Under backpressure it fills up and then lowers ``i.ready``.

    Ordering: first in, first out.
    """

    module_name = "fifo"

    def __init__(self, shape: Any, depth: int, *, style: str = StorageStyle.AUTO) -> None:
        check_depth(depth, later=False)
        self.shape = shape
        self.depth = depth
        self.style = style_of(shape, depth, style)
        super().__init__(
            {"shape": Shape.cast(shape).width, "depth": depth, "style": style},
            {"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "level": Out(range(depth + 1))},
        )

    @cached_property
    def storage(self):
        """Return the storage of the beats."""
        return storage_for(self.shape, self.depth, self.style)

    @property
    def latency(self):
        """Return the cycles from the input handshake to ``o.valid`` of an empty queue."""
        return latency_of(self.style)

    @staticmethod
    def latency_of(shape: Any, depth: int, style: str = StorageStyle.AUTO) -> int:
        """Return :attr:`latency` of ``Fifo(shape, depth, style=style)``."""
        return latency_of(style_of(shape, depth, style))

    def build(self):
        m = Module()
        m.submodules.storage = storage = self.storage
        m.d.comb += [
            self.i.ready.eq(~storage.full),
            storage.push.eq(self.i.valid & self.i.ready),
            Value.cast(storage.payload).eq(Value.cast(self.i.payload)),
            self.level.eq(storage.level),
        ]
        wiring.connect(m, storage.o, wiring.flipped(self.o))
        return m
