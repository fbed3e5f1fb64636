"""The pixels under each position of a sliding window, from a circular buffer of image rows."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import block_count, count_up, delayed, less, loop
from hdl_lib.memories.buffer_memory import BufferMemory
from hdl_lib.memories.release_steps import present_change
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue
from hdl_lib.windows.window_geometry import WindowGeometry


class SlidingWindow(wiring.Component):
    """Image pixels in, the pixels of every window out: what a convolution or pooling reads.

    Parameters
    ----------
    shape: of an element, an integer shape.
    height, width: of the image in pixels.
    channels, lanes: elements per pixel and elements per beat; ``blocks = ceil(channels / lanes)`` beats per pixel.
    kernel, stride, dilation: (vertical, horizontal), each at least 1.
    pads: (top, left, bottom, right), each at least 0.
    pad_value: every lane of a pixel outside the image; a value of ``shape``.
    segment, times: so many windows of an output row, which they must divide, are sent so often one after the other
        before the next ones are; by default all of a row, once.
    rows: image rows the buffer holds, at least :meth:`minimum_rows`. More of them let the writer run further ahead.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.
    input_shape: of an element that comes in, whose values ``shape`` must hold; ``shape`` by default.

    Members
    -------
    i: In(stream). ``height * width`` pixels per frame, row by row.
    o: Out(stream). For each output pixel, row by row: for each kernel row, for each kernel column: one pixel. The lanes
    beyond ``channels`` in a pixel's last beat are those of the input (``pad_value`` outside the image).

    Timing
    ------
    Two processes, each at most one step per cycle. A *writer* step consumes an input beat, a *reader* step produces an
    output beat, ``latency`` (4) cycles later on ``o.valid``. Image rows are numbered through all frames.

    - A writer step of row g comes at least one cycle after the reader step that released row ``g - rows``. The last
      step of output row y of a frame releases the frame's rows below ``(y + 1) * stride - top`` (none below 0), that
      of the last output row all of them.
    - A reader step of output row y comes at least one cycle after the writer step that completed the frame's row
      ``min(height - 1, max(0, y * stride + (kernel - 1) * dilation - top))``. (So even windows above the image wait
      for the first row: nothing leaves before its frame has come in.)
    - A reader step needs a credit of the output queue.

    Initiation interval: ``times * out_height * out_width * kernel[0] * kernel[1] * blocks`` cycles per frame, or
    ``height * width * blocks`` if that is more, both provided that ``rows`` lets the two overlap. Under backpressure
    the reader stops, then the writer when the buffer is full.

    Ordering
    --------
    Frames leave in the order they came. Nothing of a frame is used in another one.
    """

    latency = 4
    """Cycles from a reader step to ``o.valid``."""

    def __init__(
        self,
        shape: Shape,
        height: int,
        width: int,
        channels: int,
        lanes: int,
        *,
        kernel: tuple[int, int],
        stride: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        dilation: tuple[int, int] = (1, 1),
        pad_value: int = 0,
        segment: int | None = None,
        times: int = 1,
        rows: int,
        depth: int,
        input_shape: Shape | None = None,
    ) -> None:
        self.geometry = WindowGeometry(height, width, kernel, stride, pads, dilation)
        self.segment, self.times = segment or self.geometry.out_width, times
        if times < 1 or self.segment < 1 or self.geometry.out_width % self.segment:
            raise ValueError(
                f"times must be at least 1, and segment divide {self.geometry.out_width}, the windows of a row, not be "
                f"{times} and {self.segment}"
            )
        self.blocks = block_count(channels, lanes)
        self.shape = Shape.cast(shape)
        self.lanes = lanes
        self.rows = rows
        self.depth = depth
        check_depth(depth)
        if rows < self.geometry.minimum_rows:
            raise ValueError(
                f"rows must be at least {self.geometry.minimum_rows}, not {rows}: "
                "with fewer the window's rows are never in the buffer together"
            )
        low, high = interval(self.shape)
        if not low <= pad_value <= high:
            raise ValueError(f"pad_value must be in {low}..{high}, the range of {self.shape}, not {pad_value}")
        self.pad_value = pad_value
        arriving = self.shape if input_shape is None else Shape.cast(input_shape)
        least, greatest = interval(arriving)
        if least < low or greatest > high:
            raise ValueError(f"input_shape must be within {low}..{high}, the range of {self.shape}, not be {arriving}")
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(arriving, lanes))),
                "o": Out(stream.Signature(data.ArrayLayout(shape, lanes))),
            }
        )

    @staticmethod
    def minimum_rows(
        height: int,
        width: int,
        *,
        kernel: tuple[int, int],
        stride: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        dilation: tuple[int, int] = (1, 1),
    ) -> int:
        """Return the least valid ``rows``: the most image rows that an output row needs and earlier ones did not
        release."""
        return WindowGeometry(height, width, kernel, stride, pads, dilation).minimum_rows

    @property
    def words(self) -> int:
        """Return the words of the row buffer, ``lanes`` elements each."""
        return self.rows * self.geometry.width * self.blocks

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        # Reads and writes of a word never meet in a cycle: they are ordered through the row counts.
        buffer = BufferMemory("buffer", self.lanes * self.shape.width, self.words)
        row_written = self._elaborate_writer_address(m, buffer)
        address, outside, issue, row_read = self._elaborate_reader_address(m)
        self._elaborate_row_counts(m, row_written, row_read, queue, issue)

        # Reader pipeline: address -> memory -> register -> queue.
        valid = delayed(m, "read_valid", issue, 3)
        read_enable = Signal()
        read_address = Signal(buffer.address_width)
        m.d.sync += [read_enable.eq(issue & ~outside), read_address.eq(address)]
        word = buffer.read(m, read_address, fetch=read_enable)
        pad_word = sum(
            (self.pad_value & ((1 << self.shape.width) - 1)) << (lane * self.shape.width) for lane in range(self.lanes)
        )
        word_outside = delayed(m, "read_outside", outside, 3)
        m.d.comb += [
            queue.reserve.eq(issue),
            queue.push.eq(valid),
            Value.cast(queue.payload).eq(Mux(word_outside, pad_word, word)),
        ]
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m

    def _elaborate_writer_address(self, m: Module, buffer: BufferMemory) -> Value:
        """Write each accepted beat one cycle later; return "the last beat of a row is accepted"."""
        accept = Signal()
        m.d.comb += accept.eq(self.i.valid & self.i.ready)
        write_enable = Signal()
        write_data = Signal(self.lanes * self.shape.width, reset_less=True)
        elements = [Signal(self.shape, name=f"element_{lane}") for lane in range(self.lanes)]
        m.d.comb += [element.eq(self.i.payload[lane]) for lane, element in enumerate(elements)]
        m.d.sync += [write_enable.eq(accept), write_data.eq(Cat(*elements))]
        buffer.write(m, write_enable, count_up(m, "write_address", self.words, write_enable), write_data)
        row_written = Signal()
        m.d.comb += row_written.eq(accept & loop(m, "write_row", self.geometry.width * self.blocks, accept))
        return row_written

    def _elaborate_row_counts(
        self, m: Module, row_written: Value, row_read: Value, queue: OutputQueue, issue: Value
    ) -> None:
        """Build the two row counts through which writer and reader wait for each other."""
        geometry = self.geometry
        needed, released = present_change(m, geometry.row_steps, row_read)
        first = geometry.needed_rows(0)
        # Rows the writer may begin, less one; rows written beyond those the output row waits for. The sign says "none".
        spare_rows = Signal(range(-1, self.rows + geometry.greatest_surplus), init=self.rows - 1)
        lead = Signal(
            range(-max(first, *(step.needed for step in geometry.row_steps)), self.rows + geometry.greatest_lead + 1),
            init=-first,
        )
        m.d.sync += [
            # All sums at once, the choice last: whether the reader steps and what arrives is known late.
            spare_rows.eq(
                Mux(
                    row_read,
                    Mux(row_written, spare_rows + (released - 1), spare_rows + released),
                    Mux(row_written, spare_rows - 1, spare_rows),
                )
            ),
            lead.eq(Mux(row_read, lead - needed + row_written, lead + row_written)),
        ]
        m.d.comb += [self.i.ready.eq(spare_rows >= 0), issue.eq((lead >= 0) & queue.available)]

    def _elaborate_reader_address(self, m: Module) -> tuple[Value, Value, Signal, Value]:
        """Walk the windows; return the word's address in this step, whether it is outside the image, the step, and "it
        is an output row's last step"."""
        geometry = self.geometry
        (kh, kw), (sh, sw), (dh, dw) = geometry.kernel, geometry.stride, geometry.dilation
        top, left = geometry.pads[:2]
        issue, tap_done, kernel_row_done, window_done, row_done = (
            Signal(name=name) for name in ("issue", "tap_done", "kernel_row_done", "window_done", "row_done")
        )
        # Whether the next step ends each of the loops: functions of registers, so that the step, which is known late,
        # passes a single gate.
        tap_last = loop(m, "block", self.blocks, issue)
        kernel_row_last = tap_last & loop(m, "kernel_column", kw, tap_done)
        window_last = kernel_row_last & loop(m, "kernel_row", kh, kernel_row_done)
        segment_last = window_last & loop(m, "column", self.segment, window_done)
        turn_last = row_last = segment_last  # of a segment, of its last turn, of its row
        if self.times > 1:
            segment_done, turn_done = issue & segment_last, Signal(name="turn_done")
            turn_last = segment_last & loop(m, "turn", self.times, segment_done)
            m.d.comb += turn_done.eq(issue & turn_last)
            row_last = turn_last & loop(m, "segment", geometry.out_width // self.segment, turn_done)
        m.d.comb += [
            tap_done.eq(issue & tap_last),
            kernel_row_done.eq(issue & kernel_row_last),
            window_done.eq(issue & window_last),
            row_done.eq(issue & row_last),
        ]

        # Horizontally: a position in beats from the image row's first one; the window's own, and the next window's.
        start, shift, beats = -left * self.blocks, sw * self.blocks, geometry.width * self.blocks
        rightmost = start + shift * (geometry.out_width - 1) + geometry.reach[1] * self.blocks - 1
        column = Signal(range(start, max(rightmost, 0) + 1), init=start)
        window_column = Signal(range(start, max(rightmost, 0) + 1), init=start)
        next_column = Signal(range(start, max(rightmost, 0) + shift + 1), init=start + shift)
        segment_column: Value = Const(start, column.shape())
        if self.times > 1 and self.segment < geometry.out_width:
            segment_column = Signal.like(column, name="segment_column")
            with m.If(turn_done):
                m.d.sync += segment_column.eq(Mux(row_last, start, next_column))
        with m.If(issue):
            with m.If(row_last):
                m.d.sync += [column.eq(start), window_column.eq(start), next_column.eq(start + shift)]
            if self.times > 1:
                with m.Elif(segment_last & ~turn_last):
                    m.d.sync += [
                        column.eq(segment_column), window_column.eq(segment_column),
                        next_column.eq(segment_column + shift),
                    ]
            with m.Elif(window_last):
                m.d.sync += [
                    column.eq(next_column), window_column.eq(next_column), next_column.eq(next_column + shift)
                ]
            with m.Elif(kernel_row_last):
                m.d.sync += column.eq(window_column)
            with m.Else():
                m.d.sync += column.eq(column + Mux(tap_last, dw * self.blocks - (self.blocks - 1), 1))

        # Vertically, for the image row and for its place in the circular buffer: of this step, of the window's first
        # kernel row, and of the next output row's first kernel row. `next_is_last`: that is the frame's last one.
        last_row = geometry.out_height - 1
        next_is_last = loop(m, "next_output_row", last_row + 1, row_done, start=min(1, last_row))

        def walk(name: str, least: int, greatest: int, start: int, after: int, down, onward) -> Signal:
            """Build the registers of one vertical coordinate; ``down``: its step to the next kernel row; ``onward``: to
            the next output row or frame."""
            present, window, following = (
                Signal(range(min(least, 0), greatest + 1), name=f"{name}{suffix}", init=init)
                for suffix, init in (("", start), ("_window", start), ("_next", after))
            )
            moved = onward(following)
            with m.If(row_done):
                m.d.sync += [window.eq(following), following.eq(moved)]
            with m.If(kernel_row_done):
                with m.If(row_last):
                    m.d.sync += present.eq(following)
                with m.Elif(window_last):
                    m.d.sync += present.eq(window)
                with m.Else():
                    m.d.sync += present.eq(down(present))
            return present

        def rotated(amount: int):
            """Return the step of the place in the buffer: ``amount`` rows down, modulo the buffer's rows."""
            words, offset = self.words, amount % self.rows * beats
            if offset == 0:
                return lambda place: place

            def step(place: Value) -> Value:
                wrapped = (place - (words - offset)).as_signed()
                return Mux(wrapped[-1], place + offset, wrapped)  # both sums at once, the choice last

            return step

        def rotated_onward(along: int, over: int):
            """Return the step of the place by ``along`` rows, or to the next frame by ``over``. Where a row of windows
            takes several steps, both sums are registers."""
            low = (beats & -beats).bit_length() - 1  # bits of every place that are 0
            words, offsets = self.words >> low, [amount % self.rows * beats >> low for amount in (along, over)]
            if not any(offsets):
                return lambda place: place
            if self.blocks * kh * kw * geometry.out_width == 1:
                along_step, over_step = rotated(along), rotated(over)
                return lambda place: Mux(next_is_last, over_step(place), along_step(place))

            def step(place: Value) -> Value:
                reached = Signal(range(2 * words), name="place_reached", reset_less=True)
                wrapped = Signal(range(-words, words), name="place_wrapped", reset_less=True)
                offset = Mux(next_is_last, offsets[1], offsets[0])
                back = Mux(next_is_last, words - offsets[1], words - offsets[0])
                m.d.sync += [reached.eq(place[low:] + offset), wrapped.eq(place[low:] - back)]
                return Mux(wrapped[-1], reached, wrapped) << low

            return step

        after = sh if last_row else geometry.height
        place = walk(
            "place",
            0,
            self.words - 1,
            -top % self.rows * beats,
            (after - top) % self.rows * beats,
            rotated(dh),
            rotated_onward(sh, geometry.height - last_row * sh),
        )
        lowest = last_row * sh + geometry.reach[0] - 1 - top
        outside = Signal()
        terms: list[Value] = []
        if top or lowest >= geometry.height:
            image_row = walk(
                "image_row",
                -top,
                max(lowest, 0),
                -top,
                sh - top if last_row else -top,
                lambda row: row + dh,
                lambda row: Mux(next_is_last, Const(-top, 1 + max(top, 1).bit_length()).as_signed(), row + sh),
            )
            terms += [image_row < 0] if top else []
            terms += [~less(image_row, geometry.height)] if lowest >= geometry.height else []
        terms += [column < 0] if left else []
        terms += [~less(column, beats)] if rightmost >= beats else []
        if terms:
            m.d.comb += outside.eq(Cat(terms).any())
        address = Signal(range(max(2, self.words)))
        m.d.comb += address.eq(place + column)
        return address, outside, issue, row_done
