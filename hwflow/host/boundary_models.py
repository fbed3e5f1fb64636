"""The host's side: the float nodes before and after the hardware, and the conversion of integers at the boundary."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hwflow.display import show
from hwflow.errors import ModelRefused, UsageError
from hwflow.ir.graph import IntArray, Port
from hwflow.numerics.float_keys import keys_of
from hwflow.numerics.functions.nearest_float import nearest_floats
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.subgraph import SubModel, cut
from hwflow.onnxspec.reading.numpy_tensors import native

if TYPE_CHECKING:
    from hwflow.loaded_model import Model
    from hwflow.onnxspec.reference.evaluation import RegionEvaluator

Arrays = Mapping[str, npt.NDArray[Any]]
Results = dict[str, npt.NDArray[Any]]


def port_inputs(model: Model, arrays: Arrays) -> dict[str, IntArray]:
    """Compute the integers of each hardware input by port name, [frames, *shape], from graph inputs ``arrays``: the
    reference evaluator runs the host's nodes before it.

    Raises :class:`ModelRefused` where the evaluator fails, or gives a real that no integer of the port represents, and
    :class:`UsageError` where a graph input of declared integers holds one.
    """
    ports = model.quantized.inputs
    origins = [p.value.origin for p in ports if p.value.origin not in arrays]
    made = _evaluator(model).run(origins, _feeds(model, arrays)) if origins else {}
    result: dict[str, IntArray] = {}
    for port in ports:
        origin = port.value.origin
        array = np.asarray(made[origin] if origin in made else arrays[origin])
        if port.floats:
            result[port.name] = keys_of(native(array, port.floats))
        elif port.value.meaning is None:
            result[port.name] = array.astype(np.int64)
        elif origin in arrays:
            result[port.name] = declared_integers(port, array, model.resolved.values[origin].dtype)
        else:
            result[port.name] = to_integers(port, array)
    return result


def takes_any_float(model: Model, name: str) -> bool:
    """Tell whether a graph input may hold NaN and infinities: hardware compares its floats by keys, or a node tells NaN
    from numbers."""
    reached = {name}
    for node in model.resolved.nodes:
        if not reached.isdisjoint(node.inputs):
            if facts_of(node.domain, node.op_type).tells_nan:
                return True
            reached.update(node.outputs)
    try:
        ports = model.quantized.inputs
    except ModelRefused:  # a float model, which is to be quantized
        return False
    return any(port.floats and port.value.origin in reached for port in ports)


def model_outputs(model: Model, port_values: Mapping[str, IntArray], arrays: Arrays | None = None) -> Results:
    """Compute the model's own outputs by ONNX name, frames first, from the hardware outputs ``port_values`` (integers
    by port name, [frames, *shape]): the reference evaluator runs the host's nodes after them.

    A constant is repeated for each frame. ``arrays``: the graph inputs, needed where an output is one, or a host's node
    reads one past the hardware. Raises :class:`ModelRefused` where the evaluator fails or lacks an input.
    """
    there = _feeds(model, arrays or {})
    for port in model.quantized.outputs:
        there[port.name] = boundary_value(model, port, port_values[port.name])
    frames = len(next(iter(port_values.values())))
    for name in model.resolved.outputs:
        if name in model.resolved.fixed:
            there[name] = constant_output(model, name, frames)
    computed = [name for name in model.resolved.outputs if name not in there]
    made = _evaluator(model).run(computed, there) if computed else {}
    return {name: np.asarray(made[name] if name in made else there[name]) for name in model.resolved.outputs}


def _evaluator(model: Model) -> RegionEvaluator:
    from hwflow.onnxspec.reference.evaluation import RegionEvaluator  # slow to import, and few models need it

    return RegionEvaluator(model.flat)


def constant_output(model: Model, name: str, frames: int) -> npt.NDArray[Any]:
    """Repeat an output that is a constant for so many frames, [frames, *its frame shape]."""
    if name in model.resolved.constants:
        array = native(model.resolved.constants[name], model.resolved.values[name].dtype)
    else:
        array = np.asarray(_evaluator(model).run([name], {})[name])
    return np.broadcast_to(array, (frames, *model.resolved.frame_shape(name))).copy()


def prefix_model(model: Model) -> SubModel | None:
    """Return what the host runs before the hardware, from graph inputs to the tensors at hardware inputs, or None."""
    origins = [p.value.origin for p in model.quantized.inputs if p.value.origin not in model.resolved.inputs]
    if not origins:
        return None
    name = f"{model.resolved.name}_prefix"
    return cut(model.flat, model.resolved, frozenset(model.resolved.inputs), list(dict.fromkeys(origins)), name)


def suffix_model(model: Model) -> SubModel | None:
    """Return what the host runs after the hardware, from the tensors at hardware outputs (and graph inputs read past
    it) to the graph outputs that are neither, or None."""
    given = frozenset((*(p.name for p in model.quantized.outputs), *model.resolved.inputs))
    outputs = [name for name in model.resolved.outputs if name not in given]
    if not outputs:
        return None
    return cut(model.flat, model.resolved, given, outputs, f"{model.resolved.name}_suffix")


def to_integers(port: Port, reals: npt.NDArray[Any]) -> IntArray:
    """Quantize ``reals``, [frames, *shape], of an input port with a scale: real / scale + zero point.

    The reals come from a float evaluator, so that they are levels up to its rounding; one farther than that (or a
    quarter of a level) from every level, or beyond the port's type, raises :class:`ModelRefused`.
    """
    meaning = port.value.meaning
    assert meaning is not None
    rank = reals.ndim - 1
    scale, zero_point = (
        nearest_floats(v).reshape((1,) * (rank - v.ndim) + v.shape) for v in (meaning.scale, meaning.zero_point)
    )
    quotient = reals.astype(np.float64) / scale + zero_point
    levels = np.rint(quotient)
    # A few roundings of the real, of the quotient's size, in the reals' own type.
    bits = {"float64": 52, "float32": 23, "float16": 10}.get(reals.dtype.name, 7)
    allowed = np.minimum(0.25, 2.0 ** (3 - bits) * (np.abs(quotient) + np.abs(zero_point)))
    element = port.value.typed.element
    with np.errstate(invalid="ignore"):  # infinite reals are no levels
        wrong = ~(np.abs(quotient - levels) <= allowed) | (levels < element.min) | (levels > element.max)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ModelRefused.of(
            "boundary-level", f"value {show(port.value.origin)}",
            f"must hold levels of its quantizer, integers {element.min} to {element.max}, but frame {place[0]}, "
            f"index {list(place[1:])} is {reals[place]}, {quotient[place]:.9g} in levels",
            "report this model as a defect of hwflow",
        )
    return levels.astype(np.int64)


def declared_integers(port: Port, reals: npt.NDArray[Any], dtype: str) -> IntArray:
    """Return the integers of an input port whose ``reals``, [frames, *shape], of element type ``dtype``, are a graph
    input of declared integers.

    Each real must be the nearest of that type to an integer's value; where that is inexact (a scale of 1/255), it may
    be the next one, for a quotient may have been rounded twice. Raises :class:`UsageError` otherwise.
    """
    interval = port.value.typed.interval
    (scale,), (zero_point,) = port.scale, port.zero_point
    given = native(reals, dtype).astype(np.float64)
    with np.errstate(all="ignore"):  # infinite reals are none
        levels = np.rint(given / float(scale) + float(zero_point))
        levels = np.clip(np.nan_to_num(levels), interval.lo, interval.hi).astype(np.int64)
        meant = native(declared_reals(port, levels), dtype).astype(np.float64)
        dyadic = scale.denominator & (scale.denominator - 1) == 0
        near = np.abs(meant - given) <= (0 if dyadic else _EPSILON.get(dtype, 2.0**-7)) * np.abs(meant)
    if not near.all():
        frame, *place = (int(i) for i in np.argwhere(~near)[0])
        low, high = (scale * (level - zero_point) for level in (interval.lo, interval.hi))
        message = (
            f"must hold {low} to {high} in steps of {scale}, as declared, not {reals[(frame, *place)]} in frame "
            f"{frame}, index {place} ({int((~near).sum())} such elements)"
        )
        where = f"input {show(port.value.origin)}"
        remedy = "round the frames to that, or declare another --input-type"
        raise UsageError.of("declared-integers", where, message, remedy)
    result: IntArray = levels
    return result


_EPSILON = {"float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}


def declared_reals(port: Port, levels: IntArray) -> npt.NDArray[np.float64]:
    """Return the reals of an input port's integers, [frames, *shape], correctly rounded."""
    return _reals(port, levels)


