"""Windows clipped to the image: what tells which taps those are (:mod:`hdl_lib.windows.clipped_taps`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

from amaranth.hdl import Shape

from hdl_lib.windows.window_geometry import WindowGeometry as CoreGeometry
from hwflow.cores.costs.basics import chain, count_up, loop, trailing_zeros
from hwflow.cores.costs.memory import buffer_memory, queue
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.operator import Resources


@lru_cache(maxsize=1 << 12)
def clipped_walk(family: str, geometry: CoreGeometry, synapse: int, neuron: int) -> Resources:
    """Estimate what a matrix-vector unit (:mod:`hdl_lib.matrices.mvu`) has for clipped windows beside the counters of
    whole ones: the sequences of spans, the loops, the address with what moves it."""
    whole = synapse // geometry.kernel[0]
    blocks = whole // geometry.kernel[1]
    across = [(count * blocks - 1, first * blocks) for first, count in geometry.inside(1)]
    along = [(count - 1, first * whole, (count - 1) * whole) for first, count in geometry.inside(0)]
    total = _cycle(across) + _cycle(along) + _rounds([run for run, _ in across]) + _rounds([n for n, _, _ in along])
    place, address = (synapse - 1).bit_length(), (synapse * neuron - 1).bit_length()
    jumps = place * (2 if neuron > 1 else 0)
    total += Resources(lut=chain(family, place) + 2 * address - 10, ff=place + whole.bit_length() + jumps)
    return total + Resources(lut=chain(family, place) if neuron > 1 else 0)


@lru_cache(maxsize=1 << 12)
def clipped_window(
    family: str, window: WindowGeometry, blocks: int, words: int, width: int, depth: int
) -> Resources:
    """Estimate :func:`hwflow.cores.costs.windows.sliding_windows.sliding_window` without padding."""
    store = buffer_memory(family, max(2, words), width)
    pipeline = Resources(ff=width + 8 + (words - 1).bit_length())
    core = CoreGeometry(window.height, window.width, window.kernel, window.strides, window.pads, window.dilations)
    beats = core.width * blocks
    rows, columns = core.inside(0), core.inside(1)
    lefts = [x * core.stride[1] - core.pads[1] + first * core.dilation[1] for x, (first, _) in enumerate(columns)]
    moves = [(after - left) * blocks for left, after in zip(lefts, [*lefts[1:], lefts[0]], strict=True)]
    column = (beats - 1).bit_length()
    place = max(0, (words - 1).bit_length() - trailing_zeros(beats))
    counts = (words // beats + core.greatest_surplus).bit_length() + (words // beats + core.height).bit_length()
    control = count_up(words) + loop(beats) + loop(blocks)
    control += _cycle([(count - 1, move) for (_, count), move in zip(columns, moves, strict=True)])
    control += _cycle([(count - 1, 0) for _, count in rows])
    control += _rounds([count - 1 for _, count in columns]) + _rounds([count - 1 for _, count in rows])
    luts = 4 * column + 6 * place + chain(family, (words - 1).bit_length()) + 3 * counts
    control += Resources(lut=luts, ff=3 * column + 2 * place + counts)
    return store + pipeline + control + queue(family, width, depth)


def _cycle(entries: Sequence[tuple[int, ...]]) -> Resources:
    """Estimate a sequence, and what it says of the present entry."""
    if len(entries) == 1:
        return Resources()
    runs = [(entry, len(list(equal))) for entry, equal in groupby(entries)]
    index, columns = (len(runs) - 1).bit_length(), list(zip(*(entry for entry, _ in runs), strict=True))
    values = sum(Shape.cast(range(min(*c, 0), max(*c, 0) + 1)).width for c in columns if len(set(c)) > 1)
    return loop(max(count for _, count in runs)) + Resources(lut=values + 3 * index + 2, ff=index)


def _rounds(counts: Sequence[int]) -> Resources:
    """Estimate a loop of changing length, given as numbers of rounds less one."""
    width = max(counts).bit_length()
    changing = width if len(set(counts)) > 1 else 0
    return loop(max(counts) + 1) + Resources(lut=2 * changing, ff=changing)
