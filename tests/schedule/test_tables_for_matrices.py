"""Neurons as truth tables: where scheduling puts them, and that designs with them compute what the golden model does.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from amaranth.back import rtlil

from hwflow.cores import costs
from hwflow.cores.chain import ChainAttributes
from hwflow.cores.matrix.neurons import Neurons
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Graph, Node
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import planned, schedule
from hwflow.schedule.search.folding_search import Budget, FoldingSearch
from hwflow.schedule.tables_for_matrices import insert_truth_tables
from hwflow.toolchain import tool
from hwflow.toolchain.yosys import YOSYS, mapping, read_statistics, synthesis_script
from hwflow.types import IntType
from tests.schedule.graphs import Builder, dataflow
from tests.schedule.test_simulated import PART, check

WHOLE = Budget(PART.lut, PART.ff, PART.dsp, PART.bram)


def sparse_graph(
    sizes: tuple[int, ...] = (9, 12, 8, 5), fan_in: int = 3, bits: int = 2, signed: bool = False, seed: int = 0
) -> Graph:
    """Dense layers whose neurons read ``fan_in`` inputs each, and requantizers in turn."""
    rng = np.random.default_rng(seed)
    build = Builder(rng)
    element = IntType(bits, signed)
    value = build.input(sizes[:1], element)
    for inputs, outputs in pairwise(sizes):
        weights = np.zeros((outputs, inputs), dtype=np.int64)
        for row in weights:
            row[rng.permutation(inputs)[:fan_in]] = rng.choice([-7, -5, -3, -2, -1, 1, 2, 3, 5, 7], fan_in)
        value = build.requantize(build.node("dense", value, weights=weights), element)
    build.output(value)
    return build.done()


def cores(plan: Plan) -> list[str]:
    """The operators of the plan's cores, without what is around them."""
    return [node.op for node in plan.cores if node.op not in ("frame_sync", "chain")]


@pytest.mark.parametrize(
    ("fan_in", "bits", "signed", "seed"), [(3, 2, False, 0), (2, 3, True, 1), (6, 1, False, 2)]
)
def test_a_frame_a_cycle(fan_in: int, bits: int, signed: bool, seed: int) -> None:
    graph = sparse_graph(fan_in=fan_in, bits=bits, signed=signed, seed=seed)
    scheduled = check(graph, seed, 1, 1)
    assert scheduled.initiation_interval == 1
    assert cores(scheduled.plan) == ["neurons"] * 3


def test_windows_of_few_bits() -> None:
    """A convolution whose windows come whole, in every cycle but those of its line buffer."""
    build = Builder(np.random.default_rng(0))
    bit = IntType(1, signed=False)
    sums = build.conv2d(build.input((1, 5, 6), bit), 3, 3, 1, 1, IntType(3, signed=True))
    build.output(build.requantize(sums, IntType(2, signed=False)))
    scheduled = check(build.done(), 0, 1, 1)
    assert cores(scheduled.plan) == ["sliding_window", "neurons"]


def test_several_vectors_per_beat() -> None:
    """A frame of four vectors a cycle."""
    build = Builder(np.random.default_rng(0))
    weights = np.array([[1, -2, 0], [0, 3, 1], [2, 0, -1]])
    sums = build.node("dense", build.input((4, 3), IntType(2, signed=False)), weights=weights)
    build.output(build.requantize(sums, IntType(2, signed=False), per_channel=False))
    scheduled = check(build.done(), 0, 1, 1)
    assert scheduled.initiation_interval == 1
    assert cores(scheduled.plan) == ["neurons"]


def test_registers_between_tables() -> None:
    """At 300 MHz there is one behind every table."""
    scheduled = check(sparse_graph(fan_in=4), 0, 1, 1, part=replace(PART, clock_mhz=300.0))
    assert cores(scheduled.plan) == ["neurons"] * 3
    assert scheduled.latency > schedule(dataflow(sparse_graph(fan_in=4)), PART, WHOLE).latency


def test_tables_are_in_chains() -> None:
    """Behind each layer one register, the next one's; the chain ends where its stream is narrowest: at the end."""
    plan = schedule(dataflow(sparse_graph()), PART, WHOLE, 1).plan
    (chain,) = [node for node in plan.graph.nodes if isinstance(node.attributes, ChainAttributes)]
    assert [member.node.op for member in chain.attributes.members] == ["frame_sync", *["neurons"] * 3]
    assert plan.timing(chain).latency[0] == 3 + 1


