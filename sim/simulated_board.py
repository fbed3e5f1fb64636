"""A board in a simulator that a host opens as it opens a board's port: the whole top, pins included, in Verilator."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from . import programs
from .sim_errors import ManifestError, SimError, SimulatorFailed, tail_of
from .verilator_build import Recipe, build

FOLDER = "board/simulation"  # of an output folder: all that a simulated board is made of beside the Verilog
_PROGRAM = Path(__file__).resolve().parent / "verilator" / "board"
CARRIERS = ("serial", "udp", "usb")  # each has a file in _PROGRAM
_PRIMITIVES = Path(__file__).resolve().parent / "verilog"
_STATUS = (  # `struct Status` in carrier.h
    "cycles", "to_board", "to_host", "lost", "added", "flipped", "delayed", "duplicated", "framing", "resets",
)


def write_simulation(out: Path) -> None:
    """Write into ``out``, beside the board's own files, what its simulation needs: the program, and models of the
    part's primitives. ``sh OUT/board/simulation/build.sh`` builds it without hwflow."""
    folder, board = out / FOLDER, _board(out)
    folder.mkdir(exist_ok=True)
    others = {f"{carrier}.cpp" for carrier in CARRIERS if carrier != board["link"]["carrier"]}
    for file in sorted(_PROGRAM.iterdir()):
        if file.name not in others:
            shutil.copyfile(file, folder / file.name)
    shutil.copyfile(_PRIMITIVES.parent / "verilator" / "waivers.vlt", folder / "waivers.vlt")
    memory = board["simulation"].get("memory")  # the kind of one beside the part
    models = [f"{board['part']['family']}.v", *([f"{memory}.v"] if memory else [])]
    (folder / "primitives.v").write_text("\n".join((_PRIMITIVES / name).read_text() for name in models))
    verilog = [board["simulation"]["source"], "board/top.v", *board["sources"], f"{FOLDER}/primitives.v"]
    (folder / "sources.f").write_text("".join(f"../../{name}\n" for name in verilog))


def _board(out: Path) -> dict[str, Any]:
    path = out / "board" / "board.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except OSError as error:
        raise ManifestError(f"{path}: must be a readable file ({error.strerror})") from None
    except ValueError as error:
        raise ManifestError(f"{path}: must be JSON ({error})") from None
    carrier = found.get("link", {}).get("carrier")
    if "simulation" not in found or carrier not in CARRIERS:
        raise ManifestError(f"{path}: must be of a board behind {' or '.join(CARRIERS)} to be simulated, not {carrier}")
    return found


def _clock_hz(settings: Path) -> float:
    """Return the cycles a second of the simulated board's clock: with USB not the design's."""
    return float(settings.read_text().partition("#define CLOCK_HZ ")[2].split()[0])


