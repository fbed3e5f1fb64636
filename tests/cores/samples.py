"""The harness's cases as samples of what cores cost: synthesis, files of measured rows, and the models' figures."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from amaranth.back import rtlil

from hdl_lib.arithmetic.packed_product import Packing
from hdl_lib.memories.rom import VERILOG
from hwflow.boards import find_board
from hwflow.cores import costs
from hwflow.cores.matrix.dot_products import weight_range
from hwflow.cores.matrix.stream_matrix import StreamMatrixAttributes, factor_ranges
from hwflow.cores.operator import Folding, Resources
from hwflow.cores.registry import hardware
from hwflow.toolchain import tool
from hwflow.toolchain.packing import pack
from hwflow.toolchain.yosys import RENAMING, SYNTHESIS, YOSYS, mapping, read_statistics
from tests.cores.cases.all_cases import CASES
from tests.cores.harness import Bench, Case

FAMILIES = {"ecp5": "ulx3s_85f", "ice40": "icebreaker"}  # and a board that carries one
KINDS = ("lut", "ff", "dsp", "bram")
COLUMNS = ("op", "case", "input_lanes", "output_lanes", "multiplier", "depth", *KINDS)
# Of the queues, in turn over a case's foldings: look-up table memory, registers, two rows of memory.
DEPTHS = (6, 3, 20)

# How far a model may be off: LUTs and flip-flops by a share of what synthesis found, or by so many cells where a core
# is small; blocks not at all.
COMPLETE = ("ecp5", "ice40")  # those in which every case has a sample
MODELLED = ("ecp5", "ice40")  # families with samples
SHARE, CELLS_OFF = 0.10, 12


@dataclass(frozen=True)
class Key:
    """A case at the ``index``-th of its foldings."""

    op: str
    case: str
    index: int

    @property
    def bench(self) -> tuple[Case, Folding, int]:
        """The case, the folding, the depth of its queues."""
        case = _cases()[self.op, self.case]
        depth = 2 if self.op == "frame_sync" else DEPTHS[self.index % len(DEPTHS)]
        return case, case.foldings[self.index], depth

    @property
    def folding_text(self) -> str:
        _, folding, depth = self.bench
        return f"{folding.input_lanes} to {folding.output_lanes} {folding.multiplier} depth {depth}"


@dataclass(frozen=True)
class Row:
    """What synthesis found."""

    key: Key
    cells: Resources


@cache
def _cases() -> dict[tuple[str, str], Case]:
    return {(op, case.name): case for op, cases in CASES.items() for case in cases}


@cache
def all_keys(family: str) -> list[Key]:
    """All cases at all their foldings, but for pairs of products that no multiplier block of ``family`` has room
    for."""
    keys = [Key(op, case, index) for (op, case), what in _cases().items() for index in range(len(what.foldings))]
    return [key for key in keys if _fits(family, key)]


def _fits(family: str, key: Key) -> bool:
    case, folding, _ = key.bench
    if folding.multiplier != "dsp2":
        return True
    node, block = case.node(), costs.FAMILIES[family].dsp_packed
    if isinstance(node.attributes, StreamMatrixAttributes):
        inputs, weights = factor_ranges(node)
    else:
        x = node.inputs[0].typed.interval
        inputs, weights = (x.lo, x.hi), weight_range(node)
    return Packing.of(inputs, weights, folding.input_lanes, block) is not None


def path(family: str) -> Path:
    return Path(costs.__file__).parent / f"samples_{family}.csv"


@cache
def read(family: str) -> list[Row]:
    """Rows whose case is still there with that folding, and queues of that depth."""
    known = {tuple(_columns(key)): key for key in all_keys(family)}
    rows = []
    with path(family).open(newline="") as file:
        for line in csv.DictReader(file):
            key = known.get(tuple(line[column] for column in COLUMNS[:6]))
            if key is not None:
                rows.append(Row(key, Resources(**{kind: int(line[kind]) for kind in KINDS})))
    return rows


def write(family: str, rows: Sequence[Row]) -> None:
    with path(family).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow([*_columns(row.key), *(getattr(row.cells, kind) for kind in KINDS)])


def _columns(key: Key) -> list[str]:
    _, folding, depth = key.bench
    return [
        key.op, key.case, str(folding.input_lanes), str(folding.output_lanes), folding.multiplier, str(depth),
    ]  # fmt: skip


def _bench(family: str, key: Key) -> Bench:
    """The case for a device of ``family``: operands are cut to what its multiplier blocks take."""
    case, folding, depth = key.bench
    cut = folding.multiplier not in ("", "serial", "table", "shift_add")
    cut = cut or (key.op == "requantize" and not folding.multiplier)
    if family != "ecp5" and cut:
        folding = replace(folding, part=costs.FAMILIES[family].dsp_width - 1)
    return Bench(case, folding, depth)


@cache
def predicted(family: str, key: Key) -> Resources:
    """The operator's own model."""
    bench = _bench(family, key)
    part = find_board(FAMILIES[family]).part
    return hardware(key.op).resources(bench.node, bench.decision, part)


