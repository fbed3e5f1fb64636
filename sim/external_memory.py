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
_TAKEN = """
    reg [{}:0] taken;
    always @(negedge clk) taken <= data;"""


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
    outside = memory["kind"] == "sdram"  # its clock is the design's, inverted, and words are taken at a falling edge
    return f"""module {module}{SUFFIX}(
{heads}
);
{wires}
    wire [{memory["model"]["WIDTH"] - 1}:0] data;{_TAKEN.format(memory["model"]["WIDTH"] - 1) if outside else ""}
    assign {_PREFIX}dq_i = {"taken" if outside else "data"};
    assign {_PREFIX}filled = 1'b1, {_PREFIX}load = 0, {_PREFIX}load_valid = 1'b0;
    {module} core({joined});
    hwflow_{memory["kind"]} #({parameters}, .FILE("{memory["image"]}")) memory(
        .clk({"~clk" if outside else "clk"}), {pins}, .dq_i({_PREFIX}dq_o), .dq_o(data)
    );
endmodule
"""
