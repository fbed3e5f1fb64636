"""A core file of FuseSoC (CAPI2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hwflow.exports.exported_core import RST, ExportedCore
from hwflow.exports.hardware.bench import bench_file, vector_file
from hwflow.exports.targets import Target

_CORE = """\
CAPI=2:

name: hwflow:cores:{name}:1.0.0
description: A quantized neural network, AXI4-Stream in and out

filesets:
  rtl:
    files:
{rtl}
  bench:
    files:
{bench}

targets:
  default: &default
    filesets: [rtl]
    toplevel: {name}

  lint:
    <<: *default
    default_tool: verilator
    tools:
      verilator:
        mode: lint-only
        verilator_options: [-Wno-fatal]

  sim:
    <<: *default
    description: Golden frames through the core; --tool icarus or verilator
    filesets: [rtl, bench]
    default_tool: verilator
    toplevel: {name}_tb
    tools:
      icarus:
        iverilog_options: [-g2005]
      verilator:
        mode: binary
        verilator_options: [--timing, -Wno-fatal, -CFLAGS, -std=gnu++20]
"""


def _write(core: ExportedCore, folder: Path) -> Sequence[str]:
    vectors = [vector_file(core, stream) for stream in core.streams]
    (folder / f"{core.name}.core").write_text(
        _CORE.format(
            name=core.name, rtl="\n".join([*map(_verilog, core.rtl), *map(_copied, core.tables)]),
            bench="\n".join([_verilog(bench_file(core)), *map(_copied, vectors)]),
        )
    )
    vlnv = f"hwflow:cores:{core.name}"
    return (
        f"Add this folder to FuseSoC's libraries, and `{vlnv}` to what a core depends on. Its weights are copied to",
        "`weights/` of the work folder, where tools run. A test with golden frames:",
        "",
        "```",
        f"fusesoc --cores-root . run --target sim {vlnv}",
        f"fusesoc --cores-root . run --target sim --tool icarus {vlnv}",
        "```",
    )


def _verilog(file: str) -> str:
    return f"      - {file}: {{file_type: verilogSource-2005}}"


def _copied(file: str) -> str:
    return f"      - {file}: {{file_type: user, copyto: {file}}}"


TARGET = Target("A core of FuseSoC.", RST, _write, bench=True)
