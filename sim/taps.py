"""Record the streams inside an emitted design: the output of each core.

The manifest's `streams` lists them; the module named by its `layers` has their signals as ports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .manifest import Design
from .sim_errors import ManifestError

Array = NDArray[np.int64]


@dataclass(frozen=True)
class Tap:
    """One output stream of a core, with the ports ``<port>__payload``, ``__valid`` and ``__ready``.

    ``instance`` and ``op`` name the core, ``nodes`` the ONNX nodes it works for. ``stream``: the compiler's name of the
    stream whose elements these are; ``moved``: the core only passes them on (a queue, say). A frame is ``pixels`` of
    ``channels``, as in :class:`.manifest.Stream`; an element has ``width`` bits, elements lie side by side in the
    payload, lane 0 least significant.
    """

    port: str
    instance: str
    op: str
    nodes: tuple[str, ...]
    stream: str
    moved: bool
    pixels: int
    channels: int
    lanes: int
    beats: int
    width: int
    signed: bool

    @property
    def bits(self) -> int:
        """Bits of the payload."""
        return self.lanes * self.width

    @property
    def bytes(self) -> int:
        """Bytes of a recorded beat."""
        return -(-self.bits // 8)

    @property
    def elements(self) -> int:
        """Elements of a frame."""
        return self.pixels * self.channels

    def read(self, path: Path, start: int, frames: int) -> Array:
        """Read the elements of recorded frames ``start`` to ``start + frames``, as many as were recorded:
        int64[elements] in the stream's order."""
        size = self.beats * self.bytes
        raw = np.fromfile(path, np.uint8, count=frames * size, offset=start * size)
        words = raw.reshape(-1, self.bytes)
        parts = [self._elements(words[i : i + self.beats]) for i in range(0, len(words), self.beats)]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _elements(self, words: NDArray[np.uint8]) -> Array:
        """Unpack the elements of beats that begin with a frame's first."""
        bits = np.unpackbits(words, axis=1, bitorder="little")[:, : self.bits].reshape(len(words), self.lanes, -1)
        value = np.zeros((len(words), self.lanes), np.int64)
        for place in range(self.width):
            value |= bits[:, :, place].astype(np.int64) << place
        if self.signed:
            value -= bits[:, :, -1].astype(np.int64) << self.width
        a_pixel = -(-self.channels // self.lanes)
        channel = np.arange(a_pixel * self.lanes).reshape(a_pixel, self.lanes)
        real = np.tile(channel < self.channels, (self.pixels, 1))[: len(words)]
        return value[real]


def load_taps(design: Design) -> tuple[Design, tuple[Tap, ...]]:
    """Return the design with taps as ports, and the taps. Raises :class:`ManifestError` if the folder has none."""
    path = design.directory / "manifest.json"
    table = json.loads(path.read_text())
    try:
        layers = table["layers"]
        source = design.directory / layers["source"]
        taps = tuple(_tap(entry) for entry in table["streams"])
        top = str(layers["top"])
    except (KeyError, TypeError) as error:
        raise ManifestError(f"{path}: 'layers' and 'streams' must say what there is inside ({error})") from None
    if not source.is_file():
        raise ManifestError(f"{source}: named in manifest.json, must be a file, not missing")
    return replace(design, top=top, sources=(*design.sources, source)), taps


def _tap(entry: dict[str, Any]) -> Tap:
    element = entry["element"]
    return Tap(
        port=str(entry["port"]), instance=str(entry["instance"]), op=str(entry["op"]), nodes=tuple(entry["nodes"]),
        stream=str(entry["stream"]), moved=bool(entry["moved"]), pixels=int(entry["pixels"]),
        channels=int(entry["channels"]), lanes=int(entry["lanes"]), beats=int(entry["beats"]),
        width=int(element["width"]), signed=bool(element["signed"]),
    )


def files(taps: tuple[Tap, ...], folder: Path) -> Iterator[tuple[Tap, Path]]:
    """Yield each tap's file in a folder of records."""
    for number, tap in enumerate(taps):
        yield tap, folder / f"{number}.bin"
