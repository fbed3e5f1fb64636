"""A board's SPI flash, as a memory that weights are read from over four wires; nothing is written there.

The image stands above the bitstream, and whoever loads that writes it. Each burst is one Fast Read Quad Output (6Bh):
command and address on one wire, eight cycles until the flash drives all four, then half a byte a cycle. Quad I/O (EBh)
would save 20 cycles of a burst, but would turn four pins around in four cycles, and what is left in its mode bits could
keep a part from being configured. What comes before and behind 128 words takes 8 % of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import delayed
from hdl_lib.external.memory_timing import MemoryController, MemoryTiming
from hdl_lib.memories.storage import StorageStyle

_COLUMNS = 2048  # words of a page: one of the sectors that a flash erases
_WIRES = 4
_COMMAND = 8 + 24  # cycles of a read and its address
_READ_QUAD, _WAKE_UP, _ENABLE_VOLATILE, _WRITE_STATUS_2, _QUAD_ENABLE = 0x6B, 0xAB, 0x50, 0x31, 0x02


@dataclass(frozen=True)
class SpiFlashChip:
    """A flash of ``size`` bytes whose first ``offset``, whole pages, are the bitstream's. Times in nanoseconds:
    ``wake`` until it can be used once woken (tRES1), ``deselect`` between two commands (tSHSL2), ``power_up`` until the
    first one: longer than the part's PLL takes to lock. ``source``: where the numbers come from."""

    name: str
    size: int
    source: str
    offset: int = 1 << 20
    wake: float = 3_000
    deselect: float = 50
    power_up: float = 100_000

    @property
    def width(self) -> int:
        """Return the bits of a word, the lower byte of which comes first."""
        return 16

    @property
    def columns(self) -> int:
        """Return the words of a page."""
        return _COLUMNS

    @property
    def pages(self) -> int:
        """Return the pages behind ``offset``."""
        return (self.size - self.offset) // (2 * _COLUMNS)

    @property
    def bytes(self) -> int:
        return self.pages * 2 * _COLUMNS


@dataclass(frozen=True)
class SpiFlashTiming(MemoryTiming):
    """The timing of a ``chip`` whose clock is the design's, of ``clock_hz``."""

    chip: SpiFlashChip
    clock_hz: Fraction

    def cycles(self, nanoseconds: float) -> int:
        """Return the least cycles that take so long, at least one."""
        return max(1, ceil(Fraction(nanoseconds) * self.clock_hz / 1_000_000_000))

    @property
    def first_access(self) -> int:
        return _COMMAND + SpiFlashController.dummies + self.word_cycles

    @property
    def read_latency(self) -> int:
        """Registers in both ways of the pins, and the controller's own."""
        return 3

    @property
    def word_cycles(self) -> int:
        return self.chip.width // _WIRES

    @property
    def step_bits(self) -> int:
        """Return the bits of the cycles of a step of the setup: as long as each of its pauses must be."""
        return (max(self.cycles(self.chip.power_up), 16 + self.cycles(self.chip.wake)) - 1).bit_length()

    @property
    def setup_cycles(self) -> int:
        return (len(SpiFlashController.setup) << self.step_bits) + 1

    @property
    def read_only(self) -> bool:
        return True

    @property
    def queue_style(self) -> StorageStyle:
        """The parts that have a flash beside them here have no memories in look-up tables."""
        return StorageStyle.BLOCK

    def burst_cycles(self, length: int, *, write: bool = False) -> int:
        head = _COMMAND + SpiFlashController.dummies
        return head + self.word_cycles * length + self.cycles(self.chip.deselect)

    def controller(self, longest: int) -> MemoryController:
        return SpiFlashController(self, longest)


