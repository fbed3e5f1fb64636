"""What a layer engine does, step by step, and in how many cycles: plain integers, no hardware.

Feature maps lie in regions of one memory, pixel by pixel, in words of ``lanes`` elements of 8 bits. A region is a ring:
of a map that is larger than its region the latest rows are there. A layer makes each word of its target from windows
over its source: ``lanes`` sums of products at a time, each over ``lanes`` elements a cycle. Its weights come as a
stream, for one word's channels after the other; all windows are gone through while they are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate

from amaranth.hdl import signed

from hdl_lib.arithmetic.multiplier import PART, Multiplier, ProductForm, interval
from hdl_lib.arithmetic.packed_product import BLOCKS, Packing
from hdl_lib.engine.kept_words import MOST_ROWS
from hdl_lib.matrices.dot_product import ProductSum
from hdl_lib.requantizers.shift_and_clamp import ShiftRounding
from hdl_lib.windows.window_geometry import WindowGeometry

BYTE = 8
"""Bits of an element; of a weight, unless all of a network's have room in fewer."""

NARROW = 4
"""Bits of the fewer."""

_ELEMENTS = -(1 << BYTE - 1), (1 << BYTE) - 1  # the least and the greatest, with a sign or without one

READ = 8
"""Cycles from the step that reads a word to its elements."""

AHEAD = READ + 3
"""Words on their way outside."""

LOOKED_UP = 2
"""Cycles from a result to what a table has for it."""

_WRITE = 5  # cycles from a word's last result until it can be read

_WINDOW = 2  # cycles of a window, at least


@dataclass(frozen=True)
class Region:
    """``words`` of the memory from word ``first`` on. Word n of a map is word ``n % words`` of its region. It may be
    that of a greater map, of which this is a part: a pixel has ``pixel`` words there, those of the part from word
    ``block`` on. ``row``, of a target: words from a row to the next one (0: as many as its pixels have)."""

    first: int
    words: int
    pixel: int = 0
    block: int = 0
    row: int = 0


@dataclass(frozen=True)
class Load:
    """Take ``words`` of the image, from its word ``begin`` on, to its region; ``outside``: of a map that was sent to
    memory outside."""

    region: Region
    begin: int
    words: int
    outside: bool = False


@dataclass(frozen=True)
class Send:
    """Send ``words`` of a map, from its word ``begin`` on, from its region; ``outside``: to the memory there, where it
    waits until it is loaded again, behind what was sent before."""

    region: Region
    begin: int
    words: int
    outside: bool = False


@dataclass(frozen=True)
class Added:
    """A second stage: ``clamp((result * factors[0] + other * factors[1] + addend) >> shift, low, high)``. ``other``:
    the element of a map in ``region`` that has the target's place; ``signed`` or not."""

    region: Region
    signed: bool
    factors: tuple[int, int]
    addend: int
    low: int
    high: int


@dataclass(frozen=True)
class Layer:
    """``clamp((sum * multiplier + addend) >> shift, low, high)`` for each window in some ``rows`` of ``geometry`` and
    each channel.

    ``blocks``, ``out_blocks``: words of a pixel of the source, and of the target. ``diagonal``: a word of the target
    sees the word of the same number of each pixel of the source alone, as in depthwise convolutions (then there are
    equally many). ``signed``: elements of the source are. ``pad_value``: of elements outside. ``added``: what follows.
    ``maximum``, of a diagonal layer: of each channel the window's greatest element alone is multiplied, by the weight
    of the last tap. ``table``: the number of the program's table that takes the place of results, last of all; -1: none
    does. ``last``: elements of a pixel's last word of the source; 0: all.
    ``same``, of a diagonal layer whose windows do not slide: all taps have the same weights, which come once.
    ``slides``, of a diagonal layer: windows slide over the columns of the source, from each to the next one. A step
    multiplies all columns of a window's row, of which only the newest is read.
    """

    geometry: WindowGeometry
    rows: range
    blocks: int
    out_blocks: int
    source: Region
    target: Region
    diagonal: bool
    signed: bool
    pad_value: int
    low: int
    high: int
    added: Added | None = None
    maximum: bool = False
    table: int = -1
    last: int = 0
    same: bool = False
    slides: bool = False

    def elements(self, lanes: int) -> int:
        """Return the elements of a pixel of the source, in words of so many ``lanes``."""
        return (self.blocks - 1) * lanes + (self.last or lanes)

    @property
    def taps(self) -> int:
        """Return the words that are read for a window, from which a word of the target is made."""
        kh, kw = self.geometry.kernel
        return kh * (1 if self.slides else kw) * (1 if self.diagonal else self.blocks)

    @property
    def columns(self) -> int:
        """Return the windows of a row, with those that slide on without a result."""
        window = self.geometry
        return (window.out_width - 1) * window.stride[1] + window.kernel[1] if self.slides else window.out_width

    @property
    def pixels(self) -> int:
        """Return the windows."""
        return len(self.rows) * self.columns