class SimulatedBoard:
    """Context manager: builds the board of an output folder (see :func:`.verilator_build.build`), runs it, ends it.

    ``port`` is what to open: a terminal, or "udp:127.0.0.1:N". The board runs as fast as it can while bytes move, at
    the best some million cycles per second, and sleeps when the design is quiet. So a host had better take the time
    from :meth:`seconds`, which is the board's own and goes on with the clock on the wall while the board sleeps.
    """

    def __init__(
        self,
        out: Path | str,
        *,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        faults: float = 0.0,
        seed: int = 0,
        build_folder: Path | None = None,
        optimize: str | None = None,
        jobs: int | None = None,
    ) -> None:
        """Prepare the board. ``out``: the output folder; ``command``, ``environment``: how Verilator is called;
        ``faults``: the share of the bytes, both ways, that are lost, preceded by another one, changed in a bit, delayed
        (with all behind them, by up to 100 bytes' time) or repeated, each of the five equally often; behind Ethernet
        that of the datagrams, of which a changed one is half of the time lost by its check sequence, and a delayed one
        (by up to 100 us) is overtaken; ``seed``: of these, and of what is undefined when the board starts;
        ``build_folder``: where the program is kept (default ``OUT/testbench/build/board``); ``optimize``, ``jobs``: see
        :func:`.verilator_build.build`."""
        if not 0 <= faults <= 1:
            raise SimError(f"faults must be from 0 to 1, not {faults}")
        self.out = Path(out).resolve()
        self._build_folder = build_folder or self.out / "testbench" / "build" / "board"
        self._command, self._environment = command, dict(environment or {})
        self._optimize, self._jobs = optimize, jobs
        self._arguments = ["--faults", repr(faults), "--seed", str(seed)]
        self._stack = ExitStack()

    def __enter__(self) -> SimulatedBoard:
        """Build and start. Raises :class:`ManifestError`, :class:`SimulatorFailed`, KeyboardInterrupt."""
        board = _board(self.out)
        folder = self.out / FOLDER
        verilog = (
            self.out / board["simulation"]["source"], self.out / "board" / "top.v",
            *(self.out / name for name in board["sources"]), folder / "primitives.v",
        )
        cpp = (folder / "main.cpp", folder / f"{board['link']['carrier']}.cpp")
        recipe = Recipe("board", "Vboard", board["simulation"]["top"], verilog, cpp, {})
        missing = [file for file in (*verilog, *recipe.cpp, folder / "settings.h") if not file.is_file()]
        if missing:
            raise ManifestError(f"{missing[0]}: must be present to simulate the board, not missing")
        built = build(
            recipe, command=self._command, environment=self._environment, folder=self._build_folder,
            optimize=self._optimize, jobs=self._jobs,
        )
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hwflow-sim-")))
            self._log = self._build_folder / "run.log"
            log = stack.enter_context(self._log.open("w"))
            self._program = stack.enter_context(
                programs.started(
                    [str(built.program), *self._arguments, "--status", str(scratch / "status")], cwd=self.out,
                    text=True, stdout=subprocess.PIPE, stderr=log,
                )
            )
            assert self._program.stdout is not None, "it is a pipe"
            self.port = self._program.stdout.readline().strip()
            if not self.port:
                raise self._failed("start the simulated board")
            with (scratch / "status").open("rb") as file:
                self._status = mmap.mmap(file.fileno(), 8 * len(_STATUS), access=mmap.ACCESS_READ)
            self._owner = os.getpid()  # a fork of it cannot ask for the program's end
            self._hz = _clock_hz(folder / "settings.h")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop. Raises :class:`SimulatorFailed` if the simulation had ended by itself."""
        ended = self._program.poll() is not None
        self._stack.close()
        if ended:
            raise self._failed("simulate the board") from error

    def seconds(self) -> float:
        """Return the simulated time since the board was switched on.

        Raises :class:`SimulatorFailed` when the simulation has ended by itself: else whoever waits would wait for ever.
        """
        if os.getpid() == self._owner and self._program.poll() is not None:
            raise self._failed("simulate the board")
        return float(self.counters()["cycles"] / self._hz)

    def counters(self) -> dict[str, int]:
        """Return what has happened so far: ``cycles`` of the design's clock, those slept through included; bytes or
        datagrams sent ``to_board`` and ``to_host``, and of these ``lost``, ``added``, ``flipped``, ``delayed`` and
        ``duplicated``; bytes of the board's with a wrong stop bit, or wrong frames (``framing``); ``resets``."""
        return dict(zip(_STATUS, struct.unpack(f"={len(_STATUS)}Q", self._status[:]), strict=True))

    def reset(self) -> None:
        """Configure the board anew, as a power cycle does; what is on the line goes on."""
        self._program.send_signal(signal.SIGUSR1)

    def _failed(self, step: str) -> SimulatorFailed:
        status = self._program.wait()
        return SimulatorFailed(step, self._log, tail_of(f"{self._log.read_text()}\nexit status {status}"))