def synthesize(family: str, which: Sequence[Key], folder: Path, *, renames: bool = True) -> list[Row]:
    """What yosys makes of the cores: one run, each a module of its own that is mapped on its own. Where it dies, once
    more under other names if ``renames`` (see :func:`hwflow.toolchain.yosys.died_in_abc`); under them a few more
    flip-flops that hold the same become one. Multiplier blocks are counted after two products went into one."""
    (folder / "rom.v").write_text(VERILOG.read_text())
    names = [f"core_{number}" for number in range(len(which))]
    for name, key in zip(names, which, strict=True):
        (folder / f"{name}.il").write_text(rtlil.convert(_bench(family, key).build().component, name=name))
    instances = "".join(f"(* keep *) {name} i_{name} ();\n" for name in names)
    (folder / "all.v").write_text(f"module all;\n{instances}endmodule\n")
    commands = ["read_verilog rom.v", *(f"read_rtlil {name}.il" for name in names)]
    commands += [*(f"setattr -mod -set keep_hierarchy 1 {name}" for name in names), "read_verilog all.v"]
    for renaming in ([], ["hierarchy -top all", *RENAMING])[: 1 + renames]:
        results = ("tee -q -o stat.json stat -json", "write_json all.json")
        script = "; ".join([*commands, *renaming, *mapping(SYNTHESIS[family], "all", folder), *results])
        try:
            tool.run(YOSYS.find(), ["-p", script], folder, folder / "log", step="synthesis", remedy="read the log")
            break
        except tool.ToolError:
            if renaming or not renames:
                raise
    modules = json.loads((folder / "all.json").read_text())["modules"]
    rows = []
    for name, key in zip(names, which, strict=True):
        cells = read_statistics(folder / "stat.json", family, name)
        cells["dsp"] -= pack({"modules": {name: modules[name]}}, family).pairs.get("multipliers", 0)
        rows.append(Row(key, Resources(**cells)))
    return rows


def error(row: Row, model: Resources) -> float:
    """The greatest share by which LUTs or flip-flops are off; infinite where blocks are."""
    if (model.dsp, model.bram) != (row.cells.dsp, row.cells.bram):
        return float("inf")
    return max(abs(getattr(model, kind) - getattr(row.cells, kind)) / max(1, getattr(row.cells, kind))
               for kind in ("lut", "ff"))


def deviations(row: Row, model: Resources, share: float = 0.0) -> list[str]:
    """What is off by more than it may be: look-up tables and flip-flops by ``share`` where that is more than for every
    case, blocks at all."""
    found = []
    for kind in KINDS:
        there, wanted = getattr(model, kind), getattr(row.cells, kind)
        allowed = max(CELLS_OFF, max(SHARE, share) * wanted) if kind in ("lut", "ff") else 0
        if abs(there - wanted) > allowed:
            found.append(f"{kind} {there}, found {wanted}")
    return found
