"""The pixels under each position of a sliding window, without those of padding."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal, Value

from hdl_lib.blocks import loop
from hdl_lib.windows.clipped_taps import CyclicSequence, clipped_taps, rounds
from hdl_lib.windows.sliding_window import SlidingWindow


class ClippedWindow(SlidingWindow):
    """A :class:`hdl_lib.windows.sliding_window.SlidingWindow` that sends only the pixels inside the image.

    Parameters, members, order and latency are the same; ``pad_value`` is never sent. Every window must have a pixel
    inside the image.

    Timing
    ------
    As there, but an output row has only the steps of its pixels inside the image. Initiation interval: all of these
    together, or ``height * width * blocks`` if that is more.
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        if not all(clipped_taps(self.geometry)):
            raise ValueError("every window must have a pixel inside the image; do not clip these")

    def _elaborate_reader_address(self, m: Module) -> tuple[Value, Value, Signal, Value]:
        g, blocks, words = self.geometry, self.blocks, self.words
        (sh, sw), (dh, dw), beats = g.stride, g.dilation, g.width * blocks
        rows, columns = g.inside(0), g.inside(1)
        issue, tap_done, kernel_row_done, window_done = (
            Signal(name=name) for name in ("issue", "tap_done", "kernel_row_done", "window_done")
        )
        # Where windows begin in their image row, in beats, and in the image, in rows.
        lefts = [(x * sw - g.pads[1] + first * dw) * blocks for x, (first, _) in enumerate(columns)]
        tops = [y * sh - g.pads[0] + first * dh for y, (first, _) in enumerate(rows)]

        # The window after the present one: its columns and rows (less one), and the way to the one after it.
        over, down = int(g.out_width > 1), int(g.out_width == 1 and g.out_height > 1)
        moves = [following - left for left, following in zip(lefts, [*lefts[1:], lefts[0]], strict=True)]
        across = CyclicSequence(
            m, "column", [(count - 1, move) for (_, count), move in zip(columns, moves, strict=True)], window_done, over
        )
        next_columns, move = across.values
        falls = [
            (following - top) % self.rows * beats
            for top, following in zip(tops, [*tops[1:], g.height + tops[0]], strict=True)
        ]
        next_row = Signal()
        m.d.comb += next_row.eq(window_done & across.last)
        along = CyclicSequence(
            m, "row", [(count - 1, fall, fall - words) for (_, count), fall in zip(rows, falls, strict=True)], next_row,
            down,
        )
        next_rows, fall, wrapped_fall = along.values
        next_left = Signal(range(max(*lefts, 0) + 1), name="next_left", init=lefts[over])
        second = (tops[0] % self.rows * beats + falls[0] * (g.out_width == 1)) % words  # of another frame, maybe
        next_place = Signal(range(max(2, words)), name="next_place", init=second)
        wrapped = (next_place + wrapped_fall).as_signed()
        with m.If(window_done):
            m.d.sync += next_left.eq(next_left + move)
        with m.If(next_row):
            m.d.sync += next_place.eq(Mux(wrapped[-1], next_place + fall, wrapped))

        # The present window: its columns (less one), its first pixel, whether it ends an output row.
        width = Signal(range(g.kernel[1]), name="window_columns", init=columns[0][1] - 1)
        left = Signal(range(max(*lefts, 0) + 1), name="window_left", init=lefts[0])
        ends_row = Signal(init=g.out_width == 1)
        with m.If(window_done):
            m.d.sync += [width.eq(next_columns), left.eq(next_left), ends_row.eq(across.last)]

        # The step: functions of registers tell whether it ends a loop.
        tap_last = loop(m, "block", blocks, issue)
        window_last = Signal()
        counts = [count - 1 for _, count in columns]
        column_last = rounds(
            m, "kernel_column", counts, counts[0], tap_done, Mux(window_last, next_columns, width)
        )
        kernel_row_last = tap_last & column_last
        counts = [count - 1 for _, count in rows]
        m.d.comb += [
            window_last.eq(kernel_row_last & rounds(m, "kernel_row", counts, counts[0], kernel_row_done, next_rows)),
            tap_done.eq(issue & tap_last),
            kernel_row_done.eq(issue & kernel_row_last),
            window_done.eq(issue & window_last),
        ]
        column = Signal(range(beats), name="column", init=lefts[0])
        with m.If(issue):
            with m.If(window_last):
                m.d.sync += column.eq(next_left)
            with m.Elif(kernel_row_last):
                m.d.sync += column.eq(left)
            with m.Else():
                m.d.sync += column.eq(column + Mux(tap_last, dw * blocks - (blocks - 1), 1))
        place = Signal(range(max(2, words)), name="place", init=tops[0] % self.rows * beats)
        offset = dh % self.rows * beats
        lower = (place - (words - offset)).as_signed()
        with m.If(kernel_row_done):
            m.d.sync += place.eq(Mux(window_last, next_place, Mux(lower[-1], place + offset, lower)))
        address = Signal(range(max(2, words)))
        m.d.comb += address.eq(place + column)
        return address, Const(0), issue, window_done & ends_row
