"""Programs of engines: every word that a layer reads is the one that it wants, whatever room there is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from hdl_lib.engine.engine_program import Load, Program, Send
from hwflow.cores.engine.engine_layers import AddedMap, EngineLayer, JoinedMaps
from hwflow.cores.engine.engines import Engine
from hwflow.cores.engine.network_part import Network, Shape
from hwflow.cores.engine.strips import Order, fastest
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.types import Interval, IntType

BYTE = Interval(-128, 127)


def network(seed: int) -> Network:
    """Layers as networks have them: convolutions, depthwise ones, residual blocks, whole windows at the end."""
    rng = np.random.default_rng(seed)
    shape = Shape(int(rng.integers(5, 11)), int(rng.integers(2, 5)), (int(rng.integers(1, 7)),))
    shapes, layers = [shape], []

    def add(
        source: int, outputs: int, kernel: int, stride: int = 1, *, diagonal: bool = False, added: int = -1,
        maximum: bool = False, spread: tuple[int, int] = (1, 1),
    ) -> int:
        rows, columns, channels = (getattr(shapes[source], name) for name in ("rows", "columns", "channels"))
        outputs, pad = (channels if diagonal else outputs), (kernel - 1) // 2
        window = WindowGeometry(rows, columns, (kernel, kernel), (stride, stride), (pad,) * 4, (1, 1))
        form = MultiplyAddShift((1,) * outputs, (0,) * outputs, 4, -128, 127)
        more = AddedMap(added, (1, 1), replace(form, multipliers=(1,), addends=(0,))) if added >= 0 else None
        weights = np.ones((kernel**2, channels) if diagonal else (outputs, kernel**2 * channels), dtype=np.int64)
        layers.append(EngineLayer(window, source, 0, weights, diagonal, BYTE, form, more, maximum, spread=spread))
        size = (window.output[k] * spread[k] for k in range(2))
        shapes.append(Shape(*size, shapes[source].parts if diagonal else (outputs,)))
        return len(layers)

    def join(*numbers: int) -> int:
        layers.append(JoinedMaps(numbers))
        parts = tuple(part for number in numbers for part in shapes[number].parts)
        shapes.append(replace(shapes[numbers[0]], parts=parts))
        return len(layers)

    last = 0
    for _ in range(int(rng.integers(1, 4))):
        match rng.integers(9):
            case 7:  # enlarged, made smaller, and joined to what it was
                narrow = add(last, int(rng.integers(1, 8)), 3)
                wide = add(narrow, 0, 1, diagonal=True, maximum=True, spread=(2, 2))
                last = add(join(narrow, add(wide, int(rng.integers(1, 8)), 3, 2)), 5, 3)
            case 8:  # a small map that is enlarged beside a greater one, both of which may be the last that are made
                spread = int(rng.integers(1, 4)), int(rng.integers(1, 3))
                last = add(last, 0, 1, diagonal=True, maximum=True, spread=spread)
                if rng.random() < 0.5:
                    last = join(add(last, 3, 3), add(last, 4, 1))
                    last = add(last, 0, 1, diagonal=True, maximum=True, spread=(2, 1))
                    last = add(last, 5, 3, 2)
            case 5 | 6:  # maps that are joined, one of them made of the other; they are scaled, or seen by windows
                narrow = add(last, int(rng.integers(1, 8)), 1)
                wide = add(narrow, int(rng.integers(1, 8)), 3)
                last = join(narrow, wide)
                if rng.random() < 0.5:
                    last = join(last, add(last, 3, 3))
                if rng.random() < 0.5:
                    last = add(last, 0, 1, diagonal=True)
                last = add(last, int(rng.integers(1, 8)), 3)
            case 0:
                last = add(last, int(rng.integers(1, 12)), 3, int(rng.integers(1, 3)))
            case 1 if min(shapes[last].rows, shapes[last].columns) > 1:
                last = add(last, 0, 2, 2, diagonal=True, maximum=True)
            case 1 | 4:
                last = add(last, 0, 3, int(rng.integers(1, 3)), diagonal=True)
            case 2:  # inverted residual
                wide = add(add(last, 2 * shapes[last].channels, 1), 0, 3, diagonal=True)
                last = add(wide, shapes[last].channels, 1, added=last)
            case _:  # with a projection
                outputs, deep = int(rng.integers(1, 12)), add(last, 5, 3)
                deep = add(deep, outputs, 3)
                last = add(last, outputs, 1, added=deep)
    return Network(tuple(layers), shape, IntType(8, True))


def wrong_words(order: Order, program: Program) -> Iterator[tuple]:
    """Follow which word of which map lies where; yield reads of others. A word of a joined map is one of its part."""
    there: dict[int, tuple[int, int, int]] = {}
    net = order.network
    steps = (step for group in order.groups for step in group.steps())
    waiting: deque[tuple[int, int, int]] = deque()  # outside

    def blocks(parts) -> int:
        return sum(-(-channels // program.lanes) for channels in parts)

    def place(region, number: int, pixel: int, block: int) -> int:
        words = region.pixel or blocks(net.shapes[number].parts)
        return region.first + (pixel * words + region.block + block) % region.words

    def name(number: int, pixel: int, block: int) -> tuple[int, int, int]:
        if isinstance(joined := net.layers[number - 1], JoinedMaps) and number:
            for part in joined.maps:
                if block < (size := blocks(net.shapes[part].parts)):
                    return name(part, pixel, block)
                block -= size
        return number, pixel, block

    number = 0
    copies: deque[tuple[int, ...]] = deque()  # of the layer's pixels that are still to be made
    for each in program.instructions:
        if isinstance(each, Send):
            leaves = number if each.outside else len(net.layers)
            size = blocks(net.shapes[leaves].parts)
            for word in range(each.begin, each.begin + each.words):
                where = leaves, *divmod(word, size)
                if there.get(place(each.region, *where)) != name(*where):
                    yield "sent", where
                if each.outside:
                    waiting.append(name(*where))
            continue
        if not copies:
            number, rows = next(steps)
        if isinstance(each, Load):
            size = blocks(net.shapes[number].parts)
            for word in range(each.begin, each.begin + each.words):
                where = number, *divmod(word, size)
                there[place(each.region, *where)] = waiting.popleft() if each.outside else name(*where)
            continue
        layer = net.layer(number)
        g = layer.window
        copies = copies or deque(np.ndindex(layer.spread))
        down, across = copies.popleft()
        assert [row // layer.spread[0] for row in rows[:: layer.spread[0]]] == list(each.rows)
        words = each.target.pixel or blocks(net.shapes[number].parts)
        between = each.target.row or g.output[1] * words
        for block in range(each.out_blocks):
            for row in each.rows:
                for column in range(g.output[1]):
                    for tap in range(g.taps):
                        y = row * g.strides[0] + tap // g.kernel[1] * g.dilations[0] - g.pads[0]
                        x = column * g.strides[1] + tap % g.kernel[1] * g.dilations[1] - g.pads[1]
                        if not (0 <= y < g.height and 0 <= x < g.width):
                            continue
                        for source in [block] if layer.diagonal else range(each.blocks):
                            where = layer.source, y * g.width + x, source
                            if there.get(place(each.source, *where)) != name(*where):
                                yield "read", number, where
                    pixel = row * g.output[1] + column
                    if each.added is not None:
                        where = layer.added.map, pixel, block
                        if there.get(place(each.added.region, *where)) != name(*where):
                            yield "added", number, where
                    pixel = (row * layer.spread[0] + down) * layer.size[1] + column * layer.spread[1] + across
                    word = row * between + column * words + each.target.block + block
                    there[each.target.first + word % each.target.words] = number, pixel, block


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_every_word_is_the_one_that_is_wanted(seed: int, outside: bool) -> None:
    net = network(seed)
    strips = set()
    engine = Engine(2 + seed % 2 * 2, 1, 16, 4)
    largest = max(map(engine.words, net.shapes))
    for share in (0.5, 0.8, 1.1, 1.5, 2.0, 4.0):
        order = fastest(net, engine, int(share * largest), 1.0, outside=outside)
        if order is None:
            continue
        assert outside or not order.outside
        program = order.program(engine)
        assert program.words <= share * largest
        assert list(wrong_words(order, program)) == []
        assert program.loaded == engine.words(net.shape)
        assert program.sent == engine.words(net.shapes[-1])
        strips.update(group.strips for group in order.groups)
    assert strips


def narrow(seed: int) -> Network:
    """Three layers over an image of one or two channels, the first of which may step over two pixels."""
    channels, stride, dilation, kernel = 1 + seed % 2, 1 + seed // 2 % 2, 1 + seed // 4 % 2, 3 + seed // 8
    form, pads = MultiplyAddShift((1,) * 4, (0,) * 4, 4, -128, 127), ((kernel - 1) * dilation // 2,) * 4
    window = WindowGeometry(12, 8, (kernel, kernel), (stride, stride), pads, (dilation, dilation))
    layers = []
    for number, inputs in enumerate((channels, 4, 4)):
        weights = np.ones((4, window.taps * inputs), dtype=np.int64)
        layers.append(EngineLayer(window, number, 0, weights, False, BYTE, form))
        window = WindowGeometry(*window.output, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    return Network(tuple(layers), Shape(12, 8, (channels,)), IntType(8, True))


@pytest.mark.parametrize("seed", range(24))
def test_images_with_several_pixels_in_a_word(seed: int) -> None:
    """New ones and others before them; a row has as many words as there are new ones for."""
    engine = Engine(8, 1, 16, 4)
    net = engine.network(narrow(seed))
    assert net.overlap and net.packed == 1 + seed // 2 % 2
    assert engine.words(net.shape) == 12 * 8 // net.packed
    most = 0
    for share in (0.5, 0.8, 1.1, 1.5, 2.0, 4.0):
        order = fastest(net, engine, int(share * max(map(engine.words, net.shapes))), 1.0)
        if order is None:
            continue
        program = order.program(engine)
        assert list(wrong_words(order, program)) == []
        assert program.loaded == engine.words(net.shape) and program.words_of_row == 8 // net.packed
        assert (program.pixels_of_word, program.overlap) == (net.packed, net.overlap)
        most = max(most, order.groups[0].strips)
    assert most > 1


def test_a_large_map_waits_outside_where_it_has_no_room() -> None:
    """Four 3 x 3 layers of 24 rows, the last one with strides: its map is small, those in front of it have no room."""
    form = MultiplyAddShift((1,) * 4, (0,) * 4, 4, -128, 127)
    window = WindowGeometry(24, 4, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    small = WindowGeometry(24, 4, (3, 3), (4, 4), (1, 1, 1, 1), (1, 1))
    weights = np.ones((4, 36), dtype=np.int64)
    layers = tuple(
        EngineLayer(small if number == 3 else window, number, 0, weights, False, BYTE, form) for number in range(4)
    )
    net, engine = Network(layers, Shape(24, 4, (4,)), IntType(8, True)), Engine(4, 1, 16, 4)
    order = fastest(net, engine, 70, 100.0, outside=True)  # weights take long: few strips
    assert order is not None
    assert order.outside
    program = order.program(engine)
    assert list(wrong_words(order, program)) == []
    assert program.stored == 96 * len(order.outside)
    assert max(program.levels) <= 2 * 96
    # Rows in another order are found.
    instructions = list(program.instructions)
    first, second = [k for k, each in enumerate(instructions) if isinstance(each, Load) and each.outside][:2]
    instructions[first] = replace(instructions[first], begin=instructions[second].begin)
    assert list(wrong_words(order, replace(program, instructions=tuple(instructions))))


def test_less_room_takes_more_strips() -> None:
    """Three 3 x 3 layers on 24 rows: whole maps where there is room, a few rows of each where there is not."""
    form = MultiplyAddShift((1,) * 4, (0,) * 4, 4, -128, 127)
    window = WindowGeometry(24, 4, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    weights = np.ones((4, 36), dtype=np.int64)
    layers = tuple(EngineLayer(window, number, 0, weights, False, BYTE, form) for number in range(3))
    net, engine = Network(layers, Shape(24, 4, (4,)), IntType(8, True)), Engine(4, 1, 16, 4)
    roomy, narrow = (fastest(net, engine, words, 1.0) for words in (300, 100))
    assert roomy is not None
    assert {group.strips for group in roomy.groups} == {1}
    assert narrow is not None
    assert max(group.strips for group in narrow.groups) > 1
    # There are rows that three rows of windows see, and new ones; those of the last map leave.
    assert narrow.words(engine) < 100 < roomy.words(engine)
    assert 1 < sum(isinstance(each, Send) for each in narrow.program(engine).instructions) <= narrow.groups[0].strips
    assert fastest(net, engine, 30, 1.0) is None  # three rows of two maps and one of the last are 28, and one must come
    # What has no room is found.
    (group, *_) = narrow.groups
    region = next(each.source for each in narrow.program(engine).layers if each.source.words < 96)
    few = replace(region, words=region.words - 4)
    program = narrow.program(engine)
    smaller = tuple(
        replace(each, source=few) if getattr(each, "source", None) == region else
        replace(each, target=few) if getattr(each, "target", None) == region else
        replace(each, region=few) if getattr(each, "region", None) == region else each
        for each in program.instructions
    )
    assert group.strips > 1
    assert list(wrong_words(narrow, replace(program, instructions=smaller)))


def test_what_is_outside_may_need_a_sign() -> None:
    """Elements of 5 to 127 beside padding of -128 are stored with a sign; those up to 200 cannot be beside it."""
    window = WindowGeometry(3, 3, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    weights = np.ones((1, 9), dtype=np.int64)

    def two(high: int, pad: int) -> Network:
        first = EngineLayer(window, 0, 0, weights, False, BYTE, MultiplyAddShift((1,), (0,), 0, 5, high))
        second = EngineLayer(window, 1, pad, weights, False, BYTE, MultiplyAddShift((1,), (0,), 0, -128, 127))
        return Network((first, second), Shape(3, 3, (1,)), IntType(8, False))

    assert [two(127, 0).is_signed(number) for number in range(3)] == [False, False, True]
    assert two(127, -128).is_signed(1)
    assert two(127, -128).is_of_bytes
    assert two(200, 0).is_of_bytes
    assert not two(200, -128).is_of_bytes


@pytest.mark.parametrize(("channels", "words"), [(4, 16), (8, 32), (16, 512), (400, 1024)])
def test_the_ring_of_weights_has_what_block_ram_has(channels: int, words: int) -> None:
    """A window's 9 words of each four channels, a word in front of them, six on their way: a power of two, and where
    that is not in look-up tables at least a block RAM's 512 words."""
    form = MultiplyAddShift((1,) * 4, (0,) * 4, 4, -128, 127)
    window = WindowGeometry(6, 6, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    layer = EngineLayer(window, 0, 0, np.ones((4, 9 * channels), dtype=np.int64), False, BYTE, form)
    net = Network((layer,), Shape(6, 6, (channels,)), IntType(8, True))
    engine = Engine(4, 1, 16, 6)
    assert engine.header(net.forms) == 1
    assert engine.ring(net) == words