class SpiFlashController(MemoryController):
    """Sets a flash up, and runs bursts of reads.

    Members: ``pins``: ``cs_n``; ``dq_o``, which IO0 shows with ``dq_oe``; ``hold``: IO2 and IO3 are driven high, for
    they are /WP and /HOLD until they carry data (out); ``dq_i`` (in 4). Between these and the flash are a register out
    and one back in, and the flash's clock is this one, inverted and never stopped. The rest, and the parameters, as of
    :class:`MemoryController`; nothing is written, whatever a command says.

    Timing: after ``timing.setup_cycles`` a command is taken when the flash is deselected for long enough; bits leave
    from the next cycle on, and the last of a word's four nibbles is in ``dq_i`` two cycles after that in which the
    controller counts it. The setup: ``power_up`` passes, the flash is woken, in which state an iCE40's configuration
    does not leave it, and QE of status register 2 is set, in its volatile form, so that nothing wears out. A flash
    whose QE is fixed takes that, too.
    """

    dummies = 8
    """Cycles from the address to the first nibble."""

    setup: tuple[bytes, ...] = (
        b"", bytes([_WAKE_UP]), bytes([_ENABLE_VOLATILE]), bytes([_WRITE_STATUS_2, _QUAD_ENABLE]),
    )
    """What is sent in each of the four steps."""

    def __init__(self, timing: SpiFlashTiming, longest: int) -> None:
        self.timing = timing
        pins = {"cs_n": Out(1, init=1), "dq_o": Out(1), "dq_oe": Out(1), "hold": Out(1), "dq_i": In(_WIRES)}
        super().__init__(timing.chip, longest, pins)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timing, given, pins = self.timing, self.command.payload, self.pins
        selected, bit, ready = self._setup(m)

        # The command's and the address's bits, the highest first; then zeros.
        line = Signal(_COMMAND)
        head, busy = Signal(range(_COMMAND + self.dummies + 1)), Signal()
        left = Signal(range(timing.word_cycles * self.longest))  # nibbles after this one
        rest = Signal(range(max(2, timing.cycles(timing.chip.deselect))))
        nibbles, last = Signal(), Signal()
        page = Signal(12)
        m.d.comb += [
            page.eq(given.page + timing.chip.offset // (2 * _COLUMNS)),
            nibbles.eq(head == _COMMAND + self.dummies), last.eq(busy & nibbles & (left == 0)),
            self.command.ready.eq(self.command.valid & ready & ~busy & (rest == 0)),
        ]
        m.d.sync += [line.eq(line << 1), rest.eq(rest - (rest != 0)), head.eq(head + ~nibbles)]
        with m.If(nibbles):
            m.d.sync += left.eq(left - 1)
        with m.If(~busy):
            m.d.sync += head.eq(0)
        with m.If(last):
            m.d.sync += [busy.eq(0), rest.eq(timing.cycles(timing.chip.deselect) - 1)]
        with m.If(self.command.ready):
            m.d.sync += [
                busy.eq(1), left.eq(Cat(Const(timing.word_cycles - 1, 2), given.length)),
                line.eq(Cat(Const(0, 1), given.column, page, Const(_READ_QUAD, 8))),
            ]

        arrived = Signal(timing.chip.width, reset_less=True)  # the higher nibble of the lower byte is the first one
        m.d.sync += arrived.eq(Cat(pins.dq_i, arrived))
        m.d.comb += [
            pins.cs_n.eq(~(busy | selected)), pins.dq_o.eq(line[-1] | bit), pins.dq_oe.eq(head < _COMMAND),
            pins.hold.eq(~ready), self.read.data.eq(Cat(arrived[8:], arrived[:8])),
            self.read.valid.eq(
                delayed(m, "read_valid", busy & nibbles & (left[:2] == 0), timing.read_latency)
            ),
        ]
        return m

    def _setup(self, m: Module) -> tuple[Signal, Signal, Signal]:
        """Return whether the flash is selected, which bit it is sent, and whether it is ready: it is neither of the
        others then."""
        bits = self.timing.step_bits
        count, ready = Signal(bits + 2), Signal()
        with m.If(~ready):
            m.d.sync += [count.eq(count + 1), ready.eq(count.all())]
        selects = sends = 0
        for step, sent in enumerate(self.setup):
            selects |= ((1 << 8 * len(sent)) - 1) << 16 * step
            for place in range(8 * len(sent)):
                sends |= (sent[place // 8] >> 7 - place % 8 & 1) << 16 * step + place
        place, early = Cat(count[:4], count[bits:]), Signal()
        selected, bit = Signal(), Signal()
        m.d.comb += [
            early.eq(count[4:bits] == 0), selected.eq(early & Const(selects, 64).bit_select(place, 1)),
            bit.eq(early & Const(sends, 64).bit_select(place, 1)),
        ]
        return selected, bit, ready
