"""LayerEngine: layers of all kinds against a second implementation, in the cycles that its program says."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module, signed
from amaranth.lib.wiring import connect

from hdl_lib.engine.engine_program import Layer, Load, Program, Region, Send
from hdl_lib.engine.layer_engine import LayerEngine
from hdl_lib.engine.pace import Pace, Turns
from hdl_lib.streams.fifo import Fifo
from tests.hdl_lib.bench import STALLS, Trace, drive
from tests.hdl_lib.engine.engine_model import (
    CHAIN,
    MAXIMA,
    Case,
    alike,
    by_way_of_memory,
    case_of,
    enlarged,
    in_parts,
    in_strips,
    in_words,
    sliding,
    with_tables,
    words_of,
)

IMAGE = (5, 6, 3)
OUTSIDE = "what is sent outside must be loaded, and nothing else"
TWO = [((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 5, False, None), ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 0, True, None)]
POINT = ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 3, False, None)
FRAMES = 2
LAYER = case_of(np.random.default_rng(1), 4, IMAGE, CHAIN[:1]).program.layers


class BesideMemory(Elaboratable):
    """An engine whose maps wait in a queue that has room for so many beats."""

    def __init__(self, core: LayerEngine, room: int) -> None:
        self.core, self.room = core, room

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.core
        m.submodules.queue = queue = Fifo(core.program.width, self.room)
        connect(m, core.memory_i, queue.i)
        connect(m, queue.o, core.memory_o)
        return m


def run(
    case: Case, gap: float = 0.0, stall: float = 0.0, program: Program | None = None, room: int = 1000,
    like: Case | None = None,
) -> tuple[Trace, list, list]:
    """What leaves, and what should; beats have lanes beyond the channels masked. ``room``: of the memory outside.
    ``like``: the case that says what should leave, if not the one that runs."""
    program = program or case.program
    lanes, rng = program.lanes, np.random.default_rng(7)
    of_beat = IMAGE[2] * program.pixels_of_word
    taken = min(lanes, of_beat)
    core = LayerEngine(
        program, signed(8), signed(8), input_lanes=taken, output_lanes=lanes, depth=LayerEngine.latency + 1
    )
    dut = BesideMemory(core, room) if program.levels else core
    frames = [rng.integers(-128, 128, IMAGE) for _ in range(FRAMES)]
    images = [word for frame in frames for word in words_of(frame.reshape(-1, of_beat), taken)]
    results = [(like or case).run(frame) for frame in frames]
    wanted = [word for result in results for word in words_of(result, lanes)]
    trace = drive(
        dut, images, len(wanted), gap=gap, stall=stall, i=core.i, o=core.o, more=[(core.w, case.beats() * FRAMES)],
    )
    channels = results[0].shape[1]
    blocks = -(-channels // lanes)
    masks = [(1 << 8 * min(lanes, channels - block * lanes)) - 1 for block in range(blocks)]
    found = [beat & masks[number % blocks] for number, beat in enumerate(trace.beats)]
    return trace, found, wanted


@pytest.mark.parametrize(("lanes", "together", "soft"), [(2, 1, 0), (4, 1, 1), (4, 4, 4), (6, 3, 0)])
@pytest.mark.parametrize("layers", range(1, len(CHAIN) + 1))
def test_layers(layers: int, lanes: int, together: int, soft: int) -> None:
    case = case_of(np.random.default_rng(layers), lanes, IMAGE, CHAIN[:layers], together=together, soft=soft)
    trace, found, wanted = run(case)
    assert found == wanted
    # Weights come a beat a cycle: the first frame is as early as the program says, later ones are no later.
    pace = Pace.of(case.program, Turns(1, 1))
    sent = pace.sends[0][0] + LayerEngine.latency
    assert trace.out_cycles[0] == sent
    assert trace.out_cycles[len(wanted) // FRAMES] <= sent + pace.cycles


def test_beats_of_a_burst_may_come_slower() -> None:
    """A beat in four cycles, as from a flash, in bursts of one or of eight: a block waits for its last one."""
    program = case_of(np.random.default_rng(3), 4, IMAGE, CHAIN[:3]).program
    each, fast, slow = (Pace.of(program, turns) for turns in (Turns(1, 4), Turns(8, 32), Turns(8, 32, 4)))
    assert slow.starts[0] == 0 and slow.beat == 4
    assert fast.cycles < slow.cycles and each.cycles <= slow.cycles


def test_a_next_block_that_comes_too_soon_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last results of the block before it would have its multipliers."""
    case = case_of(np.random.default_rng(len(CHAIN)), 2, IMAGE, CHAIN, together=1)
    assert max(layer.out_blocks for layer in case.program.layers) > 1
    between = case.program.between
    monkeypatch.setattr(Program, "between", between - 1)
    _, found, wanted = run(case)
    assert found != wanted


