"""The words under each window of a layer whose geometry is not known until the engine runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value

from hdl_lib.blocks import less


def count_down(m: Module, name: str, most: Value, begin: Value, advance: Value) -> Signal:
    """Count from ``most`` to 0 and again, a step in every cycle with ``advance``, from the beginning after one with
    ``begin``; return "it is 0", a register."""
    left = Signal(len(most), name=f"{name}_left")
    last = Signal(name=f"{name}_last")
    with m.If(begin | (advance & last)):
        m.d.sync += [left.eq(most), last.eq(most == 0)]
    with m.Elif(advance):
        m.d.sync += [left.eq(left - 1), last.eq(left == 1)]
    return last


def onward(place: Value, move: Value, words: Value) -> Value:
    """Return a place in a region of so many words, some words on: ``move``, less than there are."""
    return _round(place + move, place + move - words)


def one_on(place: Value, last: Value) -> Value:
    """Return the next place of a region that ends with the place ``last``: behind that one comes 0."""
    return _round(place + 1, place - last)


def onward_soon(m: Module, name: str, place: Value, move: Value, words: Value) -> Value:
    """Return the same of a cycle ago."""
    reached, wrapped = place + move, place + move - words
    sums = [Signal(each.shape(), name=f"{name}_{suffix}", reset_less=True)
            for each, suffix in ((reached, "reached"), (wrapped, "wrapped"))]
    m.d.sync += [sums[0].eq(reached), sums[1].eq(wrapped)]
    return _round(*sums)


def _round(reached: Value, wrapped: Value) -> Value:
    """Return the sum that is within the region: both at once, the choice last."""
    return Mux(wrapped.as_signed()[-1], reached, wrapped)


@dataclass(frozen=True)
class Step:
    """What a step is, in registers or a few gates behind them. ``place``: of its word in the source's region;
    ``outside``: that lies in the padding; ``taps_last``: it is the last word of its window; ``pixel_last``: the window
    is the last one; ``block_last``: the word is the last one of its pixel's; ``whole``: the window has a result, and
    does not only slide on."""

    place: Value
    outside: Value
    taps_last: Value
    pixel_last: Value
    block_last: Value
    whole: Value


def window_walk(m: Module, layer: Mapping[str, Value], begin: Value, origin: Value, tap: Value, pixel: Value) -> Step:
    """Walk the windows of a layer with the numbers ``layer`` (:mod:`hdl_lib.engine.fields`): from the beginning after a
    cycle with ``begin``, where the first one's first word is at the place ``origin``; one word on after each with
    ``tap``, and one window on after each with ``pixel``. Where there are no ``<move>_round``, a move less the region's
    words, these are taken off behind each move: with fewer gates, and slower. Where there are, a window must take two
    cycles at least: where the next one begins is in registers."""
    block_last = count_down(m, "block", layer["blocks_left"], begin, tap)
    column_tap_last = count_down(m, "kernel_column", layer["kernel_columns_left"], begin, tap & block_last)
    row_tap_last = count_down(
        m, "kernel_row", layer["kernel_rows_left"], begin, tap & block_last & column_tap_last
    )
    column_last = count_down(m, "column", layer["columns_left"], begin, pixel)
    row_last = count_down(m, "row", layer["rows_left"], begin, pixel & column_last)

    # Places in the region: of the step, of its window, of the first window of its row.
    shape = layer["source_words"].shape()
    place, window, first = (Signal(shape, name=f"place{suffix}", reset_less=True) for suffix in ("", "_window", "_row"))

    at_once = "tap_round" in layer

    def moved(place: Value, name: str) -> Value:
        reached = place + layer[name]
        return _round(reached, place + layer[f"{name}_round"] if at_once else reached - layer["source_words"])

    ahead = m.d.sync if at_once else m.d.comb
    next_window = Signal(shape, name="next_window", reset_less=True)
    ahead += next_window.eq(Mux(column_last, moved(first, "row"), moved(window, "pixel")))
    one_round = Signal(Shape(shape.width + 1, True), name="one_round", reset_less=True)
    ahead += one_round.eq(1 - layer["source_words"])
    with m.If(begin):
        m.d.sync += [each.eq(origin) for each in (place, window, first)]
    with m.Elif(pixel):
        m.d.sync += [place.eq(next_window), window.eq(next_window)]
        with m.If(column_last):
            m.d.sync += first.eq(next_window)
    with m.Elif(tap):
        reached = place + Mux(block_last, Mux(column_tap_last, layer["kernel_row"], layer["tap"]), 1)
        wrapped = reached - layer["source_words"]
        if at_once:
            back = Mux(column_tap_last, layer["kernel_row_round"], layer["tap_round"])
            wrapped = place + Mux(block_last, back, one_round)
        m.d.sync += place.eq(_round(reached, wrapped))

    # The same in rows and columns of the image.
    reach = max(len(layer[name]) for name in ("column_first", "row_first", "column_back", "width", "height"))
    column, column_window, row, row_window = (
        Signal(Shape(reach + 2, True), name=name, reset_less=True)
        for name in ("column", "column_window", "row", "row_window")
    )
    next_column, next_row = (Signal.like(column, name=name) for name in ("next_column", "next_row"))
    ahead += [
        next_column.eq(Mux(column_last, layer["column_first"], column_window + layer["column_pixel"])),
        next_row.eq(row_window + Mux(column_last, layer["row_pixel"], 0)),
    ]
    with m.If(begin):
        m.d.sync += [each.eq(layer["column_first"]) for each in (column, column_window)]
        m.d.sync += [each.eq(layer["row_first"]) for each in (row, row_window)]
    with m.Elif(pixel):
        m.d.sync += [column.eq(next_column), column_window.eq(next_column)]
        m.d.sync += [row.eq(next_row), row_window.eq(next_row)]
    with m.Elif(tap & block_last):
        with m.If(column_tap_last):
            m.d.sync += [column.eq(column - layer["column_back"]), row.eq(row + layer["row_tap"])]
        with m.Else():
            m.d.sync += column.eq(column + layer["column_tap"])
    outside = (column < 0) | (row < 0) | ~less(column, layer["width"]) | ~less(row, layer["height"])
    taps_last = block_last & column_tap_last & row_tap_last
    whole = _whole(m, layer, begin, pixel, column_last) if "before_next" in layer else Const(1)
    return Step(place, outside, taps_last, column_last & row_last, block_last, whole)


def _whole(m: Module, layer: Mapping[str, Value], begin: Value, pixel: Value, column_last: Value) -> Value:
    """Return whether a window has all of its columns, and is not one that a stride leaves out."""
    left = Signal(max(len(layer[name]) for name in ("before_first", "before_next")), name="before_window")
    with m.If(begin | (pixel & column_last)):
        m.d.sync += left.eq(layer["before_first"])
    with m.Elif(pixel):
        m.d.sync += left.eq(Mux(left == 0, layer["before_next"], left - 1))
    return left == 0
