"""An engine for small devices: one element of a window at a time, by the weights of eight channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields as names_of
from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hdl_lib.arithmetic.adder_tree import Term, registered, shape_of
from hdl_lib.arithmetic.block_product import BytePair
from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import delayed, loop
from hdl_lib.engine.engine_program import BYTE
from hdl_lib.engine.serial_fields import WIDTH, SerialFields
from hdl_lib.engine.serial_program import SerialProgram
from hdl_lib.engine.window_walk import count_down, onward, window_walk
from hdl_lib.external.spram import SinglePortRam
from hdl_lib.memories.rom import Rom
from hdl_lib.memories.storage import check_depth
from hdl_lib.requantizers.shift_and_clamp import ShiftRounding, quotient
from hdl_lib.streams.output_queue import OutputQueue


@dataclass(frozen=True)
class _Phases:
    """What happens in a cycle. ``shifting``: a word of the program comes; ``setting``: an instruction begins;
    ``loading``: a word of the image comes; ``begin``: a block begins; ``heading``: a word of parameters is read, with
    ``headed`` the last one; ``step``: a step of a window; ``last``: the last one; ``pixel``: the next window follows;
    ``block_end``: the block ends, and with ``ended`` its layer; ``sending``: a word of the result is read; ``writing``:
    a word of results is written, and none is read."""

    shifting: Signal
    setting: Signal
    loading: Signal
    begin: Signal
    heading: Signal
    headed: Signal
    step: Signal
    last: Signal
    pixel: Signal
    block_end: Signal
    ended: Signal
    sending: Signal
    writing: Signal


class SerialEngine(wiring.Component):
    """Runs a program (:class:`hdl_lib.engine.serial_program.SerialProgram`) as
    :class:`hdl_lib.engine.layer_engine.LayerEngine` does, with maps in single-port RAM, and twice as many multipliers
    as a word of it has elements.

    Parameters
    ----------
    program: the layers, and what is where.
    input_shape, output_shape: of elements that come and leave, integer shapes of at most 8 bits; without a sign if the
    program has an offset for them, or of fewer bits.
    input_lanes, output_lanes: elements per beat, at most the program's ``lanes``; each beat is a word.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). The image's ``program.loaded`` words.
    w: In(stream of signed 8-bit weights, as many as ``program.width`` has). For each block ``program.header`` words,
    ``program.parameters`` for each row: its multiplier and above it its addend; then come the weights of each step, one
    for each row. (The upper half of those of a diagonal layer is 0.)
    o: Out(stream). The words that are sent.

    Timing
    ------
    One process, instruction by instruction, each after ``program.setting`` cycles. A load takes a word per cycle. A
    layer takes for each block: two cycles (for the first one: one), in the last of which all its weights are there;
    ``program.header`` cycles; at most ``program.steps`` for each pixel; ``program.gap``. What is sent is read at a word
    per cycle with a credit of the output queue, and shows ``latency`` cycles later. Weights are taken whenever there is
    room. :meth:`Program.pace` has all of it: hardware is never later.

    Ordering
    --------
    Frames leave in the order they came; the weights of a frame follow those of the one before it.
    """

    latency = 2
    """Cycles from the step that reads a word of the result to ``o.valid``."""

    def __init__(
        self, program: SerialProgram, input_shape: Shape, output_shape: Shape, *, input_lanes: int, output_lanes: int,
        depth: int,
    ) -> None:
        check_depth(depth)
        self.program, self.depth = program, depth
        self._fields = SerialFields(program)
        if program.setting_words != self._fields.words:
            raise ValueError(f"setting_words must be {self._fields.words}, not {program.setting_words}")
        ends = ("input", Shape.cast(input_shape), input_lanes), ("output", Shape.cast(output_shape), output_lanes)
        for (name, shape, lanes), offset in zip(ends, program.offsets, strict=True):
            if shape.width + (not shape.signed and not offset) > BYTE or not 1 <= lanes <= program.lanes:
                raise ValueError(
                    f"{name} must be signed, of at most {BYTE} bits, with 1 to {program.lanes} lanes, "
                    f"not {shape} and {lanes}"
                )
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(input_shape, input_lanes))),
                "w": In(stream.Signature(data.ArrayLayout(signed(BYTE), program.width // BYTE))),
                "o": Out(stream.Signature(data.ArrayLayout(output_shape, output_lanes))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        program = self.program
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        phases = _Phases(*(Signal(name=each.name) for each in names_of(_Phases)))
        now = self._elaborate_program(m, phases)
        block = Signal(range(max(layer.out_blocks for layer in program.layers) + 1), name="block")
        with m.If(phases.block_end):
            m.d.sync += block.eq(Mux(phases.ended, 0, block + now["out_words"]))

        # An element of the walk's word at a time; a diagonal layer has all of them at once.
        element, word_done = Signal(range(program.lanes), name="element"), Signal(name="word_done")
        source_block = block & now["diagonal"].replicate(len(block))
        origin = onward(now["source_place"], source_block, now["source_words"])
        walk = window_walk(m, now, phases.begin | phases.setting, origin, word_done | phases.sending, phases.pixel)
        final = Mux(walk.block_last, now["last_element"], program.lanes - 1)
        m.d.comb += [word_done.eq(phases.step & (element == final)), phases.last.eq(word_done & walk.taps_last)]
        with m.If(phases.step):
            m.d.sync += element.eq(Mux(word_done, 0, element + 1))

        weights, enough = self._elaborate_ring(m, now, phases, walk.pixel_last)
        self._elaborate_phases(m, phases, now, walk.pixel_last, element == 0, enough, queue)
        m.submodules.maps = ram = SinglePortRam(program.lanes * BYTE, 1 << bits_for(max(1, program.words - 1)))
        # The first step of a word reads it; it is kept for the others, in which results may be written.
        fresh = delayed(m, "fresh", phases.step & (element == 0), 1)
        word, kept = (Signal.like(ram.dq_o, name=name, reset_less=True) for name in ("word", "kept"))
        m.d.comb += word.eq(Mux(fresh, ram.dq_o, kept))
        m.d.sync += kept.eq(word)
        operands = self._elaborate_operands(m, now, word, element, walk.outside)
        update = Signal(name="multiplied_now")
        m.d.comb += update.eq(phases.step & (phases.last | ~now["maximum"]))
        if program.maxima:
            operands = self._elaborate_maxima(m, now, phases, operands)
        captured = delayed(m, "last", phases.last, program.sums)
        sums = self._elaborate_sums(m, operands, weights, delayed(m, "update", update, program.sums - 1), captured)
        made, second = self._elaborate_results(m, phases, now, captured, sums, weights)
        self._elaborate_memory(m, ram, phases, now, block, walk.place, made, second)

        m.d.comb += [queue.reserve.eq(phases.sending), queue.push.eq(delayed(m, "sending", phases.sending, 1))]
        for lane in range(len(queue.payload)):
            m.d.comb += Value.cast(queue.payload[lane]).eq(ram.dq_o.word_select(lane, BYTE) ^ program.offsets[1])
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m

    def _elaborate_program(self, m: Module, phases: _Phases) -> Mapping[str, Value]:
        """Return the numbers of the instruction, whose words have come one by one."""
        fields = self._fields
        m.submodules.program = rom = Rom.of_table(fields.table)
        held = Signal(fields.words * WIDTH, name="instruction", reset_less=True)
        now = fields.of(held)
        place = Signal.like(rom.addr, name="program_place")
        came = delayed(m, "word_came", phases.shifting, 1)
        m.d.comb += rom.addr.eq(place)
        with m.If(phases.shifting):
            m.d.sync += place.eq(place + 1)
        with m.If(came):
            m.d.sync += held.eq(Cat(held[WIDTH:], rom.data))
        # The program begins again behind its last instruction.
        with m.If(phases.setting & now["is_last"]):
            m.d.sync += place.eq(0)
        return now

    def _elaborate_phases(
        self, m: Module, phases: _Phases, now: Mapping[str, Value], pixel_last: Value, reads: Value, enough: Value,
        queue: OutputQueue,
    ) -> None:
        """Go through the instructions. ``reads``: a step would read a word."""
        program = self.program
        shift_last = loop(m, "shift", program.setting_words, phases.shifting)
        gap, running = Signal(name="gap"), Signal(name="running")
        gap_last = loop(m, "gap", program.gap, gap)
        words_last = count_down(m, "words", now["words_left"], phases.setting, phases.loading | phases.sending)
        channels_last = count_down(m, "channels", now["channels_left"], phases.setting, phases.block_end)
        done = Signal(name="window_done")
        waited = count_down(m, "idle", now["idle_left"], phases.setting, done)
        with m.If(phases.last):
            m.d.sync += done.eq(1)
        with m.Elif(phases.pixel):
            m.d.sync += done.eq(0)
        m.d.comb += [phases.step.eq(running & ~done & ~(phases.writing & reads)), phases.pixel.eq(done & waited)]
        m.d.comb += phases.ended.eq(channels_last)
        with m.FSM(name="phase"):
            with m.State("fetch"):
                m.d.comb += phases.shifting.eq(1)
                with m.If(shift_last):
                    m.next = "fetched"
            with m.State("fetched"):
                m.next = "set"
            with m.State("set"):
                m.d.comb += phases.setting.eq(1)
                m.next = "wait"
                with m.If(now["loads"]):
                    m.next = "load"
                with m.If(now["sends"]):
                    m.next = "send"
            with m.State("load"):
                m.d.comb += [self.i.ready.eq(1), phases.loading.eq(self.i.valid)]
                with m.If(self.i.valid & words_last):
                    m.next = "fetch"
            with m.State("wait"):
                m.d.comb += phases.begin.eq(enough)
                with m.If(enough):
                    m.next = "head"
            with m.State("head"):
                m.d.comb += phases.heading.eq(1)
                with m.If(phases.headed):
                    m.next = "run"
            with m.State("run"):
                m.d.comb += running.eq(1)
                with m.If(phases.pixel & pixel_last):
                    m.next = "gap"
            with m.State("gap"):
                m.d.comb += [gap.eq(1), phases.block_end.eq(gap_last)]
                with m.If(gap_last):
                    m.next = "wait"
                    with m.If(channels_last):
                        m.next = "fetch"
            with m.State("send"):
                m.d.comb += phases.sending.eq(queue.available)
                with m.If(queue.available & words_last):
                    m.next = "fetch"

    def _elaborate_ring(
        self, m: Module, now: Mapping[str, Value], phases: _Phases, pixel_last: Value
    ) -> tuple[Value, Value]:
        """Take words of weights while there is room. Return the one of a step, or of parameters, a cycle later (with
        maxima two), and whether those of a block are there."""
        program, needed = self.program, now["needed"]
        depth, beats = program.ring, program.beats_of_word
        beat, place = Signal(range(beats), name="weight_beat"), Signal(range(depth), name="weight_place")
        filled, full = Signal(range(depth + 1), name="filled"), Signal(name="ring_full")
        accept, word_done = Signal(name="weight_accept"), Signal(name="weight_word_done")
        m.d.comb += [
            full.eq(filled[-1]), self.w.ready.eq(~full), accept.eq(self.w.valid & ~full),
            word_done.eq(accept & (beat == beats - 1)),
        ]
        with m.If(accept):
            m.d.sync += beat.eq(Mux(word_done, 0, beat + 1))
        with m.If(word_done):
            m.d.sync += place.eq(place + 1)
        freed = Signal.like(filled, name="words_freed")
        m.d.comb += freed.eq(needed & phases.block_end.replicate(len(needed)))
        m.d.sync += filled.eq(filled - freed + word_done)

        step, first = (Signal(range(depth), name=name) for name in ("weight_step", "weight_first"))
        with m.If(phases.heading):
            m.d.sync += first.eq(step + 1)
        with m.If(phases.pixel & ~pixel_last):
            m.d.sync += step.eq(first)
        with m.Elif(phases.heading | Mux(now["same"], phases.pixel, phases.step)):
            m.d.sync += step.eq(step + 1)
        columns, read_place = [], delayed(m, "weight_step", step, int(program.maxima), reset=False)
        for number in range(beats):
            column = memory.Memory(
                shape=program.width, depth=depth, init=[], attrs={"no_rw_check": 1, "ram_style": "block"}
            )
            m.submodules[f"weights_{number}"] = column
            write, read = column.write_port(), column.read_port()
            m.d.comb += [
                write.addr.eq(place), write.data.eq(Value.cast(self.w.payload)), write.en.eq(accept & (beat == number)),
                read.addr.eq(read_place), read.en.eq(1),
            ]
            columns.append(read.data)
        enough = Signal(name="weights_enough")
        m.d.sync += enough.eq((filled >= needed) & ~phases.block_end)
        return Cat(*columns), enough

    def _elaborate_operands(
        self, m: Module, now: Mapping[str, Value], word: Value, element: Value, outside: Value
    ) -> list[Value]:
        """Return what each row multiplies, a cycle after a step: an element for all, outside of the map what stands
        there; or of a diagonal layer the row's own."""
        lanes = self.program.lanes
        beyond, own = Signal(name="beyond"), Signal(name="own")
        chosen = Signal.like(element, name="chosen")
        m.d.sync += [beyond.eq(outside), own.eq(now["diagonal"] & ~outside), chosen.eq(element)]
        common = Mux(beyond, now["padding"], word.word_select(chosen, BYTE))
        return [Mux(own, word.word_select(row % lanes, BYTE), common) for row in range(self.program.rows)]

    def _elaborate_maxima(
        self, m: Module, now: Mapping[str, Value], phases: _Phases, operands: list[Value]
    ) -> list[Value]:
        """Return what each row multiplies, a cycle later: of a layer of maxima a window's greatest elements so far."""
        first = Signal(name="tap_first", init=1)
        with m.If(phases.begin | phases.pixel):
            m.d.sync += first.eq(1)
        with m.Elif(phases.step):
            m.d.sync += first.eq(0)
        alone = Signal(name="element_alone")
        m.d.comb += alone.eq(delayed(m, "tap_first", first, 1) | ~now["maximum"])
        stepped = delayed(m, "stepped", phases.step, 1)
        found: list[Value] = []
        for row, operand in enumerate(operands):
            best = Signal(signed(BYTE), name=f"greatest_{row}", reset_less=True)
            with m.If(stepped & (alone | (operand.as_signed() > best)) if row < self.program.lanes else stepped):
                m.d.sync += best.eq(operand)
            found.append(best)
        return found

    def _elaborate_sums(
        self, m: Module, operands: list[Value], weights: Value, update: Value, captured: Value
    ) -> list[Signal]:
        """Return the sums of each row, ``program.sums`` cycles after a step; after one with ``captured`` they are 0."""
        sums = []
        for first in range(0, len(operands), 2):
            m.submodules[f"products_{first}"] = pair = BytePair()
            for place in range(2):
                m.d.comb += [
                    pair.a[place].eq(operands[first + place].as_signed()),
                    pair.b[place].eq(weights.word_select(first + place, BYTE).as_signed()),
                ]
                total = Signal(signed(self.program.forms.sum_bits), name=f"sum_{first + place}")
                with m.If(captured):
                    m.d.sync += total.eq(0)
                with m.Elif(update):
                    m.d.sync += total.eq(total + pair.p[place])
                sums.append(total)
        return sums

    def _elaborate_parameters(
        self, m: Module, phases: _Phases, weights: Value, row: Value, later: Value, is_later: Value
    ) -> tuple[Value, Value]:
        """Keep a block's parameters, which come in front of its weights, in one memory. Return the multiplier of a
        ``row``, or with ``is_later`` the addend of ``later``, a row, a cycle later."""
        program, forms, later_by = self.program, self.program.forms, 1 + self.program.maxima
        number = Signal(range(program.header), name="parameter")
        m.d.comb += phases.headed.eq(number == program.header - 1)
        with m.If(phases.heading):
            m.d.sync += number.eq(Mux(phases.headed, 0, number + 1))
        bits = max(forms.multiplier_bits, forms.addend_bits)
        m.submodules.parameters = stored = memory.Memory(
            shape=bits, depth=program.header, init=[], attrs={"no_rw_check": 1, "ram_style": "block"}
        )
        write, read = stored.write_port(), stored.read_port()
        m.d.comb += [
            write.en.eq(delayed(m, "heading", phases.heading, later_by)), write.data.eq(weights[:bits]),
            write.addr.eq(delayed(m, "parameter", number, later_by, reset=False)),
            read.addr.eq(Cat(is_later, Mux(is_later, later, row))), read.en.eq(1),
        ]
        return read.data[: forms.multiplier_bits].as_signed(), read.data[: forms.addend_bits].as_signed()

    def _elaborate_results(
        self, m: Module, phases: _Phases, now: Mapping[str, Value], captured: Value, sums: list[Signal], weights: Value
    ) -> tuple[Value, Value]:
        """Send sums through the requantizer, one in two cycles; return a word of results, there in a cycle with
        ``writing``, and whether it is the second one of a window."""
        program, forms, lanes = self.program, self.program.forms, self.program.lanes
        count = Signal(range(2 * program.rows), name="result_count")  # twice the row
        row, begins = count[1:], Signal(name="result_begins")
        busy, word_ends = Signal(name="results_leave"), Signal(name="word_ends")
        m.d.comb += [
            busy.eq(captured | (count != 0)), begins.eq(busy & ~count[0]),
            word_ends.eq(begins & (row % lanes == lanes - 1)),
        ]
        last = count[: bits_for(2 * lanes - 1)].all() & (now["diagonal"] | count[-1])
        with m.If(busy):
            m.d.sync += count.eq(Mux(last, 0, count + 1))
        # Of a result that begins at 0: its multiplier is there at 1, the products of parts at 2, their sum at 3, the
        # addend at 4, the shifted sum at 5 (rounded, a cycle later), and it is in a word at 6.
        at = [begins, *(Signal(name=f"result_at_{cycle}") for cycle in range(1, program.result + 1))]
        m.d.sync += [later.eq(before) for before, later in pairwise(at)]
        chain = Signal(program.rows * forms.sum_bits, name="sums", reset_less=True)
        with m.If(captured | at[2]):
            m.d.sync += chain.eq(Mux(captured, Cat(*sums), chain >> forms.sum_bits))
        later = delayed(m, "addend_row", row, 3, reset=False)
        multiplier, addend = self._elaborate_parameters(m, phases, weights, row, later, at[3])

        product = self._product(m, chain[: forms.sum_bits].as_signed(), multiplier)
        scaled = Signal(shape_of(product.low, product.high), name="scaled", reset_less=True)
        with m.If(at[2]):
            m.d.sync += scaled.eq(product.value)
        low, high = interval(signed(forms.addend_bits))
        whole = Term(scaled + addend, product.low + low, product.high + high)
        if forms.rounding == ShiftRounding.FLOOR:
            shifted = registered(m, "shifted", quotient(m, "of_total", whole, forms.shift, forms.rounding))
        else:
            shifted = quotient(m, "of_total", registered(m, "whole", whole), forms.shift, forms.rounding)
        value = Value.cast(shifted.value)
        made = Signal(lanes * BYTE, name="made", reset_less=True)
        limited = Signal(signed(BYTE), name="limited")
        m.d.comb += limited.eq(Mux(value < now["low"], now["low"], Mux(value > now["high"], now["high"], value)))
        with m.If(at[program.result - 1]):
            m.d.sync += made.eq(Cat(made[BYTE:], limited))

        # Behind the last word of an odd number of them comes none.
        second = row >= lanes
        word_made = word_ends & ~(second & now["odd"] & phases.ended)
        m.d.comb += phases.writing.eq(delayed(m, "word_ended", word_made, program.result))
        return made, delayed(m, "second_ended", second, program.result, reset=False)

    def _product(self, m: Module, total: Value, multiplier: Value) -> Term:
        """Return the product, whose parts are in registers, a cycle later."""
        product = self.program.forms.scaling
        if product.wide is not None:
            return product.wide.at_once(m, "scaled", total, multiplier)
        return registered(m, "scaled_part", Term(total * multiplier, *product.products), keep=True)

    def _elaborate_memory(
        self, m: Module, ram: SinglePortRam, phases: _Phases, now: Mapping[str, Value], block: Value, source: Value,
        made: Value, second: Value,
    ) -> None:
        """Read words of the source, and write those of the image and of results."""
        place = Signal(bits_for(self.program.words), name="target_place")
        window_ends = second | (now["out_words"] == 1) | (now["odd"] & phases.ended)
        with m.If(phases.begin | phases.setting):
            m.d.sync += place.eq(now["target_place"] + block)
        with m.Elif(phases.loading | (phases.writing & window_ends)):
            m.d.sync += place.eq(onward(place, now["target_pixel"], now["target_words"]))
        image = Signal(len(made), name="image_word")
        for lane in range(len(self.i.payload)):
            element = Signal(signed(BYTE), name=f"image_{lane}")
            m.d.comb += [
                element.eq(self.i.payload[lane]), image.word_select(lane, BYTE).eq(element ^ self.program.offsets[0])
            ]
        writes = phases.loading | phases.writing
        target = now["target_first"] + place + (second & phases.writing)
        m.d.comb += [
            ram.en.eq(1), ram.we.eq(writes), ram.dq_i.eq(Mux(phases.loading, image, made)),
            ram.a.eq(Mux(writes, target, now["source_first"] + source)),
        ]
