"""Resource models against what yosys made of the cores: the measured samples, and one core synthesized here."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Shape

import hwflow.cores
from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.multiplier import PART
from hdl_lib.arithmetic.packed_product import BLOCKS, Packing
from hdl_lib.memories.rom import VERILOG
from hdl_lib.requantizers.requantize_mas import MultiplyAddShift
from hdl_lib.streams.stream_add import AddPlan
from hdl_lib.streams.stream_product import StreamProduct
from hdl_lib.windows.window_geometry import WindowGeometry as CoreGeometry
from hdl_lib.windows.window_steps import WindowSteps
from hwflow.boards import find_board
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.operator import Folding, Resources
from hwflow.cores.registry import hardware
from hwflow.errors import ToolError
from hwflow.toolchain import tool
from hwflow.toolchain.yosys import CELLS, RENAMING, YOSYS, died_in_abc
from hwflow.types import Interval, IntType
from tests.cores.cases.all_cases import CASES
from tests.cores.harness import Bench
from tests.cores.loose import LOOSE

Row = dict[str, str]
SAMPLES = Path(hwflow.cores.__file__).parent / "samples"
COLUMNS = {
    "lut4": "LUT4",
    "ccu2c": "CCU2C",
    "ff": "TRELLIS_FF",
    "dsp": "MULT18X18D",
    "bram": "DP16KD",
    "dpr16x4": "TRELLIS_DPR16X4",
}


def element(text: str) -> IntType:
    return IntType(int(text[1:]), text[0] == "s")


def numbers(row: Row, *names: str) -> list[int]:
    return [int(row[n]) for n in names]


def multipliers_of(text: str, channels: int, seed: int) -> tuple[int, ...]:
    """As benchmarks/measure_cores.py makes them: a number, or random odd ones of so many bits, one per channel."""
    if not text.startswith("random"):
        return (int(text),)
    rng, width = random.Random(seed), int(text.removeprefix("random"))
    return tuple(2 * rng.randrange(-(1 << width - 2), 1 << width - 2) + 1 for _ in range(channels))


def mvu(row: Row) -> Resources:
    x, w, accumulator, pe, simd, synapse, neuron, depth = numbers(
        row, "input_width", "weight_width", "accumulator_width", "pe", "simd", "synapse_fold", "neuron_fold", "depth"
    )
    signed = row["multiplier"] != "xnor"
    types = IntType(x, False), IntType(w, signed), IntType(accumulator, signed)
    digits = packing = None
    weights = types[1].min, types[1].max
    if row["multiplier"] == "lut" and min(x, w) > 1 and (x, w) != (2, 2):
        digits = Digits.of(weights)
    if row["multiplier"] == "dsp2":
        packing = Packing.of((types[0].min, types[0].max), weights, simd, BLOCKS["MULT18X18D"])
    unit = costs.Matrix("ecp5", *types, row["multiplier"], 0, simd, synapse, packing=packing, digits=digits)
    return unit.resources(pe, neuron, depth)


def pool(row: Row) -> Resources:
    channels, lanes, window, depth = numbers(row, "channels", "lanes", "window", "depth")
    return costs.max_pool("ecp5", lanes, element(row["element"]).bits, -(-channels // lanes), window, depth)


def sliding_window(row: Row) -> Resources:
    height, width, k, s, p, d = numbers(row, "height", "width", "kernel", "stride", "pad", "dilation")
    channels, lanes, rows, depth = numbers(row, "channels", "lanes", "rows", "depth")
    window, blocks = WindowGeometry(height, width, (k, k), (s, s), (p, p, p, p), (d, d)), -(-channels // lanes)
    return costs.sliding_window(
        "ecp5", window, blocks, rows * width * blocks, lanes * element(row["element"]).bits, depth
    )


def whole_windows(row: Row) -> Resources:
    height, width, k, s, p, channels = numbers(row, "height", "width", "kernel", "stride", "pad", "channels")
    pixels, windows, rows, depth = numbers(row, "pixels", "windows", "rows", "depth")
    geometry, values = CoreGeometry(height, width, (k, k), (s, s), (p, p, p, p), (1, 1)), element(row["element"])
    if pixels == height * width:
        return costs.window_image("ecp5", geometry, channels, values.bits, depth)
    steps = WindowSteps(geometry, pixels, windows)
    return costs.window_rows("ecp5", steps, values, values, channels, 3, rows, depth)  # pads are 3


def pool_tree(row: Row) -> Resources:
    channels, pixels, window, depth = numbers(row, "channels", "pixels", "window", "depth")
    source, result = element(row["element"]), element(row["result"]).bits
    if row["kind"] == "max":
        return costs.max_pool_tree("ecp5", channels, result, pixels, window, depth)
    return costs.sum_pool_tree("ecp5", channels, source, result, pixels, window, depth)


def requantize_mas(row: Row) -> Resources:
    x, m, b, y = (element(row[n]) for n in ("input", "multiplier", "addend", "output"))
    shift, lanes, channels, depth = numbers(row, "shift", "lanes", "channels", "depth")
    dsp = lanes * MultiplyAddShift.multipliers_of(Shape(x.bits, x.signed), Shape(m.bits, m.signed))
    return costs.multiply_add_shift(
        "ecp5", x, m, b, shift, row["rounding"] != "floor", y, lanes, -(-channels // lanes), dsp, 17, depth
    )


def requantize_thresholds(row: Row) -> Resources:
    levels, lanes, channels, depth = numbers(row, "levels", "lanes", "channels", "depth")
    return costs.thresholds(
        "ecp5", element(row["input"]), levels, element(row["output"]), lanes, -(-channels // lanes), depth
    )


def requantize_lookup(row: Row) -> Resources:
    inputs, lanes, channels, shared, depth = numbers(row, "inputs", "lanes", "channels", "shared", "depth")
    words, output = inputs * (1 if shared else -(-channels // lanes)), element(row["output"])
    tables = costs.rom("ecp5", words, output.bits).times(lanes)
    return costs.lookup("ecp5", element(row["input"]), [words] * lanes, tables, lanes * output.bits, depth)


def sum_pool(row: Row) -> Resources:
    channels, lanes, window, depth = numbers(row, "channels", "lanes", "window", "depth")
    widths = element(row["element"]).bits, element(row["sum"]).bits
    return costs.sum_pool("ecp5", lanes, *widths, -(-channels // lanes), window, depth)


def stream_add(row: Row) -> Resources:
    a, b, y = (element(row[n]) for n in ("a", "b", "output"))
    lanes, channels, depth = numbers(row, "lanes", "channels", "depth")
    multipliers = [multipliers_of(row[f"multipliers_{name}"], channels, k) for k, name in enumerate("ab")]
    plan = AddPlan([shape_of(a), shape_of(b)], y.bits, lanes, channels, multipliers, row["multiplier"])
    return costs.stream_add("ecp5", (a, b), plan, -(-channels // lanes), depth)


def stream_product(row: Row) -> Resources:
    a, b, y = (element(row[n]) for n in ("a", "b", "output"))
    offset_a, offset_b, lanes, depth = numbers(row, "offset_a", "offset_b", "lanes", "depth")
    differences = [
        IntType.holding(Interval(t.min - o, t.max - o)) for t, o in ((a, offset_a), (b, offset_b))
    ]
    kind = row["multiplier"]
    multiplier = StreamProduct.multiplier_of([shape_of(a), shape_of(b)], (offset_a, offset_b), kind, PART)
    latency = StreamProduct.latency_of(multiplier)
    return costs.stream_product(
        "ecp5", (a, b), (offset_a, offset_b), *differences, y, lanes, kind, latency, depth
    )


def concat(row: Row) -> Resources:
    inputs, beats, lanes, depth = numbers(row, "inputs", "beats", "lanes", "depth")
    return costs.concat("ecp5", lanes * element(row["element"]).bits, inputs, beats, depth)


MODELS: dict[str, Callable[[Row], Resources]] = {
    "mvu": mvu,
    "pool": pool,
    "sliding_window": sliding_window,
    "whole_windows": whole_windows,
    "pool_tree": pool_tree,
    "requantize_mas": requantize_mas,
    "requantize_thresholds": requantize_thresholds,
    "requantize_lookup": requantize_lookup,
    "stream_add": stream_add,
    "stream_product": stream_product,
    "concat": concat,
    "sum_pool": sum_pool,
}
# How far LUTs and flip-flops may be off: by this share of a sample, or by so many cells where it is small.
SHARE = {"lut": 0.18, "ff": 0.10}
CELLS_OFF = {"lut": 60, "ff": 20}
MEAN_SHARE = {"lut": 0.11, "ff": 0.05}  # of a core's samples taken together


def measured(cells: dict[str, int]) -> Resources:
    """Weighted as the tool chain's own counting does."""
    return Resources(
        **{
            kind: sum(weight * cells.get(cell, 0) for cell, weight in table.items())
            for kind, table in CELLS["ecp5"].items()
        }
    )


