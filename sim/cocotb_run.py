"""Run vectors through an emitted design with cocotb on Icarus or Verilator."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import programs
from .manifest import Design, load_design
from .result import RunResult
from .run_options import check_probability, wave_format
from .sim_errors import SimulatorFailed, tail_of
from .vectors import Vectors

CLOCK_NS = 10
_WAIVERS = Path(__file__).resolve().parent / "verilator" / "waivers.vlt"
# What a developer's shell (or pytest) may have set and cocotb's runner would obey.
_FOREIGN = (
    "WAVES",
    "GUI",
    "PYTEST_CURRENT_TEST",
    "TOPLEVEL",
    "MODULE",
    "SIM_CMD_PREFIX",
    "SIM_CMD_SUFFIX",
    "GPI_USERS",
)


@dataclass(frozen=True)
class CocotbJob:
    """One program to simulate with one cocotb test module of this package.

    ``sources`` (.v) with top module ``top``; ``module``: name of the test module in this package, or a dotted name of
    one anywhere on Python's path; ``settings`` reach it as JSON in the file named by ``HWFLOW_BENCH``; the simulator
    runs in ``run_folder``, what is built and printed stays under ``build_folder``. ``command``: how the simulator is
    called (for Icarus: the path of iverilog, vvp beside it).
    """

    simulator: str  # "icarus" or "verilator"
    command: Sequence[str]
    sources: Sequence[Path]
    top: str
    module: str
    run_folder: Path
    build_folder: Path
    settings: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    wave: Path | None = None


def run_job(job: CocotbJob, result: Path) -> tuple[float, float]:
    """Build and run; ``result`` is the file the test module must leave. Returns the seconds of build and run.

    Raises :class:`SimulatorFailed` if the simulator does not build the design, crashes, or ``result`` is missing.
    """
    if job.simulator not in ("icarus", "verilator"):
        raise ValueError(f"simulator must be icarus or verilator, not {job.simulator!r}")
    suffix = wave_format(job.wave)
    if suffix == "fst" and job.simulator == "verilator":
        raise ValueError("a waveform file of cocotb on verilator must end in .vcd")
    hashed = hashlib.sha256(repr((job.simulator, list(job.command), job.top, suffix)).encode())
    for source in job.sources:
        hashed.update(str(source).encode() + b"\0" + source.read_bytes())
    folder = job.build_folder.resolve() / hashed.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    build_log, run_log = folder / "build.log", folder / "run.log"
    for stale in (result, run_log):
        stale.unlink(missing_ok=True)
    settings = folder / "bench.json"
    settings.write_text(json.dumps(dict(job.settings)))
    environment = {k: v for k, v in os.environ.items() if k not in _FOREIGN and not k.startswith("COCOTB_")}
    environment |= job.environment
    depth = __name__.count(".")  # where the folder that holds this package's outermost package is
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).resolve().parents[depth]), *filter(None, sys.path)])
    plan: dict[str, object] = {
        "simulator": job.simulator,
        "sources": [str(s) for s in job.sources],
        "top": job.top,
        "module": job.module if "." in job.module else f"{__package__}.{job.module}",
        "build_folder": str(folder),
        "run_folder": str(job.run_folder.resolve()),
        "build_log": str(build_log),
        "run_log": str(run_log),
        "results": str(folder / "results.xml"),
        "environment": {
            "HWFLOW_BENCH": str(settings),
            "COCOTB_RANDOM_SEED": str(job.seed),
            "COCOTB_ANSI_OUTPUT": "0",
            "COCOTB_REWRITE_ASSERTION_FILES": "",  # else pytest rewrites every module that is imported, numpy too
            "NO_COLOR": "1",
        },
        "build_arguments": [],
        "run_arguments": [],
        "plusargs": [],
        "waves": job.wave is not None,
    }
    with tempfile.TemporaryDirectory(prefix="hwflow-sim-") as scratch:
        if job.simulator == "icarus":
            environment["PATH"] = os.pathsep.join([str(Path(job.command[0]).parent), environment.get("PATH", "")])
            if job.wave is not None:
                plan["plusargs"] = [f"+dumpfile_path={job.wave.absolute()}"]
                environment["SIM_CMD_SUFFIX"] = f"-{suffix}"
        else:
            _prepare_verilator(job, plan, environment, Path(scratch))
        file = folder / "job.json"
        file.write_text(json.dumps(plan))
        if job.wave is not None:
            job.wave.absolute().parent.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        launch = [sys.executable, "-m", f"{__package__}.cocotb_launch", str(file)]
        status, printed = programs.run(launch, environment=environment)
        end = time.monotonic()
    if not result.is_file():
        ran = run_log.is_file()
        log = run_log if ran else build_log
        text = log.read_text(errors="replace") if log.is_file() else ""
        what = f"{'run' if ran else 'build'} the design with cocotb on {job.simulator}"
        raise SimulatorFailed(what, log, tail_of(text.strip() or printed))
    built = json.loads(printed.strip().splitlines()[-1])["build_seconds"] if status == 0 else 0.0
    return built, end - begin - built


def _prepare_verilator(job: CocotbJob, plan: dict[str, object], environment: dict[str, str], scratch: Path) -> None:
    """Give cocotb's runner, which calls `verilator` and `make`, our `verilator`, and a Python for the makefile."""
    shim = scratch / "verilator"
    shim.write_text(f'#!/bin/sh\nexec {shlex.join(job.command)} "$@"\n')
    shim.chmod(0o755)
    environment["PATH"] = os.pathsep.join([str(scratch), environment.get("PATH", "")])
    switches = {"PYTHON3": sys.executable, "OPT_FAST": "-O1", "OPT_GLOBAL": "-O0", "OPT_SLOW": "-O0"}
    environment["MAKEFLAGS"] = " ".join(f"{k}={v}" for k, v in switches.items())
    if perl := shutil.which("perl"):
        environment["MAKEFLAGS"] += f" PERL={perl}"
    plan["sources"] = [str(_WAIVERS), *map(str, job.sources)]
    plan["build_arguments"] = ["-Wno-fatal", "--no-timing"]
    if job.wave is not None:
        plan["run_arguments"] = ["--trace-file", str(job.wave.absolute())]


