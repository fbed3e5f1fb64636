"""Sliding windows and pools."""

from __future__ import annotations

from functools import lru_cache

from amaranth.hdl import Shape

from hdl_lib.windows.window_geometry import WindowGeometry as CoreGeometry
from hwflow.cores.costs.basics import adder, chain, comparison, count_up, loop, trailing_zeros
from hwflow.cores.costs.memory import asynchronous_memory, buffer_memory, in_block_ram, queue
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.operator import Resources


@lru_cache(maxsize=1 << 12)  # equal layers ask for the same
def sliding_window(family: str, window: WindowGeometry, blocks: int, words: int, width: int, depth: int) -> Resources:
    """Estimate line buffer, address counters, queue."""
    store = buffer_memory(family, max(2, words), width)
    pad = window.touches_padding()
    pipeline = Resources(lut=width if pad else 0, ff=width + 8 + (words - 1).bit_length())
    kinds = reader_registers(window, blocks, words)
    luts = sum(share * number for share, number in zip(SERIAL_READER_LUTS, (*kinds, 1), strict=True))
    control = count_up(words) + loop(window.width * blocks) + _loops(window, blocks)
    control += Resources(lut=round(luts), ff=sum(kinds) + _next_places(window, blocks, words))
    return store + pipeline + control + queue(family, width, depth)


def segments_again(window: WindowGeometry, blocks: int, segment: int, times: int) -> Resources:
    """Estimate what sends segments of an output row several times: loops of turns and of segments instead of one over a
    row, where a segment begins, and a choice of columns."""
    if times == 1:
        return Resources()
    core, columns = _core(window), window.output[1]
    start = -core.pads[1] * blocks
    column = _width(start, start + (core.stride[1] * (columns - 1) + core.reach[1]) * blocks - 1)
    loops = loop(segment) + loop(times) + loop(columns // segment)
    row = loop(columns)
    again = Resources(lut=2 * column, ff=column if segment < columns else 0)
    return again + Resources(lut=loops.lut - row.lut, ff=loops.ff - row.ff)


def _next_places(window: WindowGeometry, blocks: int, words: int) -> int:
    """Return the bits of the two sums of which the place of the next output row is chosen."""
    core = _core(window)
    beats = core.width * blocks
    rows, down = words // beats, (core.out_height - 1) * core.stride[0]
    stays = core.stride[0] % rows == 0 and (core.height - down) % rows == 0
    if stays or blocks * core.kernel[0] * core.kernel[1] * core.out_width == 1:
        return 0
    return 2 * ((words - 1).bit_length() - trailing_zeros(beats)) + 1


def _core(window: WindowGeometry) -> CoreGeometry:
    return CoreGeometry(window.height, window.width, window.kernel, window.strides, window.pads, window.dilations)


def _width(low: int, high: int) -> int:
    """Return the bits of a register that holds low .. high."""
    return int(Shape.cast(range(min(low, 0), max(high, 0) + 1)).width)


def _loops(window: WindowGeometry, blocks: int) -> Resources:
    """Estimate the loops over the beats of a pixel, the kernel and the output."""
    total = loop(blocks)
    for rounds in (*window.kernel, *window.output):
        total += loop(rounds)
    return total


def reader_registers(window: WindowGeometry, blocks: int, words: int) -> tuple[int, ...]:
    """Return the bits of the registers of each kind that :data:`SERIAL_READER_LUTS` has a share for: horizontal and
    vertical positions of the step, of the window, of the next one; row counts
    (:mod:`hdl_lib.windows.sliding_window`)."""
    core = _core(window)
    (kh, kw), beats, rows = core.kernel, core.width * blocks, words // (core.width * blocks)
    start, shift = -core.pads[1] * blocks, core.stride[1] * blocks
    rightmost = start + shift * (core.out_width - 1) + core.reach[1] * blocks - 1
    column = _width(start, rightmost)
    horizontal = [
        column if blocks * kw * kh * core.out_width > 1 else 0,
        column if kh > 1 and core.out_width > 1 else 0,
        _width(start, rightmost + shift) if core.out_width > 1 else 0,
    ]
    place = max(0, (words - 1).bit_length() - trailing_zeros(beats)) if rows > 1 else 0
    moves = [kh * core.out_height > 1, core.out_height > 1 and kh * core.out_width > 1, core.out_height > 1]
    # A frame of one output row begins elsewhere than the one before it unless the buffer holds whole frames.
    moving = core.out_height > 1 or core.height % max(rows, 1) > 0
    vertical = [place * moved for moved in (moves[0] or moving, moving and kh * core.out_width > 1, moving)]
    top, lowest = core.pads[0], (core.out_height - 1) * core.stride[0] + core.reach[0] - 1 - core.pads[0]
    above = _width(-top, lowest) if top or lowest >= core.height else 0
    images = [above * moved for moved in moves]
    steps = core.row_steps
    counts = _width(-1, rows + core.greatest_surplus - 1)
    counts += _width(-max(core.needed_rows(0), *(step.needed for step in steps)), rows + core.greatest_lead)
    return sum(horizontal), sum(vertical), sum(images), counts


# Look-up tables per bit of horizontal positions, of places in the buffer, of positions in image rows, of row counts;
# and the rest. By least squares: ``benchmarks/measure_operators.py fit``.
SERIAL_READER_LUTS = (3.3, 5.57, 3.38, -7.25, 19.56)


def max_pool(family: str, lanes: int, element: int, blocks: int, window: int, depth: int) -> Resources:
    """Estimate running maxima in registers, of many blocks in a small memory."""
    compare = Resources(lut=lanes * comparison(family, element))
    return compare + _pool(family, lanes * element, lanes * element, blocks, window, depth)


def sum_pool(
    family: str, lanes: int, element: int, result: int, blocks: int, window: int, depth: int, zeros: int = 0
) -> Resources:
    """Estimate running sums, as maxima are held; ``zeros``: bits at the low ends of all lanes' sums that are always
    0."""
    bits = lanes * result - zeros
    # 0 is taken for the sum before the first pixel.
    # Of single bits' sums every bit is a table.
    sums = chain(family, result) if element == 1 else adder(family, result)
    add = Resources(lut=lanes * sums - zeros + (bits if blocks == 1 else 0))
    return add + _pool(family, lanes * element, bits, blocks, window, depth)


def running_sum(
    family: str, lanes: int, element: int, result: int, blocks: int, window: int, exclusive: bool, depth: int
) -> Resources:
    """Estimate sums over groups, each of which is a result; ``exclusive``: it is the one before."""
    before = Resources(ff=lanes * result) if exclusive else Resources()
    return sum_pool(family, lanes, element, result, blocks, window, depth) + before


def _pool(family: str, width: int, result: int, blocks: int, window: int, depth: int) -> Resources:
    """Return the cost common to pools: loops, the running results, a queue."""
    control = loop(blocks) + loop(window) + Resources(lut=4, ff=5)
    if blocks <= 4:
        store = Resources(lut=result if blocks > 1 else 0, ff=width + blocks * result)
    else:
        store = Resources(lut=result, ff=2 * width + 3 * result + 2) + count_up(blocks).times(2)
        block = in_block_ram(family, blocks, result)
        store += Resources(bram=block) if block else asynchronous_memory(family, blocks, result)
    return control + store + queue(family, result, depth)
