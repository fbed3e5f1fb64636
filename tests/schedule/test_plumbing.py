"""Width converters between any lanes: followed element by element, each in the view that it works on."""

import numpy as np
import pytest

from hwflow.cores.operator import Folding
from hwflow.ir.graph import Node, Value
from hwflow.schedule.converters import Conversion, conversions
from hwflow.types import IntType, TensorType
from tests.attributes import attributes_of

I4 = IntType(4, True)


def value_of(pixels, channels):
    return Value("x", TensorType((pixels, channels), I4, I4.interval))


def reader_of(value, vector):
    """A matrix-vector unit, or (0) an operator that knows pixels only."""
    if not vector:
        return Node("r", [value], [], attributes_of("requantize", axis=1, stages=()))
    weights = np.ones((1, vector * value.typed.shape[1]), dtype=np.int64)
    return Node("r", [value], [], attributes_of("mvu", weights=weights, pixels_per_vector=vector))


def beats_of(elements, channels, lanes):
    """A frame's elements as beats, None in surplus lanes: ``channels`` elements begin a new beat."""
    beats = []
    for start in range(0, len(elements), channels):
        pixel = elements[start : start + channels]
        for place in range(0, len(pixel), lanes):
            part = pixel[place : place + lanes]
            beats.append(tuple(part) + (None,) * (lanes - len(part)))
    return beats


def converted(beats, step):
    """What a converter of ``step`` makes of beats: it knows where the elements of a pixel are, not what they are."""
    pixels, channels = step.view
    lanes = step.folding.input_lanes
    each = -(-channels // lanes)
    assert len(beats) == pixels * each, "the stream is not what the step takes it for"
    elements = []
    for pixel in range(pixels):
        lanes_of_pixel = [e for beat in beats[pixel * each : (pixel + 1) * each] for e in beat]
        elements += lanes_of_pixel[:channels]
    return beats_of(elements, channels, step.folding.output_lanes)


def seen(lanes, pixels, channels, vector, *, whole_vector=False):
    """Channels of the pixels that an operator takes a stream for; None where it takes no such lanes."""
    if lanes <= channels and not whole_vector:
        return channels
    if vector and lanes <= vector * channels:
        return vector * channels
    whole = lanes // channels
    if lanes % channels or pixels % whole or (vector and whole % vector):
        return None
    return lanes


@pytest.mark.parametrize(
    ("pixels", "channels", "vector"),
    [(1, 7, 0), (6, 1, 0), (6, 4, 0), (12, 3, 0), (12, 3, 3), (12, 3, 4), (6, 4, 6), (4, 5, 2), (8, 1, 8), (1, 9, 1)],
)
def test_every_pair_of_lanes(pixels, channels, vector):
    value = value_of(pixels, channels)
    reader = reader_of(value, vector)
    elements = list(range(pixels * channels))
    for here in range(1, pixels * channels + 1):
        made = seen(here, pixels, channels, 0)
        for there in range(1, pixels * channels + 1):
            for whole in (False, True)[: 1 + bool(vector and there <= channels)]:
                wanted = seen(there, pixels, channels, vector, whole_vector=whole)
                if made is None or wanted is None:
                    continue
                beats, target = beats_of(elements, made, here), beats_of(elements, wanted, there)
                most = max(len(beats), len(target))
                steps = conversions(value, reader, here, there, whole_vector=whole)
                assert len(steps) <= 3
                for step in steps:
                    narrow, wide = sorted((step.folding.input_lanes, step.folding.output_lanes))
                    assert wide % narrow == 0 or wide == step.view[1], "the core has no single step for it"
                    assert wide <= step.view[1]
                    beats = converted(beats, step)
                    assert len(beats) <= most, "a step slower than both ends"
                assert beats == target, (here, there, whole)


def steps_of(*steps):
    return [Conversion(view, Folding(*lanes)) for view, lanes in steps]


def test_by_way_of_a_whole_pixel():
    value = value_of(12, 8)
    assert conversions(value, reader_of(value, 0), 3, 16) == steps_of(((12, 8), (3, 8)), ((6, 16), (8, 16)))
    assert conversions(value, reader_of(value, 0), 16, 3) == steps_of(((6, 16), (16, 8)), ((12, 8), (8, 3)))
    assert conversions(value, reader_of(value, 0), 3, 5) == steps_of(((12, 8), (3, 8)), ((12, 8), (8, 5)))


def test_whole_pixels_and_vectors():
    value = value_of(12, 8)
    assert conversions(value, reader_of(value, 3), 4, 10) == steps_of(((4, 24), (4, 20)), ((4, 24), (20, 10)))
    assert conversions(value, reader_of(value, 3), 16, 12) == steps_of(((2, 48), (16, 48)), ((2, 48), (48, 12)))
    assert conversions(value, reader_of(value, 3), 8, 48) == steps_of(((2, 48), (8, 48)))
    assert conversions(value, reader_of(value, 3), 24, 24) == []
    whole = conversions(value, reader_of(value, 3), 5, 5, whole_vector=True)
    assert whole == steps_of(((12, 8), (5, 8)), ((4, 24), (8, 24)), ((4, 24), (24, 5)))


def test_an_input_of_fewer_channels_than_lanes():
    value = value_of(6, 2)
    reader = Node("r", [value_of(6, 4), value], [], attributes_of("stream_concat", axis=1))
    assert conversions(value, reader, 1, 4) == steps_of(((6, 2), (1, 4)))
    assert conversions(value, reader, 4, 4) == steps_of(((3, 4), (4, 2)), ((6, 2), (2, 4)))


def test_lanes_that_are_no_whole_pixels_are_refused():
    value = value_of(6, 4)
    with pytest.raises(ValueError, match=r"^lanes must be at most 4 .*, not 6$"):
        conversions(value, reader_of(value, 0), 6, 4)
