"""Give a bitstream the tables of another design of the same hardware."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwflow.display import show
from hwflow.errors import Finding, ToolError
from hwflow.toolchain import build, yosys
from hwflow.toolchain.json_file import write_json
from hwflow.toolchain.pack import UNPACKERS
from hwflow.toolchain.patching.block_files import FILES, BlockFiles
from hwflow.toolchain.patching.rom_tables import (
    RomTable,
    constant_bits,
    lost_bits,
    rom_of,
    tables_of,
    text_of,
    with_changing_bits,
    words_of,
)
from hwflow.toolchain.patching.table_blocks import Cells, block_cells, blocks_of, synthesized_blocks
from hwflow.toolchain.tool import Found, run
from hwflow.toolchain.up_to_date import restate

RULE = "same-hardware"
REBUILD = "build it again with 'hwflow synth'"
_CORE = "hwflow_top"  # the design in the board's top
_IDENTITY = "shell.link.sender.identity"  # the memory of what the board says of itself, in the board's top
_MOST_NAMED = 8  # bits, in a message
_LEFT_OUT = "board/left_out.json"  # of tables that were patched, which may have more constant bits now


@dataclass(frozen=True)
class _Change:
    """A table, the words that it has and is to have, and the bits that synthesis left out as constants
    (:func:`hwflow.toolchain.patching.rom_tables.constant_bits`)."""

    table: RomTable
    old: Sequence[int]
    new: Sequence[int]
    left_out: tuple[int, int]

    def refusal(self, message: str) -> Finding:
        """Return the finding that this table cannot be changed."""
        layer = self.table.path.split(".")[1]
        where = "the board's identity" if self.table.path == _IDENTITY else f"layer {show(layer)}"
        return Finding(RULE, where, message, REBUILD)


def patch_bitstream(before: Path, now: Path) -> list[Finding]:
    """Build in ``now``, which has everything up to the Verilog, what ``before`` has been built to, with the same
    netlist, placement and routes but for the contents of block RAMs. Both have the same design.

    The bitstream is read back, and its contents are compared. Return what stands in the way, if anything: tables in
    look-up tables, and bits of words that synthesis left out because they were constant; ``now`` lacks the bitstream
    then. Raises :class:`ToolError` if a tool is missing or fails.
    """
    board = json.loads((now / "board" / "board.json").read_text())
    family = board["part"]["family"]
    files, flow = FILES[family], build.FLOWS[family]
    found = {tool: tool.find() for tool in (yosys.YOSYS, flow.packer, UNPACKERS[family])}
    design = (now / board["sources"][0]).read_text()
    changes = _changes(before, now, board, design)
    netlist: dict[str, Any] = json.loads((before / build.PACKED).read_text())
    cells = block_cells(netlist, files)
    command = yosys.synthesis_command(family, board["part"]["device"])
    new, findings = _new_blocks(now, found[yosys.YOSYS], command, files, cells, changes, design)
    if findings:
        return findings
    placed = (before / flow.placed).read_text()
    bodies = _new_bodies(files, cells, new, placed)
    if isinstance(bodies, Finding):
        return [bodies]
    for name, parameters in new.items():
        cells[name].update(parameters)
    _write(before, now, netlist, flow.placed, files.replaced(placed, bodies))
    write_json(now / _LEFT_OUT, _left_out(before) | {change.table.file: change.left_out for change in changes})
    _pack(now, board, flow, found[flow.packer], found[UNPACKERS[family]], files)
    restate(before, now)
    return []


def _changes(before: Path, now: Path, board: Mapping[str, Any], design: str) -> list[_Change]:
    """Return the tables whose words differ, and the board's identity if it does."""
    left_out = _left_out(before)

    def change(table: RomTable, old: Sequence[int], new: Sequence[int]) -> _Change:
        zeros, ones = (0, 0) if table.held else left_out.get(table.file) or constant_bits(old, table.width)
        return _Change(table, old, new, (zeros, ones))

    contents: dict[str, tuple[list[int], list[int]]] = {}
    found = []
    for table in tables_of(design, board["design_top"], _CORE):
        if table.file not in contents:
            contents[table.file] = words_of(before / table.file), words_of(now / table.file)
        old, new = contents[table.file]
        if old != new:
            found.append(change(table, old, new))
    was = bytes.fromhex(json.loads((before / "board" / "board.json").read_text())["link"]["identity"])
    known = bytes.fromhex(board["link"]["identity"])
    if was != known:
        found.append(change(RomTable(_IDENTITY, "identity", 8, len(known), block=True), list(was), list(known)))
    return found


def _left_out(before: Path) -> dict[str, list[int]]:
    path = before / _LEFT_OUT
    table: dict[str, list[int]] = json.loads(path.read_text()) if path.is_file() else {}
    return table