Instruction = Load | Layer | Send


@dataclass(frozen=True)
class Forms:
    """What all layers share: bits of sums (with sign), of multipliers and addends (with sign), the shift and how it
    rounds; of the second stage bits of factors (0: there is none), of the addend, its shift and how that rounds.
    ``part``: bits without a sign of what a multiplier block takes."""

    sum_bits: int
    multiplier_bits: int
    addend_bits: int
    shift: int
    rounding: ShiftRounding = ShiftRounding.FLOOR
    factor_bits: int = 0
    added_bits: int = 1
    added_shift: int = 0
    added_rounding: ShiftRounding = ShiftRounding.FLOOR
    part: int = PART

    @property
    def scaling(self) -> Multiplier:
        """Return what multiplies a sum by its channel's multiplier."""
        return Multiplier(signed(self.sum_bits), signed(self.multiplier_bits), ProductForm.DSP, self.part)

    @property
    def weighing(self) -> Multiplier:
        """Return what multiplies a result, or what is added to it, by a factor."""
        return Multiplier(signed(BYTE + 1), signed(self.factor_bits), ProductForm.DSP, PART)

    @property
    def adds(self) -> bool:
        """Tell whether there is a second stage."""
        return self.factor_bits > 0

    @property
    def multipliers(self) -> int:
        """Return the multiplier blocks of both stages, for one result at a time."""
        return self.scaling.blocks + (2 * self.weighing.blocks if self.adds else 0)


