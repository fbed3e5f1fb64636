"""Pack lanes into memory words."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hwflow.ir.graph import IntArray

_SHORT = 63  # bits of a word that is a number of numpy's
_AT_ONCE = 1 << 14  # words whose bits are in memory, a byte each


def pack_words(lanes: IntArray, bits: int | Sequence[int]) -> Sequence[int]:
    """Pack [words, lanes] to one unsigned integer per word: two's complement of ``bits`` bits (one number, or one per
    lane), lane 0 least significant. Short words are stored compactly, for large models have many millions."""
    widths: list[int] = np.broadcast_to(np.array(bits), lanes.shape[1:]).tolist()
    if sum(widths) <= _SHORT:
        words = np.zeros(len(lanes), dtype=np.int64)
        offset = 0
        for lane, width in enumerate(widths):
            words |= (lanes[:, lane] & ((1 << width) - 1)) << offset
            offset += width
        return _numbers(words)
    found: list[int] = []
    for begin in range(0, len(lanes), _AT_ONCE):
        packed = np.packbits(bit_table(lanes[begin : begin + _AT_ONCE], bits), axis=1, bitorder="little")
        found += [int.from_bytes(row.tobytes(), "little") for row in packed]
    return found


def _numbers(words: IntArray) -> array[int]:
    """Return ``words`` in the fewest bytes that hold the greatest of them."""
    size = next(size for size in (1, 2, 4, 8) if int(words.max(initial=0)) < 1 << 8 * size)
    found = array({1: "B", 2: "H", 4: "I", 8: "Q"}[size])
    found.frombytes(words.astype(f"u{size}").tobytes())
    return found


def bit_table(lanes: IntArray, bits: int | Sequence[int]) -> npt.NDArray[np.uint8]:
    """Return the packed words as bits [words, bits of a word], lowest first."""
    widths = np.broadcast_to(np.array(bits), lanes.shape[1:])
    places = np.concatenate([np.arange(width) for width in widths]) if len(set(widths.tolist())) > 1 else None
    if places is None:
        planes = ((lanes[:, :, None] >> np.arange(widths[0])) & 1).astype(np.uint8)
    else:
        planes = ((np.repeat(lanes, widths, axis=1) >> places) & 1).astype(np.uint8)
    return planes.reshape(len(lanes), -1)
