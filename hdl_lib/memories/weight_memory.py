"""Streams from a memory outside, each a region that is read over and over."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, ClockDomain, ClockSignal, DomainRenamer, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import delayed
from hdl_lib.memories.fetch_plan import BURSTS_HELD, FetchPlan, Region
from hdl_lib.memories.sdram import SdramController
from hdl_lib.streams.fifo import Fifo

LOADED = 16
"""Words that are written, and checked, at a time: the image has a multiple of them."""

PINS = ("cke", "cs_n", "ras_n", "cas_n", "we_n", "ba", "a", "dqm", "dq_o", "dq_oe", "dq_i")


def image_words(plan: FetchPlan) -> int:
    """Return the words of the memory's image: whole pages."""
    return plan.pages * plan.timing.chip.columns


class WeightMemory(wiring.Component):
    """Reads regions of an SDRAM over and over, each into a queue of its own; before that it is loaded.

    Parameters
    ----------
    plan : of the regions.
    widths : bits of each region's words that its stream has, from the lowest on.
    depths : beats of each stream that its reader's schedule counts with; the queue has room for
        :data:`hdl_lib.memories.fetch_plan.BURSTS_HELD` bursts more.

    Members
    -------
    ``o0``, ``o1``, ... (out, streams of bits): a word a beat.
    ``pins``: of the memory, as of :class:`hdl_lib.memories.sdram.SdramController`, and
        ``filled`` (in 1): the memory has its image, as in a simulation that reads it from a file: nothing is loaded.
        ``load`` (in, with ``load_valid``, ``load_ready``): the image, :func:`image_words` words from address 0 on, then
        its CRC-32 (ISO HDLC, of bytes, the lowest of a word first) in 16-bit halves, or a whole word.
        ``loaded`` (out 1): the streams have begun.
    ``error`` (out 1): what was read back after loading has another CRC; the streams never begin.

    A reset begins anew with loading; the memory's own controller, and so its contents, go on.

    Timing
    ------
    A region whose stream takes a beat whenever there is one has a burst at least every ``plan.round`` cycles; with a
    queue in front that counts with ``depths`` it is never later than one with that schedule. Ordering: that of the
    region's words, from the first one again after the last.
    """

    def __init__(self, plan: FetchPlan, widths: Sequence[int], depths: Sequence[int]) -> None:
        chip = plan.timing.chip
        if plan.pages > chip.pages:
            raise ValueError(f"regions must have at most {chip.pages} pages, not {plan.pages}")
        if chip.width not in (16, 32) or chip.columns % LOADED:
            raise ValueError(f"words must have 16 or 32 bits and pages whole bursts, not {chip.width} bits")
        self.plan, self.widths, self.depths = plan, tuple(widths), tuple(depths)
        self.controller = SdramController(plan.timing, max(plan.longest, LOADED))
        members = {name: self.controller.signature.members[name] for name in PINS}
        members |= {
            "filled": In(1), "load": In(chip.width), "load_valid": In(1), "load_ready": Out(1), "loaded": Out(1),
        }
        super().__init__(
            {
                **{f"o{k}": Out(stream.Signature(width)) for k, width in enumerate(self.widths)},
                "pins": Out(wiring.Signature(members)),
                "error": Out(1),
            }
        )

    @staticmethod
    def depth_of(region: Region, depth: int) -> int:
        """Return the words of a region's queue."""
        return depth + BURSTS_HELD * region.burst

    @property
    def streams(self) -> list:
        """Return the streams of the regions."""
        return [getattr(self, f"o{k}") for k in range(len(self.widths))]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The memory wants its refreshes, whatever resets the streams: the controller goes on.
        m.domains.kept = ClockDomain(reset_less=True, local=True)
        m.d.comb += ClockSignal("kept").eq(ClockSignal())
        controller = self.controller
        m.submodules.controller = DomainRenamer("kept")(controller)
        for name in PINS:
            pin, inner = getattr(self.pins, name), getattr(controller, name)
            m.d.comb += inner.eq(pin) if name == "dq_i" else pin.eq(inner)
        pins, chip = self.pins, self.plan.timing.chip

        # Commands wait in a register for the controller.
        pending, command = Signal(), Signal(controller.command.payload.shape())
        of, following = Signal(range(max(2, len(self.widths)))), Signal(range(max(2, len(self.widths))))
        m.d.comb += [controller.command.valid.eq(pending), controller.command.payload.eq(command)]
        with m.If(controller.command.ready):
            m.d.sync += [pending.eq(0), of.eq(following)]

        regions = [self._region(m, k, region) for k, region in enumerate(self.plan.regions)]
        turn = Signal(range(max(2, len(regions))))
        wants, commands, takes = zip(*regions, strict=True)
        arrived = delayed(m, "arrived_for", of, self.plan.timing.read_latency, reset=False)
        serving = Signal()
        for k, (width, depth, region) in enumerate(zip(self.widths, self.depths, self.plan.regions, strict=True)):
            m.submodules[f"queue{k}"] = queue = Fifo(width, self.depth_of(region, depth))
            m.d.comb += [
                queue.i.payload.eq(controller.read.data[:width]),
                queue.i.valid.eq(serving & controller.read.valid & (arrived == k)),
            ]
            wiring.connect(m, queue.o, wiring.flipped(self.streams[k]))

        writes, place, loader_wants, crc_good, crc_bad = self._loader(m, serving)
        looks = Signal()
        m.d.comb += looks.eq(~pending & serving)
        with m.FSM():
            with m.State("load"):
                with m.If(pins.filled | crc_good):
                    m.next = "serve"
                with m.Elif(loader_wants & ~pending):
                    m.d.sync += [
                        pending.eq(1), command.page.eq(place[(chip.columns - 1).bit_length() :]),
                        command.column.eq(place), command.length.eq(LOADED - 1), command.write.eq(writes),
                    ]
                with m.If(crc_bad):
                    m.next = "refuse"
            with m.State("serve"):
                m.d.comb += [serving.eq(1), pins.loaded.eq(1)]
                with m.If(looks):
                    m.d.sync += turn.eq(Mux(turn == len(regions) - 1, 0, turn + 1))
                    with m.If(Array(wants)[turn]):
                        m.d.sync += [pending.eq(1), following.eq(turn)]
                        m.d.sync += command.eq(Array(commands)[turn])
            with m.State("refuse"):
                m.d.comb += self.error.eq(1)
        for k, take in enumerate(takes):
            m.d.comb += take.eq(looks & (turn == k) & wants[k])
        return m

    def _region(self, m: Module, number: int, region: Region) -> tuple[Signal, Signal, Signal]:
        """Return whether a region wants its next burst, the command of it, and (to be driven) whether it is given."""
        most = self.depth_of(region, self.depths[number])
        layout = self.controller.command.payload.shape()
        wants, command, take = (
            Signal(shape, name=f"{name}{number}") for name, shape in (("wants", 1), ("command", layout), ("take", 1))
        )
        free = Signal(range(most + 1), init=most, name=f"free{number}")
        left = Signal(range(region.bursts), init=region.bursts - 1, name=f"bursts_left{number}")
        of_page = Signal(range(region.per_page), init=region.per_page - 1, name=f"of_page{number}")
        column = Signal(range(self.plan.timing.chip.columns), name=f"column{number}")
        page = Signal(range(max(2, self.plan.timing.chip.pages)), init=region.page, name=f"page{number}")
        is_last = Signal(init=region.bursts == 1, name=f"is_last{number}")
        length = Signal(range(region.burst + 1), name=f"length{number}")
        output = self.streams[number]
        popped = delayed(m, f"popped{number}", output.valid & output.ready, 1)
        m.d.comb += length.eq(Mux(is_last, region.last, region.burst))
        m.d.sync += free.eq(free + popped - Mux(take, length, 0))
        m.d.sync += wants.eq((free >= length) & ~take)
        m.d.comb += [
            command.page.eq(page), command.column.eq(column), command.length.eq(length - 1), command.write.eq(0)
        ]
        with m.If(take):
            m.d.sync += [left.eq(left - 1), is_last.eq(left == 1), of_page.eq(of_page - 1)]
            m.d.sync += column.eq(column + region.burst)
            with m.If(of_page == 0):
                m.d.sync += [of_page.eq(region.per_page - 1), column.eq(0), page.eq(page + 1)]
            with m.If(is_last):
                m.d.sync += [
                    left.eq(region.bursts - 1), is_last.eq(region.bursts == 1), of_page.eq(region.per_page - 1),
                    column.eq(0), page.eq(region.page),
                ]
        return wants, command, take

    def _loader(
        self, m: Module, serving: Signal
    ) -> tuple[Signal, Signal, Signal, Signal, Signal]:
        """Return whether the loader writes or reads back, at which word, whether it wants to, and whether what it has
        read has the CRC that came behind the image, or another one."""
        chip, controller, pins = self.plan.timing.chip, self.controller, self.pins
        words, halves = image_words(self.plan), 32 // chip.width
        m.submodules.load_queue = queue = SyncFIFOBuffered(width=chip.width, depth=2 * LOADED)
        place, writes = Signal(range(chip.pages * chip.columns)), Signal(init=1)
        asked = Signal()  # a burst is under way
        # a burst from before a reset ends first
        longest = self.plan.timing.burst_cycles(self.controller.longest, write=True) + self.plan.timing.rfc
        settling = Signal(range(2 * longest), init=2 * longest - 1)
        with m.If(settling != 0):
            m.d.sync += settling.eq(settling - 1)
        done = Signal(range(LOADED))
        moved = Signal()
        expected, taken = Signal(32), Signal(range(halves + 1))
        m.d.comb += [
            queue.w_data.eq(pins.load), queue.w_en.eq(pins.load_valid & pins.load_ready),
            pins.load_ready.eq(queue.w_rdy & ~pins.filled & ~serving & (settling == 0)),
            controller.write_data.eq(queue.r_data), queue.r_en.eq(controller.write_next),
            moved.eq(Mux(writes, controller.write_next, controller.read.valid & ~serving)),
        ]
        wants, good, bad = Signal(), Signal(), Signal()
        checks, checked = Signal(), Signal()
        m.d.comb += wants.eq(
            ~asked & (Mux(writes, queue.level >= LOADED, (taken == halves) & ~checked))
        )
        with m.If(wants):
            m.d.sync += asked.eq(1)
        with m.If(moved):
            m.d.sync += done.eq(done + 1)
            with m.If(done == LOADED - 1):
                m.d.sync += [asked.eq(0), place.eq(place + LOADED)]
                with m.If(place == words - LOADED):
                    m.d.sync += [place.eq(0), writes.eq(0), checked.eq(~writes)]
        with m.If(~writes & ~asked & (taken != halves) & queue.r_rdy):
            m.d.comb += queue.r_en.eq(1)
            m.d.sync += [taken.eq(taken + 1), expected.eq(Cat(expected, queue.r_data)[chip.width :])]
        m.submodules.crc = crc = CRC32_ISO_HDLC(data_width=chip.width).create()
        m.d.comb += [
            crc.start.eq(writes), crc.data.eq(controller.read.data),
            crc.valid.eq(~writes & ~serving & controller.read.valid),
        ]
        m.d.sync += checks.eq(checked)  # when the last word is in the sum
        m.d.comb += [good.eq(checks & (crc.crc == expected)), bad.eq(checks & (crc.crc != expected))]
        return writes, place, wants, good, bad
