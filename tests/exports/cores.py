"""Small designs to export, and simulators for what is exported."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import hwflow
from hwflow.toolchain.icarus import ICARUS
from hwflow.toolchain.verilator import VERILATOR
from tests.flow.networks import dense_network

FPS = {"narrow": 10_000_000, "wide": 30_000_000}
"""A pixel of 7 elements comes in 2 beats of 4 and leaves as 5 beats of 1; it comes in one beat and leaves in 3 of 2."""


def made(folder: Path, name: str, *, inline_weights: bool = False) -> Path:
    """An output folder, up to the Verilog, of one of :data:`FPS`."""
    model = dense_network(folder / f"{name}.onnx", (7, 5, 5))
    design = hwflow.compile(model, "ulx3s_85f", fps=FPS[name], name=name, inline_weights=inline_weights)
    design.write(folder / name)
    return folder / name


def run_icarus(
    folder: Path, top: str, sources: Sequence[str | Path], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Compile, without a warning, and run in ``folder``."""
    icarus = ICARUS.find()
    compiled = subprocess.run(
        [*icarus.command, "-g2005", "-Wall", "-Wno-timescale", "-s", top, "-o", f"{top}.vvp", *sources],
        cwd=folder, capture_output=True, text=True, check=False,
    )
    assert compiled.returncode == 0 and compiled.stderr == "", compiled.stderr
    vvp = Path(icarus.command[0]).with_name("vvp")
    return subprocess.run(
        [vvp, "-n", f"{top}.vvp", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def verilator_on_path(folder: Path) -> Path:
    """A folder with a program `verilator`, as other tools call it."""
    found = VERILATOR.find()
    program = folder / "verilator"
    settings = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in found.environment.items())
    program.write_text(f'#!/bin/sh\n{settings}exec {shlex.join(found.command)} "$@"\n')
    program.chmod(0o755)
    return folder
