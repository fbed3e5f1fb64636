# amaranth: UnusedElaboratable=no
"""Every hardware operator: interval, golden model, timing and core agree, with gaps and stalls and after a reset."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hwflow.cores.operator import Folding, HardwareOperator
from hwflow.cores.registry import OPERATORS, hardware
from hwflow.cores.requantizers.requantizer_core import form_of
from hwflow.numerics.requantizers.lookup_form import LookupForm
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.quadratics import QuadraticForm
from hwflow.numerics.requantizers.search_form import SearchForm
from hwflow.numerics.requantizers.threshold_form import ThresholdForm
from tests.cores.cases.all_cases import CASES
from tests.cores.harness import FRAMES, GENEROUS, Bench, Case, extreme_frames, golden, random_frames, together
from tests.hdl_lib.bench import STALLS

ALL = [case for cases in CASES.values() for case in cases]
BUILT = [(case, folding) for case in ALL for folding in case.foldings]

# An operator's cores take turns with queues that throttle most, less, hardly and never; of an operator with few cores
# each has all. The queues themselves are tests/hdl_lib/streams/test_output_queue.py's.
DEPTHS = (1, 5, 2, GENEROUS)
FEW = 8


def with_depths(cores: list[tuple[Case, Folding]]) -> Iterator[tuple[Case, Folding, tuple[int, ...]]]:
    """The cores of an operator, each with the depths it is built with, in ascending order."""
    for number, (case, folding) in enumerate(cores):
        yield case, folding, tuple(sorted(DEPTHS)) if len(cores) < FEW else (DEPTHS[number % 4],)


COMPILED = [
    core for op in CASES for core in with_depths([(case, folding) for case, folding in BUILT if case.op == op])
]


def name_of(case: Case) -> str:
    return f"{case.op}-{case.name}"


def name_of_built(case: Case, folding: Folding) -> str:
    return f"{case.op}-{case.name}-{folding.input_lanes}x{folding.output_lanes}{folding.multiplier}"


GAPS, STALLED, BOTH = STALLS[1:]
PACES = {1: [STALLED], 2: [BOTH], 5: [GAPS], GENEROUS: []}  # beside the full rate, at every depth of queues

each_case = pytest.mark.parametrize("case", ALL, ids=[name_of(c) for c in ALL])
each_compiled_core = pytest.mark.parametrize(
    "benches", COMPILED, ids=[name_of_built(case, folding) for case, folding, _ in COMPILED], indirect=True,
    scope="module",
)


@pytest.fixture(scope="module")
def benches(request: pytest.FixtureRequest) -> list[Bench]:
    """A core with queues of its depths. The tests of one core follow each other, so that it is compiled once for all.
    """
    case, folding, depths = request.param
    return [Bench(case, folding, depth) for depth in depths]


def test_every_hardware_operator_has_cases() -> None:
    names = {name for name, operator in OPERATORS.items() if isinstance(operator, HardwareOperator)}
    names -= {"chain", "neurons"}  # made of others: tests/schedule/test_chains.py, test_truth_tables.py
    names -= {"weight_memory", "memory_queue", "memory_delay"}  # have pins: tests/hdl_lib/memories, tests/flow
    names -= {"layer_engine"}  # takes nothing but its own weights: tests/hdl_lib/engine, tests/cores/engine, tests/flow
    assert names == {name for name, cases in CASES.items() if cases}


def test_the_requantizers_take_every_form() -> None:
    forms = {(case.name.split("_")[0], type(form_of(case.node()))) for case in CASES["requantize"]}
    assert forms == {
        ("multiply", MultiplyAddShift),
        ("thresholds", ThresholdForm),
        ("sign", ThresholdForm),
        ("search", SearchForm),
        ("table", LookupForm),
        ("constant", LookupForm),
        ("quadratics", QuadraticForm),
    }


@each_case
def test_the_interval_holds_every_result(case: Case) -> None:
    node = case.node()
    frames = together(random_frames(case, 20, 1), extreme_frames(case, 2))
    for value, result in zip(node.outputs, golden(node, frames), strict=True):
        assert result.shape == (len(frames[0]), *value.typed.shape)
        element = value.typed.element.interval
        assert element.hull(value.typed.interval) == element, "the element type does not hold the interval"
        for channel, interval in enumerate(value.typed.channel_intervals(1)):
            found = result[:, :, channel]
            assert interval.lo <= found.min() and found.max() <= interval.hi, f"channel {channel}"
            assert value.typed.interval.hull(interval) == value.typed.interval


@pytest.mark.parametrize("case", [c for c in ALL if c.corners], ids=[name_of(c) for c in ALL if c.corners])
def test_the_interval_is_reached_at_both_ends(case: Case) -> None:
    node = case.node()
    frames = case.corner_frames(node)
    for value, result in zip(node.outputs, golden(node, frames), strict=True):
        for channel, interval in enumerate(value.typed.channel_intervals(1)):
            assert (result[:, :, channel].min(), result[:, :, channel].max()) == (interval.lo, interval.hi), (
                f"channel {channel}"
            )


@each_compiled_core
def test_values_and_cycles(benches: list[Bench]) -> None:
    """At full rate every beat comes in its cycle, with queues that throttle and queues that do not; with gaps and
    stalls the values stay."""
    for core in benches:
        operator = hardware(core.case.op)
        assert operator.cycles(core.node, core.folding) == operator.timing(core.node, core.decision).cycles
        first = together(random_frames(core.case, FRAMES - 1, 4), [array[:1] for array in extreme_frames(core.case, 5)])
        second = random_frames(core.case, 2, 3)
        predicted, paces = core.predicted(FRAMES), PACES[core.depth]
        runs = [(first, 0.0, 0.0), *((second, gap, stall) for gap, stall in paces)]
        due = zip(golden(core.node, first), golden(core.node, second), strict=True)
        for output, (expected, later) in enumerate(due):
            full, *slow = core.run(runs, output, predicted.before)
            assert np.array_equal(core.values(full.beats, output), expected), core.depth
            assert full.out_cycles == predicted.outputs[output].reshape(-1).tolist(), core.depth
            for trace, pace in zip(slow, paces, strict=True):
                assert np.array_equal(core.values(trace.beats, output), later), (core.depth, pace, output)


@each_compiled_core
def test_a_frame_after_a_reset(benches: list[Bench]) -> None:
    core = benches[-1]
    frames = random_frames(core.case, 2, 6)
    for output, expected in enumerate(golden(core.node, frames)):
        assert np.array_equal(core.values(core.run_after_reset(frames, 7 + output, output), output), expected)


@each_compiled_core
def test_no_combinational_path(benches: list[Bench]) -> None:
    benches[0].check_no_paths()
