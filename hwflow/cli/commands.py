"""The commands but `synth`: each takes its parsed arguments and returns the exit code."""

from __future__ import annotations

import argparse
import gc
import secrets
from collections import Counter
from dataclasses import asdict
from typing import Any

from hwflow.cli.options import dimensions
from hwflow.cli.terminal import Steps, counted, new_table, print_json, print_table
from hwflow.errors import ToolError, merged


def run_check(arguments: argparse.Namespace) -> int:
    """Findings on a model."""
    gc.disable()  # the process ends soon, and collecting costs a tenth of the time on large models
    from hwflow.checking import check

    findings = check(arguments.model, dimensions(arguments.dim), pedantic=arguments.pedantic, trusted=arguments.trust)
    count = Counter(f.severity for f in findings)
    if arguments.format == "json":
        rows = [
            {"clause": f.rule, "severity": f.severity, "where": f.where, "message": f.message, "remedy": f.remedy}
            for f in findings
        ]
        print_json({"findings": rows, "errors": count["error"], "warnings": count["warning"]})
    else:
        verdict = [counted(count["error"], "error"), counted(count["warning"], "warning")]
        if count["unsupported"]:
            verdict.insert(1, f"{count['unsupported']} unsupported")
        print("\n".join([*map(str, merged(findings)), f"{arguments.model}: {', '.join(verdict)}"]))
    return 1 if count["error"] or count["unsupported"] else 0


def run_sim(arguments: argparse.Namespace) -> int:
    """Simulate and compare."""
    from hwflow.simulation import require, simulate

    seed = secrets.randbelow(1 << 31) if arguments.seed is None else arguments.seed
    with Steps() as progress:
        simulation = simulate(
            arguments.target, inputs=arguments.input, frames=arguments.frames, simulator=arguments.simulator,
            stall=arguments.stall, seed=seed, wave=arguments.wave, output=arguments.output,
            dimensions=dimensions(arguments.dim), trusted=arguments.trust, progress=progress, on_frames=progress.count,
            layers=arguments.layers,
        )
    if arguments.format == "json":
        print_json(simulation.table())
    else:
        _print_simulation(simulation, seed, arguments.stall)
    require(simulation)
    return 0


def _print_simulation(simulation: Any, seed: int, stall: float) -> None:
    result = simulation.result
    grid = new_table("what", "expected", "measured")
    grid.add_row("frames", str(simulation.result.frames), str(result.frames - result.mismatching_frames) + " right")
    grid.add_row("elements that differ", "0", str(result.mismatches))
    if stall == 0:
        if result.frames > 1:
            grid.add_row(
                "initiation interval (cycles)", str(simulation.predicted_interval), str(result.initiation_interval)
            )
        grid.add_row("latency (cycles)", str(simulation.predicted_latency), str(result.latency))
    grid.add_row("verdict", "equal", "equal" if simulation.ok else "DIFFERENT")
    print_table(grid)
    print(
        f"simulator {result.simulator}, inputs {simulation.inputs.origin}, stall {stall:g}, seed {seed}, "
        f"{result.cycles} cycles"
    )
    if simulation.layers is not None:
        for line in simulation.layers.lines():
            print(line)
    for line in simulation.output_lines():
        print(line)
    if simulation.accuracy is not None:
        print(f"accuracy against the labels: {100 * simulation.accuracy:.2f} %")


def run_compare(arguments: argparse.Namespace) -> int:
    """Golden model against reference evaluator."""
    from hwflow.comparison import compare, require

    seed = secrets.randbelow(1 << 31) if arguments.seed is None else arguments.seed
    with Steps() as progress:
        comparison = compare(
            arguments.model, inputs=arguments.input, frames=arguments.frames, seed=seed, progress=progress,
            dimensions=dimensions(arguments.dim), trusted=arguments.trust,
        )
    if arguments.format == "json":
        print_json({**comparison.table(), **(comparison.layers.table() if arguments.layers else {})})
    else:
        for line in (*comparison.lines(), *(comparison.layers.lines() if arguments.layers else ())):
            print(line)
        print(f"inputs {comparison.inputs.origin}, seed {seed}")
    require(comparison)
    return 0


def run_quantize(arguments: argparse.Namespace) -> int:
    """Float model to QDQ."""
    from hwflow.quantization import quantize

    with Steps() as progress:
        quantization = quantize(
            arguments.model, arguments.calibration, arguments.output, bits=arguments.bits,
            activations=arguments.activations, inputs=arguments.input, frames=arguments.frames,
            dimensions=dimensions(arguments.dim), trusted=arguments.trust, progress=progress,
        )
    if arguments.format == "json":
        print_json(quantization.table())
    else:
        for line in quantization.lines():
            print(line)
    return 0


def run_boards(arguments: argparse.Namespace) -> int:
    """List the boards."""
    from hwflow.boards import all_boards

    grid = new_table("board", "what", "family", "LUT", "FF", "DSP", "BRAM", "clock MHz", "toolchain", "host")
    for b in all_boards():
        p = b.part
        grid.add_row(
            b.name, b.title, p.family, f"{p.lut:,}", f"{p.ff:,}", str(p.dsp), str(p.bram), f"{b.clock_mhz:g}",
            f"{'vendor' if b.tools.vendor else 'open'}: {b.toolchain}", b.transport,
        )
    print_table(grid)
    return 0


def run_ops(arguments: argparse.Namespace) -> int:
    """List the operators."""
    from hwflow.operator_list import TITLES, markdown, operators

    if arguments.format == "markdown":
        print("\n".join(markdown()))
    elif arguments.format == "json":
        print_json({"operators": [asdict(operator) for operator in operators()]})
    else:
        grid = new_table(*TITLES)
        for operator in operators():
            grid.add_row(*operator.cells())
        print_table(grid)
    return 0


def run_doctor(arguments: argparse.Namespace) -> int:
    """List the tools."""
    from hwflow.toolchain.doctor import doctor, table

    statuses = doctor()
    print(table(statuses))
    return 0 if all(s.good for s in statuses) else ToolError.exit_code
