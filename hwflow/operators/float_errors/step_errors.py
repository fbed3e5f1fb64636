"""One node of a running error analysis, and helpers of the rules. The arithmetic model:
``hwflow.operators.float_errors.analysis``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from hwflow.onnxspec.reference.evaluation import AnyArray, Region

Errors = npt.NDArray[np.float64]

INFLATION = 1 + 2.0**-20
"""Covers the rounding of the bounds themselves, and of magnitudes of computed values."""


class NoBound(Exception):
    """Raised by a rule: this case has no bound."""


@dataclass
class Step:
    """One node: its computed inputs and outputs, and bounds of the inputs; absent inputs are None. A rule may store in
    ``quotient`` the error bound of the number that the node rounds to an integer, in levels."""

    region: Region
    node: onnx.NodeProto
    inputs: list[AnyArray | None]
    errors: list[Errors | None]
    outputs: list[AnyArray]
    attributes: Mapping[str, Any]
    constant: bool  # depends on no feed
    quotient: Errors | None = None
    runtime: bool = False  # bound the error of onnxruntime, where that is greater

    @property
    def output(self) -> AnyArray:
        return self.outputs[0]

    def value(self, index: int) -> AnyArray:
        array = self.inputs[index]
        assert array is not None, f"{self.node.op_type} needs input {index}"
        return array

    def error(self, index: int) -> Errors:
        error = self.errors[index]
        assert error is not None, f"{self.node.op_type} needs input {index}"
        return error

    def has(self, index: int) -> bool:
        return len(self.inputs) > index and self.inputs[index] is not None

    def exact(self, *indices: int) -> None:
        """Raise NoBound unless these inputs are error-free or absent."""
        if any(self.has(index) and self.error(index).any() for index in indices):
            raise NoBound

    @property
    def unit(self) -> float:
        return unit(self.output.dtype)

    @property
    def tiny(self) -> float:
        return tiny(self.output.dtype)

    def rounded(self, times: float = 1.0) -> Errors:
        """Return the error of ``times`` roundings of the output's magnitude."""
        return times * self.unit * magnitude(self.output) + times * self.tiny

    def attribute(self, name: str, default: float) -> float:
        """Return a float attribute, as the model's float32."""
        return float(np.float32(self.attributes.get(name, default)))

    def again(self, inputs: Sequence[AnyArray | None]) -> Errors:
        """Evaluate the node's first output on other inputs, as float64. Raises NoBound if the evaluator fails."""
        try:
            result: Errors = self.region.again(self.node, inputs).astype(np.float64)
        except Exception as error:  # whatever numpy and the evaluator's operators raise
            raise NoBound from error
        return result


ErrorRule = Callable[[Step], "Errors | Sequence[Errors]"]
"""Returns the bound of the first output, or one per output."""


def unit(dtype: np.dtype[Any]) -> float:
    """Return the unit roundoff of a float type: 2**-24 for float32. That of float64 is eight times as large, which
    covers the roundings of the bounds, and of the functions that they evaluate: these are computed in float64."""
    if dtype == np.float64:
        return 2.0**-50
    if dtype not in (np.float16, np.float32):
        raise NoBound
    return float(np.finfo(dtype).eps) / 2


def tiny(dtype: np.dtype[Any]) -> float:
    return float(np.finfo(dtype).tiny)


def gamma(terms: int, u: float) -> float:
    """Return the relative error of a sum of ``terms`` products; Higham, section 3.1."""
    if terms * u >= 0.5:
        raise NoBound
    return terms * u / (1 - terms * u)


def magnitude(array: AnyArray) -> Errors:
    return np.abs(array.astype(np.float64))


def is_integer(array: AnyArray) -> bool:
    """Tell whether an array has an integer type, including those below 8 bits."""
    return "int" in array.dtype.name


def of_exact(step: Step) -> Errors:
    """Return zero, of what is exact if the first input is."""
    step.exact(0)
    return np.zeros(step.output.shape)


def along(step: Step, index: int) -> AnyArray:
    """Return scale or zero point of a (De)QuantizeLinear, shaped to broadcast over input 0; blocks are expanded."""
    step.exact(index)
    array, x = step.value(index), step.value(0)
    axis, block = int(step.attributes.get("axis", 1)), int(step.attributes.get("block_size") or 0)
    if block:
        repeated = np.repeat(array, block, axis=axis)
        return repeated.take(np.arange(x.shape[axis]), axis=axis)
    if array.size == 1:
        return array.reshape(())
    if array.ndim > 1:
        raise NoBound
    shape = [1] * x.ndim
    shape[axis] = -1
    return array.reshape(shape)
