"""Run vectors through an emitted design with Verilator and our C++ bulk harness."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from . import programs
from .manifest import Design, load_design
from .result import RunResult
from .run_options import check_probability, wave_format
from .side_by_side import merged, shares
from .sim_errors import SimulatorFailed, tail_of
from .taps import Tap, files
from .vectors import Vectors, pack
from .verilator_build import build
from .verilator_harness import harness_recipe


@dataclass(frozen=True)
class Load:
    """A packet to the loader, and the answer that must come. It is offered when ``after`` frames have been taken, and
    the frames behind them when its first byte has been."""

    after: int
    data: bytes
    answer: bytes


def run_verilator(
    out: Path | str | Design,
    vectors: Vectors,
    *,
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    build_folder: Path | None = None,
    stall: float = 0.0,
    gap: float | None = None,
    seed: int = 0,
    wave: Path | None = None,
    watchdog: int | None = None,
    optimize: str | None = None,
    jobs: int | None = None,
    on_frames: Callable[[int], None] | None = None,
    taps: Sequence[Tap] = (),
    records: Path | None = None,
    threads: int = 1,
    loads: Sequence[Load] = (),
) -> RunResult:
    """Simulate all frames of ``vectors`` and return the verdict.

    ``out``: the emitted directory; ``command``, ``environment``: how Verilator is called; ``build_folder``: where the
    compiled program is kept (default ``OUT/testbench/build/verilator``); ``stall``: probability that the sink is not
    ready in a cycle, and (unless ``gap`` is given) that the source pauses before a beat in a cycle; ``seed`` of both
    and of the registers' initial values; ``wave``: write a waveform (.vcd or .fst; another program is built for it);
    ``watchdog``: cycles without a handshake after which the design counts as hung; ``on_frames``: called now and then
    with the number of frames that are done; ``taps``: streams inside (of a design by :func:`.taps.load_taps`) whose
    beats are written to the folder ``records``, see :func:`.taps.files`; ``threads``: so many programs simulate side by
    side, each an equal share of the frames from a reset of its own (see :mod:`.side_by_side`; one where a waveform or
    ``taps`` are recorded, or with ``loads``: packets to the loader of the design's tables, in order).

    Raises ManifestError, VectorError, :class:`SimulatorFailed`. A wrong design raises nothing: see the result.
    """
    design = out if isinstance(out, Design) else load_design(out)
    vectors.check(design)
    check_probability("stall", stall)
    check_probability("gap", stall if gap is None else gap)
    folder = build_folder or design.directory / "testbench" / "build" / "verilator"
    built = build(
        harness_recipe(design, taps),
        command=command,
        environment=environment or {},
        folder=folder,
        wave=wave_format(wave),
        optimize=optimize,
        jobs=jobs,
    )
    begin = time.monotonic()
    probabilities = stall, stall if gap is None else gap
    idle = watchdog or design.watchdog(max(probabilities))
    say = on_frames or (lambda frames: None)
    found = {**os.environ, **(environment or {})}
    parts = shares(vectors.frames, 1 if wave is not None or taps or loads else threads)
    done = [0] * len(parts)

    def one(part: int) -> RunResult:
        def count(frames: int) -> None:
            done[part] = frames
            say(sum(done))

        log = folder / ("run.log" if len(parts) == 1 else f"run{part}.log")
        some = vectors.between(parts[part].start, parts[part].stop)
        return _simulated(
            built.program, design, some, probabilities, seed + part, idle, found, log, wave, taps, records, count, loads
        )

    if len(parts) == 1:
        result = one(0)
    else:
        with ThreadPoolExecutor(len(parts)) as pool:
            result = merged(list(pool.map(one, range(len(parts)))))
    return replace(result, build_seconds=built.seconds, run_seconds=time.monotonic() - begin)


def _simulated(
    program: Path, design: Design, vectors: Vectors, probabilities: tuple[float, float], seed: int, watchdog: int,
    environment: Mapping[str, str], log: Path, wave: Path | None, taps: Sequence[Tap], records: Path | None,
    on_frames: Callable[[int], None], loads: Sequence[Load] = (),
) -> RunResult:
    """Run the ``program`` once, with these ``probabilities`` of stalls and gaps."""
    stall, gap = probabilities
    with tempfile.TemporaryDirectory(prefix="hwflow-sim-") as scratch:
        result = Path(scratch) / "result.json"
        config = Path(scratch) / "config.txt"
        lines = [
            f"frames {vectors.frames}",
            f"stall {stall!r}",
            f"gap {gap!r}",
            f"watchdog {watchdog}",
            f"before {design.before}",
            f"result {result}",
        ]
        if wave is not None:
            wave.absolute().parent.mkdir(parents=True, exist_ok=True)
            lines.append(f"wave {wave.absolute()}")
        for s in design.streams:
            words = Path(scratch) / f"{s.port}.bin"
            pack(s, vectors[s.port]).tofile(words)
            lines.append(f"stream {s.port} {s.beats} {s.channels} {s.lanes} {s.element_bytes} {int(s.signed)} {words}")
        if records is not None:
            for tap, file in files(tuple(taps), records):
                lines.append(f"tap {tap.port} {tap.beats * vectors.frames} {file.absolute()}")
        for number, load in enumerate(loads):
            data = Path(scratch) / f"load{number}"
            data.write_bytes(load.data)
            Path(f"{data}.answer").write_bytes(load.answer)
            lines.append(f"load {load.after} {data}")
        config.write_text("\n".join(lines) + "\n")
        status, text = _run([str(program), str(config), str(seed)], design.directory, environment, on_frames)
        log.write_text(text)
        if status != 0 or not result.is_file():
            raise SimulatorFailed("run the Verilator harness", log, tail_of(f"{text}\nexit status {status}"))
        return RunResult.load(result, design, simulator="verilator", seed=seed, stall=stall)


def _run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], on_frames: Callable[[int], None]
) -> tuple[int, str]:
    """Return exit status and output; pass lines "frames N" to ``on_frames``."""
    text = []
    with programs.started(
        command, environment, cwd=folder, text=True, errors="replace", stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as program:
        assert program.stdout is not None, "it is a pipe"
        for line in program.stdout:
            word, _, count = line.partition(" ")
            if word == "frames" and count.strip().isdigit():
                on_frames(int(count))
            else:
                text.append(line)
        return program.wait(), "".join(text)
