"""What holds of every case of the harness without hardware: schedules as :mod:`hwflow.cores.timing` says they are, the
multiply-accumulates that evaluate has, attributes that copies of a graph can share."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest

from hwflow.boards import find_board
from hwflow.cores.loops.repeated import core_of
from hwflow.cores.operator import Decision
from hwflow.cores.registry import hardware
from hwflow.cores.timing import Timing
from hwflow.ir.graph import Attributes, Node
from tests.cores.cases.all_cases import CASES

PART = find_board("ulx3s_85f").part

each_operator = pytest.mark.parametrize("op", sorted(CASES))


def beats_of(node: Node, decision: Decision) -> tuple[list[int], list[int]]:
    """Of each input and output in a frame."""
    core, folding = hardware(node.op), decision.folding
    whole = folding.whole_vector
    lanes = [core.lanes_of(node, k, folding) for k in range(len(node.inputs))]
    views = [
        (core.input_view(node, value.typed.shape, n, whole_vector=whole, index=k), n)
        for k, (value, n) in enumerate(zip(node.inputs, lanes, strict=True))
    ]
    results = [
        (core.output_view(node, value.typed.shape, folding.output_lanes), folding.output_lanes)
        for value in node.outputs
    ]
    inside, outside = ([pixels * -(-channels // n) for (pixels, channels), n in each] for each in (views, results))
    return inside, outside


def check(timing: Timing, consumed: list[int], produced: list[int]) -> None:
    """Every beat once, in ascending steps of a frame; what a step waits for is known of each, and is in no later
    frame."""
    assert min(timing.latency) >= 0 and len(timing.latency) == len(produced)
    for side, counts in (("consumes", consumed), ("produces", produced)):
        found = {index: steps for process in timing.processes for index, steps in getattr(process, side).items()}
        assert {index: len(steps) for index, steps in found.items()} == dict(enumerate(counts))
    for process in timing.processes:
        for steps in (*process.consumes.values(), *process.produces.values()):
            assert (np.diff(steps) > 0).all() and steps[0] >= 0 and steps[-1] < process.steps
        for wait in process.waits:
            assert len(wait.need) * wait.steps == process.steps and wait.lag >= 0
            assert (np.diff(wait.need) >= 0).all() and wait.need[-1] < timing.processes[wait.process].steps


@each_operator
def test_schedules(op: str) -> None:
    for case in CASES[op]:
        node = case.node()
        for folding in case.foldings:
            decision = case.decision(folding, 6)
            timing = hardware(op).timing(node, decision)
            check(timing, *beats_of(node, decision))
            assert timing.cycles == hardware(op).cycles(node, folding), (case.name, folding)


@each_operator
def test_offered_foldings(op: str) -> None:
    """Each once; all of a frame's beats in the cycles that are said, and resources for every one."""
    for case in CASES[op][:4]:
        node = case.node()
        offered = hardware(op).foldings(node, PART)
        assert len(set(offered)) == len(offered), case.name
        for folding in offered[:40]:
            decision = replace(case.decision(folding, 6), provisional=True)
            timing = hardware(op).timing(node, decision)
            check(timing, *beats_of(node, decision))
            assert timing.cycles == hardware(op).cycles(node, folding), (case.name, folding)
            assert min(hardware(op).resources(node, decision, PART)) >= 0


@each_operator
def test_macs_are_the_products_of_evaluate(op: str) -> None:
    """Of weights, inputs and padding that are all 1 the results together are the number of products."""
    for case in CASES[op]:
        node = case.node()
        macs = hardware(op).macs(node)
        if not macs or getattr(node.attributes, "clipped", None):  # products with padding count, but do not come
            continue
        ones = {
            name: value for name, value in (("weights", None), ("pad_value", 1), ("binary", False), ("offsets", (0, 0)))
            if name in {field.name for field in fields(core_of(node).attributes)}
        }
        if "weights" in ones:
            ones["weights"] = np.ones_like(core_of(node).attributes.weights)
        frames = [np.ones((1, *value.typed.shape), dtype=np.int64) for value in node.inputs]
        results = hardware(op).evaluate(_with(node, ones), frames)
        assert sum(int(result.sum()) for result in results) == macs, case.name


def _with(node: Node, changes: dict[str, Any]) -> Attributes:
    """The node's attributes with others; those of one round's node where it is repeated."""
    inner = core_of(node)
    changed: Attributes = replace(inner.attributes, **changes)
    return changed if inner is node else replace(node.attributes, node=replace(inner, attributes=changed))


@each_operator
def test_attributes_are_shared_and_told_apart(op: str) -> None:
    """Copies of a graph have the same ones: they do not change, and others made of the same are others."""
    case = CASES[op][0]
    node, other = case.node(), case.node()
    hardware(op).cycles(node, case.foldings[0])
    assert node.attributes == node.attributes != other.attributes
    assert len({node.attributes, other.attributes}) == 2
    for field in fields(node.attributes):
        with pytest.raises(FrozenInstanceError):
            setattr(node.attributes, field.name, None)
