"""Steps of a queue's storage."""

from __future__ import annotations

import pytest

from hwflow.cores import costs
from hwflow.cores.costs.storage_steps import storage_steps


def test_registers_then_rows_by_hand() -> None:
    """Registers of eight bits grow by the entry, a memory by its rows of 16; a wide queue is smaller as a memory of 8
    entries than as two registers."""
    assert storage_steps("ecp5", 8, 1, 40) == [1, 2, 8, 16, 32, 48]
    assert storage_steps("ecp5", 8, 3, 3)[0] >= 3
    assert storage_steps("ecp5", 500, 1, 9) == [1, 8, 16]


def test_without_memories_of_look_up_tables_by_hand() -> None:
    """Entries of flip-flops, addressed by whole bits up to 16 of them; block RAMs of few bits are cheaper there."""
    assert storage_steps("ice40", 2, 10, 20) == [16, 17, 18, 19, 20]


def test_the_last_one_is_enough_and_the_first_no_less_than_asked_for() -> None:
    for least in (1, 2, 5, 17):
        for enough in (1, 3, 16, 17, 500, 2048, 5000):
            steps = storage_steps("ecp5", 12, least, enough)
            assert steps == sorted(set(steps))
            assert steps[0] >= least
            assert steps[-1] >= enough


def test_scarce_block_ram_keeps_shallow_queues_out() -> None:
    """128 entries of 24 bits are some 400 look-up tables; 4,096 of them would be thousands."""
    assert costs.cheapest_style("ecp5", 24, 128) == "block"
    assert costs.cheapest_style("ecp5", 24, 128, scarce=True) == "auto"
    assert costs.cheapest_style("ecp5", 24, 4096, scarce=True) == "block"


def test_no_eight_bytes_in_flip_flops_where_sixteen_in_block_ram_cost_less() -> None:
    """64 flip-flops and what chooses among them; no block of an iCE40 is taken for 64 bits, but for 128."""
    assert storage_steps("ice40", 8, 5, 16) == storage_steps("ice40", 8, 5, 8) == [16]
    assert storage_steps("ice40", 8, 5, 16, scarce=True) == [8, 16]
    assert storage_steps("ice40", 3, 5, 16) == [8, 16]


@pytest.mark.parametrize("scarce", [False, True])
@pytest.mark.parametrize("in_block", [False, True])
@pytest.mark.parametrize("width", [1, 8, 36, 144])
def test_each_takes_less_than_deeper_ones(width: int, in_block: bool, scarce: bool) -> None:
    def storage(depth: int) -> int:
        block = in_block or costs.cheapest_style("ecp5", width, depth, scarce=scarce) == "block"
        cost = (costs.block_queue if block else costs.queue)("ecp5", width, depth)
        return cost.lut + cost.ff + (640 if scarce else 160) * cost.bram

    depths = storage_steps("ecp5", width, 1, 3000, in_block=in_block, scarce=scarce)
    steps = [storage(depth) for depth in depths]
    assert steps == sorted(set(steps))
