"""Resource models of the cores: formulas over data paths, with each family's constants as data.

``lut`` counts 4-input look-up tables (carry cells count as two, memories made of look-up tables as their LUTs), ``ff``
flip-flops, ``dsp`` multiplier primitives (MULT18X18D, SB_MAC16), ``bram`` block RAM primitives (DP16KD, SB_RAM40_4K).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

from hwflow.ops.operator import Folding, Resources
from hwflow.ops.windows import WindowGeometry
from hwflow.types import IntType


@dataclass(frozen=True)
class Family:
    """Shapes of a family's primitives. ``bram_shapes``: (words, width) configurations; ``lutram``: LUTs for 16 words x 4
    bits of asynchronously read memory, None where there is none; ``dsp_width``: widest signed operands of one multiplier."""

    bram_shapes: tuple[tuple[int, int], ...]
    bram_from_bits: int  # yosys keeps smaller synchronous memories out of block RAM
    lutram: int | None
    dsp_width: int


FAMILIES = {
    "ecp5": Family(((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36)), 1024, 6, 18),
    "ice40": Family(((256, 16), (512, 8), (1024, 4), (2048, 2)), 0, None, 16),
}


def useful_lanes(channels: int) -> list[int]:
    """Lane counts worth looking at: the least one for each number of blocks; ascending."""
    return sorted({-(-channels // blocks) for blocks in range(1, channels + 1)})


def product_is_cheap_in_luts(x: IntType, w: IntType) -> bool:
    """Products so narrow that a multiplier block would be wasted on them."""
    return min(x.bits, w.bits) <= 2 or x.bits * w.bits <= 12


def block_rams(family: str, words: int, width: int) -> int:
    """Block RAMs for a memory: the best of the primitive's shapes."""
    return min(ceil(words / depth) * ceil(width / bits) for depth, bits in FAMILIES[family].bram_shapes)


def rom(family: str, words: int, width: int) -> Resources:
    """A synchronous read-only table with an output register."""
    if words == 1:
        return Resources()
    if words * width >= FAMILIES[family].bram_from_bits and words > 16:
        return Resources(ff=width, bram=block_rams(family, words, width))
    return Resources(lut=width * max(1, ceil(words / 16)), ff=2 * width)


def memory(family: str, words: int, width: int) -> Resources:
    """A synchronous memory with one write and one read port and an output register."""
    if words * width >= FAMILIES[family].bram_from_bits and words > 16:
        return Resources(ff=width, bram=block_rams(family, words, width))
    return asynchronous_memory(family, words, width) + Resources(ff=width)


def asynchronous_memory(family: str, words: int, width: int) -> Resources:
    """A memory read in the same cycle."""
    per_block = FAMILIES[family].lutram
    if words == 1:
        return Resources(ff=width)
    if per_block is None:  # flip-flops and a multiplexer
        return Resources(lut=width * words, ff=width * words)
    blocks = ceil(words / 16)
    return Resources(lut=per_block * ceil(width / 4) * blocks + (width * (blocks - 1)))


def queue(family: str, width: int, depth: int) -> Resources:
    """An output queue: shift registers up to 4 entries, an asynchronous memory beyond."""
    credits = max(1, ceil(log2(depth + 1))) + 1
    if depth <= 4:
        return Resources(lut=width * (depth - 1) + 2 * credits + 4, ff=depth * width + credits + depth)
    control = Resources(lut=6 * credits + 4, ff=5 * credits)
    return asynchronous_memory(family, depth, width) + control + Resources(ff=width)


def adders(width: int, count: int) -> Resources:
    """Registered adders."""
    return Resources(lut=width * count, ff=width * count)


def products(family: str, x: IntType, w: IntType, count: int, kind: str) -> Resources:
    """``count`` registered products."""
    width = x.bits + w.bits
    if kind == "dsp":
        limit = FAMILIES[family].dsp_width
        each = _splits(x, limit) * _splits(w, limit)
        return Resources(ff=count * width, dsp=count * each)
    partial = min(x.bits, w.bits)
    return Resources(lut=count * max(1, partial - 1) * (max(x.bits, w.bits) + 2), ff=count * width)


def _splits(t: IntType, limit: int) -> int:
    bits = t.bits + (0 if t.signed else 1)
    return 1 if bits <= limit else ceil((bits - 1) / (limit - 1))


