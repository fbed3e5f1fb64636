# amaranth: UnusedElaboratable=no
"""Sums whose multipliers are held in tables: the values and cycles of any that the tables hold.

They are no cases of the samples: without a writer yosys takes two equal words for constants.
"""

from __future__ import annotations

import pytest

from hwflow.cores.operator import Folding
from hwflow.ir.node_attributes import HeldFactors
from hwflow.types import Interval
from tests.cores import test_operators
from tests.cores.cases.case_parts import I8, U8, stream
from tests.cores.harness import GENEROUS, Bench, Case

ROOM = HeldFactors((28, 27), Interval(-1 << 36, 1 << 36))


def core(multipliers: tuple[int, int], lanes: int, kind: str, depth: int) -> Bench:
    attributes = {"axis": 1, "multipliers": tuple((each,) for each in multipliers), "held": ROOM}
    folding = Folding(lanes, lanes, 0, kind, 17 if kind == "dsp" else 0)
    case = Case("held", "scaled_add", attributes, stream(4, 5, U8), (folding,), None, (stream(4, 5, I8),))
    return Bench(case, folding, depth)


@pytest.mark.parametrize("multipliers", [(12345678, -9876543), (1, (1 << 26) - 1), (-1 << 27, 1 << 20)])
@pytest.mark.parametrize(("lanes", "kind", "depth"), [
    (1, "dsp", 1), (1, "lut", GENEROUS), (5, "dsp", 5), (5, "lut", 2),
])
def test_a_held_sum(multipliers: tuple[int, int], lanes: int, kind: str, depth: int) -> None:
    """At full rate, with gaps and stalls, and after a reset."""
    bench = core(multipliers, lanes, kind, depth)
    test_operators.test_values_and_cycles([bench])
    test_operators.test_a_frame_after_a_reset([bench])
    bench.check_no_paths()


def test_hardware_does_not_depend_on_the_multipliers() -> None:
    """The same timing and tables of the same size."""
    one, other = (core(each, 5, "dsp", 2) for each in ((12345678, -9876543), (1, 1)))
    assert one.built.component.latency == other.built.component.latency
    assert [(f.width, len(f.words)) for f in one.built.files] == [(f.width, len(f.words)) for f in other.built.files]
    assert [f.width for f in one.built.files] == [28, 27] and all(f.held for f in one.built.files)
