"""The command `sim`."""

from __future__ import annotations

import argparse
from typing import Any

from hwflow.api.options.texts import constants, dimensions, input_types, states
from hwflow.cli import junit
from hwflow.cli.options import seed_of
from hwflow.cli.tables import Table
from hwflow.cli.terminal import Steps, print_findings, print_json, say
from hwflow.display import cell
from hwflow.errors import Mismatch


def run_sim(arguments: argparse.Namespace) -> int:
    """Simulate and compare."""
    from hwflow.verify.simulation import simulate

    with Steps() as progress:
        simulation = simulate(
            arguments.target, inputs=arguments.input, frames=arguments.frames, simulator=arguments.simulator,
            stall=arguments.stall, seed=seed_of(arguments), wave=arguments.wave, output=arguments.output,
            dimensions=dimensions(arguments.dim), trusted=arguments.trust, progress=progress, on_frames=progress.count,
            layers=arguments.layers, threads=arguments.threads, input_types=input_types(arguments.input_type),
            constants=constants(arguments.const), states=states(arguments.state, arguments.channels),
            weights=arguments.weights,
        )
    if arguments.format == "json":
        print_json(simulation.table())
    else:
        _print_simulation(simulation)
    if arguments.junit:
        junit.write(arguments.junit, [junit.sim_suite(arguments.target, simulation)])
    print_findings(simulation.findings)
    return Mismatch.exit_code if simulation.findings else 0


def _print_simulation(simulation: Any) -> None:
    result = simulation.result
    grid = Table("what", "expected", "measured")
    grid.add_row("frames", str(simulation.result.frames), str(result.frames - result.mismatching_frames) + " right")
    grid.add_row("elements that differ", "0", str(result.mismatches))
    if result.stall == 0:
        if result.frames > 1 and simulation.exact:
            grid.add_row(
                "initiation interval (cycles)", str(simulation.predicted_interval), str(result.initiation_interval)
            )
        most = "" if simulation.exact else "at most "
        grid.add_row("latency (cycles)", f"{most}{simulation.predicted_latency}", str(result.latency))
    grid.add_row("verdict", "equal", "equal" if simulation.ok else "DIFFERENT")
    grid.print()
    say(
        f"simulator {result.simulator}, inputs {simulation.inputs.origin}, stall {result.stall:g}, seed {result.seed}, "
        f"{result.cycles} cycles"
    )
    if simulation.loaded is not None:
        load = simulation.loaded.table(result)
        say(f"loaded behind {load['frames']} frames of the design's own weights: {load['bytes']:,} bytes"
            + (f" in {load['cycles']:,} cycles" if load["cycles"] else ""))
    if simulation.layers is not None:
        layers = Table("layer", "elements", "differing", "missing", "value")
        for row in simulation.layers.shown:
            layers.add_row(
                cell(row.core), row.elements, row.differing, row.missing, f"{cell(row.value)} {list(row.shape)}"
            )
        layers.print()
        for line in simulation.layers.lines():
            say(line)
    for line in simulation.output_lines():
        say(line)
    if simulation.accuracy is not None:
        say(f"accuracy against the labels: {100 * simulation.accuracy:.2f} %")
