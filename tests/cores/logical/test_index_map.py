"""Maps of elements: the loops that make them, the least beat that is wiring, what a buffer needs and frees when."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hdl_lib.memories.address_walk import AddressWalk, LoopAxis
from hdl_lib.memories.pad_crop import Part
from hdl_lib.memories.rearrange import RearrangePlan
from hwflow.cores.logical.index_map import FILL, IndexMap, as_loops


def addresses(walk: AddressWalk) -> list[int]:
    """The whole sequence, in order; FILL for a step without an address."""
    sequence = [walk.start]
    for axis in walk.axes:
        sequence = [
            FILL if base == FILL or offset is None else base + offset for base in sequence for offset in axis.offsets
        ]
    return sequence


def test_a_transposed_matrix_is_two_loops() -> None:
    walk = as_loops(np.arange(15).reshape(3, 5).T.reshape(-1))
    assert walk == AddressWalk((LoopAxis(5, 1), LoopAxis(3, 5)))


def test_rows_beside_padding_are_a_table_and_a_loop() -> None:
    walk = as_loops(np.pad(np.arange(6).reshape(2, 3), ((1, 1), (0, 0)), constant_values=FILL).reshape(-1))
    assert walk == AddressWalk((LoopAxis(4, 0, (None, 0, 3, None)), LoopAxis(3, 1)))


@given(st.data())
def test_loops_make_what_they_are_found_in(data: st.DataObject) -> None:
    """Axes repeated, cut, turned, padded: whatever the order, the loops give it back."""
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    numbers = np.arange(np.prod(shape)).reshape(shape)
    for axis in range(len(shape)):
        picks = st.lists(st.integers(-1, shape[axis] - 1), min_size=1, max_size=6)
        pick = np.array(data.draw(picks.filter(lambda p: max(p) >= 0)))
        holes = np.moveaxis(np.broadcast_to((pick < 0).reshape(-1, *(1,) * (len(shape) - 1)),
                                            (len(pick), *np.delete(numbers.shape, axis))), 0, axis)
        numbers = np.where(holes, FILL, np.take(numbers, np.maximum(pick, 0), axis=axis))
    words = numbers.transpose(data.draw(st.permutations(range(len(shape))))).reshape(-1)
    if words.max() >= 0:
        assert addresses(as_loops(words)) == words.tolist()


@pytest.mark.parametrize(
    ("index", "elements", "beat", "sources"),
    [
        ([1, 0, 3, 2], 4, 2, (1, 0)),
        ([0, 0, 1, 1], 2, 1, (0, 0)),
        ([2, 3, 0, 1], 4, 4, (2, 3, 0, 1)),
        ([0, FILL, 2, FILL], 4, 2, (0, None)),
        ([FILL, FILL, 0, 1], 2, 2, (None, None, 0, 1)),
        ([0, 1, 2], 6, 6, (0, 1, 2)),
    ],
)
def test_least_wiring(index: list[int], elements: int, beat: int, sources: tuple[int | None, ...]) -> None:
    assert IndexMap(np.array(index), elements).least_wiring == (beat, sources)


def test_beats_of_several_elements() -> None:
    numbers = np.arange(24).reshape(4, 6)
    moved = IndexMap(numbers[::-1], 24)
    assert moved.words(6).tolist() == [3, 2, 1, 0]
    assert moved.words(12) is None  # two rows together are no beat of the source
    assert IndexMap(numbers[:, 1:], 24).words(5) is None


@given(st.lists(st.integers(-1, 11), min_size=1, max_size=24), st.integers(1, 4))
def test_a_plan_needs_and_frees_what_its_order_does(order: list[int], inner: int) -> None:
    """Against a look at every step: what a round reads is in the buffer, and is not freed before its last use."""
    words = np.array(order * inner)
    if words.max() < 0:
        return
    plan = RearrangePlan(as_loops(words), 12)
    sequence = addresses(plan.walk)
    before = plan.skipped
    assert len(plan.needed) == len(plan.released) == plan.rounds
    for number, (need, release) in enumerate(zip(plan.needed, plan.released, strict=True)):
        steps = sequence[number * plan.steps : (number + 1) * plan.steps]
        later = [at for at in sequence[number * plan.steps :] if at != FILL]
        assert all(at < need for at in steps) and 1 <= need <= 12
        assert all(at >= before for at in later)
        assert need - before <= plan.least_rows <= plan.rows
        assert release >= before
        before = release
    assert before == 12 + plan.skipped
    assert sum(phase.count for phase in plan.phases) == plan.rounds
    assert sum(phase.count * phase.needed for phase in plan.phases) == 12
    assert sum(phase.count * phase.released for phase in plan.phases) == 12


def cycles_per_frame(plan: RearrangePlan, rows: int) -> float:
    """Cycle by cycle: those the last of many frames take whose beats are always there; infinite if nothing moves."""
    frames, idle = 12, 0
    written, step, freed, cycle, ends = 0, 0, plan.skipped, 0, []
    to_free: dict[int, int] = {}
    steps = plan.walk.steps
    while len(ends) < frames and idle < 1000:
        freed += to_free.pop(cycle, 0)
        frame, within = divmod(step, steps)
        current = within // plan.steps
        reads = written >= frame * plan.beats + plan.needed[current]
        writes = written < frames * plan.beats and written < freed + rows
        idle = 0 if reads or writes else idle + 1
        if reads:
            if step % plan.steps == plan.steps - 1:
                before = plan.released[current - 1] if current else plan.skipped
                to_free[cycle + plan.writer_lag] = plan.released[current] - before
            step += 1
            if step % steps == 0:
                ends.append(cycle)
        written += writes
        cycle += 1
    return (ends[-1] - ends[-5]) / 4 if len(ends) == frames else float("inf")


@given(st.lists(st.integers(-1, 11), min_size=1, max_size=24), st.integers(1, 4))
@example([11 - k for k in range(12)], 1)
@example(list(range(12)), 1)
@example([0] * 11 + [11], 1)
@example([5], 1)
def test_the_buffer_keeps_the_pace_and_is_the_least_that_does(order: list[int], inner: int) -> None:
    words = np.array(order * inner)
    if words.max() < 0:
        return
    plan = RearrangePlan(as_loops(words), 12)
    assert cycles_per_frame(plan, plan.sustaining_rows) == plan.cycles
    assert plan.sustaining_rows == plan.least_rows or cycles_per_frame(plan, plan.sustaining_rows - 1) > plan.cycles
    assert plan.rows >= plan.sustaining_rows


@given(st.lists(st.integers(-1, 11), min_size=1, max_size=24), st.integers(1, 4), st.integers(0, 40))
@example([11 - k for k in range(12)], 1, 2)
@example([0] * 11 + [11], 1, 20)
def test_a_slower_pace_needs_no_larger_buffer(order: list[int], inner: int, slower: int) -> None:
    words = np.array(order * inner)
    if words.max() < 0:
        return
    quick = RearrangePlan(as_loops(words), 12)
    plan = RearrangePlan(quick.walk, 12, quick.cycles + slower)
    assert plan.sustaining_rows <= quick.sustaining_rows
    assert cycles_per_frame(plan, plan.sustaining_rows) <= quick.cycles + slower


def test_a_whole_frame_needs_a_second_one_only_as_long_as_they_overlap() -> None:
    """Twelve beats backwards: read for twelve cycles, free two later, written for twelve."""
    walk = as_loops(np.arange(12)[::-1])
    rows = {slower: RearrangePlan(walk, 12, 12 + slower).sustaining_rows for slower in (0, 1, 2, 13, 14)}
    assert rows == {0: 25, 1: 24, 2: 23, 13: 12, 14: 12}


@given(st.lists(st.integers(-1, 11), min_size=1, max_size=24))
@example([-1, 0, 1, -1])
@example([-1, -1, 3, 4, -1, 9])
@example([11])
@example(list(range(12)))
def test_a_frame_in_order_is_what_its_parts_say(order: list[int]) -> None:
    """Part by part: what passes are the frame's beats in order, of which cropped ones are left out."""
    words = np.array(order)
    if words.max() < 0:
        return
    frame = IndexMap(words, 12).frame(1)
    known = [at for at in order if at >= 0]
    ascends = known == sorted(set(known))
    if frame is None:
        assert not ascends or len(order) > 8  # of many parts
        return
    assert ascends
    found: list[int] = []
    beats = iter(range(12))
    for count, part in frame.parts:
        for _ in range(count):
            at = FILL if part == Part.PAD else next(beats)
            found += [] if part == Part.CROP else [at]
    assert found == order
    assert not list(beats)
