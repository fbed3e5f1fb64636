"""SerialEngine: layers of all kinds against a second implementation, no later than its program says."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from amaranth.hdl import signed, unsigned

from hdl_lib.engine.engine_program import Layer
from hdl_lib.engine.pace import Pace, Turns
from hdl_lib.engine.serial_engine import SerialEngine
from hdl_lib.engine.serial_fields import complete
from hdl_lib.engine.serial_program import SerialProgram
from tests.hdl_lib.bench import STALLS, Trace, drive
from tests.hdl_lib.engine.engine_model import Case, case_of, in_parts, in_strips, words_of

LANES = 4
CHAIN = [
    ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 9, True, None),
    ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 0, True, None),
    ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 17, True, None),
    ((1, 3), (1, 1), (0, 1, 0, 1), (1, 1), 3, True, None),
    ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 7, True, None),
    ((2, 2), (1, 1), (0, 1, 1, 0), (1, 2), 12, True, None),
    ((3, 2), (1, 1), (0, 0, 0, 0), (1, 1), 0, True, None),
]
TWO = [((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 5, True, None), ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 0, True, None)]
MAXIMA = [
    ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 9, True, None),
    ((2, 2), (2, 2), (0, 0, 0, 0), (1, 1), -1, True, None),
    ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 7, True, None),
    ((3, 2), (1, 1), (1, 0, 1, 1), (1, 1), -1, True, None),
    ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 0, True, None),
]
FRAMES = 2


@dataclass
class SerialCase(Case):
    """The same, with weights as a serial engine takes them."""

    def beats(self) -> list[int]:
        rows, found = self.program.rows, []
        for which, layer in zip(self.of, self.program.layers, strict=True):
            own, channels = self.numbers[which], LANES if layer.diagonal else rows
            for first in range(0, layer.out_blocks * LANES, channels):
                here = range(first, first + rows)
                for row in here:
                    inside = row < len(own.multipliers) and row < first + channels
                    for each in (own.multipliers, own.addends):
                        found.append([int(each[row]) >> 8 * k & 255 if inside else 0 for k in range(rows)])
                kh, kw = layer.geometry.kernel
                for tap in [(y, x) for y in range(kh) for x in range(kw)][: 1 if layer.same else None]:
                    for source in range(1 if layer.diagonal else own.weights.shape[3]):
                        place = tap if layer.diagonal else (*tap, source)
                        found.append([
                            int(own.weights[row, *place]) & 255
                            if row < len(own.weights) and row < first + channels else 0 for row in here
                        ])
        step, beats = self.program.width // 8, [byte for word in found for byte in word]
        return [sum(byte << 8 * k for k, byte in enumerate(beats[n : n + step])) for n in range(0, len(beats), step)]


def serial(case: Case, image: tuple[int, int, int]) -> SerialCase:
    """The same on a serial engine; its words have as few elements as there are channels."""
    channels = [image[2], *(len(own.multipliers) for own in case.numbers)]
    layers = [replace(each, last=count % LANES) for each, count in zip(case.layers, channels, strict=False)]
    of = iter(case.of)
    instructions = tuple(
        replace(each, last=channels[next(of)] % LANES) if isinstance(each, Layer) else each
        for each in case.program.instructions
    )
    own = {each.name: getattr(case.program, each.name) for each in fields(case.program)}
    own |= {"instructions": instructions, "ring": 1 << 12, "forms": replace(case.program.forms, part=15)}
    program = complete(SerialProgram(**own))
    needed = max(map(program.needed, program.layers)) + 9
    return SerialCase(
        layers, case.sources, case.numbers, replace(program, ring=1 << (needed - 1).bit_length()), case.of
    )


def run(
    case: SerialCase, image: tuple[int, int, int], gap: float = 0.0, stall: float = 0.0,
    program: SerialProgram | None = None,
) -> tuple[Trace, list, list]:
    """What leaves, and what should; beats have lanes beyond the channels masked."""
    program = program or case.program
    rng = np.random.default_rng(7)
    taken = min(LANES, image[2])
    shapes = [unsigned(8) if offset else signed(8) for offset in program.offsets]
    core = SerialEngine(program, *shapes, input_lanes=taken, output_lanes=LANES, depth=SerialEngine.latency + 1)
    frames = [rng.integers(-128, 128, image) for _ in range(FRAMES)]
    before, behind = program.offsets
    images = [word for frame in frames for word in words_of(frame.reshape(-1, image[2]) + before, taken)]
    results = [case.run(frame) for frame in frames]
    wanted = [word for result in results for word in words_of(result + behind, LANES)]
    trace = drive(core, images, len(wanted), gap=gap, stall=stall, i=core.i, more=[(core.w, case.beats() * FRAMES)])
    channels = results[0].shape[1]
    blocks = -(-channels // LANES)
    masks = [(1 << 8 * min(LANES, channels - block * LANES)) - 1 for block in range(blocks)]
    found = [beat & masks[number % blocks] for number, beat in enumerate(trace.beats)]
    return trace, found, wanted


@pytest.mark.parametrize("image", [(5, 6, 3), (6, 5, 1), (6, 6, 8)], ids=str)
@pytest.mark.parametrize("layers", range(1, len(CHAIN) + 1))
def test_layers(layers: int, image: tuple[int, int, int]) -> None:
    case = serial(case_of(np.random.default_rng(layers), LANES, image, CHAIN[:layers]), image)
    trace, found, wanted = run(case, image)
    assert found == wanted
    pace = Pace.of(case.program, Turns(1, 1))
    sent = pace.sends[0][0] + SerialEngine.latency
    assert 0.96 * sent - 60 <= trace.out_cycles[0] <= sent
    assert trace.out_cycles[len(wanted) // FRAMES] <= sent + pace.cycles


@pytest.mark.parametrize("image", [(5, 6, 3), (6, 6, 8)], ids=str)
@pytest.mark.parametrize("layers", range(2, len(MAXIMA) + 1))
def test_maxima(layers: int, image: tuple[int, int, int]) -> None:
    case = serial(case_of(np.random.default_rng(layers), LANES, image, MAXIMA[:layers]), image)
    trace, found, wanted = run(case, image)
    assert found == wanted
    sent = Pace.of(case.program, Turns(1, 1)).sends[0][0] + SerialEngine.latency
    assert 0.96 * sent - 60 <= trace.out_cycles[0] <= sent


@pytest.mark.parametrize(("gap", "stall"), STALLS[1:])
def test_maxima_with_gaps_and_stalls(gap: float, stall: float) -> None:
    image = (5, 6, 3)
    _, found, wanted = run(serial(case_of(np.random.default_rng(3), LANES, image, MAXIMA), image), image, gap, stall)
    assert found == wanted


def test_sums_in_place_of_maxima_are_found() -> None:
    image = (5, 6, 3)
    case = serial(case_of(np.random.default_rng(3), LANES, image, MAXIMA[:2]), image)
    load, first, pool, *others = case.program.instructions
    program = replace(case.program, instructions=(load, first, replace(pool, maximum=False), *others))
    _, found, wanted = run(case, image, program=complete(program))
    assert found != wanted


@pytest.mark.parametrize(("gap", "stall"), STALLS[1:])
def test_with_gaps_and_stalls(gap: float, stall: float) -> None:
    image = (5, 6, 3)
    _, found, wanted = run(serial(case_of(np.random.default_rng(3), LANES, image, CHAIN), image), image, gap, stall)
    assert found == wanted


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize("offsets", [(128, 0), (0, 128), (128, 128)], ids=str)
def test_elements_without_a_sign(offsets: tuple[int, int], gap: float, stall: float) -> None:
    image = (5, 6, 3)
    case = serial(case_of(np.random.default_rng(3), LANES, image, CHAIN[:2]), image)
    _, found, wanted = run(case, image, gap, stall, replace(case.program, offsets=offsets))
    assert found == wanted


@pytest.mark.parametrize("rounding", ["floor", "half_even", "half_odd"])
def test_rounding(rounding: str) -> None:
    image = (5, 6, 3)
    case = serial(case_of(np.random.default_rng(5), LANES, image, CHAIN[:4], rounding=(rounding, "floor")), image)
    for own in case.numbers:  # ties are frequent: multiples of half a step
        own.multipliers[:] = np.sign(own.multipliers) << 9
        own.addends[:] = own.addends >> 9 << 9
    case.program = replace(case.program, forms=replace(case.program.forms, shift=16))
    trace, found, wanted = run(case, image)
    assert found == wanted
    assert trace.out_cycles[0] <= Pace.of(case.program, Turns(1, 1)).sends[0][0] + SerialEngine.latency


@pytest.mark.parametrize("bits", [(11, 26), (15, 40), (31, 60)], ids=str)
def test_multipliers_of_one_part_and_of_several(bits: tuple[int, int]) -> None:
    image = (5, 6, 3)
    case = serial(case_of(np.random.default_rng(6), LANES, image, CHAIN[:3]), image)
    multiplier, addend = bits
    for own in case.numbers:
        own.multipliers[:] = own.multipliers << multiplier - 11
        own.addends[:] = own.addends << multiplier - 11
    forms = replace(case.program.forms, multiplier_bits=multiplier, addend_bits=addend, shift=19 + multiplier - 11)
    case.program = replace(case.program, forms=forms)
    _, found, wanted = run(case, image)
    assert found == wanted


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_rings_of_rows(gap: float, stall: float, leaves: bool) -> None:
    image = (5, 6, 3)
    case = serial(in_strips(case_of(np.random.default_rng(9), LANES, image, TWO), leaves=leaves), image)
    _, found, wanted = run(case, image, gap, stall)
    assert found == wanted


@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_parts_of_greater_maps(gap: float, stall: float) -> None:
    image = (5, 6, 3)
    case = serial(in_parts(case_of(np.random.default_rng(9), LANES, image, CHAIN)), image)
    assert any(layer.target.block for layer in case.program.layers)
    _, found, wanted = run(case, image, gap, stall)
    assert found == wanted


@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_weights_that_come_once(gap: float, stall: float) -> None:
    image = (5, 6, 3)
    case = serial(case_of(np.random.default_rng(9), LANES, image, CHAIN[:3]), image)
    case.numbers[1].weights[:] = case.numbers[1].weights[:, :1, :1]
    load, first, second, *others = case.program.instructions
    program = replace(case.program, instructions=(load, first, replace(second, same=True), *others))
    case.program = complete(program)
    trace, found, wanted = run(case, image, gap, stall)
    assert found == wanted
    assert gap or stall or trace.out_cycles[0] <= Pace.of(case.program, Turns(1, 1)).sends[0][0] + SerialEngine.latency


class Hasty(SerialProgram):
    """Goes on before the last results of a block are written."""

    @property
    def gap(self) -> int:
        return 1


class Breathless(SerialProgram):
    """Goes on with the next window before the results of a short one have left."""

    def idle(self, layer: Layer) -> int:
        return 1


@pytest.mark.parametrize("twin", [Hasty, Breathless])
def test_a_broken_twin_is_found(twin: type[SerialProgram]) -> None:
    image = (5, 6, 3)
    case = serial(case_of(np.random.default_rng(3), LANES, image, CHAIN[:5]), image)
    broken = complete(twin(**{each.name: getattr(case.program, each.name) for each in fields(case.program)}))
    _, found, wanted = run(case, image, program=broken)
    assert found != wanted


def test_words_that_are_written_into_the_next_pixel_are_found() -> None:
    """Of an odd number of words a pixel's last one is alone: the one behind it is the next pixel's."""
    image = (5, 6, 3)
    case = serial(case_of(np.random.default_rng(3), LANES, image, CHAIN[:1]), image)
    assert case.program.layers[0].out_blocks == 3

    class Even(SerialProgram):
        def is_odd(self, layer: Layer) -> bool:
            return False

    broken = complete(Even(**{each.name: getattr(case.program, each.name) for each in fields(case.program)}))
    _, found, wanted = run(case, image, program=broken)
    assert found != wanted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"together": 2}, "a serial engine has one result at a time, and no second stage or tables"),
        ({"soft": 1}, "a serial engine has one result at a time, and no second stage or tables"),
        ({"tables": ((0,) * 256,)}, "a serial engine has one result at a time, and no second stage or tables"),
        ({"ring": 16}, "ring must be a power of two and have room for 43 words, not 16"),
        ({"offsets": (128, 1)}, "offsets must be 0 or 128, not 128 and 1"),
        ({"lanes": 3}, "lanes of a serial engine must be a power of two, not 3"),
    ],
)
def test_what_a_program_cannot_be(change, message: str) -> None:
    image = (5, 6, 3)
    program = serial(case_of(np.random.default_rng(1), LANES, image, CHAIN[:1]), image).program
    with pytest.raises(ValueError, match=message):
        replace(program, **({"width": 24} if "lanes" in change else {}), **change)
    wide = replace(program.forms, addend_bits=65)
    with pytest.raises(ValueError, match="multipliers and addends must have at most 64 bits"):
        replace(program, forms=wide)
    layer = replace(program.layers[0], signed=False)
    with pytest.raises(ValueError, match="elements of a serial engine must have a sign"):
        replace(program, instructions=(layer,))


def test_what_an_engine_cannot_be() -> None:
    image = (5, 6, 3)
    program = serial(case_of(np.random.default_rng(1), LANES, image, CHAIN[:1]), image).program
    with pytest.raises(ValueError, match=r"input must be signed, .* with 1 to 4 lanes, not unsigned\(8\) and 3"):
        SerialEngine(program, unsigned(8), signed(8), input_lanes=3, output_lanes=4, depth=3)
    with pytest.raises(ValueError, match=r"output must be signed, .* with 1 to 4 lanes, not signed\(8\) and 5"):
        SerialEngine(program, unsigned(7), signed(8), input_lanes=3, output_lanes=5, depth=3)
    with pytest.raises(ValueError, match="setting_words must be"):
        SerialEngine(
            replace(program, setting_words=1), signed(8), signed(8), input_lanes=3, output_lanes=4, depth=3
        )
