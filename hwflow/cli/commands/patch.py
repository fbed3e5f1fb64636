"""The command `patch`."""

from __future__ import annotations

import argparse
from pathlib import Path

from hwflow.api.options.synth_options import synth_options
from hwflow.cli.terminal import Steps, print_json, say
from hwflow.display import show_path


def run_patch(arguments: argparse.Namespace) -> int:
    """Give an output folder another model of the same hardware."""
    from hwflow.api.output_folder import claimed
    from hwflow.api.patching.patched_output import held_in, options_of, patch

    out, model = Path(arguments.out), Path(arguments.model)
    with claimed(out) as output, Steps() as progress:
        asked = synth_options(options_of(output.path)["given"])
        known = held_in(output.path)
        table = patch(output, asked.table(), lambda say: asked.compile(model, say, known=known), progress)
    if arguments.format == "json":
        print_json({**table, "output": str(out), "findings": []})
    else:
        say(
            f"bitstream: {show_path(out / table['bitstream'])}",
            f"seconds: patch {table['seconds']['patch']:.1f}; synthesis, placement and routes are those before",
            f"now: hwflow program {show_path(out)}",
        )
    return 0
