"""Streams from a memory outside, each a region that is read over and over; and queues in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, ClockDomain, ClockSignal, Const, DomainRenamer, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.data import StructLayout
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hdl_lib.blocks import delayed, loop
from hdl_lib.external.fetch_plan import BURSTS_HELD, Bursts, FetchPlan, QueueRegion, Region
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.memories.storage import StorageStyle
from hdl_lib.streams.fifo import Fifo

LOADED = 16
"""Words that are written, and checked, at a time: the image has a multiple of them."""

_NEAR = 2  # words in registers behind a queue: one may come while the other one leaves


def image_words(plan: FetchPlan) -> int:
    """Return the words of the memory's image: whole pages."""
    return plan.image_pages * plan.timing.chip.columns


def table_of_parts(region: Region, pages: int) -> tuple[Table, StructLayout]:
    """Return the table of what comes behind each part of a region with parts, in a memory of so many ``pages``, the
    first part in its last word: bursts behind the part's first one, words of its last one, its page."""
    whole = region.whole
    bursts = [region.bursts_of(words) for words in whole.words]
    layout = StructLayout({"left": range(max(bursts)), "last": range(region.burst + 1), "page": range(pages)})
    rows = [
        layout.const({"left": count - 1, "last": words - (count - 1) * region.burst, "page": page}).as_bits()
        for count, words, page in zip(bursts, whole.words, region.firsts, strict=True)
    ]
    following = whole.order[1:] + whole.order[:1]
    return Table.of_words([rows[part] for part in following], layout.size), layout


