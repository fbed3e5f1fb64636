"""The emitted directory as the simulators see it: top module, ports, streams, predicted timing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from .sim_errors import ManifestError


@dataclass(frozen=True)
class Stream:
    """One AXI4-Stream port of the design.

    A frame is ``pixels`` pixels of ``channels`` channels, ``lanes`` channels per beat, channels fastest; the surplus
    lanes of a pixel's last beat are padding. An element is ``width`` bits, extended to ``element_bytes`` bytes;
    ``tdata`` is ``lanes * element_bytes`` bytes, lane 0 least significant. ``order[k]`` is the flat index in a
    frame's logical tensor (``shape``) of stream element ``k = pixel * channels + channel``.
    """

    name: str
    port: str
    is_output: bool
    pixels: int
    channels: int
    lanes: int
    beats: int
    width: int
    signed: bool
    element_bytes: int
    shape: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def beats_per_pixel(self) -> int:
        return -(-self.channels // self.lanes)

    @property
    def tdata_bytes(self) -> int:
        return self.lanes * self.element_bytes

    @property
    def low(self) -> int:
        """Least value an element can have."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """Greatest value an element can have."""
        return (1 << (self.width - self.signed)) - 1

    def real_lanes(self, beat: int) -> int:
        """Count the lanes of ``beat`` (of a frame) that carry an element: always lanes 0 .. n-1."""
        return min(self.lanes, self.channels - beat % self.beats_per_pixel * self.lanes)

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """bool[beats, lanes]: the lanes that carry an element."""
        channel = np.arange(self.beats_per_pixel * self.lanes).reshape(self.beats_per_pixel, self.lanes)
        return np.tile(channel < self.channels, (self.pixels, 1))

    def index_of(self, beat: int, lane: int) -> tuple[int, ...]:
        """Return the index in the frame's logical tensor of the element of ``beat`` and ``lane``."""
        pixel, part = divmod(beat, self.beats_per_pixel)
        flat = self.order[pixel * self.channels + part * self.lanes + lane]
        return tuple(int(i) for i in np.unravel_index(flat, self.shape))


@dataclass(frozen=True)
class LoadedMemory:
    """A table that is loaded while the design runs: ``rows`` of ``row_bytes``; ``file``: with those of the bitstream,
    ``nodes``: the ONNX nodes that it is of."""

    file: str
    rows: int
    row_bytes: int
    nodes: tuple[str, ...]

    def image(self, folder: Path) -> bytes:
        """Return the bytes in which a file of ``folder`` is loaded: its rows, the highest byte first, and a CRC-32."""
        rows = (folder / self.file).read_text().split()
        data = b"".join(int(row, 16).to_bytes(self.row_bytes, "big") for row in rows)
        return data + crc32(data).to_bytes(4, "little")


@dataclass(frozen=True)
class LoadPorts:
    """How a design's tables are loaded: the ports, and the tables in order."""

    input: str
    output: str
    memories: tuple[LoadedMemory, ...]

    def packet(self, folder: Path) -> bytes:
        """Return the packet that loads the tables of an emitted directory of the same hardware."""
        return bytes([LOAD, *b"".join(memory.image(folder) for memory in self.memories)])

    def answer(self, failed: Sequence[int] = (), *, refuses: bool = False, changed: bool = True) -> bytes:
        """Return the answer to a packet; ``failed``: tables by their number."""
        each = [int(number in failed) for number in range(len(self.memories))]
        return bytes([*each, int(refuses or bool(failed)) + 2 * changed])


LOAD, STATUS = 1, 2
"""A packet's first byte."""


@dataclass(frozen=True)
class Design:
    """An emitted directory. ``top``, ``sources``: of what is simulated, with its memory if the design has some outside.
    ``latency`` and ``initiation_interval`` are the manifest's predictions, in cycles;
    ``before``: between reset and the first input beat, in which state is read; ``load``: how its tables are loaded, if
    they are."""

    directory: Path
    model: str
    top: str
    clock: str
    reset: str
    error: str | None
    sources: tuple[Path, ...]
    weights: tuple[Path, ...]
    inputs: tuple[Stream, ...]
    outputs: tuple[Stream, ...]
    latency: int | None
    initiation_interval: int | None
    before: int = 0
    load: LoadPorts | None = None

    @property
    def streams(self) -> tuple[Stream, ...]:
        return self.inputs + self.outputs

    def watchdog(self, stall: float) -> int:
        """Return the default cycles without a handshake after which a run counts as hung.

        Without gaps and stalls a working design has a handshake at least every latency + initiation interval; the limit
        is four times that, and more with gaps and stalls.
        """
        if self.latency is None or self.initiation_interval is None:
            return 1_000_000
        return int((1000 + 4 * (self.latency + self.initiation_interval)) / (1 - min(stall, 0.99)))