def test_bursts_come_sooner_when_the_others_have_theirs() -> None:
    """One in 9 cycles, and from cycle 300 on, in 5: of these 20 waits, and of all behind them, 4 are saved each."""
    program = case_of(np.random.default_rng(3), 4, IMAGE, CHAIN[:3]).program
    roomy = replace(program, ring=1 << 10)
    shared, alone, then = (
        Pace.of(roomy, turns) for turns in (Turns(1, 9), Turns(1, 5), Turns(1, 9, busy=300, alone=5))
    )
    assert shared.starts[:3] == then.starts[:3] == (0, 9, 18) and alone.starts[:3] == (0, 5, 10)
    both = 34  # bursts that begin before: the 34th at 297
    assert then.starts[:both] == shared.starts[:both]
    assert [start - then.starts[both - 1] for start in then.starts[both : both + 3]] == [9, 14, 19]
    assert alone.cycles < then.cycles < shared.cycles


@pytest.mark.parametrize(("lanes", "soft"), [(2, 0), (4, 1)])
@pytest.mark.parametrize("layers", range(3, len(MAXIMA) + 1))
def test_maxima(layers: int, lanes: int, soft: int) -> None:
    case = case_of(np.random.default_rng(layers), lanes, IMAGE, MAXIMA[:layers], soft=soft)
    trace, found, wanted = run(case)
    assert found == wanted
    assert trace.out_cycles[0] == Pace.of(case.program, Turns(1, 1)).sends[0][0] + LayerEngine.latency


def test_sums_in_place_of_maxima_are_found() -> None:
    case = case_of(np.random.default_rng(3), 2, IMAGE, MAXIMA[:3])
    *others, pool, send = case.program.instructions
    program = replace(case.program, instructions=(*others, replace(pool, maximum=False), send))
    _, found, wanted = run(case, program=program)
    assert found != wanted


@pytest.mark.parametrize("shapes", [CHAIN, MAXIMA], ids=["chain", "maxima"])
@pytest.mark.parametrize(("gap", "stall"), STALLS[1:])
def test_with_gaps_and_stalls(gap: float, stall: float, shapes) -> None:
    _, found, wanted = run(case_of(np.random.default_rng(3), 4, IMAGE, shapes), gap, stall)
    assert found == wanted


@pytest.mark.parametrize("rounding", [("half_even", "half_odd"), ("half_odd", "half_even"), ("floor", "half_even")])
def test_rounding(rounding: tuple[str, str]) -> None:
    case = case_of(np.random.default_rng(5), 4, IMAGE, CHAIN[:4], rounding=rounding)
    for own in case.numbers:  # ties are frequent: multiples of half a step
        own.multipliers[:] = np.sign(own.multipliers) << 9
        own.addends[:] = own.addends >> 9 << 9
    program = replace(case.program, forms=replace(case.program.forms, shift=16))
    _, found, wanted = run(replace(case, program=program))
    assert found == wanted


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_rings_of_rows(gap: float, stall: float, leaves: bool) -> None:
    case = in_strips(case_of(np.random.default_rng(9), 4, IMAGE, TWO), leaves=leaves)
    assert case.program.words < case_of(np.random.default_rng(9), 4, IMAGE, TWO).program.words
    _, found, wanted = run(case, gap, stall)
    assert found == wanted


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize("shapes", [CHAIN, MAXIMA], ids=["chain", "maxima"])
def test_parts_of_greater_maps(gap: float, stall: float, shapes) -> None:
    case = in_parts(case_of(np.random.default_rng(9), 2, IMAGE, shapes))
    assert any(layer.source.block for layer in case.program.layers)
    assert any(layer.target.block for layer in case.program.layers)
    _, found, wanted = run(case, gap, stall)
    assert found == wanted


