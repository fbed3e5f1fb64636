"""Networks far beyond every part, to Verilog all the same: one Markdown row each, by `hwflow synth`.

    python benchmarks/huge_networks.py [--size 224] [resnet18] [mobilenetv2] [vgg]

ResNet-18, a network like MobileNetV2 and one like VGG-16 (dense layers of 1,024), as int8 QDQ models with random
weights. hwflow refuses each first; the budget that it names then is what Verilog is made with.
``refused``: processor seconds until then. ``seconds``: processor seconds from the ONNX file to Verilog, of all
processes; memory: the peak of the greatest one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BOARD = "ulx3s_85f"
CLASSES = 1000
LEVEL = np.float32(0.05)  # of every activation
COLUMNS = (
    "network", "parameters", "macs", "refused", "interval", "latency at most", "LUT", "FF", "DSP", "BRAM", "seconds",
    "MiB",
)


class Network:
    """Nodes of a QDQ model, one behind the other."""

    def __init__(self, seed: int = 1) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(seed)

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_y"], name, **attributes))
        return f"{name}_y"

    def quantized(self, value: str) -> str:
        """Quantize to int8 and back."""
        level, zero = self.constant(LEVEL), self.constant(np.int8(0))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", value, level, zero), level, zero)

    def weights(self, *shape: int, fan: int) -> str:
        values = self._rng.integers(-127, 128, shape).astype(np.int8)
        level = np.float32(1 / (73 * np.sqrt(fan)))  # keeps the variance
        return self.node(
            "DequantizeLinear", self.constant(values), self.constant(level), self.constant(np.int8(0))
        )

    def conv(
        self, value: str, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, *, relu: bool = True
    ) -> str:
        each = inputs // groups
        weights = self.weights(outputs, each, kernel, kernel, fan=each * kernel * kernel)
        value = self.node(
            "Conv", value, weights, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4,
            group=groups,
        )
        return self.quantized(self.node("Relu", value) if relu else value)

    def dense(self, value: str, inputs: int, outputs: int, *, relu: bool = False) -> str:
        value = self.node("MatMul", value, self.weights(inputs, outputs, fan=inputs))
        return self.quantized(self.node("Relu", value) if relu else value)

    def pooled(self, value: str) -> str:
        """Add the mean of each channel."""
        return self.node("Flatten", self.quantized(self.node("GlobalAveragePool", value)), axis=1)

    def model(self, name: str, size: int, output: str) -> onnx.ModelProto:
        """Build a network from images of ``size`` rows and columns to classes."""
        return self.between(name, [1, 3, size, size], output, [1, CLASSES])

    def between(self, name: str, taken: list[int], output: str, given: list[int]) -> onnx.ModelProto:
        shapes = ("x", taken), (output, given)
        ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, shape) for end, shape in shapes]
        graph = helper.make_graph(self.nodes, name, ends[:1], ends[1:], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def resnet18(size: int) -> onnx.ModelProto:
    network = Network()
    value = network.conv(network.quantized("x"), 3, 64, 7, 2)
    value = network.node("MaxPool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = 64
    for outputs in (64, 128, 256, 512):
        for stride in (1 if outputs == 64 else 2, 1):
            way = network.conv(network.conv(value, inputs, outputs, 3, stride), outputs, outputs, 3, relu=False)
            if inputs != outputs:
                value = network.conv(value, inputs, outputs, 1, stride, relu=False)
            value = network.quantized(network.node("Relu", network.node("Add", way, value)))
            inputs = outputs
    return network.model("resnet18", size, network.dense(network.pooled(value), inputs, CLASSES))


def mobilenetv2(size: int) -> onnx.ModelProto:
    network = Network()
    value, inputs = network.conv(network.quantized("x"), 3, 32, 3, 2), 32
    for wider, outputs, count, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):
        for number in range(count):
            middle = inputs * wider
            way = network.conv(value, inputs, middle, 1) if wider > 1 else value
            way = network.conv(way, middle, middle, 3, 1 if number else first, middle)
            way = network.conv(way, middle, outputs, 1, relu=False)
            value = network.quantized(network.node("Add", way, value)) if number else way
            inputs = outputs
    value = network.pooled(network.conv(value, inputs, 1280, 1))
    return network.model("mobilenetv2", size, network.dense(value, 1280, CLASSES))


def vgg(size: int) -> onnx.ModelProto:
    network = Network()
    value, inputs = network.quantized("x"), 3
    for outputs, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            value, inputs = network.conv(value, inputs, outputs, 3), outputs
        value = network.node("MaxPool", value, kernel_shape=[2, 2], strides=[2, 2])
    value = network.node("Flatten", value, axis=1)
    value = network.dense(value, inputs * (size // 32) ** 2, 1024, relu=True)
    return network.model("vgg", size, network.dense(network.dense(value, 1024, 1024, relu=True), 1024, CLASSES))


NETWORKS: dict[str, Callable[[int], onnx.ModelProto]] = {"resnet18": resnet18, "mobilenetv2": mobilenetv2, "vgg": vgg}


def synth(model: Path, *options: str) -> tuple[int, str, float, float]:
    """Exit code and text of `hwflow synth`, all weights on the part, its processor seconds and the peak of memory in
    MiB."""
    command = [sys.executable, "-m", "hwflow.cli", "synth", str(model), "--board", BOARD, "--memory", "none", *options]
    with tempfile.TemporaryFile("w+") as log:
        program = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        return program.returncode, log.read(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def row(name: str, size: int, folder: Path) -> list[str]:
    """Return what becomes of a network."""
    model, out = folder / f"{name}.onnx", folder / name
    onnx.save(NETWORKS[name](size), model)
    code, text, refused, _ = synth(model, "-o", str(out))
    named = re.search(r"--budget of about (\S+, \S+, \S+, \S+) should hold it", text)
    if code != 1 or named is None:
        raise SystemExit(f"{name}: must be refused with a budget that is enough, not:\n{text}")
    budget = named.group(1).replace(" ", "")
    code, text, seconds, peak = synth(model, "-o", str(out), "--until", "verilog", "--budget", budget)
    if code:
        raise SystemExit(f"{name}: must be compiled with --budget {budget}, not:\n{text}")
    report = json.loads((out / "report.json").read_text())
    timing, of_model = report["timing"], report["model"]
    return [
        name, f"{of_model['parameters']:,}", f"{of_model['macs']:,}", f"{refused:.1f}",
        f"{timing['initiation_interval']:,}", f"{timing['latency']:,}",
        *(f"{report['resources'][kind]['predicted']:,}" for kind in ("lut", "ff", "dsp", "bram")),
        f"{seconds:.0f}", f"{peak:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Networks far beyond every part, to Verilog.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NETWORKS)} (default: all)")
    parser.add_argument("--size", type=int, default=224, help="rows and columns of an image, a multiple of 32")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(NETWORKS)
    if unknown:
        parser.error(f"NAME must be one of {', '.join(NETWORKS)}, not {', '.join(sorted(unknown))}")
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS), flush=True)
    for name in arguments.names or NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            print("| " + " | ".join(row(name, arguments.size, Path(folder))) + " |", flush=True)


if __name__ == "__main__":
    main()
