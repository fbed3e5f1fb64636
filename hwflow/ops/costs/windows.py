"""Sliding windows and pools."""

from __future__ import annotations

from math import ceil

from hwflow.ops.costs.basics import bits
from hwflow.ops.costs.memory import asynchronous_memory, in_block_ram, memory, queue
from hwflow.ops.operator import Resources
from hwflow.ops.windows import WindowGeometry


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
    control = Resources(lut=ceil(2.1 * counters) + pad, ff=counters)
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
