"""A controller of a single data rate SDRAM for bursts within a page, one after the other.

Every burst opens its page and closes it again, so that the cycles of each are known beforehand, as are those of
refreshes: that is what the worst case of a stream from the memory is computed of (:mod:`hdl_lib.external.fetch_plan`).

It stands here instead of LiteDRAM's core, whose bank machines and arbiters decide at run time, so that no worst case
follows from its settings. On an ECP5 yosys makes 786 look-up tables and 462 flip-flops of that core for the same chip
with one native port (litedram 2024.12); of this one with loader, CRC and one region 611 and 395, besides 102 carry
cells. LiteDRAM's throughput of sequential reads was not measured; this one's is 93 to 95 % of the port's.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import delayed
from hdl_lib.external.memory_timing import MemoryController, MemoryTiming

INITIAL_REFRESHES = 8
MODE_CYCLES = 2  # from setting the mode to the next command


@dataclass(frozen=True)
class SdramChip:
    """A memory: its size, and its timing in nanoseconds. ``width``: bits of a word, of all chips side by side;
    ``refresh``: between two refreshes at the most; ``two_mhz``: up to this clock the first word comes two cycles
    after its command, above it three; ``source``: where the numbers come from."""

    name: str
    banks: int
    rows: int
    columns: int
    width: int
    rcd: float
    rp: float
    ras: float
    rc: float
    wr: float
    rfc: float
    refresh: float
    two_mhz: float
    source: str
    power_up: float = 200_000

    @property
    def pages(self) -> int:
        """Return the rows of all banks."""
        return self.banks * self.rows

    @property
    def bytes(self) -> int:
        return self.pages * self.columns * self.width // 8


@dataclass(frozen=True)
class SdramTiming(MemoryTiming):
    """The timing of a ``chip`` in cycles of ``clock_hz``."""

    chip: SdramChip
    clock_hz: Fraction

    def cycles(self, nanoseconds: float) -> int:
        """Return the least cycles that take so long, at least one."""
        return max(1, ceil(Fraction(nanoseconds) * self.clock_hz / 1_000_000_000))

    @property
    def cas(self) -> int:
        """Return the cycles from a read to its word."""
        return 2 if self.clock_hz <= Fraction(self.chip.two_mhz) * 1_000_000 else 3

    @property
    def rcd(self) -> int:
        return self.cycles(self.chip.rcd)

    @property
    def rp(self) -> int:
        return self.cycles(self.chip.rp)

    @property
    def ras(self) -> int:
        """Return the minimum row-active time, in cycles, long enough for tRC, too."""
        return max(self.cycles(self.chip.ras), self.cycles(self.chip.rc) - self.rp)

    @property
    def wr(self) -> int:
        return self.cycles(self.chip.wr)

    @property
    def refresh_cycles(self) -> int:
        return self.cycles(self.chip.rfc)

    @property
    def first_access(self) -> int:
        return self.rcd

    @property
    def read_latency(self) -> int:
        """Registers at both ends of the pins, and a cycle for the memory's later clock and for the way to it and
        back."""
        return self.cas + 2

    @property
    def setup_cycles(self) -> int:
        return self.cycles(self.chip.power_up) + (INITIAL_REFRESHES + 2) * self.refresh_cycles

    def burst_cycles(self, length: int, *, write: bool = False) -> int:
        return max(self.ras, self.rcd + length + (self.wr - 1 if write else 0)) + self.rp

    def refresh_period(self, longest: int) -> int:
        most = int(Fraction(self.chip.refresh) * self.clock_hz / 1_000_000_000)
        left = most - self.burst_cycles(longest, write=True) - self.refresh_cycles - 2
        if left < 2 * self.refresh_cycles:
            raise ValueError(f"bursts must leave time for refreshes every {most} cycles, not have {longest} words")
        return left

    def controller(self, longest: int) -> MemoryController:
        return SdramController(self, longest)


class SdramController(MemoryController):
    """Runs bursts of reads or writes within a page, and refreshes.

    Parameters
    ----------
    timing : of the chip at this clock.
    longest : most words of a burst.

    Members
    -------
    ``pins``: ``cke``, ``cs_n``, ``ras_n``, ``cas_n``, ``we_n``, ``ba``, ``a``, ``dqm``, ``dq_o``, ``dq_oe`` (out),
    ``dq_i`` (in), with registers in front of and behind them. The memory's clock rises half a cycle later than this
    one, and a word may take half a cycle, or a whole one, from there to ``dq_i``. The rest as of
    :class:`MemoryController`; the bank is in a page's upper bits.

    Timing
    ------
    A command is taken when the memory is idle and no refresh is due; the next one
    :meth:`SdramTiming.burst_cycles` later, or after a refresh of ``rfc`` cycles, which is due every
    :meth:`SdramTiming.refresh_period`. A word is read ``rcd`` cycles after its command and one a cycle, and valid
    :attr:`SdramTiming.read_latency` cycles later. Before the first command the memory is set up.
    """

    def __init__(self, timing: SdramTiming, longest: int) -> None:
        chip = timing.chip
        self.timing = timing
        self.row_bits = (chip.rows - 1).bit_length()
        super().__init__(
            chip,
            longest,
            {
                "cke": Out(1), "cs_n": Out(1, init=1), "ras_n": Out(1, init=1), "cas_n": Out(1, init=1),
                "we_n": Out(1, init=1), "ba": Out((chip.banks - 1).bit_length()), "a": Out(max(11, self.row_bits)),
                "dqm": Out(chip.width // 8), "dq_o": Out(chip.width), "dq_oe": Out(1), "dq_i": In(chip.width),
            },
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timing, chip, pins = self.timing, self.timing.chip, self.pins
        power_up = timing.cycles(chip.power_up)
        pause = Signal(range(max(power_up, timing.refresh_cycles, timing.ras) + 1), init=power_up)
        left = Signal(range(max(self.longest, INITIAL_REFRESHES)), init=INITIAL_REFRESHES - 1)
        opened = Signal(range(timing.ras + 1))  # cycles that the page must still be open
        page, column, write = Signal(range(chip.pages)), Signal(range(chip.columns)), Signal()

        # Refreshes become due at even distances once the memory is set up.
        period = timing.refresh_period(self.longest)
        due_in, due, started = Signal(range(period), init=period - 1), Signal(), Signal()
        refreshes = Signal()
        with m.If(started):
            m.d.sync += due_in.eq(Mux(due_in == 0, period - 1, due_in - 1))
        m.d.sync += due.eq((due & ~refreshes) | (started & (due_in == 0)))

        nop, active, reads, writes, precharge, refresh, mode = 0b111, 0b011, 0b101, 0b100, 0b010, 0b001, 0b000
        command = Signal(3, init=nop)  # ras_n, cas_n, we_n
        address, bank = Signal(len(pins.a)), Signal(len(pins.ba))
        reading, writing = Signal(), Signal()
        m.d.comb += command.eq(nop)
        m.d.comb += [bank.eq(page[self.row_bits :]), self.write_next.eq(writing)]
        with m.If(opened != 0):
            m.d.sync += opened.eq(opened - 1)
        go = Signal()  # the pause is over, in a register: all pins follow from it
        m.d.sync += [pause.eq(Mux(go, 0, pause - 1)), go.eq(go | (pause == 1))]

        def wait(cycles: int) -> None:
            """Let ``cycles`` pass until the next command."""
            m.d.sync += [pause.eq(cycles - 1), go.eq(cycles == 1)]

        with m.FSM():
            with m.State("power"), m.If(go):
                m.d.comb += [command.eq(precharge), address[10].eq(1)]
                wait(timing.rp)
                m.next = "first refreshes"
            with m.State("first refreshes"), m.If(go):
                m.d.comb += command.eq(refresh)
                m.d.sync += left.eq(left - 1)
                wait(timing.refresh_cycles)
                with m.If(left == 0):
                    m.next = "mode"
            with m.State("mode"), m.If(go):
                # single words, cas cycles after their command
                m.d.comb += [command.eq(mode), address.eq(1 << 9 | timing.cas << 4), bank.eq(0)]
                m.d.sync += started.eq(1)
                wait(MODE_CYCLES)
                m.next = "idle"
            with m.State("idle"), m.If(go):
                given = self.command.payload
                with m.If(due):
                    m.d.comb += [command.eq(refresh), refreshes.eq(1)]
                    wait(timing.refresh_cycles)
                with m.Elif(self.command.valid):
                    m.d.comb += [
                        self.command.ready.eq(1), command.eq(active), address.eq(given.page[: self.row_bits]),
                        bank.eq(given.page[self.row_bits :]),
                    ]
                    m.d.sync += [
                        page.eq(given.page), column.eq(given.column), left.eq(given.length), write.eq(given.write),
                        opened.eq(timing.ras - 1),
                    ]
                    wait(timing.rcd)
                    m.next = "burst"
            with m.State("burst"), m.If(go):
                m.d.comb += [
                    command.eq(Mux(write, writes, reads)), reading.eq(~write), writing.eq(write), address.eq(column)
                ]
                m.d.sync += [column.eq(column + 1), left.eq(left - 1)]
                with m.If(left == 0):
                    with m.If(write):
                        wait(timing.wr)
                    m.next = "close"
            with m.State("close"), m.If(go & (opened == 0)):
                m.d.comb += command.eq(precharge)
                wait(timing.rp)
                m.next = "idle"

        valid = delayed(m, "read_valid", reading, timing.read_latency)
        arrived = Signal(chip.width, reset_less=True)
        m.d.sync += [
            Cat(pins.we_n, pins.cas_n, pins.ras_n).eq(command), pins.a.eq(address), pins.ba.eq(bank), pins.cs_n.eq(0),
            pins.cke.eq(1), pins.dq_o.eq(self.write_data), pins.dq_oe.eq(writing), arrived.eq(pins.dq_i),
        ]
        m.d.comb += [pins.dqm.eq(Const(0)), self.read.valid.eq(valid), self.read.data.eq(arrived)]
        return m
