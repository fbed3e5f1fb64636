"""Memories with two registers: how they are cut, and that each word comes from where it was written."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import Module, Signal

from hdl_lib.memories.buffer_memory import BufferMemory, memory_parts
from tests.hdl_lib.coroutines import Coroutines


@pytest.mark.parametrize(
    ("width", "depth", "parts"),
    [
        (8, 2048, [2048]),  # a block RAM of 2,048 words of 9 bits
        (8, 4096, [4096]),  # two of 4,096 of 4, and nothing to choose
        (8, 4216, [4096, 120]),  # three; four of 8,192 of 2
        (8, 10240, [8192, 2048]),  # five; eight of 16,384 of 1
        (16, 6144, [4096, 2048]),  # six; eight of 8,192 of 2
        (36, 600, [600]),  # two of 1,024 of 18 as well as two of 512 of 36
        (1, 16385, [16384, 1]),  # three of 8,192 of 2
        (128, 3 * 2048 + 1448, [2048] * 3 + [1024, 424]),  # 15 each, then eight and four
        (128, 2 * 2048 + 900, [2048, 2048, 900]),  # eight of 1,024 of 18
        (72, 2048 * 3 + 3 * 512 + 9, [2048] * 3 + [1545]),  # as many of 2,048 of 9 as of 512 of 36
        (3, 7, [7]),
    ],
)
def test_parts_take_the_fewest_block_rams(width: int, depth: int, parts: list[int]) -> None:
    assert memory_parts(width, depth) == parts


@pytest.mark.parametrize(
    ("width", "depth"),
    [*((8, depth) for depth in (1, 2, 100, 4096, 4216, 4097, 8200, 10240)), (27, 4 * 512 + 300), (128, 2048 + 1448)],
)
@pytest.mark.parametrize("enabled", [False, True])
def test_each_word_comes_from_where_it_was_written(width: int, depth: int, enabled: bool) -> None:
    """Random writes and reads, against a list; with enables each register holds what it has. In steps a word is there
    a cycle later, and is read three cycles later."""
    rng = random.Random(depth)
    m = Module()
    core = BufferMemory("memory", width, depth)
    write, read, data = Signal(core.address_width), Signal(core.address_width), Signal(width)
    enable, fetch, move = Signal(), Signal(), Signal()
    other, far = BufferMemory("other", width, depth), BufferMemory("far", width, depth)
    for each in (core, other):
        each.write(m, enable, write, data)
    far.write_in_steps(m, enable, write, data)
    word = core.read(m, read, fetch=fetch, move=move) if enabled else core.read(m, read)
    soon, late = other.read_soon(m, read), far.read_in_steps(m, read)
    delay = 1 if len(memory_parts(width, depth)) == 1 else 2
    stored: list[int | None] = [None] * depth
    first: list[int | None] = [None, None]  # the registers of the read, with and without enables
    second: list[int | None] = [None, None]
    stored_far, written_far = [*stored], (0, 0, 0)
    later: list[int | None] = [None] * 5  # the registers of a read in steps
    edges = [0, depth - 1, *(place for part in range(512, depth, 512) for place in (part - 1, part))]

    async def bench(sim) -> None:  # type: ignore[no-untyped-def]
        nonlocal written_far
        for _ in range(depth + 400):
            places = [rng.choice(edges) if rng.random() < 0.3 else rng.randrange(depth) for _ in range(2)]
            value, enables = rng.getrandbits(width), [rng.getrandbits(1) for _ in range(3)]
            signals = (write, read, data, enable, fetch, move)
            for signal, driven in zip(signals, (*places, value, *enables), strict=True):
                sim.set(signal, driven)
            await sim.tick()
            fetches, moves = enables[1:] if enabled else (1, 1)
            for index, (fetched, moved) in enumerate(((fetches, moves), (1, 1))):
                second[index] = first[index] if moved else second[index]
                met = enables[0] and places[0] == places[1]  # nobody uses such a word
                first[index] = (None if met else stored[places[1]]) if fetched else first[index]
            met = written_far[0] and written_far[1] == places[1]
            later[:] = None if met else stored_far[places[1]], *later[:-1]
            if written_far[0]:
                stored_far[written_far[1]] = written_far[2]
            written_far = enables[0], places[0], value
            if enables[0]:
                stored[places[0]] = value
            for found, expected in ((word, second[0]), (soon, (first, second)[delay - 1][1]), (late, later[-1])):
                assert expected is None or sim.get(found) == expected

    Coroutines(m).run(bench)
    assert sum(place is not None for place in stored) > depth // 4