def mvu(
    family: str, x: IntType, w: IntType, accumulator: IntType, folding: Folding, synapse: int, neuron: int, depth: int
) -> Resources:
    """Matrix-vector unit: weight table, products, adder trees, accumulators, replay buffer, queue."""
    pe, simd = folding.output_lanes, folding.input_lanes
    total = rom(family, synapse * neuron, pe * simd * w.bits)
    total += products(family, x, w, pe * simd, folding.multiplier)
    total += Resources(ff=2 * simd * x.bits)
    left, width = simd, x.bits + w.bits
    while left > 1:
        width += 1
        total += adders(width, pe * (left // 2)) + Resources(ff=pe * width * (left % 2))
        left = (left + 1) // 2
    if synapse > 1:
        total += adders(accumulator.bits, pe)
    if neuron > 1:
        total += memory(family, synapse, simd * x.bits)
    counters = ceil(log2(synapse * neuron + 1)) * 2 + 12
    return total + Resources(lut=3 * counters, ff=counters) + queue(family, pe * accumulator.bits, depth)


def sliding_window(family: str, window: WindowGeometry, blocks: int, words: int, width: int, depth: int) -> Resources:
    """Line buffer, address counters, queue."""
    address = max(1, ceil(log2(words)))
    image = ceil(log2(window.height + 1)) + ceil(log2(window.width + 1)) + ceil(log2(blocks + 1))
    control = Resources(lut=9 * address + 10 * image + 60, ff=5 * address + 6 * image + 30)
    return memory(family, words, width) + control + queue(family, width, depth) + Resources(ff=width)


def max_pool(family: str, lanes: int, bits: int, blocks: int, window: int, depth: int) -> Resources:
    """Running maxima in a small memory."""
    width = lanes * bits
    store = asynchronous_memory(family, blocks, width)
    counters = ceil(log2(blocks + 1)) + ceil(log2(window + 1)) + 4
    return store + Resources(lut=2 * width + 2 * counters, ff=width + counters) + queue(family, width, depth)


def width_converter(family: str, bits: int, folding: Folding, depth: int) -> Resources:
    """A register of the wide side, a counter, a queue."""
    wide = max(folding.input_lanes, folding.output_lanes) * bits
    ratio = max(folding.input_lanes, folding.output_lanes) // min(folding.input_lanes, folding.output_lanes)
    counter = ceil(log2(ratio + 1)) + 2
    return Resources(lut=wide + 3 * counter, ff=wide + counter) + queue(family, folding.output_lanes * bits, depth)


def frame_sync(family: str, width: int, count: int) -> Resources:
    """A beat counter and a queue of two."""
    counter = ceil(log2(count + 1))
    return Resources(lut=2 * counter + width + 12, ff=counter + 4) + queue(family, width, 2)


def multiply_add_shift(
    family: str, x: IntType, multiplier: IntType, addend: IntType, rounded: int | None, out: IntType, lanes: int,
    words: int, dsp: int, depth: int,
) -> Resources:
    """Parameters, products (``dsp`` multiplier blocks for all lanes), the sum, a stage that rounds off ``rounded`` bits
    (None: there is none), clamp."""
    total = rom(family, words, lanes * (multiplier.bits + addend.bits))
    width = max(x.bits + multiplier.bits, addend.bits) + 1
    each = adders(width, 1) + Resources(lut=width + 2 * out.bits, ff=width + out.bits + 2 * x.bits)
    if rounded is not None:  # an adder of the quotient's bits; a disjunction of the others
        each += adders(max(1, width - rounded), 1) + Resources(lut=ceil(rounded / 3) + 1)
    for _ in range(lanes):
        total += each
    counter = ceil(log2(words + 1)) + 12
    return total + Resources(lut=counter, ff=counter, dsp=dsp) + queue(family, lanes * out.bits, depth)


def thresholds(family: str, x: IntType, levels: int, out: IntType, lanes: int, words: int, depth: int) -> Resources:
    """A comparator a level and a population count."""
    total = rom(family, words, lanes * levels * (x.bits + 1))
    each = Resources(lut=levels * ceil((x.bits + 1) / 2) + 2 * levels, ff=3 * levels + out.bits + x.bits)
    for _ in range(lanes):
        total += each
    return total + Resources(lut=10, ff=10) + queue(family, lanes * out.bits, depth)


def lookup(family: str, words: Sequence[int], out: IntType, depth: int) -> Resources:
    """A table a lane."""
    total = Resources(lut=20, ff=20) + queue(family, len(words) * out.bits, depth)
    for count in words:
        total += rom(family, count, out.bits)
    return total