def samples(core: str) -> Iterator[tuple[Row, Resources]]:
    with (SAMPLES / f"{core}_ecp5.csv").open() as file:
        for row in csv.DictReader(file):
            yield row, measured({cell: int(row[column]) for column, cell in COLUMNS.items()})


def test_every_sample_file_has_its_model() -> None:
    assert {path.name.removesuffix("_ecp5.csv") for path in SAMPLES.glob("*.csv")} == set(MODELS)


@pytest.mark.parametrize("core", MODELS)
def test_the_model_fits_the_samples(core: str) -> None:
    predicted, found = Resources(), Resources()
    for row, real in samples(core):
        model = MODELS[core](row)
        assert (model.dsp, model.bram) == (real.dsp, real.bram), row
        for kind in ("lut", "ff"):
            there, wanted = getattr(model, kind), getattr(real, kind)
            assert abs(there - wanted) <= max(CELLS_OFF[kind], SHARE[kind] * wanted), (kind, there, wanted, row)
        predicted, found = predicted + model, found + real
    for kind, share in MEAN_SHARE.items():
        assert abs(getattr(predicted, kind) - getattr(found, kind)) <= share * getattr(found, kind), kind


def test_block_ram_or_look_up_tables() -> None:
    """Yosys charges 128 per block RAM, a sixteenth per bit of a table in logic, 4 for 16 x 4 bits of distributed RAM
    and half a bit for what selects among them."""
    assert costs.rom("ecp5", 36, 256).bram == 0  # 8 * 128 > 36 * 256 / 16
    assert costs.rom("ecp5", 64, 256).bram == 0  # equal
    assert costs.rom("ecp5", 65, 256).bram == 8
    assert costs.rom("ecp5", 1024, 18).bram == 1
    # In one bank: of each of 8 bits 1,568 blocks of 16,384 words to choose among, at 1.4 look-up tables.
    assert costs.rom("ecp5", 25_690_112, 8) == Resources(lut=17_562, ff=8, bram=11_151)
    assert costs.in_block_ram("ecp5", 96, 16) == 1  # 4 * 4 * 6 + 16 * 5 / 2 + 5 = 141, found 130
    assert costs.in_block_ram("ecp5", 80, 16) == 0  # 4 * 4 * 5 + 16 * 4 / 2 + 4.5 = 116.5
    assert costs.in_block_ram("ecp5", 600, 36) == 2


