"""onnxruntime's static quantizer at work: a float model becomes a QDQ model."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import shape_inference

from hwflow.errors import ModelRefused
from hwflow.quantization.calibration import Range, calibrate
from hwflow.quantization.masks import bound_masks
from hwflow.quantization.node_quantizers import node_quantizers, part_weights
from hwflow.quantization.placement import Placement, place_quantizers
from hwflow.quantization.precision import Target, choose_wide
from hwflow.quantization.preparation import (
    NEWEST_OPSET,
    decomposed,
    finished,
    name_nodes,
    optimized,
    plain_biases,
    raised,
)
from hwflow.quantization.sessions import Arrays, State, imported, plain, refusing, silent
from hwflow.quantization.sum_scales import added_together, scales_of_sums

_PER_CHANNEL_OPSET = 13  # the first QuantizeLinear and DequantizeLinear with an axis

_LEAST_EXPONENT = -126  # of normal float32 numbers

_KINDS = {"uint8": "QUInt8", "int8": "QInt8", "uint16": "QUInt16", "int16": "QInt16"}


@dataclass(frozen=True)
class Recipe:
    """How values are quantized: ``weight_bits`` 16, 8 or 4 (signed, symmetric, one scale per channel), ``activations``
    "uint8", "int8", "uint16" or "int16" (any zero point, one scale per tensor); with ``target_snr`` (dB) as few of them
    as possible have twice the bits."""

    weight_bits: int = 8
    activations: str = "uint8"
    target_snr: float | None = None

    @property
    def wide(self) -> str:
        """The element type of activations with twice the bits."""
        return self.activations.replace("8", "16")

    @property
    def opset(self) -> int:
        """The least version of the default operator set that can say it."""
        narrow = self.weight_bits == 8 and self.activations.endswith("8") and self.target_snr is None
        return _PER_CHANNEL_OPSET if narrow else NEWEST_OPSET


@dataclass(frozen=True)
class Quantized:
    """``activations``: the values with a quantizer, in the order of the graph; those in ``wide`` have 16 bits."""

    model: onnx.ModelProto
    activations: tuple[str, ...]
    wide: tuple[str, ...]


def static_qdq(
    model: onnx.ModelProto, frames: Sequence[Arrays], recipe: Recipe, states: Sequence[State] = ()
) -> Quantized:
    """Quantize ``model`` with QuantizeLinear and DequantizeLinear where :func:`place_quantizers` says.

    ``model`` is valid, float32 and complete (no external data); it is not changed. ``frames``: calibration data, each a
    mapping from input name to an array with one frame; the ranges of activations are the least and greatest values met.
    ``states``: outputs that are inputs of later frames, with one range for both.
    Raises :class:`ModelRefused` where onnx or onnxruntime cannot do it, :class:`ToolError` without onnxruntime.
    """
    with tempfile.TemporaryDirectory(prefix="hwflow-quantize-") as folder:
        prepared = optimized(decomposed(_raised(plain(model), recipe), Path(folder)), Path(folder))
    name_nodes(prepared)
    plain_biases(prepared)
    part_weights(prepared)
    with refusing(model, "be what onnxruntime's static quantizer takes"):
        bounded = onnx.ModelProto()
        bounded.CopyFrom(prepared)
        masked = bound_masks(bounded, frames)
        bounded = shape_inference.infer_shapes(bounded, data_prop=True)
        placement = place_quantizers(bounded, [state.source for state in states])
        ranges = calibrate(bounded, frames, placement.quantized) | masked
        _share_ranges(ranges, placement, states)
        tied = {state.target: state.source for state in states}
        together = added_together(bounded.graph, placement.sources, tied, ranges)
        work = _Work(bounded, recipe, placement, ranges, together)
        wide = tuple(placement.quantized) if recipe.activations.endswith("16") else ()
        if recipe.target_snr is not None:
            sources = {state.source for state in states}
            outputs = [o.name for o in model.graph.output if o.name not in sources]
            target = Target(prepared, frames, outputs, recipe.target_snr, states)
            wide = choose_wide(placement.quantized, work.quantized, target)
        result = work.quantized(wide)
    return Quantized(finished(result, model), placement.quantized, wide)


def _share_ranges(ranges: dict[str, Range], placement: Placement, states: Sequence[State]) -> None:
    """Give both ends of a state the same range, so that its integers stay as they are."""
    for state in states:
        source = placement.sources.get(state.source, state.source)
        ends = [name for name in (state.target, source) if name in ranges]
        together = [ranges[name] for name in ends]
        for name in ends:
            ranges[name] = min(low for low, _ in together), max(high for _, high in together)


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
    recipe: Recipe
    placement: Placement
    ranges: Mapping[str, Range] = field(default_factory=dict)
    together: Sequence[Sequence[str]] = ()

    def quantized(self, wide: Collection[str], only: Collection[str] | None = None) -> onnx.ModelProto:
        """Return the QDQ model whose activations ``wide`` have 16 bits; with the values ``only`` quantized and no
        weights, if they are given."""
        quantization = imported("onnxruntime.quantization")
        kinds = {name: getattr(quantization.QuantType, kind) for name, kind in _KINDS.items()}
        recipe, placement = self.recipe, self.placement
        if only is not None:
            placement = Placement(tuple(only), {})
        overrides: dict[str, list[dict[str, Any]]] = {
            name: [{"quant_type": kinds[recipe.wide if name in wide else recipe.activations]}]
            for name in placement.quantized
        }
        scales = scales_of_sums(self.together, self.ranges, wide, _levels(recipe.activations))
        for name, (low, high) in self.ranges.items():
            if name not in overrides:
                continue
            if name in wide:
                overrides[name][0].update(_fixed_point(low, high, recipe.wide))
            elif name in scales:
                overrides[name][0].update(_with_scale(low, scales[name], recipe.activations))
            else:
                overrides[name][0].update(rmin=np.float32(low), rmax=np.float32(high))
        operators = sorted({node.op_type for node in self.model.graph.node})
        copy = onnx.ModelProto()
        copy.CopyFrom(self.model)
        with silent(), node_quantizers(operators, placement, weights=only is None):
            quantizer = quantization.QDQQuantizer(
                copy, True, False,
                getattr(quantization.QuantType, f"QInt{recipe.weight_bits}"),
                kinds[recipe.activations],
                {
                    name: quantization.TensorData(lowest=np.float32(low), highest=np.float32(high))
                    for name, (low, high) in self.ranges.items()
                },
                [], [], operators,
                {"WeightSymmetric": True, "ActivationSymmetric": False, "TensorQuantOverrides": overrides},
            )
            quantizer.quantize_model()
            quantizer.model.topological_sort()
            result: onnx.ModelProto = quantizer.model.model
        return result


def _fixed_point(low: float, high: float, dtype: str) -> dict[str, Any]:
    """Return the scale and the zero point of a 16-bit activation from its range: the scale is a power of two.

    A sum of two streams is then rounded by a shift. By other ratios, integers of 40 bits and 65,535 levels would be
    compared with thresholds, in more than 100 block RAMs. It costs one bit of 16 at most.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    exponent = math.ceil(math.log2((high - low) / _levels(dtype))) if high > low else 0
    return _with_scale(low, 2.0 ** max(exponent, _LEAST_EXPONENT), dtype)


def _with_scale(low: float, scale: float, dtype: str) -> dict[str, Any]:
    """Return the scale and the zero point that make the least integer of ``low``, or of 0 if that is less."""
    info, exact = np.iinfo(dtype), np.array(scale, np.float32)
    zero = min(max(round(int(info.min) - min(low, 0.0) / float(exact)), int(info.min)), int(info.max))
    return {"scale": exact, "zero_point": np.array(zero, dtype)}


def _levels(dtype: str) -> int:
    return int(np.iinfo(dtype).max) - int(np.iinfo(dtype).min)
