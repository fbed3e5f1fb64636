"""Lanes packed into memory words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hwflow.ir.graph import IntArray


def pack_words(lanes: IntArray, bits: int | Sequence[int]) -> list[int]:
    """[words, lanes] to one unsigned integer a word: two's complement of ``bits`` bits (one number, or one a lane),
    lane 0 least significant."""
    if lanes.shape[1] == 1 and isinstance(bits, int) and bits < 63:
        words: list[int] = (lanes[:, 0] & ((1 << bits) - 1)).tolist()
        return words
    packed = np.packbits(bit_table(lanes, bits), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def bit_table(lanes: IntArray, bits: int | Sequence[int]) -> npt.NDArray[np.uint8]:
    """The same as bits [words, bits of a word], the lowest first."""
    widths = np.broadcast_to(np.array(bits), lanes.shape[1:])
    places = np.concatenate([np.arange(width) for width in widths]) if len(set(widths.tolist())) > 1 else None
    if places is None:
        planes = ((lanes[:, :, None] >> np.arange(widths[0])) & 1).astype(np.uint8)
    else:
        planes = ((np.repeat(lanes, widths, axis=1) >> places) & 1).astype(np.uint8)
    return planes.reshape(len(lanes), -1)
