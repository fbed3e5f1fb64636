"""What compiling costs as networks grow: a Markdown table of `hwflow synth --until verilog` and the exponents.

    python benchmarks/scale.py [convolutions] [blocks] [pixels] [channels] [weights] [resnet50]

int8 QDQ models with random weights. Chains have a budget in proportion to their length, which limits them. Other
networks have the board's; one that is refused is compiled with the budget that the refusal names, and only that run
counts. ``seconds``: processor seconds of all processes; ``MiB``: the peak of the greatest one. An exponent is the slope
of a least-squares line through the logarithms of size and cost, less the cost of a network of one small layer.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from huge_networks import Network, mobilenetv2, synth


def convolutions(count: int, channels: int = 8, size: int = 16) -> onnx.ModelProto:
    """Build ``count`` convolutions 3x3, one behind the other."""
    network = Network()
    value, inputs = network.quantized("x"), channels
    for _ in range(count):
        value = network.conv(value, inputs, channels, 3)
    return network.between("convolutions", [1, channels, size, size], value, [1, channels, size, size])


def channels(count: int) -> onnx.ModelProto:
    """Build four convolutions 3x3 of ``count`` channels on 16x16 pixels."""
    return convolutions(4, count)


def blocks(count: int) -> onnx.ModelProto:
    """Build ``count`` residual blocks of two convolutions 3x3 of 16 channels on 32x32 pixels."""
    network = Network()
    value = network.quantized("x")
    for _ in range(count):
        way = network.conv(network.conv(value, 16, 16, 3), 16, 16, 3, relu=False)
        value = network.quantized(network.node("Relu", network.node("Add", way, value)))
    return network.between("blocks", [1, 16, 32, 32], value, [1, 16, 32, 32])


def resnet50(size: int) -> onnx.ModelProto:
    """Build ResNet-50 on ``size`` x ``size`` pixels."""
    network = Network()
    value = network.conv(network.quantized("x"), 3, 64, 7, 2)
    value = network.node("MaxPool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = 64
    for middle, count, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for number in range(count):
            stride, outputs = 1 if number else first, 4 * middle
            way = network.conv(network.conv(value, inputs, middle, 1), middle, middle, 3, stride)
            way = network.conv(way, middle, outputs, 1, relu=False)
            if inputs != outputs:
                value = network.conv(value, inputs, outputs, 1, stride, relu=False)
            value = network.quantized(network.node("Relu", network.node("Add", way, value)))
            inputs = outputs
    return network.model("resnet50", size, network.dense(network.pooled(value), inputs, 1000))


def dense(count: int) -> onnx.ModelProto:
    """Build one dense layer of about ``count`` weights."""
    width = round(count**0.5)
    network = Network()
    value = network.dense(network.quantized("x"), width, width)
    return network.between("dense", [1, width], value, [1, width])


@dataclass(frozen=True)
class Series:
    """Networks of growing ``sizes``. Costs are drawn against ``against`` of a size. ``budget``: times the size."""

    made: Callable[[int], onnx.ModelProto]
    sizes: tuple[int, ...]
    unit: str
    against: Callable[[int], int] = lambda size: size
    budget: dict[str, int] = field(default_factory=dict)

    def options(self, size: int) -> list[str]:
        """Return the budget as an option."""
        amounts = ",".join(f"{name}={each * size}" for name, each in self.budget.items())
        return ["--budget", amounts] if amounts else []


SERIES = {
    "convolutions": Series(
        convolutions, (12, 25, 50, 100), "layers", budget={"lut": 1700, "ff": 2500, "dsp": 13, "bram": 17}
    ),
    "blocks": Series(blocks, (3, 6, 12, 24), "blocks", budget={"lut": 6000, "ff": 10000, "dsp": 50, "bram": 60}),
    "pixels": Series(mobilenetv2, (56, 112, 224), "pixels", lambda size: size * size),
    "channels": Series(channels, (16, 32, 64, 128), "weights", lambda count: 4 * 9 * count * count),
    "weights": Series(dense, (1 << 16, 1 << 18, 1 << 20, 1 << 22), "weights"),
    "resnet50": Series(resnet50, (64,), "pixels", lambda size: size * size),
}
COLUMNS = ("series", "size", "parameters", "interval", "latency", "LUT", "seconds", "MiB")


@dataclass(frozen=True)
class Cost:
    """Processor seconds and peak of memory in MiB."""

    seconds: float
    peak: float


def compiled(model: onnx.ModelProto, folder: Path, *options: str) -> tuple[list[str], Cost]:
    """Return what a network becomes, as cells of the table, and what that costs."""
    path, out = folder / "model.onnx", folder / "out"
    onnx.save(model, path)
    code, text, seconds, peak = synth(path, "-o", str(out), "--until", "verilog", *options)
    while code == 1 and (named := re.search(r"budget of (?:about )?(\S+, \S+, \S+, \S+) (?:should|suff)", text)):
        budget = named.group(1).replace(" ", "")
        print(f"{path.name}: --budget {budget} after {seconds:.1f} s")
        code, text, seconds, peak = synth(path, "-o", str(out), "--until", "verilog", "--budget", budget)
    if code:
        raise SystemExit(f"must be compiled, not:\n{text}")
    report = json.loads((out / "report.json").read_text())
    numbers = (
        report["model"]["parameters"], report["timing"]["initiation_interval"], report["timing"]["latency"],
        report["resources"]["lut"]["predicted"],
    )
    return [f"{number:,}" for number in numbers], Cost(seconds, peak)


def exponent(sizes: list[int], costs: list[float]) -> float:
    """Return the slope of the line through the logarithms that fits best."""
    slope, _ = np.polyfit(np.log(sizes), np.log(np.maximum(costs, 1e-3)), 1)
    return float(slope)


def main() -> None:
    parser = argparse.ArgumentParser(description="What compiling costs as networks grow.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SERIES)} (default: all)")
    parser.add_argument("--most", type=int, help="leave out sizes above this")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(SERIES)
    if unknown:
        parser.error(f"NAME must be one of {', '.join(SERIES)}, not {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        _, start = compiled(convolutions(1), Path(folder))
    print(f"Start: {start.seconds:.1f} s, {start.peak:.0f} MiB\n")
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS), flush=True)
    found = []
    for name in arguments.names or SERIES:
        series = SERIES[name]
        sizes = [size for size in series.sizes if arguments.most is None or size <= arguments.most]
        costs = []
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                cells, cost = compiled(series.made(size), Path(folder), *series.options(size))
            costs.append(cost)
            row = (name, f"{size:,}", *cells, f"{cost.seconds:.1f}", f"{cost.peak:.0f}")
            print("| " + " | ".join(row) + " |", flush=True)
        if len(sizes) > 1:
            against = [series.against(size) for size in sizes]
            seconds = exponent(against, [cost.seconds - start.seconds for cost in costs])
            memory = exponent(against, [cost.peak - start.peak for cost in costs])
            found.append(f"| {name} | {series.unit} | {seconds:.2f} | {memory:.2f} |")
    if found:
        print("\n| series | against | exponent of seconds | of memory |\n|---|---|---|---|")
        print("\n".join(found))


if __name__ == "__main__":
    main()
