"""Shape inference for operators of the quantized dialects, which have no ONNX schema.

The operator's record names the rule. Results of other operators of a dialect domain need a declared shape (value_info).
Sources: the QONNX operator definitions; the contrib operator documentation of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hwflow.display import show
from hwflow.onnxspec.resolving.resolved_model import Attribute, ValueInfo

QONNX_DOMAINS = frozenset({"qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"})
MICROSOFT_DOMAIN = "com.microsoft"
DIALECT_DOMAINS = QONNX_DOMAINS | {MICROSOFT_DOMAIN}
ML_DOMAIN = "ai.onnx.ml"  # no dialect: its operators have schemas

# One (shape, element type name) for the first output; every operator in the table has one output.
Result = tuple[tuple[int, ...], str]
Inputs = Sequence[ValueInfo | None]
ShapeRule = Callable[[Inputs, Mapping[str, Attribute]], Result]
ResultRule = Callable[[Inputs, Mapping[str, Attribute]], Sequence[Result]]


class ShapeError(ValueError):
    """The inputs' shapes do not fit the operator; the text is a sentence "X must be Y, not Z"."""


def _input(inputs: Inputs, position: int) -> ValueInfo:
    info = inputs[position] if position < len(inputs) else None
    if info is None:
        raise ShapeError(f"input {position} must be present, but it is absent")
    return info


def _integer(attributes: Mapping[str, Attribute], name: str, default: int) -> int:
    value = attributes.get(name, default)
    if not isinstance(value, int):
        raise ShapeError(f"attribute {show(name)} must be an integer, not {value!r}")
    return value


