"""Write the output folder of ``synth``."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hwflow.api import made_from
from hwflow.api.building import Buildable, Rewrite, build_design
from hwflow.api.model_digests import model_digests
from hwflow.api.output_folder import Output
from hwflow.api.scheduled import ScheduledModel
from hwflow.codegen import verilog
from hwflow.codegen.board.board_files import write_board
from hwflow.codegen.converted.conversion import Conversion
from hwflow.codegen.cores import separate
from hwflow.codegen.host_models import HostModel, host_table
from hwflow.codegen.manifest_file import manifest
from hwflow.codegen.memory_image import FLASH_IMAGE, IMAGE, image_bytes, image_text, memory_of
from hwflow.codegen.report import add_synthesis, report, with_limit
from hwflow.codegen.top import Top, memory_text
from hwflow.display import show
from hwflow.errors import UsageError
from hwflow.frontend.states.ties import in_manifest
from hwflow.host.boundary_models import port_inputs, prefix_model, suffix_model, takes_any_float
from hwflow.host.host_folder import write_host_folder
from hwflow.host.inputs import INPUTS, choose_inputs
from hwflow.host.model_maps import map_tables
from hwflow.host.results import numpy_types
from hwflow.onnxspec import write_model
from hwflow.passes.pipeline import UNROLLED
from hwflow.report.dataflow import dataflow
from hwflow.report.folder_page import DATAFLOW, written
from hwflow.report.quantization_note import noted
from hwflow.sim import digests
from hwflow.sim.external_memory import write_memory
from hwflow.sim.simulated_board import write_simulation
from hwflow.sim.testbench import VECTORS, write_overlay_host, write_testbench
from hwflow.toolchain import build as toolchain_build
from hwflow.toolchain import tool, vendor
from hwflow.toolchain.json_file import write_json
from hwflow.toolchain.routing import Heard
from hwflow.toolchain.up_to_date import carry_over
from hwflow.toolchain.yosys import YOSYS
from hwflow.verify.golden_vectors import golden_vectors
from hwflow.versions import board_versions

TESTBENCH_FRAMES = 4
_MODELS = ("model.onnx", "prefix.onnx", "suffix.onnx")  # what a simulation reads beside the hardware's files


def write_design(
    design: ScheduledModel, output: Output, until: str | None, progress: Callable[[str], None],
    executor: Executor | None = None, asked: Mapping[str, Any] | None = None, *, reuse: bool = False,
    heard: Heard | None = None, seeds: Sequence[int] = (), settle: bool = True,
) -> dict[str, Any]:
    """Write ``output`` up to ``until`` and return report.json's contents. None: up to the bitstream, or, for a board
    whose vendor's tool is not installed, up to that tool's project. ``executor``: converts cores, too. ``asked``: the
    options of the command, which :mod:`hwflow.api.made_from` records; ``reuse``: keep what later steps left in the
    older folder where it is up to date; ``heard``: called with the progress of place and route; ``seeds`` and
    ``settle``: see :func:`hwflow.api.building.build_design`.

    The folder appears, or replaces an older one, only when everything up to the Verilog is in it. Synthesis and place
    and route work inside it: when one fails, the Verilog, the board project and the logs stay.
    """
    if design.beyond and until != "verilog":
        raise UsageError(design.beyond)
    until = until or ("bitstream" if vendor.is_here(design.board.toolchain) else "verilog")
    table: dict[str, Any] = {}
    write = writer(output, table, progress, executor, asked, reuse=reuse and until != "verilog")
    write(design, None)
    if until != "verilog":
        build_further(
            design, output.path, until, table, progress, write, executor, heard, seeds=seeds, settle=settle
        )
    return table


def writer(
    output: Output, table: dict[str, Any], progress: Callable[[str], None], executor: Executor | None,
    asked: Mapping[str, Any] | None, *, reuse: bool = False,
) -> Callable[[ScheduledModel, Mapping[str, Any] | None], None]:
    """Return what replaces ``output`` by a design's folder up to the Verilog, and ``table`` by the contents of
    report.json; the second argument is its ``larger_design``, kept whatever becomes of later steps. ``executor``,
    ``asked`` and ``reuse`` as for :func:`write_design`."""

    def write(design: ScheduledModel, larger: Mapping[str, Any] | None) -> None:
        with output.replaced() as folder:
            table.update(write_folder(design, folder, larger, progress, executor, asked))
            if reuse:
                carry_over(output.path, folder)

    return write


def write_folder(
    design: ScheduledModel, folder: Path, larger: Mapping[str, Any] | None, progress: Callable[[str], None],
    executor: Executor | None, asked: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Write everything up to the Verilog to a new ``folder``; return report.json's contents. The arguments are those of
    :func:`writer` and of what it returns."""
    progress("writing Verilog")
    table = _write_verilog(design, folder, larger, progress, executor)
    if asked is not None and design.model.file is not None:
        of_model = {key: table["model"][key] for key in ("sha256", "external_sha256")}
        request = made_from.request_of(design.model.file, of_model, asked, design.board)
        made_from.begin(folder, request, made_from.said(design))
    written(folder)
    return table


