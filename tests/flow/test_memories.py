"""The report's memories: shapes of block RAM and what they leave empty, by hand; those of a graph add up."""

from __future__ import annotations

import pytest
from hwflow.boards import find_board

from hwflow.codegen.memories import memories, memory_report
from hwflow.codegen.top import Top
from hwflow.ops import costs
from hwflow.schedule.folding import Budget
from hwflow.schedule.schedule import schedule
from tests.schedule.graphs import dataflow, skewed_graph

PART = find_board("ulx3s_85f").part


@pytest.mark.parametrize(
    ("words", "width", "writable", "blocks", "shape"),
    [
        (1000, 37, True, 3, (1024, 18)),  # 3 x 18 bits; as 512 x 36, two times two
        (512, 37, True, 2, (512, 36)),
        (5000, 3, True, 2, (8192, 2)),  # two of 4096 x 4 hold no more: the first of the shapes counts
        (2000, 8, True, 1, (2048, 9)),
        (3000, 5, True, 2, (4096, 4)),
        (3000, 5, False, 1, (1024, 18)),  # three words a row
    ],
)
def test_shapes(words: int, width: int, writable: bool, blocks: int, shape: tuple[int, int]) -> None:
    assert costs.block_ram_shape("ecp5", words, width, writable=writable) == (blocks, shape)


def test_memories_of_a_graph() -> None:
    """A queue in block RAM, one less row than beats; line buffers; weights and requantizers' parameters."""
    budget = Budget(PART.lut // 8, PART.ff // 8, PART.dsp // 8, PART.bram // 8)
    scheduled = schedule(dataflow(skewed_graph()), PART, budget)
    files = Top(scheduled.graph).files
    found = {(memory.kind, memory.name): memory for memory in memories(scheduled.graph, files, "ecp5")}
    (fifo,) = (node for node in scheduled.graph.nodes if node.op == "fifo")
    queue = found["fifo", fifo.outputs[0].name]
    (depth,) = fifo.attributes["depths"]
    assert (queue.kind, queue.storage, queue.words, queue.width, queue.bits) == ("fifo", "block", depth, 7, 7 * depth)
    assert (queue.block_rams, queue.waste_bits) == (1, 18432 - 7 * (depth - 1))
    report = memory_report(scheduled.graph, files, "ecp5")
    assert report["block_rams"] == scheduled.resources.bram
    for kind in ("fifo", "line_buffer", "table"):
        assert report[f"{kind}_bits"] == sum(m.words * m.width for m in found.values() if m.kind == kind) > 0
    assert report["weight_bits"] == sum(len(f.words) * f.width for f in files if "weights" in f.name)
    assert report["block_ram_waste_bits"] == sum(m.waste_bits for m in found.values() if m.storage == "block")
