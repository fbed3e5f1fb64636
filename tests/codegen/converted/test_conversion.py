"""Conversion that begins before queues are sized makes what conversion at the end does, and makes it once."""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import Executor, Future
from dataclasses import replace

import pytest

from hwflow.boards import find_board
from hwflow.codegen.converted.conversion import Conversion
from hwflow.codegen.converted.modules import Job
from hwflow.cores.beat_movers import PLUMBING
from hwflow.cores.verilog_names import identifiers
from hwflow.cores.windows.sliding_window import has_line_buffer
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import schedule
from hwflow.schedule.search.folding_search import Budget
from tests.schedule.graphs import dataflow, meeting_graph

PART = find_board("ulx3s_85f").part
BUDGET = Budget(lut=20_000, ff=40_000, dsp=64, bram=100)
MODULE = re.compile(r"(?m)^module \\(\S+)$")
CELL = re.compile(r"(?m)^  cell \\(\S+) ")


class Eager(Executor):
    """Runs what it is given at once; ``ran``: the instances of the cores."""

    def __init__(self):
        self.ran = []

    def submit(self, function, /, job):
        future = Future()
        future.set_running_or_notify_cancel()
        if isinstance(job, Job):
            self.ran.append(job.instance)
        future.set_result(function(job))
        return future


class Never(Executor):
    """Comes to nothing; ``given``: what it was asked for."""

    def __init__(self):
        self.given = []

    def submit(self, function, /, job):
        self.given.append(Future())
        return self.given[-1]


def named(plan: Plan):
    names = identifiers([node.name for node in plan.graph.nodes])
    return {node: names[node.name] for node in plan.graph.nodes}


def scheduled(chosen=None):
    return schedule(dataflow(meeting_graph(3)), PART, BUDGET, 200, chosen=chosen).plan


@pytest.fixture(scope="module")
def alone():
    """The plan, and its modules converted at the end."""
    plan = scheduled()
    return plan, Conversion().modules(plan, named(plan))


def test_begun_early_it_is_the_same_and_made_once(alone):
    executor = Eager()
    conversion = Conversion(executor)
    plan = scheduled(conversion.begin)
    early = Counter(executor.ran)
    assert set(early) == {n for node, n in named(plan).items() if not isinstance(node.attributes, PLUMBING)}
    assert conversion.modules(plan, named(plan)) == alone[1]
    assert Counter(executor.ran) == Counter(named(plan).values())


def test_what_changed_after_the_beginning_is_made_anew(alone):
    executor = Eager()
    conversion = Conversion(executor)
    plan, _ = alone
    window = next(node for node in plan.graph.nodes if has_line_buffer(node))
    instance = named(plan)[window]
    longer = replace(plan[window], rows=plan[window].rows + 1)
    conversion.begin(Plan(plan.graph, {**plan.decisions, window: longer}))
    assert conversion.modules(plan, named(plan)) == alone[1]
    assert executor.ran.count(instance) == 2
    assert all(executor.ran.count(name) == 1 for node, name in named(plan).items() if node is not window)


def test_what_another_choice_replaced_is_not_begun(alone):
    executor = Never()
    conversion = Conversion(executor)
    conversion.begin(scheduled())
    first = list(executor.given)
    conversion.begin(alone[0])
    assert len(first) > 3
    assert all(future.cancelled() for future in first)
    assert not any(future.cancelled() for future in executor.given[len(first) :])
    assert conversion.modules(alone[0], named(alone[0])) == alone[1]


def test_what_cores_have_in_common_is_one_module(alone):
    plan, modules = alone
    text = "".join(module.rtlil for module in modules)
    made = MODULE.findall(text)
    assert len(made) == len(set(made))
    used = set(CELL.findall(text)) | {module.name.replace(".", "__") for module in modules}
    assert {name for name in made if not re.search(r"storage|__up$|__down$", name)} <= used
    queues = [
        (plan[node].folding.output_lanes * value.typed.element.bits, depth)
        for node in plan.graph.nodes
        if node.op != "mvu"  # its sums may have fewer bits than their type
        for value, depth in zip(node.outputs, plan[node].depths, strict=True)
    ]
    there = {f"hwflow_top__queue__{width}x{depth}" for width, depth in queues}
    assert len(there) < len(queues)
    assert there <= set(made)
