"""What the host must know of a design: ``manifest.json`` and ``board/board.json`` of the output folder."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .host_errors import USAGE, HostError, HostFinding, shown
from .packets import StreamShape
from .tensors.map_rows import MapRows

LOAD, STATUS = 1, 2
"""The first byte of a packet for a loadable design's tables."""


@dataclass(frozen=True, eq=False)
class HostStream:
    """A stream of the design, as docs/reference/ports.md describes it. ``shape``: of a frame's tensor, whose element
    ``order[k]`` is the stream's k-th."""

    name: str
    port: str
    pixels: int
    channels: int
    lanes: int
    beats: int
    element_bytes: int
    signed: bool
    shape: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def beat_bytes(self) -> int:
        return self.lanes * self.element_bytes

    @property
    def frame_bytes(self) -> int:
        return self.beats * self.beat_bytes


@dataclass(frozen=True, eq=False)
class HostTensor:
    """A tensor of the model, without its axis of frames. ``port``: the stream that carries it, "" if none does; then
    ``affine`` says whether its elements are scale * (integer - zero point), ``keys`` whether the integers are keys of
    its floats, else they are the integers themselves;
    ``range``: the integers' least and greatest. Scale and zero point are fractions as text, for each place of an array
    of shape ``broadcast``. ``constant``: the same for every frame. ``maps``: how its rows are maps, where the model's
    type is one of those. ``finite``: its floats must be."""

    name: str
    type: str
    shape: tuple[int, ...]
    port: str = ""
    affine: bool = False
    range: tuple[int, int] = (0, 0)
    scale: tuple[str, ...] = ()
    zero_point: tuple[str, ...] = ()
    broadcast: tuple[int, ...] = ()
    constant: bool = False
    keys: bool = False
    maps: MapRows | None = None
    finite: bool = True


@dataclass(frozen=True, eq=False)
class HostPart:
    """An ONNX model that the host runs: before the design (prefix), or after it (suffix)."""

    file: Path
    inputs: tuple[HostTensor, ...]
    outputs: tuple[HostTensor, ...]


@dataclass(frozen=True, eq=False)
class HostMemory:
    """A table of a loadable design: its file, ``rows`` of ``row_bytes``, and the ONNX nodes that it is of."""

    file: str
    rows: int
    row_bytes: int
    nodes: tuple[str, ...]

    def image(self, folder: Path) -> bytes:
        """Return the bytes in which the file of an output folder is loaded: its rows, the highest byte first, and
        their CRC-32."""
        rows = (folder / self.file).read_text().split()
        if len(rows) != self.rows:
            raise ValueError(self.file)
        data = b"".join([int(row, 16).to_bytes(self.row_bytes, "big") for row in rows])
        return data + zlib.crc32(data).to_bytes(4, "little")


@dataclass(frozen=True)
class HostFlash:
    """Weights in a board's flash: commands, any one of which writes them there, and the ``seconds`` of a session after
    which the board has compared them."""

    programs: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, eq=False)
class HostDesign:
    """A design and its model. ``link``: what carries the frames, and where it is found; empty where a design has none.
    ``preamble``: what a session begins with: the image of the board's memory and its CRC-32, if the design has weights
    there; of a ``flash`` the CRC-32 alone. ``memories``: the tables that are loaded while the design runs."""

    folder: Path
    model: str
    sha256: str
    inputs: tuple[HostStream, ...]
    outputs: tuple[HostStream, ...]
    model_inputs: tuple[HostTensor, ...]
    model_outputs: tuple[HostTensor, ...]
    prefix: HostPart | None
    suffix: HostPart | None
    link: Mapping[str, Any]
    preamble: bytes = b""
    memories: tuple[HostMemory, ...] = ()
    flash: HostFlash | None = None

    @property
    def answer_bytes(self) -> int:
        """Bytes of the answer to a packet that loads the design: a byte for each table, and one of the whole."""
        return len(self.memories) + 1 if self.memories else 0

    def load_packet(self, folder: Path) -> bytes:
        """Return what loads the tables in an output folder of the same hardware."""
        try:
            return bytes([LOAD, *b"".join([memory.image(folder) for memory in self.memories])])
        except (OSError, ValueError, OverflowError):
            raise _no_folder(folder, "its files of weights are not those of this design") from None

    @property
    def input_shapes(self) -> tuple[StreamShape, ...]:
        return tuple(StreamShape(stream.beat_bytes, stream.beats) for stream in self.inputs)

    @property
    def output_shapes(self) -> tuple[StreamShape, ...]:
        return tuple(StreamShape(stream.beat_bytes, stream.beats) for stream in self.outputs)

    @property
    def input_bytes(self) -> int:
        """Bytes of a frame of all inputs."""
        return sum(stream.frame_bytes for stream in self.inputs)

    @property
    def output_bytes(self) -> int:
        """Bytes of a frame of all outputs."""
        return sum(stream.frame_bytes for stream in self.outputs)


