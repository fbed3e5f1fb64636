"""The graph of all stages: values with one producer, nodes with an operator name and attributes.

A :class:`Graph` is in static single assignment form and its nodes are in topological order, but for the inputs of
delays: these close circuits. Which operators and which shapes of graph are legal depends on the stage: see
:mod:`hwflow.ir.legality`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, Generic

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeVar  # with defaults

from hwflow.errors import Finding
from hwflow.types import TensorType

IntArray = npt.NDArray[np.int64]
Made = TypeVar("Made")
A = TypeVar("A", bound="Attributes", covariant=True, default=Any)
"""The type of a node's attributes."""


class Stage(Enum):
    """The stages of a graph. Before them a model is a resolved ONNX model."""

    QUANTIZED = "Quantized"
    DATAFLOW = "Dataflow"
    SCHEDULED = "Scheduled"


Fractions = npt.NDArray[np.object_]  # of Fraction, broadcastable to the tensor's shape


@dataclass(frozen=True, eq=False)
class Meaning:
    """What integers mean: real = scale * (integer - zero_point); both broadcast over a frame."""

    scale: Fractions
    zero_point: Fractions


@dataclass(frozen=True, eq=False)
class Carried:
    """The tensor that a stream carries: name and shape of a value of the quantized stage, and the flat index in it of
    each element of the stream (see :class:`Port`)."""

    name: str
    shape: tuple[int, ...]
    order: IntArray


@dataclass(eq=False)
class Value:
    """One tensor. ``type`` is None until types are inferred. ``origin`` is the ONNX value it represents, or ''.

    ``meaning`` is set where that ONNX value is a real tensor from a quantizer (QONNX), which the integers represent
    exactly; it is None for an integer tensor. ``carried``: the tensor that a stream of the dataflow stage carries;
    None for a stream inside an operator (of windows, say).
    """

    name: str
    type: TensorType | None = None
    origin: str = ""
    meaning: Meaning | None = None
    carried: Carried | None = None

    @property
    def typed(self) -> TensorType:
        """The inferred type."""
        assert self.type is not None, f"value {self.name} has no type yet"
        return self.type


@dataclass(frozen=True)
class Inferred:
    """Cached output types of an operator, with the ``attributes`` (derived ones included) and input types they follow
    from."""

    attributes: object
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]

    def holds(self, attributes: object, inputs: Sequence[TensorType]) -> bool:
        """Tell whether it was inferred from the same objects, compared by identity."""
        return attributes is self.attributes and list(map(id, inputs)) == list(map(id, self.inputs))


@dataclass(frozen=True, eq=False)
class Attributes:
    """What a node says of its operator: a dataclass for each, see :mod:`hwflow.ir.node_attributes`. ``op``: the name of
    the operator."""

    op: ClassVar[str]


class Recurring(Attributes):
    """Of what closes a circuit: its result depends on earlier parts of its operands alone, so that it may stand before
    what produces them. Their types follow from nothing but the attributes."""


class Delaying(Recurring):
    """Of a delay: its result is of earlier frames."""

    @property
    def first_frames(self) -> IntArray:
        """Return the result's first frames, [frames of the delay, *shape of a frame]: the circuit's tokens."""
        raise NotImplementedError("each delay has its own")


class Scratch(dict[Any, Any]):
    """What has been computed, by what it follows from, to be found again in this process: another gets it empty. (It
    may change while a node is being sent.)"""

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return Scratch, ()


@dataclass(eq=False)
class Node(Generic[A]):
    """One operation. ``attributes``: what it says of its operator (:mod:`hwflow.ir.node_attributes`). ``sources``: the
    names of the ONNX nodes it implements. ``inferred``: the cached result of type inference (see
    :mod:`hwflow.passes.infer_types`). ``kept``: see :meth:`once`; copies of a graph share it."""

    name: str
    inputs: list[Value]
    outputs: list[Value]
    attributes: A
    sources: tuple[str, ...] = ()
    inferred: Inferred | None = None
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.attributes.op

    def once(self, make: Callable[[Node[A]], Made]) -> Made:
        """Return what ``make`` makes of a node of the dataflow stage: of its attributes and types, which no longer
        change, and of nothing that scheduling decides."""
        if make not in self.kept:
            self.kept[make] = make(self)
        made: Made = self.kept[make]
        return made


@dataclass(eq=False)
class Port:
    """A graph input or output, with the meaning of its integers to the host.

    ``name``: the ONNX value; ``shape``: logical shape of a frame; ``order[k]``: the flat logical index of stream
    element k = pixel * channels + channel (identity before the dataflow stage). ``scale`` and ``zero_point`` (one
    entry, or one for each index of logical axis ``axis``) give reals: real = scale * (integer - zero_point).
    ``levels``: what an output's integers mean to the model where the ONNX value is integers, too; None: nothing else.
    ``floats``: the element type of the ONNX value where the integers are keys of its floats
    (:mod:`hwflow.numerics.float_keys`), else "".
    """

    name: str
    value: Value
    shape: tuple[int, ...]
    order: IntArray
    scale: tuple[Fraction, ...] = (Fraction(1),)
    zero_point: tuple[Fraction, ...] = (Fraction(0),)
    axis: int = 0
    floats: str = ""
    levels: Meaning | None = None


@dataclass(eq=False)
class Graph:
    """A model at one stage.

    ``prefix`` and ``suffix`` are the names of the ONNX nodes that the host runs before and after the hardware, in
    order. ``deferred``: why some of those after it cannot be hardware.
    """

    name: str
    stage: Stage
    inputs: list[Port]
    outputs: list[Port]
    nodes: list[Node]
    prefix: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    deferred: tuple[Finding, ...] = ()

    def copy(self, others: Mapping[Node, Node] = MappingProxyType({})) -> Graph:
        """Copy the graph with its nodes, values and ports, so that a pass may change the copy; attributes are
        shared. ``others``: in the place of which nodes the copy has ones with other attributes and types of outputs."""
        taken = [others.get(n, n) for n in self.nodes]
        own = {p.value: replace(p.value) for p in self.inputs}
        for n, other in zip(self.nodes, taken, strict=True):
            own |= {v: replace(v, type=made.type) for v, made in zip(n.outputs, other.outputs, strict=True)}
        nodes = [
            Node(
                n.name, [own[v] for v in n.inputs], [own[v] for v in n.outputs], other.attributes, n.sources,
                other.inferred, other.kept,
            )
            for n, other in zip(self.nodes, taken, strict=True)
        ]
        inputs, outputs = ([replace(p, value=own[p.value]) for p in ports] for ports in (self.inputs, self.outputs))
        return Graph(self.name, self.stage, inputs, outputs, nodes, self.prefix, self.suffix, self.deferred)

    def values(self) -> list[Value]:
        """Return every value: inputs first, then in order of production."""
        return [p.value for p in self.inputs] + [v for n in self.nodes for v in n.outputs]

    def producers(self) -> dict[Value, Node]:
        return {v: n for n in self.nodes for v in n.outputs}

    def consumers(self) -> dict[Value, list[tuple[Node, int]]]:
        """Return the (node, input index) pairs that read each value; graph outputs are not counted."""
        table: dict[Value, list[tuple[Node, int]]] = {v: [] for v in self.values()}
        for node in self.nodes:
            for index, value in enumerate(node.inputs):
                table.setdefault(value, []).append((node, index))
        return table


def identity_order(shape: Sequence[int]) -> IntArray:
    """Return the order of a tensor that is streamed in row-major order."""
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
