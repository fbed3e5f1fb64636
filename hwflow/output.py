"""The output folder of ``synth``: written beside, then renamed, so that it is whole or not there."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hwflow.codegen import verilog
from hwflow.codegen.board_files import check_streams, write_board
from hwflow.codegen.conversion import Conversion
from hwflow.codegen.cores import apart
from hwflow.codegen.host_models import HostModel, host_table
from hwflow.codegen.manifest import manifest
from hwflow.codegen.report import add_synthesis, report
from hwflow.codegen.top import Top, memory_text
from hwflow.errors import Finding, UsageError
from hwflow.host import port_inputs, prefix_model, suffix_model
from hwflow.inputs import choose_inputs
from hwflow.onnxspec import write_model
from hwflow.request import check_until
from hwflow.sim.testbench import write_overlay_host, write_testbench
from hwflow.toolchain import build as toolchain_build
from hwflow.toolchain import tool, vendor
from hwflow.toolchain.build import BuildResult
from hwflow.toolchain.yosys import YOSYS
from hwflow.vectors import golden_vectors

if TYPE_CHECKING:
    from hwflow.compiler import Design

TESTBENCH_FRAMES = 4
CLOCK_MARGIN = 0.92  # of the clock that a first place and route reached, where it missed its target


def write_design(
    design: Design, out: Path, until: str | None, progress: Callable[[str], None], executor: Executor | None = None
) -> dict[str, Any]:
    """Write ``out`` up to ``until`` and return report.json's contents. None: up to the bitstream, or, for a board that
    needs a vendor's tool which is not here, up to that tool's project. ``executor``: where cores are converted, besides
    here.

    ``out`` appears only when everything up to the Verilog is in it; an older output there is replaced then. Synthesis,
    place and route work inside it: when one fails, the Verilog, the board project and the logs stay.
    """
    check_until(until, design.board)
    if design.beyond and until != "verilog":
        raise UsageError(design.beyond)
    out = Path(os.path.abspath(out))
    graph = design.schedule.graph
    single = len(graph.inputs) == len(graph.outputs) == 1
    if until != "verilog":
        check_streams(design.board, design.model.resolved.name, graph.inputs, graph.outputs)
    if until is None:
        until = "bitstream" if vendor.is_here(design.board.toolchain) else "verilog"
    with replaced_folder(out) as folder:
        progress("writing Verilog")
        table = _write_verilog(design, folder, single or design.board.zynq is None, progress, executor)
    if until != "verilog":
        result = _build(design, out, "netlist" if until == "netlist" else "bitstream", progress)
        add_synthesis(
            table, fmax_mhz=result.fmax_mhz, clock_mhz=result.design_clock_mhz,
            resources=result.design_resources, seconds=result.seconds,
        )
        write_json(out / "report.json", table)
    return table


def _build(
    design: Design, out: Path, until: Literal["netlist", "bitstream"], progress: Callable[[str], None]
) -> BuildResult:
    """Build ``out/board``; where the clock that place and route reached is too low, once more with a lower one.

    A bitstream whose clock is faster than its slowest path is not exact. Place and route of the second build differ
    from the first one's (the serial port's divider is another), hence the margin.
    """
    result = toolchain_build.build(out, until, progress)
    if result.timing_met is not False or result.fmax_mhz is None or design.board.tools.vendor:
        return result  # a vendor's tool takes long: what it missed is reported
    lower = CLOCK_MARGIN * min(result.fmax_mhz, result.design_clock_mhz)
    progress(f"{result.fmax_mhz:.1f} MHz is below {result.design_clock_mhz:g} MHz: once more for {lower:.1f} MHz")
    try:
        write_board(out, design.board, lower)
    except UsageError:  # no PLL setting or baud rate down there: the caller reports the clock that was missed
        return result
    toolchain_build.write_top_verilog(out)
    again = toolchain_build.build(out, until, progress)
    seconds = {step: again.seconds.get(step, 0.0) + spent for step, spent in result.seconds.items()}
    return replace(again, seconds=seconds)


def _write_verilog(
    design: Design, folder: Path, with_board: bool, progress: Callable[[str], None], executor: Executor | None
) -> dict[str, Any]:
    """All files up to the Verilog; returns report.json's contents."""
    begin = time.perf_counter()
    name = design.model.resolved.name
    with ThreadPoolExecutor(1) as thread:
        finding = thread.submit(YOSYS.find)
        top = Top(design.schedule.graph, apart(design.conversion or Conversion(executor)))
        yosys = finding.result()

    def run_yosys(script: str, cwd: Path, output: str) -> None:
        log = cwd / f"{output}.log"
        tool.run(
            yosys,
            ["-q", "-s", script],
            cwd,
            log,
            step="writing Verilog (yosys)",
            remedy="report this model as a defect",
            outputs=[output],
        )
        log.unlink()

    board = design.board
    with verilog.emitted(top, name, folder, run_yosys):
        (folder / "weights").mkdir()
        for file in top.files:
            (folder / "weights" / f"{file.name}.mem").write_text(memory_text(file))
        table = manifest(top, design.schedule, name, board.name, _write_host_models(design, top, folder))
        table["dimensions"] = dict(design.model.dimensions)
        write_json(folder / "manifest.json", table, indent=None)
        design.model.write(folder / "model.onnx")
        beside = None if design.model.path is None else design.model.path.parent / "inputs.npz"
        if beside is not None and beside.is_file():
            shutil.copyfile(beside, folder / "inputs.npz")
        if with_board:
            progress("writing the board's top")
            write_board(folder, board, design.clock.frequency_hz / 1_000_000)
            toolchain_build.write_top_verilog(folder, yosys)
            toolchain_build.write_vendor_project(folder)
            if board.zynq:
                write_overlay_host(folder)
    chosen = choose_inputs(design.model, folder / "model.onnx", None, TESTBENCH_FRAMES, np.random.default_rng(0))
    write_testbench(
        folder, golden_vectors(design.model, folder, port_inputs(design.model, chosen.arrays)), TESTBENCH_FRAMES
    )
    design.seconds.steps["verilog"] = time.perf_counter() - begin
    available = {key: getattr(board.part, key) for key in ("lut", "ff", "dsp", "bram")}
    result = report(
        design.model.resolved, design.schedule, board=board.name, device=board.part.device, toolchain=board.toolchain,
        target_mhz=design.clock_mhz, available=available, seconds=design.seconds, family=board.part.family,
        files=top.files,
    )
    write_json(folder / "report.json", result)
    return result


