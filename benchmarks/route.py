"""Route a design and print its clock and what limits it, by the hierarchical names of the cells.

    python benchmarks/route.py MODEL.onnx -o OUT [--board B] [--clock MHZ] [--place-route "OPTIONS"] [-- SYNTH OPTIONS]
    python benchmarks/route.py -o OUT [--place-route "--seed 7"]

Options behind ``--`` go to ``hwflow synth`` (``--fps 20000``). Without a model the netlist in OUT is routed again, so
that options of place and route can be compared on the same netlist. ``--clock`` is the clock that place and route aims
at; the design's own PLL is set for it. Prints the achieved clock, every clock domain's, the cells of the critical path
and the resources used.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from critical_cores import critical_cores

from hwflow.boards import find_board
from hwflow.cli import main as hwflow
from hwflow.codegen.board.board_files import write_board
from hwflow.codegen.board.carriers import LinkOptions
from hwflow.toolchain import nextpnr
from hwflow.toolchain.build import FLOWS, PACKED, build
from hwflow.toolchain.tool import run

REPORT = "board/route.json"


def prepare(model: str, out: Path, board: str, clock: float | None, options: Sequence[str]) -> None:
    """Write the design's packed netlist into ``out``, its PLL set for ``clock`` MHz (None: as compiled)."""
    status = hwflow(["synth", model, "--board", board, "-o", str(out), "--until", "verilog", *options])
    if status:
        sys.exit(status)
    if clock is not None:
        address = json.loads((out / "board" / "board.json").read_text())["link"].get("address")
        write_board(out, find_board(board), clock, LinkOptions(ethernet=address and address.partition(":")[0]))
    result = build(out, "netlist", progress=print)
    print("netlist", result.design_resources)


def place_route(out: Path, options: Sequence[str]) -> dict[str, Any]:
    """Return nextpnr's report for the netlist in ``out``."""
    board = json.loads((out / "board" / "board.json").read_text())
    part = board["part"]
    arguments = nextpnr.arguments(
        part, netlist=PACKED, constraints=board["constraints"], placed="board/route.placed", report=REPORT,
        mhz=float(board["clock"]["design_mhz"]), strategy=nextpnr.STRATEGIES[part["family"]][0],
    )
    for option in {option for option in options if option.startswith("--")} & set(arguments):
        place = arguments.index(option)  # nextpnr takes an option but once
        values = 1 if place + 1 < len(arguments) and not arguments[place + 1].startswith("--") else 0
        del arguments[place : place + 1 + values]
    tool = FLOWS[part["family"]].place_route
    log = out / "board" / "route.log"
    run(tool.find(), [*arguments, *options], out, log, step="route", remedy="read the log", outputs=(REPORT,))
    report: dict[str, Any] = json.loads((out / REPORT).read_text())
    return report


def path_lines(path: Mapping[str, Any]) -> list[str]:
    """Return a line for each step of a critical path: delay so far, its own delay, what it is, where it ends."""
    total = 0.0
    lines = [f"  from {path['path'][0]['from']['cell']}.{path['path'][0]['from']['port']}"]
    for step in path["path"]:
        total += step["delay"]
        end = step["to"]
        lines.append(
            f"  {total:6.2f} ns  {step['delay']:5.2f} {step['type']:<8} {end['cell']}.{end['port']} at {end['loc']}"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--board", default="ulx3s_85f")
    parser.add_argument("--clock", type=float, help="MHz")
    parser.add_argument("--place-route", default="", help="more options of nextpnr")
    own, synth = sys.argv[1:], []
    if "--" in own:
        own, synth = own[: own.index("--")], own[own.index("--") + 1 :]
    arguments = parser.parse_args(own)
    if arguments.model:
        prepare(arguments.model, arguments.output, arguments.board, arguments.clock, synth)
    start = time.monotonic()
    report = place_route(arguments.output, shlex.split(arguments.place_route))
    for name, clock in report["fmax"].items():
        print(f"clock {name}: {clock['achieved']:.1f} MHz, asked for {clock['constraint']:.1f} MHz")
    for path in report["critical_paths"]:
        if path["from"] == path["to"]:  # within one clock domain
            cores = critical_cores(arguments.output / REPORT, path["to"].split()[-1], "hwflow_top")
            print(f"critical path of {path['from']}: {', '.join(cores)}")
            print("\n".join(path_lines(path)))
    print({name: count["used"] for name, count in report["utilization"].items() if count["used"]})
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