def run_cocotb(
    out: Path | str | Design,
    vectors: Vectors,
    *,
    simulator: str = "icarus",
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    build_folder: Path | None = None,
    stall: float = 0.0,
    gap: float | None = None,
    seed: int = 0,
    wave: Path | None = None,
    watchdog: int | None = None,
) -> RunResult:
    """Simulate all frames of ``vectors`` with cocotb and return the verdict; arguments as :func:`run_verilator`.

    ``simulator``: "icarus" or "verilator"; ``command``: the path of iverilog, or how Verilator is called;
    ``build_folder``: default ``OUT/testbench/build/cocotb``. Besides what the C++ harness checks, an X or Z on tvalid,
    tready, tlast, the error output or a real lane of tdata is a violation that ends the run (event-driven simulators).
    """
    design = out if isinstance(out, Design) else load_design(out)
    vectors.check(design)
    gap = stall if gap is None else gap
    check_probability("stall", stall)
    check_probability("gap", gap)
    folder = build_folder or design.directory / "testbench" / "build" / "cocotb"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hwflow-sim-") as scratch:
        stored, result = Path(scratch) / "vectors.npz", Path(scratch) / "result.json"
        vectors.save(stored)
        settings = {
            "out": str(design.directory),
            "vectors": str(stored),
            "stall": stall,
            "gap": gap,
            "seed": seed,
            "watchdog": watchdog or design.watchdog(max(stall, gap)),
            "clock_ns": CLOCK_NS,
            "result": str(result),
        }
        job = CocotbJob(
            simulator,
            command,
            design.sources,
            design.top,
            "cocotb_bench",
            design.directory,
            folder,
            settings,
            environment or {},
            seed,
            wave,
        )
        seconds = run_job(job, result)
        return RunResult.load(
            result,
            design,
            simulator=simulator,
            seed=seed,
            stall=stall,
            build_seconds=seconds[0],
            run_seconds=seconds[1],
        )
