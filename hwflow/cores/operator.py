"""The interface of operators. Timing and resources have no defaults: without them an operator cannot be registered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from amaranth.lib.wiring import Component

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.memories.rom import Table, WritePort
from hdl_lib.memories.storage import StorageStyle
from hwflow.cores.timing import Timing
from hwflow.ir.graph import Attributes, Graph, IntArray, Node, Stage, Value
from hwflow.types import TensorType

A = TypeVar("A", bound=Attributes)
"""The type of a node's attributes, see :class:`hwflow.ir.graph.Node`."""


class Resources(NamedTuple):
    """Predicted use of a device's resources. ``bram`` counts the family's block RAM primitives."""

    lut: int = 0
    ff: int = 0
    dsp: int = 0
    bram: int = 0

    def __add__(self, other: Resources) -> Resources:  # type: ignore[override]  # a sum, not a longer tuple
        (a, b, c, d), (e, f, g, h) = self, other  # a search adds up hundreds of thousands
        return tuple.__new__(Resources, (a + e, b + f, c + g, d + h))

    def times(self, count: int) -> Resources:
        """Return ``count`` times these resources."""
        return Resources(self.lut * count, self.ff * count, self.dsp * count, self.bram * count)


@dataclass(frozen=True)
class Folding:
    """Lanes of each input and output stream (elements per beat), the multipliers busy in every step and what makes
    their products. ``part``: magnitude bits of a multiplier block's operand, for cores that split their operands; else
    0.

    Of a core that takes its input in digits: ``digits`` of serial products in a step
    (:mod:`hwflow.cores.requantizers.serial_requantize`), ``digit_bits`` of each in a table
    (:mod:`hwflow.cores.requantizers.multiples`), ``rounds`` of a digit recurrence, a cycle each, for a beat.

    ``levels``: of adders of a constant network, or of truth tables, between registers.

    ``units``: those that walk trees (0: trees stand side by side), with products in a "table" if leaves are lists.

    ``longest``: words of the longest burst from a memory that weights lie in; 0: its node says it.

    ``whole_vector``: input lanes are of a vector of several pixels, taken as one pixel (see
    :mod:`hwflow.cores.matrix.mvu`), though they are no more than a pixel's channels; or those of a core that takes
    whole pixels of several streams (:class:`hwflow.cores.streams.concat.StreamConcat`).

    ``clipped``: windows come without the taps in the padding; of both ends of such a stream, see
    :meth:`HardwareOperator.as_chosen`.

    ``in_block``: constants of a product, weights or a requantizer's, lie in block RAM, whatever their size.

    Up to a pixel's channels, lanes are a part of a pixel, with surplus lanes in its last beat if they do not divide the
    channels. More lanes are whole pixels, in a number that divides the stream's (see :func:`beats`).
    """

    input_lanes: int
    output_lanes: int
    multipliers: int = 0
    multiplier: ProductForm = ProductForm.NONE
    part: int = 0
    whole_vector: bool = False
    clipped: bool = False
    in_block: bool = False
    digits: int = 0
    digit_bits: int = 0
    rounds: int = 1
    levels: int = 1
    units: int = 0
    longest: int = 0


OPEN_DEPTH: Any = None
"""Of a queue whose depth is not known yet: a core can be built with it, and gets the depth later."""


@dataclass(frozen=True)
class Decision:
    """The scheduling decision of a node, see :class:`hwflow.schedule.plan.Plan`.

    * ``depths``: FIFO depth of each output; empty while open; 0 without a queue (:mod:`hwflow.cores.chain`).
    * ``styles``: storage of the queue of each of a fork's outputs (:class:`hdl_lib.streams.fork.Fork`); empty: chosen
      by depth.
    * ``rows``: image rows of a line buffer; None: the default of
      :func:`hwflow.cores.windows.sliding_window.line_buffer_rows`.
    * ``pixels``: those of a line buffer that is released pixel by pixel; None: the default of
      :func:`hwflow.cores.matrix.depthwise.buffer_pixels`.
    * ``interval``: cycles per frame that the buffer of a rearranger must sustain; None: the fewest of the core itself.
    * ``provisional``: one of the many foldings that a search compares. Costs that take long to count are estimated.
    """

    folding: Folding
    depths: tuple[int, ...] = ()
    styles: tuple[StorageStyle, ...] = ()
    rows: int | None = None
    pixels: int | None = None
    interval: int | None = None
    provisional: bool = False

    @property
    def depth(self) -> int:
        """Return the FIFO depth of the first output."""
        return self.depths[0]


