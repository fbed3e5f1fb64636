"""Every operator's model answers for every family that a board has, measured or not."""

from __future__ import annotations

import pytest

from boards import all_boards, find_board
from hwflow.boards import Part
from hwflow.cores import costs
from hwflow.cores.operator import Decision, Folding, Resources
from hwflow.cores.registry import hardware
from tests.cores.cases.all_cases import CASES
from tests.cores.harness import Bench


def predicted(part: Part, op: str) -> Resources:
    """Of the operator's first case, at its first folding."""
    case = CASES[op][0]
    bench = Bench(case, case.foldings[0], 2 if op == "frame_sync" else 6)
    return hardware(op).resources(bench.node, bench.decision, part)


def test_which_families_are_measured():
    families = {board.part.family for board in all_boards()}
    assert families == set(costs.FAMILIES)
    assert {family for family in families if costs.FAMILIES[family].measured} == {"ecp5", "ice40"}


def test_two_products_of_eight_bits_share_a_multiplier_of_the_7_series_alone():
    """25 by 18 bits hold two weights of 8 bits and an input; 18 by 18 do not. Five rows: two pairs and one by itself.

    Its core is tested as case "pairs_of_int8" is, with the sums that its interval and latency say.
    """
    (case,) = (case for case in CASES["mvu"] if case.name == "pairs_of_int8")
    node = case.node()
    paired = {}
    for board in all_boards():
        device = board.part
        offered = [f for f in hardware("mvu").foldings(node, device) if f.multiplier == "dsp2"]
        paired[device.family] = {folding.part for folding in offered}
    assert paired == {"xilinx7": {24}, "ecp5": set(), "ice40": set(), "gowin": set(), "cyclonev": set()}
    folding = Folding(5, 5, 25, "dsp2", 24)
    assert hardware("mvu").resources(node, Decision(folding, (6,)), find_board("arty_a7_35").part).dsp == 3 * 5


@pytest.mark.parametrize("op", sorted(CASES))
def test_families_that_were_not_measured_take_the_ecp5s_model(op):
    ecp5 = predicted(find_board("ulx3s_85f").part, op)
    assert predicted(find_board("arty_a7_35").part, op) == ecp5  # the same block RAMs, multipliers of 18 bits
    gowin = predicted(find_board("tang_nano_9k").part, op)
    assert (gowin.ff, gowin.bram) == (ecp5.ff, ecp5.bram) and gowin.dsp <= ecp5.dsp
    cyclone = predicted(find_board("de10_nano").part, op)
    assert (cyclone.ff, cyclone.dsp) == (ecp5.ff, ecp5.dsp) or cyclone.bram != ecp5.bram


@pytest.mark.parametrize(
    ("family", "clock", "levels"),
    [
        ("ecp5", 400, 1), ("ecp5", 200, 1), ("ecp5", 125, 1), ("ecp5", 100, 2), ("ecp5", 50, 4), ("ecp5", None, 1),
        ("ice40", 20, 1), ("gowin", 50, 1), ("xilinx7", 50, 1), ("cyclonev", 50, 1),  # not measured
    ],
)
def test_levels_of_adders_in_a_cycle(family, clock, levels):
    assert costs.FAMILIES[family].adder_levels(clock) == levels
