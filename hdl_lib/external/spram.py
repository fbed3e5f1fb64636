"""Single-port RAM within the part, as a memory that weights and streams wait in: an iCE40 UP5K has four of 256 Kbit.

It has no contents at first, and one port: a word is read or written in a cycle. So it takes bursts in turns as a memory
outside does, without rows and refreshes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import delayed
from hdl_lib.external.memory_timing import MemoryController, MemoryTiming
from hdl_lib.memories.storage import StorageStyle

_COLUMNS = 512  # a page is no more than a unit of places: regions begin with one


@dataclass(frozen=True)
class SpramChip:
    """All single-port RAM of a part as one memory: ``words`` of ``width`` bits, whole pages."""

    name: str
    width: int
    words: int

    @property
    def columns(self) -> int:
        """Return the words of a page."""
        return _COLUMNS

    @property
    def pages(self) -> int:
        return self.words // _COLUMNS

    @property
    def bytes(self) -> int:
        return self.words * self.width // 8

    @property
    def half(self) -> SpramChip:
        """Return what is left where something else has half of it."""
        return replace(self, words=self.words // 2)


@dataclass(frozen=True)
class SpramTiming(MemoryTiming):
    """A word a cycle, at any clock of the part."""

    chip: SpramChip
    clock_hz: Fraction

    @property
    def first_access(self) -> int:
        return 1

    @property
    def read_latency(self) -> int:
        """The RAM's own cycle, and a register: its words come from the ends of the part."""
        return 2

    @property
    def setup_cycles(self) -> int:
        return 0

    @property
    def longest_burst(self) -> int:
        """Of these a round is 5 % longer than its words, and longer ones leave more of a page empty."""
        return 128

    @property
    def queue_style(self) -> StorageStyle:
        """Parts with such RAM have no memories in look-up tables."""
        return StorageStyle.BLOCK

    def burst_cycles(self, length: int, *, write: bool = False) -> int:
        return length

    def controller(self, longest: int) -> MemoryController:
        return SpramController(self, longest)


class SpramController(MemoryController):
    """Runs bursts on a :class:`SinglePortRam`.

    Members: ``pins``: ``en``, ``we``, ``a``, ``dq_o`` (out), ``dq_i`` (in): those of the RAM; the word read has a
    register. The rest, and the parameters, as of :class:`MemoryController`.

    Timing: a command is taken while no burst is under way, and in the cycle of the last word of one; the first word is
    read or written in the next cycle, and one a cycle.
    """

    def __init__(self, timing: SpramTiming, longest: int) -> None:
        chip = timing.chip
        self.timing = timing
        pins = {
            "en": Out(1), "we": Out(1), "a": Out(range(chip.words)), "dq_o": Out(chip.width), "dq_i": In(chip.width),
        }
        super().__init__(chip, longest, pins)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        given = self.command.payload
        left, busy, write = Signal(range(self.longest)), Signal(), Signal()
        place, last = Signal(len(self.pins.a)), Signal()
        arrived = Signal(len(self.pins.dq_i), reset_less=True)
        m.d.comb += [last.eq(left == 0), self.command.ready.eq(self.command.valid & (~busy | last))]
        m.d.sync += [arrived.eq(self.pins.dq_i), place.eq(place + 1), left.eq(left - 1), busy.eq(busy & ~last)]
        with m.If(self.command.ready):
            m.d.sync += [
                busy.eq(1), place.eq(Cat(given.column, given.page)), left.eq(given.length),
                write.eq(given.write),
            ]
        m.d.comb += [
            self.pins.a.eq(place), self.pins.en.eq(busy), self.pins.we.eq(write), self.pins.dq_o.eq(self.write_data),
            self.write_next.eq(busy & write), self.read.data.eq(arrived),
            self.read.valid.eq(delayed(m, "read_valid", busy & ~write, self.timing.read_latency)),
        ]
        return m


class SinglePortRam(wiring.Component):
    """``words`` of ``width`` bits, of any contents at first.

    Members: ``en``, ``we`` (in 1), ``a``, ``dq_i`` (in), ``dq_o`` (out). In a cycle with ``en`` and ``we`` the word at
    ``a`` becomes ``dq_i``; with ``en`` alone ``dq_o`` shows the word at ``a`` in the next cycle, and else anything.
    Reset has no effect.
    """

    def __init__(self, width: int, words: int) -> None:
        self.width, self.words = width, words
        super().__init__(
            {"en": In(1), "we": In(1), "a": In(range(words)), "dq_i": In(width), "dq_o": Out(width)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.words = words = memory.Memory(
            shape=self.width, depth=self.words, init=[], attrs={"ram_style": "huge"}
        )
        read, write = words.read_port(), words.write_port()
        m.d.comb += [
            read.addr.eq(self.a), write.addr.eq(self.a), read.en.eq(self.en & ~self.we),
            write.en.eq(self.en & self.we),
            write.data.eq(self.dq_i), self.dq_o.eq(read.data),
        ]
        return m
