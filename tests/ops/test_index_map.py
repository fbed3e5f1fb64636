"""Maps of elements: the loops that make them, the least beat that is wiring, what a buffer needs and frees when."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdl_lib.address_walk import AddressWalk, LoopAxis
from hdl_lib.rearrange import RearrangePlan
from hwflow.ops.index_map import FILL, IndexMap, as_loops


def addresses(walk: AddressWalk) -> list[int]:
    return [FILL if at is None else at for at in walk.addresses()]


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
    sequence = plan.walk.addresses()
    before = plan.skipped
    assert len(plan.needed) == len(plan.released) == plan.rounds
    for number, (need, release) in enumerate(zip(plan.needed, plan.released, strict=True)):
        steps = sequence[number * plan.steps : (number + 1) * plan.steps]
        later = [at for at in sequence[number * plan.steps :] if at is not None]
        assert all(at < need for at in steps if at is not None) and 1 <= need <= 12
        assert all(at >= before for at in later)
        assert need - before <= plan.least_rows <= plan.rows
        assert release >= before
        before = release
    assert before == 12 + plan.skipped
    assert sum(phase.count for phase in plan.phases) == plan.rounds
    assert sum(phase.count * phase.needed for phase in plan.phases) == 12
    assert sum(phase.count * phase.released for phase in plan.phases) == 12
