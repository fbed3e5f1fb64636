"""The command `compare`."""

from __future__ import annotations

import argparse

from hwflow.api.options.texts import constants, dimensions, input_types, states
from hwflow.cli import junit
from hwflow.cli.options import seed_of
from hwflow.cli.tables import Table
from hwflow.cli.terminal import Steps, print_findings, print_json, say
from hwflow.display import cell
from hwflow.errors import Mismatch


def run_compare(arguments: argparse.Namespace) -> int:
    """Compare the golden model with the reference evaluator."""
    from hwflow.verify.comparison import compare

    seed = seed_of(arguments)
    with Steps() as progress:
        comparison = compare(
            arguments.model, inputs=arguments.input, frames=arguments.frames, seed=seed, progress=progress,
            dimensions=dimensions(arguments.dim), trusted=arguments.trust,
            input_types=input_types(arguments.input_type), constants=constants(arguments.const),
            states=states(arguments.state, arguments.channels), weights=arguments.weights,
        )
    if arguments.format == "json":
        layers = comparison.layers.table() if arguments.layers else {}
        print_json({**comparison.table(), "seed": seed, **layers})
    else:
        grid = Table("value", "elements", "mismatches", "unexplained", "max lsb")
        for row in comparison.rows:
            grid.add_row(cell(row.name), row.elements, row.mismatches, row.unexplained, row.max_lsb)
        grid.print()
        for line in (*comparison.lines(), *(comparison.layers.lines() if arguments.layers else ())):
            say(line)
        say(f"inputs {comparison.inputs.origin}, seed {seed}")
    if arguments.junit:
        junit.write(arguments.junit, [junit.compare_suite(arguments.model, comparison, seed)])
    print_findings(comparison.findings)
    return Mismatch.exit_code if comparison.findings else 0
