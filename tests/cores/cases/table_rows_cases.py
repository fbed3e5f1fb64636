"""Cases of rows of a table: rows of one beat and of several, a power of two of rows and other numbers, from the end."""

from __future__ import annotations

import numpy as np

from hwflow.cores.operator import Folding
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, IntType, TensorType
from tests.cores.harness import Case


def _case(
    name: str, pixels: int, channels: int, rows: int, columns: int, values: tuple[int, int], lanes: tuple[int, ...],
    *, behind: bool = False, most: int = -1,
) -> Case:
    """Numbers up to ``most`` (-1: the last row's), with ``behind`` negative ones too."""
    table = np.random.default_rng(rows * columns).integers(*values, (rows, columns), endpoint=True)
    interval = Interval(-rows if behind else 0, rows - 1 if most < 0 else most)
    source = TensorType((pixels, channels), IntType.holding(interval), interval)
    return Case(name, "table_rows", {"table": table}, source, tuple(Folding(1, n) for n in lanes), _every_number)


def _every_number(node: Node) -> IntArray:
    """Frames with every number there may be."""
    interval, shape = node.inputs[0].typed.interval, node.inputs[0].typed.shape
    count = interval.hi - interval.lo + 1
    frames = -(-count // (shape[0] * shape[1]))
    return np.resize(np.arange(interval.lo, interval.hi + 1), (frames, *shape))


TABLE_ROWS = [
    _case("whole_rows", 4, 1, 10, 3, (-128, 127), (3,)),
    _case("parts", 4, 1, 10, 5, (-128, 127), (1, 2, 3)),
    _case("powers_of_two", 2, 3, 16, 8, (0, 255), (1, 2, 3, 4, 8)),
    _case("single_column", 6, 2, 21, 1, (0, 15), (1,)),
    _case("from_the_end", 4, 1, 10, 4, (-8, 7), (1, 2, 4), behind=True),
    _case("powers_from_the_end", 3, 2, 8, 6, (-8, 7), (1, 4, 6), behind=True),
    _case("first_rows", 4, 1, 12, 4, (-100, 3), (2, 4), most=6),
    _case("two_rows", 4, 2, 2, 3, (0, 1), (1, 3)),
    _case("one_row", 2, 2, 1, 4, (3, 9), (1, 2)),
    _case("in_block_ram", 5, 1, 100, 12, (-128, 127), (1, 4, 12)),
    _case("in_banks", 3, 1, 700, 12, (-128, 127), (3, 12)),
]