@dataclass
class MemoryFile:
    """The contents of a ``$readmemh`` file: ``words`` of ``width`` bits, address 0 first. ``held``: others may take
    their place (:class:`hdl_lib.memories.rom.Table`); ``loadable``: while the design runs, by ``port``."""

    name: str
    words: Sequence[int]
    width: int
    held: bool = False
    loadable: bool = False
    _port: WritePort | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def port(self) -> WritePort | None:
        """Return the signals by which the table is written; None if it is not ``loadable``."""
        if self.loadable and self._port is None:
            self._port = WritePort.of(self.width, len(self.words))
        return self._port

    def without_port(self) -> MemoryFile:
        """Return the same without signals, of which another process has no use."""
        return MemoryFile(self.name, self.words, self.width, self.held, self.loadable)

    @property
    def table(self) -> Table:
        """Return the table that reads the file."""
        return Table(None, f"weights/{self.name}.mem", self.width, len(self.words), self.held, self.port)


@dataclass
class Built:
    """A core with the memory files it reads. ``inputs``/``outputs`` are its stream members, in the node's order."""

    component: Component
    inputs: list[Any]
    outputs: list[Any]
    files: list[MemoryFile] = field(default_factory=list)


class Device(Protocol):
    """A part, as far as cost models need it."""

    @property
    def family(self) -> str: ...

    @property
    def clock_mhz(self) -> float | None: ...


class LoweringContext(Protocol):
    """Builds the dataflow of an operator of the quantized stage (see :mod:`hwflow.passes.to_dataflow`)."""

    def stream(self, value: Value) -> tuple[Value, IntArray]:
        """Return the stream that carries a quantized value, and its order: stream element -> flat logical index."""
        ...

    def add(self, suffix: str, inputs: list[Value], attributes: Attributes) -> Value:
        """Add a dataflow node with one output, named after the node being lowered plus ``suffix``."""
        ...

    def preferred_channels(self, value: Value) -> int | None:
        """Return the axis of a quantized value that its reader takes as channels; None without preference."""
        ...

    def preferred_order(self, value: Value) -> tuple[int, IntArray]:
        """Return how the readers take a quantized value that nothing before it orders: the channels of a pixel, and the
        order."""
        ...

    def order_of_parts(self, value: Value) -> IntArray:
        """Return the order of indices along the last axis in which a quantized value should come, whose producer is
        free to choose: parts that meet again side by side (:mod:`hwflow.passes.parts_together`)."""
        ...

    def close(self, stream: Value, value: Value, order: IntArray) -> None:
        """Connect the producer of ``stream``, a delay without its input, to the quantized ``value`` in this order, once
        that has a stream."""
        ...

    def arranged(self, stream: Value, order: IntArray, wanted: IntArray, channels: int) -> Value:
        """Return ``stream``, which comes in ``order``, in the order ``wanted``, with ``channels`` per pixel: itself, or
        through a new node that rearranges it. Both orders are of the same flat indices, of which ``wanted`` may repeat
        some and omit others."""
        ...

    def is_rearranged(self, stream: Value) -> bool:
        """Tell whether a node that reorders produces ``stream``, so that another order is free."""
        ...

    def bind(self, value: Value, stream: Value, order: IntArray) -> None:
        """Set the stream that carries the quantized ``value``."""
        ...

    def is_bound(self, value: Value) -> bool:
        """Tell whether ``value`` has a stream: results of refused nodes, and values that depend on them, have none."""
        ...

    def inside(self, body: Graph) -> LoweringContext:
        """Return a context in which to lower the ``body`` of the loop being lowered, to streams of one round."""
        ...

    def take(self, value: Value, type_: TensorType, order: IntArray) -> Value:
        """Return the stream of an input of the body, of this type and order."""
        ...

    def lower_nodes(self) -> None:
        """Lower the nodes of the body."""
        ...

    def lower_each(self, each: Sequence[Node]) -> None:
        """Lower a node of the body as it is in ``each`` round, to cores that take the constants of these in turns."""
        ...

    def constants_of(self, node: Node) -> tuple[Attributes, ...]:
        """Return the attributes of a node that this has made in each round, where they differ; else none."""
        ...

    def lowered(self, read: Sequence[Value]) -> Sequence[Node]:
        """Return the nodes that this has made. ``read``: the streams that are read outside."""
        ...

    def repeat(self, inner: Node, inputs: list[Value], attributes: Attributes) -> Value:
        """Add the node that is ``inner`` of all rounds, by the names of that."""
        ...

    def feed(self, stream: Value, source: Value) -> None:
        """Give the producer of ``stream`` one more operand."""
        ...

    def refuse(self, rule: str, message: str, remedy: str) -> None:
        """Refuse the node being lowered. Its outputs stay unbound and lowering continues, to collect all findings."""
        ...


