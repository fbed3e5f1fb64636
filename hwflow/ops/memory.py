"""Lanes packed into memory words."""

from __future__ import annotations

import numpy as np

from hwflow.ir.graph import IntArray


def pack_words(lanes: IntArray, bits: int) -> list[int]:
    """[words, lanes] to one unsigned integer a word: two's complement of ``bits`` bits, lane 0 least significant."""
    planes = ((lanes[:, :, None] >> np.arange(bits)) & 1).astype(np.uint8)
    packed = np.packbits(planes.reshape(len(lanes), -1), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]
