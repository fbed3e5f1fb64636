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
    assert costs.cheapest_style("ecp5", 24, 128, costs.SCARCE_BLOCK_RAM_CELLS) == "auto"
    assert costs.cheapest_style("ecp5", 24, 4096, costs.SCARCE_BLOCK_RAM_CELLS) == "block"


@pytest.mark.parametrize("block_ram", [costs.BLOCK_RAM_CELLS, costs.SCARCE_BLOCK_RAM_CELLS])
@pytest.mark.parametrize("in_block", [False, True])
@pytest.mark.parametrize("width", [1, 8, 36, 144])
def test_each_takes_less_than_deeper_ones(width: int, in_block: bool, block_ram: int) -> None:
    def storage(depth: int) -> tuple[int, int]:
        block = in_block or costs.cheapest_style("ecp5", width, depth, block_ram) == "block"
        cost = (costs.block_queue if block else costs.queue)("ecp5", width, depth)
        return cost.bram, cost.lut + cost.ff

    depths = storage_steps("ecp5", width, 1, 3000, in_block=in_block, block_ram=block_ram)
    steps = [storage(depth) for depth in depths]
    for number, (block_rams, cells) in enumerate(steps):
        assert all(block_rams < deeper[0] or cells < deeper[1] for deeper in steps[number + 1 :])
