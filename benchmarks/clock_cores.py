"""Clock rate of every core by itself on ECP5-85F grade 6: place and route between registers, fmax and critical path.

    python benchmarks/clock_cores.py                 all cases
    python benchmarks/clock_cores.py mvu requantize  cases whose names begin so
    python benchmarks/clock_cores.py --ice40 mvu     iCE40 UP5K instead

Each core stands in a clock domain of its own between shift registers (inputs) and a folded chain (outputs), so that
pins do not count; several share a run of nextpnr. The neighbours' logic is there as well: an input's ``valid`` and an
output's ``ready`` come from an AND of three registers.

Multiplier blocks and block RAMs are taken as if their registers had been packed into them (see
:func:`with_block_registers`): flip-flops at both operands, two behind a product, one behind a memory.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import measure_cores as cores
from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.rom import VERILOG, Table
from hdl_lib.requantizers.requantize_multiples import Digit, MultiplesRequantizer
from hdl_lib.requantizers.requantize_search import SearchRequantizer
from hdl_lib.streams.fifo import Fifo
from hdl_lib.streams.fork import Fork
from hdl_lib.streams.frame_sync import FrameSync
from hdl_lib.streams.top_k import TopK, TopTree
from hdl_lib.streams.width_converter import WidthConverter
from hwflow.toolchain.nextpnr import NEXTPNR_ECP5, NEXTPNR_ICE40
from hwflow.toolchain.yosys import SYNTHESIS, YOSYS, mapping

Built = tuple[wiring.Component, Mapping[str, str]]
DOMAINS = 8  # cores a run of nextpnr: each takes a global clock net
BLOCKS = 156  # multiplier blocks of the part
OPTIONS = {
    "ecp5": ["--85k", "--package", "CABGA381", "--speed", "6", "--lpf-allow-unconstrained", "--freq", "250"],
    "ice40": ["--up5k", "--package", "sg48", "--freq", "60"],
}


def measured(core: str, *row: object) -> Callable[[], Built]:
    """Build a core of benchmarks/measure_cores.py with a configuration of its columns."""
    kind = cores.CORES[core]
    return lambda: kind.build(dict(zip(kind.columns, row, strict=True)))


def alone(make: Callable[[], wiring.Component]) -> Callable[[], Built]:
    """Build a core that reads no files."""
    return lambda: (make(), {})


def search(stages: int, blocks: int, lanes: int) -> Built:
    """Build a binary search of s24 with results of 8 bits in a table; random bounds."""
    files: dict[str, str] = {}
    tables: list[Table] = []
    for index, (words, width) in enumerate([(blocks << s, 24) for s in range(stages)] + [(blocks << stages, 8)]):
        _, file = cores.random_table(words, width)
        files[f"t{index}.mem"] = file["table.mem"]
        tables.append(Table(None, f"t{index}.mem", width, words))
    core = SearchRequantizer(
        Shape(24, True), Shape(8, True), lanes=lanes, channels=blocks * lanes, bound_shape=Shape(24, True),
        stages=stages, bounds=tables[:-1] * lanes, values=tables[-1:] * lanes, depth=12,
    )  # fmt: skip
    return core, files


def multiples(bits: int, blocks: int) -> Built:
    """Build a requantizer of s20 with words of 28 bits for digits of ``bits``; random tables."""
    files: dict[str, str] = {}
    tables: list[Table] = []
    digits = []
    for first in range(0, 20, bits):
        digits.append(Digit(first, min(bits, 20 - first), Shape(28, True), max(first, bits)))
        words = blocks << digits[-1].bits
        _, file = cores.random_table(words, 28)
        files[f"t{first}.mem"] = file["table.mem"]
        tables.append(Table(None, f"t{first}.mem", 28, words))
    core = MultiplesRequantizer(
        Shape(20, True), Shape(8, True), lanes=1, channels=blocks, digits=digits, tables=tables, shift=30, low=-128,
        high=127, depth=9,
    )
    return core, files


CASES: dict[str, Callable[[], Built]] = {
    # pe, simd, input, weight, accumulator, synapse fold, neuron fold, multiplier, depth
    "mvu_1x1_s24": measured("mvu", 1, 1, 8, 8, 24, 16, 16, "dsp", 8),
    "mvu_4x4_s20": measured("mvu", 4, 4, 8, 8, 20, 9, 4, "dsp", 8),
    "mvu_8x9_s28": measured("mvu", 8, 9, 8, 8, 28, 64, 8, "dsp", 8),
    "mvu_16x8_s24": measured("mvu", 16, 8, 8, 8, 24, 72, 8, "dsp", 4),
    "mvu_2x9_whole": measured("mvu", 2, 9, 8, 8, 20, 1, 8, "dsp", 12),
    "mvu_4x4_s24_wide": measured("mvu", 4, 4, 8, 20, 34, 36, 4, "dsp", 10),
    "mvu_lut_4x4_s20": measured("mvu", 4, 4, 8, 8, 20, 9, 4, "lut", 8),
    "mvu_lut_8x8_s16": measured("mvu", 8, 8, 4, 4, 16, 16, 4, "lut", 8),
    "mvu_xnor_16x32": measured("mvu", 16, 32, 1, 1, 10, 18, 4, "xnor", 8),
    # width, height, channels, lanes, element, kernel, stride, pad, dilation, rows, depth
    "window_28x28_1": measured("sliding_window", 28, 28, 1, 1, "u8", 3, 1, 1, 1, 4, 5),
    "window_32x32_16_4": measured("sliding_window", 32, 32, 16, 4, "s8", 3, 1, 1, 1, 4, 5),
    "window_64x48_5_2": measured("sliding_window", 64, 48, 8, 2, "s8", 5, 1, 2, 1, 6, 5),
    "window_224_stride2": measured("sliding_window", 224, 224, 3, 3, "s8", 3, 2, 1, 1, 4, 5),
    "window_pool": measured("sliding_window", 28, 28, 8, 8, "u8", 2, 2, 0, 1, 4, 5),
    # element, channels, lanes, window, depth
    "pool_max_registers": measured("pool", "s8", 16, 16, 4, 5),
    "pool_max_memory": measured("pool", "s8", 64, 4, 9, 6),
    "pool_sum_registers": measured("sum_pool", "s8", "s14", 16, 8, 49, 5),
    "pool_sum_memory": measured("sum_pool", "s16", "s24", 64, 4, 49, 5),
    "top_1_s24": alone(lambda: TopK(Shape(24, True), 1, 1, 10, depth=5)),
    "top_1_s50": alone(lambda: TopK(Shape(50, True), 1, 1, 1000, depth=5)),
    "top_8_s16": alone(lambda: TopK(Shape(16, True), 1, 1, 1000, k=8, take="both", depth=5)),
    "top_tree_s16": alone(lambda: TopTree(Shape(16, True), 1, 10, 10, depth=6)),
    # a, b, output, multipliers of a, of b, lanes, channels, multiplier, depth
    "add_plain": measured("stream_add", "s8", "s8", "s9", "1", "1", 4, 16, "lut", 4),
    "add_constants": measured("stream_add", "s8", "s8", "s33", "12345679", "-10030277", 2, 16, "lut", 7),
    "add_blocks": measured("stream_add", "s8", "s8", "s33", "12345679", "-10030277", 2, 16, "dsp", 5),
    "add_tables": measured("stream_add", "s20", "s8", "s30", "random9", "96", 2, 64, "dsp", 5),
    "add_tables_lut": measured("stream_add", "s8", "s8", "s18", "random9", "random9", 2, 64, "lut", 8),
    "product_blocks": measured("stream_product", "u8", "u8", "s18", 128, 100, 2, "dsp", 5),
    "product_lut": measured("stream_product", "s8", "s8", "s16", 0, 0, 4, "lut", 6),
    "concat_4": measured("concat", "u8", 4, 16, 8, 4),
    # input, output, multiplier, addend, shift, lanes, channels, depth, rounding
    "requantize_s20_u17": measured("requantize_mas", "s20", "s8", "u17", "s32", 24, 2, 64, 8, "floor"),
    "requantize_s24_u26": measured("requantize_mas", "s24", "s8", "u26", "s44", 36, 2, 256, 9, "floor"),
    "requantize_s28_u30": measured("requantize_mas", "s28", "s8", "u30", "s54", 40, 1, 32, 9, "floor"),
    "requantize_s24_even": measured("requantize_mas", "s24", "s8", "u20", "s44", 30, 1, 256, 9, "half_even"),
    "requantize_shift_even": measured("requantize_mas", "s24", "s8", "u1", "s24", 12, 4, 16, 8, "half_even"),
    # input, output, levels, lanes, channels, depth
    "thresholds_s20_15": measured("requantize_thresholds", "s20", "u4", 15, 2, 16, 8),
    "thresholds_s24_7": measured("requantize_thresholds", "s24", "s3", 7, 4, 64, 7),
    "search_s24_8": lambda: search(8, 16, 1),
    "multiples_s20_3": lambda: multiples(3, 64),
    "multiples_s20_5": lambda: multiples(5, 16),
    # input, output, inputs, lanes, channels, shared, depth
    "lookup_s12": measured("requantize_lookup", "s12", "s8", 4096, 1, 16, 1, 6),
    "lookup_s8_8": measured("requantize_lookup", "s8", "s8", 256, 8, 64, 1, 6),
    "converter_up_1_16": alone(lambda: WidthConverter(8, 16, 1, 16)),
    "converter_down_16_1": alone(lambda: WidthConverter(8, 16, 16, 1)),
    "converter_up_surplus": alone(lambda: WidthConverter(8, 30, 4, 16)),
    "converter_down_surplus": alone(lambda: WidthConverter(8, 30, 16, 4)),
    "converter_both_6_4": alone(lambda: WidthConverter(8, 24, 6, 4)),
    "fork_2": alone(lambda: Fork(128, 2, (2, 2))),
    "fork_3_deep": alone(lambda: Fork(64, 3, (2, 40, 100))),
    "fork_block": alone(lambda: Fork(64, 2, (2, 600), ("auto", "block"))),
    "fifo_register": alone(lambda: Fifo(128, 4, style="register")),
    "fifo_lutram_16": alone(lambda: Fifo(128, 16, style="lutram")),
    "fifo_lutram_100": alone(lambda: Fifo(64, 100, style="lutram")),
    "fifo_block": alone(lambda: Fifo(72, 700, style="block")),
    "frame_sync_large": alone(lambda: FrameSync(32, 224 * 224 * 3)),
}


def ports_of(core: wiring.Component, flow: Any) -> Iterator[tuple[str, Value]]:
    """Return name and value of each port bit vector of one direction."""
    for path, member, value in core.signature.flatten(core):
        if member.flow == flow:
            yield "_".join(map(str, path)), Value.cast(value)


class Bench(wiring.Component):
    """Cores side by side, each in a clock domain of its own, with a serial input and a serial output each."""

    def __init__(self, built: Sequence[wiring.Component]) -> None:
        self.built = built
        super().__init__({"clocks": In(len(built)), "serial": In(1), "parity": Out(len(built))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for index, core in enumerate(self.built):
            domain = f"clock{index}"
            m.domains += ClockDomain(domain, reset_less=True)
            m.d.comb += ClockSignal(domain).eq(self.clocks[index])
            m.submodules[f"case{index}"] = DomainRenamer(domain)(self._between_registers(core, index))
        return m

    def _between_registers(self, core: wiring.Component, index: int) -> Module:
        m = Module()
        m.submodules.core = core
        inputs = list(ports_of(core, In))
        chain = Signal(sum(len(v) if "payload" in name else 3 for name, v in inputs) + 1)
        m.d.sync += chain.eq(Cat(self.serial, chain))
        place = 0
        for name, value in inputs:
            if "payload" in name:
                m.d.comb += value.eq(chain[place : place + len(value)])
                place += len(value)
            else:
                m.d.comb += value.eq(chain[place : place + 3].all())
                place += 3
        outputs = Cat(value for _, value in ports_of(core, Out))
        taken, folded = Signal(len(outputs)), Signal(len(outputs))
        parity = Signal()
        m.d.sync += [taken.eq(outputs), folded.eq(Cat(self.serial, folded) ^ taken), parity.eq(folded[-1])]
        m.d.comb += self.parity[index].eq(parity)
        return m


def run(command: Sequence[str], cwd: Path) -> str:
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    text = result.stdout + result.stderr
    (cwd / "log").write_text(text)
    if result.returncode:
        raise RuntimeError(text[-3000:])
    return text


def synthesize(built: Sequence[Built], family: str, folder: Path) -> None:
    """Leave core.json in ``folder``."""
    for index, (core, files) in enumerate(built):
        # Cores are measured by tables of the same name: each its own.
        for attribute, value in list(vars(core).items()):
            if isinstance(value, Table) and value.file is not None:
                setattr(core, attribute, replace(value, file=f"{index}_{value.file}"))
            elif isinstance(value, tuple) and value and isinstance(value[0], Table):
                setattr(core, attribute, tuple(replace(t, file=f"{index}_{t.file}") for t in value))
        for name, text in files.items():
            (folder / f"{index}_{name}").write_text(text)
    (folder / VERILOG.name).write_text(VERILOG.read_text())
    (folder / "core.il").write_text(rtlil.convert(Bench([core for core, _ in built])))
    error: Exception | None = None
    for renaming in cores.RENAMINGS:
        scripts = [f"read_verilog {VERILOG.name}", "read_rtlil core.il", "hierarchy -top top", "proc"]
        scripts += [renaming.rstrip(";"), *mapping(SYNTHESIS[family], "top", folder), "write_json core.json"]
        try:
            run([*YOSYS.find().command, "-p", "; ".join(s for s in scripts if s)], folder)
            return
        except RuntimeError as failure:
            error = failure
    raise error or RuntimeError("yosys failed")


def multiplier_blocks(folder: Path) -> int:
    """Count the MULT18X18D in core.json."""
    modules = json.loads((folder / "core.json").read_text())["modules"]
    return sum(cell["type"] == "MULT18X18D" for module in modules.values() for cell in module["cells"].values())


def with_block_registers(netlist: dict[str, Any]) -> None:
    """Switch on the registers at both sides of each multiplier block and behind each block RAM.

    The flip-flops they stand for stay where they are: timing only, the function is another one.
    """
    for module in netlist["modules"].values():
        clock_of = {}
        for cell in module["cells"].values():
            if cell["type"] == "TRELLIS_FF":
                clock_of[cell["connections"]["Q"][0]] = cell["connections"]["CLK"]
        readers: dict[Any, list[Any]] = {}
        for cell in module["cells"].values():
            if cell["type"] == "TRELLIS_FF":
                for port in ("DI", "M"):
                    for bit in cell["connections"].get(port, []):
                        readers.setdefault(bit, cell["connections"]["CLK"])
        for cell in module["cells"].values():
            connections = cell["connections"]
            if cell["type"] == "MULT18X18D":
                sources = [b for p, bits in connections.items() if re.fullmatch(r"[AB]\d+", p) for b in bits]
                clock = next((clock_of[b] for b in sources if b in clock_of), None)
                outputs = [b for p, bits in connections.items() if re.fullmatch(r"P\d+", p) for b in bits]
                clock = clock or next((readers[b] for b in outputs if b in readers), None)
                registered = all(isinstance(b, str) or b in clock_of for b in sources)
                if clock is None or not registered:
                    print("  a multiplier block whose operands are not registers")
                    continue
                connections.update(CLK0=clock, CE0=["1"], RST0=["0"])
                cell.setdefault("port_directions", {}).update(CLK0="input", CE0="input", RST0="input")
                for name in ("INPUTA", "INPUTB", "PIPELINE", "OUTPUT"):
                    cell["parameters"][f"REG_{name}_CLK"] = "CLK0"
                    cell["parameters"][f"REG_{name}_CE"] = "CE0"
                    cell["parameters"][f"REG_{name}_RST"] = "RST0"
            elif cell["type"] in ("DP16KD", "PDPW16KD"):
                outputs = [b for p, bits in connections.items() if re.fullmatch(r"DO[AB]?\d+", p) for b in bits]
                if any(b in readers for b in outputs):
                    cell["parameters"].update(REGMODE_A="OUTREG", REGMODE_B="OUTREG", REGMODE="OUTREG")


def clock_rates(count: int, family: str, folder: Path, *, packed: bool) -> list[tuple[float, list[str]]]:
    """Return fmax and the critical path of each clock domain, in order."""
    netlist = json.loads((folder / "core.json").read_text())
    if family == "ecp5" and packed:
        with_block_registers(netlist)
    (folder / "packed.json").write_text(json.dumps(netlist))
    tool = {"ecp5": NEXTPNR_ECP5, "ice40": NEXTPNR_ICE40}[family]
    command = [*tool.find().command, *OPTIONS[family], "--timing-allow-fail", "--json", "packed.json"]
    run([*command, "--seed", "1", "--report", "report.json"], folder)
    report = json.loads((folder / "report.json").read_text())
    results: dict[int, tuple[float, list[str]]] = {}
    for net, entry in report["fmax"].items():
        found = re.search(r"clocks\[?(\d+)|clocks\$.*\[(\d+)\]", net)
        number = int(next(g for g in found.groups() if g)) if found else 0
        path = next((p["path"] for p in report["critical_paths"] if p["from"] == p["to"] == f"posedge {net}"), [])
        results[number] = float(entry["achieved"]), [described(part) for part in path]
    return [results.get(index, (0.0, [])) for index in range(count)]


def described(part: Mapping[str, Any]) -> str:
    """Describe a piece of the path: its delay, and the cell and port it leads to."""
    to = part["to"]
    name = re.sub(r"^case\d+\.core\.", "", to.get("cell", "?"))
    return f"{part['type']:8} {part['delay']:.2f} {name}.{to.get('port', '?')}" + (
        f"  net {re.sub(r'^case[0-9]+.core.', '', part['net'])}" if part["type"] == "routing" else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Clock rate of every core by itself.")
    parser.add_argument("cases", nargs="*", help="beginnings of names; all if none")
    parser.add_argument("--ice40", action="store_true", help="iCE40 UP5K instead of ECP5-85F grade 6")
    parser.add_argument("--paths", type=int, default=0, help="print critical paths of the so many slowest of a run")
    parser.add_argument("--unpacked", action="store_true", help="block registers as yosys leaves them: none")
    parser.add_argument("--domains", type=int, default=DOMAINS, help="cores a run of nextpnr")
    arguments = parser.parse_args()
    family = "ice40" if arguments.ice40 else "ecp5"
    domains = 1 if arguments.ice40 else arguments.domains
    names = [n for n in CASES if not arguments.cases or n.startswith(tuple(arguments.cases))]
    batches = [names[start : start + domains] for start in range(0, len(names), domains)]
    while batches:
        batch = batches.pop(0)
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            synthesize([CASES[name]() for name in batch], family, folder)
            if multiplier_blocks(folder) > BLOCKS and len(batch) > 1:
                batches = [batch[: len(batch) // 2], batch[len(batch) // 2 :], *batches]
                continue
            rates = clock_rates(len(batch), family, folder, packed=not arguments.unpacked)
        slowest = sorted(range(len(batch)), key=lambda index: rates[index][0])[: arguments.paths]
        for index, (name, (rate, path)) in enumerate(zip(batch, rates, strict=True)):
            print(f"{name:24} {rate:7.1f} MHz", flush=True)
            if index in slowest:
                print("".join(f"      {line}\n" for line in path), end="", flush=True)


if __name__ == "__main__":
    main()
