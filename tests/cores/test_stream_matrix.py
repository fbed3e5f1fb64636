"""The interval of products with matrices that come as a stream, and what no such core can be."""

from __future__ import annotations

import pytest

from hdl_lib.matrices.stream_matrix import FoldedRounds, MatrixRounds
from hwflow.cores.operator import Folding
from hwflow.cores.registry import hardware
from tests.cores.cases.case_parts import PART, stream
from tests.cores.cases.stream_matrix_cases import STREAM_MATRIX
from tests.cores.harness import GENEROUS, Bench, Case
from tests.cores.one_operator import I8

FRAMES = 12
BUILT = [(case, folding) for case in STREAM_MATRIX for folding in case.foldings]


@pytest.mark.parametrize(("case", "folding"), BUILT)
def test_frames_follow_each_other_in_the_cycles_that_are_said(case: Case, folding: Folding) -> None:
    """Writing and using the halves of the memory overlap: of an odd number of rounds, half a cycle may be left."""
    bench = Bench(case, folding, GENEROUS)
    (ends,) = (cycles[:, -1] for cycles in bench.predicted(FRAMES).outputs)
    said = 2 * hardware("stream_matrix").cycles(bench.node, folding)
    assert said - 1 <= ends[-1] - ends[-3] <= said


def test_busy_multipliers() -> None:
    """Of attention over 64 positions: all foldings but those that lanes do not divide keep their multipliers busy."""
    rounds = MatrixRounds(32, 64, 128, sets=2, interleaved=True)
    case = Case(
        "attention", "stream_matrix", {"rounds": rounds, "offsets": (0, 0)}, stream(128, 32, I8), (), None,
        (stream(128, 32, I8),),
    )
    node, operator = case.node(), hardware("stream_matrix")
    even = [
        folding for folding in operator.foldings(node, PART)
        if 64 % folding.output_lanes == 0 and 32 % folding.input_lanes == 0
    ]
    assert len({folding.multipliers for folding in even}) == 12  # powers of two, up to one vector a cycle
    for folding in even:
        assert operator.macs(node) / (operator.cycles(node, folding) * folding.multipliers) > 0.98


@pytest.mark.parametrize(("numbers", "message"), [((0, 1, 1), "inner must be at least 1"), ((1, 1, 0), "vectors must")])
def test_rounds_that_cannot_be(numbers: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MatrixRounds(*numbers)


def test_turns_that_do_not_end_with_the_round() -> None:
    with pytest.raises(ValueError, match="multiple of sets \\* repeat, 6, not 9"):
        MatrixRounds(2, 2, 9, sets=2, repeat=3)


@pytest.mark.parametrize(("pe", "simd", "message"), [(4, 1, "pe must be 1 to 3, not 4"), (1, 0, "simd must be 1 to 2")])
def test_foldings_that_cannot_be(pe: int, simd: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FoldedRounds(MatrixRounds(2, 3, 1), pe, simd)