def build_further(
    design: Buildable, out: Path, until: str, table: dict[str, Any], progress: Callable[[str], None],
    write: Rewrite, executor: Executor | None = None, heard: Heard | None = None, *, seeds: Sequence[int] = (),
    settle: bool = True,
) -> None:
    """Build what is in ``out`` up to ``until``, a netlist or a bitstream, and complete report.json's contents
    ``table``. ``write``, ``heard``, ``seeds`` and ``settle``: see :func:`hwflow.api.building.build_design`."""
    last: Literal["netlist", "bitstream"] = "netlist" if until == "netlist" else "bitstream"
    built = build_design(design, out, last, progress, write, executor, heard, seeds, settle)
    result = built.result
    add_synthesis(
        table, fmax_mhz=result.fmax_mhz, clock_mhz=result.design_clock_mhz,
        resources=result.design_resources, cells=result.design_cells, seconds=built.seconds,
    )
    table["reused"] = list(result.reused)
    table["bitstream"] = None if result.bitstream is None else os.path.relpath(result.bitstream, out)
    digest = None if result.bitstream is None else digests.digest(out / table["bitstream"])
    if digest is not None:
        manifest_table = json.loads((out / "manifest.json").read_text())
        bitstream = {"file": table["bitstream"], digests.KEY: digest}
        write_json(out / "manifest.json", manifest_table | {"bitstream": bitstream}, indent=None)
    link = json.loads((out / "board" / "board.json").read_text())["link"]  # of the clock that it got
    table["link"] = with_limit(link, table["timing"]["frames_per_second"])
    if result.link_resources:
        table["link"]["resources"] = dict(result.link_resources)
    table["link"]["clocks"] = [
        {"name": c.name, "target_mhz": c.constraint_mhz, "fmax_mhz": c.achieved_mhz} for c in result.link_clocks
    ]
    write_json(out / "report.json", table)
    made_from.reached(out, until)
    written(out)