@pytest.mark.parametrize(
    ("op", "name", "folding", "blocks"),
    [
        ("mvu", "conv", Folding(3, 5, 15, "dsp"), (15, 0)),
        ("mvu", "conv", Folding(3, 2, 6, "lut"), (0, 0)),
        ("mvu", "pairs", Folding(3, 5, 15, "dsp2", 17), (9, 0)),  # two pairs of rows and one by itself
        ("mvu", "shift_add", Folding(12, 15, 60, "shift_add"), (0, 0)),
        ("mvu", "shift_add_rows", Folding(3, 5, 15, "shift_add"), (0, 0)),
        ("requantize", "multiply_powers_constants5", Folding(5, 5), (0, 0)),
        ("requantize", "multiply_products_constants5shift_add", Folding(5, 5, multiplier="shift_add"), (0, 0)),
        ("requantize", "multiply_falling_wide", Folding(2, 2), (8, 0)),
        ("requantize", "multiply_falling_ties", Folding(2, 2), (1, 0)),  # by 3, and by -1
        ("requantize", "thresholds_both", Folding(2, 2), (0, 0)),
        ("requantize", "search_alike", Folding(3, 3), (0, 0)),
        # lanes with tables of 192, 384 and 768 bounds of 16 bits, and of 3 * 512 values of 10 bits: three in a row
        ("requantize", "search_values", Folding(2, 2), (0, 8)),
    ],
)
def test_a_core_synthesized_here(
    tmp_path: Path, op: str, name: str, folding: Folding, blocks: tuple[int, int]
) -> None:
    """A core of the harness with the operator's own resource model, folding and queue; ``blocks``: DSPs, block RAMs."""
    case = next(c for c in CASES[op] if c.name == name)
    core = Bench(case, folding, 3)
    part = find_board("ulx3s_85f").part
    predicted = hardware(op).resources(core.node, core.decision, part)
    (tmp_path / "core.il").write_text(rtlil.convert(core.build().component))
    (tmp_path / "rom.v").write_text(VERILOG.read_text())
    for renaming in ([], ["hierarchy -top top", *RENAMING]):  # where yosys dies in abc, under other names
        commands = ["read_verilog rom.v", "read_rtlil core.il", *renaming, "synth_ecp5 -top top"]
        script = "; ".join([*commands, "tee -q -o stat.json stat -json"])
        try:
            tool.run(YOSYS.find(), ["-p", script], tmp_path, tmp_path / "log", step="synthesis", remedy="read the log")
            break
        except ToolError:
            if renaming or not died_in_abc((tmp_path / "log").read_text()):
                raise
    cells = json.loads((tmp_path / "stat.json").read_text())["design"]["num_cells_by_type"]
    found = measured(cells)
    assert (found.dsp, found.bram) == (predicted.dsp, predicted.bram) == blocks
    share = max(SHARE["lut"], LOOSE["ecp5"].get(op, {}).get(name, 0.0))
    assert abs(predicted.lut - found.lut) <= max(CELLS_OFF["lut"], share * found.lut)
    assert abs(predicted.ff - found.ff) <= max(CELLS_OFF["ff"], SHARE["ff"] * found.ff)


