"""A second implementation of what an engine computes, and the stream of its weights: numpy, written for reading."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hdl_lib.engine.engine_program import Added, Forms, Instruction, Layer, Load, Program, Region, Send
from hdl_lib.requantizers.shift_and_clamp import ShiftRounding
from hdl_lib.windows.window_geometry import WindowGeometry

CHAIN = [
    ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 5, False, None),
    ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 0, True, None),
    ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 7, True, None),
    ((1, 3), (1, 1), (0, 1, 0, 1), (1, 1), 5, True, 2),
    ((2, 2), (1, 1), (0, 1, 1, 0), (1, 2), 3, False, None),
    ((3, 2), (1, 1), (0, 0, 0, 0), (1, 1), 0, True, None),
]
"""Kernel, stride, pads, dilation, outputs (0: diagonal, -1: of maxima), whether results have a sign, the map (0: the
image) that is added, or None."""

MAXIMA = [
    ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 5, True, None),
    ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 5, True, None),
    ((3, 2), (1, 1), (1, 0, 1, 1), (1, 1), -1, True, 1),
    ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 3, False, None),
    ((2, 3), (2, 1), (0, 0, 0, 1), (1, 1), -1, True, None),
]
"""The same with maxima: of elements with a sign, with a map that is added to them, of elements without one."""


@dataclass
class Numbers:
    """Of a layer: weights [outputs, rows, columns, inputs] (diagonal: [channels, rows, columns]), multipliers and
    addends [outputs]."""

    weights: np.ndarray
    multipliers: np.ndarray
    addends: np.ndarray


@dataclass
class Case:
    """``layers`` over whole maps, one after the other, with their ``numbers``; the ``program``, and of which layer each
    of its layers is; in how many rows and columns each result of the last one stands."""

    layers: list[Layer]
    sources: list[int]
    numbers: list[Numbers]
    program: Program
    of: list[int]
    spread: tuple[int, int] = (1, 1)

    def beats(self) -> list[int]:
        """The weights of a frame, as beats."""
        lanes, forms, size = self.program.lanes, self.program.forms, self.program.weight_bits
        mask, of_beat = (1 << size) - 1, self.program.width // size
        found: list[int] = []
        for which, layer in zip(self.of, self.program.layers, strict=True):
            own = self.numbers[which]
            taps = (1 if layer.same else layer.taps) | int(layer.diagonal) << self.program.width - 1
            for block in range(layer.out_blocks):
                found += [taps >> size * place & mask for place in range(of_beat)]
                rows = range(block * lanes, (block + 1) * lanes)
                parameters = []
                for row in rows:
                    m, b = (int(each[row]) if row < len(each) else 0 for each in (own.multipliers, own.addends))
                    bits = forms.multiplier_bits
                    parameters.append(m & ((1 << bits) - 1) | (b & ((1 << forms.addend_bits) - 1)) << bits)
                for word in range(self.program.header):
                    found += [
                        row >> size * (word * lanes + lane) & mask for row in parameters for lane in range(lanes)
                    ]
                kh, kw = layer.geometry.kernel
                if layer.diagonal:
                    found += [weight & mask for weight in self._diagonal(layer, own.weights, rows)]
                    continue
                found += [
                    self._weight(layer, own.weights, row, lane, (y, x), source) & mask
                    for y in range(kh) for x in range(kw) for source in range(layer.blocks)
                    for row in rows for lane in range(lanes)
                ]
        return [
            sum(weight << size * k for k, weight in enumerate(found[n : n + of_beat]))
            for n in range(0, len(found), of_beat)
        ]

    def _diagonal(self, layer: Layer, weights, rows: range) -> list[int]:
        """A weight of each row, once where all taps have the same; where windows slide all of a window's row at once,
        from the right, as many as the widest has."""
        kh, kw = layer.geometry.kernel
        taps = [[(y, x)] for y in range(kh) for x in range(kw)][: 1 if layer.same else None]
        if layer.slides:
            taps = [[(y, x) for x in reversed(range(kw))] for y in range(kh)]
        for each in taps:
            each += [(kh, kw)] * (max(1, self.program.columns) - len(each))  # none
        return [
            int(weights[row, y, x]) if row < len(weights) and y < kh else 0
            for each in taps for y, x in each for row in rows
        ]

    def _weight(self, layer: Layer, weights, row: int, lane: int, tap: tuple[int, int], source: int) -> int:
        if row >= len(weights):
            return 0
        column = source * self.program.lanes + lane
        return int(weights[row, *tap, column]) if column < weights.shape[3] else 0

    def run(self, image: np.ndarray) -> np.ndarray:
        """The result [pixels, channels] of an image [height, width, channels]."""
        maps, forms = [image], self.program.forms
        for layer, source, own in zip(self.layers, self.sources, self.numbers, strict=True):
            g = layer.geometry
            top, left, bottom, right = g.pads
            padded = np.pad(
                maps[source], ((top, bottom), (left, right), (0, 0)), constant_values=layer.pad_value
            )
            out = np.zeros((g.out_height, g.out_width, len(own.multipliers)), dtype=np.int64)
            if layer.maximum:
                out -= 128
            for oy in range(g.out_height):
                for ox in range(g.out_width):
                    for y in range(g.kernel[0]):
                        for x in range(g.kernel[1]):
                            seen = padded[oy * g.stride[0] + y * g.dilation[0], ox * g.stride[1] + x * g.dilation[1]]
                            if layer.maximum:
                                out[oy, ox] = np.maximum(out[oy, ox], seen)
                                continue
                            part = own.weights[:, y, x] * seen if layer.diagonal else own.weights[:, y, x] @ seen
                            out[oy, ox] += part
            if layer.maximum:
                out *= own.weights[:, -1, -1]
            out = _shifted(out * own.multipliers + own.addends, forms.shift, forms.rounding)
            out = np.clip(out, layer.low, layer.high)
            if layer.added:
                a = layer.added
                place = next(k for k, other in enumerate(self.layers) if other.target == a.region)
                total = out * a.factors[0] + maps[place + 1] * a.factors[1] + a.addend
                out = np.clip(_shifted(total, forms.added_shift, forms.added_rounding), a.low, a.high)
            if layer.table >= 0:
                out = np.array(self.program.tables[layer.table])[out & 255]
            maps.append(out)
        last = maps[-1].repeat(self.spread[0], axis=0).repeat(self.spread[1], axis=1)
        return last.reshape(-1, last.shape[2])


def _shifted(values: np.ndarray, shift: int, rounding: str) -> np.ndarray:
    """Values over ``2**shift``, in halves rounded to even or odd."""
    if rounding == "floor":
        return values >> shift
    twice, rest = values >> (shift - 1), values & ((1 << (shift - 1)) - 1)
    floor, half = twice >> 1, twice & 1
    tie = floor & 1 if rounding == "half_even" else 1 - (floor & 1)
    return floor + half * np.where(rest > 0, 1, tie)


def words_of(pixels: np.ndarray, lanes: int) -> list[int]:
    """Pixels [n, channels] as beats of 8-bit lanes; surplus lanes 0."""
    pixels = np.pad(pixels, ((0, 0), (0, -pixels.shape[1] % lanes))).reshape(-1, lanes)
    return [sum((int(v) & 255) << 8 * k for k, v in enumerate(word)) for word in pixels]


def case_of(
    rng, lanes: int, image: tuple[int, int, int], shapes=CHAIN, *, together: int = 1, width: int = 16, spare: int = 9,
    rounding: tuple[str, str] = ("floor", "floor"), soft: int = 0, weight_bits: int = 8,
) -> Case:
    """Layers one after the other, whole maps in regions of their own but for results of sums, which take the place of
    what is added. Weights of fewer bits make smaller sums, of which less is shifted out."""
    height, columns, channels = image
    regions, signs = [Region(0, height * columns * -(-channels // lanes))], [True]
    first = regions[0].words
    layers: list[Layer] = []
    numbers = []
    less = 8 - weight_bits
    forms = Forms(23, 11, 26, 19 - less, ShiftRounding(rounding[0]))
    if any(shape[6] is not None for shape in shapes):
        forms = replace(forms, factor_bits=9, added_bits=18, added_shift=8, added_rounding=ShiftRounding(rounding[1]))
    for kernel, stride, pads, dilation, outputs, is_signed, added in shapes:
        g = WindowGeometry(height, columns, kernel, stride, pads, dilation)
        made = channels if outputs < 1 else outputs
        low, high = (-128, 127) if is_signed else (0, 255)
        target, more = Region(first, g.out_height * g.out_width * -(-made // lanes)), None
        if added is None:
            first += target.words
        else:
            target = regions[added]
            factors = int(rng.integers(-200, 200)), int(rng.integers(-200, 200))
            more = Added(target, signs[added], factors, int(rng.integers(-4000, 4000)), low, high)
            low, high = -128, 127
        layers.append(
            Layer(
                g, range(g.out_height), -(-channels // lanes), -(-made // lanes), regions[-1], target, outputs < 1,
                signs[-1], int(rng.integers(0, 100)), low, high, more, outputs < 0,
            )
        )
        shape = (made, *kernel, channels) if outputs > 0 else (made, *kernel)
        weights, most = rng.integers(-128 >> less, 128 >> less, shape), 1 << 24 - less
        numbers.append(Numbers(weights, rng.integers(-900, 1000, made), rng.integers(-most, most, made)))
        regions.append(target)
        signs.append(is_signed)
        height, columns, channels = g.out_height, g.out_width, made
    last = layers[-1].target
    instructions: list[Instruction] = [Load(regions[0], 0, regions[0].words), *layers, Send(last, 0, last.words)]
    program = Program(lanes, together, tuple(instructions), forms, first, 1 << 12, width, soft, weight_bits=weight_bits)
    needed = max(map(program.needed, layers)) + spare
    program = replace(program, ring=1 << (needed - 1).bit_length())
    return Case(layers, list(range(len(layers))), numbers, program, list(range(len(layers))))


def with_tables(case: Case, rng) -> Case:
    """The same with a table behind every second layer, of elements that are the same with a sign and without one."""
    tables = tuple(tuple(int(byte) for byte in rng.integers(0, 128, 256)) for _ in range(2))
    layers = [replace(each, table=k // 2 % 2) if k % 2 else each for k, each in enumerate(case.layers, 1)]
    load, *_, send = case.program.instructions
    program = replace(case.program, instructions=(load, *layers, send), tables=tables)
    return replace(case, layers=layers, program=program)


def in_parts(case: Case) -> Case:
    """The same with each map between layers as the second of three parts of a greater one; the others have a word."""
    first, regions = case.program.words, {}
    for layer in case.layers[:-1]:
        if layer.target not in regions:
            pixel = layer.out_blocks + 2
            words = layer.target.words // layer.out_blocks * pixel
            regions[layer.target], first = Region(first, words, pixel, 1), first + words

    def moved(each: Layer) -> Layer:
        added = each.added and replace(each.added, region=regions.get(each.added.region, each.added.region))
        source, target = (regions.get(region, region) for region in (each.source, each.target))
        return replace(each, source=source, target=target, added=added)

    load, *layers, send = case.program.instructions
    instructions = (load, *map(moved, layers), replace(send, region=regions.get(send.region, send.region)))
    return replace(case, program=replace(case.program, instructions=instructions, words=first))


def sliding(case: Case) -> Case:
    """The same with windows that slide where they may."""
    def may(each: Layer) -> bool:
        return each.diagonal and not each.maximum and not each.added and each.geometry.dilation[1] == 1

    layers = [replace(each, slides=may(each)) for each in case.layers]
    load, *_, send = case.program.instructions
    program = replace(case.program, instructions=(load, *layers, send))
    assert program.columns
    return replace(case, layers=layers, program=program)


def alike(case: Case) -> Case:
    """The same with the first tap's weights at all taps of diagonal layers that do not slide, which come once."""
    layers = [replace(each, same=each.diagonal and not each.slides) for each in case.layers]
    numbers = [
        replace(own, weights=own.weights * 0 + own.weights[:, :1, :1]) if layer.same else own
        for layer, own in zip(layers, case.numbers, strict=True)
    ]
    load, *_, send = case.program.instructions
    program = replace(case.program, instructions=(load, *layers, send))
    return replace(case, layers=layers, numbers=numbers, program=program)