class WeightMemory(wiring.Component):
    """Reads regions of a memory over and over, each into a queue of its own; before that it is loaded. Streams may wait
    in it as in a queue.

    Parameters
    ----------
    plan : of the regions.
    widths : bits of each region's words that its stream has, from the lowest on.
    depths : beats of each stream that its reader's schedule counts with; the queue has room for
        :data:`hdl_lib.external.fetch_plan.BURSTS_HELD` bursts more.
    queue_widths, queue_depths : the same of the plan's queues; depths are of their outputs.

    Members
    -------
    ``o0``, ``o1``, ... (out, streams of bits): a word a beat.
    ``memory_i0``, ``memory_o0``, ... (in and out, streams of bits): the ends of each queue, a word a beat. A frame's
        words leave when all of their burst have come, :meth:`intake_of` of them wait in front.
    ``pins``: of the memory, as of its controller (:meth:`hdl_lib.external.memory_timing.MemoryTiming.controller`), and
        ``filled`` (in 1): the memory has its image, as in a simulation that reads it from a file: nothing is loaded.
        ``load`` (in, with ``load_valid``, ``load_ready``): the image, :func:`image_words` words from address 0 on, then
        its CRC-32 (ISO HDLC, of bytes, the lowest of a word first) in 16-bit halves, or a whole word.
        Of a memory that is only read the CRC alone is loaded. ``loaded`` (out 1): the streams have begun.
    ``error`` (out 1): what was read back after loading has another CRC; the streams never begin.

    A reset begins anew with loading; the memory's own controller, and so its contents, go on.

    Timing
    ------
    A region whose stream takes a beat whenever there is one has a burst at least every ``plan.round`` cycles; with a
    queue in front that counts with ``depths`` it is never later than one with that schedule. Ordering: that of the
    region's words, from the first one again after the last.
    """

    def __init__(
        self, plan: FetchPlan, widths: Sequence[int], depths: Sequence[int], queue_widths: Sequence[int] = (),
        queue_depths: Sequence[int] = (),
    ) -> None:
        chip = plan.timing.chip
        if not plan.fits:
            raise ValueError(f"regions must have at most {chip.pages} pages, not {plan.pages}")
        if chip.width not in (16, 32) or chip.columns % LOADED:
            raise ValueError(f"words must have 16 or 32 bits and pages whole bursts, not {chip.width} bits")
        if (widest := max([*widths, *queue_widths], default=0)) > chip.width:
            raise ValueError(f"streams must have at most the {chip.width} bits of a word, not {widest}")
        self.plan, self.widths, self.depths = plan, tuple(widths), tuple(depths)
        self.queue_widths, self.queue_depths = tuple(queue_widths), tuple(queue_depths)
        self.controller = plan.timing.controller(max(plan.longest, LOADED))
        members = {
            **self.controller.pins.signature.members,
            "filled": In(1), "load": In(chip.width), "load_valid": In(1), "load_ready": Out(1), "loaded": Out(1),
        }
        super().__init__(
            {
                **{f"o{k}": Out(stream.Signature(width)) for k, width in enumerate(self.widths)},
                **{f"memory_i{k}": In(stream.Signature(width)) for k, width in enumerate(self.queue_widths)},
                **{f"memory_o{k}": Out(stream.Signature(width)) for k, width in enumerate(self.queue_widths)},
                "pins": Out(wiring.Signature(members)),
                "error": Out(1),
            }
        )

    @staticmethod
    def depth_of(region: Bursts, depth: int) -> int:
        """Return the words of a region's queue, or those behind a queue in the memory."""
        return depth + BURSTS_HELD * region.burst

    @staticmethod
    def intake_of(region: QueueRegion) -> int:
        """Return the words in front of a queue in the memory."""
        return (BURSTS_HELD + 2) * region.burst

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
        for name, member in controller.pins.signature.members.items():
            pin, inner = getattr(self.pins, name), getattr(controller.pins, name)
            m.d.comb += inner.eq(pin) if member.flow == In else pin.eq(inner)
        pins, chip = self.pins, self.plan.timing.chip

        # Commands wait in a register for the controller.
        pending, command = Signal(), Signal(controller.command.payload.shape())
        count = max(2, len(self.widths) + 2 * len(self.queue_widths))
        of, following = Signal(range(count)), Signal(range(count))
        m.d.comb += [controller.command.valid.eq(pending), controller.command.payload.eq(command)]
        with m.If(controller.command.ready):
            m.d.sync += [pending.eq(0), of.eq(following)]

        users = [
            self._region(m, f"{k}", region, depth, self.streams[k])
            for k, (region, depth) in enumerate(zip(self.plan.regions, self.depths, strict=True))
        ]
        writing: list[Value] = []  # the next word of each user that writes
        for k, region in enumerate(self.plan.queues):
            users += self._queue(m, k, region, len(users), writing, of)
        turn = Signal(range(max(2, len(users))))
        arrived = delayed(m, "arrived_for", of, self.plan.timing.read_latency, reset=False)
        serving = Signal()
        for k, user in enumerate(users):
            if user.output is None:
                continue
            m.submodules[f"queue{user.name}"] = queue = self._fifo(user.output, user.depth)
            m.d.comb += [
                queue.i.payload.eq(controller.read.data[: len(user.output.payload)]),
                queue.i.valid.eq(serving & controller.read.valid & (arrived == k)),
            ]
            words = queue.o
            if queue.style == StorageStyle.LUTRAM:  # a deep one's word is behind several look-up tables
                m.submodules[f"near{user.name}"] = near = Fifo(len(user.output.payload), _NEAR)
                wiring.connect(m, words, near.i)
                words = near.o
            wiring.connect(m, words, wiring.flipped(user.output))

        # A burst from before a reset ends first: its words are nobody's.
        longest = self.plan.timing.burst_cycles(self.controller.longest, write=True) + self.plan.timing.refresh_cycles
        settling, settled = Signal(range(2 * longest), init=2 * longest - 1), Signal(name="settled")
        m.d.sync += [settling.eq(settling - (settling != 0)), settled.eq(settling == 0)]
        writes, place, loaded_word, loader_wants, crc_good, crc_bad = self._loader(m, serving, settled)
        m.d.comb += controller.write_data.eq(loaded_word)
        if writing:
            m.d.comb += controller.write_data.eq(Mux(serving, reduce(or_, writing), loaded_word))
        looks = Signal()
        m.d.comb += looks.eq(~pending & serving)
        with m.FSM():
            with m.State("load"):
                with m.If((pins.filled & settled) | crc_good):
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
                    m.d.sync += turn.eq(Mux(turn == len(users) - 1, 0, turn + 1))
                    with m.If(Array([user.wants for user in users])[turn]):
                        m.d.sync += [pending.eq(1), following.eq(turn)]
                        m.d.sync += command.eq(Array([user.command for user in users])[turn])
            with m.State("refuse"):
                m.d.comb += self.error.eq(1)
        for k, user in enumerate(users):
            m.d.comb += user.take.eq(looks & (turn == k) & user.wants)
        return m

    def _fifo(self, words: stream.Interface, depth: int) -> Fifo:
        return Fifo(len(words.payload), depth, style=self.plan.timing.queue_style)

    def _region(self, m: Module, name: str, region: Region, depth: int, output: stream.Interface) -> _User:
        """Build the reader of a region."""
        user = _User(m, self, name, region, region.bursts, self.depth_of(region, depth), output)
        m.d.sync += user.wants.eq((user.free >= user.length) & ~user.take)
        return user

    def _queue(
        self, m: Module, number: int, region: QueueRegion, first: int, words: list[Value], of: Signal
    ) -> tuple[_User, _User]:
        """Build what writes a queue's words, user ``first``, and what reads them; append the word to be written next.

        Commands run in the order in which they are taken: a burst may be read, and its slot be written again, as soon
        as the one before has been taken.
        """
        stored = Signal(range(region.slots + 1), name=f"stored{number}")
        source, output = getattr(self, f"memory_i{number}"), getattr(self, f"memory_o{number}")
        intake = self.intake_of(region)
        m.submodules[f"intake{number}"] = queue = self._fifo(source, intake)
        wiring.connect(m, wiring.flipped(source), queue.i)
        writer = _User(m, self, f"{number}_in", region, region.slots)
        depth = self.depth_of(region, self.queue_depths[number])
        reader = _User(m, self, f"{number}_out", region, region.slots, depth, output)
        come = Signal(range(intake + 1), name=f"come{number}")  # words that no command takes
        arrived = delayed(m, f"arrived{number}", source.valid & source.ready, 1)
        m.d.sync += [
            come.eq(come + arrived - Mux(writer.take, writer.length, 0)),
            stored.eq(stored + writer.take - reader.take),
            writer.wants.eq((come >= writer.length) & (stored != region.slots) & ~writer.take),
            reader.wants.eq((reader.free >= reader.length) & (stored != 0) & ~reader.take),
        ]
        m.d.comb += [
            writer.command.write.eq(1), queue.o.ready.eq(self.controller.write_next & (of == first) & self.pins.loaded),
        ]
        words.append(Mux(of == first, queue.o.payload, 0))
        return writer, reader

    def _loader(
        self, m: Module, serving: Signal, settled: Signal
    ) -> tuple[Signal, Signal, Value, Signal, Signal, Signal]:
        """Return whether the loader, which begins once the memory is ``settled``, writes or reads back, at which word,
        what it writes, whether it wants to, and whether what it has read has the CRC that came behind the image, or
        another one."""
        chip, controller, pins = self.plan.timing.chip, self.controller, self.pins
        words, halves = image_words(self.plan), 32 // chip.width
        takes = Signal()  # there is room for this word, and for one more: the link's logic hangs on it
        place, writes = Signal(range(chip.pages * chip.columns)), Signal(init=not self.plan.timing.read_only)
        asked = Signal()  # a burst is under way
        done = Signal(range(LOADED))
        moved = Signal()
        expected, taken = Signal(32), Signal(range(halves + 1))
        m.d.comb += [
            pins.load_ready.eq(takes),
            moved.eq(Mux(writes, controller.write_next, controller.read.valid & ~serving)),
        ]
        wants, good, bad = Signal(), Signal(), Signal()
        checks, checked = Signal(), Signal()
        takes_crc, reads = Signal(), Signal()
        m.d.comb += reads.eq((taken == halves) & ~checked)
        word: Value
        if self.plan.timing.read_only:  # no more than the CRC comes
            word = pins.load
            m.d.sync += takes.eq(~pins.filled & ~serving & settled)
            m.d.comb += [takes_crc.eq(pins.load_valid & takes & (taken != halves)), wants.eq(~asked & reads)]
        else:
            m.submodules.load_queue = queue = SyncFIFOBuffered(width=chip.width, depth=2 * LOADED)
            word = queue.r_data
            m.d.sync += takes.eq(~pins.filled & ~serving & settled & (queue.level < queue.depth - 1))
            m.d.comb += [
                queue.w_data.eq(pins.load), queue.w_en.eq(pins.load_valid & pins.load_ready),
                queue.r_en.eq((controller.write_next & ~serving) | takes_crc),
                takes_crc.eq(~writes & ~asked & (taken != halves) & queue.r_rdy),
                wants.eq(~asked & Mux(writes, queue.level >= LOADED, reads)),
            ]
        with m.If(wants):
            m.d.sync += asked.eq(1)
        with m.If(moved):
            m.d.sync += done.eq(done + 1)
            with m.If(done == LOADED - 1):
                m.d.sync += [asked.eq(0), place.eq(place + LOADED)]
                with m.If(place == words - LOADED):
                    m.d.sync += [place.eq(0), writes.eq(0), checked.eq(~writes)]
        with m.If(takes_crc):
            m.d.sync += [taken.eq(taken + 1), expected.eq(Cat(expected, word)[chip.width :])]
        m.submodules.crc = crc = CRC32_ISO_HDLC(data_width=chip.width).create()
        m.d.comb += [
            crc.start.eq(taken != halves), crc.data.eq(controller.read.data),
            crc.valid.eq(~writes & ~serving & controller.read.valid),
        ]
        m.d.sync += [
            checks.eq(checked),  # when the last word is in the sum
            good.eq(checks & (crc.crc == expected)), bad.eq(checks & (crc.crc != expected)),
        ]
        return writes, place, word, wants, good, bad


