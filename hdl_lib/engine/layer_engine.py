"""An engine that computes one layer after the other on the same multipliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as names_of

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.lane_sums import gathered
from hdl_lib.arithmetic.packed_product import borrowed
from hdl_lib.blocks import delayed, loop
from hdl_lib.engine.engine_program import AHEAD, BYTE, READ, Program
from hdl_lib.engine.fields import Fields
from hdl_lib.engine.finish import elements, first_stage, looked_up, second_stage
from hdl_lib.engine.kept_words import kept_words
from hdl_lib.engine.weight_ring import WeightRing
from hdl_lib.engine.window_walk import count_down, one_on, onward_soon, window_walk
from hdl_lib.external.queue_ends import QueueEnds
from hdl_lib.matrices.dot_product import ProductSum
from hdl_lib.matrices.mvu_rows import connect_rows, parts_of
from hdl_lib.memories.buffer_memory import BufferMemory
from hdl_lib.memories.rom import Rom
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue

_SOONER = 4  # cycles by which a block's first place is there before it could be needed


@dataclass(frozen=True)
class _Phases:
    """What happens in a cycle. ``taking``: a word of a map may come; ``loading``: one does; ``setting``: a layer
    begins; ``begin``: a block does; ``heading``: a word of multipliers and addends is read, the first one as the block
    begins; ``running``: a step of a window; ``tap``: a word of it is read; ``pixel``: its last step; ``block_end``: the
    block ends; ``sending``: a word is read that leaves."""

    taking: Signal
    loading: Signal
    setting: Signal
    begin: Signal
    heading: Signal
    running: Signal
    tap: Signal
    pixel: Signal
    block_end: Signal
    sending: Signal


@dataclass(frozen=True)
class _Outside:
    """The queue of words that go to the memory outside, and the stream of those that come from there."""

    queue: OutputQueue
    o: stream.Interface


class LayerEngine(wiring.Component):
    """Runs a program: takes an image, computes its layers in order, and sends what the last one made.

    Parameters
    ----------
    program: the layers, and what is where (:class:`hdl_lib.engine.engine_program.Program`).
    input_shape, output_shape: of elements that come and leave, integer shapes of at most 8 bits.
    input_lanes, output_lanes: elements per beat, at most the program's ``lanes``; each beat is a word. One of the image
    has ``program.pixels_of_word`` pixels, and its word the ``program.overlap`` ones of the row before them, too.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). The image's ``program.loaded`` words.
    w: In(stream of weights, as many as ``program.width`` has). For each word of the target's pixels of each layer
    a block, as :class:`hdl_lib.engine.weight_ring.WeightRing` has it: in its header, of ``program.header`` words, rows
    have a channel's multiplier and above it its addend; then come weights word by word, as windows are gone through:
    those of a row for all lanes, row after row.
    o: Out(stream). The words that are sent.
    memory_i (out), memory_o (in), if maps wait outside: streams of ``program.width`` bits to a queue in the memory, and
    from there; ``program.beats_of_map_word`` of them are a word.

    Timing
    ------
    One process, instruction by instruction, each after four cycles. A load takes a beat per cycle, and so does what is
    sent outside. A layer takes for each word of its target's pixels: two cycles (for the first one: one), in the last
    of which all weights of this block are there; ``program.header`` cycles; ``program.steps`` for each pixel;
    ``program.between``, or behind the last one ``program.gap``. What is sent is read at a word per cycle with a credit
    of the output queue, and shows ``latency`` cycles later. Weights are taken whenever the ring has room, whatever
    happens else: the words of a block are free when it ends.
    :class:`hdl_lib.engine.pace.Pace` has all of it.

    Ordering
    --------
    Frames leave in the order they came; the weights of a frame follow those of the one before it.
    """

    latency = READ + 1
    """Cycles from the step that reads a word of the result to ``o.valid``."""

    def __init__(
        self, program: Program, input_shape: Shape, output_shape: Shape, *, input_lanes: int, output_lanes: int,
        depth: int,
    ) -> None:
        check_depth(depth)
        self.program, self.depth = program, depth
        self.shapes = Shape.cast(input_shape), Shape.cast(output_shape)
        for name, shape, lanes in zip(("input", "output"), self.shapes, (input_lanes, output_lanes), strict=True):
            if shape.width > BYTE or not 1 <= lanes <= program.lanes:
                raise ValueError(
                    f"{name} must have at most {BYTE} bits and 1 to {program.lanes} lanes, not {shape.width} and "
                    f"{lanes}"
                )
        self.pixel, rest = divmod(input_lanes, program.pixels_of_word)
        pixels = program.pixels_of_word + program.overlap
        if pixels > 1 and (rest or self.pixel * pixels > program.lanes):
            raise ValueError(
                f"input must have lanes for {program.pixels_of_word} pixels, with {program.overlap} more at most "
                f"{program.lanes}, not {input_lanes}"
            )
        bits = program.weight_bits
        members = {
            "i": In(stream.Signature(data.ArrayLayout(input_shape, input_lanes))),
            "w": In(stream.Signature(data.ArrayLayout(signed(bits), program.width // bits))),
            "o": Out(stream.Signature(data.ArrayLayout(output_shape, output_lanes))),
        }
        if program.levels:
            words = stream.Signature(program.width)
            members |= {"memory_i": Out(words), "memory_o": In(words)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        program, lanes = self.program, self.program.lanes
        fields = Fields(program)
        m.submodules.program = rom = Rom.of_table(fields.table, output_register=True)
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        memory = BufferMemory("words", lanes * BYTE, program.words)
        ring = WeightRing(program)
        # What reads the numbers is all over the part: the way there has a cycle to itself.
        held = Signal.like(rom.data, name="instruction_word", reset_less=True)
        m.d.sync += held.eq(rom.data)
        now = fields.of(held)
        phases = _Phases(*(Signal(name=each.name) for each in names_of(_Phases)))
        block = Signal(range(max(layer.out_blocks for layer in program.layers)), name="block")
        origin, source_last = (_place(now["source_place"], name) for name in ("origin", "source_last"))
        m.d.sync += source_last.eq(now["source_words"] - 1)
        with m.If(phases.setting):
            m.d.sync += [block.eq(0), origin.eq(now["source_place"])]
        with m.Elif(phases.block_end):
            m.d.sync += block.eq(block + 1)
            with m.If(now["diagonal"]):
                m.d.sync += origin.eq(one_on(origin, source_last))
        step = window_walk(m, now, phases.begin, origin, phases.tap, phases.pixel)
        taps_last = Signal(name="taps_last_now")
        m.d.comb += taps_last.eq(phases.tap & step.taps_last)
        enough = ring.write(m, self.w, now["needed"], phases.block_end)
        outside = self._elaborate_outside(m) if program.levels else None
        self._elaborate_phases(m, phases, now, taps_last, step.pixel_last, enough, rom.addr, queue, outside)


        # The word of a step, READ cycles later; beside it its weights.
        adding = Signal(name="adding")
        place, sent = (_place(now["source_place"], name) for name in ("read_place", "sent_place"))
        padded = Signal()
        first, address = (
            Signal(memory.address_width, name=f"read_{name}", reset_less=True) for name in ("first", "address")
        )
        with m.If(phases.setting):
            m.d.sync += sent.eq(now["source_place"])
        with m.Elif(phases.sending):
            m.d.sync += sent.eq(one_on(sent, source_last))
        m.d.comb += padded.eq(phases.tap & step.outside)
        m.d.sync += [
            place.eq(Mux(phases.sending, sent, step.place)), first.eq(now["source_first"]), address.eq(first + place)
        ]
        if program.forms.adds:
            m.d.sync += adding.eq(taps_last & now["added"])
            other = _walked(m, "other", now, block, phases.begin, phases.pixel)
            with m.If(adding):
                m.d.sync += [place.eq(other), first.eq(now["other_first"])]
        # A large memory is many block RAMs all over the part: the choice among them has cycles to itself.
        word = Signal(lanes * BYTE, name="word", reset_less=True)
        padding, chosen = now["padding"].replicate(lanes), memory.read_in_steps(m, address)
        m.d.sync += word.eq(Mux(delayed(m, "padded", padded, READ - 1), padding, chosen))
        self._elaborate_output(m, queue, phases.sending, word, now, outside)
        weights = self._elaborate_weights(m, now, ring, phases, step.pixel_last)
        whole = Signal(name="sum_whole")
        m.d.comb += whole.eq(taps_last & step.whole)
        update = Signal(name="multiplied_now")
        m.d.comb += update.eq(phases.tap & (step.taps_last | ~now["maximum"]) if program.maxima else phases.tap)
        multiplied = self._elaborate_multiplied(m, now, phases, word)
        results = self._elaborate_sums(m, now, update, taps_last, multiplied, weights)
        heading = delayed(m, "heading", phases.heading, program.read - 1)
        added = Signal.like(word, name="added_word")
        with m.If(delayed(m, "adding", adding, READ)):
            m.d.sync += added.eq(word)
        captured = delayed(m, "captured", whole, program.sums)
        done, made = self._elaborate_results(m, now, captured, results, heading, weights, added)
        self._elaborate_writes(m, memory, phases, now, len(block), done, made, outside)
        return m

    def _elaborate_outside(self, m: Module) -> _Outside:
        """Lead words to the memory outside, and from there."""
        word = self.program.lanes * BYTE
        m.submodules.outside = ends = QueueEnds(data.ArrayLayout(word, 1), self.program.beats_of_map_word)
        m.submodules.outside_queue = queue = OutputQueue(word, AHEAD)
        m.d.comb += [
            ends.i.payload[0].eq(queue.o.payload), ends.i.valid.eq(queue.o.valid), queue.o.ready.eq(ends.i.ready),
        ]
        wiring.connect(m, wiring.flipped(self.memory_i), ends.memory_i)
        wiring.connect(m, wiring.flipped(self.memory_o), ends.memory_o)
        return _Outside(queue, ends.o)

    def _elaborate_phases(
        self, m: Module, phases: _Phases, now: Mapping[str, Value], taps_last: Value, pixel_last: Value,
        enough: Value, number: Value, queue: OutputQueue, outside: _Outside | None,
    ) -> None:
        """Go through the instructions; ``number``: of the one that is carried out."""
        program = self.program
        comes, goes = self.i.valid, queue.available
        m.d.comb += self.i.ready.eq(phases.taking)
        if outside is not None:
            there = now["outside"]
            comes, goes = Mux(there, outside.o.valid, comes), Mux(there, outside.queue.available, goes)
            m.d.comb += [self.i.ready.eq(phases.taking & ~there), outside.o.ready.eq(phases.taking & there)]
        m.d.comb += phases.loading.eq(phases.taking & comes)
        head_last = loop(m, "head", program.header, phases.heading)
        waiting, gap, sends = (Signal(name=name) for name in ("waiting", "gap", "sends"))
        gap_last, ended, begins = Signal(), Signal(name="ended"), waiting & enough
        words_last = count_down(m, "words", now["words_left"], phases.setting, phases.loading | phases.sending)
        steps_last = count_down(m, "steps", now["steps_left"], phases.begin, phases.running)
        channels_last = count_down(m, "channels", now["channels_left"], phases.setting, phases.block_end)
        run_ends = phases.pixel & pixel_last
        gap_left = Mux(channels_last, program.gap - 1, program.between - 1)
        m.d.comb += gap_last.eq(count_down(m, "gap", gap_left, run_ends, gap))
        present = Signal.like(number, name="instruction")
        m.d.comb += number.eq(present)
        with m.If(ended):
            m.d.sync += present.eq(Mux(now["is_last"], 0, present + 1))
        m.d.comb += [
            phases.pixel.eq(phases.running & steps_last), phases.block_end.eq(gap & gap_last),
            phases.sending.eq(sends & goes),
            ended.eq(((phases.loading | phases.sending) & words_last) | (phases.block_end & channels_last)),
        ]
        # Each phase has a register of its own: all else is a gate or two behind them.
        fetching = Signal(program.setting - 1, init=1)
        head_ends = phases.heading & head_last
        is_layer = ~(now["loads"] | now["sends"])
        m.d.sync += [
            Cat(fetching, phases.setting).eq(Cat(ended, fetching)),
            phases.taking.eq((phases.setting & now["loads"]) | (phases.taking & ~ended)),
            sends.eq((phases.setting & now["sends"]) | (sends & ~ended)),
            waiting.eq((phases.setting & is_layer) | (phases.block_end & ~channels_last) | (waiting & ~enough)),
            phases.begin.eq(begins), phases.heading.eq(begins | (phases.heading & ~head_last)),
            phases.running.eq(head_ends | (phases.running & ~run_ends)), gap.eq(run_ends | (gap & ~gap_last)),
            # Steps of a window: its words, the one that is added, and none until the next window.
            phases.tap.eq(head_ends | (phases.pixel & ~pixel_last) | (phases.tap & ~taps_last)),
        ]

    def _elaborate_output(
        self, m: Module, queue: OutputQueue, sending: Value, word: Value, now: Mapping[str, Value],
        outside: _Outside | None,
    ) -> None:
        """Send words that are read."""
        here = sending
        if outside is not None:
            here, there = sending & ~now["outside"], sending & now["outside"]
            m.d.comb += [
                outside.queue.reserve.eq(there), outside.queue.push.eq(delayed(m, "sending_outside", there, READ)),
                outside.queue.payload.eq(word),
            ]
        m.d.comb += [queue.reserve.eq(here), queue.push.eq(delayed(m, "sending", here, READ))]
        for lane in range(len(queue.payload)):
            m.d.comb += Value.cast(queue.payload[lane]).eq(word.word_select(lane, BYTE))
        wiring.connect(m, wiring.flipped(self.o), queue.o)

    def _elaborate_multiplied(self, m: Module, now: Mapping[str, Value], phases: _Phases, word: Value) -> list[Value]:
        """Return the word whose elements are multiplied, ``program.read`` cycles after its step, and where windows
        slide those of the columns before it."""
        program = self.program
        if not program.columns:
            return [self._elaborate_maxima(m, now, phases, word)]
        before = kept_words(m, word, program.columns, phases.begin | phases.pixel, phases.tap, READ)
        newest = self._elaborate_maxima(m, now, phases, word)
        if not program.maxima:
            newest = Signal.like(word, name="newest", reset_less=True)
            m.d.sync += newest.eq(word)
        return [newest, *before]

    def _elaborate_maxima(self, m: Module, now: Mapping[str, Value], phases: _Phases, word: Value) -> Value:
        """Return a word, or where there are layers of maxima a cycle later: in these the greatest elements so far of a
        window."""
        program = self.program
        if not program.maxima:
            return word
        first = Signal(name="tap_first", init=1)
        with m.If(phases.begin | phases.pixel):
            m.d.sync += first.eq(1)
        with m.Elif(phases.tap):
            m.d.sync += first.eq(0)
        alone = Signal(name="word_alone")
        m.d.comb += alone.eq(delayed(m, "tap_first", first, READ) | ~now["maximum"])
        best = Signal.like(word, name="greatest")
        both = (elements(each, program.lanes, now["signed"]) for each in (word, best))
        for lane, (new, old) in enumerate(zip(*both, strict=True)):
            with m.If(alone | (new > old)):
                m.d.sync += best.word_select(lane, BYTE).eq(new[:BYTE])
        return best

    def _elaborate_weights(
        self, m: Module, now: Mapping[str, Value], ring: WeightRing, phases: _Phases, pixel_last: Value
    ) -> Value:
        """Return the word of weights of a step, ``program.read`` cycles later: those of a block over and over, for each
        window."""
        place, first = (Signal(range(self.program.ring), name=name) for name in ("weight_step", "weight_first"))
        with m.If(phases.heading):
            m.d.sync += first.eq(place + 1)
        with m.If(phases.pixel & ~pixel_last):
            m.d.sync += place.eq(first)
        with m.Elif(phases.heading | (Mux(now["same"], phases.pixel, phases.tap) if "same" in now else phases.tap)):
            m.d.sync += place.eq(place + 1)
        read = ring.read(m, delayed(m, "weight_step", place, self.program.read - 3, reset=False))
        near = Signal(len(read), name="weights_near", reset_less=True)
        m.d.sync += near.eq(read)
        return near

    def _elaborate_sums(
        self, m: Module, now: Mapping[str, Value], updating: Value, taps_last: Value, words: list[Value], weights: Value
    ) -> list[Value]:
        """Return the sums of a window, ``program.sums`` cycles after its last step."""
        program, hard, soft = self.program, self.program.row, self.program.soft_row
        columns = [elements(word, program.lanes, now["signed"]) for word in words]
        stages = program.sums - 1
        update, last = delayed(m, "update", updating, stages - 1), delayed(m, "last", taps_last, stages - 1)
        # Products in look-up tables are ready sooner: what they are made of waits.
        sooner = hard.operand_latency + hard.latency - soft.operand_latency - soft.latency
        later = sooner + hard.weight_lead - soft.weight_lead + soft.operand_latency - hard.operand_latency
        shapes = signed(program.weight_bits), signed(program.forms.sum_bits)
        of_hard = (program.lanes - program.soft) * program.lanes * program.weight_bits
        results: list[Value] = []
        for name, row, count, packing, cycles, part in (
            ("hard", hard, program.lanes - program.soft, program.packing, (0, 0), self._packed(weights[:of_hard])),
            ("soft", soft, program.soft, None, (sooner, later), weights[of_hard:]),
        ):
            if not count:
                continue
            m.submodules[name] = rows = Module()
            pairs = program.pairs if packing else 0
            operands = self._elaborate_operands(m, now, name, row, count, pairs, columns, cycles[0])
            taken = operands if isinstance(operands, Mapping) else operands[0]
            layouts = {each: value.shape() for each, value in taken.items()}
            parts = parts_of(row, count, layouts, *shapes, True, packing)
            there = delayed(m, f"{name}_weights", part, cycles[1], reset=False)
            results += connect_rows(rows, parts, operands, there, update, last)
        return results

    def _packed(self, weights: Value) -> Value:
        """Return the rows' weights as multiplier blocks take them: those of two rows side by side where they share
        blocks."""
        program, packing = self.program, self.program.packing
        if packing is None:
            return weights
        bits, of_row = program.weight_bits, program.lanes * program.weight_bits
        found: list[Value] = []
        for pair in range(program.pairs):
            rows = [weights.word_select(2 * pair + place, of_row) for place in range(2)]
            for lane in range(program.lanes):
                low, high = (row.word_select(lane, bits).as_signed() for row in rows)
                found += [low, borrowed(high, low)[: packing.high_shape.width]]
        return Cat(*found, weights[2 * program.pairs * of_row :])

    def _elaborate_operands(
        self, m: Module, now: Mapping[str, Value], name: str, row: ProductSum, count: int, pairs: int,
        columns: list[list[Value]], cycles: int,
    ) -> Mapping[str, data.View] | Sequence[Mapping[str, data.View]]:
        """Return what ``count`` rows, of which so many ``pairs`` share blocks, multiply by their weights, of elements
        some cycles ago: all lanes, the same for all rows. Where windows slide, each row of a diagonal layer has those
        of its channel in lanes of its own."""
        first = 0 if name == "hard" else self.program.lanes - self.program.soft
        late = [
            [delayed(m, f"{name}_{number}_{lane}", x, cycles, reset=False) for lane, x in enumerate(each)]
            for number, each in enumerate(columns)
        ]
        if not self.program.columns:
            return gathered(m, [row.operand(m, f"{name}_input{lane}", x) for lane, x in enumerate(late[0])])
        parts = [range(row, row + 2) for row in range(0, 2 * pairs, 2)]
        parts += [range(row, row + 1) for row in range(2 * pairs, count)]
        diagonal = Signal(len(parts), name=f"{name}_diagonal", reset_less=True)  # each part has its own
        m.d.sync += diagonal.eq(now["diagonal"].replicate(len(parts)))
        least = len(columns) * min(map(len, parts))
        others = [row.operand(m, f"{name}_input{lane}", x) for lane, x in enumerate(late[0]) if lane >= least]
        found = []
        for place, part in enumerate(parts):
            own = [each[first + channel] for channel in part for each in late]
            taken = [
                row.operand(m, f"{name}_input{lane}_{place}", Mux(diagonal[place], x, late[0][lane]))
                for lane, x in enumerate(own)
            ]
            rows = Module()
            m.submodules[f"{name}_operands_{place}"] = rows
            found.append(gathered(rows, [*taken, *others[len(taken) - least :]]))
        return found

    def _elaborate_results(
        self, m: Module, now: Mapping[str, Value], captured: Value, results: list[Value], heading: Value,
        weights: Value, added: Signal,
    ) -> tuple[Value, Value]:
        """Send the ``results`` of a cycle with ``captured``, one after the other, through both stages; return whether
        a word is complete, and that word. ``heading``: in the next cycle ``weights`` are multipliers and addends."""
        program, forms, lanes = self.program, self.program.forms, self.program.lanes
        together = program.together
        chain = Signal(lanes * forms.sum_bits, name="sums", reset_less=True)
        left = Signal(lanes // together, name="sums_left")
        # The last ones stay: zeros behind them would be resets, with logic in front that crosses the part.
        moved = together * forms.sum_bits
        with m.If(captured):
            m.d.sync += [chain.eq(Cat(*(Value.cast(result) for result in results))), left.eq(~0)]
        with m.Else():
            m.d.sync += [chain.eq(Cat(chain[moved:], chain[-moved:])), left.eq(left >> 1)]
        # Each result takes its channel's parameters, which go round. Whether they change is in a register: they are all
        # over the part.
        bits, size = forms.multiplier_bits, forms.multiplier_bits + forms.addend_bits
        of_row = lanes * program.weight_bits
        shape = program.header * of_row
        parameters = [Signal(shape, name=f"parameters_{row}", reset_less=True) for row in range(lanes)]
        comes, change = (Signal(name=f"parameters_{name}", reset_less=True) for name in ("come", "change"))
        m.d.sync += [comes.eq(heading), change.eq(heading | captured | left[1:2].any())]
        turned = Cat(*(row[:size] for row in parameters)).rotate_right(together * size)
        with m.If(change):
            for place, row in enumerate(parameters):
                there = Cat(row[of_row:], weights.word_select(place, of_row))
                m.d.sync += row.eq(Mux(comes, there, Cat(turned.word_select(place, size), row[size:])))
        others = Signal.like(added, name="added_left")
        m.d.sync += others.eq(Mux(captured, added, Cat(others[together * BYTE :], others[-together * BYTE :])))
        made = []
        for place in range(together):
            total = chain.word_select(place, forms.sum_bits).as_signed()
            multiplier, addend = (parameters[place][:bits].as_signed(), parameters[place][bits:size].as_signed())
            result = first_stage(m, f"_{place}", program, now, total, multiplier, addend)
            if program.forms.adds:
                (other,) = elements(others.word_select(place, BYTE), 1, now["other_signed"])
                later = delayed(m, f"other_{place}", other, program.first_stage, reset=False)
                result = second_stage(m, f"_{place}", program, now, result, later)
            if program.tables:
                result = looked_up(m, f"_{place}", program, now, result)
            made.append(result[:BYTE])
        word = Signal(lanes * BYTE, name="made", reset_less=True)
        m.d.sync += word.eq(Cat(word[together * BYTE :], *made))
        last = left[0] & ~left[1] if len(left) > 1 else left[0]
        return delayed(m, "made_last", last, program.finish + 1), word

    def _elaborate_writes(
        self, m: Module, memory: BufferMemory, phases: _Phases, now: Mapping[str, Value], bits: int, done: Value,
        made: Value, outside: _Outside | None,
    ) -> None:
        """Write words that come, and those that layers make; ``bits``: of the number of a block."""
        program = self.program
        # The last words of a block may be written while the next one's windows begin.
        begin = delayed(m, "target_begin", phases.begin, program.written - _SOONER)
        block = Signal(bits, name="target_block")
        with m.If(phases.setting):
            m.d.sync += block.eq(0)
        with m.Elif(begin):
            m.d.sync += block.eq(block + 1)
        place = _walked(m, "target", now, block, begin, done)
        loaded, target_last = (_place(now["target_place"], name) for name in ("loaded_place", "target_last"))
        m.d.sync += target_last.eq(now["target_words"] - 1)
        with m.If(phases.setting):
            m.d.sync += loaded.eq(now["target_place"])
        with m.Elif(phases.loading):
            m.d.sync += loaded.eq(one_on(loaded, target_last))
        written = Signal(program.lanes * BYTE, name="write_word", reset_less=True)
        image = Signal.like(written, name="image_word")
        m.d.comb += image.eq(self._elaborate_image(m))
        taken = image if outside is None else Mux(now["outside"], outside.o.payload[0], image)
        there = _place(place, "write_place")
        address = Signal(memory.address_width, name="write_address", reset_less=True)
        m.d.sync += [
            there.eq(Mux(phases.loading, loaded, place)), address.eq(now["target_first"] + there),
            written.eq(Mux(phases.loading, taken, made)),
        ]
        enable, word = delayed(m, "write", done | phases.loading, 2), delayed(m, "written", written, 1, reset=False)
        memory.write_in_steps(m, enable, address, word)

    def _elaborate_image(self, m: Module) -> Value:
        """Return a word of the image: the beat that comes, behind the last pixels before it, or where a row begins
        behind padding."""
        program = self.program
        beat: list[Value] = []
        for lane in range(len(self.i.payload)):
            element = Signal(signed(BYTE + 1), name=f"image_{lane}")
            m.d.comb += element.eq(self.i.payload[lane])
            beat.append(element[:BYTE])
        if not program.overlap:
            return Cat(*beat)
        count = program.overlap * self.pixel
        padding = Const(program.layers[0].pad_value % (1 << BYTE), BYTE).replicate(count)
        before = Signal(count * BYTE, name="pixels_before", init=padding)
        word, comes = Cat(before, *beat), self.i.valid & self.i.ready
        row_last = loop(m, "word_of_row", program.words_of_row, comes)
        with m.If(comes):
            m.d.sync += before.eq(Mux(row_last, padding, word[len(beat) * BYTE :]))
        return word


def _place(like: Value, name: str) -> Signal:
    """Return a register of a place in a region, which no reset has to reach: each begins with its instruction."""
    return Signal.like(like, name=name, reset_less=True)


def _walked(
    m: Module, name: str, now: Mapping[str, Value], block: Value, begin: Value, advance: Value
) -> Signal:
    """Return the place in a region of a word of the target's pixels: that of the number ``block`` in the first pixel
    after a cycle with ``begin``, and in the next one after each with ``advance``, two cycles behind any other at least.
    """
    place, move = _place(now[f"{name}_place"], f"{name}_place"), now[f"{name}_pixel"]
    if f"{name}_row" in now:
        row_last = count_down(m, f"{name}_column", now[f"{name}_columns_left"], begin, advance)
        move = Mux(row_last, now[f"{name}_row"], move)
    following = onward_soon(m, f"{name}_next", place, move, now[f"{name}_words"])
    with m.If(begin):
        m.d.sync += place.eq(now[f"{name}_place"] + block)
    with m.Elif(advance):
        m.d.sync += place.eq(following)
    return place