def in_words(case: Case, fresh: int, pixels: int, words: range, places: list[tuple[int, int]]) -> Case:
    """The same with words of so many ``pixels`` of the image, so many ``fresh`` and others before them. A window of the
    first layer sees some ``words`` of a row, from that of its own place on; ``places``: which of these has each of its
    old columns, and where."""
    load, first, *others = case.program.instructions
    g, weights = first.geometry, case.numbers[0].weights
    outputs, rows, columns, channels = weights.shape
    wide = np.zeros((outputs, rows, len(words), pixels, channels), dtype=np.int64)
    for column in range(columns):
        wide[:, :, *places[column]] = weights[:, :, column]
    stride, width = g.stride[1] // fresh, g.width // fresh
    right = (g.out_width - 1) * stride + words[-1] + 1 - width
    geometry = WindowGeometry(
        g.height, width, (rows, len(words)), (g.stride[0], stride), (g.pads[0], -words[0], g.pads[2], right),
        (g.dilation[0], words.step),
    )
    region = replace(load.region, words=g.height * width)
    first = replace(first, geometry=geometry, source=region, blocks=1)
    instructions = (replace(load, region=region, words=region.words), first, *others)
    numbers = replace(case.numbers[0], weights=wide.reshape(outputs, rows, len(words), pixels * channels))
    return replace(
        case, layers=[first, *case.layers[1:]], numbers=[numbers, *case.numbers[1:]],
        program=replace(case.program, instructions=instructions, pixels_of_word=fresh, overlap=pixels - fresh),
    )