def test_tables_of_known_words() -> None:
    """By hand. Bits that never change cost nothing; of bits that are alike one is kept; a bit is a function of those
    address bits alone that change it; one that is an address bit takes no table, a half that never changes is a
    reset."""
    assert costs.filled_rom("ecp5", [5, 5, 5], 3) == Resources()
    assert costs.filled_rom("ecp5", [0b1101, 0b1110] * 8, 4) == Resources(lut=1, ff=4)
    assert costs.filled_rom("ecp5", [0b00, 0b11] * 4, 2, output_register=False) == Resources(ff=1)
    assert costs.filled_rom("ecp5", [0, 1, 1, 0] * 8, 1) == Resources(lut=1, ff=2)  # 32 words, two equal halves
    assert costs.filled_rom("ecp5", [0] * 16 + [0, 1] * 8, 1) == Resources(ff=2)  # of two address bits
    assert costs.filled_rom("ecp5", [0, 1] * 8 + [1, 1, 0, 0] * 4, 1) == Resources(lut=1, ff=2)  # of three
    numbers = [pow(3, n, 65537) & 0x3FF for n in range(1536)]
    # 512 rows of 3 words, 30 of 36 bits. One of three by two bits is five inputs: two tables per bit. The two bits come
    # with the row's register, and have one of their own in front where there is that.
    assert costs.filled_rom("ecp5", numbers, 10) == Resources(lut=20, ff=34, bram=1)
    assert costs.filled_rom("ecp5", numbers, 10, output_register=False) == Resources(lut=20, ff=2, bram=1)


