"""Tensors of integers to the bytes of a stream's beats, and back: docs/reference/ports.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..host_design import HostStream

Bytes = npt.NDArray[np.uint8]


class FrameBytes:
    """The layout of a stream's frames. Elements are extended to 1, 2, 4 or 8 bytes here, whatever a beat's have."""

    def __init__(self, stream: HostStream) -> None:
        self.stream = stream
        word = next(size for size in (1, 2, 4, 8) if size >= stream.element_bytes)
        self.type = np.dtype(f"<{'i' if stream.signed else 'u'}{word}")
        lanes = -(-stream.channels // stream.lanes) * stream.lanes  # of a pixel, surplus ones included
        elements = stream.pixels * stream.channels
        place = np.arange(stream.pixels * lanes).reshape(stream.pixels, lanes)[:, : stream.channels].reshape(-1)
        order = np.array(stream.order)
        self._source = np.full(stream.pixels * lanes, elements)  # of each lane; the one behind the last is a zero
        self._source[place] = order
        self._sink = np.empty(elements, np.int64)
        self._sink[order] = place
        self._plain = np.array_equal(self._source, np.arange(elements))

    def encode(self, integers: npt.NDArray[Any]) -> Bytes:
        """Return uint8[frames, bytes of a frame] for integers [frames, *shape]; surplus lanes are 0."""
        flat = integers.reshape(len(integers), -1).astype(self.type, copy=False)
        if not self._plain:
            flat = np.concatenate([flat, np.zeros((len(flat), 1), self.type)], axis=1).take(self._source, axis=1)
        return self.cut(flat)

    def cut(self, lanes: npt.NDArray[Any]) -> Bytes:
        """Return the bytes of elements [frames, lanes of a frame]."""
        size = self.stream.element_bytes
        data = np.ascontiguousarray(lanes, self.type).view(np.uint8).reshape(*lanes.shape, self.type.itemsize)
        return np.ascontiguousarray(data[..., :size]).reshape(len(lanes), -1)

    def decode(self, data: Bytes) -> npt.NDArray[Any]:
        """Return integers [frames, *shape] of uint8[frames, bytes of a frame]."""
        size, word = self.stream.element_bytes, self.type.itemsize
        words = data.reshape(len(data), self._source.size, size)
        if size != word:
            whole = np.zeros((*words.shape[:2], word), np.uint8)
            whole[..., :size] = words
            if self.stream.signed:
                whole[..., size:] = (words[..., size - 1 :] >> 7) * np.uint8(255)
            words = whole
        elements = np.ascontiguousarray(words).view(self.type).reshape(len(data), self._source.size)
        if not self._plain:
            elements = elements.take(self._sink, axis=1)
        return elements.reshape(len(data), *self.stream.shape)