def enlarged(case: Case, down: int, across: int) -> Case:
    """The same with each result of the last layer in so many rows and columns: a layer makes each of these pixels."""
    load, *layers, last, _ = case.program.instructions
    pixel = last.out_blocks
    row = last.geometry.out_width * across * pixel
    whole = replace(last.target, words=last.target.words * down * across)
    copies = [
        replace(last, target=replace(whole, pixel=across * pixel, row=down * row, block=y * row + x * pixel))
        for y in range(down) for x in range(across)
    ]
    instructions = (load, *layers, *copies, Send(whole, 0, whole.words))
    program = replace(case.program, instructions=instructions, words=whole.first + whole.words)
    return replace(case, program=program, of=[*case.of, *case.of[-1:] * (len(copies) - 1)], spread=(down, across))


def by_way_of_memory(case: Case) -> Case:
    """The same of layers one after the other, with every map between them sent outside and loaded again row by row, to
    where the next layer sees it; of the last one the first rows are sent before the others are made."""
    load, *layers, send = case.program.instructions
    instructions: list[Instruction] = [load]
    of: list[int] = []
    for number, layer in enumerate(layers[:-1]):
        rows, words = layer.geometry.out_height, layer.target.words
        for row in range(rows):
            instructions += [replace(layer, rows=range(row, row + 1))]
            instructions += [Send(layer.target, row * words // rows, words // rows, outside=True)]
            of.append(number)
        instructions += [Load(layer.target, row * words // rows, words // rows, outside=True) for row in range(rows)]
    instructions += [layers[-1], send]
    return replace(case, program=replace(case.program, instructions=tuple(instructions)), of=[*of, len(layers) - 1])


def in_strips(case: Case, *, leaves: bool = False) -> Case:
    """The same of two layers of 3 x 3 windows with pads, row by row, with three rows of either map they see there.
    ``leaves``: so does each row of the result, whose place the next but one takes."""
    first, second = case.layers
    load, *_, send = case.program.instructions
    height = first.geometry.height
    row, middle = load.words // height, first.target.words // height
    image, between = Region(0, 3 * row), Region(3 * row, 3 * middle)
    last = second.target.words // height
    result = Region(3 * (row + middle), 2 * last if leaves else height * last)
    instructions: list[Instruction] = []
    of: list[int] = []
    made = [0, 0]

    def make(number: int) -> None:
        source, target = ((image, between), (between, result))[number]
        rows = range(made[number], made[number] + 1)
        instructions.append(replace(case.layers[number], rows=rows, source=source, target=target))
        of.append(number)
        if leaves and number:
            instructions.append(Send(result, made[number] * last, last))
        made[number] += 1

    for step in range(height):
        instructions.append(Load(image, step * row, row))
        while made[0] < (height if step == height - 1 else step):
            make(0)
            while made[1] < (height if made[0] == height else made[0] - 1):
                make(1)
    if not leaves:
        instructions.append(replace(send, region=result))
    words = result.first + result.words
    return replace(case, program=replace(case.program, instructions=tuple(instructions), words=words), of=of)
