"""Depthwise convolution over an image stream: windows from a circular buffer, each channel's pixels times its weights.

The function of :class:`hdl_lib.windows.sliding_window.SlidingWindow` followed by
:class:`hdl_lib.windows.weighted_pool.WeightedPool`, without a stream between: a channel's taps follow each other, so
that one running sum per lane suffices.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.accumulator import accumulator, controls
from hdl_lib.arithmetic.adder_tree import adder_tree, tree_levels
from hdl_lib.arithmetic.multiplier import PART, Multiplier, ProductForm, interval
from hdl_lib.blocks import block_count, count_in_turns, count_up, delayed, loop
from hdl_lib.memories.buffer_memory import BufferMemory
from hdl_lib.memories.release_steps import present_change
from hdl_lib.memories.rom import Rom, Table, lies_in_block
from hdl_lib.memories.storage import check_depth
from hdl_lib.shared import SharedComponent
from hdl_lib.streams.output_queue import OutputQueue
from hdl_lib.windows.pixel_steps import PixelSteps
from hdl_lib.windows.window_geometry import WindowGeometry

ARRIVAL = 3
"""Cycles from a step to its elements: the buffer's address, its word, a register behind."""

SETTLED = 3
"""Steps of a window at which the change after it may take a cycle more: it is in a register two cycles after that."""


