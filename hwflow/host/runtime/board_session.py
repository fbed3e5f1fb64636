"""A board as a function of arrays: :func:`connect`."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .float_parts import Arrays, Evaluate
from .frame_coder import FrameCoder, Integers
from .host_design import STATUS, HostDesign, HostFlash, read_design
from .host_errors import USAGE, HostError, HostFinding, shown
from .link_thread import PATIENCE, LinkThread
from .packets import Identity
from .port_search import ANSWER_SECONDS, Found, find_port, refuse_other
from .tensors.frame_bytes import Bytes

_CHUNK = 1 << 17  # bytes of frames that are converted at once
_LOOK_EVERY = 0.02  # seconds: whether a flash has what it must
_UNDER_WAY = 1 << 19  # bytes of frames that a stream's source may be ahead of the answers


@dataclass(frozen=True, eq=False)
class Exchange:
    """A batch: what went into the design and came out, and the model's own outputs."""

    sent: Integers
    received: Integers
    outputs: dict[str, npt.NDArray[Any]]


class Board:
    """A board that holds a design, behind an open link; a context manager. One call at a time.

    A thread of its own keeps the link going: frames are sent and answers come in while the program does something else.
    Methods raise :class:`HostError` when the link has ended for good; then the board must be connected again.
    ``clock``: that of all timers, in seconds. ``weights_in``: reads what :meth:`load` is given.
    """

    def __init__(
        self, design: HostDesign, coder: FrameCoder, found: Found, patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.design, self.coder, self.clock, self._identity = design, coder, clock, found.identity
        self.weights_in: Callable[[Path], AbstractContextManager[FrameCoder]] = _of_folder
        self.link = LinkThread(
            found.carrier, found.identity, design.input_bytes, design.output_bytes,
            lambda identity: refuse_other(design, identity, found.carrier.name),
            patience=patience, reopen=not design.link.get("stateful"), clock=clock,
            preamble=design.preamble or (bytes([STATUS]) if design.memories else b""), reply=design.answer_bytes,
        )
        self._busy = threading.Lock()
        try:
            reply = self.link.opened()
            if any(reply):  # other weights than those of the bitstream, or damaged ones
                self._load(design.load_packet(design.folder))
            if design.flash is not None:
                self._check_flash(design.flash)
        except HostError:
            self.link.close()
            raise

    @property
    def identity(self) -> Identity:
        """What the board says of itself."""
        return self._identity

    @property
    def port(self) -> str:
        """Where the board is."""
        return self.link.carrier.name

    def run(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Return the model's outputs by name for its inputs by name, both [frames, *shape], of any number of frames.
        Maps are lists of them, one of each frame."""
        return self.coder.own(self.exchange(arrays).outputs)

    def exchange(self, arrays: Mapping[str, Any]) -> Exchange:
        """Run a batch like :meth:`run`, and return the integers at the design's ports, too; no maps but tensors."""
        batch = self.coder.check(arrays)
        with self._alone():
            waiting: deque[tuple[dict[str, npt.NDArray[Any]], Integers]] = deque()
            done: list[Exchange] = []
            for part in self._parts(batch):
                integers, data = self._encoded(part)
                self.link.send(data)
                waiting.append((part, integers))
                while waiting and self.link.link.arrived_frames >= _frames(waiting[0][1]):
                    done.append(self._answer(*waiting.popleft()))
            while waiting:
                done.append(self._answer(*waiting.popleft()))
        return done[0] if len(done) == 1 else Exchange(
            _joined([each.sent for each in done]), _joined([each.received for each in done]),
            _joined([each.outputs for each in done]),
        )

    def stream(self, batches: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield what :meth:`run` returns for each of ``batches``, as soon as it is there.

        A thread takes the next batches meanwhile, up to half a megabyte ahead of the answers; an error of theirs is
        raised here. A camera's frame is a batch of one.
        """
        with self._alone():
            source = _Source(self, batches)
            try:
                while (item := source.next()) is not None:
                    yield self.coder.own(self._answer(*item).outputs)
            finally:
                source.stop()

    def statistics(self) -> dict[str, int]:
        """Return board's and host's counts in this session. ``cycles``: the least between two answers, on the chip."""
        counters, link = self.link.counters(), self.link.link
        return {
            **counters._asdict(), "resent": link.resent, "damaged_answers": link.damaged,
            "sessions": 1 + self.link.reopened,
        }

    def raw(self, frames: Bytes) -> Bytes:
        """Exchange bytes: uint8[frames, bytes of a frame of all inputs] in, the same of the outputs out."""
        due = self.design.input_bytes
        if frames.dtype != np.uint8 or frames.shape != (len(frames), due):
            message = f"must be uint8[frames, {due}], not {frames.dtype}{list(frames.shape)}"
            finding = HostFinding("input-shape", "bytes of frames", message, "give all of a frame's bytes")
            raise HostError(finding, exit_code=USAGE)
        with self._alone():
            self.link.send(frames.tobytes())
            return self._take(len(frames))

    def reset(self) -> None:
        """Begin anew: what the design keeps from frame to frame is as it was at first. Connecting does that, too."""
        with self._alone():
            self.link.restart()

    def load(self, weights: str | Path) -> None:
        """Load the weights, scales and biases of another model: from now on frames are that model's.

        ``weights``: an ONNX file (where hwflow is installed, and the board is connected by :func:`hwflow.connect`), or
        an output folder of this hardware with them. Frames that were sent before have the answers of the model before.
        Raises :class:`HostError` where the design is not loadable, or a table has not arrived as it was sent; then the
        board refuses frames until a load succeeds. An ONNX file that does not fit the hardware raises
        :class:`hwflow.ModelRefused`, and nothing is loaded.
        """
        if not self.design.memories:
            message = "must be loadable to be loaded with weights, but this one's are fixed"
            finding = HostFinding("loadable", "design", message, "build it with 'hwflow synth --loadable all'")
            raise HostError(finding, exit_code=USAGE)
        with self.weights_in(Path(weights)) as loaded, self._alone():
            if _forms(loaded.design) != _forms(self.design):
                message = "must be of this hardware, but it has other tables or streams"
                remedy = "give an output folder of the same hardware"
                finding = HostFinding("same-hardware", f"weights {shown(weights)}", message, remedy)
                raise HostError(finding, exit_code=USAGE)
            self._load(self.design.load_packet(loaded.design.folder))
            self.coder = loaded

    def _load(self, packet: bytes) -> None:
        self.link.check_reply = self._check_loaded
        self._check_loaded(self.link.restart(packet))

    def _check_loaded(self, reply: bytes) -> None:
        *tables, whole = reply
        wrong = [memory for memory, failed in zip(self.design.memories, tables, strict=True) if failed]
        if not wrong and not whole & 1:
            return
        named = (f"{shown(Path(memory.file).stem)} (of {', '.join(map(shown, memory.nodes))})" for memory in wrong)
        message = f"tables must arrive with their CRCs, but these have not: {', '.join(named) or 'the end of the load'}"
        raise HostError(HostFinding("load-crc", f"port {shown(self.port)}", message, "load it again"))

    def _check_flash(self, flash: HostFlash) -> None:
        """Raise where the flash has other weights, which the board knows some time after the session has begun."""
        end = self.clock() + flash.seconds
        while True:
            over = self.clock() >= end
            if self.link.counters().error:
                message = "must have the design's weights in its flash, not others"
                remedy = f"write them, in {shown(self.design.folder)}: {' or '.join(flash.programs)}"
                raise HostError(HostFinding("flash-image", f"port {shown(self.port)}", message, remedy))
            if over:
                return
            time.sleep(_LOOK_EVERY)

    def close(self) -> None:
        """End the session and give the port back."""
        self.link.close()

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _alone(self) -> _Alone:
        return _Alone(self)

    def _parts(self, batch: dict[str, npt.NDArray[Any]]) -> Iterator[dict[str, npt.NDArray[Any]]]:
        frames = _frames(batch)
        step = max(1, _CHUNK // self.design.input_bytes)
        for first in range(0, max(1, frames), step):
            yield {name: array[first : first + step] for name, array in batch.items()}

    def _encoded(self, part: dict[str, npt.NDArray[Any]]) -> tuple[Integers, memoryview]:
        if not _frames(part):
            return {s.name: np.zeros((0, *s.shape), np.int64) for s in self.design.inputs}, memoryview(b"")
        integers = self.coder.integers(part)
        return integers, self.coder.encode(integers).data.cast("B")

    def _answer(self, part: dict[str, npt.NDArray[Any]], sent: Integers) -> Exchange:
        frames = _frames(sent)
        if not frames:
            return Exchange(sent, self.coder.decode(np.zeros((0, self.design.output_bytes), np.uint8)),
                            self.coder.nothing())  # fmt: skip
        received = self.coder.decode(self._take(frames))
        return Exchange(sent, received, self.coder.outputs(received, part))

    def _take(self, frames: int) -> Bytes:
        size, have = frames * self.design.output_bytes, 0
        data = bytearray()
        while have < size:
            data += self.link.take(size - have)
            have = len(data)
        return np.frombuffer(data, np.uint8).reshape(frames, self.design.output_bytes)


class _Alone:
    """One call at a time; answers that nobody waits for any more are dropped first."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def __enter__(self) -> None:
        board = self._board
        if not board._busy.acquire(blocking=False):
            message = "must do one thing at a time, not be called while a stream or another thread uses it"
            finding = HostFinding("one-call", "board", message, "end the stream first")
            raise HostError(finding, exit_code=USAGE)
        try:
            if board.link.link.unanswered:
                board._take(board.link.link.unanswered)
        except BaseException:
            board._busy.release()
            raise

    def __exit__(self, *error: object) -> None:
        self._board._busy.release()


class _Source:
    """Takes a stream's batches in a thread and sends them."""

    def __init__(self, board: Board, batches: Iterable[Arrays]) -> None:
        self._board, self._batches = board, batches
        self._changed = threading.Condition()
        self._sent: deque[tuple[dict[str, npt.NDArray[Any]], Integers]] = deque()
        self._bytes = 0  # under way
        self._over = self._stopped = False
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="hwflow stream", daemon=True).start()

    def next(self) -> tuple[dict[str, npt.NDArray[Any]], Integers] | None:
        """Return a batch that was sent; None after the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._sent or self._over)
            if not self._sent:
                if self._error is not None:
                    raise self._error
                return None
            item = self._sent.popleft()
            self._bytes -= _frames(item[1]) * self._board.design.input_bytes
            self._changed.notify_all()
            return item

    def stop(self) -> None:
        """Send no more batches."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            for batch in self._batches:
                part = self._board.coder.check(batch)
                integers, data = self._board._encoded(part)
                with self._changed:
                    self._changed.wait_for(lambda: self._bytes < _UNDER_WAY or self._stopped)
                    if self._stopped:
                        return
                    self._board.link.send(data)
                    self._sent.append((part, integers))
                    self._bytes += len(data)
                    self._changed.notify_all()
        except BaseException as error:  # whoever waits raises it
            self._error = error
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()


def _frames(arrays: Mapping[str, npt.NDArray[Any]]) -> int:
    return len(next(iter(arrays.values())))


def _joined(parts: list[dict[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _forms(design: HostDesign) -> tuple[object, ...]:
    """Return the hardware signature shared by compatible designs."""
    tables = tuple((memory.file, memory.rows, memory.row_bytes) for memory in design.memories)
    return tables, design.input_shapes, design.output_shapes


@contextmanager
def _of_folder(path: Path) -> Iterator[FrameCoder]:
    """Yield the coder of the design in an output folder."""
    yield FrameCoder(read_design(path))


def connect(
    out: str | Path | HostDesign, port: str | None = None, *, baud: int | None = None, patience: float = PATIENCE,
    seconds: float = ANSWER_SECONDS, prefix: Evaluate | None = None, suffix: Evaluate | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Board:
    """Return the board that holds the design in an output folder of ``hwflow synth``.

    ``port``: a serial device, or "udp:HOST[:PORT]" (default: the one where the board answers); ``baud``: of a serial
    port (default: the design's); ``patience``: seconds after which a board that says nothing is given up; ``seconds``:
    how long to wait for a board at a port; ``prefix``, ``suffix``: run these parts in onnxruntime's place; ``clock``:
    of all timers. Raises :class:`HostError` where there is no such board, or another network in it.
    """
    design = out if isinstance(out, HostDesign) else read_design(out)
    coder = FrameCoder(design, prefix, suffix)
    return Board(design, coder, find_port(design, port, baud, seconds, clock=clock), patience, clock)
