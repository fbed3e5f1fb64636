"""Small random quantized graphs, and their way to an emitted design."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np

from hwflow.codegen import verilog
from hwflow.codegen.cores import separate
from hwflow.codegen.manifest_file import manifest
from hwflow.codegen.top import Top, memory_text
from hwflow.cores.registry import OPERATORS
from hwflow.ir.graph import Graph, Node, Port, Stage, Value, identity_order
from hwflow.numerics.functions.piecewise import Relu
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.passes import pipeline
from hwflow.schedule.schedule import Schedule
from hwflow.toolchain import tool
from hwflow.toolchain.yosys import YOSYS
from hwflow.types import IntType, TensorType
from tests.attributes import attributes_of


class Builder:
    """A quantized graph, node by node; types are known at once. Random numbers come from ``rng``."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.graph = Graph("random", Stage.QUANTIZED, [], [], [])

    def input(self, shape: tuple[int, ...], element: IntType) -> Value:
        value = Value(f"x{len(self.graph.inputs)}", TensorType(shape, element, element.interval))
        self.graph.inputs.append(Port(value.name, value, shape, identity_order(shape)))
        return value

    def output(self, value: Value) -> None:
        self.graph.outputs.append(
            Port(f"{value.name}_out", value, value.typed.shape, identity_order(value.typed.shape))
        )

    def node(self, op: str, *sources: Value, **attributes: object) -> Value:
        name = f"{op}{len(self.graph.nodes)}"
        operator = OPERATORS[op]
        types = [source.typed for source in sources]
        made = operator.derive(attributes_of(op, **attributes), types)
        (type_,) = operator.infer(made, types)
        result = Value(f"{name}_y", type_)
        self.graph.nodes.append(Node(name, list(sources), [result], made, (name,)))
        return result

    def conv2d(self, source: Value, outputs: int, kernel: int, stride: int, pad: int, weight: IntType) -> Value:
        channels = source.typed.shape[0]
        weights = self.rng.integers(weight.min, weight.max + 1, (outputs, channels, kernel, kernel))
        return self.node(
            "conv2d",
            source,
            weights=weights,
            strides=(stride, stride),
            pads=(pad,) * 4,
            dilations=(1, 1),
            pad_value=source.typed.interval.lo,
        )

    def dense(self, source: Value, outputs: int, weight: IntType) -> Value:
        return self.node(
            "dense", source, weights=self.rng.integers(weight.min, weight.max + 1, (outputs, source.typed.shape[-1]))
        )

    def max_pool2d(self, source: Value, kernel: int, stride: int) -> Value:
        return self.node(
            "max_pool2d",
            source,
            kernel=(kernel, kernel),
            strides=(stride, stride),
            pads=(0, 0, 0, 0),
            dilations=(1, 1),
        )

    def flatten(self, source: Value) -> Value:
        return self.node("reshape", source, shape=(int(np.prod(source.typed.shape)),))

    def requantize(self, source: Value, element: IntType, per_channel: bool = True) -> Value:
        """To ``element`` so that a good part of the input's interval saturates; scales are 32-bit floats as in ONNX."""
        channels = source.typed.shape[0] if per_channel else 1
        reach = max(1, source.typed.interval.hi, -source.typed.interval.lo)
        stages = tuple(
            (
                QuantizerStage(
                    Fraction(float(np.float32(self.rng.uniform(1.3, 2.6) * element.max / reach))),
                    Fraction(0),
                    (Relu(),) if self.rng.integers(2) else (),
                    Fraction(1),
                    0,
                    element.min,
                    element.max,
                ),
            )
            for _ in range(channels)
        )
        return self.node("requantize", source, axis=0, stages=stages)

    def done(self) -> Graph:
        return pipeline.run(self.graph, pipeline.QUANTIZED)