def read_design(folder: str | Path) -> HostDesign:
    """Read the design in an output folder of ``hwflow synth``. Raises :class:`HostError`."""
    out = Path(folder)
    try:
        table = json.loads((out / "manifest.json").read_text())
        host = table["host"]
        return HostDesign(
            out, str(table["model"]), str(table["model_file"]["sha256"]),
            tuple(map(_stream, table["inputs"])), tuple(map(_stream, table["outputs"])),
            tuple(map(_tensor, host["inputs"])), tuple(map(_tensor, host["outputs"])),
            _part(out, host["prefix"]), _part(out, host["suffix"]), _link(out), _preamble(out, table.get("memory")),
            tuple(map(_memory, table.get("load", {}).get("memories", ()))), _flash(out),
        )
    except OSError:
        raise _no_folder(out, "it has no manifest.json") from None
    except (ValueError, AttributeError, KeyError, TypeError):
        raise _no_folder(out, "its manifest.json or board.json is damaged, or of an older version") from None


def _preamble(out: Path, memory: Mapping[str, Any] | None) -> bytes:
    """Return the memory's image, the lowest byte of a word first, unless it is in a flash, and its CRC-32."""
    if memory is None:
        return b""
    words = np.frombuffer(bytes.fromhex((out / str(memory["image"])).read_text()), f">u{int(memory['word_bits']) // 8}")
    image = words.byteswap().tobytes()
    return (b"" if "flash" in memory else image) + zlib.crc32(image).to_bytes(4, "little")


def _memory(table: Mapping[str, Any]) -> HostMemory:
    return HostMemory(
        str(table["file"]), int(table["rows"]), int(table["row_bytes"]), tuple(map(str, table["nodes"]))
    )


def _link(out: Path) -> dict[str, Any]:
    board = _board(out)
    link = board["link"] if board else {}
    if not isinstance(link, dict):
        raise TypeError
    return link


def _flash(out: Path) -> HostFlash | None:
    table = _board(out).get("flash")
    return None if table is None else HostFlash(tuple(map(str, table["programs"])), float(table["seconds"]))


def _board(out: Path) -> dict[str, Any]:
    """Return the contents of board.json; empty where there is none."""
    file = out / "board" / "board.json"
    table: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    return table


def _no_folder(out: Path, reason: str) -> HostError:
    message = f"must be an output folder of 'hwflow synth', but {reason}"
    return HostError(
        HostFinding("output-folder", f"folder {shown(out)}", message, "run 'hwflow synth' first"), exit_code=USAGE
    )


def _stream(table: Mapping[str, Any]) -> HostStream:
    sizes = {key: int(table[key]) for key in ("pixels", "channels", "lanes", "beats", "element_bytes")}
    return HostStream(
        str(table["name"]), str(table["port"]), signed=bool(table["element"]["signed"]), shape=tuple(table["shape"]),
        order=tuple(table["order"]), **sizes,
    )


def _tensor(table: Mapping[str, Any]) -> HostTensor:
    low, high = table.get("range", (0, 0))
    return HostTensor(
        str(table["name"]), str(table["type"]), tuple(map(int, table["shape"])), str(table.get("port", "")),
        table.get("conversion") == "affine", (int(low), int(high)), tuple(table.get("scale", ())),
        tuple(table.get("zero_point", ())), tuple(table.get("broadcast", ())), bool(table.get("constant")),
        table.get("conversion") == "keys", MapRows.of(table["map"]) if "map" in table else None,
        bool(table.get("finite", True)),
    )


def _part(out: Path, table: Mapping[str, Any] | None) -> HostPart | None:
    if table is None:
        return None
    file = out / Path(str(table["file"])).name
    return HostPart(file, tuple(map(_tensor, table["inputs"])), tuple(map(_tensor, table["outputs"])))
