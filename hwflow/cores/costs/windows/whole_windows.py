"""Windows and pools of several pixels per beat."""

from __future__ import annotations

from math import ceil, gcd

from hdl_lib.windows.window_geometry import WindowGeometry
from hdl_lib.windows.window_image import WindowImage
from hdl_lib.windows.window_steps import WindowSteps
from hwflow.cores.costs.basics import chain, comparison
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import buffer_memory, queue
from hwflow.cores.costs.products.product_sums import sum_tree
from hwflow.cores.costs.windows.window_control import rows_control
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def window_rows(
    family: str, steps: WindowSteps, source: IntType, result: IntType, channels: int, pad_value: int, rows: int,
    depth: int,
) -> Resources:
    """Estimate a core that emits whole windows per beat: banks of image rows, their choice for each kernel row, shift
    registers, masks, a queue. ``source``, ``result``: elements before and behind."""
    g, words = steps.geometry, steps.words
    kernel_rows, places, columns = len(steps.kernel_rows), len(steps.ages), len(steps.columns)
    masked_columns = [span for span in steps.columns.values() if span != (0, steps.beats - 1)]
    masked_rows = [span for span in steps.kernel_rows.values() if span != (0, g.out_height - 1)]
    # Bits above the source's are there where there is padding.
    above = result.bits - source.bits
    pixels = sum(age + 1 for age in steps.ages.values())
    registers = kernel_rows * pixels * source.bits * channels + above * len(masked_rows)
    taken = columns * channels * (kernel_rows * source.bits + above * len(masked_rows))
    ones = (pad_value & (1 << result.bits) - 1).bit_count()
    width = places * channels * source.bits  # what is read of a word
    turns = gcd(g.stride[0], g.height - (g.out_height - 1) * g.stride[0], rows)
    choices = 0
    if turns < rows and rows > 1:
        by_logic = len(masked_rows)
        choices = width * (by_logic * _choice(family, rows, words, depth, masked=True))
        choices += width * ((kernel_rows - by_logic) * _choice(family, rows, words, depth, masked=False))
    masks = len(masked_columns) * kernel_rows * channels * ones  # the others are resets of the registers behind
    if words == 1:  # rows are registers
        store = Resources(ff=rows * width)
    else:
        store = buffer_memory(family, words, width).times(rows) + Resources(ff=width)
    registers += taken if steps.masked else 0  # behind the masks
    control = rows_control(family, steps, rows)
    return store + Resources(lut=choices + masks, ff=registers) + control + queue(family, taken, depth)


# Look-up tables that choose a bit of 2 to 8 rows of a line buffer in memories, as measured.
CHOICES = (1, 2, 3, 3, 4, 5, 5)
PLAIN_CHOICES = (1, 2, 3, 3, 4, 6)  # without a slice's multiplexers, of 2 to 7 rows in registers


def _choice(family: str, rows: int, words: int, depth: int, *, masked: bool) -> int:
    """Count the look-up tables per bit of the choice among rows. Of registers, whose control is short, by the fewest
    levels: a table with six inputs among four, unless the padding's ones come in beside them, or the queue's pointers,
    of a memory of more than 16 rows, take longer."""
    if FAMILIES[family].carry_bits == 1:
        return PLAIN_CHOICES[rows - 2] if words == 1 and rows - 2 < len(PLAIN_CHOICES) else ceil(rows / 2)
    if words > 1:
        return CHOICES[rows - 2] if rows - 2 < len(CHOICES) else ceil(2 * rows / 3)
    return 4 if rows == 4 and depth <= 16 and not masked else rows - 1


def window_image(family: str, geometry: WindowGeometry, channels: int, element: int, depth: int) -> Resources:
    """Estimate all windows of an image in a beat: a queue of the pixels they take."""
    taken = {pixel for window in WindowImage.pixels(geometry) for pixel in window if pixel is not None}
    return queue(family, max(1, len(taken)) * channels * element, depth)


def max_pool_tree(family: str, channels: int, element: int, pixels: int, window: int, depth: int) -> Resources:
    """Estimate maxima of several pixels per beat: a comparison and a choice each."""
    compare = Resources(lut=comparison(family, element) + element, ff=element)
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
    """Estimate sums of several pixels per beat."""
    tree = sum_tree(source.min, source.max, (1,) * min(pixels, window), result, family)
    if pixels < window:
        tree += Resources(lut=chain(family, result) + result, ff=result)
    return _pool(family, tree, channels, pixels, window, result, depth)


def _pool(
    family: str, tree: Resources, channels: int, pixels: int, window: int, result: int, depth: int
) -> Resources:
    together = min(pixels, window)
    lanes, levels = channels * max(1, pixels // window), (together - 1).bit_length() + (pixels < window)
    control = Resources(lut=3, ff=levels)
    return tree.times(lanes) + control + queue(family, lanes * result, depth)
