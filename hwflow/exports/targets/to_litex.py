"""A module of LiteX: stream endpoints, and registers on the CSR bus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hwflow.codegen.emitted.comments import in_comment
from hwflow.display import show
from hwflow.exports.exported_core import RST, ExportedCore
from hwflow.exports.hardware.axis_top import describe
from hwflow.exports.targets import Target, class_name
from hwflow.sim.manifest import Stream

_MODULE = '''\
# A module of LiteX around the core of the ONNX model {model}, made by hwflow.

import os

from migen import ClockSignal, If, Instance, ResetSignal

from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import CSRField, CSRStatus, CSRStorage

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = {sources!r}
WEIGHTS_DIR = os.path.join(HERE, "weights")  # as the tools see it


class {class_}(LiteXModule):
    """The endpoints have `data` (elements in whole bytes, the first in the lowest), `keep` (a bit for each byte that
    carries an element) and `last` (a frame's last beat); `first` is not used. Clock domain: sys.

    CSRs: `control.reset` (write 1: reset, with the counters), `status.error` (a frame of wrong length since reset),
    `frames_in` and `frames_out` (frames since reset, of the first stream of each kind).

    `weights_dir`: the folder of the weights' files as the tools see it.
    """

    def __init__(self, platform=None, weights_dir=WEIGHTS_DIR):
{endpoints}
        self.control = CSRStorage(fields=[CSRField("reset", size=1, pulse=True, description="Write 1: reset.")])
        self.status = CSRStatus(fields=[CSRField("error", size=1, description="A frame of wrong length since reset.")])
        self.frames_in = CSRStatus(32, description="Frames taken since reset.")
        self.frames_out = CSRStatus(32, description="Results given since reset.")

        # # #

        reset = self.control.fields.reset
        for counter, port in ((self.frames_in.status, self.{sink}), (self.frames_out.status, self.{source})):
            self.sync += If(reset,
                counter.eq(0),
            ).Elif(port.valid & port.ready & port.last,
                counter.eq(counter + 1),
            )
        self.specials += Instance("{name}",{parameter}
            i_{clock}=ClockSignal("sys"),
            i_{reset}={level},
{connections}
            o_error=self.status.fields.error,
        )
        if platform is not None:
            for file in SOURCES:
                platform.add_source(os.path.join(HERE, file))
'''


def _write(core: ExportedCore, folder: Path) -> Sequence[str]:
    names = dict(_names(core))
    sink, source = names[core.inputs[0].port], names[core.outputs[0].port]
    endpoints, connections = [], []
    for stream in core.streams:
        name = names[stream.port]
        endpoints.append(f"        # {describe(stream)}")
        layout = f'[("data", {8 * stream.tdata_bytes}), ("keep", {stream.tdata_bytes})]'
        endpoints.append(f"        self.{name} = stream.Endpoint({layout})")
        way, back = ("o", "i") if stream.is_output else ("i", "o")
        pins = {pin: way for pin in ("data", "keep", "last", "valid")} | {"ready": back}
        connections += [f"            {way}_{stream.port}_t{pin}=self.{name}.{pin}," for pin, way in pins.items()]
    in_reset = 'ResetSignal("sys") | reset'
    class_ = class_name(core.name)
    (folder / f"{core.name}.py").write_text(
        _MODULE.format(
            model=in_comment(show(core.model)), sources=core.rtl, class_=class_, endpoints="\n".join(endpoints),
            sink=sink, source=source, name=core.name,
            clock=core.clock, reset=core.reset, level=in_reset if core.reset == RST else f"~({in_reset})",
            connections="\n".join(connections),
            parameter="\n            p_WEIGHTS_DIR=weights_dir," if core.weights else "",
        )
    )
    return (
        f"`{core.name}.py` has the module `{class_}`, a `LiteXModule` with the endpoints "
        f"{', '.join(f'`{name}`' for name in names.values())}:",
        "",
        "```python",
        f"from {core.name} import {class_}",
        "",
        f"self.{core.name} = {class_}(platform)",
        f"self.comb += some_source.connect(self.{core.name}.{sink})",
        "```",
        "",
        "Its CSRs are found as those of any module of the SoC. DMA engines of LiteX (`WishboneDMAReader`,",
        "`WishboneDMAWriter`) connect to the endpoints by stream converters of LiteX, with `keep` all ones.",
    )


def _names(core: ExportedCore) -> Iterator[tuple[str, str]]:
    """Yield each stream's port with its endpoint's name: sink and source, numbered where there are several."""

    def numbered(kind: str, streams: tuple[Stream, ...]) -> Iterator[tuple[str, str]]:
        for k, stream in enumerate(streams):
            yield stream.port, kind if len(streams) == 1 else f"{kind}{k}"

    yield from numbered("sink", core.inputs)
    yield from numbered("source", core.outputs)


TARGET = Target("A module of LiteX.", RST, _write)
