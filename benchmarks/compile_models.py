"""What models become on a board: a Markdown table of intervals, latencies, multipliers and predicted resources.

    python benchmarks/compile_models.py MODEL.onnx ... [--board ulx3s_85f] [--fps N]

Intervals and latencies are exact, resources predicted; seconds are those from the ONNX file to the schedule.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from hwflow.compiler import compile as compile_model
from hwflow.errors import HwflowError
from hwflow.ops.registry import OPERATORS

COLUMNS = ("model", "MACs", "interval", "latency", "multipliers", "busy %", "LUT", "FF", "DSP", "BRAM", "seconds")


def row(path: Path, board: str, fps: float | None) -> tuple[str, ...]:
    """The cells of one model; a model that is refused has a dash in all but the first."""
    begin = time.perf_counter()
    try:
        design = compile_model(path, board, fps=fps)
    except HwflowError as error:
        print(f"{path}: {len(error.findings)} findings, the first: {error.findings[0]}", file=sys.stderr)
        return (path.stem, *("-" for _ in COLUMNS[1:]))
    seconds = time.perf_counter() - begin
    schedule = design.schedule
    nodes = schedule.graph.nodes
    macs = sum(OPERATORS[n.op].macs(n) for n in nodes)
    multipliers = sum(n.attributes["folding"].multipliers for n in nodes)
    busy = 100 * macs / (schedule.initiation_interval * multipliers) if multipliers else 0.0
    need = schedule.resources
    numbers = (macs, schedule.initiation_interval, schedule.latency, multipliers)
    resources = (need.lut, need.ff, need.dsp, need.bram)
    return (path.stem, *map(str, numbers), f"{busy:.1f}", *map(str, resources), f"{seconds:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="What models become on a board.")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--board", default="ulx3s_85f")
    parser.add_argument("--fps", type=float)
    arguments = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for path in arguments.models:
        print("| " + " | ".join(row(path, arguments.board, arguments.fps)) + " |", flush=True)


if __name__ == "__main__":
    main()
