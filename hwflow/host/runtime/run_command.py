"""``hwflow run``, and ``run.py`` of the output folder: send frames, compare, measure, show."""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .board_session import Board, connect
from .frame_coder import FrameCoder, Integers
from .host_design import HostDesign, read_design
from .host_errors import MISMATCH, USAGE, HostError, HostFinding, shown
from .link import Moment
from .packets import Identity
from .tensors.frame_bytes import Bytes
from .tensors.map_rows import beside, is_maps, map_text, plain_text, read_maps, write_maps

Golden = Callable[[Integers], Mapping[str, npt.NDArray[Any]]]
"""The integers that must come out of the design, by the port's name, for those that go in."""

_SHOWN_FRAMES, _SHOWN_VALUES = 3, 10
BENCH = "testbench/vectors.npz"
FRAMES = ("inputs.npz", "inputs.json", "host/frames.npz")


@dataclass(frozen=True, eq=False)
class Frames:
    """Frames by the model's input names; ``labels``: a class for each, if there are any."""

    arrays: dict[str, npt.NDArray[Any]]
    labels: npt.NDArray[Any] | None


@dataclass(frozen=True, eq=False)
class BoardRun:
    """What a run on a board gave. ``mismatches``: frames with another answer than the golden model's, None if nothing
    was compared; ``compared``: with what; ``latency_ms``: from a frame's last byte sent to its answer's last byte;
    ``resent``: packets, and requests for packets."""

    frames: int
    mismatches: int | None
    compared: str
    first_mismatch: str | None
    resent: int
    frames_per_second: float
    latency_ms: dict[str, float] | None
    accuracy: float | None
    identity: Identity
    statistics: dict[str, int]
    outputs: dict[str, Any]
    classes: tuple[str, npt.NDArray[Any]] | None
    labels: npt.NDArray[Any] | None

    def table(self) -> dict[str, Any]:
        """Return what ``--format json`` prints."""
        return {
            "frames": self.frames, "mismatches": self.mismatches, "resent": self.resent,
            "frames_per_second": self.frames_per_second, "latency_ms": self.latency_ms, "accuracy": self.accuracy,
            "identity": self.identity.table(), "statistics": self.statistics,
            "findings": [finding.table() for finding in self.findings()],
        }

    def findings(self) -> tuple[HostFinding, ...]:
        """Return what is wrong with the design, or the board."""
        found = []
        if self.mismatches:
            message = f"must be the {self.compared}'s, but {self.mismatches} are not; the first: {self.first_mismatch}"
            found.append(HostFinding("board-answer", "answers", message, "load the bitstream again, then report this"))
        if self.statistics["error"]:
            message = "must stay 0, but the core raised it: its results are not to be trusted"
            remedy = "report this model as a defect of hwflow"
            found.append(HostFinding("error-output", "error output", message, remedy))
        return tuple(found)

    def lines(self) -> Iterator[str]:
        """Yield the outputs of the first frames and the measurements as text."""
        for name, array in self.outputs.items():
            if isinstance(array, list):
                yield f"output {shown(name)} (a map of each frame)"
                yield from (f"  frame {frame}: {map_text(each)}" for frame, each in enumerate(array[:_SHOWN_FRAMES]))
                continue
            texts = array.dtype.kind in "OU"
            kind, shape = "string" if texts else array.dtype, ", ".join(map(str, array.shape[1:]))
            yield f"output {shown(name)} ({kind} [{shape}])"
            for frame, values in enumerate(array[:_SHOWN_FRAMES]):
                flat = np.asarray(values).reshape(-1)
                form = "{:.6g}" if flat.dtype.kind == "f" else "{!a}" if texts else "{}"
                text = " ".join(map(form.format, flat[:_SHOWN_VALUES].tolist()))
                more = f" ... ({flat.size} values)" if flat.size > _SHOWN_VALUES else ""
                yield f"  frame {frame}: {text}{more}{self._judged(name, frame, flat.size)}"
        if self.mismatches is not None:
            verdict = "all equal to" if not self.mismatches else f"{self.mismatches} DIFFERENT from"
            yield f"{self.frames:,} frames, {verdict} the {self.compared}"
        else:
            yield f"{self.frames:,} frames, not compared"
        latency = self.latency_ms
        if latency is not None:
            yield f"latency {latency['median']:.3g} ms, of 99 % at most {latency['p99']:.3g} ms"
        yield f"{self.frames_per_second:,.0f} frames per second; {self.resent:,} packets sent again"
        cycles = self.statistics["cycles"]
        if cycles < (1 << 32) - 1:
            yield f"on the chip at least {cycles:,} cycles per frame (scheduled: {self.identity.interval:,})"
        if self.accuracy is not None:
            yield f"accuracy against the labels: {100 * self.accuracy:.2f} %"

    def _judged(self, name: str, frame: int, values: int) -> str:
        if self.classes is None or self.classes[0] != name:
            return ""
        text = f"; greatest: {self.classes[1][frame]}" if values > 1 else ""
        return text if self.labels is None else f"{text}; label: {self.labels[frame]}"