@pytest.mark.parametrize(("gap", "stall"), STALLS[::3])
@pytest.mark.parametrize("shapes", [CHAIN[:1], CHAIN[:3], MAXIMA[:2]], ids=["one", "chain", "scaled"])
@pytest.mark.parametrize(("lanes", "down", "across"), [(2, 2, 2), (4, 1, 3), (4, 3, 2)])
def test_results_in_several_pixels(gap: float, stall: float, shapes, lanes: int, down: int, across: int) -> None:
    case = enlarged(case_of(np.random.default_rng(3), lanes, IMAGE, shapes), down, across)
    assert case.program.spreads
    _, found, wanted = run(case, gap, stall)
    assert found == wanted


def test_another_distance_of_rows_is_found() -> None:
    case = enlarged(case_of(np.random.default_rng(3), 4, IMAGE, CHAIN[:1]), 2, 2)
    last = case.program.layers[-1]
    wrong = replace(last, target=replace(last.target, row=last.target.row + 1))
    *instructions, _, send = case.program.instructions
    _, found, wanted = run(case, program=replace(case.program, instructions=(*instructions, wrong, send)))
    assert found != wanted


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize("together", [1, 2])
def test_tables(gap: float, stall: float, together: int) -> None:
    rng = np.random.default_rng(9)
    case = with_tables(case_of(rng, 4, IMAGE, CHAIN[:5], together=together), rng)
    trace, found, wanted = run(case, gap, stall)
    assert found == wanted
    if gap == stall == 0:
        assert trace.out_cycles[0] == Pace.of(case.program, Turns(1, 1)).sends[0][0] + LayerEngine.latency


def test_another_table_is_found() -> None:
    rng = np.random.default_rng(9)
    case = with_tables(case_of(rng, 4, IMAGE, CHAIN[:1]), rng)
    _, found, wanted = run(case, program=replace(case.program, tables=case.program.tables[::-1]))
    assert found != wanted


def test_another_part_is_found() -> None:
    case = in_parts(case_of(np.random.default_rng(9), 2, IMAGE, CHAIN[:3]))
    load, first, second, *others = case.program.instructions
    other = replace(second, source=replace(second.source, block=0))
    program = replace(case.program, instructions=(load, first, other, *others))
    _, found, wanted = run(case, program=program)
    assert found != wanted


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize(("lanes", "width"), [(2, 16), (4, 16), (4, 8)])
def test_maps_that_wait_outside(gap: float, stall: float, lanes: int, width: int) -> None:
    case = by_way_of_memory(case_of(np.random.default_rng(4), lanes, IMAGE, CHAIN[:3], width=width))
    program = case.program
    trace, found, wanted = run(case, gap, stall, room=max(program.levels) * program.beats_of_map_word)
    assert found == wanted
    if gap == stall == 0:
        pace = Pace.of(program, Turns(1, 1))
        assert trace.out_cycles[0] <= pace.sends[0][0] + LayerEngine.latency


DEPTHWISE = [
    ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 5, True, None),
    ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 0, True, None),
    ((2, 3), (1, 1), (0, 2, 1, 1), (2, 1), 0, False, None),
    ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 4, True, None),
    ((3, 1), (1, 1), (1, 0, 1, 0), (1, 1), 0, True, None),
    ((1, 2), (1, 2), (0, 1, 0, 0), (1, 1), 0, True, None),
    ((2, 2), (1, 1), (1, 0, 0, 1), (1, 2), 0, True, None),
]
"""Windows of three columns, with strides, with dilated rows, of one column and of two; dilated columns do not slide."""


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize(("lanes", "together", "soft"), [(4, 1, 1), (4, 4, 4), (6, 3, 0)])
def test_windows_that_slide(gap: float, stall: float, lanes: int, together: int, soft: int) -> None:
    case = case_of(np.random.default_rng(8), lanes, IMAGE, DEPTHWISE, together=together, soft=soft)
    trace, found, wanted = run(sliding(case), gap, stall)
    assert found == wanted
    if gap == stall == 0:
        assert trace.out_cycles[0] == Pace.of(sliding(case).program, Turns(1, 1)).sends[0][0] + LayerEngine.latency


