"""Resource models of the cores: formulas over data paths, with each family's constants as data.

``lut`` counts 4-input look-up tables (carry cells count as two, memories made of look-up tables as their LUTs), ``ff``
flip-flops, ``dsp`` multiplier primitives (MULT18X18D, SB_MAC16), ``bram`` block RAM primitives (DP16KD, SB_RAM40_4K).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, log2

from amaranth.hdl import Shape

from hdl_lib.multiplier import BLOCK
from hdl_lib.requantize_search import read_latency
from hdl_lib.stream_add import AddPlan
from hdl_lib.wide_product import WideProduct
from hwflow.ops.operator import Folding, Resources
from hwflow.ops.windows import WindowGeometry
from hwflow.types import Interval, IntType


@dataclass(frozen=True)
class Family:
    """What yosys knows of a family's primitives (share/*/brams*.txt, lutrams*.txt).

    ``bram_shapes``: (words, width) configurations; ``lutram``: LUTs of a memory primitive of 16 words x 4 bits that
    is read in the same cycle, None where there is none; ``dsp_width``: widest signed operand of one multiplier;
    ``dsp_product``: products of fewer bits are made of look-up tables; ``carry_bits``: of a sum, in a carry cell.
    ``bram_cost``, ``lutram_cost``: what memory_libmap charges for a primitive, in bits of a memory made of flip-flops
    (a sixteenth of that for a read-only one); the cheapest way wins.
    """

    bram_shapes: tuple[tuple[int, int], ...]
    bram_cost: int
    lutram: int | None
    lutram_cost: int
    dsp_width: int
    dsp_product: int
    carry_bits: int


FAMILIES = {
    "ecp5": Family(((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36)), 128, 4, 4, 18, 0, 2),
    "ice40": Family(((256, 16), (512, 8), (1024, 4), (2048, 2)), 64, None, 0, 16, 11, 1),
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


def read_only_block_rams(family: str, words: int, width: int) -> int:
    """The same for a memory that is never written: a row may hold several words."""
    return min(ceil(ceil(words / depth) * width / bits) for depth, bits in FAMILIES[family].bram_shapes)


def rom(family: str, words: int, width: int) -> Resources:
    """A synchronous read-only table with an output register."""
    if words == 1:
        return Resources()
    blocks = read_only_block_rams(family, words, width)
    if words * width > 16 * FAMILIES[family].bram_cost * blocks:
        return Resources(ff=width, bram=blocks)
    # A bit's function of the address; of few words there are few functions, shared by the bits that have the same.
    kinds = float(1 << words) if words <= 10 else float("inf")
    different = width if kinds == float("inf") else ceil(kinds * (1 - (1 - 1 / kinds) ** width))
    tables = max(1, ceil(words / 16))
    each = tables * (1 + 0.14 * max(0.0, log2(tables) - 2))
    return Resources(lut=ceil(different * each), ff=2 * different)


def filled_rom(family: str, words: Sequence[int], width: int, *, output_register: bool = True) -> Resources:
    """A synchronous read-only table of known words (patterns of ``width`` bits): a bit that is the same in all words
    costs nothing, and of bits that are alike in all words look-up tables hold one.

    Of logic, a block of 16 words is a look-up table; one of more words is made of its halves, with a multiplexer of the
    device's own up to 128 words, and blocks that are alike are made once.
    """
    columns = [bits for bits in _columns(words, width) if len(set(bits)) > 1]
    if not columns:
        return Resources()
    blocks = read_only_block_rams(family, len(words), len(columns))
    if len(words) * len(columns) > 16 * FAMILIES[family].bram_cost * blocks:
        return Resources(ff=len(columns) * output_register, bram=blocks)
    known: set[bytes] = set()

    def made_of(block: bytes) -> int:
        if block in known or len(set(block)) == 1:
            return 0
        known.add(block)
        if len(block) <= 16:
            return 1
        halves = block[: len(block) // 2], block[len(block) // 2 :]
        if halves[0] == halves[1]:
            return made_of(halves[0])
        return made_of(halves[0]) + made_of(halves[1]) + (len(block) > 128 or any(len(set(h)) == 1 for h in halves))

    size = 1 << (len(words) - 1).bit_length()
    different = {column + column[-1:] * (size - len(column)) for column in columns}
    return Resources(lut=sum(map(made_of, sorted(different))), ff=len(different) * (1 + output_register))


def _columns(words: Sequence[int], width: int) -> list[bytes]:
    """For each bit its value in all words, one byte a word."""
    digits = "".join(f"{word:0{width}b}" for word in words).encode()
    return [digits[bit::width] for bit in range(width)]


def memory(family: str, words: int, width: int) -> Resources:
    """A synchronous memory with one write and one read port and an output register."""
    blocks = in_block_ram(family, words, width)
    if blocks:
        return Resources(ff=width, bram=blocks)
    return asynchronous_memory(family, words, width) + Resources(ff=2 * width)


def in_block_ram(family: str, words: int, width: int) -> int:
    """Block RAMs yosys takes for a memory that is written and read, 0 if it makes it of something else."""
    device, blocks = FAMILIES[family], block_rams(family, words, width)
    if device.lutram is None:
        return blocks if device.bram_cost * blocks < words * width else 0
    return blocks if device.bram_cost * blocks <= device.lutram_cost * ceil(width / 4) * ceil(words / 16) else 0


def asynchronous_memory(family: str, words: int, width: int) -> Resources:
    """A memory read in the same cycle."""
    per_block = FAMILIES[family].lutram
    if words == 1:
        return Resources(ff=width)
    if per_block is None:  # flip-flops and a multiplexer
        return Resources(lut=width * words, ff=width * words)
    blocks = ceil(words / 16)
    return Resources(lut=per_block * ceil(width / 4) * blocks + width * (blocks - 1))


def queue(family: str, width: int, depth: int) -> Resources:
    """An output queue: shift registers up to 4 entries, an asynchronous memory beyond."""
    credits = bits(depth)
    if depth <= 4:
        return Resources(lut=width * (depth - 1) + 2 * credits + 2 * depth, ff=depth * width + credits + depth)
    return asynchronous_memory(family, depth, width) + Resources(lut=6 * credits, ff=4 * credits + 1)


def block_queue(family: str, width: int, depth: int) -> Resources:
    """An output queue in block RAM: a row less than ``depth``, a register behind it."""
    rows, credits = max(2, depth - 1), bits(depth)
    return Resources(lut=10 * credits + 8, ff=width + 5 * credits + 2, bram=block_rams(family, rows, width))


def cheapest_style(family: str, width: int, depth: int) -> str:
    """Storage of a queue of ``depth`` beats: "block" where look-up tables and flip-flops would cost more than block RAM
    takes of a device, counting a block RAM as 160 of them; else "auto"."""
    flat, block = queue(family, width, depth), block_queue(family, width, depth)
    return "block" if flat.lut + flat.ff > block.lut + block.ff + 160 * block.bram else "auto"


def bits(greatest: int) -> int:
    """Bits of a counter up to ``greatest``."""
    return max(1, greatest.bit_length())


def adders(width: int, count: int) -> Resources:
    """Registered adders; a carry cell takes two bits."""
    return Resources(lut=2 * ceil(width / 2) * count, ff=width * count)


@cache
def product_bits(x: IntType, w: IntType, count: int = 1) -> int:
    """Bits of the sum of ``count`` products."""
    corners = [count * a * b for a in (x.min, x.max) for b in (w.min, w.max)]
    return IntType.holding(Interval(min(corners), max(corners))).bits


@cache
def adder_tree(x: IntType, w: IntType, terms: int, limit: int) -> Resources:
    """A register behind every adder and every term that is left over; sums are cut to ``limit`` bits."""
    corners = [a * b for a in (x.min, x.max) for b in (w.min, w.max)]
    return _sum_tree(min(corners), max(corners), terms, limit)


@cache
def _sum_tree(low: int, high: int, terms: int, limit: int) -> Resources:
    """:func:`adder_tree` over terms within ``low .. high``."""

    def width(count: int) -> int:
        return min(limit, IntType.holding(Interval(count * low, count * high)).bits)

    total, counts = Resources(), [1] * terms
    while len(counts) > 1:
        sums = [a + b for a, b in zip(counts[::2], counts[1::2], strict=False)]
        for count in sums:
            total += adders(width(count), 1)
        if len(counts) % 2:
            sums.append(counts[-1])
            total += Resources(ff=width(counts[-1]))
        counts = sums
    return total


def products(family: str, x: IntType, w: IntType, count: int, kind: str) -> Resources:
    """``count`` registered products."""
    if min(x.bits, w.bits) == 1:  # a selection
        width = product_bits(x, w)
        return Resources(lut=count * width, ff=count * width)
    if kind == "dsp":
        limit, least = FAMILIES[family].dsp_width, FAMILIES[family].dsp_product
        each = _splits(x, limit) * _splits(w, limit) if x.bits + w.bits >= least else 0
        return Resources(ff=count * product_bits(x, w), dsp=count * each)
    return _lut_product(x.bits, w.bits).times(count)


@cache
def _wide_product(family: str, x: IntType, w: IntType) -> Resources:
    """Products of parts, added in a tree (:mod:`hdl_lib.wide_product`)."""
    device = FAMILIES[family]
    product = WideProduct(Shape(x.bits, x.signed), Shape(w.bits, w.signed), device.dsp_width - 1)
    total = Resources()
    for (a, b), summand in zip(product.pairs, product.summands, strict=True):
        width = summand.shape.width
        total += Resources(ff=width)
        if min(a.shape.width, b.shape.width) == 1:
            total += Resources(lut=width)
        elif a.shape.width + b.shape.width >= device.dsp_product:
            total += Resources(dsp=1)
        else:
            total += Resources(lut=a.shape.width * b.shape.width)
    for sums in product.levels:
        for register in sums:
            places = device.carry_bits * ceil(register.adder / device.carry_bits)
            total += Resources(lut=places, ff=register.summand.shape.width)
    return total


@cache
def _lut_product(x: int, w: int) -> Resources:
    """Rows of two bits of the weight each, added in a tree (see :mod:`hdl_lib.multiplier`)."""
    rows = [(first, min(first + 2, w)) for first in range(0, w, 2)]
    total = Resources(lut=sum(x * (end - first) for first, end in rows))
    if len(rows) == 1:
        return total + Resources(ff=x + w)
    while len(rows) > 1:
        sums = []
        for index in range(0, len(rows), 2):
            first, end = rows[index]
            if index + 1 < len(rows):
                middle, end = rows[index + 1]
                total += Resources(lut=2 * ceil((x + end - middle + 1) / 2))
            sums.append((first, end))
            total += Resources(ff=x + end - first)
        rows = sums
    return total


def operands(x: IntType, w: IntType, count: int, kind: str) -> Resources:
    """The multiples of the inputs that products made of LUTs select from."""
    if kind == "dsp" or min(x.bits, w.bits) == 1:
        return Resources()
    total = Resources(ff=x.bits)
    if w.bits > 2 or not w.signed:
        total += adders(x.bits + 2, 1)
    if w.signed:
        total += adders(x.bits + 1, 1)
    return total.times(count)


def _splits(t: IntType, limit: int) -> int:
    bits = t.bits + (0 if t.signed else 1)
    return 1 if bits <= limit else ceil((bits - 1) / (limit - 1))


@cache
def match_counts(family: str, rows: int, lanes: int, limit: int, constant: bool) -> Resources:
    """``rows`` counts of the equal bits of ``lanes`` inputs and weights (:class:`hdl_lib.dot_product.MatchCount`).

    Weights that never change leave functions of the inputs alone, of which rows that have the same share one.
    """

    def shared(kinds: float) -> float:
        return kinds * (1 - (1 - 1 / kinds) ** rows) if constant and kinds < 1 << 16 else rows

    lut = ff = 0.0
    counts = [2] * (lanes // 2) + [1] * (lanes % 2)
    for n in counts:  # the exclusive or of a pair has two forms, its conjunction four
        forms = sum([shared(2), shared(4)][: min(n, limit)])
        lut, ff = lut + forms, ff + forms
    place = FAMILIES[family].carry_bits
    while len(counts) > 1:
        sums = [a + b for a, b in zip(counts[::2], counts[1::2], strict=False)] + counts[len(counts) & ~1 :]
        for index, n in enumerate(sums):
            width, copies = min(limit, n.bit_length()), shared(2.0 ** min(n, 1000))
            ff += copies * width
            if 2 * index + 1 < len(counts):  # up to four bits without a carry chain, one of them of more than a table
                lut += copies * (width + (width == 4) if n <= 8 else place * ceil(width / place))
        counts = sums
    return Resources(lut=round(lut), ff=round(ff))


def _split_sums(family: str, x: IntType, w: IntType) -> int:
    """Look-up tables that add the parts of a product whose operands are too wide for one multiplier block."""
    limit = FAMILIES[family].dsp_width
    return (_splits(x, limit) * _splits(w, limit) - 1) * max(0, x.bits + w.bits - limit + 1)


def mvu(
    family: str, x: IntType, w: IntType, accumulator: IntType, folding: Folding, synapse: int, neuron: int, depth: int,
    *, surplus: int = 0, ranges: tuple[tuple[int, int], tuple[int, int]] | None = None,
) -> Resources:
    """Matrix-vector unit: weight table, products, adder trees, accumulators, replay buffer, queue. ``surplus``: lanes
    of some beats that are made zero; ``ranges``: of inputs and weights, where they are known."""
    pe, simd = folding.output_lanes, folding.input_lanes
    total = rom(family, synapse * neuron, pe * simd * w.bits)
    if folding.multiplier == "xnor":
        total += match_counts(family, pe, simd, accumulator.bits, synapse * neuron == 1)
    elif folding.multiplier == "lut" and ranges is not None and x.bits == w.bits == 2:
        corners = [a * b for a in ranges[0] for b in ranges[1]]
        width = IntType.holding(Interval(min(corners), max(corners))).bits
        total += Resources(lut=pe * simd * width, ff=pe * simd * width)
        total += _sum_tree(min(corners), max(corners), simd, accumulator.bits).times(pe)
    else:
        if folding.multiplier == "dsp" and max(x.bits, w.bits) > BLOCK and min(x.bits, w.bits) > 1:
            total += _wide_product(family, x, w).times(pe * simd)
        else:
            total += products(family, x, w, pe * simd, folding.multiplier)
        total += operands(x, w, simd, folding.multiplier)
        total += adder_tree(x, w, simd, accumulator.bits).times(pe)
    total += Resources(ff=2 * simd * x.bits)
    if synapse > 1:  # the restart is a multiplexer in front of the adder
        total += adders(accumulator.bits, pe) + Resources(lut=pe * accumulator.bits)
        if neuron > 1:
            store = in_block_ram(family, synapse, simd * x.bits)
            words = Resources(bram=store) if store else asynchronous_memory(family, synapse, simd * x.bits)
            total += words + Resources(lut=simd * x.bits, ff=0 if store else simd * x.bits)
    counters = bits(synapse) + bits(neuron) + bits(synapse * neuron) + (bits(synapse) if surplus else 0)
    return total + Resources(lut=3 * counters + 8, ff=counters + 16) + queue(family, pe * accumulator.bits, depth)


def sliding_window(family: str, window: WindowGeometry, blocks: int, words: int, width: int, depth: int) -> Resources:
    """Line buffer, address counters, queue."""
    (kh, kw), (rows, columns), line = window.kernel, window.output, window.width * blocks
    place = max(1, bits(words - 1) - (line & -line).bit_length() + 1)  # multiples of an image row
    loops = sum(bits(n) for n in (kh, kw, rows, columns, blocks) if n > 1)
    counters = (3 if kh > 1 else 2) * place + (3 if kw > 1 else 2) * bits(line) + loops
    counters += bits(words) + bits(line) + 2 * bits(words // line) + 4
    if window.touches_padding():
        counters += 3 * bits(window.height) + 28
    pad = width if window.touches_padding() else 0
    control = Resources(lut=ceil(1.85 * counters) + pad, ff=counters)
    return memory(family, words, width) + control + queue(family, width, depth) + Resources(ff=width)


def max_pool(family: str, lanes: int, element: int, blocks: int, window: int, depth: int) -> Resources:
    """Running maxima in registers, of many blocks in a small memory."""
    compare = Resources(lut=lanes * 2 * ceil((element + 1) / 2))
    return compare + _pool(family, lanes * element, lanes * element, blocks, window, depth)


def sum_pool(
    family: str, lanes: int, element: int, result: int, blocks: int, window: int, depth: int
) -> Resources:
    """Running sums, as maxima are held."""
    add = Resources(lut=lanes * 2 * ceil(result / 2) + (lanes * result if blocks == 1 else 0))  # 0 for the first pixel
    return add + _pool(family, lanes * element, lanes * result, blocks, window, depth)


def _pool(family: str, width: int, result: int, blocks: int, window: int, depth: int) -> Resources:
    """What pools have in common: loops, the running results, a queue."""
    counters = bits(blocks) + bits(window)
    control = Resources(lut=5 * counters, ff=2 * counters + 5)
    if blocks <= 4:
        store = Resources(lut=result if blocks > 1 else 0, ff=width + blocks * result)
    else:
        store = Resources(lut=result, ff=2 * width + 3 * result + 2 * bits(blocks))
        block = in_block_ram(family, blocks, result)
        store += Resources(bram=block) if block else asynchronous_memory(family, blocks, result)
    return control + store + queue(family, result, depth)


def skid_buffer(width: int) -> Resources:
    """Two registers and what chooses between them."""
    return Resources(lut=width + 4, ff=2 * width + 2)


def add_multipliers(family: str, plan: AddPlan) -> int:
    """Multiplier blocks of a core of :mod:`hdl_lib.stream_add`."""
    if plan.form != "dsp":
        return 0
    total = 0
    for index, (shape, product) in enumerate(zip(plan.input_shapes, plan.products, strict=True)):
        x = IntType(shape.width, shape.signed)
        if product is not None:
            w = IntType(product.weight_shape.width, product.weight_shape.signed)
            total += products(family, x, w, plan.lanes, "dsp").dsp
            continue
        for lane in range(plan.lanes):
            factor, _ = plan.constant(index, lane)
            if factor > 1:
                total += products(family, x, IntType(factor.bit_length(), False), 1, "dsp").dsp
    return total


def stream_add(family: str, inputs: Sequence[IntType], plan: AddPlan, blocks: int, depth: int) -> Resources:
    """Skid buffers, products or sums of shifted inputs (see :mod:`hdl_lib.stream_add`), tables of multipliers."""
    lanes = plan.lanes
    total = Resources(lut=4, ff=plan.latency + 1, dsp=add_multipliers(family, plan))
    for index, x in enumerate(inputs):
        total += skid_buffer(lanes * x.bits)
        product = plan.products[index]
        if product is None:
            for lane in range(lanes):
                factor, _ = plan.constant(index, lane)
                w = IntType(factor.bit_length(), False)
                held = product_bits(x, w) if factor > 1 else x.bits
                total += Resources(lut=_split_sums(family, x, w), ff=held * plan.product_latency)
            continue
        w = IntType(product.weight_shape.width, product.weight_shape.signed)
        total += Resources(lut=lanes * _split_sums(family, x, w) if plan.form == "dsp" else 0)
        total += rom(family, blocks, lanes * w.bits) + Resources(ff=lanes * x.bits, lut=3 * bits(blocks))
        total += Resources(ff=bits(blocks) + 1 + lanes * w.bits * product.operand_latency)
        made = products(family, x, w, lanes, plan.form) + operands(x, w, lanes, plan.form)
        total += Resources(made.lut, made.ff)
        late = plan.product_latency - plan.tabled_latency(index)
        total += Resources(ff=lanes * late * product_bits(x, w))
    for lane in range(lanes):
        for register in plan.registers(lane):
            total += Resources(lut=2 * ceil(register.added / 2), ff=register.width)
    return total + queue(family, lanes * plan.width, depth)


def stream_product(
    family: str, inputs: Sequence[IntType], offsets: Sequence[int], x: IntType, w: IntType, out: IntType, lanes: int,
    kind: str, depth: int,
) -> Resources:
    """Skid buffers, differences (of types ``x`` and ``w``), products."""
    total = Resources(lut=4, ff=5)
    for element, offset, difference in zip(inputs, offsets, (x, w), strict=True):
        total += skid_buffer(lanes * element.bits)
        total += adders(difference.bits, lanes) if offset else Resources(ff=lanes * difference.bits)
    total += products(family, x, w, lanes, kind) + operands(x, w, lanes, kind)
    if operands(x, w, 1, kind).ff:
        total += Resources(ff=lanes * w.bits)
    return total + queue(family, lanes * out.bits, depth)


def concat(family: str, width: int, inputs: int, longest: int, depth: int) -> Resources:
    """A registered choice among the inputs, whose turn it is, a counter."""
    counter = bits(longest)
    control = Resources(lut=3 * counter + 4 * inputs, ff=counter + inputs + 2)
    return control + Resources(lut=width * (inputs - 1), ff=width) + queue(family, width, depth)


def width_converter(family: str, element: int, folding: Folding, depth: int) -> Resources:
    """A register of the wide side, a counter, a queue."""
    wide = max(folding.input_lanes, folding.output_lanes) * element
    ratio = max(folding.input_lanes, folding.output_lanes) // min(folding.input_lanes, folding.output_lanes)
    counter = bits(ratio) + 1
    return Resources(lut=wide + 3 * counter, ff=wide + counter) + queue(family, folding.output_lanes * element, depth)


def frame_sync(family: str, width: int, count: int) -> Resources:
    """A beat counter and a queue of two."""
    counter = bits(count)
    return Resources(lut=2 * counter + width + 12, ff=counter + 4) + queue(family, width, 2)


def multiply_add_shift(
    family: str, x: IntType, multiplier: IntType, addend: IntType, shift: int, rounds: bool, out: IntType, lanes: int,
    words: int, dsp: int, part: int, depth: int,
) -> Resources:
    """Parameters, products (``dsp`` multiplier blocks for all lanes), the sum, a stage that rounds the shifted sum if
    ``rounds``, clamp. Operands wider than ``part`` bits are cut into parts (:mod:`hdl_lib.requantize_mas`)."""
    table = rom(family, words, lanes * (multiplier.bits + addend.bits))
    parts = [_splits(x, part + 1), _splits(multiplier, part + 1)]
    terms = sum(parts)  # the addend; products whose bits follow each other are one term
    width = max(x.bits + multiplier.bits, addend.bits) + 1
    kept = max(out.bits + 2, width - shift)
    each = Resources(ff=2 * x.bits + x.bits * parts[1] + multiplier.bits * parts[0])
    each += Resources(lut=width + 1 + (terms - 2) * max(0, width - part), ff=kept + (width if terms > 2 else 0))
    if rounds:  # an adder of the quotient's bits; the others are kept until they have been compared with one half
        each += adders(kept, 1) + Resources(lut=shift, ff=shift)
    limits = 4 if out.signed else 2  # a sign alone says that a result is below 0
    each += Resources(lut=limits * ceil((kept - out.bits + 2) / 2) + out.bits, ff=out.bits + 2)
    addends = min(lanes * addend.bits, table.ff // 2) if table.bram == 0 else lanes * addend.bits
    counter = bits(words) + 6
    total = table + each.times(lanes) + Resources(lut=2 * counter, ff=addends + counter, dsp=dsp)
    return total + queue(family, lanes * out.bits, depth)


def thresholds(
    family: str, x: IntType, levels: int, out: IntType, lanes: int, words: int, depth: int, direction_bits: int = 0,
    directed: int = 0, own_bases: bool = False,
) -> Resources:
    """A comparator a level, counts of four comparisons and their sum. ``direction_bits`` a channel turn ``directed``
    of its comparisons over; with ``own_bases`` each channel has its own number to count from."""
    groups = ceil(levels / 4)
    compare = 2 * ceil((x.bits + 2) / 2)
    each = Resources(lut=levels * compare + ceil(3 * levels / 4), ff=levels + 3 * groups + 2 * x.bits)
    each += adders(out.bits, groups - 1) + Resources(lut=directed if words > 1 else 0)
    if own_bases:
        each += adders(out.bits, 1) + Resources(ff=2 * out.bits)
    counter = bits(words) + 8
    table = rom(family, words, lanes * (levels * (x.bits + 1) + direction_bits + (out.bits if own_bases else 0)))
    return table + each.times(lanes) + Resources(lut=2 * counter, ff=counter) + queue(family, lanes * out.bits, depth)


def search(
    family: str, x: IntType, bound: IntType, stages: int, out: IntType, lanes: int, words: int, values: bool,
    tables: Resources, depth: int,
) -> Resources:
    """A comparator a stage, the input kept from stage to stage, the ``tables`` of all lanes.

    ``words``: blocks of each table.
    """
    each, kept, latency = Resources(ff=x.bits), 0, 2
    compare = Resources(lut=2 * ceil((max(x.bits, bound.bits) + 2) / 2), ff=1)
    for stage in range(stages):
        cycles = 1 + read_latency(words << stage)
        each += compare + Resources(ff=(cycles - (stage == stages - 1)) * x.bits + stage * cycles)
        kept += cycles * bits(words - 1) if words > 1 else 0
        latency += cycles
    if values:
        latency += read_latency(words << stages)
    else:
        each += Resources(lut=out.bits)
    control = Resources(lut=2 * bits(words), ff=kept + bits(words) + latency)
    return tables + each.times(lanes) + control + queue(family, lanes * out.bits, depth)


def lookup(family: str, x: IntType, words: Sequence[int], out: IntType, tables: Resources, depth: int) -> Resources:
    """The ``tables`` of all lanes, of so many ``words`` each."""
    total = Resources(lut=12, ff=8) + queue(family, len(words) * out.bits, depth) + tables
    for count in words:
        total += Resources(ff=x.bits + min(x.bits, bits(count - 1)))
    return total
