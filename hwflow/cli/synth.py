"""The command `synth`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from hwflow.cli import options
from hwflow.cli.terminal import Steps, new_table, print_table


def run_synth(arguments: argparse.Namespace) -> int:
    """Compile a model for a board."""
    from hwflow.compiler import compile
    from hwflow.ops.costs import FAMILIES
    from hwflow.output import check_writable
    from hwflow.processes import second_process
    from hwflow.request import Gathered, check_until, request

    gathered = Gathered()
    fps = clock = budget = None
    with gathered.check():
        fps = options.number("--fps", arguments.fps, "1000")
    with gathered.check():
        clock = options.number("--clock", arguments.clock, "100")
    with gathered.check():
        budget = options.resources(arguments.budget)
    what_if = arguments.until == "verilog"
    board = None
    with gathered.check():
        board = request(arguments.board, fps=fps, clock_mhz=clock, budget=budget, what_if=what_if).board
    with gathered.check():
        check_until(arguments.until, board)
    dimensions: dict[str, int] = {}
    with gathered.check():
        dimensions = options.dimensions(arguments.dim)
    target = Path(f"build/{Path(arguments.model).stem}" if arguments.output is None else arguments.output)
    with gathered.check():
        check_writable(target.absolute())
    gathered.require_none()
    with second_process() as executor, Steps() as progress:
        design = compile(
            arguments.model, arguments.board, fps=fps, clock_mhz=clock, budget=budget, what_if=what_if,
            dimensions=dimensions, trusted=arguments.trust, progress=progress,
            executor=executor,
        )
        table = design.write(target, arguments.until, progress, executor)
    _print_report(table, target, fps)
    family = design.board.part.family
    if not FAMILIES[family].measured:
        basis = FAMILIES[family].basis
        print(f"predicted lut and ff are estimates: the models are those measured on {basis}, not on {family}")
    tools = design.board.tools
    if arguments.until is None and tools.vendor and table["seconds"]["place_route"] is None:
        print(
            f"note: a bitstream for {design.board.name} needs {tools.title}, and {tools.vendor} is not on PATH: "
            f"{target}/board/build.sh makes it where that is installed",
            file=sys.stderr,
        )
    for finding in design.beyond:
        print(f"warning: {finding.where}: {finding.message}: only Verilog is made", file=sys.stderr)
    return 0


def _print_report(table: dict[str, Any], target: Path, fps: float | None) -> None:
    timing, clock = table["timing"], table["clock"]
    print(f"{table['model']['name']} on {table['board']} ({table['device']}): {target}")
    print(f"  initiation interval {timing['initiation_interval']} cycles, latency {timing['latency']} cycles")
    fmax = f"{clock['fmax_mhz']:.1f} MHz" if clock["fmax_mhz"] else "not placed and routed"
    print(f"  clock {clock['target_mhz']:g} MHz (reached: {fmax}), {timing['frames_per_second']:,.0f} frames a second")
    print(f"  {table['multipliers']} multipliers, {100 * (table['multiplier_utilization'] or 0):.1f} % busy")
    forms = Counter(layer["requantizer"]["form"] for layer in table["layers"] if layer["requantizer"])
    if forms:
        counts = ", ".join(f"{count} {form}" for form, count in forms.most_common())
        print(f"  requantizers, proved exact: {counts}")
    grid = new_table("resource", "predicted", "synthesized", "available")
    for name, row in table["resources"].items():
        grid.add_row(
            name, *("" if row[k] is None else f"{row[k]:,}" for k in ("predicted", "synthesized", "available"))
        )
    print_table(grid)
    if clock["fmax_mhz"] is not None and clock["fmax_mhz"] < clock["target_mhz"]:
        print(
            f"warning: the clock must reach {clock['target_mhz']:g} MHz, not {clock['fmax_mhz']:.1f} MHz: "
            "the bitstream may fail",
            file=sys.stderr,
        )
    if fps is not None and timing["frames_per_second"] < fps:
        print(
            f"warning: --fps {fps:g} must be reached, not {timing['frames_per_second']:,.0f} frames a second: "
            f"place and route allow {clock['target_mhz']:g} MHz only; ask for a higher rate to get more multipliers",
            file=sys.stderr,
        )