def run_frames(board: Board, frames: Frames, golden: Golden | None, bench: bool) -> BoardRun:
    """Run ``frames``. Compare with ``golden``; if there is none and ``bench``, the test bench's frames are run before,
    and compared with what it expects."""
    checked = None if golden is not None or not bench else run_bench(board)[1:]
    link = board.link.link
    link.sent_times.clear()
    link.arrival_times.clear()
    base, begin = link.arrived // link.output_frame, board.clock()
    done = board.exchange(frames.arrays)
    seconds = board.clock() - begin
    count = len(next(iter(done.received.values())))
    compared = "golden model" if golden is not None else "test bench"
    if golden is not None:
        checked = _different(golden(done.sent), done.received)
    found = classes(board.coder.design, done.outputs)
    labels = frames.labels
    accuracy = None if found is None or labels is None else float(np.mean(found[1] == labels))
    return BoardRun(
        count, None if checked is None else checked[0], compared, None if checked is None else checked[1],
        link.resent, count / max(seconds, 1e-9), _latency(link.sent_times, link.arrival_times, link.input_frame,
        link.output_frame, base, count), accuracy, board.identity, board.statistics(), board.coder.own(done.outputs),
        found, labels,
    )  # fmt: skip


class Raw(Protocol):
    """What exchanges the bytes of frames with a design."""

    design: HostDesign
    coder: FrameCoder

    def raw(self, frames: Bytes) -> Bytes:
        """Exchange uint8[frames, bytes of a frame of all inputs] for the same of the outputs."""


def run_bench(board: Raw) -> tuple[int, int, str | None]:
    """Run the test bench's frames; return how many there are, how many differ from what it expects, and the first
    element that does."""
    path = board.design.folder / BENCH
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile):
        message = "must hold the test bench's frames, but cannot be read"
        finding = HostFinding("test-bench", f"file {shown(path)}", message, "restore it, or give --no-verify")
        raise HostError(finding, exit_code=USAGE) from None
    sent = {name[3:]: array for name, array in arrays.items() if name.startswith("in_")}
    expected = {name[4:]: array for name, array in arrays.items() if name.startswith("out_")}
    received = board.coder.decode(board.raw(board.coder.lanes(sent)))
    return len(next(iter(sent.values()))), *_different(board.coder.expected(expected), received)


def _different(
    expected: Mapping[str, npt.NDArray[Any]], found: Mapping[str, npt.NDArray[Any]]
) -> tuple[int, str | None]:
    """Return how many frames differ, and the first element that does."""
    wrong: npt.NDArray[np.bool_] | None = None
    first: tuple[int, str] | None = None
    for name, array in found.items():
        other = expected[name] != array
        frames = other.reshape(len(array), -1).any(axis=1)
        wrong = frames if wrong is None else wrong | frames
        if frames.any():
            frame, *place = (int(i) for i in np.argwhere(other)[0])
            at = (frame, *place)
            text = f"{shown(name)} in frame {frame}, index {place} must be {expected[name][at]}, not {array[at]}"
            first = (frame, text) if first is None or frame < first[0] else first
    return 0 if wrong is None else int(wrong.sum()), None if first is None else first[1]


