"""Whole windows of an image, one or several per beat, from circular banks of image rows."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import count_up, delayed, loop
from hdl_lib.memories.buffer_memory import BufferMemory
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue
from hdl_lib.windows.window_geometry import WindowGeometry
from hdl_lib.windows.window_steps import WindowSteps


class WindowRows(wiring.Component):
    """Image pixels in, whole windows out: what a convolution or pooling reads at up to one image row per cycle.

    Parameters
    ----------
    shape, result_shape: of an input and of an output element, integer shapes; the second holds the first's values.
    channels: elements per pixel.
    steps: geometry, pixels per input beat and windows per output beat
        (:class:`hdl_lib.windows.window_steps.WindowSteps`).
    pad_value: every element of a pixel outside the image; a value of ``result_shape``.
    rows: image rows the banks hold, at least ``steps.geometry.minimum_rows``.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). A frame's pixels row by row, ``steps.pixels`` per beat, channels fastest.
    o: Out(stream). For each output pixel, row by row, its window: for each kernel row, for each kernel column, for each
        channel one element; ``steps.windows`` windows per beat.

    Timing
    ------
    Two processes, each at most one step per cycle. A *writer* step consumes an input beat: a word of an image row. A
    *reader* frame has ``steps.steps`` steps: for each output row ``steps.row_steps``, of which the first are one for
    each word of an image row, and ``steps.tail`` after the last row's. Step ``steps.sends(row, beat)`` produces a beat,
    :attr:`latency` cycles later on ``o.valid``, and needs a credit of the output queue. Words are numbered through all
    frames.

    - A reader step comes at least :attr:`lag` cycles after the writer step of the same word of the last image row that
      the output row needs (``geometry.needed_rows``), those after a row's last word with that.
    - A writer step of a word of image row g comes at least a cycle after the reader step that released that word of
      row ``g - rows``. An output row releases the frame's rows up to ``geometry.released_rows``: a word of the first of
      them in the step with the same word (its last one in the output row's last step), the others in its last step.

    Latency 4 and lag 2, or, with whole rows per word (which are held in registers), latency 2 and lag 1; one more
    cycle of latency if columns are inside the image in some beats only (``steps.masked``).

    Initiation interval: ``steps.steps`` cycles per frame, or ``height * width / pixels`` if that is more, both provided
    that ``rows`` lets the two overlap. Under backpressure the reader stops, then the writer when the banks are full.

    Ordering
    --------
    Frames leave in the order they came. Nothing of a frame is used in another one.
    """

    def __init__(
        self,
        shape: Shape,
        result_shape: Shape,
        channels: int,
        steps: WindowSteps,
        *,
        pad_value: int = 0,
        rows: int,
        depth: int,
    ) -> None:
        if channels < 1:
            raise ValueError(f"channels must be at least 1, not {channels}")
        check_depth(depth)
        check_rows(steps.geometry, rows)
        self.shape, self.result_shape = Shape.cast(shape), Shape.cast(result_shape)
        check_pad_value(self.result_shape, pad_value)
        self.channels = channels
        self.steps = steps
        self.pad_value = pad_value
        self.rows = rows
        self.depth = depth
        taps = steps.geometry.kernel[0] * steps.geometry.kernel[1]
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(shape, steps.pixels * channels))),
                "o": Out(stream.Signature(data.ArrayLayout(result_shape, steps.windows * taps * channels))),
            }
        )

    @staticmethod
    def latency_of(steps: WindowSteps) -> int:
        """Return the cycles from a producing step to ``o.valid``."""
        return (4 if steps.words > 1 else 2) + int(steps.masked)

    @staticmethod
    def lag_of(words: int) -> int:
        """Return the cycles from a writer step to the first reader step that may use its word."""
        return 2 if words > 1 else 1

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.steps)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        steps, pixel_width = self.steps, self.channels * self.result_shape.width
        kh, kw = steps.geometry.kernel
        taken = [(row, offset) for row in steps.kernel_rows for offset in steps.columns]
        m.submodules.queue = queue = OutputQueue(max(1, len(taken) * pixel_width), self.depth)
        written, free, banks, word = self._elaborate_writer(m)
        control = _Reader(m, self, written, free, queue.available)
        m.d.comb += [word.eq(control.word), queue.reserve.eq(control.issue & control.produces)]

        # From a step to the cycle in which its word is in the registers.
        stages = self.latency - 1 - int(steps.masked)
        pad = Const(self.pad_value, self.result_shape)
        # What is outside, not what is inside: the masks become resets of registers, which the cells have for ones only.
        masks = {
            span: _later(m, f"outside_{span[0]}_{span[1]}", _inverse(inside), stages)
            for span, inside in control.columns.items()
        }
        shifts = delayed(m, "shift", control.issue, stages - 1)
        pixels: dict[tuple[int, int], list[Value]] = {}
        for row in steps.kernel_rows:
            choice = _later(m, f"choice_{row}", control.banks[row], stages - 1)
            outside = _later(m, f"row_outside_{row}", _inverse(control.rows[row]), stages - 1)
            registers = self._elaborate_columns(m, row, banks, choice, outside, shifts)
            for offset, span in steps.columns.items():
                age, place = steps.delay - offset // steps.pixels, offset % steps.pixels
                mask = masks[span]
                pixels[row, offset] = [
                    value if isinstance(mask, Const) else Mux(mask, pad, value) for value in registers[place][age]
                ]
        m.d.comb += queue.push.eq(delayed(m, "push", queue.reserve, self.latency - 1))
        for index, key in enumerate(taken):
            for channel, value in enumerate(pixels[key]):
                if steps.masked:
                    # A register behind the masks: they would be resets of the queue's registers, behind its handshakes.
                    kept = Signal.like(value, name=f"masked_{index}_{channel}", init=0, reset_less=True)
                    m.d.sync += kept.eq(value)
                    value = kept
                start = index * pixel_width + channel * self.result_shape.width
                m.d.comb += queue.payload[start : start + self.result_shape.width].eq(value)
        places = {key: index for index, key in enumerate(taken)}
        windows = [
            [places.get((row, steps.offset(window, column))) for row in range(kh) for column in range(kw)]
            for window in range(steps.windows)
        ]
        connect_windows(m, queue, self.o, windows, self.channels, self.result_shape, self.pad_value)
        return m

    def _elaborate_writer(self, m: Module) -> tuple[Value, Signal, list[Value], Signal]:
        """Build the banks. Return "a word comes in", "there is room for one" (to be driven), the word each bank shows,
        and the read address (to be driven)."""
        words = self.steps.words
        free, accept = Signal(name="free"), Signal(name="accept")
        m.d.comb += [self.i.ready.eq(free), accept.eq(self.i.valid & free)]
        row_done = accept & loop(m, "write_word", words, accept)
        bank = count_up(m, "write_bank", self.rows, row_done)
        payload = Value.cast(self.i.payload)
        word = Signal(range(max(2, words)), name="read_word")
        if words == 1:  # a bank that is free may take anything: its enable does not ask whether there is a beat
            shown: list[Value] = []
            for index in range(self.rows):
                register = Signal(len(payload), name=f"bank_{index}", reset_less=True)
                with m.If(free & (bank == index)):
                    m.d.sync += register.eq(payload)
                shown.append(register)
            return accept, free, shown, word
        write_data = Signal(len(payload), reset_less=True)
        write_word = count_up(m, "write_place", words, accept)
        write_place = Signal.like(write_word, name="write_address", reset_less=True)
        m.d.sync += [write_data.eq(payload), write_place.eq(write_word)]
        shown = []
        for index in range(self.rows):
            # A word that is used is never read while it is written.
            store = BufferMemory(f"bank_{index}", len(payload), words)
            enable = Signal(name=f"write_enable_{index}")
            m.d.sync += enable.eq(accept & (bank == index))
            store.write(m, enable, write_place, write_data)
            shown.append(store.read(m, word))
        written = Signal()
        m.d.sync += written.eq(accept)
        return written, free, shown, word

    def _elaborate_columns(
        self, m: Module, row: int, banks: list[Value], choice: Value, outside: Value, shifts: Value
    ) -> dict[int, list[list[Signal]]]:
        """Build the shift registers of a kernel row: for each used place in a word, for each number of words back, the
        pixel's channels."""
        width, registers = self.shape.width, {}
        for place, oldest in self.steps.ages.items():
            registers[place] = [
                [
                    Signal(self.result_shape, name=f"row_{row}_place_{place}_age_{age}_{channel}", reset_less=True)
                    for channel in range(self.channels)
                ]
                for age in range(oldest + 1)
            ]
            with m.If(shifts):
                for channel in range(self.channels):
                    start = (place * self.channels + channel) * width
                    element = chosen([bank[start : start + width] for bank in banks], choice)
                    if self.shape.signed:
                        element = element.as_signed()
                    newest = registers[place][0][channel]
                    m.d.sync += newest.eq(element)
                    if not isinstance(outside, Const):
                        with m.If(outside):
                            m.d.sync += newest.eq(self.pad_value)
                for older, newer in zip(registers[place][1:], registers[place], strict=False):
                    m.d.sync += [register.eq(before) for register, before in zip(older, newer, strict=True)]
        return registers


class _Reader:
    """The reader's control. Everything that belongs to a step is registered: counters run a step ahead.

    ``issue``: the reader's step; with it: ``word`` to read, ``produces``, ``rows``/``banks`` (for each kernel row
    whether it is inside the image, and its bank) and ``columns`` (for each range of beats whether it contains the one
    that the step sends).
    """

    def __init__(self, m: Module, core: WindowRows, written: Value, free: Signal, available: Value) -> None:
        self._m, self._core, self.steps = m, core, core.steps
        self.issue = Signal(name="issue")
        self._walk()
        self._outputs()
        self._inputs()
        self._counts(written, free, available)

    def _register(self, name: str, following: Value, first: int, shape: object = 1) -> Signal:
        """Return a register that is ``first`` in a frame's first step and then ``following`` of the step ahead."""
        register = Signal(shape, name=name, init=first)
        with self._m.If(self.issue):
            self._m.d.sync += register.eq(following)
        return register

    def _walk(self) -> None:
        """Count word, output row, and the ends of rows and frames, for the step ahead; all begin with a frame's step 1.
        """
        m, steps = self._m, self.steps
        words, rows = steps.words, steps.geometry.out_height
        short, long = steps.row_steps, steps.row_steps + steps.tail  # of a frame's last row
        self._ends_first = (long if rows == 1 else short) == 1  # step 0 is its output row's last one
        self._row = Signal(range(max(2, rows)), name="row_ahead", init=int(self._ends_first and rows > 1))
        self._place = Signal(range(max(2, long)), name="word_ahead", init=int(not self._ends_first))
        last = self._row == rows - 1 if rows > 1 else Const(1)
        self._row_end: Value = self._place == short - 1 if long > 1 else Const(1)
        if steps.tail:
            self._row_end = Mux(last, self._place == long - 1, self._row_end)
        # A step from the last word on that does not end the row.
        self._waits: Value = (self._place >= words - 1) & ~self._row_end if long > words else Const(0)
        self._frame_end = self._row_end & last
        with m.If(self.issue):
            with m.If(self._row_end):
                m.d.sync += [self._place.eq(0), self._row.eq(Mux(last, 0, self._row + 1))]
            with m.Else():
                m.d.sync += self._place.eq(self._place + 1)
        self.word = self._register("word", self._place, 0, range(max(2, words))) if words > 1 else Const(0)

    def _outputs(self) -> None:
        """Determine which steps send a beat, and which beat of its output row."""
        m, steps = self._m, self.steps
        length = steps.row_steps
        start = -steps.delay % length  # of the steps whose beats the first ones would send
        final = divmod(length - 1, steps.period)

        restart = int(start == 0), *divmod(start, steps.period)
        init = (1, 0, 0) if start == length - 1 else (int(start == 0), *divmod(start + 1, steps.period))
        if steps.steps == 1:
            init = restart
        shapes = 1, range(max(2, final[0] + 1)), range(max(2, steps.period))
        begun, beat, part = (
            Signal(shape, name=f"{name}_ahead", init=value)
            for name, shape, value in zip(("begun", "beat", "part"), shapes, init, strict=True)
        )
        with m.If(self.issue):
            with m.If(self._frame_end):
                m.d.sync += [begun.eq(restart[0]), beat.eq(restart[1]), part.eq(restart[2])]
            with m.Elif((beat == final[0]) & (part == final[1])):
                m.d.sync += [begun.eq(1), beat.eq(0), part.eq(0)]
            with m.Elif(part == steps.period - 1):
                m.d.sync += [beat.eq(beat + 1), part.eq(0)]
            with m.Else():
                m.d.sync += part.eq(part + 1)
        always = steps.steps == steps.geometry.out_height * steps.beats
        self.produces: Value = Const(1)
        if not always:
            sends = begun & (part == 0) & within(beat, 0, steps.beats - 1, final[0])
            self.produces = self._register("produces", sends, int(steps.sends(0, 0) == 0))
        first = restart[1]
        self.columns: dict[tuple[int, int], Value] = {}
        for low, high in sorted(set(steps.columns.values())):
            inside = within(beat, low, high, steps.beats - 1)
            if not isinstance(inside, Const):
                inside = self._register(f"beat_in_{low}_{high}", inside, int(low <= first <= high))
            self.columns[low, high] = inside

    def _inputs(self) -> None:
        """Determine for each kernel row whether it is inside the image, and its bank."""
        m, steps, rows = self._m, self.steps, self._core.rows
        g = steps.geometry
        self.rows: dict[int, Value] = {}
        self.banks: dict[int, Value] = {}
        row_end = self._register("row_end", self._row_end, int(self._ends_first))
        frame_end = self._register("frame_end", self._frame_end, int(steps.steps == 1))
        over = (g.height - (g.out_height - 1) * g.stride[0]) % rows
        for row, (low, high) in steps.kernel_rows.items():
            inside = within(self._row, low, high, g.out_height - 1)
            self.rows[row] = inside
            if not isinstance(inside, Const):
                self.rows[row] = self._register(f"inside_{row}", inside, int(low == 0))
            first = (row * g.dilation[0] - g.pads[0]) % rows
            self.banks[row] = bank = Signal(range(max(2, rows)), name=f"bank_of_{row}", init=first)
            with m.If(self.issue & row_end):
                m.d.sync += bank.eq(Mux(frame_end, turned(m, bank, over, rows), turned(m, bank, g.stride[0], rows)))

    def _counts(self, written: Value, free: Signal, available: Value) -> None:
        """Build the counts of words through which writer and reader wait for each other."""
        m, g, words, rows = self._m, self.steps.geometry, self.steps.words, self._core.rows
        needs = [
            (g.needed_rows(y + 1) if y + 1 < g.out_height else g.height + g.needed_rows(0)) - g.needed_rows(y)
            for y in range(g.out_height)
        ]
        frees = [g.released_rows(y) - (g.released_rows(y - 1) if y else 0) for y in range(g.out_height)]
        changes = [
            (words - 1 - needed * words, 1 + (released - 1) * words if released else 0, int(released > 0))
            for needed, released in zip(needs, frees, strict=True)
        ]
        # Words that are written beyond the one the step waits for, less one; words the writer may write, less one.
        least = min(change[0] for change in changes)
        most = max(change[1] for change in changes)
        first = (g.needed_rows(0) - 1) * words + 1
        bound = (rows + max(g.greatest_lead, g.greatest_surplus, 0) + 2) * words
        lead = Signal(range(min(least, -first, -1) - 1, bound), name="lead", init=-first)
        spare = Signal(range(-1, bound), name="spare", init=rows * words - 1)
        taken, returned = Signal(range(min(least, -1), max(words, 2)), name="lead_ahead"), Signal(range(most + 2))
        for y, change in enumerate(changes):
            if y and change == changes[y - 1]:
                continue
            with m.If(self._row >= y) if y else m.If(1):
                with m.If(self._row_end):
                    m.d.comb += [taken.eq(change[0]), returned.eq(change[1])]
                with m.Elif(self._waits):
                    m.d.comb += [taken.eq(0), returned.eq(0)]
                with m.Else():
                    m.d.comb += [taken.eq(-1), returned.eq(change[2])]
        after = changes[0][:2] if self._ends_first else (0, 0) if words == 1 else (-1, changes[0][2])
        lead_change = self._register("lead_change", taken, after[0], taken.shape())
        spare_change = self._register("spare_change", returned, after[1], returned.shape())
        spare_less = self._register("spare_change_less", returned - 1, after[1] - 1, range(-1, most + 1))
        # All sums at once, the choice last: `issue` and what arrives come late, and pass no carry chain.
        arrives = self._core.i.valid & free
        m.d.sync += [
            lead.eq(Mux(self.issue, lead + (lead_change + written), lead + written)),
            spare.eq(
                Mux(
                    self.issue,
                    Mux(arrives, spare + spare_less, spare + spare_change),
                    Mux(arrives, spare - 1, spare),
                )
            ),
        ]
        m.d.comb += [
            free.eq(spare >= 0),
            self.issue.eq((lead >= 0) & (available | ~self.produces)),
        ]


def connect_windows(
    m: Module,
    queue: OutputQueue,
    o: Any,
    windows: list[list[int | None]],
    channels: int,
    shape: Shape,
    pad_value: int,
) -> None:
    """Connect a queue with each pixel of a beat once to the stream ``o`` of whole windows: for the taps of each window
    the index of the pixel, None for one that is never inside the image."""
    m.d.comb += [o.valid.eq(queue.o.valid), queue.o.ready.eq(o.ready)]
    taps = [place for window in windows for place in window]
    for index, place in enumerate(taps):
        for channel in range(channels):
            value: Value = Const(pad_value, shape)
            if place is not None:
                start = (place * channels + channel) * shape.width
                value = queue.o.payload[start : start + shape.width]
            m.d.comb += Value.cast(o.payload[index * channels + channel]).eq(value)


def check_rows(geometry: WindowGeometry, rows: int) -> None:
    """Raise ValueError unless the windows of every output row fit into a buffer of ``rows`` image rows."""
    if rows < geometry.minimum_rows:
        raise ValueError(
            f"rows must be at least {geometry.minimum_rows}, not {rows}: "
            "with fewer the window's rows are never in the buffer together"
        )


def check_pad_value(shape: Shape, pad_value: int) -> None:
    """Raise ValueError unless ``shape`` holds ``pad_value``."""
    low, high = interval(shape)
    if not low <= pad_value <= high:
        raise ValueError(f"pad_value must be in {low}..{high}, the range of {shape}, not {pad_value}")


def _inverse(value: Value) -> Value:
    return value if isinstance(value, Const) else ~value


def _later(m: Module, name: str, value: Value, cycles: int) -> Value:
    return value if isinstance(value, Const) else delayed(m, name, value, cycles)


def within(value: Value, low: int, high: int, greatest: int) -> Value:
    """Return ``low <= value <= high`` for a value of at most ``greatest``, with only the comparisons needed."""
    terms: list[Value] = []
    if low > 0:
        terms.append(value.any() if low == 1 else value >= low)
    if high < greatest:
        terms.append(value != greatest if high == greatest - 1 else value <= high)
    if not terms:
        return Const(1)
    return terms[0] if len(terms) == 1 else terms[0] & terms[1]


def turned(m: Module, bank: Value, amount: int, banks: int) -> Value:
    """Return ``bank + amount`` modulo ``banks``, as a table."""
    if amount % banks == 0:
        return bank
    result = Signal(range(max(2, banks)), name=f"turned_{amount % banks}")
    with m.Switch(bank):
        for index in range(banks):
            with m.Case(index):
                m.d.comb += result.eq((index + amount) % banks)
    return result


def chosen(values: list[Value], choice: Value) -> Value:
    """Return the value at index ``choice``: a tree of multiplexers, one level per bit; unspecified for a choice beyond
    them."""
    bit = 0
    while len(values) > 1:
        values = [
            Mux(choice[bit], values[k + 1], values[k]) if k + 1 < len(values) else values[k]
            for k in range(0, len(values), 2)
        ]
        bit += 1
    return values[0]
