"""Random frames of a model's inputs, spread over the range that its hardware distinguishes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hwflow.errors import ModelRefused
from hwflow.host.boundary_models import Arrays, Results, declared_reals, port_inputs
from hwflow.host.categories import Categories, categories
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.float_keys import floats_of
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.onnxspec.graphs.operator_facts import facts_of

if TYPE_CHECKING:
    from hwflow.ir.graph import IntArray, Port
    from hwflow.loaded_model import Model

# Ends of the intervals tried for inputs that a host's nodes read: preprocessing of images, audio and measurements.
_ENDS = tuple(4.0**k for k in range(-3, 9))
_TRIED_ELEMENTS = 512


def random_inputs(model: Model, frames: int, rng: np.random.Generator) -> Results:
    """Draw random frames of every input: over the whole range of its type where hardware takes it as it is; slightly
    beyond the range of a quantizer right after it; near the thresholds of trees that read it; of categories where an
    operator takes no others; or, with other nodes between, over that of a few intervals which gives the hardware most
    different integers."""
    ranges: dict[str, tuple[float, float]] = {}
    wide: list[str] = []
    for name in model.resolved.inputs:
        interval = _whole(model, name) or _quantizer_range(model, name)
        if interval is not None or _declared(model, name) is not None or _keyed(model, name) is not None:
            ranges[name] = interval or (0, 1)
        elif _is_number(model, name):
            wide.append(name)
        else:
            ranges[name] = (0, 1)
    known = categories(model)
    if wide:
        chosen = _most_telling(model, ranges, wide, known, rng)
        ranges |= dict.fromkeys(wide, chosen)
    return _frames(model, ranges, known, frames, rng)


def _frames(
    model: Model, ranges: Mapping[str, tuple[float, float]], known: Categories, frames: int, rng: np.random.Generator
) -> Results:
    """Draw frames of all inputs, from ``ranges`` and ``known`` categories."""
    result = {name: _draw(model, name, ranges[name], frames, rng) for name in model.resolved.inputs}
    for name, places in known.items():
        flat = result[name].reshape(frames, -1)
        for place, listed in places.items():
            flat[:, place] = rng.choice(np.array(listed), frames)
        result[name] = flat.reshape(result[name].shape)
    return result


def float_dtype(name: str) -> np.dtype[Any]:
    """Return the numpy type that holds reals of an ONNX element type."""
    try:
        return np.dtype(name)
    except TypeError:  # those of 8 bits and fewer
        return np.dtype("float32")


def is_integer(dtype: str) -> bool:
    """Tell whether an ONNX element type, by name, is an integer type; a bool is 0 or 1."""
    return dtype == "bool" or "int" in dtype


def integer_bounds(dtype: str) -> tuple[int, int]:
    """Return the least and greatest integer of an ONNX integer type, by name."""
    if dtype == "bool":
        return 0, 1
    bits, signed = int(dtype.split("int")[1]), not dtype.startswith("u")
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def _is_number(model: Model, name: str) -> bool:
    return "int" in (dtype := model.resolved.values[name].dtype) or "float" in dtype


def _draw(
    model: Model, name: str, interval: tuple[float, float], frames: int, rng: np.random.Generator
) -> npt.NDArray[Any]:
    info = model.resolved.values[name]
    shape = (frames, *info.shape[1:])
    if info.dtype == "string":
        drawn = rng.choice(_texts(model, name), shape)
        return drawn.astype(object)
    declared, keyed = _declared(model, name), _keyed(model, name)
    if keyed is not None:
        return _near_thresholds(model, keyed, shape, rng)
    if declared is not None:
        levels = declared.value.typed.interval
        drawn = rng.integers(levels.lo, levels.hi, shape, endpoint=True)
        return declared_reals(declared, drawn).astype(float_dtype(info.dtype))
    low, high = interval
    if is_integer(info.dtype):
        least, most = integer_bounds(info.dtype)
        drawn = rng.integers(max(int(low), least), min(int(high), most), shape, endpoint=True)
        return drawn.astype(bool) if info.dtype == "bool" else drawn
    dtype = float_dtype(info.dtype)
    end = float(np.finfo(dtype).max)  # a quantizer of a huge scale takes more than its input's type has
    return rng.uniform(max(low, -end), min(high, end), shape).astype(dtype)


def _texts(model: Model, name: str) -> list[str]:
    """Return the texts that the readers of an input know, and one that they do not."""
    known: dict[str, None] = {}
    for node in model.resolved.nodes:
        if name in node.inputs:
            for value in node.attributes.values():
                texts = value if isinstance(value, tuple) else np.asarray(value).reshape(-1).tolist()
                known.update((text, None) for text in texts if isinstance(text, str))
    return [*known, "?"]


_LIKELY = (0.6, 0.97)
"""Of a feature: that it lies at a threshold or next to it, and that, or else it is a number between two thresholds. The
rest are infinities and NaN."""


def _near_thresholds(
    model: Model, port: Port, shape: tuple[int, ...], rng: np.random.Generator
) -> npt.NDArray[Any]:
    """Draw numbers by their keys: thresholds of each feature, their neighbours, numbers between, infinities and NaN."""
    result = np.zeros(shape, np.int64)
    ends = port.value.typed.interval
    for feature, steps in enumerate(_steps(model, port)):
        breaks = steps.break_array
        if not len(breaks):
            breaks = np.zeros(1, np.int64)
        at = rng.choice(breaks, shape[0]) + rng.integers(-1, 1, shape[0], endpoint=True)
        between = rng.integers(breaks[0], breaks[-1], shape[0], endpoint=True)
        far = rng.choice([ends.lo, ends.hi - 1, ends.hi], shape[0])
        kind = rng.random(shape[0])
        drawn = np.where(kind < _LIKELY[0], at, np.where(kind < _LIKELY[1], between, far))
        result[:, feature] = np.clip(drawn, ends.lo, ends.hi)
    return floats_of(result, port.floats)


def _steps(model: Model, port: Port) -> list[StepFunction]:
    """Return the step function of each feature of a port of keys: what its first reader distinguishes."""
    count = port.value.typed.shape[-1]
    for node in model.quantized.nodes:
        if port.value in node.inputs and isinstance(node.attributes, RequantizeAttributes):
            steps = node.attributes.steps
            return [*steps] if len(steps) == count else [steps[0]] * count
    interval = port.value.typed.interval
    return [StepFunction(interval.lo, interval.hi, [], [0])] * count


def _keyed(model: Model, name: str) -> Port | None:
    """Return the hardware input that carries the keys of a graph input; None for other inputs."""
    return next((p for p in model.quantized.inputs if p.value.origin == name and p.floats), None)


def _declared(model: Model, name: str) -> Port | None:
    """Return the hardware input that carries declared integers of a float input; None for other inputs."""
    ports = (p for p in model.quantized.inputs if p.value.origin == name and p.value.meaning is not None)
    return next(ports, None)


def _whole(model: Model, name: str) -> tuple[int, int] | None:
    """Return the interval of an input whose integers are the hardware's, else None."""
    for port in model.quantized.inputs:
        if port.value.origin == name and port.value.meaning is None and not port.floats:
            interval = port.value.typed.interval
            return interval.lo, interval.hi
    return None