def same(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer the type of the first input."""
    x = _input(inputs, 0)
    return x.shape, x.dtype


def multi_threshold(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer the type of the first input; thresholds have two axes."""
    x, thresholds = _input(inputs, 0), _input(inputs, 1)
    if len(thresholds.shape) != 2:
        raise ShapeError(f"the thresholds must have 2 dimensions (channels, steps), not {len(thresholds.shape)}")
    return x.shape, x.dtype


def quantize(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer integers of the type of the zero point."""
    zero_point = inputs[2] if len(inputs) > 2 else None
    return _input(inputs, 0).shape, "uint8" if zero_point is None else zero_point.dtype


def dequantize(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer reals of the type of the scale."""
    return _input(inputs, 0).shape, _input(inputs, 1).dtype


def binary(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer the broadcast shape of inputs 0 and 3."""
    a, b = _input(inputs, 0), _input(inputs, 3)
    try:
        return tuple(np.broadcast_shapes(a.shape, b.shape)), a.dtype
    except ValueError:
        raise ShapeError(f"the inputs must broadcast, not {list(a.shape)} with {list(b.shape)}") from None


def concat(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer a concatenation: a scale and a zero point, then three inputs per tensor."""
    parts = [_input(inputs, i) for i in range(2, len(inputs), 3)]
    if not parts:
        raise ShapeError("the operator must have at least one tensor to concatenate, not none")
    rank = len(parts[0].shape)
    axis = _integer(attributes, "axis", 0)
    if not -rank <= axis < rank:
        raise ShapeError(f"attribute 'axis' must be in [{-rank}, {rank - 1}], not {axis}")
    axis %= rank
    around = {p.shape[:axis] + p.shape[axis + 1 :] for p in parts}
    if len(around) != 1 or any(len(p.shape) != rank for p in parts):
        shapes = ", ".join(str(list(p.shape)) for p in parts)
        raise ShapeError(f"the inputs must agree on all axes but {axis}, not {shapes}")
    shape = list(parts[0].shape)
    shape[axis] = sum(p.shape[axis] for p in parts)
    return tuple(shape), _input(inputs, 1).dtype


def gemm(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer the product of two matrices, each transposed or not, and an addend."""
    a, b = _input(inputs, 0).shape, _input(inputs, 3).shape
    if len(a) != 2 or len(b) != 2:
        raise ShapeError(f"A and B must have 2 dimensions, not {list(a)} and {list(b)}")
    m, k = (a[1], a[0]) if _integer(attributes, "transA", 0) else a
    kb, n = (b[1], b[0]) if _integer(attributes, "transB", 0) else b
    if k != kb:
        raise ShapeError(f"the inner dimensions of A and B must be equal, not {k} and {kb}")
    bias = inputs[6] if len(inputs) > 6 else None
    if bias is not None and bias.shape not in ((), (1,), (n,), (1, 1), (1, n), (m, 1), (m, n)):
        raise ShapeError(f"C must broadcast over the result {[m, n]}, not have shape {list(bias.shape)}")
    zero_point = inputs[8] if len(inputs) > 8 else None
    return (m, n), "float32" if zero_point is None else zero_point.dtype


def fused_matmul(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer the shape of numpy's matmul of operands whose axes are brought into another order first."""
    shapes = []
    for place, name in enumerate("AB"):
        axes = list(_input(inputs, place).shape)
        if _integer(attributes, f"transBatch{name}", 0) and len(axes) > 2:
            axes = [*axes[1:-1], axes[0], axes[-1]]
        if _integer(attributes, f"trans{name}", 0) and len(axes) > 1:
            axes[-2:] = axes[:-3:-1]
        shapes.append(tuple(axes))
    return _product(*shapes), _input(inputs, 0).dtype


def matmul(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer the shape of numpy's matmul."""
    return _product(_input(inputs, 0).shape, _input(inputs, 1).shape), _input(inputs, 2).dtype


def _product(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if not a or not b:
        raise ShapeError(f"A and B must have at least 1 dimension, not {list(a)} and {list(b)}")
    left, right = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
    if left[-1] != right[-2]:
        raise ShapeError(f"the inner dimensions of A and B must be equal, not {left[-1]} and {right[-2]}")
    try:
        batch = np.broadcast_shapes(left[:-2], right[:-2])
    except ValueError:
        raise ShapeError(f"the inputs must broadcast, not {list(a)} with {list(b)}") from None
    return (*batch, *left[-2:-1][: len(a) - 1], *right[-1:][: len(b) - 1])


def global_pool(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer a global pool: all axes of the image become 1."""
    x = _input(inputs, 0)
    if len(x.shape) < 3:
        raise ShapeError(f"the input must have at least 3 dimensions, not {len(x.shape)}")
    ones = (1,) * (len(x.shape) - 2)
    if _integer(attributes, "channels_last", 0):
        return (x.shape[0], *ones, x.shape[-1]), x.dtype
    return (*x.shape[:2], *ones), x.dtype


def _integers(attributes: Mapping[str, Attribute], name: str, count: int, default: int) -> tuple[int, ...]:
    """Return a list attribute with one entry for each of ``count`` places, or absent."""
    values = attributes.get(name)
    if values is None or (isinstance(values, tuple) and not values):
        return (default,) * count
    if not isinstance(values, tuple) or not all(isinstance(v, int) for v in values) or len(values) != count:
        raise ShapeError(f"attribute {show(name)} must be a list of {count} integers, not {values!r}")
    return tuple(int(v) for v in values if isinstance(v, int))


def average_pool(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer an average pool, channels first or last."""
    return _pool(inputs, attributes, last=bool(_integer(attributes, "channels_last", 0)))


def nhwc_max_pool(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer a max pool, channels last."""
    return _pool(inputs, attributes, last=True)


def _pool(inputs: Inputs, attributes: Mapping[str, Attribute], *, last: bool) -> Result:
    x = _input(inputs, 0)
    rank = len(x.shape) - 2
    if rank < 1:
        raise ShapeError(f"the input must have at least 3 dimensions, not {len(x.shape)}")
    image = x.shape[1:-1] if last else x.shape[2:]
    if "kernel_shape" not in attributes:
        raise ShapeError("attribute 'kernel_shape' must be present, but it is absent")
    kernel, strides, dilations = (
        _integers(attributes, name, rank, 1) for name in ("kernel_shape", "strides", "dilations")
    )
    pads = _integers(attributes, "pads", 2 * rank, 0)
    auto, up = attributes.get("auto_pad", "NOTSET"), bool(_integer(attributes, "ceil_mode", 0))
    if any(v < 1 for v in (*kernel, *strides, *dilations)) or any(v < 0 for v in pads):
        raise ShapeError(
            f"kernel and strides must be at least 1 and pads at least 0, not {list(kernel)}, {list(strides)} and "
            f"{list(pads)}"
        )
    kernel = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    sizes = []
    for axis, (length, k, s) in enumerate(zip(image, kernel, strides, strict=True)):
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            sizes.append(-(-length // s))
            continue
        before, after = (0, 0) if auto == "VALID" else (pads[axis], pads[axis + rank])
        room = length + before + after - k
        if room < 0:
            raise ShapeError(f"the window must fit the padded image, not {k} in {length + before + after}")
        size = room // s + 1
        if up and room % s and size * s < length + before:  # a window starts in the image or the pads before it
            size += 1
        sizes.append(size)
    shape = (x.shape[0], *sizes, x.shape[-1]) if last else (*x.shape[:2], *sizes)
    return shape, x.dtype


def reduce_mean(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer axes of 1, or dropped ones."""
    x = _input(inputs, 0)
    rank = len(x.shape)
    axes = attributes.get("axes") or tuple(range(rank))
    if not isinstance(axes, tuple) or not all(isinstance(a, int) and -rank <= a < rank for a in axes):
        raise ShapeError(f"attribute 'axes' must be a list of integers in [{-rank}, {rank - 1}], not {axes!r}")
    gone = {int(a) % rank for a in axes if isinstance(a, int)}
    if _integer(attributes, "keepdims", 1):
        return tuple(1 if axis in gone else size for axis, size in enumerate(x.shape)), x.dtype
    return tuple(size for axis, size in enumerate(x.shape) if axis not in gone), x.dtype


def where(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    """Infer the broadcast shape of inputs 0, 1 and 4."""
    parts = [_input(inputs, index) for index in (0, 1, 4)]
    try:
        return tuple(np.broadcast_shapes(*(p.shape for p in parts))), parts[1].dtype
    except ValueError:
        shapes = ", ".join(str(list(p.shape)) for p in parts)
        raise ShapeError(f"condition and inputs must broadcast, not {shapes}") from None