NARROW = [
    (3, 1, 12, 0), (4, 1, 16, 0), (4, 2, 8, 1), (4, 4, 16, 3), (6, 2, 24, 0), (6, 3, 8, 2), (7, 1, 28, 1), (8, 2, 16, 8)
]
"""Lanes, results together, bits of a beat, rows in look-up tables: pairs of rows, and rows without a partner."""


@pytest.mark.parametrize(("gap", "stall"), STALLS[::3])
@pytest.mark.parametrize("shapes", [CHAIN[:2], CHAIN, MAXIMA[:3]], ids=["two", "chain", "maxima"])
@pytest.mark.parametrize(("lanes", "together", "width", "soft"), NARROW)
def test_weights_of_four_bits(
    gap: float, stall: float, shapes, lanes: int, together: int, width: int, soft: int
) -> None:
    rng = np.random.default_rng(lanes)
    case = case_of(rng, lanes, IMAGE, shapes, together=together, width=width, soft=soft, weight_bits=4)
    assert case.program.pairs == (lanes - soft) // 2
    assert max(own.weights.max() for own in case.numbers) == 7
    trace, found, wanted = run(case, gap, stall)
    assert found == wanted
    if gap == stall == 0:
        assert trace.out_cycles[0] == Pace.of(case.program, Turns(1, 1)).sends[0][0] + LayerEngine.latency


@pytest.mark.parametrize(("gap", "stall"), STALLS[::3])
@pytest.mark.parametrize(("lanes", "together", "width", "soft"), [each for each in NARROW if each[0] > 5])
def test_windows_that_slide_with_weights_of_four_bits(
    gap: float, stall: float, lanes: int, together: int, width: int, soft: int
) -> None:
    """Two rows that share blocks have their own elements side by side."""
    rng = np.random.default_rng(8)
    case = sliding(case_of(rng, lanes, IMAGE, DEPTHWISE, together=together, width=width, soft=soft, weight_bits=4))
    trace, found, wanted = run(case, gap, stall)
    assert found == wanted
    if gap == stall == 0:
        assert trace.out_cycles[0] == Pace.of(case.program, Turns(1, 1)).sends[0][0] + LayerEngine.latency


def test_weights_of_the_other_row_are_found() -> None:
    """Rows of a pair in another order."""
    case = case_of(np.random.default_rng(8), 4, IMAGE, CHAIN[:1], weight_bits=4)
    own = case.numbers[0]
    order = [1, 0, *range(2, len(own.weights))]
    other = replace(case, numbers=[replace(own, weights=own.weights[order])])
    _, found, wanted = run(other, like=case)
    assert found != wanted


def test_weights_of_four_bits_take_half_of_the_blocks_and_beats() -> None:
    """12 lanes: 144 products in 72 blocks, or 84 with a row without a partner; a word of 576 bits in 36 beats."""
    eight, four = (
        case_of(np.random.default_rng(8), 12, IMAGE, CHAIN[:1], weight_bits=bits).program for bits in (8, 4)
    )
    around = eight.forms.multipliers
    assert [each.multipliers - around for each in (eight, four, replace(four, soft=1))] == [144, 72, 72]
    assert replace(four, soft=2).multipliers - around == 60
    assert [each.beats_of_word for each in (eight, four)] == [72, 36]
    assert [each.beats_of_diagonal for each in (eight, four)] == [6, 3]
    assert [each.header for each in (eight, four)] == [1, 1]  # of 37 bits
    assert replace(four, lanes=4).header == 3