def _new_blocks(
    now: Path, yosys: Found, command: str, files: BlockFiles, cells: Cells, changes: Sequence[_Change], design: str
) -> tuple[Cells, list[Finding]]:
    """Return the new contents of a netlist's ``cells``, as parameters, and what stands in the way."""
    findings, possible = list[Finding](), list[_Change]()
    for change in changes:
        lost = lost_bits(change.left_out, change.new, change.table.width)
        if not blocks_of(cells, change.table.path):
            findings.append(change.refusal(
                f"its table {show(change.table.file)} must lie in block RAM to be changed, not in look-up tables"
            ))
        elif lost:
            bits = [bit for bit in range(change.table.width) if lost >> bit & 1]
            named = ", ".join(map(str, bits[:_MOST_NAMED])) + (", ..." if len(bits) > _MOST_NAMED else "")
            findings.append(change.refusal(
                f"bits {named} of its table {show(change.table.file)} must be the constants that synthesis left out, "
                "not others"
            ))
        else:
            possible.append(change)
    if findings or not possible:
        return {}, findings
    given = list[tuple[str, RomTable]]()
    with tempfile.TemporaryDirectory(dir=now / "board") as name:
        folder = Path(name)
        copies = [
            [
                [list(words)] if change.table.held
                else with_changing_bits(change.left_out, words, change.table.width)
                for words in (change.old, change.new)
            ]
            for change in possible
        ]
        for change, (old, new) in zip(possible, copies, strict=True):
            for words in (*old, *new):
                file = f"{len(given)}.mem"
                (folder / file).write_text(text_of(words, change.table.width))
                given.append((file, change.table))
        made = iter(synthesized_blocks(folder, yosys, command, files, rom_of(design), given))
    result: Cells = {}
    for change, sides in zip(possible, copies, strict=True):
        there = blocks_of(cells, change.table.path)
        was, becomes = ([next(made) for _ in words] for words in sides)
        shape = _shape(was[0], files)
        alike = shape.keys() == there.keys() and all(_shape(copy, files) == shape for copy in (*was, *becomes))
        if not alike or any(
            _contents(there[block], files) != _contents(_majority([copy[block] for copy in was], files), files)
            for block in there
        ):
            findings.append(change.refusal(
                f"its table {show(change.table.file)} must have been synthesized as it is by itself, not otherwise"
            ))
            continue
        for block in there:
            result[f"{change.table.path}.{block}"] = _majority([copy[block] for copy in becomes], files)
    return result, findings


def _contents(parameters: Mapping[str, str], files: BlockFiles) -> dict[str, str]:
    """Return the contents among a block's parameters; bits that are not given are 0."""
    return {
        name: value.replace("x", "0") for name, value in parameters.items()
        if name.startswith(files.contents) and "1" in value
    }


def _shape(cells: Cells, files: BlockFiles) -> dict[str, dict[str, str]]:
    """Return the parameters of blocks besides their contents."""
    return {
        block: {name: value for name, value in parameters.items() if not name.startswith(files.contents)}
        for block, parameters in cells.items()
    }


def _majority(copies: Sequence[Mapping[str, str]], files: BlockFiles) -> dict[str, str]:
    """Return the contents of a block, of one or three copies: each bit as most copies have it."""
    result = {}
    for name in copies[0]:
        if name.startswith(files.contents):
            values = [copy[name].replace("x", "0") for copy in copies]
            result[name] = "".join(max("01", key=bits.count) for bits in zip(*values, strict=True))
    return result


def _new_bodies(files: BlockFiles, cells: Cells, new: Cells, placed: str) -> dict[str, str] | Finding:
    """Return new contents of a placed design's sections by old ones. Blocks with equal contents are told apart by
    nothing: they all stay as they are or all get the same ones, or it is a finding."""
    result: dict[str, str] = {}
    for name, parameters in cells.items():
        body = files.body(parameters)
        wanted = files.body(parameters | new[name]) if name in new else body
        if result.setdefault(body, wanted) != wanted:
            return Finding(
                RULE, f"block RAM {show(name)}", "must have other contents than every other one, for it to be found",
                REBUILD,
            )
    there = set(files.bodies(placed).values())
    for name in new:
        if files.body(cells[name]) not in there:
            return Finding(
                RULE, f"block RAM {show(name)}", "its contents must be in the placed design, not missing", REBUILD
            )
    return {old: wanted for old, wanted in result.items() if old != wanted}


def _write(before: Path, now: Path, netlist: Mapping[str, Any], placed: str, text: str) -> None:
    """Write what place and route would have read and written, and what synthesis has read."""
    core = json.loads((now / "board" / "board.json").read_text()).get("ethernet_core")
    if core is not None:
        shutil.copyfile(before / core["file"], now / core["file"])
    scripts = ("build.sh", Path(build.SYNTHESIS).name, Path(build.RENAMED_SYNTHESIS).name)
    read = (yosys.RAM_MAP.name, yosys.PAIR_MAP.name)
    for name in ("registers.log", "place_route.log", "place_route.json", "statistics.json", *scripts, *read):
        if (before / "board" / name).is_file():
            shutil.copyfile(before / "board" / name, now / "board" / name)
    (now / build.PACKED).write_text(json.dumps(netlist, indent=1) + "\n")
    (now / placed).write_text(text)


def _pack(
    now: Path, board: Mapping[str, Any], flow: build.Flow, packer: Found, unpacker: Found, files: BlockFiles
) -> None:
    """Make the bitstream, and compare what it holds with the placed design."""
    arguments = flow.pack_arguments(board["part"], placed=flow.placed, bitstream=flow.bitstream)
    run(
        packer, arguments, now, now / "board" / "pack.log", step=f"pack ({flow.packer.name})", remedy="read the log",
        outputs=[flow.bitstream],
    )
    unpacked = "board/unpacked.txt"
    run(
        unpacker, [flow.bitstream, unpacked], now, now / "board" / "unpack.log",
        step="reading the bitstream back", remedy="read the log", outputs=[unpacked],
    )
    holds, wanted = (
        {place: body for place, body in files.bodies((now / name).read_text()).items() if body.strip("0 \n")}
        for name in (unpacked, flow.placed)
    )
    for name in (unpacked, "board/unpack.log"):
        (now / name).unlink()
    if holds != wanted:
        differing = next(place for place in sorted({*holds, *wanted}) if holds.get(place) != wanted.get(place))
        raise ToolError.of(
            "tool-output", f"bitstream {show(flow.bitstream)}",
            f"must hold the contents of block RAM {show(differing)} as the placed design has them, not others",
            "report this as a defect of hwflow",
        )