def _quantizer_range(model: Model, name: str) -> tuple[float, float] | None:
    """Return slightly more than the range of a QuantizeLinear right after the input; None without one."""
    constants = model.resolved.constants
    for node in model.resolved.nodes:
        quantizes = facts_of(node.domain, node.op_type).quantizes
        if quantizes and node.inputs[0] == name and node.inputs[1] in constants:
            scale = float(constants[node.inputs[1]].reshape(-1)[0])
            zero = node.inputs[2] if len(node.inputs) > 2 else ""
            zero_point = int(constants[zero].reshape(-1)[0]) if zero in constants else 0
            port = next((p for p in model.quantized.inputs if p.value.origin == node.outputs[0]), None)
            if port is not None:
                element = port.value.typed.element
                return scale * (element.min - 4 - zero_point), scale * (element.max + 4 - zero_point)
    return None


def _most_telling(
    model: Model, ranges: dict[str, tuple[float, float]], wide: list[str], known: Categories, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the interval for the inputs ``wide`` with which a few frames give most different integers at the hardware
    inputs, and, among equals, fewest saturated ones."""
    sizes = [prod(model.resolved.values[name].shape) for name in wide]
    frames = max(1, _TRIED_ELEMENTS // max(1, min(sizes)))
    best, chosen = (-1, 0), (-1.0, 1.0)
    for interval in [(low, end) for end in _ENDS for low in (-end, 0.0)]:
        tried = ranges | dict.fromkeys(wide, interval)
        trial = _frames(model, tried, known, frames, rng)
        try:
            score = _score(trial, model)
        except ModelRefused:  # not defined there: the logarithm of a negative, say
            continue
        if score > best:
            best, chosen = score, interval
    return chosen


def _score(trial: Arrays, model: Model) -> tuple[int, int]:
    arrays: dict[str, IntArray] = port_inputs(model, trial)
    different = sum(len(np.unique(array)) for array in arrays.values())
    ends = sum(int(np.isin(a, (a.min(), a.max())).sum()) for a in arrays.values())
    return different, -ends