def test_the_smaller_is_taken() -> None:
    """Tables where neurons read six bits; adders where they read twelve, of long weights."""
    rng = np.random.default_rng(0)
    build = Builder(rng)
    element = IntType(6, signed=False)
    value = build.input((3,), element)
    for fan_in in (1, 2):
        weights = np.zeros((3, 3), dtype=np.int64)
        for number, row in enumerate(weights):
            row[(number + np.arange(fan_in)) % 3] = rng.integers(50, 120, fan_in)
        value = build.requantize(build.node("dense", value, weights=weights), element, per_channel=False)
    build.output(value)
    plan = schedule(dataflow(build.done()), PART, WHOLE, 1).plan
    assert cores(plan) == ["neurons", "mvu", "requantize"]


def test_more_bits_than_a_table_may_have() -> None:
    for fan_in, expected in ((6, ["neurons"]), (7, ["mvu", "requantize"])):
        graph = dataflow(sparse_graph((9, 4), fan_in, seed=2))
        assert cores(schedule(graph, PART, WHOLE, 1).plan) == expected


def test_fewer_frames_have_no_tables() -> None:
    """The search knows none: what it chooses at other rates is as it was."""
    graph = dataflow(sparse_graph())
    search = FoldingSearch(graph, PART, WHOLE)
    for interval in search.intervals[1:]:
        plan = planned(graph, search.for_interval(interval)[1])
        folded = [node for node in plan.graph.nodes if node.op == "mvu" and plan.cycles(node) > 1]
        insert_truth_tables(plan, PART)
        assert set(folded) <= set(plan.graph.nodes)


def test_a_budget_that_only_tables_meet() -> None:
    """The search alone finds nothing within it, at any rate."""
    graph = dataflow(sparse_graph())
    need = schedule(graph, PART, WHOLE).resources
    tight = Budget(need.lut, need.ff, 0, 0)
    assert FoldingSearch(graph, PART, tight).choose(1) is None
    for interval in (None, 1):
        assert schedule(graph, PART, tight, interval).resources == need
    with pytest.raises(ModelRefused):
        schedule(graph, PART, replace(tight, lut=need.lut - 1))


def test_tables_are_as_large_as_predicted(tmp_path: Path) -> None:
    """Yosys' look-up tables and flip-flops of a layer, with the time that it is given for logic."""
    plan = schedule(dataflow(sparse_graph((20, 24), fan_in=4)), PART, WHOLE, 1).plan
    (node,) = [node for node in plan.graph.nodes if node.op == "neurons"]
    decision = replace(plan[node], depths=(0,))
    core = Neurons().build(node, decision, "core").component
    (tmp_path / "core.il").write_text(rtlil.convert(core, name="core"))
    script = synthesis_script(
        mapping("synth_ecp5", "core", tmp_path), [], "core.il", "core", "core", statistics="stat.json",
        netlist="netlist.json", logic_ns=4.0,
    )
    (tmp_path / "script.ys").write_text(script)
    log = tmp_path / "log"
    tool.run(YOSYS.find(), ["-q", "-s", "script.ys"], tmp_path, log, step="synthesis", remedy="read the log")
    found = read_statistics(tmp_path / "stat.json", "ecp5", "core")
    need = Neurons().resources(node, decision, PART)
    assert abs(need.lut - found["lut"]) <= 0.1 * found["lut"]
    assert abs(need.ff - found["ff"]) <= 0.1 * found["ff"]


def test_a_layer_is_never_larger_for_its_tables() -> None:
    graph = dataflow(sparse_graph(fan_in=4, seed=3))
    plan = planned(graph, FoldingSearch(graph, PART, WHOLE).for_interval(1)[1])
    before = {node.name: hardware_cost(plan, node) for node in plan.graph.nodes}
    insert_truth_tables(plan, PART)
    for node in plan.graph.nodes:
        if node.op == "neurons":
            parts = node.attributes.matrix.name, node.attributes.requantizer.name
            assert hardware_cost(plan, node) < sum(before[name] for name in parts)


def hardware_cost(plan: Plan, node: Node) -> int:
    plan[node] = replace(plan[node], depths=(0,))
    need = plan.resources(node, PART)
    return need.lut + need.ff


def test_levels_of_tables_in_a_cycle() -> None:
    family = costs.FAMILIES["ecp5"]
    assert [family.table_levels(mhz) for mhz in (None, 125.0, 300.0, 1000.0)] == [8, 6, 1, 1]
