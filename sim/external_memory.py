"""A design beside the model of its memory: top modules for simulators, with the ports of the design's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MODELS = Path(__file__).resolve().parent / "verilog"
FILE = "testbench/memory.v"
SUFFIX = "_with_memory"
_PREFIX = "mem__"
_WIRES = ("filled", "load", "load_valid", "load_ready", "loaded")  # of its ports those that no memory has
# What is between a design and the pins of its memory, whose words are wire data; and how the model is connected.
_SDRAM = """
    wire [{high}:0] data;
    reg [{high}:0] taken;
    always @(negedge clk) taken <= data;  // its clock is the design's, inverted
    assign mem__dq_i = taken;
    hwflow_sdram #({parameters}) memory(.clk(~clk), {pins}, .dq_i(mem__dq_o), .dq_o(data));"""
_SPRAM = """
    hwflow_spram #({parameters}) memory(.clk(clk), {pins}, .dq_i(mem__dq_o), .dq_o(mem__dq_i));"""
_FLASH = """
    reg selected_n = 1'b1, sent = 1'b0, drives = 1'b0, holds = 1'b0;
    wire sends;
    wire [3:0] data;
    reg [3:0] taken;
    always @(posedge clk) begin
        selected_n <= mem__cs_n; sent <= mem__dq_o; drives <= mem__dq_oe; holds <= mem__hold;
        taken <= data;
    end
    assign mem__dq_i = taken;
    hwflow_flash #({parameters}) memory(
        .clk(~clk), .cs_n(selected_n), .dq_i({{holds, holds, 1'b0, sent}}), .dq_oe({{holds, holds, 1'b0, drives}}),
        .dq_o(data), .sends(sends)
    );"""
_BESIDE = {"sdram": _SDRAM, "spram": _SPRAM, "flash": _FLASH}


def write_memory(out: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    """Write :data:`FILE` in an emitted folder, and add to its layers' module; return what the manifest ``table`` gets:
    which module and files simulators take, and the same of the layers."""
    memory, layers = table["memory"], dict(table["layers"])
    core = (out / table["sources"][0]).read_text()
    around = _around(core, str(table["top"]), memory)
    model = (_MODELS / f"{memory['kind']}.v").read_text()
    (out / FILE).write_text(f"// {table['top']} with its memory, for simulation.\n{around}\n{model}")
    source = out / layers["source"]
    text = source.read_text()
    source.write_text(f"{text}\n{_around(text, layers['top'], memory)}")
    layers["top"] += SUFFIX
    return {"simulation": {"top": table["top"] + SUFFIX, "sources": [FILE]}, "layers": layers}


def _around(text: str, module: str, memory: Mapping[str, Any]) -> str:
    """Return a module around one in ``text`` whose ports are the same without those of its memory, which it has."""
    found = re.search(rf"(?ms)^module {module}\(.*?^endmodule$", text)
    assert found is not None, "the module is there"
    ports = re.findall(r"(?m)^  (input|output) ((?:\[\d+:0\] )?)(\S+);(?:  //.*)?$", found.group())
    own = [port for port in ports if not port[2].startswith(_PREFIX)]
    inner = [(width, name) for _, width, name in ports if name.startswith(_PREFIX)]
    heads = ",\n".join(f"    {way} {width}{name}" for way, width, name in own)
    wires = "\n".join(f"    wire {width}{name};" for width, name in inner)
    joined = ", ".join(f".{name}({name})" for *_, name in ports)
    parameters = ", ".join(f".{name}({value})" for name, value in memory["model"].items())
    taken = [*_WIRES, "dq_o", "dq_i"]
    pins = ", ".join(
        f".{pin}({name})" for _, name in inner if (pin := name.removeprefix(_PREFIX)) not in taken
    )
    file = f'.FILE("{memory["image"]}")'
    beside = _BESIDE[memory["kind"]].format(
        high=memory["word_bits"] - 1, parameters=f"{parameters}, {file}", pins=pins
    )
    return f"""module {module}{SUFFIX}(
{heads}
);
{wires}
    assign {_PREFIX}filled = 1'b1, {_PREFIX}load = 0, {_PREFIX}load_valid = 1'b0;
    {module} core({joined});{beside}
endmodule
"""
