"""The report's memories: shapes of block RAM and what they leave empty, by hand; those of a graph add up."""

from __future__ import annotations

import pytest

from hwflow.codegen.memories import Memory, memories, memory_report
from hwflow.cores import costs
from hwflow.cores.beat_movers import FifoAttributes, RelayAttributes
from hwflow.cores.operator import Decision, Folding, MemoryFile
from hwflow.ir.graph import Graph, Node, Stage, Value
from hwflow.schedule.plan import Plan
from hwflow.types import IntType, TensorType


@pytest.mark.parametrize(
    ("words", "width", "writable", "blocks", "shape"),
    [
        (1000, 37, True, 3, (1024, 18)),  # 3 x 18 bits; as 512 x 36, two times two
        (512, 37, True, 2, (512, 36)),
        (5000, 3, True, 2, (8192, 2)),  # two of 4096 x 4 hold no more: the first of the shapes counts
        (2000, 8, True, 1, (2048, 9)),
        (3000, 5, True, 2, (4096, 4)),
        (3000, 5, False, 1, (1024, 18)),  # three words per row
    ],
)
def test_shapes(words: int, width: int, writable: bool, blocks: int, shape: tuple[int, int]) -> None:
    assert costs.block_ram_shape("ecp5", words, width, writable=writable) == (blocks, shape)


def test_memories_of_a_graph() -> None:
    """A queue of 269 beats of 7 bits in block RAM, the last in a register; one of 3 in registers, one of 5
    in two look-up tables of 16 x 4; a table of 120 words of 270 bits: eight of 512 x 36, several rows per word."""
    kind = TensorType((100, 1), IntType(7, True), IntType(7, True).interval)
    values = [Value(f"v{k}", kind) for k in range(4)]
    depths = {
        Node("deep", [values[0]], [values[1]], FifoAttributes()): 269,
        Node("short", [values[1]], [values[2]], RelayAttributes()): 3,
        Node("longer", [values[2]], [values[3]], RelayAttributes()): 5,
    }
    decisions = {node: Decision(Folding(1, 1), (depth,)) for node, depth in depths.items()}
    plan = Plan(Graph("memories", Stage.SCHEDULED, [], [], list(depths)), decisions)
    files = [MemoryFile("mvu_weights", [0, (1 << 270) - 1] * 60, 270), MemoryFile("short_parameters", [0] * 4, 20)]
    table = 120 * 270
    assert memories(plan, files, "ecp5") == [
        Memory("v1", "fifo", 269, 7, 1883, "block", 1, (2048, 9), 18432 - 268 * 7),
        Memory("v2", "fifo", 3, 7, 21, "register", 0, None, 0),
        Memory("v3", "fifo", 5, 7, 35, "lutram", 0, None, 2 * 64 - 35),
        Memory("mvu_weights", "table", 120, 270, table, "block", 8, (512, 36), 8 * 18432 - table),
        Memory("short_parameters", "table", 4, 20, 80, "logic", 0, None, 0),
    ]
    # of a word's bits two thirds never change: three of 512 x 36; the others are in no memory
    third = MemoryFile("third", [0, (1 << 90) - 1] * 60, 270)
    [table_of_90] = memories(Plan(Graph("third", Stage.SCHEDULED, [], [], []), {}), [third], "ecp5")
    assert (table_of_90.block_rams, table_of_90.shape, table_of_90.waste_bits) == (3, (512, 36), 3 * 18432 - 120 * 90)
    report = memory_report(plan, files, "ecp5")
    assert len(report.pop("list")) == 5
    assert report == {
        "fifo_bits": 1883 + 21 + 35,
        "line_buffer_bits": 0,
        "table_bits": table + 80,
        "weight_bits": table,
        "block_rams": 9,
        "block_ram_waste_bits": 18432 - 268 * 7 + 8 * 18432 - table,
    }
