"""Static quantization: a float model becomes a QDQ model."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy.typing as npt
import onnx
from onnx import shape_inference

from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.quantization.bias_correction import corrected_biases
from hwflow.quantization.calibration import Range, calibrate
from hwflow.quantization.clipping import MINMAX, Ranges, histograms
from hwflow.quantization.equalization import equalized
from hwflow.quantization.integer_kinds import (
    FIXED_POINT_BITS,
    MOST_BITS,
    Grid,
    IntegerKind,
    grid_of,
    grid_with_scale,
)
from hwflow.quantization.masks import bound_masks
from hwflow.quantization.node_weights import part_weights, weights_of
from hwflow.quantization.noise.layer_errors import LayerError, layer_errors
from hwflow.quantization.noise.mixed_precision import ProductCost, bit_operations, choose_kinds, costs_of, units_of
from hwflow.quantization.noise.precision import FidelityTarget, choose_wide
from hwflow.quantization.placement import Placement, place_quantizers
from hwflow.quantization.preparation import (
    NEWEST_OPSET,
    decomposed,
    finished,
    name_nodes,
    optimized,
    plain_biases,
    raised,
)
from hwflow.quantization.qdq_writer import Scheme, with_quantizers
from hwflow.quantization.sessions import Arrays, State, plain, refusing
from hwflow.quantization.sum_scales import added_together, scales_of_sums

_PER_CHANNEL_OPSET = 13  # the first QuantizeLinear and DequantizeLinear with an axis

@dataclass(frozen=True)
class Recipe:
    """How values are quantized: ``weight_bits`` 2 to 16 (signed, symmetric, one scale per channel), ``activations``
    "uint2" to "uint16" or "int2" to "int16" (any zero point, one scale per tensor); with ``target_snr`` (dB) as few of
    them as possible have 16 bits instead. ``method``: of :data:`hwflow.quantization.clipping.METHODS`.

    ``mixed_weights``: each layer's have bits of their own; ``mixed_activations``: so have activations, where weights
    have, too. They then keep ``target_snr``, or ``target_accuracy``: percentage points by which the accuracy may differ
    from the float model's (-0.5: half a point below it). ``bias_correction``: biases make up for the mean error of
    rounded weights (:mod:`hwflow.quantization.bias_correction`); ``equalize``: channels between layers are scaled
    (:mod:`hwflow.quantization.equalization`). ``product_cost``: of products of integers.
    """

    weight_bits: int = 8
    activations: str = "uint8"
    target_snr: float | None = None
    method: str = MINMAX
    mixed_weights: bool = False
    mixed_activations: bool = False
    target_accuracy: float | None = None
    bias_correction: bool = False
    equalize: bool = False
    product_cost: ProductCost = bit_operations

    @property
    def kind(self) -> IntegerKind:
        """The integers of activations."""
        return IntegerKind.named(self.activations)

    @property
    def wide(self) -> IntegerKind:
        """Those of activations that need more bits."""
        return IntegerKind(MOST_BITS, self.kind.signed)

    @property
    def opset(self) -> int:
        """The least version of the default operator set that can say it."""
        held = IntegerKind(self.weight_bits).held_in.bits, self.kind.held_in.bits
        narrow = held == (8, 8) and not (self.mixed_weights or self.mixed_activations)
        return _PER_CHANNEL_OPSET if narrow else NEWEST_OPSET


@dataclass(frozen=True)
class Quantized:
    """``activations``: the values with a quantizer, in the order of the graph; those in ``wide`` have 16 bits.
    ``layers``: where its error comes from."""

    model: onnx.ModelProto
    activations: tuple[str, ...]
    wide: tuple[str, ...]
    layers: tuple[LayerError, ...]


def static_qdq(
    model: onnx.ModelProto, frames: Sequence[Arrays], recipe: Recipe, states: Sequence[State] = (),
    labels: npt.NDArray[Any] | None = None,
) -> Quantized:
    """Quantize ``model`` with QuantizeLinear and DequantizeLinear where :func:`place_quantizers` says.

    ``model`` is valid, float32 and complete (no external data); it is not changed. ``frames``: calibration data, each a
    mapping from input name to an array with one frame; the ranges of activations are the least and greatest values met.
    ``states``: outputs that are inputs of later frames, with one range for both. ``labels``: the classes of the frames,
    for a target of accuracy.
    Raises :class:`ModelRefused` where onnx or onnxruntime cannot do it, :class:`ToolError` without onnxruntime.
    """
    with tempfile.TemporaryDirectory(prefix="hwflow-quantize-") as folder:
        prepared = optimized(decomposed(_raised(plain(model), recipe), Path(folder)), Path(folder))
    name_nodes(prepared)
    plain_biases(prepared)
    part_weights(prepared)
    if recipe.equalize:
        with refusing(model, "run in onnxruntime"):
            prepared = equalized(prepared, frames)
    with refusing(model, "be what onnxruntime runs"):
        bounded = onnx.ModelProto()
        bounded.CopyFrom(prepared)
        masked = bound_masks(bounded, frames)
        bounded = shape_inference.infer_shapes(bounded, data_prop=True)
        placement = place_quantizers(bounded, [state.source for state in states])
        met = calibrate(bounded, frames, placement.quantized, placement.round_constants)
        _refuse_infinite(_without(met, masked))
        clipping = recipe.method != MINMAX
        counted = histograms(bounded, frames, _without(met, masked)) if clipping else {}
        ranges = Ranges(recipe.method, met | masked, counted, _shared_ranges(placement, states))
        tied = {state.target: state.source for state in states}
        together = added_together(bounded.graph, placement.sources, tied, ranges.whole)
        work = _Work(bounded, placement, ranges, together)
        sources = {state.source for state in states}
        outputs = [o.name for o in model.graph.output if o.name not in sources]
        target = FidelityTarget(
            prepared, frames, outputs, recipe.target_snr or 0.0, states, recipe.target_accuracy, labels
        )
        activations, weights = work.kinds(recipe, target)
        result = work.quantized(activations, weights)
        if recipe.bias_correction:
            work = replace(work, model=corrected_biases(bounded, result, weights, frames))
            result = work.quantized(activations, weights)
        with refusing(model, "run in onnxruntime"):
            layers = layer_errors(bounded, result, activations, weights, target, work.quantized)
    wide = tuple(name for name, kind in activations.items() if kind.bits == MOST_BITS)
    return Quantized(finished(result, model), placement.quantized, wide, layers)


def _refuse_infinite(met: Mapping[str, Range]) -> None:
    """Refuse values that no quantizer has room for: a state that grows with each step, for example."""
    infinite = [name for name, ends in met.items() if not all(map(isfinite, ends))]
    if infinite:
        raise ModelRefused([
            Finding(
                "finite-values", f"value {show(name)}",
                f"must be finite for all calibration data, not from {met[name][0]:g} to {met[name][1]:g}",
                "leave such frames out, or bound it in the model (a clip, another activation)",
            )
            for name in infinite
        ])


def _without(ranges: Mapping[str, Range], masked: Mapping[str, Range]) -> dict[str, Range]:
    """Return the ranges that may be clipped: those of masked values say where masks lie."""
    return {name: range_ for name, range_ in ranges.items() if name not in masked}


def _weights(graph: onnx.GraphProto) -> list[str]:
    """Return the weights of linear operators, in their order."""
    constants = {i.name: i for i in graph.initializer}
    found = ((node, weights_of(node, constants)) for node in graph.node)
    return list(dict.fromkeys(node.input[weights.index] for node, weights in found if weights is not None))


def _shared_ranges(placement: Placement, states: Sequence[State]) -> list[tuple[str, str]]:
    """Return both ends of each state, which have the same range, so that its integers stay as they are."""
    return [(state.target, placement.sources.get(state.source, state.source)) for state in states]


def _raised(model: onnx.ModelProto, recipe: Recipe) -> onnx.ModelProto:
    """Return the model at the newest operator set used here, or the least needed if onnx cannot convert it so far."""
    try:
        return raised(model, NEWEST_OPSET)
    except ModelRefused:
        return raised(model, recipe.opset)


@dataclass(frozen=True)
class _Work:
    """A prepared model, with ranges of the values that get quantizers; ``together``: groups of these that are added to
    each other."""

    model: onnx.ModelProto
    placement: Placement
    ranges: Ranges
    together: Sequence[Sequence[str]] = ()

    def quantized(self, activations: Mapping[str, IntegerKind], weights: Mapping[str, IntegerKind]) -> onnx.ModelProto:
        """Return the QDQ model in which these are quantized, as integers of these kinds."""
        sources = self.placement.sources if weights else {}
        scheme = Scheme(self._grids(activations), weights, sources, self.placement.round_constants)
        return with_quantizers(self.model, scheme)

    def kinds(self, recipe: Recipe, target: FidelityTarget) -> tuple[dict[str, IntegerKind], dict[str, IntegerKind]]:
        """Return the kinds of activations and of weights: those of the recipe, or chosen for its target."""
        every, names = self.placement.quantized, _weights(self.model.graph)
        activations = dict.fromkeys(every, recipe.kind)
        weights = dict.fromkeys(names, IntegerKind(recipe.weight_bits, signed=True))
        if recipe.mixed_weights or recipe.target_accuracy is not None:
            return self._mixed(recipe, target, activations, weights)
        if recipe.mixed_activations:

            def quantized(wide: Collection[str], only: Collection[str] | None = None) -> onnx.ModelProto:
                names = every if only is None else only
                kinds = {name: recipe.wide if name in wide else recipe.kind for name in names}
                return self.quantized(kinds, weights if only is None else {})

            activations.update(dict.fromkeys(choose_wide(every, quantized, target), recipe.wide))
        return activations, weights

    def _mixed(
        self, recipe: Recipe, target: FidelityTarget,
        activations: dict[str, IntegerKind], weights: dict[str, IntegerKind],
    ) -> tuple[dict[str, IntegerKind], dict[str, IntegerKind]]:
        given = ({} if recipe.mixed_activations else activations) | ({} if recipe.mixed_weights else weights)

        def made(kinds: Mapping[str, IntegerKind]) -> onnx.ModelProto:
            parts = [{name: kinds[name] for name in part if name in kinds} for part in (activations, weights)]
            return self.quantized(*parts)

        chosen = choose_kinds(
            units_of(activations, weights, given), given,
            costs_of(self.model.graph, self.placement.sources, recipe.product_cost),
            made, target.keeps, lambda kinds: target.noise_alone(made(kinds)),
        )
        return {name: chosen[name] for name in activations}, {name: chosen[name] for name in weights}

    def _grids(self, kinds: Mapping[str, IntegerKind]) -> dict[str, Grid]:
        steps = {name: kind.steps for name, kind in kinds.items()}
        ranges = {name: self.ranges.of(name, steps[name]) for name in kinds if name in self.ranges.whole}
        wide = [name for name, kind in kinds.items() if kind.bits >= FIXED_POINT_BITS]
        groups = [[name for name in group if name in ranges] for group in self.together]
        scales = scales_of_sums(groups, ranges, wide, steps)
        return {
            name: grid_with_scale(ranges[name][0], scales[name], kind) if name in scales
            else grid_of(ranges.get(name, (0.0, 0.0)), kind)
            for name, kind in kinds.items()
        }