class Depthwise(wiring.Component):
    """For each window of an image and each channel the sum of its elements times constants.

    Exact modulo ``2**result_shape.width``: correct wherever the sums lie in the range of ``result_shape``.

    Parameters
    ----------
    shape, weight_shape, result_shape: of an element, a weight and a sum, integer shapes.
    geometry: of the windows.
    channels, lanes: elements per pixel and elements per beat; ``blocks = ceil(channels / lanes)`` beats per pixel.
    row: a step takes one row of the kernel, from as many copies of the buffer; otherwise one tap.
    weights: a word for each block, kernel row and, unless ``row``, kernel column, innermost last: in a table that lies
        in block RAM one behind the other, else each of the three numbers in the address has as many bits as it needs,
        so that some words are unused (:func:`weight_places`). A word has ``lanes`` weights for each tap of the step,
        tap 0 and lane 0 in the low bits, lanes innermost.
    rounds: weights are such tables, one behind the other, which frames take in turns.
    pad_value, padded_shape: the value of every lane of a pixel outside the image; a shape for it and the elements.
    rows: image rows that the buffer holds, at least ``geometry.minimum_rows``; its words are rounded up to a power of
        two. None: it is released pixel by pixel.
    pixels: in that case the pixels that it holds, at least :attr:`hdl_lib.windows.pixel_steps.PixelSteps.minimum`.
    multiplier: "dsp" or "lut" (:class:`hdl_lib.arithmetic.multiplier.Multiplier`).
    part: as for :class:`hdl_lib.matrices.mvu.Mvu`.
    depth: beats of the output queue.

    Members
    -------
    i: In(stream). ``height * width`` pixels per frame, row by row.
    o: Out(stream). A pixel for each window, row by row; lanes beyond ``channels`` in a pixel's last beat are
        unspecified.

    Timing
    ------
    Two processes, each at most one step per cycle. A *writer* step consumes an input beat. The *reader* has, for each
    window, for each block, a step for each kernel row, or for each of its taps; the last one of a block produces, needs
    a credit of the output queue, and :meth:`latency_of` cycles later the beat shows on ``o.valid``. Image rows are
    numbered through all frames.

    - A writer step of row g comes at least one cycle after the reader step that released row ``g - rows``. The last
      step of output row y of a frame releases the frame's rows up to ``geometry.released_rows(y)``.
    - A reader step of output row y comes at least one cycle after the writer step that completed the last of the
      frame's ``geometry.needed_rows(y)`` first rows.

    Released pixel by pixel, the same holds of pixels, numbered through all frames, and of windows: the last step of a
    window releases pixels up to ``PixelSteps.released``, its first one waits for ``PixelSteps.needed`` of them.

    Initiation interval: the reader's steps, or ``height * width * blocks`` if that is more, both provided that the
    buffer lets the two overlap. Under backpressure the reader stops, then the writer when the buffer is full.

    Ordering
    --------
    Frames leave in the order they came. Nothing of a frame is used in another one.
    """

    def __init__(
        self,
        shape: Shape,
        weight_shape: Shape,
        result_shape: Shape,
        geometry: WindowGeometry,
        channels: int,
        lanes: int,
        *,
        row: bool = False,
        weights: Table,
        pad_value: int = 0,
        padded_shape: Shape,
        rows: int | None = None,
        pixels: int = 0,
        multiplier: ProductForm,
        part: int = PART,
        depth: int,
        rounds: int = 1,
    ) -> None:
        self.rounds = rounds
        self.shape, self.weight_shape = Shape.cast(shape), Shape.cast(weight_shape)
        self.result_shape, self.padded_shape = Shape.cast(result_shape), Shape.cast(padded_shape)
        self.geometry = geometry
        self.blocks = block_count(channels, lanes)
        self.lanes = lanes
        self.row = row
        self.rows = rows
        self.pixels = pixels if rows is None else rows * geometry.width
        self.depth = depth
        self.pad_value = pad_value
        self.weights = weights
        self.multiplier = Multiplier(self.padded_shape, self.weight_shape, multiplier, part)
        check_depth(depth)
        least = PixelSteps(geometry).minimum if rows is None else geometry.minimum_rows
        if (pixels if rows is None else rows) < least:
            what, given = ("pixels", pixels) if rows is None else ("rows", rows)
            raise ValueError(
                f"{what} must be at least {least}, not {given}: "
                f"with fewer the window's {what} are never in the buffer together"
            )
        low, high = interval(self.padded_shape)
        if not low <= min(pad_value, interval(self.shape)[0]) <= max(pad_value, interval(self.shape)[1]) <= high:
            raise ValueError(
                f"padded_shape must hold {self.shape} and pad_value, {pad_value}, not {low}..{high}, as {padded_shape}"
            )
        width = self.taps * lanes * self.weight_shape.width
        words = rounds * round_words(geometry, self.blocks, row, width)
        if (weights.width, weights.depth) != (width, words):
            raise ValueError(
                f"weights must be {words} words of {width} bits (taps per step * lanes * weight bits), not "
                f"{weights.depth} of {weights.width}"
            )
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(shape, lanes))),
                "o": Out(stream.Signature(data.ArrayLayout(result_shape, lanes))),
            }
        )

    @property
    def taps(self) -> int:
        """Return the taps of a step."""
        return self.geometry.kernel[1] if self.row else 1

    @property
    def words(self) -> int:
        """Return the words of the buffer."""
        least = self.pixels * self.blocks
        return max(2, least) if self.rows is None else buffer_words(least)

    @property
    def dense(self) -> bool:
        """Tell whether no word of the weights is unused."""
        return weights_are_dense(self.geometry, self.blocks, self.row, self.weights.width)

    @staticmethod
    def latency_of(
        padded_shape: Shape, weight_shape: Shape, geometry: WindowGeometry, row: bool, multiplier: ProductForm,
        part: int = PART,
    ) -> int:
        """Return the cycles from the producing step to ``o.valid``: 3 for the elements, 1 more if windows touch padding
        and products are in multiplier blocks, the operand's and the product's (see
        :class:`hdl_lib.arithmetic.multiplier.Multiplier`), one for each level of the sum over a kernel row, 1 for the
        running sum if a window has several steps, 1 for the queue."""
        product = Multiplier(Shape.cast(padded_shape), Shape.cast(weight_shape), multiplier, part)
        taps = geometry.kernel[1] if row else 1
        steps = geometry.kernel[0] * geometry.kernel[1] // taps
        arrival = ARRIVAL + masks(geometry, product)
        return arrival + product.operand_latency + product.latency + tree_levels(taps) + int(steps > 1) + 1

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        product = self.multiplier
        return self.latency_of(
            self.padded_shape, self.weight_shape, self.geometry, self.row, product.form, product.part or PART
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        issue, lead = Signal(name="issue"), Signal(name="image_rows_there")
        written, buffers = self._write(m)
        walk = _Walk(m, self, issue)
        m.d.comb += [
            issue.eq(lead & (queue.available | ~walk.window_last)),
            queue.reserve.eq(issue & walk.window_last),
        ]
        if self.rows is None:
            self._count_pixels(m, written, issue, walk, lead)
        else:
            self._count_rows(m, written, issue & walk.row_last, walk, lead)

        product = self.multiplier
        arrival = ARRIVAL + masks(self.geometry, product)
        stages = arrival + product.operand_latency + product.latency + tree_levels(self.taps)
        m.submodules.weights = rom = Rom.of_table(self.weights, output_register=True)
        ahead = arrival + product.operand_latency - product.weight_lead - rom.latency
        weights = rom.data
        if lies_in_block(self.weights.width, self.weights.depth):  # elements always come a cycle later than words
            weights = Signal(len(rom.data), name="weights_near", reset_less=True)
            m.d.sync += weights.eq(rom.data)
            ahead -= 1
        m.d.comb += rom.addr.eq(delayed(m, "weight_address", walk.place, ahead))
        groups = []
        if walk.steps > 1:
            update = delayed(m, "update", issue, stages - 1)
            last = delayed(m, "last", queue.reserve, stages - 1)
            groups = list(controls(m, self.lanes, update, last))
        words, outside = self._words(m, walk, buffers)
        outside_bits = Signal(len(outside), name="taps_outside")
        m.d.comb += outside_bits.eq(Cat(*outside))
        fixed = tuple(tap.value if isinstance(tap, Const) else None for tap in outside)
        for index in range(self.lanes):
            lane = _Lane(self, walk.steps > 1, fixed)
            m.submodules[f"lane_{index}"] = lane
            m.d.comb += [lane.outside.eq(outside_bits), queue.payload[index].eq(lane.sum)]
            for tap, word in enumerate(words):
                m.d.comb += [
                    lane.x[tap].eq(word.word_select(index, self.shape.width)),
                    lane.weights[tap].eq(weights.word_select(tap * self.lanes + index, self.weight_shape.width)),
                ]
            if groups:
                m.d.comb += [s.eq(kept) for s, kept in zip((lane.update, lane.last), groups[index], strict=True)]
        m.d.comb += queue.push.eq(delayed(m, "push", queue.reserve, self.latency - 1))
        return m

    def _write(self, m: Module) -> tuple[Value, list[BufferMemory]]:
        """Write each accepted beat one cycle later; return "the last beat of an image row, or of a pixel, is accepted"
        and the copies of the buffer."""
        accept, payload = Signal(name="accept"), Value.cast(self.i.payload)
        m.d.comb += accept.eq(self.i.valid & self.i.ready)
        # Reads and writes of a word never meet in a cycle (they are ordered through the row counts).
        buffers = []
        enable = Signal(name="write_enable")
        beat = Signal(len(payload), name="write_data", reset_less=True)
        m.d.sync += [enable.eq(accept), beat.eq(payload)]
        address = count_up(m, "write_address", self.words, enable)
        for tap in range(self.taps):
            buffer = BufferMemory(f"buffer_{tap}", len(payload), self.words)
            buffer.write(m, enable, address, beat)
            buffers.append(buffer)
        written = Signal(name="written")
        beats = self.blocks if self.rows is None else self.geometry.width * self.blocks
        m.d.comb += written.eq(accept & loop(m, "write_row", beats, accept))
        return written, buffers

    def _count_rows(self, m: Module, written: Value, read: Value, walk: _Walk, lead_there: Signal) -> None:
        """Build the two row counts through which writer and reader wait for each other."""
        geometry = self.geometry
        assert self.rows is not None, "released row by row"
        needed, released = present_change(m, geometry.row_steps, self._settled(m, walk, "row_read", read))
        first = geometry.needed_rows(0)
        most = max(first, *(step.needed for step in geometry.row_steps))
        self._count(
            m, written, read, lead_there, needed, released, first,
            range(-1, self.rows + geometry.greatest_surplus),
            range(-most, self.rows + geometry.greatest_lead + 1), self.rows,
        )

    def _count_pixels(self, m: Module, written: Value, issue: Value, walk: _Walk, lead_there: Signal) -> None:
        """Build the two pixel counts through which writer and reader wait for each other."""
        steps = PixelSteps(self.geometry)
        read = issue & walk.column_done
        row_done = self._settled(m, walk, "row_done", issue & walk.row_last)
        moving = present_change(m, steps.moving_rows, row_done)
        within = present_change(m, steps.column_steps, self._settled(m, walk, "window_done", read))
        between = present_change(m, steps.row_steps, row_done)
        needed, released = (
            self._between_windows(m, walk, name, Mux(walk.column_last, at_end, Mux(moves, change, 0)), change_at_first)
            for name, at_end, moves, change, change_at_first in zip(
                ("needed", "released"), between, moving, within, steps.first_change, strict=True
            )
        )
        first = steps.needed(0, 0)
        self._count(
            m, written, read, lead_there, needed, released, first,
            range(-1, self.pixels + max(0, steps.greatest_surplus)),
            range(-max(first, steps.most_needed), self.pixels + max(0, steps.greatest_lead) + 1), self.pixels,
        )

    def _settled(self, m: Module, walk: _Walk, name: str, done: Value) -> Value:
        """Return ``done``, the end of a window or a row, a cycle later where windows take :data:`SETTLED` steps:
        whether the reader steps is known late."""
        return delayed(m, name, done, 1) if walk.steps * self.blocks >= SETTLED else done

    def _between_windows(self, m: Module, walk: _Walk, name: str, change: Value, first: int) -> Value:
        """Return a function of what changes with a window alone, in a register where a window takes more than a step;
        ``first``: its value at the first window."""
        if walk.steps * self.blocks == 1:
            return change
        later = Signal.like(change, name=name, init=first)
        m.d.sync += later.eq(change)
        return later

    def _count(
        self, m: Module, written: Value, read: Value, lead_there: Signal, needed: Value, released: Value, first: int,
        spares: range, leads: range, there: int,
    ) -> None:
        """Count rows or pixels: ``written``: one more is; ``read``: an output row or a window is done, the next one
        needs ``needed`` more, ``released`` are free. ``first``: needed at first; ``there``: that the buffer holds."""
        # What the writer may begin, less one; what is written beyond what the reader waits for. The sign says "none".
        spare, lead = Signal(spares, name="spare", init=there - 1), Signal(leads, name="lead", init=-first)
        m.d.sync += [
            # All sums at once, the choice last: whether the reader steps and what arrives is known late.
            spare.eq(
                Mux(
                    read,
                    Mux(written, spare + (released - 1), spare + released),
                    Mux(written, spare - 1, spare),
                )
            ),
            lead.eq(
                Mux(read, Mux(written, lead - (needed - 1), lead - needed), Mux(written, lead + 1, lead))
            ),
        ]
        m.d.comb += [self.i.ready.eq(spare >= 0), lead_there.eq(lead >= 0)]

    def _words(self, m: Module, walk: _Walk, buffers: list[BufferMemory]) -> tuple[list[Value], list[Value]]:
        """Return for each tap of a step its word, and whether it is outside the image, :data:`ARRIVAL` cycles later."""
        words: list[Value] = []
        beyond: list[Value] = []
        for tap, buffer in enumerate(buffers):
            address = Signal(buffer.address_width, name=f"read_address_{tap}", reset_less=True)
            enable = Signal(name=f"read_enable_{tap}")
            outside = walk.outside[tap]
            m.d.sync += [address.eq(walk.address_of(tap)), enable.eq(walk.issue & ~outside)]
            words.append(buffer.read(m, address, fetch=enable))
            beyond.append(outside if isinstance(outside, Const) else delayed(m, f"outside_{tap}", outside, ARRIVAL))
        return words, beyond


class _Lane(SharedComponent):
    """Adds the products of a lane: the elements of a step's taps times their weights.

    ``outside``: of each tap whether it always, or never, lies outside of the image; None where that changes.
    ``accumulated``: the steps of a window are added as well.

    Members: x: In(one element per tap, as the buffer has it); outside: In(1 per tap); weights: In(one weight per tap);
    update, last: In(1), with ``accumulated``, as :func:`hdl_lib.arithmetic.accumulator.accumulator` wants them; sum:
    Out(a sum).
    """

    def __init__(self, core: Depthwise, accumulated: bool, outside: tuple[int | None, ...]) -> None:
        self._shape, self._weight_shape, self._result_shape = core.shape, core.weight_shape, core.result_shape
        self._product = core.multiplier
        self._pad = Const(core.pad_value, core.padded_shape)
        self._masked = bool(masks(core.geometry, core.multiplier))
        self._accumulated = accumulated
        self._outside = outside
        members = {
            "x": In(data.ArrayLayout(core.shape, core.taps)),
            "outside": In(core.taps),
            "weights": In(data.ArrayLayout(core.weight_shape, core.taps)),
        }
        if accumulated:
            members |= {"update": In(1), "last": In(1)}
        key = (
            core.shape, core.multiplier, core.pad_value, self._masked, core.weight_shape, core.result_shape,
            accumulated, outside,
        )
        super().__init__("lane", key, members | {"sum": Out(core.result_shape)})

    def build(self) -> Module:
        m = Module()
        terms = []
        for tap, fixed in enumerate(self._outside):
            outside = self.outside[tap] if fixed is None else Const(fixed)
            element = Signal(self._product.input_shape, name=f"x_{tap}", reset_less=self._masked)
            m.d["sync" if self._masked else "comb"] += element.eq(Mux(outside, self._pad, self.x[tap]))
            operand = self._product.operand(m, f"input_{tap}", element)
            terms.append(self._product.product(m, f"product_{tap}", operand, self.weights[tap]))
        term = adder_tree(m, "sum", terms, self._result_shape.width)
        if self._accumulated:
            term = accumulator(m, "", term, None, self._result_shape, self.update, self.last)
        m.d.comb += self.sum.eq(term.value)
        return m


def masks(geometry: WindowGeometry, product: Multiplier) -> int:
    """Return the cycles for padding: 1 if elements may be padding and go into multiplier blocks, whose own operand
    registers have no multiplexer; else 0, as padding is a reset of the next registers."""
    return int(product.blocks > 0 and touches_padding(geometry))


def touches_padding(geometry: WindowGeometry) -> bool:
    """Tell whether some window covers padding."""
    g = geometry
    rows = (g.pads[0], g.stride[0], g.out_height, g.reach[0], g.height)
    columns = (g.pads[1], g.stride[1], g.out_width, g.reach[1], g.width)
    return any(
        pad > 0 or (count - 1) * stride + extent - pad > size for pad, stride, count, extent, size in (rows, columns)
    )


def buffer_words(least: int) -> int:
    """Return the words of a circular buffer of at least ``least``: a power of two, in which addresses wrap by
    themselves."""
    return 1 << max(1, (least - 1).bit_length())


def weights_are_dense(geometry: WindowGeometry, blocks: int, row: bool, width: int) -> bool:
    """Tell whether the table of weights, words of ``width`` bits, lies in block RAM: its address is then a count of its
    own, and no word is unused."""
    return lies_in_block(width, _steps_of_pixel(geometry, blocks, row))


def round_words(geometry: WindowGeometry, blocks: int, row: bool, width: int) -> int:
    """Return the words of a round's weights of ``width`` bits."""
    if weights_are_dense(geometry, blocks, row, width):
        return _steps_of_pixel(geometry, blocks, row)
    return weight_places(geometry, blocks, row)[-1]


def _steps_of_pixel(geometry: WindowGeometry, blocks: int, row: bool) -> int:
    return blocks * geometry.kernel[0] * (1 if row else geometry.kernel[1])


def weight_places(geometry: WindowGeometry, blocks: int, row: bool) -> tuple[int, int, int, int]:
    """Return the bits of the kernel column, of the kernel row and of the block in an address of weights that are not
    dense; and the words."""
    kh, kw = geometry.kernel
    bits = [(count - 1).bit_length() for count in (1 if row else kw, kh, blocks)]
    return bits[0], bits[1], bits[2], 1 << sum(bits)


class _Walk:
    """The position of the reader: everything here belongs to its next step, ``issue``, and is a register or a function
    of registers. Innermost are the taps of a window and block, then the blocks, the columns, the rows."""

    def __init__(self, m: Module, core: Depthwise, issue: Signal) -> None:
        self._m, self._core, self.issue = m, core, issue
        g, blocks, taps = core.geometry, core.blocks, core.taps
        kh, kw = g.kernel
        self.steps = kh * kw // taps
        tap, tap_last = self._loop("kernel_column", kw // taps, issue)
        row, kernel_row_last = self._loop("kernel_row", kh, issue & tap_last)
        self.window_last = tap_last & kernel_row_last
        block, block_last = self._loop("block", blocks, issue & self.window_last)
        self.column_done = column_done = self.window_last & block_last
        _, column_last = self._loop("column", g.out_width, issue & column_done)
        self.column_last, self.row_last = column_last, column_done & column_last
        _, frame_last = self._loop("row", g.out_height, issue & self.row_last)
        frame_done = issue & self.row_last & frame_last
        if core.dense:
            turns = core.rounds, g.out_height * g.out_width
            self.place: Value = count_in_turns(m, "weight_place", core.weights.depth // core.rounds, turns, issue)
        else:
            turn, _ = self._loop("round", core.rounds, frame_done)
            self.place = Cat(*(value for value in (tap, row, block, turn) if value is not None))
        if not len(self.place):
            self.place = Const(0, 1)

        # The address of the step's first tap: pixels follow each other in the buffer through all frames.
        pitch = g.width * blocks
        across = (kw - taps) * g.dilation[1] * blocks  # to a window's last tap in a row
        down = (kh - 1) * g.dilation[0] * pitch
        back = -across - down - (blocks - 1)
        home = back - (g.out_width - 1) * g.stride[1] * blocks
        moves = [
            (tap_last, g.dilation[1] * blocks * taps),
            (kernel_row_last, g.dilation[0] * pitch - across),
            (block_last, 1 - across - down),
            (column_last, back + g.stride[1] * blocks),
            (frame_last, home + g.stride[0] * pitch),
        ]
        final = home + (g.height - (g.out_height - 1) * g.stride[0]) * pitch
        start = -(g.pads[0] * g.width + g.pads[1]) * blocks % core.words
        self.address = Signal(range(core.words), name="address", init=start)
        with m.If(issue):
            m.d.sync += self.address.eq(self._moved([*moves, (Const(1), final)]))
        left = self._position("window_column", -g.pads[1], g.stride[1], g.out_width, issue & column_done, column_last)
        top = self._position("window_row", -g.pads[0], g.stride[0], g.out_height, issue & self.row_last, frame_last)
        above = self._outside(top, -g.pads[0], g.stride[0], g.out_height, g.dilation[0], g.height, row, range(kh))
        self.outside: list[Value] = []
        for index in range(taps):
            which = range(index, index + 1) if taps > 1 else range(kw)
            beside = self._outside(
                left, -g.pads[1], g.stride[1], g.out_width, g.dilation[1], g.width, tap if taps == 1 else None, which
            )
            self.outside.append(self._any([*above, *beside], f"outside_{index}"))

    def address_of(self, tap: int) -> Value:
        """Return the address of a tap of the step."""
        return self._moved([(Const(1), tap * self._core.geometry.dilation[1] * self._core.blocks)])

    def _moved(self, moves: list[tuple[Value, int]]) -> Value:
        """Return the address after the first of ``moves`` (whether it is not made, words) that is made; the last one
        always is."""
        words, bits = self._core.words, len(self.address)

        def first(offset: int) -> Value:
            change: Value = Const(moves[-1][1] % words - offset)
            for last, move in reversed(moves[:-1]):
                if not isinstance(last, Const):
                    change = Mux(last, change, Const(move % words - offset))
            return change

        ahead = (self.address + first(0))[:bits]
        if words & (words - 1) == 0 or all(move % words == 0 for _, move in moves):
            return ahead
        wrapped = (self.address + first(words)).as_signed()
        return Mux(wrapped[-1], ahead, wrapped[:bits])  # both sums at once, the choice last

    def _loop(self, name: str, count: int, advance: Value) -> tuple[Signal | None, Value]:
        """Build a loop that advances with ``advance``; return its count (None for one round) and "this is the last
        round"."""
        if count == 1:
            return None, Const(1)
        value = Signal(range(count), name=name)
        last = Signal(name=f"{name}_last")
        with self._m.If(advance):
            with self._m.If(last):
                self._m.d.sync += [value.eq(0), last.eq(0)]
            with self._m.Else():
                self._m.d.sync += [value.eq(value + 1), last.eq(value == count - 2)]
        return value, last

    def _position(self, name: str, start: int, stride: int, count: int, advance: Value, last: Value) -> Signal | None:
        """Return the image position of the window's first column or row, if it moves."""
        if count == 1:
            return None
        value = Signal(range(min(start, 0), max(start + stride * (count - 1), 0) + 1), name=name, init=start)
        with self._m.If(advance):
            self._m.d.sync += value.eq(Mux(last, start, value + stride))
        return value

    @staticmethod
    def _outside(
        position: Signal | None, start: int, stride: int, count: int, dilation: int, size: int, which: Signal | None,
        taps: range,
    ) -> list[Value]:
        """Return terms of which one is true if a tap, ``which`` of ``taps``, is outside the image in one direction."""
        terms: list[Value] = []
        end = start + stride * (count - 1)
        for tap in taps:
            offset = tap * dilation
            chosen = Const(1) if which is None else which == tap
            for some, every, outside in (
                (start + offset < 0, end + offset < 0, lambda p, o=offset: p < -o),
                (end + offset >= size, start + offset >= size, lambda p, o=offset: p >= size - o),
            ):
                if some:
                    terms.append(chosen if every or position is None else chosen & outside(position))
        return terms

    def _any(self, terms: list[Value], name: str) -> Value:
        if not terms:
            return Const(0)
        if any(isinstance(term, Const) for term in terms):
            return Const(1)
        result = Signal(name=name)
        self._m.d.comb += result.eq(Cat(*terms).any())
        return result