class Operator(ABC, Generic[A]):
    """The type rule and the integer semantics of an operator."""

    attributes: ClassVar[type[Attributes]]
    stages: ClassVar[frozenset[Stage]]

    def derive(self, attributes: A, inputs: Sequence[TensorType]) -> A:
        """Complete the attributes with those that follow from the input types (step functions, for example), for
        ``infer``."""
        return attributes

    @abstractmethod
    def infer(self, attributes: A, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Return the output types with exact intervals."""

    @abstractmethod
    def evaluate(self, attributes: A, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        """Evaluate the golden model: int64 arrays [frames, *shape] to the same."""

    def macs(self, node: Node[A]) -> int:
        """Return the multiply-accumulates per frame."""
        return 0

    def alike(self, attributes: A) -> Attributes:
        """Return the attributes without the constants of which one core may have a set for each round of a loop."""
        return attributes

    def of_rounds(self, each: Sequence[A]) -> Sequence[A]:
        """Return the attributes of each round in one form, for inputs whose types hold the integers of all rounds."""
        return each


Axes = tuple[int | None, ...]
"""The axes of one value by those of another that is made of it; None: a new axis of length 1."""


OPERATORS: dict[str, Operator[Any]] = {}
"""All operators by name, once :mod:`hwflow.cores.registry` is imported."""


class LogicalOperator(Operator[A]):
    """An operator of the quantized stage, lowered to one or more hardware operators. ``keeps_order``: its results come
    in the order of its inputs, and ``joins``: which all come in one."""

    keeps_order: ClassVar[bool] = False
    joins: ClassVar[bool] = False

    def takes_images(self, node: Node[A]) -> bool:
        """Tell whether ``node`` needs pixels of an image with their channels side by side."""
        return False

    def channel_axis(self, node: Node[A]) -> int | None:
        """Return the axis of its first input that ``node`` takes as channels; None without preference."""
        return 0 if self.takes_images(node) else None

    def axes_of_result(self, node: Node[A], axes: Axes) -> Axes | None:
        """Return ``axes``, those of its first input, by the axes of the result, of which the readers have a preference
        in the place of ``node``; None where the result's order is another one."""
        return axes if self.keeps_order else None

    @abstractmethod
    def lower(self, node: Node[A], context: LoweringContext) -> None:
        """Build the dataflow of ``node``."""


class Neighbour(Enum):
    """Whose steps a core follows that only passes beats on, in a schedule of even steps
    (:mod:`hwflow.schedule.throughput.even`)."""

    PRODUCER = auto()
    CONSUMER = auto()
    EITHER = auto()  # the consumer behind what follows that, else the producer, if it must


class HardwareOperator(Operator[A]):
    """An operator that is a core."""

    follows: ClassVar[Neighbour | None] = None  # it has steps of its own

    @abstractmethod
    def foldings(self, node: Node[A], device: Device) -> Sequence[Folding]:
        """Return every sensible folding, cheapest first."""

    def as_chosen(self, node: Node[A], folding: Folding) -> tuple[Node[A], Folding]:
        """Return the node, with the streams that it has in this ``folding``, and the folding of that; overridden if
        foldings differ in what streams carry."""
        return node, folding

    def input_view(
        self, node: Node[A], shape: tuple[int, ...], lanes: int, *, whole_vector: bool = False, index: int = 0
    ) -> tuple[int, int]:
        """Return (pixels, channels) as which the core takes input ``index``, of this shape, with ``lanes``; a pixel's
        last beat may have surplus lanes. Overridden if several pixels are taken as one with fewer lanes than they have
        elements, or one as several. ``whole_vector``: of the folding."""
        return grouped(shape, lanes)

    def output_view(self, node: Node[A], shape: tuple[int, ...], lanes: int) -> tuple[int, int]:
        """Return (pixels, channels) of an output stream of this shape with ``lanes``."""
        return grouped(shape, lanes)

    def lanes_of(self, node: Node[A], index: int, folding: Folding) -> int:
        """Return the lanes of input ``index``; overridden if inputs differ."""
        return folding.input_lanes

    def multipliers_by_form(self, node: Node[A], folding: Folding) -> Mapping[ProductForm, int]:
        """Return the multipliers by what makes their products; overridden if a core has several kinds."""
        return {folding.multiplier: folding.multipliers}

    def in_turns(self, each: Sequence[A]) -> A | None:
        """Return the attributes of one core whose frames have these in turns; None if there is no such core."""
        return None

    @abstractmethod
    def cycles(self, node: Node[A], folding: Folding) -> int:
        """Return the cycles per frame without backpressure: ``cycles`` of :meth:`timing` without its arrays."""

    def is_steady(self, node: Node[A], folding: Folding) -> bool:
        """Tell whether the core takes a beat and gives one in each step, and can be built without its queue: with a
        depth of 0, for a reader that takes every beat at once."""
        return False

    def is_registered(self, node: Node[A], folding: Folding) -> bool:
        """Tell whether a core without its queue has registers at both ends: for its inputs and for its results."""
        return False

    def between_registers(self, node: Node[A], folding: Folding, device: Device) -> Folding:
        """Return the folding in a chain behind such a core, and in front of one with registers for its inputs: of a
        core without registers, if it is small and the clock has time for it."""
        return folding

    def fixed_depth(self, node: Node[A], index: int) -> int | None:
        """Return the depth of the queue of output ``index`` where that is no decision: schedules count with it from
        the beginning. None: it is chosen."""
        return None

    def depth_behind(self, node: Node[A]) -> int | None:
        """Return the depth of the queue of what reads nothing but this core's outputs, where these have come long
        before they are read: the core's own queues are ahead. None: it is chosen."""
        return None

    def outside(self, node: Node[A]) -> Mapping[str, Any]:
        """Return what the manifest's `memory` says of the node, by its key there; {}: it has no part in that."""
        return {}

    @abstractmethod
    def timing(self, node: Node[A], decision: Decision) -> Timing:
        """Return the exact static schedule, which does not depend on the depths of output queues. Without a queue
        (depth 0) the latency is a cycle less."""

    @abstractmethod
    def resources(self, node: Node[A], decision: Decision, device: Device) -> Resources:
        """Return the predicted resources, including those of the output queues."""

    @abstractmethod
    def build(self, node: Node[A], decision: Decision, name: str) -> Built:
        """Build the core. ``name`` is the instance's HDL name; memory files are named ``name`` plus a suffix."""


class Implementation(ABC, Generic[A]):
    """A kind of core of a hardware operator: a node at a folding. ``steady``, ``registered_ends``: see
    :meth:`HardwareOperator.is_steady` and :meth:`HardwareOperator.is_registered`."""

    steady: ClassVar[bool] = False
    registered_ends: ClassVar[bool] = False

    def __init__(self, node: Node[A], folding: Folding) -> None:
        self.node = node
        self.folding = folding

    @abstractmethod
    def cycles(self) -> int:
        """Return the steps per frame of the longest process."""

    @abstractmethod
    def timing(self) -> Timing:
        """Return the exact static schedule."""

    @abstractmethod
    def resources(self, decision: Decision, family: str) -> Resources:
        """Return the predicted resources; ``decision`` has this folding."""

    @abstractmethod
    def build(self, depth: int, name: str) -> Built:
        """Build the core with a queue of ``depth`` beats; ``name``: see :meth:`HardwareOperator.build`."""


class ImplementedOperator(HardwareOperator[A]):
    """An operator of one output with several kinds of cores."""

    @abstractmethod
    def implementation(self, node: Node[A], folding: Folding) -> Implementation[A]:
        """Return the kind of core that ``folding`` means for ``node``."""

    def cycles(self, node: Node[A], folding: Folding) -> int:
        return self.implementation(node, folding).cycles()

    def is_steady(self, node: Node[A], folding: Folding) -> bool:
        return self.implementation(node, folding).steady

    def is_registered(self, node: Node[A], folding: Folding) -> bool:
        return self.implementation(node, folding).registered_ends

    def timing(self, node: Node[A], decision: Decision) -> Timing:
        timing = self.implementation(node, decision.folding).timing()
        if decision.depths == (0,):
            return replace(timing, latency=tuple(latency - 1 for latency in timing.latency))
        return timing

    def resources(self, node: Node[A], decision: Decision, device: Device) -> Resources:
        return self.implementation(node, decision.folding).resources(decision, device.family)

    def build(self, node: Node[A], decision: Decision, name: str) -> Built:
        return self.implementation(node, decision.folding).build(decision.depth, name)


def exact_matmul(x: IntArray, weights: IntArray) -> IntArray:
    """Multiply x [..., K] by weights [M, K] transposed, exactly, for results within 64 signed bits.

    In float64, for which there are fast routines, if every sum stays below 2**53. Wider weights are cut into slices of
    so many bits that it holds for each; overflow in the sum of the slices does not matter to a result that fits.
    """
    terms = int(np.abs(x).max(initial=0)) * max(1, x.shape[-1])
    heaviest = max(-int(weights.min(initial=0)), int(weights.max(initial=0)))
    if terms * heaviest < 1 << _FLOAT_BITS:
        return _float_matmul(x, weights)
    bits = _FLOAT_BITS - terms.bit_length()
    if bits < 1:
        return x @ weights.astype(np.int64).T
    total = np.zeros((*x.shape[:-1], len(weights)), dtype=np.int64)
    for shift in range(0, min(64, heaviest.bit_length() + 1), bits):
        rest = weights >> shift
        slices = rest if heaviest >> shift < 1 << (bits - 1) else rest & ((1 << bits) - 1)
        total += _float_matmul(x, slices) << shift
        if slices is rest:
            break
    return total


def exact_product(x: IntArray, y: IntArray) -> IntArray:
    """Return numpy's ``x @ y``, exactly, for results within 64 signed bits; in float64 where all sums are exact."""
    reach = max(1, x.shape[-1]) * int(np.abs(x).max(initial=0)) * int(np.abs(y).max(initial=0))
    if reach < 1 << _FLOAT_BITS:
        product: npt.NDArray[np.float64] = x.astype(np.float64) @ y.astype(np.float64)
        return product.astype(np.int64)
    return x @ y


_FLOAT_BITS = 53  # integers below 2**53 are exact in float64


def _float_matmul(x: IntArray, weights: IntArray) -> IntArray:
    product: npt.NDArray[np.float64] = x.astype(np.float64) @ weights.T.astype(np.float64)
    return product.astype(np.int64)


def beats(shape: tuple[int, ...], lanes: int) -> int:
    """Return the beats per frame of a stream (pixels, channels) with ``lanes``, see :class:`Folding`."""
    return beats_of_view(grouped(shape, lanes), lanes)


def beats_of_view(view: tuple[int, int], lanes: int) -> int:
    """Return the beats per frame of a stream that its core sees as ``view``: each pixel's last may have surplus lanes,
    which may be its only one (:meth:`HardwareOperator.input_view`)."""
    pixels, channels = view
    return pixels * -(-channels // lanes)


def grouped(shape: tuple[int, ...], lanes: int) -> tuple[int, int]:
    """Return (pixels, channels) of the same stream, with as many pixels taken as one as a beat holds, at least one."""
    pixels, channels = shape
    together = max(1, lanes // channels)
    if lanes > channels and (lanes % channels or pixels % together):
        raise ValueError(
            f"lanes must be at most {channels} (the channels) or whole pixels that divide the {pixels} of a frame, "
            f"not {lanes}"
        )
    return pixels // together, channels * together