def classes(
    design: HostDesign, outputs: Mapping[str, npt.NDArray[Any]]
) -> tuple[str, npt.NDArray[Any]] | None:
    """Return the first output that classifies, and the class of each frame: the index of the greatest value of a
    vector, or an integer that is all there is of a frame. None if no output does."""
    for tensor in design.model_outputs:
        array = outputs[tensor.name]
        if tensor.constant or array.dtype.kind not in "iuf" or not array.size:
            continue
        if sum(size > 1 for size in array.shape[1:]) == 1:
            return tensor.name, array.reshape(len(array), -1).argmax(axis=1)
        if array.size == len(array) and array.dtype.kind in "iu":
            return tensor.name, array.reshape(-1).astype(np.int64)
    return None


def _latency(
    sent: deque[Moment], arrived: deque[Moment], input_frame: int, output_frame: int, base: int, frames: int
) -> dict[str, float] | None:
    """Return median and 99th percentile of the milliseconds between a frame's last byte and its answer's, of the frames
    from number ``base`` on whose times are known."""
    if not sent or not arrived:
        return None
    (into, when_in), (out, when_out) = (np.array(list(moments)).T for moments in (sent, arrived))
    numbers = np.arange(base + 1, base + frames + 1)
    for positions, frame, forgotten in (
        (into, input_frame, len(sent) == sent.maxlen), (out, output_frame, len(arrived) == arrived.maxlen)
    ):
        ends = numbers * frame
        numbers = numbers[(ends > (positions[0] if forgotten else 0)) & (ends <= positions[-1])]
    if not len(numbers):
        return None
    left = when_in[np.searchsorted(into, numbers * input_frame)]
    back = when_out[np.searchsorted(out, numbers * output_frame)]
    median, most = np.percentile(1000 * np.maximum(back - left, 0), (50, 99))
    return {"median": float(median), "p99": float(most)}


def read_frames(design: HostDesign, given: str | Path | None, frames: int | None) -> Frames:
    """Read the frames of an .npz, by default those of the output folder: ``frames`` of them, by default all; they are
    repeated where more are asked for. Raises :class:`HostError`."""
    if frames is not None and frames < 1:
        message = f"must be at least 1, not {frames}"
        raise HostError(HostFinding("positive-frames", "option --frames", message, "give a number"), exit_code=USAGE)
    there = [design.folder / name for name in FRAMES if (design.folder / name).is_file()]
    if given is None and not there:
        finding = HostFinding("inputs-file", "frames", "must be given, not missing", "name a file with --input")
        raise HostError(finding, exit_code=USAGE)
    path = Path(given) if given is not None else there[0]
    where = f"inputs {shown(path)}"
    arrays = read_arrays(design, path, where)
    names = [tensor.name for tensor in design.model_inputs]
    if len(names) == 1 and names[0] not in arrays and "input" in arrays:
        arrays[names[0]] = arrays["input"]
    labels = arrays.get("label") if "label" not in names else None
    chosen = {name: array for name, array in arrays.items() if name in names}
    count = min((len(array) for array in chosen.values() if array.ndim), default=0)
    if labels is not None and (labels.dtype.kind not in "iu" or labels.shape != (count,)):
        message = f"'label' must be {count} integers, one a frame, not {labels.dtype} {list(labels.shape)}"
        raise HostError(HostFinding("inputs-file", where, message, "correct it, or leave it out"), exit_code=USAGE)
    if chosen and not count:
        finding = HostFinding("inputs-file", where, "must hold at least 1 frame, not 0", "add frames")
        raise HostError(finding, exit_code=USAGE)
    if frames is not None and len({len(array) for array in chosen.values() if array.ndim}) == 1:
        index = np.arange(frames) % count
        chosen = {name: array[index] if array.ndim else array for name, array in chosen.items()}
        labels = None if labels is None else labels[index]
    return Frames(chosen, labels)