class _User:
    """What reads or writes bursts in turn: the ``command`` of the next one, its ``length``, whether it ``wants`` it (to
    be driven), and whether it may ``take`` it (likewise). Slots follow each other, ``slots`` of them; a reader has a
    queue of ``depth`` words behind it, of which ``free`` are, in front of ``output``."""

    def __init__(
        self, m: Module, core: WeightMemory, name: str, region: Bursts, slots: int, depth: int = 0,
        output: stream.Interface | None = None,
    ) -> None:
        self.name, self.depth, self.output = name, depth, output
        chip = core.plan.timing.chip
        self.wants, self.take = Signal(name=f"wants{name}"), Signal(name=f"take{name}")
        self.command = command = Signal(core.controller.command.payload.shape(), name=f"command{name}")
        self.length = length = Signal(range(region.burst + 1), name=f"length{name}")
        begins = self._begins(m, region, chip.pages)  # after the last burst
        left = Signal.like(begins.left, name=f"bursts_left{name}", init=begins.first - 1)
        is_last = Signal(init=begins.first == 1, name=f"is_last{name}")
        of_page = Signal(range(region.per_page), init=region.per_page - 1, name=f"of_page{name}")
        column = Signal(range(chip.columns), name=f"column{name}")
        page = Signal(range(max(2, chip.pages)), init=begins.start, name=f"page{name}")
        m.d.comb += [
            length.eq(Mux(is_last, begins.last, region.burst)), command.page.eq(page), command.column.eq(column),
            command.length.eq(length - 1),
        ]
        wraps: Value = is_last
        if slots != region.bursts:
            wraps = loop(m, f"slot{name}", slots, self.take)
        with m.If(self.take):
            m.d.sync += [left.eq(left - 1), is_last.eq(left == 1), of_page.eq(of_page - 1)]
            m.d.sync += column.eq(column + region.burst)
            with m.If(is_last):
                m.d.sync += [left.eq(begins.left), is_last.eq(begins.left == 0)]
            with m.If(of_page == 0):
                m.d.sync += [of_page.eq(region.per_page - 1), column.eq(0), page.eq(page + 1)]
            with m.If(wraps):
                m.d.sync += [of_page.eq(region.per_page - 1), column.eq(0), page.eq(begins.page)]
        m.d.comb += begins.taken.eq(self.take & is_last)
        if output is not None:
            self.free = Signal(range(depth + 1), init=depth, name=f"free{name}")
            popped = delayed(m, f"popped{name}", output.valid & output.ready, 1)
            m.d.sync += self.free.eq(self.free + popped - Mux(self.take, length, 0))

    def _begins(self, m: Module, region: Bursts, pages: int) -> _Begins:
        """Return where a region begins again; one with parts, where the next of them does: from a table, whose word is
        there long before the burst in front of it has ended."""
        taken = Signal(name=f"part_ends{self.name}")
        if not isinstance(region, Region) or region.parts is None:
            left = Const(region.bursts - 1, max(1, bits_for(region.bursts - 1)))
            return _Begins(left, Const(region.last), Const(region.page), region.bursts, region.page, taken)
        table, layout = table_of_parts(region, pages)
        m.submodules[f"parts{self.name}"] = rom = Rom.of_table(table, output_register=True)
        assert table.words is not None, "of numbers"
        beginning = layout.from_bits(table.words[-1])
        place = Signal(range(table.depth), name=f"part{self.name}")
        last = Signal(range(region.burst + 1), init=beginning.last, name=f"part_last{self.name}")
        row = layout(rom.data)
        m.d.comb += rom.addr.eq(place)
        with m.If(taken):
            m.d.sync += [place.eq(Mux(place == table.depth - 1, 0, place + 1)), last.eq(row.last)]
        return _Begins(row.left, last, row.page, beginning.left + 1, beginning.page, taken)


@dataclass(frozen=True)
class _Begins:
    """Where the bursts of a user begin behind the last one: ``left`` behind the first of them, the first ``page``.
    ``last``: the length of the last one before. ``first``, ``start``: the bursts and the page after a reset. ``taken``
    (to be driven): of the last burst a command is taken."""

    left: Value
    last: Value
    page: Value
    first: int
    start: int
    taken: Signal
