"""A network whose maps all have a sign: an element without one is stored less 128, which quantizers make up for."""

from __future__ import annotations

from dataclasses import replace

from hwflow.cores.engine.engine_layers import BYTE, EngineLayer, JoinedMaps
from hwflow.cores.engine.network_part import Network
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.types import IntType

_OFFSET = BYTE.hi + 1


def with_sign(network: Network) -> Network:
    """Return the same network over signed bytes: of a map with elements beyond these all are less by 128. A sum over
    such a map is less by 128 times the weights of its channel, also beside the map, where what stands there is less by
    as much; and a multiple of 128 passes a shift as it is, however that rounds. The layers have no second stage."""
    offsets = [_OFFSET if network.ends(number).hi > BYTE.hi else 0 for number in range(len(network.shapes))]
    layers = tuple(
        layer if isinstance(layer, JoinedMaps) else _with_sign(layer, offsets[layer.source], offsets[number])
        for number, layer in enumerate(network.layers, 1)
    )
    return Network(layers, network.shape, IntType(8, True), (offsets[0], offsets[-1]))


def _with_sign(layer: EngineLayer, source: int, target: int) -> EngineLayer:
    form = layer.form
    totals = (layer.weights[-1] if layer.maximum else layer.weights.sum(axis=0 if layer.diagonal else 1)).tolist()
    addends = tuple(
        addend + multiplier * source * total - (target << form.shift)
        for addend, multiplier, total in zip(form.addends, form.multipliers, totals, strict=True)
    )
    made = MultiplyAddShift(
        form.multipliers, addends, form.shift, form.low - target, form.high - target, form.rounding
    )
    less = [layer.sums.plus(-source * total) for total in (min(totals), max(totals))]
    return replace(
        layer, pad_value=layer.pad_value - source, sums=less[0].hull(less[1]), form=made,
    )