def read_arrays(design: HostDesign, path: Path, where: str) -> dict[str, npt.NDArray[Any]]:
    """Read an .npz, and maps from the JSON beside it, or a JSON file alone; maps as rows of their tensor."""
    maps: dict[str, Any] = {}
    if beside(path).is_file() or path.suffix == ".json":
        try:
            maps = read_maps(beside(path))
        except (OSError, ValueError) as error:
            message = f"must be a readable JSON file, but: {shown(error)}"
            finding = HostFinding("inputs-file", f"inputs {shown(beside(path))}", message, "write lists by input name")
            raise HostError(finding, exit_code=USAGE) from None
    forms = {tensor.name: tensor.maps for tensor in design.model_inputs}
    for name, value in maps.items():
        form = forms.get(name)
        if is_maps(value) and form is not None:
            try:
                maps[name] = form.rows(value)
            except ValueError as error:
                finding = HostFinding("inputs-file", where, f"{shown(name)} {error}", "correct the maps")
                raise HostError(finding, exit_code=USAGE) from None
    return maps if path.suffix == ".json" else {**_arrays(path, where), **maps}


def _arrays(path: Path, where: str) -> dict[str, npt.NDArray[Any]]:
    reason = "it is not an .npz file"
    try:
        with path.open("rb") as stream:
            file = np.load(stream, allow_pickle=False)
            if isinstance(file, np.lib.npyio.NpzFile):
                return {name: file[name] for name in file.files}
    except OSError as error:
        reason = error.strerror or reason
    except Exception as error:  # zipfile, zlib and numpy raise many kinds for damaged files
        if zipfile.is_zipfile(path):
            reason = shown(error)
    message = f"must be a readable .npz file, but: {reason}"
    raise HostError(HostFinding("inputs-file", where, message, "write it with numpy.savez"), exit_code=USAGE)


def write_outputs(path: Path, outputs: Mapping[str, Any]) -> None:
    """Write an .npz of the outputs by name, maps to the JSON beside it. Raises :class:`HostError`."""
    maps = {name: value for name, value in outputs.items() if isinstance(value, list)}
    arrays = {name: plain_text(value) for name, value in outputs.items() if name not in maps}
    try:
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **dict[str, Any](arrays))
        if maps:
            write_maps(beside(path), maps)
    except OSError as error:
        message = f"must be a file that can be written, but: {error.strerror}"
        finding = HostFinding("results-file", "option --output", message, "choose another name")
        raise HostError(finding, exit_code=USAGE) from None


def main(folder: Path, arguments: Sequence[str] | None = None) -> int:
    """Run ``run.py`` of the output folder ``folder``; return the exit code."""
    parser = argparse.ArgumentParser(description="Run the network on its board.")
    parser.add_argument("--port", metavar="P", help="a serial device, or udp:HOST[:PORT] (default: the one found)")
    parser.add_argument("--baud", type=int, metavar="N", help="of the serial port (default: the design's)")
    parser.add_argument(
        "--input", metavar="X.npz", help="arrays by model input name, frames first; 'label': classes; maps in X.json"
    )
    parser.add_argument("--output", metavar="Y.npz", help="write the model's outputs, by name; maps to Y.json")
    parser.add_argument("--frames", type=int, metavar="N", help="how many frames (default: all of the file)")
    parser.add_argument("--no-verify", action="store_true", help="do not run the test bench's frames before")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="format of stdout (default: text)")
    options = parser.parse_args(arguments)
    try:
        design = read_design(folder)
        frames = read_frames(design, options.input, options.frames)
        with connect(design, options.port, baud=options.baud) as board:
            done = run_frames(board, frames, None, not options.no_verify)
        if options.output:
            write_outputs(Path(options.output), done.outputs)
    except HostError as error:
        print(error, file=sys.stderr)
        if options.format == "json":
            print(json.dumps({"findings": [finding.table() for finding in error.findings]}))
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(json.dumps(done.table()) if options.format == "json" else "\n".join(done.lines()))
    for finding in done.findings():
        print(*finding.lines(), sep="\n", file=sys.stderr)
    return MISMATCH if done.findings() else 0