def random_graph(seed: int) -> Graph:
    """Convolutions, a pool or none, a dense layer; odd seeds: a value in the middle is read twice and both ways lead
    to an output; seeds divisible by 3: bits and small integers instead of bytes."""
    rng = np.random.default_rng(seed)
    build = Builder(rng)
    small = seed % 3 == 0
    element, weight = (IntType(2, False), IntType(2, True)) if small else (IntType(8, False), IntType(8, True))
    size = int(rng.integers(5, 9))
    value = build.input((int(rng.integers(1, 4)), size, size + 1), element)
    if rng.integers(3) == 0:
        value = build.max_pool2d(value, 2, 1)
    kernel = int(rng.integers(1, 4))
    value = build.conv2d(
        value,
        int(rng.integers(2, 6)),
        kernel,
        int(rng.integers(1, 3)),
        int(rng.integers(0, (kernel + 1) // 2 + 1)),
        weight,
    )
    value = build.requantize(value, element)
    shared = value
    if min(value.typed.shape[1:]) >= 3 and rng.integers(2):
        value = build.max_pool2d(value, 2, int(rng.integers(1, 3)))
    if min(value.typed.shape[1:]) >= 2:
        value = build.requantize(build.conv2d(value, int(rng.integers(1, 4)), 2, 1, 0, weight), element)
    value = build.dense(build.flatten(value), int(rng.integers(2, 5)), weight)
    build.output(build.requantize(value, element) if rng.integers(2) else value)
    if seed % 2:
        branch = build.max_pool2d(shared, 2, 2) if min(shared.typed.shape[1:]) >= 2 else shared
        build.output(build.conv2d(branch, 3, 1, 1, 0, weight))
    return build.done()


def meeting_graph(seed: int) -> Graph:
    """Ways that part and meet again. Seeds by their remainder modulo 4: 0: a residual block around two convolutions;
    1: one with a convolution on the short way, strides of 2, then a global sum; 2: two branches of unlike length joined
    channel by channel; 3: the same joined row by row (a whole frame of one waits), then multiplied with a third."""
    rng = np.random.default_rng(seed)
    build = Builder(rng)
    element, weight = (IntType(4, False), IntType(3, True)) if seed % 3 == 0 else (IntType(8, False), IntType(8, True))
    size, channels = int(rng.integers(4, 7)), int(rng.integers(2, 4))

    def convolution(source: Value, outputs: int, kernel: int, stride: int = 1) -> Value:
        result = build.conv2d(source, outputs, kernel, stride, kernel // 2, weight)
        return build.requantize(result, element, per_channel=False)

    start = convolution(build.input((2, size, size), element), channels, 3)
    match seed % 4:
        case 0:
            way = convolution(convolution(start, channels, 3), channels, 3)
            value = build.node("scaled_add", way, start, axis=0, multipliers=((3,), (5,)))
        case 1:
            way = convolution(convolution(start, channels, 3, 2), channels, 3)
            multipliers = (tuple(range(1, channels + 1)), (-7,))
            value = build.node("scaled_add", way, convolution(start, channels, 1, 2), axis=0, multipliers=multipliers)
            value = build.node(
                "sum_pool2d", build.requantize(value, element, per_channel=False), kernel=value.typed.shape[1:],
                strides=(1, 1), pads=(0,) * 4, dilations=(1, 1), pad_value=0,
            )
        case 2:
            ways = [convolution(convolution(start, 2, 3), 4, 1), convolution(start, 3, 1), start]
            value = build.conv2d(build.node("concat", *ways, axis=0), 3, 1, 1, 0, weight)
        case _:
            joined = build.node("concat", start, convolution(start, channels, 1), axis=1)
            value = build.node("product", joined, build.max_pool2d(joined, 1, 1), offsets=(0, 3))
    build.output(build.requantize(value, element, per_channel=False))
    return build.done()


def skewed_graph(blocks: int = 1) -> Graph:
    """A residual block whose long way is two convolutions with large windows, the short one a convolution of its own:
    as its results wait for the sum, they fill a queue larger than look-up tables should hold. ``blocks``: so many, one
    beside the other, of more and more channels."""
    build = Builder(np.random.default_rng(0))
    element = IntType(8, True)

    def convolution(source: Value, channels: int, kernel: int, stride: int) -> Value:
        result = build.conv2d(source, channels, kernel, stride, kernel // 2, element)
        return build.requantize(result, element, per_channel=False)

    start = build.input((8, 14, 14), element)
    for channels in (8 + 4 * block for block in range(blocks)):
        way = convolution(convolution(start, channels, 5, 2), channels, 5, 1)
        short = convolution(start, channels, 1, 2)
        total = build.node("scaled_add", way, short, axis=0, multipliers=((3,), (5,)))
        build.output(build.requantize(total, element, per_channel=False))
    return build.done()


def dataflow(graph: Graph) -> Graph:
    """Through the compiler's own passes."""
    return pipeline.run(graph, pipeline.DATAFLOW)


def emit(scheduled: Schedule, folder: Path) -> Path:
    """An output folder: Verilog, memory files, manifest."""
    top = Top(scheduled.plan, separate())
    yosys = YOSYS.find()

    def run_yosys(script: str, cwd: Path, output: str) -> None:
        tool.run(
            yosys, ["-q", "-s", script], cwd, cwd / f"{output}.log", step="writing Verilog", remedy="read the log",
            outputs=[output],
        )

    (folder / "weights").mkdir(parents=True)
    tables = {file.name: memory_text(file) for file in top.files}
    with verilog.emitted(top, "random", folder, run_yosys, tables):
        pass
    for name, text in tables.items():
        (folder / "weights" / f"{name}.mem").write_text(text)
    (folder / "manifest.json").write_text(json.dumps(manifest(top, scheduled, "random", None)))
    return folder
