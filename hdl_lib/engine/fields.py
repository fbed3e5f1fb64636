"""The words of an engine's program: what its registers and counters take of each instruction."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Shape, Value
from amaranth.utils import bits_for

from hdl_lib.engine.engine_program import BYTE, Instruction, Layer, Load, Program, Region
from hdl_lib.memories.rom import Table

MOVES = ("tap", "kernel_row", "pixel", "row")
"""Steps of a place in the source; beside each ``<name>_round``, the same less the region's words."""

SIGNED = (
    "column_first", "row_first", "low", "high", "factor_own", "factor_other", "addend", "added_low", "added_high",
    *(f"{name}_round" for name in MOVES),
)


def numbers_of(program: Program, each: Instruction, is_last: bool) -> dict[str, int]:
    """Return the numbers of an instruction's word, by name. Loops have what they count down from, places are within
    their region."""
    found = {"is_last": int(is_last), "loads": 0, "sends": 0, "words_left": 0}
    if not isinstance(each, Layer):
        kind, side = ("loads", "target") if isinstance(each, Load) else ("sends", "source")
        found |= {kind: 1, "words_left": each.words - 1} | _region(side, each.region, each.begin)
        return found | ({"outside": 1} if each.outside else {})
    window, blocks = each.geometry, each.blocks
    (kh, kw), (dh, dw), (sh, sw) = window.kernel, window.dilation, window.stride
    top, left = window.pads[:2]
    if each.slides:  # a column at a time
        found |= {"before_first": kw - 1, "before_next": sw - 1}
        kw = sw = 1
    first = each.rows.start * sh - top
    walked = 1 if each.diagonal else blocks  # words of a pixel that are gone through
    pixel = each.source.pixel or blocks
    moves = {
        "tap": dw * pixel - (walked - 1), "kernel_row": (dh * window.width - (kw - 1) * dw) * pixel - (walked - 1),
        "pixel": sw * pixel, "row": sh * window.width * pixel,
    }
    found |= _region("source", each.source, (first * window.width - left) * pixel)
    found |= {name: move % each.source.words for name, move in moves.items()}
    found |= {f"{name}_round": move % each.source.words - each.source.words for name, move in moves.items()}
    found |= _walked("target", each.target, each)
    if program.spreads:
        found |= {"target_columns_left": window.out_width - 1, "target_row": _row_move(each.target, each)}
    found |= {
        "diagonal": int(each.diagonal), "signed": int(each.signed), "padding": each.pad_value & ((1 << BYTE) - 1),
        "blocks_left": walked - 1, "kernel_columns_left": kw - 1, "kernel_rows_left": kh - 1,
        "columns_left": each.columns - 1, "rows_left": len(each.rows) - 1, "channels_left": each.out_blocks - 1,
        "steps_left": program.steps(each) - 1, "needed": program.needed(each),
        "column_first": -left, "row_first": first, "column_tap": dw, "column_back": (kw - 1) * dw, "row_tap": dh,
        "column_pixel": sw, "row_pixel": sh, "width": window.width, "height": window.height,
        "low": each.low, "high": each.high,
    }
    if each.maximum:
        found["maximum"] = 1
    if each.same:
        found["same"] = 1
    if each.table >= 0:
        found |= {"looks_up": 1, "table": each.table}
    added = each.added
    if added is not None:
        found |= _walked("other", added.region, each)
        found |= {
            "added": 1, "other_signed": int(added.signed), "factor_own": added.factors[0],
            "factor_other": added.factors[1], "addend": added.addend, "added_low": added.low,
            "added_high": added.high,
        }
    return found


def _region(side: str, region: Region, begin: int) -> dict[str, int]:
    place = (begin + region.block) % region.words
    return {f"{side}_first": region.first, f"{side}_words": region.words, f"{side}_place": place}


def _walked(side: str, region: Region, layer: Layer) -> dict[str, int]:
    """Return the numbers of a map that is walked pixel by pixel."""
    pixel = region.pixel or layer.out_blocks
    row = region.row or layer.geometry.out_width * pixel
    return _region(side, region, layer.rows.start * row) | {f"{side}_pixel": pixel}


def _row_move(target: Region, layer: Layer) -> int:
    """Return the words from the last pixel of a row to the first one of the next."""
    pixel, columns = target.pixel or layer.out_blocks, layer.geometry.out_width
    return (target.row or columns * pixel) - (columns - 1) * pixel


class Fields:
    """Where the numbers of a program's words lie, and the words. Numbers that an instruction does not have are 0."""

    def __init__(self, program: Program) -> None:
        *_, last = program.instructions
        rows = [numbers_of(program, each, each is last) for each in program.instructions]
        self.shapes: dict[str, Shape] = {}
        for name in dict.fromkeys(name for row in rows for name in row):
            values = [row.get(name.replace("_place", "_words"), 0) for row in rows]  # a place may go as far
            if name in SIGNED:
                self.shapes[name] = Shape(max(bits_for(value, True) for value in values), True)
            else:
                self.shapes[name] = Shape(BYTE if name == "padding" else max(1, bits_for(max(values))))
        self.words = [self._word(row) for row in rows]

    @property
    def table(self) -> Table:
        """Return the program, a word for each instruction."""
        return Table.of_words(self.words, sum(shape.width for shape in self.shapes.values()))

    def of(self, word: Value) -> Mapping[str, Value]:
        """Return the numbers in a word."""
        found, first = {}, 0
        for name, shape in self.shapes.items():
            bits = word[first : first + shape.width]
            found[name] = bits.as_signed() if shape.signed else bits
            first += shape.width
        return found

    def _word(self, row: Mapping[str, int]) -> int:
        word = first = 0
        for name, shape in self.shapes.items():
            word |= (row.get(name, 0) & ((1 << shape.width) - 1)) << first
            first += shape.width
        return word
