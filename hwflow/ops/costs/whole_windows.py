"""Windows and pools of several pixels a beat."""

from __future__ import annotations

from math import ceil, gcd

from hdl_lib.window_geometry import WindowGeometry
from hdl_lib.window_image import WindowImage
from hdl_lib.window_steps import WindowSteps
from hwflow.ops.costs.basics import bits
from hwflow.ops.costs.memory import asynchronous_memory, in_block_ram, queue
from hwflow.ops.costs.products import sum_tree
from hwflow.ops.operator import Resources
from hwflow.types import IntType


def window_rows(
    family: str, steps: WindowSteps, source: int, result: int, ones: int, rows: int, depth: int
) -> Resources:
    """Whole windows a beat: banks of image rows, their choice for each kernel row, shift registers, masks, a queue.
    ``source``, ``result``: bits of a pixel before and behind; ``ones``: how many of the latter are one in a pixel of
    padding."""
    g, words, width = steps.geometry, steps.words, steps.pixels * source
    kernel_rows, places = len(steps.kernel_rows), len(steps.ages)
    registers = kernel_rows * sum(age + 1 for age in steps.ages.values()) * result
    masked_columns = [span for span in steps.columns.values() if span != (0, steps.beats - 1)]
    masked_rows = [span for span in steps.kernel_rows.values() if span != (0, g.out_height - 1)]
    turns = gcd(g.stride[0], g.height - (g.out_height - 1) * g.stride[0], rows)
    choices = kernel_rows * places * source * (ceil(rows / 2) if turns < rows and rows > 1 else 0)
    masks = len(masked_columns) * kernel_rows * ones  # the others are resets of the registers behind
    if words == 1:  # rows are registers; the pad comes in by logic
        store = Resources(ff=rows * places * source)
        masks += len(masked_rows) * places * result
    else:
        blocks = in_block_ram(family, words, width)
        bank = Resources(ff=width, bram=blocks) if blocks else asynchronous_memory(family, words, width)
        store = bank.times(rows) + Resources(ff=width + (0 if blocks else 2 * rows * width))
    counter = bits(rows * words)
    delays = WAITS * (kernel_rows * bits(rows - 1) + len(masked_rows)) + 4 * len(set(masked_columns))
    control = Resources(lut=22 * counter + 6 * kernel_rows, ff=30 + 6 * counter + (delays if words > 1 else 0))
    taken = kernel_rows * len(steps.columns) * result
    registers += taken if steps.masked else 0  # behind the masks
    return store + Resources(lut=choices + masks, ff=registers) + control + queue(family, taken, depth)


WAITS = 3  # registers that what is known of a step goes through until its word is in the shift registers


def window_image(family: str, geometry: WindowGeometry, channels: int, element: int, depth: int) -> Resources:
    """All windows of an image in a beat: a queue of the pixels they take."""
    taken = {pixel for window in WindowImage.pixels(geometry) for pixel in window if pixel is not None}
    return queue(family, max(1, len(taken)) * channels * element, depth)


def max_pool_tree(family: str, channels: int, element: int, pixels: int, window: int, depth: int) -> Resources:
    """Maxima of several pixels a beat: a comparison and a choice each."""
    compare = Resources(lut=2 * ceil((element + 1) / 2) + element, ff=element)
    together = min(pixels, window)
    tree = compare.times(together - 1)
    left = together
    while left > 1:  # a pixel without a partner waits in a register
        tree += Resources(ff=element * (left % 2))
        left = ceil(left / 2)
    if pixels < window:  # the choice of the last one is its register's enable
        tree += Resources(lut=compare.lut - element, ff=element)
    return _pool(family, tree, channels, pixels, window, element, depth)


def sum_pool_tree(
    family: str, channels: int, source: IntType, result: int, pixels: int, window: int, depth: int
) -> Resources:
    """Sums of several pixels a beat."""
    tree = sum_tree(source.min, source.max, min(pixels, window), result)
    if pixels < window:
        tree += Resources(lut=2 * ceil(result / 2) + result, ff=result)
    return _pool(family, tree, channels, pixels, window, result, depth)


def _pool(
    family: str, tree: Resources, channels: int, pixels: int, window: int, result: int, depth: int
) -> Resources:
    together = min(pixels, window)
    lanes, levels = channels * max(1, pixels // window), (together - 1).bit_length() + (pixels < window)
    rounds = bits(window // together) if pixels < window else 0
    control = Resources(lut=3 * rounds + 3, ff=levels + (2 * levels + rounds if rounds else 0))
    return tree.times(lanes) + control + queue(family, lanes * result, depth)
