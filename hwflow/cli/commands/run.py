"""The command `run`."""

from __future__ import annotations

import argparse

from hwflow.cli import junit
from hwflow.cli.options import seed_of
from hwflow.cli.terminal import Steps, print_findings, print_json, say
from hwflow.errors import Finding, Mismatch


def run_run(arguments: argparse.Namespace) -> int:
    """Run frames on a board and compare."""
    from hwflow.verify.board_run import run

    seed = seed_of(arguments)
    with Steps() as progress:
        done = run(
            arguments.out, arguments.port, baud=arguments.baud, inputs=arguments.input, frames=arguments.frames,
            output=arguments.output, verify=not arguments.no_verify, simulated=arguments.simulated,
            faults=arguments.faults, seed=seed, progress=progress,
            weights=arguments.weights,
        )
    if arguments.format == "json":
        print_json(done.table() | ({"seed": seed} if arguments.simulated else {}))
    else:
        say(*done.lines())
        if arguments.faults:
            say(f"simulated, faults {arguments.faults:g}, seed {seed}")
    if arguments.junit:
        properties = [("faults", f"{arguments.faults:g}"), ("seed", str(seed))] if arguments.simulated else []
        junit.write(arguments.junit, [junit.run_suite(arguments.out, done, properties)])
    findings = [Finding(*finding) for finding in done.findings()]
    print_findings(findings)
    return Mismatch.exit_code if findings else 0
