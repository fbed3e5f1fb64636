"""The QONNX dialect: quantizers whose results are reals (Quant, BipolarQuant, Trunc, MultiThreshold).

Source: the operator definitions of QONNX (A. Pappalardo et al., QONNX: Representing Arbitrary-Precision Quantized
Neural Networks, arXiv:2206.07527, and the operator pages of that project).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import (
    Lowering,
    behind,
    constant,
    exact_constant,
    finite,
    made,
    reals,
    refuse,
)
from hwflow.frontend.views import (
    Constant,
    HostInput,
    Integers,
    QuantizedConstant,
    Reals,
    View,
    as_array,
    fractions,
)
from hwflow.ir.graph import Fractions, Meaning
from hwflow.numerics.functions.function import enclose
from hwflow.numerics.functions.nearest_float import nearest_float
from hwflow.numerics.functions.piecewise import Affine, Round, Steps
from hwflow.numerics.interval import Interval as Ends
from hwflow.numerics.interval import NoSteps
from hwflow.numerics.requantizers.stages import QuantizerStage, UnclampedStage
from hwflow.numerics.rounding import Quantizer, Rounding
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.lattice import ENCLOSURE_BITS
from hwflow.operators.quantizers.quantizers import (
    Quantization,
    constant_levels,
    graph_input,
    requantize,
    say_scale,
    without_frame_axis,
)
from hwflow.types import Interval, IntType

MAX_BITS = 16

MAX_CONSTANT_BITS = 32
"""The greatest width of constants (biases are quantized to the width of accumulators) and of inputs of Trunc."""


def quant(state: Lowering, node: OnnxNode) -> View:
    """Lower Quant or IntQuant: scale * (clamp(round(x / scale + zero point)) - zero point)."""
    shape = state.model.values[node.outputs[0]].shape
    scale, zero_point = (_parameter(state, node, index, name, shape) for index, name in ((1, "scale"), (2, "zeropt")))
    _require_positive(node, scale)
    fixed = isinstance(state.view(node.inputs[0]), Constant | QuantizedConstant)
    bits = _bits(state, node, 3, "bitwidth", MAX_CONSTANT_BITS if fixed else MAX_BITS)
    if bits == 1 and node.integer("signed", 1):
        return _signs(state, node, scale, zero_point)
    low, high = _range(node, bits)
    q = Quantization(scale, zero_point, low, high, _rounding(node, "ROUND"), zero_point_inside=True)
    return _quantized(state, node, q, scale, zero_point)


def _signs(state: Lowering, node: OnnxNode, scale: Fractions, zero_point: Fractions) -> View:
    """Quantize to one signed bit: the level is 1 where x / scale + zero point >= 0, else -1 (as in QONNX's own
    evaluator; two's complement would have -1 and 0). Represented by 1 and 0."""
    q = Quantization(scale, as_array(zero_point + 1), 0, 1, Rounding.FLOOR, zero_point_inside=True)
    return _quantized(state, node, q, as_array(2 * scale), as_array((zero_point + 1) / 2))


def bipolar_quant(state: Lowering, node: OnnxNode) -> View:
    """Lower BipolarQuant: scale where x >= 0, else -scale; represented by 1 and 0."""
    shape = state.model.values[node.outputs[0]].shape
    scale = _parameter(state, node, 1, "scale", shape)
    _require_positive(node, scale)
    # 1 from 0 on: floor(x) + 1, clamped
    q = Quantization(fractions(1), fractions(1), 0, 1, Rounding.FLOOR)
    return _quantized(state, node, q, as_array(2 * scale), fractions(0.5))


def _quantized(
    state: Lowering, node: OnnxNode, q: Quantization, scale: Fractions, zero_point: Fractions
) -> View:
    """Quantize by ``q`` to levels that represent scale * (level - zero_point)."""
    view = state.view(node.inputs[0])
    if isinstance(view, Constant | QuantizedConstant):
        return QuantizedConstant(constant_levels(state, node, q), scale, zero_point)
    meaning = Meaning(without_frame_axis(scale), without_frame_axis(zero_point))
    if isinstance(view, HostInput):
        return _from_host(state, node, view, Interval(q.low, q.high), meaning)
    if isinstance(view, Integers):
        view = made(view.value, view.shape, fractions(1), fractions(0), node)
    view = view if isinstance(view, Reals) else reals(state, node, 0)
    value = requantize(state, node, view, q.of_frame(), meaning)
    result = made(value, view.shape, meaning.scale, meaning.zero_point, node)
    return replace(result, low=q.low, high=q.high)


def _from_host(state: Lowering, node: OnnxNode, view: HostInput, levels: Interval, meaning: Meaning) -> Reals:
    """Add a hardware input for ``view``, which the host quantizes to integers in ``levels`` of ``meaning``."""
    integers = graph_input(state, view.name, node.outputs[0], IntType.holding(levels), meaning, levels)
    if not say_scale(state.inputs[-1], meaning.scale, meaning.zero_point):
        raise refuse(
            node, "input-scale", "the scale of an input must vary along one axis at most, not along several",
            "quantize the input per tensor",
        )
    real = made(integers.value, integers.shape, meaning.scale, meaning.zero_point, node)
    return replace(real, low=levels.lo, high=levels.hi)


def trunc(state: Lowering, node: OnnxNode) -> View:
    """Lower Trunc, which drops low bits of a quantized tensor.

    With five inputs (x, scale, zeropt, in and out bits; version 1) the result keeps the scale; with six (x, scale,
    zeropt, in bits, output scale, out bits; version 2) it has its own, and is clamped. Between these versions there was
    an output zeropt before the out bits, which is not used.
    """
    shape = state.model.values[node.outputs[0]].shape
    scale, zero_point = (_parameter(state, node, index, name, shape) for index, name in ((1, "scale"), (2, "zeropt")))
    _require_positive(node, scale)
    if scale.size != 1 or zero_point.size != 1:
        raise refuse(node, "trunc-scale", "scale and zeropt must be one for the tensor, not several", "use Quant")
    view = reals(state, node, 0)
    x_scale, x_zero = scale.reshape(-1)[0], zero_point.reshape(-1)[0]
    levels = behind(view, node, as_array(Affine(1 / x_scale, x_zero)))
    levels = replace(levels, functions=(*levels.functions, as_array(Round(Rounding.ROUND))))
    rounding = _rounding(node, "FLOOR")
    in_bits = _bits(state, node, 3, "in_bitwidth", MAX_CONSTANT_BITS)
    if len(node.inputs) > 5:
        out = _parameter(state, node, 4, "output scale", shape)
        if out.size != 1:
            raise refuse(node, "trunc-scale", "the output scale must be one for the tensor, not several", "use Quant")
        out_scale = out.reshape(-1)[0]
        ratio = _power_of_two(node, out_scale / x_scale)
        low, high = _range(node, _bits(state, node, len(node.inputs) - 1, "out_bitwidth"))
        out_zero, stage = x_zero / ratio, QuantizerStage
    else:
        dropped = in_bits - _bits(state, node, 4, "out_bitwidth")
        ratio, out_scale, out_zero = Fraction(2) ** dropped, x_scale, x_zero
        stage = QuantizerStage
        ends = _reached(levels, Quantizer(ratio, 0, -_BEYOND, _BEYOND, rounding))
        if ends is None:  # sums: levels of the input's width are meant, signed or unsigned
            stage = UnclampedStage
            reach = (1 << max(0, in_bits - dropped)) + 1
            ends = -reach, reach
        low, high = ends
    q = Quantization(as_array(ratio), fractions(0), low, high, rounding)
    meaning = Meaning(as_array(out_scale), as_array(out_zero))
    value = requantize(state, node, levels, q, meaning, stage=stage)
    result = made(value, view.shape, meaning.scale, meaning.zero_point, node)
    return replace(result, low=low, high=high)


_BEYOND = 1 << 62
"""An integer above all levels."""


def _reached(levels: Reals, quantizer: Quantizer) -> tuple[int, int] | None:
    """Return the range of the quantized ``levels``; None where their range is unknown (sums), or a function is
    undefined in it."""
    if levels.low is None or levels.high is None:
        return None
    arrays = np.broadcast_arrays(levels.scale, levels.zero_point, *levels.functions)
    columns = set(zip(*(array.reshape(-1) for array in arrays), strict=True))
    ends = Ends(Fraction(levels.low), Fraction(levels.high))
    try:
        found = [
            quantizer.enclose(enclose(functions, ends.affine(scale, -scale * zero_point), ENCLOSURE_BITS))
            for scale, zero_point, *functions in columns
        ]
    except NoSteps:  # the requantizer refuses it, if it can occur
        return None
    return min(low for low, _ in found), max(high for _, high in found)


def _power_of_two(node: OnnxNode, ratio: Fraction) -> Fraction:
    """Return the power of two nearest to ``ratio`` (in logarithm), the exact ratio that the scales should have."""
    exponent = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    result = Fraction(2) ** exponent
    if result != ratio:  # both powers of two, or no power of two
        raise refuse(
            node, "trunc-scale",
            f"the output scale must be a power of two times the scale, not {nearest_float(ratio):.6g} times",
            "use Quant, which takes any scales",
        )
    return result


LAYOUTS = ("NCHW", "NCW", "NC", "NHWC", "NWC")


def multi_threshold(state: Lowering, node: OnnxNode) -> View:
    """Lower MultiThreshold: out_scale * (number of thresholds at most x) + out_bias."""
    view = state.view(node.inputs[0])
    view = view if isinstance(view, HostInput) else reals(state, node, 0)
    thresholds = exact_constant(state, node, 1, "thresholds")
    rank = len(view.shape) + 1
    last = rank not in (2, 4) or node.attributes.get("data_layout", "NCHW") in ("NHWC", "NWC")
    axis = len(view.shape) - 1 if last else 0
    if thresholds.ndim != 2 or thresholds.shape[0] not in (1, view.shape[axis]):
        raise refuse(
            node, "threshold-shape",
            f"thresholds must have shape [1 or {view.shape[axis]}, number], not {list(thresholds.shape)}",
            "give one row of thresholds, or one per channel",
        )
    count = thresholds.shape[1]
    value_scale, bias = (finite(node, name, default) for name, default in (("out_scale", 1.0), ("out_bias", 0.0)))
    if value_scale == 0:
        raise refuse(
            node, "scale-range", "out_scale must not be 0", "leave the node out: its result is out_bias everywhere"
        )
    meaning = Meaning(as_array(value_scale), as_array(-bias / value_scale))
    if isinstance(view, HostInput):
        return _from_host(state, node, view, Interval(0, count), meaning)
    rows = np.empty(len(thresholds), dtype=object)
    for index, row in enumerate(thresholds):
        rows[index] = Steps(tuple(sorted(row)))
    shape = [1] * len(view.shape)
    if len(rows) > 1:
        shape[axis] = len(rows)
    counted = behind(view, node, rows.reshape(shape) if len(rows) > 1 else as_array(rows[0]))
    q = Quantization(fractions(1), fractions(0), 0, count, Rounding.FLOOR)
    value = requantize(state, node, counted, q, meaning)
    result = made(value, view.shape, meaning.scale, meaning.zero_point, node)
    return replace(result, low=0, high=count)


def _parameter(state: Lowering, node: OnnxNode, index: int, name: str, shape: tuple[int, ...]) -> Fractions:
    """Return a parameter that broadcasts over the tensor, with the tensor's rank or one element."""
    array = constant(state, node, index, name).array
    if not np.isfinite(np.asarray(array, dtype=np.float64)).all():
        raise refuse(node, "finite-constant", f"{name} must be finite", "give it finite numbers")
    values = fractions(array)
    if values.size == 1:
        return values.reshape(())
    return values.reshape((1,) * (len(shape) - values.ndim) + values.shape)


def _bits(state: Lowering, node: OnnxNode, index: int, name: str, most: int = MAX_BITS) -> int:
    array = constant(state, node, index, name).array.reshape(-1)
    if array.size != 1 or not 1 <= array[0] <= most or array[0] != int(array[0]):
        raise refuse(
            node, "bit-width", f"{name} must be one integer from 1 to {most}, not {array.tolist()[:4]}",
            "quantize to fewer bits",
        )
    return int(array[0])


def _range(node: OnnxNode, bits: int) -> tuple[int, int]:
    """Return the lowest and highest level of that many bits (attributes signed and narrow)."""
    narrow = 1 if node.integer("narrow") else 0
    if node.integer("signed", 1):
        return -(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1 - narrow


def _rounding(node: OnnxNode, default: str) -> Rounding:
    name = str(node.attributes.get("rounding_mode", default)).upper()
    name = "ROUND" if name == "HALF_EVEN" else name
    try:
        return Rounding(name)
    except ValueError:
        known = ", ".join(mode.value for mode in Rounding)
        raise refuse(
            node, "rounding-mode", f"rounding_mode must be one of {known}, not {show(name)}", "use one of these"
        ) from None


def _require_positive(node: OnnxNode, scale: Fractions) -> None:
    wrong = [s for s in scale.reshape(-1) if s <= 0]
    if wrong:
        raise refuse(
            node, "scale-range", f"scale must be greater than 0, not {float(wrong[0]):.6g}", "calibrate the model again"
        )
