"""The graph all stages share: values with one producer, nodes with an operator name and attributes.

A :class:`Graph` is in static single assignment form and its nodes are in topological order. Which operators and
which shapes of graph are legal depends on the stage: see :mod:`hwflow.ir.legality`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.errors import Finding
from hwflow.types import TensorType

IntArray = npt.NDArray[np.int64]


class Stage(Enum):
    """The graphs a model moves through (design: Imported, Quantized, Dataflow, Scheduled)."""

    IMPORTED = "Imported"
    QUANTIZED = "Quantized"
    DATAFLOW = "Dataflow"
    SCHEDULED = "Scheduled"


Fractions = npt.NDArray[np.object_]  # of Fraction, broadcastable to the shape it belongs to


@dataclass(frozen=True, eq=False)
class Meaning:
    """What integers mean: real = scale * (integer - zero_point); both broadcast over a frame."""

    scale: Fractions
    zero_point: Fractions


@dataclass(frozen=True, eq=False)
class Carried:
    """The tensor that a stream carries: the name and shape of a value of the quantized stage, and the flat index there
    of each of the stream's elements (see :class:`Port`)."""

    name: str
    shape: tuple[int, ...]
    order: IntArray


@dataclass(eq=False)
class Value:
    """One tensor. ``type`` is None until types are inferred. ``origin`` is the ONNX value it stands for, or ''.

    ``meaning`` is set where that ONNX value is a real tensor that a quantizer made (QONNX): the integers, rounded,
    carry it exactly. Where it is an integer tensor ``meaning`` is None. ``carried``: of a stream of the dataflow stage,
    the tensor it was made for; None for one inside an operator (a window, say).
    """

    name: str
    type: TensorType | None = None
    origin: str = ""
    meaning: Meaning | None = None
    carried: Carried | None = None

    @property
    def typed(self) -> TensorType:
        """The type of a value whose type has been inferred."""
        assert self.type is not None, f"value {self.name} has no type yet"
        return self.type


@dataclass(frozen=True)
class Inferred:
    """The types of an operator's outputs, from its ``attributes`` (with those derived) and the types of its inputs."""

    attributes: dict[str, Any]
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]

    def holds(self, attributes: dict[str, Any], inputs: Sequence[TensorType]) -> bool:
        """Whether it is from the same objects: what they hold is not looked at."""
        return (
            len(inputs) == len(self.inputs)
            and all(a is b for a, b in zip(inputs, self.inputs, strict=True))
            and attributes.keys() == self.attributes.keys()
            and all(value is self.attributes[name] for name, value in attributes.items())
        )


@dataclass(eq=False)
class Node:
    """One operation. ``sources`` are the names of the ONNX nodes it does the work of. ``inferred``: what the types of
    its outputs were last inferred from, and they themselves (see :mod:`hwflow.passes.infer_types`)."""

    name: str
    op: str
    inputs: list[Value]
    outputs: list[Value]
    attributes: dict[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    inferred: Inferred | None = None


@dataclass(eq=False)
class Port:
    """A graph input or output and what its integers mean to the host.

    ``name``: the ONNX value; ``shape``: logical shape of a frame; ``order[k]``: the flat logical index of stream
    element k = pixel * channels + channel (identity before the dataflow stage). ``scale`` and ``zero_point`` (one
    entry, or one for each index of logical axis ``axis``) give reals: real = scale * (integer - zero_point).
    """

    name: str
    value: Value
    shape: tuple[int, ...]
    order: IntArray
    scale: tuple[Fraction, ...] = (Fraction(1),)
    zero_point: tuple[Fraction, ...] = (Fraction(0),)
    axis: int = 0


@dataclass(eq=False)
class Graph:
    """A model at one stage.

    ``prefix`` and ``suffix`` are the names of the ONNX nodes that the host runs before and after the hardware, in
    order. ``deferred``: why hardware could not be made of some of those after it.
    """

    name: str
    stage: Stage
    inputs: list[Port]
    outputs: list[Port]
    nodes: list[Node]
    prefix: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    deferred: tuple[Finding, ...] = ()

    def copy(self) -> Graph:
        """The same graph with nodes, values and ports of its own: a pass that changes it leaves the original alone."""
        own = {v: replace(v) for v in self.values()}
        nodes = [
            Node(
                n.name, n.op, [own[v] for v in n.inputs], [own[v] for v in n.outputs], dict(n.attributes), n.sources,
                n.inferred,
            )
            for n in self.nodes
        ]
        inputs, outputs = ([replace(p, value=own[p.value]) for p in ports] for ports in (self.inputs, self.outputs))
        return Graph(self.name, self.stage, inputs, outputs, nodes, self.prefix, self.suffix, self.deferred)

    def values(self) -> list[Value]:
        """Every value: inputs first, then in order of production."""
        return [p.value for p in self.inputs] + [v for n in self.nodes for v in n.outputs]

    def producers(self) -> dict[Value, Node]:
        return {v: n for n in self.nodes for v in n.outputs}

    def consumers(self) -> dict[Value, list[tuple[Node, int]]]:
        """For each value the (node, input index) pairs that read it; graph outputs are not counted."""
        table: dict[Value, list[tuple[Node, int]]] = {v: [] for v in self.values()}
        for node in self.nodes:
            for index, value in enumerate(node.inputs):
                table.setdefault(value, []).append((node, index))
        return table


def identity_order(shape: Sequence[int]) -> IntArray:
    """The order of a tensor whose stream is its row-major order."""
    return np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64)


class Names:
    """Unique names within one graph."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self._taken = set(taken)

    def fresh(self, wish: str) -> str:
        name, number = wish, 1
        while name in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        return name


def attributes_text(attributes: Mapping[str, Any]) -> str:
    """Attributes in one line; arrays by shape."""
    parts = []
    for key, value in attributes.items():
        text = f"array{list(value.shape)}" if isinstance(value, np.ndarray) else str(value)
        parts.append(f"{key}={text if len(text) <= 60 else text[:57] + '...'}")
    return ", ".join(parts)