def test_windows_that_slide_take_fewer_cycles() -> None:
    """12 x 12 windows of 3 x 3: 14 columns of three steps in each row, not 12 of nine."""
    shape = [((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 0, True, None)]
    case = case_of(np.random.default_rng(8), 4, (12, 12, 4), shape, together=2)
    slow, fast = (Pace.of(each.program, Turns(1, 1)).cycles for each in (case, sliding(case)))
    # The weights' three words come before the first window, in both cases.
    assert abs(slow - fast - (12 * 12 * 9 - 12 * 14 * 3)) < 10


@pytest.mark.parametrize(("gap", "stall"), STALLS[:2])
def test_windows_that_slide_beside_maxima(gap: float, stall: float) -> None:
    shapes = [*DEPTHWISE[:2], ((2, 2), (1, 1), (1, 0, 0, 1), (1, 1), -1, True, None), DEPTHWISE[0], DEPTHWISE[2]]
    _, found, wanted = run(sliding(case_of(np.random.default_rng(8), 4, IMAGE, shapes)), gap, stall)
    assert found == wanted


def test_windows_that_slide_without_all_columns_are_found() -> None:
    """A result of each column, as of windows of one."""
    case = sliding(case_of(np.random.default_rng(8), 4, IMAGE, DEPTHWISE[:2]))
    load, first, second, send = case.program.instructions
    narrow = replace(second, geometry=replace(second.geometry, pads=(1, 0, 1, 2)))
    _, found, wanted = run(case, program=replace(case.program, instructions=(load, first, narrow, send)))
    assert found != wanted


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize("weight_bits", [8, 4])
@pytest.mark.parametrize("shapes", [CHAIN[:3], MAXIMA, DEPTHWISE], ids=["chain", "maxima", "sliding"])
def test_weights_that_all_taps_share(gap: float, stall: float, weight_bits: int, shapes) -> None:
    case = case_of(np.random.default_rng(8), 6, IMAGE, shapes, together=2, width=24, weight_bits=weight_bits)
    case = alike(sliding(case) if shapes is DEPTHWISE else case)
    assert any(each.same for each in case.layers)
    trace, found, wanted = run(case, gap, stall)
    assert found == wanted
    if gap == stall == 0:
        assert trace.out_cycles[0] == Pace.of(case.program, Turns(1, 1)).sends[0][0] + LayerEngine.latency


def test_weights_of_other_taps_are_found() -> None:
    case = case_of(np.random.default_rng(8), 4, IMAGE, CHAIN[:2])
    _, found, wanted = run(alike(case), like=case)
    assert found != wanted


def test_weights_that_all_taps_share_come_once() -> None:
    """A mean of 5 x 6 pixels: a word of a block's header and one of weights, not 30."""
    case = case_of(np.random.default_rng(8), 4, (5, 6, 4), [((5, 6), (1, 1), (0, 0, 0, 0), (1, 1), 0, True, None)])
    many, once = case.program, alike(case).program
    assert [program.needed(program.layers[0]) - program.header for program in (many, once)] == [30, 1]
    assert many.beats - once.beats == 29 * many.beats_of_diagonal


STEPS_BY_TWO = [((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 5, True, None), *CHAIN[1:3]]
WIDE_STEPS = [((2, 5), (1, 2), (0, 2, 1, 1), (1, 1), 6, False, None), TWO[1]]
WITHIN = [((3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 5, False, None), TWO[1]]

WORDS = {
    "3x3 by two": (6, STEPS_BY_TWO, 2, 2, range(-1, 1), [(0, 1), (1, 0), (1, 1)]),
    "2x5 by two": (6, WIDE_STEPS, 2, 2, range(-1, 2), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]),
    "3x3 by two, three together": (9, STEPS_BY_TWO, 2, 3, range(1), [(0, 0), (0, 1), (0, 2)]),
    "2x5 by two, four together": (12, WIDE_STEPS, 2, 4, range(2), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 2)]),
    "3x3 by one, two together": (6, TWO, 1, 2, range(2), [(0, 0), (0, 1), (1, 1)]),
    "3x3 within, every other word": (6, WITHIN, 1, 2, range(0, 3, 2), [(0, 1), (1, 0), (1, 1)]),
    "3x3 by two, alone": (6, STEPS_BY_TWO, 1, 2, range(2), [(0, 0), (0, 1), (1, 1)]),
}
"""Lanes; layers; of the first one's words new pixels and all pixels, which words a window sees, counted from that of
its own place, and where its columns are there."""


