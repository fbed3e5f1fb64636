"""Tables of weights and of requantizers in block RAM, in designs that take much of a part."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hdl_lib.arithmetic.multiplier import ProductForm
from hwflow.boards import find_board
from hwflow.boards.board import Part
from hwflow.cores.operator import Resources
from hwflow.ir.graph import Graph, Value
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.schedule import tables_in_blocks
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import Schedule, schedule
from hwflow.schedule.search.folding_search import Budget
from hwflow.schedule.tables_in_blocks import with_moved_tables
from hwflow.types import IntType
from tests.schedule.graphs import Builder, dataflow
from tests.schedule.simulation import check_emitted, check_simulated

PART = replace(find_board("ulx3s_85f").part, dsp=0, lut=9000)
INTERVAL = 32


def layers() -> Graph:
    """Dense layers of 24 x 40 and 40 x 32 weights."""
    build = Builder(np.random.default_rng(0))
    value = build.input((24,), IntType(6, True))
    for outputs in (40, 32):
        value = build.requantize(build.dense(value, outputs, IntType(6, True)), IntType(6, True), per_channel=False)
    build.output(value)
    return build.done()


def images() -> Graph:
    """A depthwise convolution and one of single pixels, with a scale for each channel behind both."""
    build = Builder(np.random.default_rng(1))
    value = build.input((10, 4, 4), IntType(8, True))
    weights = build.rng.integers(-8, 8, (10, 1, 3, 3))
    window = {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1), "pad_value": 0, "groups": 10}
    value = scaled(build, build.node("conv2d", value, weights=weights, **window))
    build.output(scaled(build, build.conv2d(value, 6, 1, 1, 0, IntType(4, True))))
    return build.done()


def scaled(build: Builder, source: Value) -> Value:
    """To eight bits, each channel by a scale of its own."""
    scales = build.rng.uniform(200, 300, source.typed.shape[0]) / source.typed.interval.hi
    stages = [
        (QuantizerStage(Fraction(float(np.float32(scale))), Fraction(0), (), Fraction(1), 0, -128, 127),)
        for scale in scales
    ]
    return build.node("requantize", source, axis=0, stages=tuple(stages))


def on(part: Part, block_rams: int) -> Schedule:
    return schedule(dataflow(layers()), part, Budget(part.lut, part.ff, part.dsp, block_rams), INTERVAL)


def moved(design: Schedule) -> list[bool]:
    """Of each matrix unit."""
    return [design.plan.folding(node).in_block for node in design.plan.cores if node.op == "mvu"]


@pytest.fixture
def before() -> Schedule:
    """The same design with its tables where they were."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_in_blocks, "MUCH", 2.0)
        return on(PART, 40)


def test_a_large_design_has_its_tables_in_block_ram(before: Schedule, tmp_path: Path) -> None:
    """Of a part's look-up tables it takes more than half; nothing but the tables changes, and what it takes is what
    its nodes take."""
    design = on(PART, 40)
    assert (moved(before), moved(design)) == ([False, False], [True, True])
    assert (design.initiation_interval, design.latency) == (before.initiation_interval, before.latency)
    blocks, saved = design.resources.bram - before.resources.bram, before.resources.lut - design.resources.lut
    assert blocks > 0 and saved >= 64 * blocks
    plan = design.plan
    assert design.resources == sum((plan.resources(node, PART) for node in plan.parts), Resources())
    check_emitted(layers(), design, tmp_path)


@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_simulated(gap: float) -> None:
    check_simulated(layers(), on(PART, 40), gap=gap)


def test_as_many_as_there_is_room_for(before: Schedule) -> None:
    plan = before.plan
    units = [node for node in plan.cores if node.op == "mvu"]

    def need(plan: Plan) -> list[Resources]:
        return [plan.resources(node, PART) for node in units]

    first, last = need(plan), need(with_moved_tables(plan, PART, 40))
    blocks = [int(then.bram - now.bram) for then, now in zip(last, first, strict=True)]
    saved = [(now.lut - then.lut) / each for then, now, each in zip(last, first, blocks, strict=True)]
    best = saved.index(max(saved))
    for room in range(sum(blocks) + 1):
        made = with_moved_tables(plan, PART, room)
        other = room >= sum(blocks) or (blocks[best] > room >= blocks[1 - best])
        assert [made.folding(units[which]).in_block for which in (best, 1 - best)] == [room >= blocks[best], other]
    assert need(plan) == first  # a plan that has been made is left as it is


@pytest.mark.parametrize(("interval", "kind"), [(160, ProductForm.NONE), (1600, ProductForm.SERIAL)])
def test_tables_of_other_cores(interval: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of depthwise convolutions, and of requantizers with products at once or digit by digit: where a block RAM need
    not replace much, all lie in such."""
    monkeypatch.setattr(tables_in_blocks, "MUCH", 0.0)
    monkeypatch.setattr(tables_in_blocks, "_LEAST", -1000)
    part = find_board("ulx3s_85f").part
    design = schedule(dataflow(images()), part, Budget(part.lut, part.ff, part.dsp, part.bram), interval)
    foldings = {node: design.plan.folding(node) for node in design.plan.cores}
    assert all(foldings[node].in_block for node in foldings if node.op in ("depthwise", "mvu"))
    requantizers = [foldings[node] for node in foldings if node.op == "requantize"]
    assert any(folding.in_block and folding.multiplier == kind for folding in requantizers)
    check_emitted(images(), design, tmp_path)
    for gap in (0.0, 0.3):
        check_simulated(images(), design, gap=gap)
