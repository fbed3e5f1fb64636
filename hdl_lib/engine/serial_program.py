"""What a serial engine does, step by step: a program whose layers take one element of a window after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hdl_lib.engine.engine_program import BYTE, Layer, Program
from hdl_lib.requantizers.shift_and_clamp import ShiftRounding

_SUMS = 4  # cycles from a step to the sums that it ends, in their registers, but for that of maxima
_RESULT = 6  # cycles from sums to the first result, in a word, but for that of rounding
_BETWEEN = 2  # cycles from a result to the next one
_FEWEST = 1  # cycles between windows, in which sums begin again
_SETTING = 2  # cycles in front of an instruction, besides those of its words


@dataclass(frozen=True)
class SerialProgram(Program):
    """Words of the memory have ``lanes`` elements. A step multiplies one element by the weights of ``rows`` channels;
    of a diagonal layer the ``lanes`` elements of a word, each by its own weight. A word of weights is those of a step,
    ``rows`` of 8 bits. ``together`` is 1, ``soft`` 0. ``setting_words``: of the program's memory for an instruction.
    ``offsets``: what elements of the image, and of the result, are less in the memory; 0 or 128."""

    setting_words: int = 1
    offsets: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lanes & (self.lanes - 1):
            raise ValueError(f"lanes of a serial engine must be a power of two, not {self.lanes}")
        if any(offset not in (0, 1 << BYTE - 1) for offset in self.offsets):
            before, behind = self.offsets
            raise ValueError(f"offsets must be 0 or {1 << BYTE - 1}, not {before} and {behind}")
        if self.together != 1 or self.soft or self.forms.adds or self.tables:
            raise ValueError("a serial engine has one result at a time, and no second stage or tables")
        if self.levels:
            raise ValueError("a serial engine has all maps in its own memory")
        if not all(layer.signed for layer in self.layers):
            raise ValueError("elements of a serial engine must have a sign")
        if max(self.forms.multiplier_bits, self.forms.addend_bits) > self.rows * BYTE:
            raise ValueError(f"multipliers and addends must have at most {self.rows * BYTE} bits")

    @property
    def sums(self) -> int:
        """Return the cycles from a step to the sums that it ends, in their registers."""
        return _SUMS + self.maxima

    @property
    def rows(self) -> int:
        """Return the channels that are computed at once."""
        return 2 * self.lanes

    @property
    def header(self) -> int:
        return 2 * self.rows

    def products(self, layer: Layer) -> int:
        """Return the steps of a window."""
        kh, kw = layer.geometry.kernel
        return kh * kw * (1 if layer.diagonal else layer.elements(self.lanes))

    def made(self, layer: Layer) -> int:
        """Return the words that a window makes."""
        return 1 if layer.diagonal else min(2, layer.out_blocks)

    def is_odd(self, layer: Layer) -> bool:
        """Tell whether a layer's last block makes a word less than the others."""
        return not layer.diagonal and layer.out_blocks % 2 == 1

    def idle(self, layer: Layer) -> int:
        """Return the cycles between windows: results leave one by one."""
        return max(_FEWEST, _BETWEEN * ((self.lanes if layer.diagonal else self.rows) + 1) - self.products(layer))

    def runs(self, layer: Layer) -> int:
        return layer.out_blocks if layer.diagonal else -(-layer.out_blocks // 2)

    def needed(self, layer: Layer) -> int:
        return self.header + (1 if layer.same else self.products(layer))

    def steps(self, layer: Layer) -> int:
        """Return the cycles from one window to the next, at the most: its elements, those between windows, and those in
        which results are written when a word should be read."""
        return self.products(layer) + self.idle(layer) + self.waits(layer)

    def waits(self, layer: Layer) -> int:
        """Return how often in a window a result may be in the way of a word, which is read at the first of its
        elements. Where all words of a long window are full, never: results are written at the same steps of the next
        window, which are others."""
        rounds = self.forms.rounding != ShiftRounding.FLOOR
        step = self.sums + _RESULT + rounds + _BETWEEN * (self.lanes - 1) - 1 - _FEWEST  # of the next window
        steps = [step + _BETWEEN * self.lanes * word for word in range(self.made(layer))]
        full = not layer.diagonal and layer.elements(self.lanes) % self.lanes == 0 and self.idle(layer) == _FEWEST
        if full and steps[-1] < self.products(layer) and all(step % self.lanes for step in steps):
            return 0
        return self.made(layer)

    @property
    def gap(self) -> int:
        """Return the cycles behind a block, in which the last results are written."""
        return self.sums + self.finish + _BETWEEN * self.lanes - 1

    @property
    def between(self) -> int:
        return self.gap

    @property
    def finish(self) -> int:
        """Return the cycles from sums to the word of the first results, written."""
        return self.result + _BETWEEN * (self.lanes - 1)

    @property
    def result(self) -> int:
        """Return the cycles from sums to the first result, in a word."""
        return _RESULT + (self.forms.rounding != ShiftRounding.FLOOR)

    @property
    def setting(self) -> int:
        return _SETTING + self.setting_words

    @property
    def products_at_once(self) -> int:
        return self.rows

    @property
    def multipliers(self) -> int:
        return self.rows // 2 + self.forms.scaling.blocks

    @property
    def beats_of_word(self) -> int:
        return self.rows * BYTE // self.width

    def beats_of(self, layer: Layer) -> int:
        """Return the beats of weights of a block."""
        return self.needed(layer) * self.beats_of_word

    def word_of(self, layer: Layer, beat: int) -> int:
        return beat // self.beats_of_word


def split(words: Sequence[int], bits: int, width: int) -> list[int]:
    """Return words of ``bits`` as words of ``width`` bits each, the lowest first."""
    return [word >> first & ((1 << width) - 1) for word in words for first in range(0, bits, width)]