def packed(kind: str) -> tuple[Case, Case]:
    """A case with a pixel in a word, and the same with several."""
    lanes, shapes, *words = WORDS[kind]
    case = case_of(np.random.default_rng(4), lanes, IMAGE, shapes, together=lanes // 3, width=8)
    return case, in_words(case, *words)


OVERLAPPING = list(WORDS)[2:]


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize("kind", WORDS)
def test_several_pixels_in_a_word(gap: float, stall: float, kind: str) -> None:
    case, wide = packed(kind)
    trace, found, wanted = run(wide, gap, stall, like=case)
    assert found == wanted
    if gap == stall == 0:
        assert trace.out_cycles[0] == Pace.of(wide.program, Turns(1, 1)).sends[0][0] + LayerEngine.latency


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize("kind", ["3x3 by two", *OVERLAPPING[:2]])
def test_several_pixels_in_a_word_beside_maps_that_wait_outside(gap: float, stall: float, kind: str) -> None:
    case, wide = packed(kind)
    _, found, wanted = run(by_way_of_memory(wide), gap, stall, like=case)
    assert found == wanted


@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_words_that_overlap_in_strips(gap: float, stall: float) -> None:
    case, wide = packed("3x3 by one, two together")
    strips = in_strips(wide, leaves=True)
    assert sum(isinstance(each, Load) for each in strips.program.instructions) == IMAGE[0]
    _, found, wanted = run(strips, gap, stall, like=case)
    assert found == wanted


class Endless(Program):
    """Does not know where a row of the image begins."""

    @property
    def words_of_row(self) -> int:
        return self.loaded


@pytest.mark.parametrize("kind", OVERLAPPING)
def test_rows_that_do_not_begin_with_padding_are_found(kind: str) -> None:
    case, wide = packed(kind)
    twin = Endless(**{name: getattr(wide.program, name) for name in wide.program.__dataclass_fields__})
    _, found, wanted = run(wide, program=twin, like=case)
    assert (found != wanted) == (kind != "3x3 within, every other word")  # which sees no padding


def test_pixels_in_another_order_are_found() -> None:
    case, wide = packed("3x3 by two")
    shape = wide.numbers[0].weights.shape
    own = wide.numbers[0].weights.reshape(*shape[:3], 2, -1)[:, :, :, ::-1].reshape(shape)
    other = replace(wide, numbers=[replace(wide.numbers[0], weights=own), *wide.numbers[1:]])
    _, found, wanted = run(other, like=case)
    assert found != wanted


def test_rows_in_another_order_are_found() -> None:
    case = by_way_of_memory(case_of(np.random.default_rng(4), 2, IMAGE, CHAIN[:2]))
    instructions = list(case.program.instructions)
    first, second = [k for k, each in enumerate(instructions) if isinstance(each, Load) and each.outside][:2]
    instructions[first], instructions[second] = instructions[second], instructions[first]
    _, found, wanted = run(case, program=replace(case.program, instructions=tuple(instructions)))
    assert found != wanted


class Hasty(Program):
    """Goes on before the last results of a block are written."""

    @cached_property
    def gap(self) -> int:
        return 1


def test_a_broken_twin_is_found() -> None:
    case = case_of(np.random.default_rng(3), 4, IMAGE, CHAIN[:3])
    twin = Hasty(**{name: getattr(case.program, name) for name in case.program.__dataclass_fields__})
    _, found, wanted = run(case, program=twin)
    assert found != wanted


class Crowded(Program):
    """Has a cycle for each window of one word."""

    def steps(self, layer: Layer) -> int:
        return layer.taps


@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_windows_of_one_word_take_two_cycles(gap: float, stall: float) -> None:
    case = case_of(np.random.default_rng(6), 4, IMAGE, [POINT], together=4)
    assert [(layer.taps, case.program.steps(layer)) for layer in case.program.layers] == [(1, 2)]
    _, found, wanted = run(case, gap, stall)
    assert found == wanted
    twin = Crowded(**{name: getattr(case.program, name) for name in case.program.__dataclass_fields__})
    _, found, wanted = run(case, gap, stall, program=twin)
    assert found != wanted


def test_rows_that_have_been_replaced_are_found() -> None:
    case = in_strips(case_of(np.random.default_rng(9), 4, IMAGE, TWO))
    load = case.program.instructions[0]
    few = replace(load.region, words=load.region.words * 2 // 3)

    def fewer(each):
        if getattr(each, "region", None) == load.region:
            return replace(each, region=few)
        return replace(each, source=few) if getattr(each, "source", None) == load.region else each

    program = replace(case.program, instructions=tuple(map(fewer, case.program.instructions)))
    _, found, wanted = run(case, program=program)
    assert found != wanted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"together": 3}, "together must divide the 4 lanes, not be 3"),
        ({"width": 12}, "width must be whole weights that divide the 4 of a row, not 12 bits"),
        ({"ring": 24}, "ring must be a power of two and have room for 11 words, not 24"),
        ({"ring": 8}, "ring must be a power of two and have room for 11 words, not 8"),
        ({"instructions": ()}, "there must be a layer"),
        ({"soft": 5}, "soft must be 0 to 4 rows, not 5"),
        ({"tables": ((1, 2),)}, "tables must have 256 words"),
        ({"instructions": (*LAYER, Load(Region(0, 4), 0, 1, outside=True))}, OUTSIDE),
        ({"instructions": (*LAYER, Send(Region(0, 4), 0, 1, outside=True))}, OUTSIDE),
    ],
)
def test_what_a_program_cannot_be(change, message: str) -> None:
    program = case_of(np.random.default_rng(1), 4, IMAGE, CHAIN[:1]).program
    with pytest.raises(ValueError, match=message):
        replace(program, **change)


