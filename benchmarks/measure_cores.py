"""Synthesize cores out of context and write what they cost: the samples behind the resource models.

    python benchmarks/measure_cores.py mvu            writes hwflow/cores/samples/mvu_ecp5.csv
    python benchmarks/measure_cores.py mvu --fmax     places and routes them as well, prints the clock rates only
    python benchmarks/measure_cores.py mvu --only 3   that row only, printed

Another core is one entry in ``CORES``: the columns that describe a configuration, the configurations, and a function
from one of them to a component and the ``$readmemh`` files it reads.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Cat, Module, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.multiplier import PART, interval
from hdl_lib.arithmetic.packed_product import BLOCKS, Packing
from hdl_lib.matrices.mvu import Mvu
from hdl_lib.memories.rom import VERILOG, Table, readmemh_text
from hdl_lib.requantizers.requantize_lookup import LookupRequantizer
from hdl_lib.requantizers.requantize_mas import MultiplyAddShift
from hdl_lib.requantizers.requantize_thresholds import Thresholds
from hdl_lib.streams.concat import Concat
from hdl_lib.streams.stream_add import AddPlan, StreamAdd
from hdl_lib.streams.stream_product import StreamProduct
from hdl_lib.windows.pool import MaxPool, SumPool
from hdl_lib.windows.pool_tree import MaxPoolTree, SumPoolTree
from hdl_lib.windows.sliding_window import SlidingWindow
from hdl_lib.windows.window_geometry import WindowGeometry
from hdl_lib.windows.window_image import WindowImage
from hdl_lib.windows.window_rows import WindowRows
from hdl_lib.windows.window_steps import WindowSteps
from hwflow.toolchain.nextpnr import NEXTPNR_ECP5
from hwflow.toolchain.yosys import YOSYS

ROOT = Path(__file__).resolve().parent.parent


Configuration = Mapping[str, object]

CELLS = {  # column: cell type of synth_ecp5
    "lut4": "LUT4",
    "ccu2c": "CCU2C",
    "ff": "TRELLIS_FF",
    "dsp": "MULT18X18D",
    "bram": "DP16KD",
    "dpr16x4": "TRELLIS_DPR16X4",
}


@dataclass(frozen=True)
class Core:
    """How one kind of core is measured."""

    columns: Sequence[str]
    configurations: Sequence[Configuration]
    build: Callable[[Configuration], tuple[wiring.Component, Mapping[str, str]]]


def shape_of(text: str) -> Shape:
    """Return "s8" or "u8" as a shape."""
    return Shape(int(text[1:]), text[0] == "s")


def random_table(words: int, width: int) -> tuple[Table, Mapping[str, str]]:
    """Return a table of random bits and the file it is read from."""
    rng = random.Random(1)
    text = readmemh_text([rng.getrandbits(width) for _ in range(words)], width)
    return Table(None, "table.mem", width, words), {"table.mem": text}


MVU_COLUMNS = (
    "pe", "simd", "input_width", "weight_width", "accumulator_width", "synapse_fold", "neuron_fold", "multiplier",
    "depth",
)  # fmt: skip
MVU_ROWS = [
    # pe, simd, input, weight, accumulator, synapse fold, neuron fold, multiplier, depth
    (1, 1, 8, 8, 24, 16, 16, "dsp", 4),
    (1, 4, 8, 8, 20, 9, 1, "dsp", 8),
    (4, 4, 8, 8, 20, 9, 4, "dsp", 4),
    (8, 4, 8, 8, 22, 36, 2, "dsp", 4),
    (8, 8, 8, 8, 24, 72, 8, "dsp", 4),
    (16, 2, 8, 8, 22, 64, 1, "dsp", 4),
    (4, 4, 4, 4, 16, 32, 4, "dsp", 8),
    (2, 9, 8, 8, 20, 1, 8, "dsp", 12),
    (1, 1, 8, 8, 24, 16, 16, "lut", 4),
    (4, 4, 8, 8, 20, 9, 4, "lut", 4),
    (8, 4, 8, 8, 22, 36, 2, "lut", 4),
    (8, 8, 4, 4, 16, 16, 4, "lut", 4),
    (16, 8, 2, 2, 12, 16, 2, "lut", 4),
    (4, 3, 8, 4, 18, 12, 8, "lut", 6),
    (8, 8, 1, 1, 8, 8, 8, "lut", 6),
    (2, 4, 12, 6, 24, 24, 3, "lut", 4),
    (8, 64, 1, 1, 7, 1, 8, "xnor", 4),
    (16, 32, 1, 1, 10, 18, 4, "xnor", 4),
    (2, 196, 1, 1, 10, 4, 32, "xnor", 4),
    (4, 25, 1, 1, 5, 1, 16, "xnor", 10),
    (4, 4, 8, 34, 47, 36, 4, "dsp", 4),
    (2, 4, 16, 24, 45, 36, 4, "lut", 4),
    (8, 4, 8, 7, 21, 36, 2, "lut", 4),
    (4, 4, 8, 4, 18, 9, 4, "dsp2", 4),
    (5, 8, 4, 4, 15, 16, 4, "dsp2", 4),
    (8, 2, 4, 6, 16, 36, 1, "dsp2", 4),
]


def build_mvu(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    """Build a unit of unsigned inputs and signed weights, as after a Relu; bits for "xnor"."""
    signed = c["multiplier"] != "xnor"
    shapes = (Shape(c["input_width"], False), Shape(c["weight_width"], signed), Shape(c["accumulator_width"], signed))
    weights, digits, packing = c["pe"] * c["simd"] * c["weight_width"], None, None
    widths = c["input_width"], c["weight_width"]
    if c["multiplier"] == "lut" and min(widths) > 1 and widths != (2, 2):
        digits = Digits.of(interval(shapes[1]))
        weights = c["pe"] * c["simd"] * digits.bits
    if c["multiplier"] == "dsp2":
        packing = Packing.of(interval(shapes[0]), interval(shapes[1]), c["simd"], BLOCKS["MULT18X18D"])
        weights = c["simd"] * (c["pe"] // 2 * packing.bits + c["pe"] % 2 * c["weight_width"])
    table, files = random_table(c["neuron_fold"] * c["synapse_fold"], weights)
    names = ("pe", "simd", "synapse_fold", "neuron_fold", "multiplier", "depth")
    return Mvu(*shapes, weights=table, packing=packing, digits=digits, **{name: c[name] for name in names}), files


WINDOW_COLUMNS = (
    "width", "height", "channels", "lanes", "element", "kernel", "stride", "pad", "dilation", "rows", "depth",
)  # fmt: skip
WINDOW_ROWS = [
    # width, height, channels, lanes, element, kernel, stride, pad (each side), dilation, rows, depth
    (28, 28, 1, 1, "u8", 3, 1, 1, 1, 3, 5),
    (32, 32, 3, 3, "s8", 3, 1, 1, 1, 4, 5),
    (32, 32, 16, 4, "s8", 3, 1, 1, 1, 4, 5),
    (32, 32, 16, 16, "s8", 3, 2, 1, 1, 4, 5),
    (16, 16, 32, 8, "u4", 3, 1, 1, 1, 4, 5),
    (28, 28, 8, 8, "u8", 2, 2, 0, 1, 4, 5),
    (64, 48, 8, 2, "s8", 5, 1, 2, 1, 6, 5),
    (10, 49, 64, 4, "s8", 3, 1, 1, 1, 3, 2),
    (32, 32, 8, 4, "s8", 3, 1, 2, 2, 6, 5),
    (8, 8, 1, 1, "u4", 3, 1, 1, 1, 3, 5),
    (16, 16, 64, 8, "s8", 1, 2, 0, 1, 2, 5),
]


def build_window(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    """Build a core with a square kernel, the pads filled with a value that is not 0."""
    window = SlidingWindow(
        shape_of(c["element"]), c["height"], c["width"], c["channels"], c["lanes"], kernel=(c["kernel"],) * 2,
        stride=(c["stride"],) * 2, pads=(c["pad"],) * 4, dilation=(c["dilation"],) * 2, pad_value=3, rows=c["rows"],
        depth=c["depth"],
    )  # fmt: skip
    return window, {}


WHOLE_COLUMNS = (
    "width", "height", "channels", "element", "kernel", "stride", "pad", "pixels", "windows", "rows", "depth",
)  # fmt: skip
WHOLE_ROWS = [
    # width, height, channels, element, kernel, stride, pad (each side), pixels and windows per beat, rows, depth
    (8, 8, 1, "u5", 3, 1, 1, 1, 1, 3, 6),
    (8, 8, 1, "u5", 3, 1, 1, 2, 2, 4, 6),
    (8, 8, 1, "u5", 3, 1, 1, 8, 8, 4, 4),
    (8, 8, 1, "u5", 3, 1, 0, 2, 2, 4, 6),
    (8, 8, 16, "u8", 3, 1, 1, 1, 1, 3, 6),
    (32, 32, 3, "u8", 3, 1, 1, 1, 1, 3, 6),
    (32, 32, 16, "u8", 3, 1, 1, 1, 1, 3, 6),
    (32, 32, 4, "u8", 3, 1, 1, 4, 4, 3, 6),
    (28, 28, 4, "u8", 2, 2, 0, 2, 1, 2, 6),
    (28, 28, 1, "u8", 5, 1, 2, 4, 4, 5, 6),
    (16, 16, 8, "u4", 3, 2, 1, 2, 1, 4, 6),
    (16, 16, 2, "u4", 3, 1, 1, 16, 16, 4, 3),
    (10, 49, 8, "u8", 3, 1, 1, 1, 1, 3, 6),
    (64, 64, 32, "u8", 3, 1, 1, 1, 1, 3, 6),
    (8, 8, 1, "u4", 3, 1, 1, 64, 64, 3, 2),
    (8, 8, 2, "u8", 2, 2, 0, 64, 16, 2, 2),
]


def build_whole_windows(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    """Build it as :func:`build_window`; with the whole image in one beat the core of wires alone."""
    shape, pads = shape_of(c["element"]), (c["pad"],) * 4
    geometry = WindowGeometry(c["height"], c["width"], (c["kernel"],) * 2, (c["stride"],) * 2, pads, (1, 1))
    if c["pixels"] == c["height"] * c["width"]:
        return WindowImage(shape, shape, c["channels"], geometry, pad_value=3, depth=c["depth"]), {}
    steps = WindowSteps(geometry, c["pixels"], c["windows"])
    return WindowRows(shape, shape, c["channels"], steps, pad_value=3, rows=c["rows"], depth=c["depth"]), {}


POOL_COLUMNS = ("element", "channels", "lanes", "window", "depth")
POOL_ROWS = [
    ("u8", 16, 16, 4, 4),
    ("s8", 16, 8, 4, 5),
    ("s8", 64, 4, 9, 5),
    ("u4", 32, 1, 4, 5),
    ("s8", 3, 1, 4, 2),
    ("s8", 256, 1, 49, 5),
]


def build_pool(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    return MaxPool(shape_of(c["element"]), c["channels"], c["lanes"], c["window"], depth=c["depth"]), {}


TREE_COLUMNS = ("kind", "element", "result", "channels", "pixels", "window", "depth")
TREE_ROWS = [
    # kind, element, result, channels, pixels per beat, pixels per window, depth
    ("max", "u8", "u8", 16, 4, 4, 5),
    ("max", "s8", "s8", 4, 9, 9, 5),
    ("max", "u4", "u4", 8, 16, 4, 5),
    ("max", "s8", "s8", 8, 8, 64, 3),
    ("sum", "u8", "u10", 16, 4, 4, 5),
    ("sum", "s8", "s12", 4, 9, 9, 5),
    ("sum", "u4", "u6", 8, 16, 4, 5),
    ("sum", "s8", "s14", 8, 8, 64, 3),
]


def build_pool_tree(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    sizes = c["channels"], c["pixels"], c["window"]
    if c["kind"] == "max":
        return MaxPoolTree(shape_of(c["element"]), *sizes, depth=c["depth"]), {}
    return SumPoolTree(shape_of(c["element"]), shape_of(c["result"]), *sizes, depth=c["depth"]), {}


SUM_COLUMNS = ("element", "sum", "channels", "lanes", "window", "depth")
SUM_ROWS = [
    ("u8", "u10", 16, 16, 4, 4),
    ("s8", "s14", 16, 8, 49, 5),
    ("s8", "s14", 64, 4, 64, 5),
    ("u4", "u8", 32, 1, 9, 5),
]


def build_sum_pool(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    core = SumPool(
        shape_of(c["element"]), shape_of(c["sum"]), c["channels"], c["lanes"], c["window"], depth=c["depth"]
    )  # fmt: skip
    return core, {}


ADD_COLUMNS = ("a", "b", "output", "multipliers_a", "multipliers_b", "lanes", "channels", "multiplier", "depth")
ADD_ROWS = [
    # a, b, output, multipliers of a, of b ("random<bits>": one per channel), lanes, channels, multiplier, depth
    ("s8", "s8", "s9", "1", "1", 4, 16, "lut", 4),
    ("u8", "s8", "s18", "181", "-77", 4, 16, "lut", 4),
    ("u8", "s8", "s18", "181", "-77", 4, 16, "dsp", 4),
    ("s8", "s8", "s33", "12345679", "-10030277", 2, 16, "lut", 5),
    ("s8", "s8", "s33", "12345679", "-10030277", 2, 16, "dsp", 5),
    ("s20", "s8", "s30", "random9", "96", 2, 64, "dsp", 4),
    ("s8", "s8", "s18", "random9", "random9", 2, 64, "lut", 6),
    ("u4", "u4", "u12", "90", "150", 16, 16, "lut", 4),
    ("s16", "u8", "s24", "-3", "-100", 1, 32, "lut", 2),
]


def multipliers_of(text: str, channels: int, seed: int) -> tuple[int, ...]:
    """Return a number, or random odd ones of so many bits with sign, one per channel."""
    if not text.startswith("random"):
        return (int(text),)
    rng, width = random.Random(seed), int(text.removeprefix("random"))
    return tuple(2 * rng.randrange(-(1 << width - 2), 1 << width - 2) + 1 for _ in range(channels))


def build_add(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    """Build a core with tables of random bits."""
    multipliers = [multipliers_of(c[f"multipliers_{name}"], c["channels"], k) for k, name in enumerate("ab")]
    shapes = [shape_of(c[name]) for name in ("a", "b", "output")]
    plan = AddPlan(shapes[:2], shapes[2].width, c["lanes"], c["channels"], multipliers, c["multiplier"])
    tables, files = [], {}
    for name, shape in zip("ab", plan.table_shapes, strict=True):
        table = None
        if shape is not None:
            table, file = random_table(-(-c["channels"] // c["lanes"]), c["lanes"] * shape.width)
            table = Table(None, f"table_{name}.mem", table.width, table.depth)
            files[f"table_{name}.mem"] = file["table.mem"]
        tables.append(table)
    core = StreamAdd(
        shapes[:2], shapes[2], lanes=c["lanes"], channels=c["channels"], multipliers=multipliers,
        multiplier=c["multiplier"], depth=c["depth"], tables=tables,
    )  # fmt: skip
    return core, files


PRODUCT_COLUMNS = ("a", "b", "output", "offset_a", "offset_b", "lanes", "multiplier", "depth")
PRODUCT_ROWS = [
    # a, b, output, offsets, lanes, multiplier, depth
    ("s8", "s8", "s16", 0, 0, 4, "dsp", 4),
    ("s8", "s8", "s16", 0, 0, 4, "lut", 4),
    ("u8", "u8", "s18", 128, 100, 2, "dsp", 4),
    ("u8", "u8", "s18", 128, 100, 2, "lut", 6),
    ("u4", "s4", "s8", 0, 0, 8, "lut", 4),
    ("s16", "s16", "s32", 0, 0, 1, "dsp", 4),
    ("u40", "u20", "u60", 0, 0, 1, "dsp", 10),
    ("s24", "s20", "s44", 0, 0, 2, "dsp", 10),
]


def build_product(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    shapes = [shape_of(c[name]) for name in ("a", "b", "output")]
    core = StreamProduct(
        shapes[:2], shapes[2], lanes=c["lanes"], offsets=(c["offset_a"], c["offset_b"]), multiplier=c["multiplier"],
        depth=c["depth"], part=PART,
    )  # fmt: skip
    return core, {}


CONCAT_COLUMNS = ("element", "inputs", "beats", "lanes", "depth")
CONCAT_ROWS = [
    # element, inputs, beats of each in a round, lanes, depth
    ("s8", 2, 1, 16, 4),
    ("s8", 2, 100, 4, 4),
    ("u8", 4, 16, 8, 4),
    ("u4", 3, 7, 4, 2),
]


def build_concat(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    shape = shape_of(c["element"])
    core = Concat(
        [shape] * c["inputs"], shape, lanes=c["lanes"], beats=[c["beats"]] * c["inputs"], depth=c["depth"]
    )  # fmt: skip
    return core, {}


MAS_COLUMNS = ("input", "output", "multiplier", "addend", "shift", "lanes", "channels", "depth", "rounding")
MAS_ROWS = [
    ("s16", "s8", "u16", "s28", 20, 1, 16, 7, "floor"),
    ("s18", "s8", "u17", "s32", 24, 4, 16, 7, "floor"),
    ("s20", "s8", "u17", "s32", 24, 2, 64, 8, "floor"),
    ("s20", "u8", "u20", "s36", 30, 1, 32, 8, "floor"),
    ("s22", "s8", "s21", "s38", 30, 2, 16, 8, "floor"),
    ("s24", "s8", "u26", "s44", 36, 1, 256, 8, "floor"),
    ("s12", "u4", "u12", "s22", 18, 8, 8, 7, "floor"),
    ("s18", "s8", "u14", "s30", 20, 1, 512, 3, "floor"),
    ("s14", "u2", "u10", "s22", 18, 16, 64, 7, "floor"),
    ("s18", "s8", "u1", "s18", 9, 1, 16, 8, "half_even"),
    ("s18", "s8", "u1", "s18", 9, 4, 16, 8, "half_even"),
    ("s20", "s8", "u12", "s28", 14, 2, 64, 8, "half_odd"),
    ("s24", "s8", "u26", "s44", 36, 1, 256, 9, "half_even"),
]


def build_mas(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    """Build a core with parameters in a file, limits of the whole output range."""
    shapes = [shape_of(c[name]) for name in ("input", "output", "multiplier", "addend")]
    table, files = random_table(-(-c["channels"] // c["lanes"]), c["lanes"] * (shapes[2].width + shapes[3].width))
    levels = 1 << shapes[1].width
    low = -levels // 2 if shapes[1].signed else 0
    core = MultiplyAddShift(
        shapes[0], shapes[1], lanes=c["lanes"], channels=c["channels"], multiplier_shape=shapes[2],
        addend_shape=shapes[3], shift=c["shift"], low=low, high=low + levels - 1, parameters=table, depth=c["depth"],
        rounding=c["rounding"],
    )  # fmt: skip
    return core, files


THRESHOLD_COLUMNS = ("input", "output", "levels", "lanes", "channels", "depth")
THRESHOLD_ROWS = [
    ("s16", "u1", 1, 4, 16, 6),
    ("s12", "u2", 3, 4, 16, 6),
    ("s16", "u4", 15, 1, 16, 8),
    ("s14", "s3", 7, 2, 64, 7),
]


def build_thresholds(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    shapes = [shape_of(c[name]) for name in ("input", "output")]
    table, files = random_table(-(-c["channels"] // c["lanes"]), c["lanes"] * c["levels"] * (shapes[0].width + 1))
    low = -(c["levels"] // 2 + 1) if shapes[1].signed else 0
    core = Thresholds(
        *shapes, lanes=c["lanes"], channels=c["channels"], base=low, levels=c["levels"], parameters=table,
        depth=c["depth"],
    )  # fmt: skip
    return core, files


LOOKUP_COLUMNS = ("input", "output", "inputs", "lanes", "channels", "shared", "depth")
LOOKUP_ROWS = [
    ("s8", "s8", 256, 1, 1, 0, 6),
    ("s12", "s8", 4096, 1, 16, 1, 6),
    ("s8", "u4", 64, 4, 16, 0, 6),
    ("s8", "s8", 256, 8, 64, 1, 6),
]


def build_lookup(c: Configuration) -> tuple[wiring.Component, Mapping[str, str]]:
    """Build a core with one table for all blocks, or one per channel; the lanes read copies of one file."""
    blocks = 1 if c["shared"] else -(-c["channels"] // c["lanes"])
    output = shape_of(c["output"])
    table, files = random_table(blocks * c["inputs"], output.width)
    core = LookupRequantizer(
        shape_of(c["input"]), output, lanes=c["lanes"], channels=c["channels"], low=-(c["inputs"] // 2),
        tables=[table] * c["lanes"], depth=c["depth"], shared=bool(c["shared"]),
    )  # fmt: skip
    return core, files


def rows_of(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[Configuration]:
    return [dict(zip(columns, row, strict=True)) for row in rows]


CORES = {
    "mvu": Core(MVU_COLUMNS, rows_of(MVU_COLUMNS, MVU_ROWS), build_mvu),
    "sliding_window": Core(WINDOW_COLUMNS, rows_of(WINDOW_COLUMNS, WINDOW_ROWS), build_window),
    "whole_windows": Core(WHOLE_COLUMNS, rows_of(WHOLE_COLUMNS, WHOLE_ROWS), build_whole_windows),
    "pool_tree": Core(TREE_COLUMNS, rows_of(TREE_COLUMNS, TREE_ROWS), build_pool_tree),
    "pool": Core(POOL_COLUMNS, rows_of(POOL_COLUMNS, POOL_ROWS), build_pool),
    "sum_pool": Core(SUM_COLUMNS, rows_of(SUM_COLUMNS, SUM_ROWS), build_sum_pool),
    "stream_add": Core(ADD_COLUMNS, rows_of(ADD_COLUMNS, ADD_ROWS), build_add),
    "stream_product": Core(PRODUCT_COLUMNS, rows_of(PRODUCT_COLUMNS, PRODUCT_ROWS), build_product),
    "concat": Core(CONCAT_COLUMNS, rows_of(CONCAT_COLUMNS, CONCAT_ROWS), build_concat),
    "requantize_mas": Core(MAS_COLUMNS, rows_of(MAS_COLUMNS, MAS_ROWS), build_mas),
    "requantize_thresholds": Core(THRESHOLD_COLUMNS, rows_of(THRESHOLD_COLUMNS, THRESHOLD_ROWS), build_thresholds),
    "requantize_lookup": Core(LOOKUP_COLUMNS, rows_of(LOOKUP_COLUMNS, LOOKUP_ROWS), build_lookup),
}


class Harness(wiring.Component):
    """A core between shift registers, so that it fits any package: for clock rates, not for counting cells."""

    def __init__(self, core: wiring.Component) -> None:
        self.core = core
        super().__init__({"serial": In(1), "parity": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.core
        inputs = Cat(core.i.payload, core.i.valid, core.o.ready)
        outputs = Cat(core.o.payload, core.o.valid, core.i.ready)
        feed = Signal(len(inputs))
        taken = Signal(len(outputs))
        folded = Signal(len(outputs))
        m.d.sync += [
            feed.eq(Cat(self.serial, feed)),
            taken.eq(outputs),
            folded.eq(Cat(self.serial, folded) ^ taken),
            self.parity.eq(folded[-1]),
        ]
        m.d.comb += inputs.eq(feed)
        return m


def run(command: Sequence[str], cwd: Path) -> str | None:
    """Return the output of a program, None if it fails; the output is kept in ``log``."""
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    text = result.stdout + result.stderr
    (cwd / "log").write_text(text)
    return None if result.returncode else text


# Yosys compiled to WebAssembly dies in abc9 now and then, by the layout of its heap: the same netlist under other
# names passes. The cells do not depend on names.
RENAMINGS = ("", "flatten; rename -hide;", "flatten; rename -enumerate;", "autoname;")


def synthesize(component: wiring.Component, files: Mapping[str, str], folder: Path) -> dict[str, int]:
    """Return the cells yosys needs; leave core.json in ``folder``."""
    for name, text in {**files, VERILOG.name: VERILOG.read_text(), "core.il": rtlil.convert(component)}.items():
        (folder / name).write_text(text)
    for renaming in RENAMINGS:
        script = (
            f"read_verilog {VERILOG.name}; read_rtlil core.il; hierarchy -top top; proc; {renaming} "
            "synth_ecp5 -top top -json core.json; tee -q -o stat.json stat -json"
        )
        if run([*YOSYS.find().command, "-p", script], folder) is not None:
            break
    else:
        sys.exit("yosys failed:\n" + (folder / "log").read_text()[-2000:])
    cells = json.loads((folder / "stat.json").read_text())["design"]["num_cells_by_type"]
    return {column: cells.get(cell, 0) for column, cell in CELLS.items()}


def clock_rate(folder: Path) -> float:
    """Return the MHz after place and route of core.json."""
    options = ["--85k", "--package", "CABGA381", "--speed", "6", "--lpf-allow-unconstrained", "--freq", "250"]
    text = run([*NEXTPNR_ECP5.find().command, *options, "--timing-allow-fail", "--json", "core.json"], folder)
    if text is None:
        sys.exit("nextpnr failed:\n" + (folder / "log").read_text()[-2000:])
    return float(re.findall(r"Max frequency for clock.*: ([\d.]+) MHz", text)[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what cores cost on ECP5.")
    parser.add_argument("core", choices=CORES)
    parser.add_argument("--fmax", action="store_true", help="place and route, print clock rates")
    parser.add_argument("--only", type=int, help="index of one configuration")
    arguments = parser.parse_args()
    core = CORES[arguments.core]
    configurations = core.configurations
    if arguments.only is not None:
        configurations = configurations[arguments.only : arguments.only + 1]
    rows = []
    for configuration in configurations:
        component, files = core.build(configuration)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            cells = synthesize(Harness(component) if arguments.fmax else component, files, folder)
            row = {**configuration, **cells}
            if arguments.fmax:
                row["mhz"] = clock_rate(folder)
        rows.append(row)
        print(" ".join(f"{key}={value}" for key, value in row.items()), flush=True)
    if not arguments.fmax and arguments.only is None:
        path = ROOT / "hwflow" / "cores" / "samples" / f"{arguments.core}_ecp5.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*core.columns, *CELLS], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
