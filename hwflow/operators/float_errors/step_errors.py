"""One node in a running error analysis, and what its rules share. The arithmetic:
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
"""Covers that the bounds themselves are computed in float64, and magnitudes from computed values."""


class NoBound(Exception):
    """Raised by a rule: this case has no bound."""


@dataclass
class Step:
    """One node: inputs and outputs as computed, bounds of the inputs; "" inputs are None. A rule may leave in
    ``quotient`` the bound on what the node rounds to an integer, before the rounding, in levels."""

    region: Region
    node: onnx.NodeProto
    inputs: list[AnyArray | None]
    errors: list[Errors | None]
    outputs: list[AnyArray]
    attributes: Mapping[str, Any]
    constant: bool  # it depends on no feed
    quotient: Errors | None = None

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
        """Raise NoBound unless these inputs are free of error (or absent)."""
        if any(self.has(index) and self.error(index).any() for index in indices):
            raise NoBound

    @property
    def unit(self) -> float:
        return unit(self.output.dtype)

    @property
    def tiny(self) -> float:
        return tiny(self.output.dtype)

    def rounded(self, times: float = 1.0) -> Errors:
        """What ``times`` roundings of the output's size can add."""
        return times * self.unit * magnitude(self.output) + times * self.tiny

    def attribute(self, name: str, default: float) -> float:
        """A float attribute, as the float32 that the model holds."""
        return float(np.float32(self.attributes.get(name, default)))

    def again(self, inputs: Sequence[AnyArray | None]) -> Errors:
        """The node's first output on other inputs, as float64. Raises NoBound where the evaluator fails on them."""
        try:
            result: Errors = self.region.again(self.node, inputs).astype(np.float64)
        except Exception as error:  # whatever numpy and the evaluator's operators raise
            raise NoBound from error
        return result


Rule = Callable[[Step], "Errors | Sequence[Errors]"]
"""Gives the bound of the first output, or one for each."""


def unit(dtype: np.dtype[Any]) -> float:
    """The unit roundoff of a float type: 2**-24 for float32."""
    if dtype not in (np.float16, np.float32):  # what quantized models compute in; bounds are computed in float64
        raise NoBound
    return float(np.finfo(dtype).eps) / 2


def tiny(dtype: np.dtype[Any]) -> float:
    return float(np.finfo(dtype).tiny)


def gamma(terms: int, u: float) -> float:
    """The relative error of a sum of ``terms`` products; Higham, section 3.1."""
    if terms * u >= 0.5:
        raise NoBound
    return terms * u / (1 - terms * u)


def magnitude(array: AnyArray) -> Errors:
    return np.abs(array.astype(np.float64))


def is_integer(array: AnyArray) -> bool:
    """Of an integer type, one below 8 bits included."""
    return "int" in array.dtype.name


def along(step: Step, index: int) -> AnyArray:
    """Scale or zero point of a (De)QuantizeLinear, shaped to broadcast over input 0; blocks are written out."""
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
