"""Networks over signed bytes: the same results, less by what is taken off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hwflow.cores.engine.engine_layers import EngineLayer, JoinedMaps, evaluate
from hwflow.cores.engine.network_part import Network, Shape
from hwflow.cores.engine.signed_maps import with_sign
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift, ShiftRounding
from hwflow.types import Interval, IntType


def network(seed: int, rounding: ShiftRounding, *, pool: bool) -> Network:
    """A convolution, a depthwise layer, both of them joined, a convolution and maybe maxima; some maps have a sign."""
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, 4).astype(bool)
    joined = signs[1]  # maps that are joined are stored alike

    def layer(source: int, inputs: int, outputs: int, *, diagonal: bool, source_signed: bool, signed: bool):
        window = WindowGeometry(4, 5, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
        shape = (9, inputs) if diagonal else (outputs, 9 * inputs)
        ends = (-128, 127) if signed else (0, 255)
        multipliers, addends = rng.integers(-40, 41, outputs), rng.integers(-(1 << 20), 1 << 20, outputs)
        form = MultiplyAddShift(tuple(multipliers.tolist()), tuple(addends.tolist()), 13, *ends, rounding)
        most = 9 * inputs * 255 * 128
        padding = int(rng.integers(-128, 128) if source_signed else rng.integers(0, 256))
        weights = rng.integers(-128, 128, shape)
        return EngineLayer(window, source, padding, weights, diagonal, Interval(-most, most), form)

    layers = (
        layer(0, 2, 3, diagonal=False, source_signed=bool(signs[0]), signed=bool(joined)),
        layer(1, 3, 3, diagonal=True, source_signed=bool(joined), signed=bool(joined)),
        JoinedMaps((1, 2)),
        layer(3, 6, 4, diagonal=False, source_signed=bool(joined), signed=bool(signs[3])),
    )
    if pool:
        last = layer(4, 4, 4, diagonal=True, source_signed=bool(signs[3]), signed=bool(signs[2]))
        layers = (*layers, replace(last, maximum=True, weights=np.full((9, 4), 64)))
    return Network(layers, Shape(4, 5, (2,)), IntType(8, bool(signs[0])))


@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize("rounding", list(ShiftRounding))
@pytest.mark.parametrize("seed", range(8))
def test_the_same_less_by_what_is_taken_off(seed: int, rounding: ShiftRounding, pool: bool) -> None:
    net = network(seed, rounding, pool=pool)
    made = with_sign(net)
    assert all(made.ends(number).hi <= 127 for number in range(len(made.shapes)))
    assert made.offsets == tuple(128 * (not net.is_signed(number)) for number in (0, len(net.layers)))
    ends = net.element.interval
    image = np.random.default_rng(seed).integers(ends.lo, ends.hi + 1, (3, 20, 2))
    wanted = evaluate(net.layers, image)
    np.testing.assert_array_equal(evaluate(made.layers, image - made.offsets[0]) + made.offsets[1], wanted)
    assert len(np.unique(wanted)) > (4 if pool else 20)  # results are not all at the limits


def test_sums_of_a_channel_are_less_by_its_weights() -> None:
    """Elements 200 and 7, weights 3 and -1, padding 9: 593 becomes 593 - 128 * (3 - 1)."""
    window = WindowGeometry(1, 2, (1, 2), (1, 1), (0, 0, 0, 0), (1, 1))
    form = MultiplyAddShift((5,), (11,), 4, 0, 255)
    layer = EngineLayer(window, 0, 9, np.array([[3, -1]]), False, Interval(0, 765), form)
    (made,) = with_sign(Network((layer,), Shape(1, 2, (1,)), IntType(8, False))).computed
    assert made.form == MultiplyAddShift((5,), (11 + 5 * 256 - (128 << 4),), 4, -128, 127)
    assert (made.sums.lo, made.sums.hi, made.pad_value) == (-256, 509, -119)