def _write_verilog(
    design: ScheduledModel, folder: Path, larger: Mapping[str, Any] | None, progress: Callable[[str], None],
    executor: Executor | None,
) -> dict[str, Any]:
    """Write all files up to the Verilog; return report.json's contents."""
    begin = time.perf_counter()
    rng = np.random.default_rng(0)
    chosen = choose_inputs(design.model, design.model.path, None, None, rng, labelled=False)  # before all the work
    frames = {name: array[:TESTBENCH_FRAMES] for name, array in chosen.arrays.items()}
    name = design.model.resolved.name
    with ThreadPoolExecutor(1) as thread:
        finding = thread.submit(YOSYS.find)
        top = Top(design.schedule.plan, separate(design.conversion or Conversion(executor)))
        yosys = finding.result()

    def run_yosys(script: str, cwd: Path, output: str) -> None:
        log = cwd / f"{output}.log"
        tool.run(
            yosys,
            ["-q", "-s", script],
            cwd,
            log,
            step="writing Verilog (yosys)",
            remedy="report this model as a defect of hwflow",
            outputs=[output],
        )
        log.unlink()

    board = design.board
    design.model.write(folder / "model.onnx")
    of_model = model_digests(design.model.file or folder / "model.onnx")
    made_with = board_versions(board)
    about = (
        f"Model: SHA-256 {of_model['sha256']}",
        *(f"External data {show(name)}: SHA-256 {digest}" for name, digest in of_model["external_sha256"].items()),
        "With " + ", ".join(f"{name} {version}" for name, version in made_with.items() if version),
    )
    packaging = design.request.packaging
    tables = {file.name: memory_text(file) for file in top.files}
    with verilog.emitted(top, name, folder, run_yosys, tables, about, packaging):
        (folder / "weights").mkdir()
        for table_name, text in ({} if packaging.inline_weights else tables).items():
            (folder / packaging.weights(table_name)).write_text(text)
        if (memory := memory_of(top.graph)) is not None:
            (folder / packaging.weights(IMAGE)).write_text(image_text(memory))
        hosted = _write_host_models(design, top, folder)
        table = manifest(top, design.schedule, name, board.name, hosted, packaging)
        table |= {"dimensions": dict(design.model.dimensions), "model_file": of_model, "versions": made_with}
        table["input_types"] = {name: str(type_) for name, type_ in design.model.input_types.items()}
        if design.request.holding is not None:
            table["held"] = {name: layer.table() for name, layer in design.request.holding.found.items()}
        if design.loops != UNROLLED:
            table["loops"] = design.loops
        if design.model.interleave > 1:
            table["interleave"] = design.model.interleave
        if design.model.resolved.ties:
            table |= in_manifest(design.model.resolved, folder)
        write_json(folder / "manifest.json", table, indent=None)
        path = design.model.path
        for beside in [] if path is None else [path.parent / name for name in INPUTS]:
            if beside.is_file():
                shutil.copyfile(beside, folder / beside.name)
        progress("writing the board's top")
        clock_mhz = design.clock.frequency_hz / 1_000_000
        asked = design.request
        link = write_board(folder, board, clock_mhz, asked.link)["link"]
        if memory is not None and "flash" in table["memory"]:
            (folder / FLASH_IMAGE).write_bytes(image_bytes(memory))
        toolchain_build.write_top_verilog(folder, yosys)
        toolchain_build.write_vendor_project(folder)
        if board.zynq:
            write_overlay_host(folder)
        else:
            write_simulation(folder)
    if memory is not None:
        table |= write_memory(folder, table)
        write_json(folder / "manifest.json", table, indent=None)
    write_host_folder(folder, numpy_types(design.model, frames))
    integers = port_inputs(design.model, frames)
    write_testbench(folder, golden_vectors(design.model, folder, integers), TESTBENCH_FRAMES)
    simulated = () if memory is None else (packaging.weights(IMAGE), *table["simulation"]["sources"])
    read = (*table["sources"], *simulated, *table["weights"], table["layers"]["source"], VECTORS, FLASH_IMAGE, *_MODELS)
    write_json(folder / "manifest.json", table | {digests.KEY: digests.digests(folder, read)}, indent=None)
    design.seconds.steps["verilog"] = time.perf_counter() - begin
    available = {key: getattr(board.part, key) for key in ("lut", "ff", "dsp", "bram")}
    result = report(
        design.model.resolved, design.schedule, board=board.name, device=board.part.device, toolchain=board.toolchain,
        target_mhz=design.clock_mhz, available=available, seconds=design.seconds, family=board.part.family,
        files=top.files, host_work=design.model.host_work.table(),
        names=top.names, interleave=design.model.interleave,
    )
    result["model"] |= of_model
    link = with_limit(link, result["timing"]["frames_per_second"])
    result |= {"bitstream": None, "link": link, "versions": made_with, "reused": [], "larger_design": larger}
    write_json(folder / "report.json", result)
    noise = noted({entry.key: entry.value for entry in design.model.proto.metadata_props})
    flow = dataflow(design.schedule, board.part, design.model.warnings, noise)
    write_json(folder / DATAFLOW, flow, indent=None)
    return result


def _write_host_models(design: ScheduledModel, top: Top, folder: Path) -> dict[str, Any]:
    """Write prefix.onnx and suffix.onnx, unless empty; return the manifest's `host`."""
    model = design.model
    parts: list[HostModel | None] = []
    _, prefix, suffix = _MODELS
    for file, part in ((prefix, prefix_model(model)), (suffix, suffix_model(model))):
        if part is not None:
            write_model(part.proto, folder / file)
        parts.append(None if part is None else HostModel(file, part.inputs, part.outputs))
    return host_table(
        model.quantized, model.resolved, (*top.inputs, *top.outputs), *parts, maps=map_tables(model),
        any_float=frozenset(name for name in model.resolved.inputs if takes_any_float(model, name)),
    )
