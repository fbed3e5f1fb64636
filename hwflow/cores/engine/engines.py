"""The hardware that could run a network's layers, as far as plans need it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from amaranth.utils import ceil_log2

from hdl_lib.engine.engine_program import BYTE, Forms, Instruction, Layer, Program, packing_of
from hdl_lib.engine.kept_words import MOST_ROWS
from hdl_lib.engine.serial_fields import complete
from hdl_lib.engine.serial_program import SerialProgram
from hdl_lib.engine.weight_ring import SHALLOW
from hwflow.cores.engine.column_packing import packed
from hwflow.cores.engine.engine_layers import EngineLayer
from hwflow.cores.engine.network_part import Network, Shape
from hwflow.cores.engine.signed_maps import with_sign

_IN_BLOCKS = 64  # words of the ring that are in block RAM
_AROUND = 45  # cycles of a layer's last block besides its windows
_BETWEEN = 8  # of each other block
_MOST_COLUMNS = 5  # of windows that slide: for each there is a multiplexer in front of a multiplier of each row
_MOVE = 1.2  # cycles of a word of the memory outside
_SERIAL_BURST = 128  # words: of two of them one block RAM has room
_SERIAL_PART = 15  # magnitude bits of an operand, with which products of parts fit an SB_MAC16


@dataclass(frozen=True)
class Engine:
    """The hardware for a program: ``lanes``, of which ``together`` results leave in a cycle, and ``soft`` of whose rows
    multiply in look-up tables; beats of weights of ``width`` bits, at most ``spare`` words of which are on their way at
    a time; ``weight_bits`` of a weight."""

    lanes: int
    together: int
    width: int
    spare: int
    soft: int = 0
    weight_bits: int = BYTE

    @property
    def rows_of_block(self) -> int:
        """Return the rows that share a multiplier block."""
        return 2 if packing_of(self.lanes, self.weight_bits) else 1

    @property
    def longest(self) -> int:
        """Return the words of the longest burst of weights; 0: of the fastest plan."""
        return 0

    def network(self, network: Network) -> Network:
        """Return a network as this computes it."""
        return packed(network, self.lanes)

    def header(self, forms: Forms) -> int:
        """Return the words in front of a block's weights."""
        return -(-(forms.multiplier_bits + forms.addend_bits) // (self.lanes * self.weight_bits))

    def ring(self, network: Network) -> int:
        """Return the words of the ring of weights: those of the largest block, and of a burst that ends in the next
        one, as a power of two, or as many as block RAMs have."""
        # Also where weights are the same at all taps: the more room there is, the further ahead they come. Block RAMs
        # have room for some words in any case.
        taps = max(self.taps(network, layer) for layer in network.computed)
        words = int(1 << ceil_log2(taps + self.header(network.forms) + self.spare))
        return max(words, SHALLOW) if words >= _IN_BLOCKS else words

    def _fetched(self, network: Network, layer: EngineLayer) -> int:
        """Return the words of weights of a block."""
        return self.header(network.forms) + (1 if self.repeats(layer) else self.taps(network, layer))

    def taps(self, network: Network, layer: EngineLayer) -> int:
        """Return the words that are read for a window, from which a word of a layer's map is made."""
        taps = layer.window.taps // (layer.window.kernel[1] if self.slides(layer) else 1)
        return taps * (1 if layer.diagonal else self.blocks(network.shapes[layer.source].parts))

    def slides(self, layer: EngineLayer) -> bool:
        """Tell whether a layer's windows slide over the columns, each of which is read once for a row of windows: the
        small ones of a depthwise layer that overlap."""
        window = layer.window
        (rows, columns), stride = window.kernel, window.strides[1]
        plain = layer.diagonal and not layer.maximum and layer.added is None and window.dilations[1] == 1
        small = rows <= MOST_ROWS and columns <= min(_MOST_COLUMNS, self.lanes // self.rows_of_block)
        return plain and small and stride < columns and window.output[1] > columns

    def repeats(self, layer: EngineLayer) -> bool:
        """Tell whether a layer's weights, the same at all taps, come once."""
        several = layer.diagonal and not self.slides(layer) and layer.window.taps > 1
        return several and bool((layer.weights == layer.weights[0]).all())

    def blocks(self, parts: Sequence[int]) -> int:
        """Return the words of a pixel of such parts."""
        return sum(-(-channels // self.lanes) for channels in parts)

    def within(self, network: Network, blocks: int) -> Engine | None:
        """Return the engine with as many rows in look-up tables as must be for so many multiplier blocks; None if what
        requantizes takes more."""
        left = blocks - self.together * network.forms.multipliers
        rows = left // self.lanes * self.rows_of_block
        return replace(self, soft=max(0, self.lanes - rows)) if left >= 0 else None

    def words(self, shape: Shape, rows: int | None = None) -> int:
        """Return the words of so many rows of a map; of all."""
        return (shape.rows if rows is None else rows) * shape.columns * self.blocks(shape.parts)

    def cycles(self, network: Network, number: int, rows: int, cycles_of_beat: float) -> float:
        """Return about how many cycles some ``rows`` of a map take, if weights come one by one in ``cycles_of_beat``.
        """
        layer, shape = network.layer(number), network.shapes[number]
        taps, stride = self.taps(network, layer), layer.window.strides[1] if self.slides(layer) else 1
        steps = max(taps + (layer.added is not None), self.lanes // self.together) * stride
        size = self.lanes if layer.diagonal else self.lanes**2
        heads = self.header(network.forms)
        weights = heads * self.lanes**2 + (self._fetched(network, layer) - heads) * size
        fetched = weights * self.weight_bits / self.width * cycles_of_beat
        times, blocks = prod(layer.spread), self.blocks(shape.parts)
        computed = blocks * rows * shape.columns * steps + times * ((blocks - 1) * _BETWEEN + _AROUND)
        return max(computed, times * blocks * fetched)

    def cycles_of_move(self, shape: Shape) -> float:
        """Return about how many cycles it takes to send a map to memory outside, or to load it from there."""
        return _MOVE * self.words(shape) * self.lanes * 8 / self.width

    def program(self, network: Network, instructions: Sequence[Instruction], words: int) -> Program:
        """Return the program of these instructions, with so many words of memory."""
        return Program(
            self.lanes, self.together, tuple(instructions), network.forms, words, self.ring(network), self.width,
            self.soft, tuple(tuple(element % (1 << 8) for element in table) for table in network.tables),
            network.packed, self.weight_bits, network.overlap,
        )


@dataclass(frozen=True)
class SerialEngine(Engine):
    """The hardware for a serial program (:mod:`hdl_lib.engine.serial_program`)."""

    def slides(self, layer: EngineLayer) -> bool:
        return False

    @property
    def rows(self) -> int:
        """Return the channels that are computed at once."""
        return 2 * self.lanes

    @property
    def longest(self) -> int:
        return _SERIAL_BURST

    def network(self, network: Network) -> Network:
        return with_sign(network)

    def header(self, forms: Forms) -> int:
        return 2 * self.rows

    def taps(self, network: Network, layer: EngineLayer) -> int:
        """Return the steps of a window."""
        *parts, last = network.shapes[layer.source].parts
        return layer.window.taps * (1 if layer.diagonal else self.lanes * self.blocks(parts) + last)

    def ring(self, network: Network) -> int:
        words = max(self._fetched(network, layer) for layer in network.computed)
        return int(1 << ceil_log2(words + self.spare))

    def within(self, network: Network, blocks: int) -> Engine | None:
        """Return the engine, if it can run a network's layers with so many multiplier blocks."""
        if network.forms.adds or network.tables or network.spreads:
            return None
        forms = replace(with_sign(network).forms, part=_SERIAL_PART)
        narrow = max(forms.multiplier_bits, forms.addend_bits) <= self.rows * 8
        return self if narrow and self.rows // 2 + forms.scaling.blocks <= blocks else None

    def cycles(self, network: Network, number: int, rows: int, cycles_of_beat: float) -> float:
        layer, shape = network.layer(number), network.shapes[number]
        taps, blocks = self.taps(network, layer), self.blocks(shape.parts)
        made = 1 if layer.diagonal else min(2, blocks)
        waits = made if layer.diagonal or taps < 6 * self.lanes else 0
        steps = max(taps + 1, 2 * (self.lanes if layer.diagonal else self.rows) + 2) + waits
        fetched = self._fetched(network, layer) * self.rows * 8 / self.width * cycles_of_beat
        return -(-blocks // made) * max(rows * shape.columns * steps + _AROUND, fetched)

    def program(self, network: Network, instructions: Sequence[Instruction], words: int) -> Program:
        signed = tuple(replace(each, signed=True) if isinstance(each, Layer) else each for each in instructions)
        forms = replace(network.forms, part=_SERIAL_PART)
        return complete(SerialProgram(
            self.lanes, self.together, signed, forms, words, self.ring(network), self.width, offsets=network.offsets
        ))