def boundary_value(model: Model, port: Port, integers: IntArray) -> npt.NDArray[Any]:
    """Return the ONNX tensor of an output port's ``integers``, [frames, *shape], in its own element type:
    scale * (integer - zero point).

    Reals are rounded from the exact value to float64, and from there to their type, where overflow gives infinity;
    integers are exact.
    """
    info = model.resolved.values[port.name]
    array = integers.reshape(len(integers), *info.shape[1:])
    with np.errstate(over="ignore"):
        return native(array if is_plain(port) else _reals(port, array), info.dtype)


def is_plain(port: Port) -> bool:
    """Tell whether the elements of the ONNX tensor at an output port are the hardware's integers."""
    return set(port.scale) == {1} and set(port.zero_point) == {0}


def _reals(port: Port, integers: IntArray) -> npt.NDArray[np.float64]:
    """Return scale * (integer - zero point), correctly rounded."""
    result = np.empty(integers.shape, dtype=np.float64)
    count = max(len(port.scale), len(port.zero_point))
    for index in range(count):
        scale, zero_point = (v[index % len(v)] for v in (port.scale, port.zero_point))
        place: Any = ... if count == 1 else (slice(None), *(slice(None) for _ in range(port.axis)), index)
        distinct, which = np.unique(integers[place], return_inverse=True)
        factor, offset = scale.numerator * zero_point.denominator, scale.numerator * zero_point.numerator
        divisor = scale.denominator * zero_point.denominator
        table = nearest_floats([Fraction(factor * int(q) - offset, divisor) for q in distinct])
        result[place] = table[which.reshape(integers[place].shape)]
    return result


def _feeds(model: Model, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Convert graph inputs to the model's types."""
    return {name: native(np.asarray(array), model.resolved.values[name].dtype) for name, array in arrays.items()}
