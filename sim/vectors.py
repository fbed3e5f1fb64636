"""Test vectors: stimuli and expected outputs of each stream, frame by frame.

A stream's vectors are int64[frames, beats, lanes]; padding lanes hold 0. Logical tensors (int64[frames, *shape]) are
laid out with :func:`to_stream` and read back with :func:`from_stream`; :func:`pack` makes the bytes of ``tdata``.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .manifest import Design, Stream
from .sim_errors import VectorError

Array = NDArray[np.int64]


def to_stream(stream: Stream, values: NDArray[np.integer]) -> Array:
    """Lay logical tensors [frames, *shape] out as beats: int64[frames, beats, lanes], padding lanes 0."""
    if values.shape[1:] != stream.shape:
        raise VectorError(f"stream {stream.name!r}: a frame must have shape {stream.shape}, not {values.shape[1:]}")
    frames = len(values)
    elements = values.reshape(frames, -1)[:, list(stream.order)].astype(np.int64)
    padded = np.zeros((frames, stream.pixels, stream.beats_per_pixel * stream.lanes), np.int64)
    padded[:, :, : stream.channels] = elements.reshape(frames, stream.pixels, stream.channels)
    return padded.reshape(frames, stream.beats, stream.lanes)


def from_stream(stream: Stream, beats: Array) -> Array:
    """Return the inverse of :func:`to_stream`: int64[frames, *shape]; padding lanes are dropped."""
    _check_shape(stream, beats)
    frames = len(beats)
    elements = beats.reshape(frames, stream.pixels, -1)[:, :, : stream.channels].reshape(frames, -1)
    flat = np.empty_like(elements)
    flat[:, list(stream.order)] = elements
    return flat.reshape(frames, *stream.shape)


def pack(stream: Stream, beats: Array) -> NDArray[np.uint8]:
    """Pack ``tdata``: uint8[frames, beats, tdata_bytes], least significant byte first, elements extended."""
    _check_shape(stream, beats)
    real = beats[:, stream.mask]
    if real.size and (real.min() < stream.low or real.max() > stream.high):
        raise VectorError(
            f"stream {stream.name!r}: elements must lie in {stream.low}..{stream.high}, not {real.min()}..{real.max()}"
        )
    data = np.ascontiguousarray(beats, dtype="<i8").view(np.uint8).reshape(*beats.shape, 8)
    return np.ascontiguousarray(data[..., : stream.element_bytes]).reshape(*beats.shape[:2], stream.tdata_bytes)


def element(stream: Stream, word: bytes, lane: int) -> int:
    """Return the element in ``lane`` of a ``tdata`` word, from all bits of its bytes (so a wrong extension shows)."""
    size = stream.element_bytes
    return int.from_bytes(word[lane * size : (lane + 1) * size], "little", signed=stream.signed)


def _check_shape(stream: Stream, beats: NDArray[np.integer]) -> None:
    if beats.ndim != 3 or beats.shape[1:] != (stream.beats, stream.lanes):
        want = f"[frames, {stream.beats}, {stream.lanes}]"
        raise VectorError(f"stream {stream.name!r}: vectors must have shape {want}, not {list(beats.shape)}")


@dataclass(frozen=True)
class Vectors:
    """Vectors of every stream of a design, keyed by port (``s_axis``, ``m_axis``, ``m1_axis``, ...)."""

    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]

    @property
    def frames(self) -> int:
        return len(next(iter(self.inputs.values())))

    @classmethod
    def of(cls, design: Design, inputs: Mapping[str, Array], expected: Mapping[str, Array]) -> Vectors:
        """Make vectors from logical tensors [frames, *shape], keyed by the streams' names."""
        for stream in design.streams:
            if stream.name not in (expected if stream.is_output else inputs):
                raise VectorError(f"stream {stream.name!r}: vectors must be given, not missing")
        vectors = cls(
            {s.port: to_stream(s, inputs[s.name]) for s in design.inputs},
            {s.port: to_stream(s, expected[s.name]) for s in design.outputs},
        )
        vectors.check(design)
        return vectors

    def __getitem__(self, port: str) -> Array:
        return self.inputs[port] if port in self.inputs else self.expected[port]

    def then(self, others: Vectors) -> Vectors:
        """Return these frames, and behind them those of ``others``."""
        return Vectors(
            {port: np.concatenate([array, others.inputs[port]]) for port, array in self.inputs.items()},
            {port: np.concatenate([array, others.expected[port]]) for port, array in self.expected.items()},
        )

    def head(self, frames: int) -> Vectors:
        """Return the first ``frames`` frames."""
        return self.between(0, frames)

    def between(self, start: int, stop: int) -> Vectors:
        """Return the frames from ``start`` to before ``stop``."""
        inputs, expected = (
            {port: array[start:stop] for port, array in of.items()} for of in (self.inputs, self.expected)
        )
        return Vectors(inputs, expected)

    def check(self, design: Design) -> None:
        """Raise :class:`VectorError` unless there are vectors of one or more frames for the design's streams."""
        for streams, given in ((design.inputs, self.inputs), (design.outputs, self.expected)):
            want, have = [s.port for s in streams], sorted(given)
            if sorted(want) != have:
                raise VectorError(
                    f"vectors must be given for the ports {', '.join(want)}, not {', '.join(have) or 'none'}"
                )
            for stream in streams:
                _check_shape(stream, given[stream.port])
                frames = len(given[stream.port])
                if frames != self.frames or frames < 1:
                    due = max(self.frames, 1)
                    raise VectorError(f"stream {stream.name!r}: there must be {due} frames, not {frames}")

    def save(self, path: Path) -> None:
        """Write an .npz with keys ``in_<port>`` and ``out_<port>``."""
        arrays = {f"in_{k}": v for k, v in self.inputs.items()} | {f"out_{k}": v for k, v in self.expected.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            stored: dict[str, Any] = {k: np.asarray(v, dtype=np.int64) for k, v in arrays.items()}
            np.savez_compressed(file, **stored)


def load_vectors(path: Path) -> Vectors:
    """Read what :meth:`Vectors.save` wrote."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key].astype(np.int64) for key in file.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise VectorError(f"{path}: must be an .npz of vectors ({error})") from None
    return Vectors(
        {k.removeprefix("in_"): v for k, v in arrays.items() if k.startswith("in_")},
        {k.removeprefix("out_"): v for k, v in arrays.items() if k.startswith("out_")},
    )
