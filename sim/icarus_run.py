"""Run vectors through an emitted design with cocotb on Icarus Verilog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .cocotb_run import run_cocotb
from .manifest import Design
from .result import RunResult
from .vectors import Vectors


def run_icarus(out: Path | str | Design, vectors: Vectors, **options: Any) -> RunResult:
    """Call :func:`run_cocotb` with ``simulator="icarus"``."""
    return run_cocotb(out, vectors, simulator="icarus", **options)