def test_windows_slide_of_plain_depthwise_layers_alone() -> None:
    case = case_of(np.random.default_rng(1), 2, IMAGE, CHAIN[:2])
    load, first, second, send = case.program.instructions
    wide = replace(second.geometry, dilation=(1, 2))
    for layer in (replace(first, slides=True), replace(second, slides=True, geometry=wide)):
        with pytest.raises(ValueError, match="must be diagonal, without dilated columns, maxima and sums"):
            replace(case.program, instructions=(load, layer, send))
    with pytest.raises(ValueError, match="at most 2 columns and 16 rows"):
        replace(case.program, instructions=(load, first, replace(second, slides=True), send))
    case = case_of(np.random.default_rng(1), 4, IMAGE, CHAIN[:2], weight_bits=4)
    load, first, second, send = case.program.instructions
    with pytest.raises(ValueError, match="at most 2 columns and 16 rows"):  # of either row of a pair
        replace(case.program, instructions=(load, first, replace(second, slides=True), send))


def test_taps_share_weights_of_diagonal_layers_alone() -> None:
    program = case_of(np.random.default_rng(1), 4, IMAGE, CHAIN[:1]).program
    load, layer, send = program.instructions
    slides = replace(layer, diagonal=True, slides=True)
    for each in (layer, slides):
        with pytest.raises(ValueError, match="the same weights must be diagonal, and must not slide"):
            replace(program, instructions=(load, replace(each, same=True), send))


def test_maxima_are_diagonal() -> None:
    program = case_of(np.random.default_rng(1), 4, IMAGE, CHAIN[:1]).program
    load, layer, send = program.instructions
    with pytest.raises(ValueError, match="layers of maxima must be diagonal"):
        replace(program, instructions=(load, replace(layer, maximum=True), send))


def test_what_an_engine_cannot_be() -> None:
    program = case_of(np.random.default_rng(1), 4, IMAGE, CHAIN[:1]).program
    with pytest.raises(ValueError, match="input must have at most 8 bits and 1 to 4 lanes, not 9 and 3"):
        LayerEngine(program, signed(9), signed(8), input_lanes=3, output_lanes=4, depth=6)
    with pytest.raises(ValueError, match="output must have at most 8 bits and 1 to 4 lanes, not 8 and 5"):
        LayerEngine(program, signed(8), signed(8), input_lanes=3, output_lanes=5, depth=6)
    pairs = replace(program, pixels_of_word=2)
    with pytest.raises(ValueError, match="input must have lanes for 2 pixels, with 0 more at most 4, not 3"):
        LayerEngine(pairs, signed(8), signed(8), input_lanes=3, output_lanes=4, depth=6)
    with pytest.raises(ValueError, match="input must have lanes for 2 pixels, with 1 more at most 4, not 4"):
        LayerEngine(replace(pairs, overlap=1), signed(8), signed(8), input_lanes=4, output_lanes=4, depth=6)
