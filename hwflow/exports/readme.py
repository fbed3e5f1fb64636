"""The README of an exported core."""

from __future__ import annotations

from collections.abc import Sequence

from hwflow.codegen.emitted.comments import in_comment
from hwflow.display import show
from hwflow.exports.exported_core import ARESETN, ExportedCore
from hwflow.exports.hardware.axis_top import describe, ports

_TEXT = """\
# {name}

A quantized neural network, made by hwflow {version} from the ONNX model {model}. {what}

| | |
|---|---|
| top module | `{name}`, in `rtl/{name}.v` |
| clock it was made for | {mhz:g} MHz |
| frames | one every {interval:,} cycles: {rate:,.0f} per second at that clock |
| latency | {latency} cycles from a frame's first beat to its result's first one |

## Ports

| port | bits | direction | what |
|---|---|---|---|
{ports}

{streams}

The streams are AXI4-Stream (ARM IHI 0051): `tvalid` stays until `tready`, with the same `tdata`, `tkeep` and `tlast`;
all outputs but `error` come from flip-flops. An element is extended to whole bytes, the first one of a beat is in the
lowest bytes. `tkeep` marks the bytes that carry elements: of a pixel's last beat some may be null bytes. A beat at an
input must have all of its elements' bytes, and `tlast` ends each frame; else `error` rises and stays until reset.

{reset}

## Use

{use}
{weights}"""

_WEIGHTS = """
The weights are in `weights/`. Simulators and synthesis read them by `$readmemh` from the folder of the parameter
`WEIGHTS_DIR`, "weights" unless it is set: an absolute path, or one from where the tool runs. A simulation without them
ends with an error. Vivado goes on with zeros, and a critical warning: `set_msg_config -id {Synth 8-4445} -new_severity
ERROR` makes an error of it. With `hwflow synth --inline-weights` there are no such files.
"""


def readme(core: ExportedCore, what: str, use: Sequence[str]) -> str:
    """Return the text. ``what``: the export's target, a sentence; ``use``: how to use it, lines of Markdown."""
    rows = "\n".join(
        f"| `{port.name}` | {port.bits or 1} | {'out' if port.out else 'in'} | {port.what} |" for port in ports(core)
    )
    level = "low" if core.reset == ARESETN else "high"
    reset = (
        f"`{core.reset}` is sampled at the rising edge, active {level}, for one cycle or more. In reset no `tvalid` "
        "rises and nothing is taken; what is under way is lost, and the first beat afterwards begins a frame."
    )
    return _TEXT.format(
        name=core.name, version=core.versions.get("hwflow") or "", model=in_comment(show(core.model)), what=what,
        mhz=core.mhz, interval=core.interval, rate=core.frames_per_second, ports=rows,
        latency=f"{core.latency:,}" if core.exact else f"at most {core.latency:,}",
        streams="\n".join(f"- `{stream.port}`: {describe(stream)}" for stream in core.streams), reset=reset,
        use="\n".join(use), weights=_WEIGHTS if core.weights else "",
    )
