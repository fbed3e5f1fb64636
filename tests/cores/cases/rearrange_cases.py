"""Cases of the rearranger: what ONNX's operators that move elements do to a frame, in both forms."""

from __future__ import annotations

import numpy as np

from hwflow.cores.logical.index_map import IndexMap
from hwflow.cores.operator import Folding
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, IntType, TensorType
from tests.cores.harness import Case

I8, U4, U8 = IntType(8, True), IntType(4, False), IntType(8, False)


def _numbers(*shape: int) -> IntArray:
    """The elements of a frame by their numbers."""
    return np.arange(np.prod(shape)).reshape(shape)


def _corners(node: Node) -> IntArray:
    """Each channel all least, then all greatest."""
    source = node.inputs[0].typed
    ranges = source.channel_intervals(1)
    ends = ([r.lo for r in ranges], [r.hi for r in ranges])
    return np.stack([np.broadcast_to(np.array(end, dtype=np.int64), source.shape) for end in ends])


def _case(
    name: str,
    shape: tuple[int, int],
    moved: IntArray,
    lanes: tuple[tuple[int, int], ...],
    element: IntType = I8,
    *,
    channels: int = 0,
    fill: int = 0,
    intervals: tuple[Interval, ...] = (),
) -> Case:
    """``moved``: numbers of elements, [..., channels] unless ``channels`` says how many; ``lanes``: (in, out)."""
    source = TensorType((shape[0], shape[1]), element, element.interval)
    if intervals:
        source = TensorType.of((shape[0], shape[1]), intervals, 1)
    attributes = {
        "map": IndexMap(moved, shape[0] * shape[1]), "channels": channels or moved.shape[-1], "fill": fill,
    }
    foldings = tuple(Folding(*each) for each in lanes)
    return Case(name, "rearrange", attributes, source, foldings, None if (moved < 0).any() else _corners)


