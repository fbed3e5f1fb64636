"""A component of Amaranth that instantiates the Verilog."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hwflow.codegen.emitted.comments import in_comment
from hwflow.display import show
from hwflow.exports.exported_core import RST, ExportedCore
from hwflow.exports.hardware.axis_top import describe
from hwflow.exports.targets import Target, class_name

_MODULE = '''\
"""A component of Amaranth around the core of an ONNX model, made by hwflow."""

from pathlib import Path

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

HERE = Path(__file__).resolve().parent
FILES = {files!r}
WEIGHTS_DIR = "weights"  # as the tools see it: a platform's build has the files there


def beat(size):
    """A beat of an AXI4-Stream: elements in whole bytes, the first in the lowest, and the bytes that carry one."""
    return data.StructLayout({{"data": 8 * size, "keep": size, "last": 1}})


class {class_}(wiring.Component):
    """The core of the ONNX model {model}. Domain: sync.

    `error`: a frame of wrong length since reset. `weights_dir`: the folder of the weights' files as the tools see it.
    """

{members}
    error: Out(1)

    def __init__(self, weights_dir=WEIGHTS_DIR):
        self.weights_dir = weights_dir
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        if platform is not None:
            for file in FILES:
                platform.add_file(file, (HERE / file).read_bytes())
        m.submodules.core = Instance(
            "{name}",{parameter}
            i_{clock}=ClockSignal("sync"),
            i_{reset}={level}ResetSignal("sync"),
{connections}
            o_error=self.error,
        )
        return m
'''


def _write(core: ExportedCore, folder: Path) -> Sequence[str]:
    members, connections = [], []
    for stream in core.streams:
        members.append(f"    # {describe(stream)}")
        kind = "Out" if stream.is_output else "In"
        members.append(f"    {stream.port}: {kind}(stream.Signature(beat({stream.tdata_bytes})))")
        way, back = ("o", "i") if stream.is_output else ("i", "o")
        for pin in ("data", "keep", "last"):
            connections.append(f"            {way}_{stream.port}_t{pin}=self.{stream.port}.payload.{pin},")
        connections.append(f"            {way}_{stream.port}_tvalid=self.{stream.port}.valid,")
        connections.append(f"            {back}_{stream.port}_tready=self.{stream.port}.ready,")
    class_ = class_name(core.name)
    model = in_comment(show(core.model)).replace("\\", "\\\\").replace('"', '\\"')
    (folder / f"{core.name}.py").write_text(
        _MODULE.format(
            files=[*core.rtl, *core.tables], class_=class_, model=model, members="\n".join(members), name=core.name,
            parameter="\n            p_WEIGHTS_DIR=self.weights_dir," if core.weights else "", clock=core.clock,
            reset=core.reset, level="" if core.reset == RST else "~", connections="\n".join(connections),
        )
    )
    return (
        f"`{core.name}.py` has the component `{class_}`, whose members are the streams. A platform's",
        "build gets the Verilog and the weights by it. Amaranth's own simulator runs no Verilog: there,",
        "`hwflow.component(design)` is the same core in Amaranth.",
        "",
        "```python",
        f"from {core.name} import {class_}",
        "",
        f"m.submodules.{core.name} = {core.name} = {class_}()",
        f"wiring.connect(m, some_source, {core.name}.{core.inputs[0].port})",
        "```",
    )


TARGET = Target("A component of Amaranth.", RST, _write)
