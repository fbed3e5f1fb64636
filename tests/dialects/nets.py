"""A network under construction, for the generators: real tensors and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.printer
from onnx import helper

from tests.dialects.choices import Choices
from tests.dialects.exact.exact_call import bounds_of
from tests.models import Builder, kind_of

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Tensor:
    """A real ONNX value. ``low`` and ``high`` bound it (about). ``exact``: integers carry it, so that a convolution may
    read it; else float functions have been applied. Axis 0 is the frame's, axis 1 the channels'."""

    name: str
    shape: tuple[int, ...]
    low: float
    high: float
    exact: bool = True

    @property
    def channels(self) -> int:
        return self.shape[1]


@dataclass(frozen=True)
class Feed:
    """A graph input: integers of a kind, or reals around the integers that the first quantizer makes of them.

    ``step``: reals are multiples of it; ``low`` and ``high`` count steps.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    low: int
    high: int
    step: float = 1.0

    def array(self, rng: np.random.Generator, edge: int | None = None) -> Array:
        """One frame: random, or for ``edge`` 0, 1, 2 all low, all high, either at random."""
        if edge in (0, 1):
            steps = np.full(self.shape, (self.low, self.high)[edge])
        elif edge is not None:
            steps = rng.choice([self.low, self.high], self.shape)
        else:
            steps = rng.integers(self.low, self.high + 1, self.shape)
        if self.kind == "float":
            return (steps * self.step).astype(np.float32)
        return steps.astype(helper.tensor_dtype_to_np_dtype(kind_of(self.kind)))


@dataclass(repr=False)
class Net:
    """``pool``: the real tensors that further layers may read."""

    choices: Choices
    builder: Builder
    feeds: list[Feed] = field(default_factory=list)
    pool: list[Tensor] = field(default_factory=list)

    @property
    def opset(self) -> int:
        return self.builder.opset

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.builder.node(op, *inputs, **attributes)

    def constant(self, values: npt.ArrayLike, kind: str = "float") -> str:
        """An initializer; of floats sometimes a Constant node, or an expression that folds to them exactly."""
        if kind == "float" and (way := self.choices.integer(0, 11)) < 3:
            array = np.asarray(values, np.float32)
            if way == 0:
                return self.node("Constant", value=onnx.numpy_helper.from_array(array))
            if way == 1:  # powers of two: exact
                return self.node("Mul", self.builder.constant(array * 4), self.builder.constant(np.float32(0.25)))
            return self.node("Identity", self.builder.constant(array))
        return self.builder.constant(values, kind)

    def scale(self, wanted: float) -> float:
        """A scale near ``wanted``: a power of two (which makes ties common) or any float32."""
        wanted = min(max(wanted, 2.0**-20), 2.0**20)
        if self.choices.chance(2):
            return float(2.0 ** round(np.log2(wanted)))
        return float(np.float32(wanted * self.choices.integer(70, 140) / 101))

    def zero_point(self, kind: str) -> int:
        """Often 0 or the middle; odd ones are common, the ends of the type are possible."""
        low, high = bounds_of(kind_of(kind))
        way = self.choices.integer(0, 5)
        if way < 4:
            return (0, (low + high + 1) // 2, low, high)[way] if way else 0
        return self.choices.integer(low, high) | (1 if way == 5 else 0)

    def input_kind(self) -> str:
        kinds = ["uint8", "int8", "uint8", "int8"]
        if self.opset >= 21:
            kinds += ["uint4", "int4"]
        if self.opset >= 25:
            kinds += ["uint2", "int2"]
        if self.opset >= 21 and self.choices.chance(12):  # thousands of thresholds
            kinds = ["uint16", "int16"]
        return self.choices.pick(kinds)

    def weight_kind(self) -> str:
        kinds = ["int8", "uint8", "int8"]
        if self.opset >= 21:
            kinds += ["int4", "uint4", "int16"]
        if self.opset >= 25:
            kinds += ["int2", "uint2"]
        return self.choices.pick(kinds)

    def __repr__(self) -> str:
        """The model, so that Hypothesis shows it."""
        return f"{self.feeds}\n{onnx.printer.to_text(self.builder.build())}"

    def changed(self, x: Tensor, name: str, **changes: Any) -> Tensor:
        return replace(x, name=name, **changes)

    def random_integers(self, shape: Sequence[int], kind: str) -> Array:
        low, high = bounds_of(kind_of(kind))
        rng = self.choices.generator()
        if rng.integers(4) == 0:
            return rng.choice([low, high, 0, 1], shape)
        return rng.integers(low, high + 1, shape)

    def frame(self, seed: int, edge: int | None = None) -> dict[str, Array]:
        """Inputs of one frame."""
        rng = np.random.default_rng(seed)
        return {feed.name: feed.array(rng, edge) for feed in self.feeds}

    def frame_shape(self, image: bool) -> tuple[int, ...]:
        c = self.choices.integer(1, 3)
        if image:
            return 1, c, self.choices.integer(2, 5), self.choices.integer(2, 5)
        return 1, self.choices.integer(1, 7)

    def spread(self, x: Tensor, values: Sequence[float]) -> Array:
        """One number, or one for each channel, shaped to broadcast over ``x``."""
        array = np.asarray(values, np.float32)
        if array.size == 1 or x.channels != array.size:
            return array.reshape(-1)[0].reshape(self.choices.pick([(), (1,)]))
        inner = (array.size, *[1] * (len(x.shape) - 2))
        return array.reshape(self.choices.pick([inner, (1, *inner)]))


def elements(shape: Sequence[int]) -> int:
    return prod(shape)


def new_net(choices: Choices, opsets: Sequence[int] = (13, 19, 21, 25)) -> Net:
    """An empty network of some opset."""
    opset = choices.pick(opsets)
    version = helper.find_min_ir_version_for([helper.make_opsetid("", opset)], ignore_unknown=True)
    return Net(choices, Builder(opset, max(8, version)))