_IMAGE = _numbers(6, 4, 3)
_PADS = ((1, 2), (2, 0), (0, 0))
_NEIGHBOURS = np.clip((np.arange(40) - 1) // 2, 0, 18)[:, None] + np.arange(2)
_PAIRS = (np.arange(54) * 2 // 3).clip(0, 34)[:, None] + np.arange(2)
_RANDOM = np.random.default_rng(5)

REARRANGE = [
    _case("channels_first", (24, 3), _IMAGE.transpose(2, 0, 1).reshape(72, 1), ((1, 1), (72, 72))),
    _case("columns_first", (24, 3), _IMAGE.transpose(1, 0, 2), ((1, 1), (3, 3), (72, 72))),
    _case("crop", (24, 3), _IMAGE[1:4, 1::2], ((1, 1), (3, 3))),
    _case("upside_down", (24, 3), _IMAGE[::-1], ((1, 1), (3, 3), (12, 12), (72, 72))),
    _case("first_half", (24, 3), _IMAGE[:3], ((1, 1), (12, 12))),
    _case("second_half", (24, 3), _IMAGE[3:], ((1, 1), (6, 6))),
    _case("part_of_a_vector", (1, 40), np.arange(8, 16), ((1, 1), (4, 4), (8, 8)), U8),
    _case("last_part_of_a_vector", (1, 64), np.arange(48, 64), ((1, 1), (2, 2)), U8),
    _case("every_fourth", (1, 64), np.arange(1, 64, 4).reshape(16, 1), ((1, 1), (4, 1))),
    _case("every_third_twice_as_wide", (3, 24), np.arange(48, 72).reshape(4, 3, 2)[:, 2], ((2, 2),), U8),
    _case("unevenly", (12, 1), np.array([0, 2, 4, 7, 8, 10]).reshape(6, 1), ((1, 1),)),
    _case("middle_channels", (8, 6), _numbers(8, 6)[:, 2:4], ((1, 1), (2, 2))),
    _case("one_of_all", (24, 3), _IMAGE[2:3, 1:2, 1:2], ((1, 1),)),
    _case("pad", (24, 3), np.pad(_IMAGE, _PADS, constant_values=-1), ((1, 1), (3, 3)), fill=-5),
    _case("pad_beyond_the_type", (8, 2), np.pad(_numbers(8, 2), ((1, 1), (0, 0)), constant_values=-1),
          ((1, 1), (2, 2)), U4, fill=-3),
    _case("pad_rows", (24, 3), np.pad(_IMAGE, ((1, 1), (0, 0), (0, 0)), constant_values=-1), ((1, 1), (3, 3), (12, 12)),
          fill=-5),
    _case("pad_above", (24, 3), np.pad(_IMAGE[:-1], ((1, 0), (0, 0), (0, 0)), constant_values=-1),
          ((1, 1), (3, 3), (12, 12)), fill=-128),
    _case("pad_below", (24, 3), np.pad(_IMAGE[2:], ((0, 2), (0, 0), (0, 0)), constant_values=-1),
          ((1, 1), (3, 3), (12, 12)), fill=9),
    _case("pad_a_long_frame", (4000, 1), np.pad(_numbers(4000, 1), ((30, 20), (0, 0)), constant_values=-1), ((1, 1),)),
    _case("pad_channels", (5, 2), np.pad(_numbers(5, 2), ((0, 0), (1, 1)), constant_values=-1), ((2, 4), (10, 20)),
          fill=7),
    _case("edge", (24, 3), np.pad(_IMAGE, _PADS, mode="edge"), ((1, 1), (3, 3))),
    _case("reflect", (24, 3), np.pad(_IMAGE, _PADS, mode="reflect"), ((3, 3),)),
    _case("twice_as_large", (24, 3), _IMAGE.repeat(2, 0).repeat(2, 1), ((1, 1), (3, 3), (12, 48))),
    _case("half_as_much_again", (24, 3), _IMAGE[np.arange(9) * 2 // 3][:, np.arange(6) * 2 // 3], ((1, 1), (3, 3))),
    _case("neighbours_of_twice_as_many_rows", (20, 2), _numbers(20, 1, 2)[_NEIGHBOURS], ((1, 1), (2, 2))),
    _case("neighbours_of_half_as_many_more", (36, 1), _numbers(36, 1)[_PAIRS], ((1, 1),)),
    _case("tiled", (12, 2), np.tile(_numbers(4, 3, 2), (2, 3, 1)), ((1, 1), (2, 2), (6, 6))),
    _case("gathered", (24, 3), _IMAGE[:, [3, 0, 0, 1]], ((1, 1), (3, 3), (12, 12)), U4),
    _case("shuffled", (30, 1), _RANDOM.permutation(30).reshape(30, 1), ((1, 1), (30, 30))),
    _case("picked", (8, 5), _RANDOM.integers(0, 40, (7, 2)), ((1, 1),)),
    _case("picked_with_holes", (8, 5), _RANDOM.integers(-1, 40, (9, 2)), ((1, 1), (40, 18)), fill=1),
    _case("channels_turned", (24, 3), _IMAGE[:, :, [2, 0, 1]], ((1, 1), (3, 3), (6, 6))),
    _case("channels_left_out", (6, 4), _numbers(6, 4)[:, 1:3], ((4, 2), (8, 4), (1, 1))),
    _case("channels_split", (6, 4), _numbers(6, 4).reshape(6, 2, 2).transpose(1, 0, 2), ((2, 2), (24, 24)),
          intervals=(Interval(-3, 4), Interval(0, 9), Interval(-8, -1), Interval(5, 5))),
    _case("depth_to_space", (6, 8), _numbers(2, 3, 2, 2, 2).transpose(0, 2, 1, 3, 4), ((2, 2), (24, 24)), U8),
    _case("vector_to_pixels", (1, 5), np.broadcast_to(np.arange(5), (6, 5)), ((1, 1), (5, 5), (5, 30))),
    _case("pixel_to_vector", (6, 1), np.broadcast_to(np.arange(6)[:, None], (6, 3)), ((1, 1), (1, 3), (2, 6))),
]