@pytest.mark.parametrize("family", ["ecp5", "ice40"])
@pytest.mark.parametrize("count", [2, 16, 100, 1536, 40_000])
@pytest.mark.parametrize("width", [1, 9, 21, 40])
def test_tables_of_numbers(family: str, count: int, width: int) -> None:
    """As of their words bit by bit: numbers of both signs, some of whose bits never change in a part of the table."""
    rng = np.random.default_rng(count + width)
    for limit in (1 << width - 1, 3):
        numbers = np.sort(rng.integers(-min(limit, 1 << width - 1), limit, count))
        words = [int(number) % (1 << width) for number in numbers]
        for registered in (True, False):
            expected = costs.filled_rom(family, words, width, output_register=registered)
            assert costs.filled_numbers(family, numbers, width, output_register=registered) == expected


@pytest.mark.parametrize(
    ("x", "w", "bits"), [("u8", "s8", 16), ("u1", "s1", 1), ("u1", "s2", 2), ("s8", "s8", 16)]
)
def test_product_widths(x: str, w: str, bits: int) -> None:
    """By hand: 255 * -128 = -32640 needs 16 bits, {0, 1} * {-1, 0} one (signed)."""
    assert costs.product_bits(element(x), element(w)) == bits


@pytest.mark.parametrize(
    ("channels", "lanes"), [(1, [1]), (6, [1, 2, 3, 6]), (7, [1, 2, 3, 4, 7]), (10, [1, 2, 3, 4, 5, 10])]
)
def test_useful_lanes(channels: int, lanes: list[int]) -> None:
    """Fewer lanes with as many beats are never worse: 7 channels in 2 beats need 4 lanes, not 5 or 6."""
    assert costs.useful_lanes(channels) == lanes


def test_products_of_luts_need_no_blocks() -> None:
    x, w = IntType(8, False), IntType(8, True)
    assert costs.products("ecp5", x, w, 10, "dsp").dsp == 10
    assert costs.products("ecp5", x, w, 10, "lut").dsp == 0
    assert costs.products("ecp5", IntType(1, False), w, 10, "dsp").dsp == 0, "a selection"


@pytest.mark.parametrize(
    ("made", "ecp5", "ice40"),
    [
        ([("u8", "i8", 15)], 15, 8),  # the last one has a block to itself
        ([("i8", "i8", 3), ("u8", "i8", 3)], 6, 4),  # signs differ
        ([("u8", "i8", 1), ("i8", "u8", 1)], 2, 1),  # operands in another order
        ([("u8", "i8", 1), ("u8", "u7", 1)], 2, 1),  # seven bits without a sign are eight bits with one
        ([("u8", "i8", 1), ("u8", "u8", 1)], 2, 2),
        ([("i9", "i8", 4)], 4, 4),
        ([("i5", "i5", 4)], 4, 0),  # few bits become look-up tables on iCE40
        ([("i16", "i16", 2), ("u8", "u8", 2)], 4, 3),
        ([("i20", "i8", 2)], 4, 4),  # two parts, of 4 bits the second on iCE40
        ([("i17", "i8", 2)], 2, 2),  # a part of one bit is a selection
        ([("u16", "u16", 2), ("u16", "i16", 2)], 4, 4),  # beside a number with a sign, of 17 bits
        ([("i8", "i1", 5), ("i8", "i8", 0)], 0, 0),
    ],
)
def test_multiplier_blocks_of_a_core(made, ecp5, ice40):
    def type_of(name):
        return IntType(int(name[1:]), name[0] == "i")

    products = [(type_of(x), type_of(w), count) for x, w, count in made]
    assert [costs.multiplier_blocks(family, products) for family in ("ecp5", "ice40")] == [ecp5, ice40]
