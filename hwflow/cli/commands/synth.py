"""The command `synth`."""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwflow.api.options.synth_options import SynthOptions, synth_options
from hwflow.cli.tables import Table
from hwflow.cli.terminal import Steps, print_findings, print_json, say
from hwflow.display import cell

if TYPE_CHECKING:
    from hwflow.api.making import Made
    from hwflow.boards import Board


TWICE = 2  # times as fast as its link is a core that a smaller one could replace


def run_synth(arguments: argparse.Namespace) -> int:
    """Compile a model for a board."""
    from hwflow.api.making import make
    from hwflow.api.output_folder import check_writable, claimed
    from hwflow.api.request import Gathered
    from hwflow.report.shortfalls import shortfalls

    target = Path(f"build/{Path(arguments.model).stem}" if arguments.output is None else arguments.output)
    gathered = Gathered()
    asked: SynthOptions | None = None
    with gathered.check():
        asked = synth_options(vars(arguments), arguments.until)
    with gathered.check():
        check_writable(target)
    gathered.require_none()
    assert asked is not None, "else there is a finding"
    request, board = asked.request, asked.request.board
    model = Path(arguments.model)
    with claimed(target) as output, Steps() as progress:
        made = make(
            output, model, request, asked.table(),
            lambda progress, executor: asked.compile(model, progress, executor), progress, until=arguments.until,
            force=arguments.force, heard=progress.detail, seeds=range(1, asked.seeds + 1),
        )
    table = made.table
    warnings = [*shortfalls(table, request.fps), *made.findings]
    if arguments.format == "json":
        findings = [finding.table() for finding in warnings]
        print_json({**table, "output": str(target), "unchanged": made.unchanged, "findings": findings})
    else:
        _print_report(board, made, target)
    tools = board.tools
    if arguments.until is None and tools.vendor and table["bitstream"] is None:
        say(
            f"note: a bitstream for {board.name} needs {tools.title}, and {tools.vendor} is not on PATH: "
            f"{target}/board/build.sh makes it where that is installed",
            error=True,
        )
    print_findings(warnings)
    return 0


def _print_report(board: Board, made: Made, target: Path) -> None:
    from hwflow.cores.costs import FAMILIES

    table = made.table
    timing, clock = table["timing"], table["clock"]
    say(f"{cell(table['model']['name'])} on {table['board']} ({table['device']}): {target}")
    if made.unchanged:
        say("  up to date: model, options and tools are unchanged (--force rebuilds)")
    most = "" if timing.get("exact", True) else "at most "
    of_frames = f" of {timing['interleave']} frames" if "interleave" in timing else ""
    say(
        f"  initiation interval {timing['initiation_interval']} cycles{of_frames}, "
        f"latency {most}{timing['latency']} cycles"
    )
    circuit = timing.get("circuit")
    if circuit is not None and circuit["limits"]:
        many = circuit.get("rounds", 1)
        on_the_way = f"{many} rounds of a loop one after the other" if many > 1 else (
            f"{circuit['frames']} frames on their way: independent --channels make use of it"
        )
        if many > 1 and "interleave" not in timing:
            on_the_way += ": independent frames make use of it (--interleave auto)"
        say(f"  the interval is the latency of the circuit through {len(circuit['states'])} states, with {on_the_way}")
    fmax = f"{clock['fmax_mhz']:.1f} MHz" if clock["fmax_mhz"] else "not placed and routed"
    if (larger := table["larger_design"]) is not None:
        say(
            f"  smaller design: one of {larger['initiation_interval']} cycles failed place and route "
            f"({larger['reason']})"
        )
    say(f"  clock {clock['target_mhz']:g} MHz (reached: {fmax}), {timing['frames_per_second']:,.0f} frames per second")
    say(f"  {_multipliers(table)}")
    forms = Counter(layer["requantizer"]["form"] for layer in table["layers"] if layer["requantizer"])
    if forms:
        counts = ", ".join(f"{count} {form}" for form, count in forms.most_common())
        say(f"  requantizers, proved exact: {counts}")
    say(f"  {made.host}")
    grid = Table("resource", "predicted", "synthesized", "available")
    for name, row in table["resources"].items():
        grid.add_row(name, *("" if row[k] is None else row[k] for k in ("predicted", "synthesized", "available")))
    grid.print()
    steps = (f"{step} {seconds:.1f}" for step, seconds in table["seconds"].items() if seconds is not None)
    say(f"seconds{' when built' if made.unchanged else ''}: {', '.join(steps)}")
    family = FAMILIES[board.part.family]
    if not family.measured:
        name = board.part.family
        say(f"predicted lut and ff are estimates: their cost models were measured on {family.basis}, not on {name}")
    for line in _on_the_board(board, table, target):
        say(line)


def _multipliers(table: dict[str, Any]) -> str:
    """Return how many multipliers of each kind the design has, and the share of them that is busy."""
    words = {
        "block": "in blocks", "lut": "in look-up tables", "xnor": "comparisons of bits",
        "constant": "products by constants", "requantizer": "blocks of requantizers",
    }
    parts = [
        f"{row['multipliers']:,} {words[kind]} ({100 * row['busy']:.1f} %)"
        for kind, row in table["multipliers"].items() if row["multipliers"]
    ]
    busy = table["multiplier_utilization"]
    headline = "no multipliers" if busy is None else f"multipliers {100 * busy:.1f} % busy"
    return ": ".join((headline, ", ".join(parts))) if parts else headline


def _on_the_board(board: Board, table: dict[str, Any], target: Path) -> Iterator[str]:
    """Yield the bitstream, how to load it, and the throughput over the link to a host."""
    from hwflow.codegen.memory_image import FLASH_IMAGE

    if table["bitstream"] is not None:
        file = target / table["bitstream"]
        yield f"bitstream: {file}"
        program = board.program.format(bitstream=shlex.quote(str(file)))
        if (target / FLASH_IMAGE).is_file():  # which is written, too
            program = f"hwflow program {shlex.quote(str(target))}"
        yield f"load it with: {program}"
    link, core = table["link"], table["timing"]["frames_per_second"]
    if link is not None:
        rate = f", {link['baud']:,} baud" if link["baud"] else ""
        yield (
            f"frames per second: {core:,.0f} by the core, at most {link['frames_per_second']:,.0f} over the board's "
            f"link ({link['transport']}{rate}; {link['input_bytes']:,} bytes in, {link['output_bytes']:,} out): the "
            f"{link['limit']} limits them"
        )
        if core > TWICE * link["frames_per_second"]:
            yield (
                f"the core is {core / link['frames_per_second']:,.0f} times as fast as its link: '--fps link' makes "
                "the smallest one that is as fast"
            )