def _get(table: Mapping[str, Any], key: str, kinds: type | tuple[type, ...], where: str) -> Any:
    if key not in table:
        raise ManifestError(f"{where}: '{key}' must be present, not missing")
    value = table[key]
    if not isinstance(value, kinds):
        raise ManifestError(f"{where}: '{key}' must not be {value!r}")
    return value


def _stream(table: Mapping[str, Any], is_output: bool, where: str) -> Stream:
    name = _get(table, "name", str, where)
    where = f"{where}: stream {name!r}"
    number = {key: _get(table, key, int, where) for key in ("pixels", "channels", "lanes", "beats", "element_bytes")}
    for key, value in number.items():
        if value < 1:
            raise ManifestError(f"{where}: '{key}' must be at least 1, not {value}")
    element = _get(table, "element", dict, where)
    shape: Sequence[int] = _get(table, "shape", list, where)
    order: Sequence[int] = _get(table, "order", list, where)
    stream = Stream(
        name,
        _get(table, "port", str, where),
        is_output,
        **number,
        width=_get(element, "width", int, where),
        signed=_get(element, "signed", bool, where),
        shape=tuple(shape),
        order=tuple(order),
    )
    if stream.beats != stream.pixels * stream.beats_per_pixel:
        want = stream.pixels * stream.beats_per_pixel
        raise ManifestError(f"{where}: 'beats' must be pixels * ceil(channels / lanes) = {want}, not {stream.beats}")
    if not 1 <= stream.width <= 8 * stream.element_bytes or stream.element_bytes > 8:
        raise ManifestError(
            f"{where}: an element of {stream.width} bits must fit 'element_bytes', not {stream.element_bytes}"
        )
    size = int(np.prod(stream.shape, dtype=np.int64))
    if size != stream.pixels * stream.channels or sorted(stream.order) != list(range(size)):
        raise ManifestError(
            f"{where}: 'order' must be a permutation of the {size} elements of 'shape', one per stream element"
        )
    return stream


def _load(table: Mapping[str, Any] | None, where: str) -> LoadPorts | None:
    if table is None:
        return None
    memories = tuple(
        LoadedMemory(
            _get(each, "file", str, where), _get(each, "rows", int, where), _get(each, "row_bytes", int, where),
            tuple(_get(each, "nodes", list, where)),
        )
        for each in _get(table, "memories", list, where)
    )
    return LoadPorts(_get(table, "input", str, where), _get(table, "output", str, where), memories)


def load_design(directory: Path | str) -> Design:
    """Read ``directory/manifest.json``. Raises :class:`ManifestError` naming the file and key that is wrong."""
    directory = Path(directory).resolve()
    path = directory / "manifest.json"
    try:
        table = json.loads(path.read_text())
    except OSError as error:
        raise ManifestError(f"{path}: must be a readable file ({error.strerror})") from None
    except ValueError as error:
        raise ManifestError(f"{path}: must be JSON ({error})") from None
    where = str(path)
    if not isinstance(table, dict) or table.get("format") != 1:
        raise ManifestError(
            f"{where}: 'format' must be 1, not {table.get('format') if isinstance(table, dict) else table!r}"
        )
    timing = table.get("timing") or {}
    outside = table.get("simulation") or {"top": _get(table, "top", str, where), "sources": []}
    sources = [*_get(table, "sources", list, where), *_get(outside, "sources", list, where)]
    design = Design(
        directory=directory,
        model=str(table.get("model", directory.name)),
        top=_get(outside, "top", str, where),
        clock=_get(table, "clock", str, where),
        reset=_get(table, "reset", str, where),
        error=table.get("error"),
        sources=tuple(directory / name for name in sources),
        weights=tuple(directory / name for name in _get(table, "weights", list, where)),
        inputs=tuple(_stream(t, False, where) for t in _get(table, "inputs", list, where)),
        outputs=tuple(_stream(t, True, where) for t in _get(table, "outputs", list, where)),
        latency=timing.get("latency"),
        initiation_interval=timing.get("initiation_interval"),
        before=int(timing.get("before", 0)),
        load=_load(table.get("load"), where),
    )
    for file in (*design.sources, *design.weights):
        if not file.is_file():
            raise ManifestError(f"{file}: named in manifest.json, must be a file, not missing")
    if not design.inputs or not design.outputs:
        raise ManifestError(f"{where}: there must be at least one input and one output stream")
    return design