@dataclass(frozen=True)
class Program:
    """``instructions`` of a frame, on an engine of ``lanes``, of which ``together`` results leave in a cycle, and
    ``soft`` of whose rows multiply in look-up tables.
    ``words``: of the memory; ``ring``: of the memory of weights, a power of two, each of ``lanes ** 2``; ``width``:
    bits of a beat of weights, whole weights that divide those of a row. ``tables``: of each the bytes that take
    the place of results, by their own bytes. ``pixels_of_word``: pixels of the image in a beat, of which a word of its
    map is made. ``weight_bits``: of a weight, with a sign. Where they are few, two rows share multiplier blocks.
    ``overlap``: pixels before those, of the same row, which a word of the image has, too; in front of a row there is
    the padding of the first layer, which sees the image."""

    lanes: int
    together: int
    instructions: tuple[Instruction, ...]
    forms: Forms
    words: int
    ring: int
    width: int
    soft: int = 0
    tables: tuple[tuple[int, ...], ...] = ()
    pixels_of_word: int = 1
    weight_bits: int = BYTE
    overlap: int = 0

    def __post_init__(self) -> None:
        if self.lanes % self.together:
            raise ValueError(f"together must divide the {self.lanes} lanes, not be {self.together}")
        width = self.width
        if width % self.weight_bits or self.lanes * self.weight_bits % width:
            raise ValueError(f"width must be whole weights that divide the {self.lanes} of a row, not {width} bits")
        if not 0 <= self.soft <= self.lanes:
            raise ValueError(f"soft must be 0 to {self.lanes} rows, not {self.soft}")
        if not self.layers:
            raise ValueError("there must be a layer")
        if any(layer.maximum and not layer.diagonal for layer in self.layers):
            raise ValueError("layers of maxima must be diagonal")
        if any(
            layer.slides and (layer.maximum or layer.added or not layer.diagonal or layer.geometry.dilation[1] > 1)
            for layer in self.layers
        ):
            raise ValueError("layers whose windows slide must be diagonal, without dilated columns, maxima and sums")
        if any(layer.same and (layer.slides or not layer.diagonal) for layer in self.layers):
            raise ValueError("layers whose taps have the same weights must be diagonal, and must not slide")
        most = self.lanes // (2 if self.pairs else 1)
        if self.columns > most or any(layer.slides and layer.taps > MOST_ROWS for layer in self.layers):
            raise ValueError(f"windows that slide must have at most {most} columns and {MOST_ROWS} rows")
        if any(len(table) != 1 << BYTE for table in self.tables):
            raise ValueError(f"tables must have {1 << BYTE} words")
        if self.levels and (min(self.levels) < 0 or self.levels[-1]):
            raise ValueError("what is sent outside must be loaded, and nothing else")
        needed = max(map(self.needed, self.layers))
        if self.ring & (self.ring - 1) or self.ring < needed:
            raise ValueError(f"ring must be a power of two and have room for {needed} words, not {self.ring}")

    @cached_property
    def layers(self) -> list[Layer]:
        """Return the layers, in order."""
        return [each for each in self.instructions if isinstance(each, Layer)]

    @property
    def loaded(self) -> int:
        """Return the words of the image."""
        return sum(each.words for each in self.instructions if isinstance(each, Load) and not each.outside)

    @property
    def words_of_row(self) -> int:
        """Return the words of a row of the image."""
        return self.layers[0].geometry.width

    @property
    def sent(self) -> int:
        """Return the words of the result."""
        return sum(each.words for each in self.instructions if isinstance(each, Send) and not each.outside)

    @cached_property
    def levels(self) -> list[int]:
        """Return how many words wait in the memory outside, behind each instruction that moves some."""
        moves = [each for each in self.instructions if not isinstance(each, Layer) and each.outside]
        return list(accumulate(each.words if isinstance(each, Send) else -each.words for each in moves))

    @property
    def stored(self) -> int:
        """Return the words of a frame that are sent to the memory outside."""
        return sum(each.words for each in self.instructions if isinstance(each, Send) and each.outside)

    @property
    def beats_of_map_word(self) -> int:
        """Return the words of the memory outside that a word of a map takes."""
        return self.lanes * BYTE // self.width

    @property
    def row(self) -> ProductSum:
        """Return the sum over the lanes of a word."""
        return row_of(self.lanes, ProductForm.DSP, self.weight_bits)

    @property
    def soft_row(self) -> ProductSum:
        """Return the same in look-up tables, which takes no longer."""
        return row_of(self.lanes, ProductForm.LUT, self.weight_bits)

    @cached_property
    def packing(self) -> Packing | None:
        """Return the layout of two rows' weights in a multiplier block; None: they have no room there."""
        return packing_of(self.lanes, self.weight_bits)

    @property
    def pairs(self) -> int:
        """Return how often two rows share multiplier blocks: the first rows do."""
        return (self.lanes - self.soft) // 2 if self.packing else 0

    def own_lane(self, row: int) -> int:
        """Return the lane from which on a row has its own elements where windows slide: those of two rows that share
        multiplier blocks lie side by side."""
        return self.columns if row % 2 and row < 2 * self.pairs else 0

    @cached_property
    def maxima(self) -> bool:
        """Tell whether a layer takes maxima."""
        return any(layer.maximum for layer in self.layers)

    @cached_property
    def spreads(self) -> bool:
        """Tell whether rows of a target do not follow each other."""
        return any(layer.target.row for layer in self.layers)

    @cached_property
    def columns(self) -> int:
        """Return the most columns of a window that slides; 0: none does."""
        return max((layer.geometry.kernel[1] for layer in self.layers if layer.slides), default=0)

    @property
    def read(self) -> int:
        """Return the cycles from the step that reads a word to the elements that are multiplied."""
        return READ + (self.maxima or self.columns > 0)

    @property
    def sums(self) -> int:
        """Return the cycles from a step to the sum that it ends, in its register."""
        return self.read + self.row.operand_latency + self.row.latency + 1

    @property
    def header(self) -> int:
        """Return the words in front of a block's weights, with multipliers and addends."""
        return -(-(self.forms.multiplier_bits + self.forms.addend_bits) // (self.lanes * self.weight_bits))

    def needed(self, layer: Layer) -> int:
        """Return the words that come for a word's channels."""
        return self.header + (1 if layer.same else layer.taps)

    @property
    def setting(self) -> int:
        """Return the cycles in front of an instruction: its word of the program, which is held, its addresses."""
        return 4

    def runs(self, layer: Layer) -> int:
        """Return the blocks of channels, for each of which all windows are gone through."""
        return layer.out_blocks

    def steps(self, layer: Layer) -> int:
        """Return the cycles from one window to the next: its words, what is added to it, and no fewer than results take
        to leave."""
        steps = max(layer.taps + bool(layer.added), self.lanes // self.together, _WINDOW)
        return max(steps, self.sums - READ - 1) if layer.added else steps

    @cached_property
    def gap(self) -> int:
        """Return the cycles behind a block, in which the last results are written."""
        return self.sums + self.lanes // self.together + self.finish + _WRITE

    @property
    def between(self) -> int:
        """Return the cycles behind a block, if another one of the layer follows: the last results must have their
        multipliers and addends before those of the next block come, three cycles later than the sums at the least, but
        are written while its windows begin."""
        return max(1, self.sums - self.read + self.lanes // self.together - 3)

    @property
    def written(self) -> int:
        """Return the cycles from a step to the word of the sums that it ends, to be written."""
        return self.sums + self.lanes // self.together + self.finish + 1

    @property
    def finish(self) -> int:
        """Return the cycles from a sum, in the chain from which it leaves, to the result of all stages."""
        return self.first_stage + (self.second_stage if self.forms.adds else 0) + (LOOKED_UP if self.tables else 0)

    @property
    def first_stage(self) -> int:
        """Return the cycles of the first stage: product, sum, the rounded quotient, limits."""
        rounds = self.forms.rounding != ShiftRounding.FLOOR
        return self.forms.scaling.operand_latency + self.forms.scaling.latency + 3 + rounds

    @property
    def second_stage(self) -> int:
        """Return the cycles of the second stage: products, their sum, that with the addend, the rounded quotient,
        limits."""
        rounds = self.forms.added_rounding != ShiftRounding.FLOOR
        return self.forms.weighing.operand_latency + self.forms.weighing.latency + 4 + rounds

    @property
    def products_at_once(self) -> int:
        """Return the products of a cycle."""
        return self.lanes**2

    @property
    def multipliers(self) -> int:
        """Return the multiplier blocks."""
        return self.lanes * (self.lanes - self.soft - self.pairs) + self.together * self.forms.multipliers

    @property
    def beats_of_word(self) -> int:
        """Return the beats of a word of weights."""
        return self.lanes**2 * self.weight_bits // self.width

    @property
    def beats_of_diagonal(self) -> int:
        """Return the beats of a word that is diagonal: of a weight for each row, or for each column of a window that
        slides."""
        return max(1, self.columns) * self.lanes * self.weight_bits // self.width

    def beats_of(self, layer: Layer) -> int:
        """Return the beats of weights of a block: its first one, the header, the words behind it."""
        each = self.beats_of_diagonal if layer.diagonal else self.beats_of_word
        return 1 + self.header * self.beats_of_word + (self.needed(layer) - self.header) * each

    def word_of(self, layer: Layer, beat: int) -> int:
        """Return the word of a block that a beat belongs to."""
        heads = self.header * self.beats_of_word
        if beat <= heads:
            return max(0, beat - 1) // self.beats_of_word
        return self.header + (beat - 1 - heads) // (self.beats_of_diagonal if layer.diagonal else self.beats_of_word)

    @cached_property
    def beats(self) -> int:
        """Return the beats of weights of a frame."""
        return sum(self.runs(layer) * self.beats_of(layer) for layer in self.layers)


@cache
def packing_of(lanes: int, weight_bits: int) -> Packing | None:
    """Return the layout of two weights of so many bits in a multiplier block, for sums of so many products; None: they
    have no room there."""
    return Packing.of(_ELEMENTS, interval(signed(weight_bits)), lanes, BLOCKS["MULT18X18D"])


def row_of(lanes: int, form: ProductForm, weight_bits: int) -> ProductSum:
    """Return the sum of so many products of an element, signed or not, and a weight."""
    return ProductSum(Multiplier(signed(BYTE + 1), signed(weight_bits), form, PART), lanes)
