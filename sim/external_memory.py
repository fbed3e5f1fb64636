"""A design beside the model of its memory: top modules for simulators, with the ports of the design's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MODEL = Path(__file__).resolve().parent / "verilog" / "sdram.v"
FILE = "testbench/memory.v"
SUFFIX = "_with_memory"
_PREFIX = "sdram__"
_MODEL_PINS = ("cke", "cs_n", "ras_n", "cas_n", "we_n", "ba", "a", "dqm", "dq_oe")


def write_memory(out: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    """Write :data:`FILE` in an emitted folder, and add to its layers' module; return what the manifest ``table`` gets:
    which module and files simulators take, and the same of the layers."""
    memory, layers = table["memory"], dict(table["layers"])
    core = (out / table["sources"][0]).read_text()
    around = _around(core, str(table["top"]), memory)
    (out / FILE).write_text(f"// {table['top']} with its memory, for simulation.\n{around}\n{MODEL.read_text()}")
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
    pins = ", ".join(f".{pin}({_PREFIX}{pin})" for pin in _MODEL_PINS)
    return f"""module {module}{SUFFIX}(
{heads}
);
{wires}
    wire [{memory["model"]["WIDTH"] - 1}:0] data;
    reg [{memory["model"]["WIDTH"] - 1}:0] taken;
    always @(negedge clk) taken <= data;
    assign {_PREFIX}dq_i = taken;
    assign {_PREFIX}filled = 1'b1, {_PREFIX}load = 0, {_PREFIX}load_valid = 1'b0;
    {module} core({joined});
    hwflow_sdram #({parameters}, .FILE("{memory["image"]}")) memory(
        .clk(~clk), {pins}, .dq_i({_PREFIX}dq_o), .dq_o(data)
    );
endmodule
"""