def _write_host_models(design: Design, top: Top, folder: Path) -> dict[str, Any]:
    """Write prefix.onnx and suffix.onnx, as far as there is something in them; returns the manifest's `host`."""
    model = design.model
    parts: list[HostModel | None] = []
    for file, part in (("prefix.onnx", prefix_model(model)), ("suffix.onnx", suffix_model(model))):
        if part is not None:
            write_model(part.proto, folder / file)
        parts.append(None if part is None else HostModel(file, part.inputs, part.outputs))
    return host_table(model.quantized, model.resolved, (*top.inputs, *top.outputs), *parts)


def write_json(path: Path, table: dict[str, Any], indent: int | None = 1) -> None:
    """Write beside, then rename."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps(table, indent=indent) + "\n")
    beside.replace(path)


@contextmanager
def replaced_folder(out: Path) -> Iterator[Path]:
    """A new folder that takes the place of ``out`` when the body ends well, and vanishes otherwise.

    Raises :class:`UsageError` when ``out`` cannot be written, or is something hwflow did not make.
    """
    check_writable(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise _unwritable(out, f"the system says: {error.strerror or error}") from None
    try:
        folder.chmod(0o777 & ~_umask())
        yield folder
        if out.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
            out.rename(old / "old")
            folder.rename(out)
            shutil.rmtree(old)
        else:
            folder.rename(out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_writable(out: Path) -> None:
    """Raise :class:`UsageError` unless ``out`` can be made or replaced; leaves nothing behind."""
    try:
        _check_writable(out)
    except OSError as error:
        raise _unwritable(out, f"the system says: {error.strerror or error}") from None


def _check_writable(out: Path) -> None:
    if out.exists():
        if not out.is_dir():
            raise _unwritable(out, "it is a file")
        if any(out.iterdir()) and not (out / "manifest.json").is_file():
            raise UsageError(
                Finding(
                    "output-folder",
                    f"output '{out}'",
                    "must be a new, an empty or an earlier output folder, not one with other files",
                    "choose another folder with -o",
                )
            )
    above = out.parent
    while not above.exists():
        above = above.parent
    if not above.is_dir():
        raise _unwritable(out, f"'{above}' is a file")
    # what tells for sure, also root on a read-only or special file system
    os.rmdir(tempfile.mkdtemp(prefix=f".{out.name}.", dir=above))


def _unwritable(out: Path, reason: str) -> UsageError:
    return UsageError(
        Finding(
            "output-folder",
            f"output '{out}'",
            f"must be a folder that can be written, but {reason}",
            "choose another folder with -o",
        )
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
