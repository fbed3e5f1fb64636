"""Tables of weights in block RAM, in designs that take much of a part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwflow.boards import find_board
from hwflow.boards.board import Part
from hwflow.cores.operator import Resources
from hwflow.ir.graph import Graph
from hwflow.schedule import tables_in_blocks
from hwflow.schedule.schedule import Schedule, schedule
from hwflow.schedule.search.folding_search import Budget
from hwflow.schedule.tables_in_blocks import move_tables
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
    kept = {node: plan[node] for node in units}

    def need() -> list[Resources]:
        return [plan.resources(node, PART) for node in units]

    first = need()
    move_tables(plan, PART, 40)
    blocks = [int(then.bram - now.bram) for then, now in zip(need(), first, strict=True)]
    saved = [(now.lut - then.lut) / each for then, now, each in zip(need(), first, blocks, strict=True)]
    best = saved.index(max(saved))
    for room in range(sum(blocks) + 1):
        plan.decisions.update(kept)
        move_tables(plan, PART, room)
        other = room >= sum(blocks) or (blocks[best] > room >= blocks[1 - best])
        assert [plan.folding(units[which]).in_block for which in (best, 1 - best)] == [room >= blocks[best], other]
