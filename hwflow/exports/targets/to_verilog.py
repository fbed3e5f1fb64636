"""Plain Verilog: file list, instantiation template, constraints, test bench."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hwflow.exports.exported_core import RST, ExportedCore
from hwflow.exports.hardware.axis_top import ports
from hwflow.exports.hardware.bench import bench_file
from hwflow.exports.hardware.constraints import constraints
from hwflow.exports.targets import Target


def _write(core: ExportedCore, folder: Path) -> Sequence[str]:
    (folder / f"{core.name}.f").write_text("".join(f"{file}\n" for file in core.rtl))
    (folder / f"{core.name}_instance.v").write_text("\n".join(_template(core)) + "\n")
    (folder / "constraints").mkdir()
    for ending, text in constraints(core).items():
        (folder / "constraints" / f"{core.name}.{ending}").write_text(text)
    bench = bench_file(core)
    return (
        f"`{core.name}.f` lists the Verilog files; `{core.name}_instance.v` is an instance to copy; `constraints/`",
        "has the clock for Quartus and OpenSTA (`.sdc`), Vivado (`.xdc`) and nextpnr or Diamond on ECP5 (`.lpf`).",
        "A test bench with golden frames:",
        "",
        "```",
        f"iverilog -g2005 -o {core.name}_tb -f {core.name}.f {bench} && vvp -n {core.name}_tb +stall=30",
        "verilator --binary --timing -CFLAGS -std=gnu++20 -Wno-fatal "
        f"--top-module {core.name}_tb -f {core.name}.f {bench}",
        f"obj_dir/V{core.name}_tb +stall=30",
        "```",
    )


def _template(core: ExportedCore) -> Iterator[str]:
    yield f"// An instance of {core.name}: copy it, and connect its ports."
    listed = ports(core)
    for port in listed[2:]:
        yield f"wire {'' if port.bits is None else f'[{port.bits - 1}:0] '}{core.name}_{port.name};"
    yield ""
    yield f"{core.name}{' #(' if core.weights else f' {core.name} ('}"
    if core.weights:
        yield '    .WEIGHTS_DIR("weights")'
        yield f") {core.name} ("
    for port in listed:
        wire = port.name if port in listed[:2] else f"{core.name}_{port.name}"
        yield f"    .{port.name}({wire}){'' if port is listed[-1] else ','}  // {port.what}"
    yield ");"


TARGET = Target("Plain Verilog-2005.", RST, _write, bench=True)
