"""What nodes of the quantized graph say of their operators: a frozen dataclass each.

Axes are those of a frame. What operators do is in :mod:`hwflow.cores`, where hardware operators have their attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from hwflow.ir.graph import Attributes, Delaying, Graph, IntArray
from hwflow.ir.integer_functions import Function
from hwflow.numerics.requantizers.held_form import HeldForm
from hwflow.numerics.requantizers.stages import Stage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.types import Interval, IntType, TensorType


class Aggregate(StrEnum):
    """What becomes of the values of an ensemble's trees."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"


class Take(StrEnum):
    """What is taken of the greatest elements. The values are the words of :class:`hdl_lib.streams.top_k.TopK`."""

    INDEX = "index"
    VALUE = "value"
    BOTH = "both"  # value * 2**b + index, b = hdl_lib.streams.top_k.index_bits


@dataclass(frozen=True)
class Window:
    """A sliding window, an entry for each spatial axis; ``pads``: in front of each axis, then behind each."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ByRoundAttributes(Attributes):
    """Of a node in the body of a loop whose constants differ from round to round: those of ``each`` round, of one
    operator. Its core takes them in turns."""

    op = "by_round"
    each: tuple[Attributes, ...]


@dataclass(frozen=True, eq=False)
class ConcatAttributes(Attributes):
    """Tensors follow each other along ``axis``."""

    op = "concat"
    axis: int


@dataclass(frozen=True)
class HeldSums:
    """What hardware holds for other weights than a node has: signed ones of so many bits, and sums within an interval.
    ``loadable``: they are written while the design runs."""

    weight_bits: int
    sums: Interval
    loadable: bool = False


@dataclass(frozen=True)
class HeldFactors:
    """What hardware of a scaled sum holds for other multipliers than its own: signed ones of so many bits, of the first
    and of the second input, and sums within an interval. ``loadable``: they are written while the design runs."""

    bits: tuple[int, int]
    sums: Interval
    loadable: bool = False


@dataclass(frozen=True, eq=False)
class Conv2dAttributes(Attributes):
    """``weights`` int64 [M, C / groups, kh, kw] (weight zero point already subtracted); ``groups`` of channels that are
    convolved by themselves; ``pads``: top, left, bottom, right; ``pad_value``: the input's zero point; ``binary`` (not
    where a group is one channel): weights and inputs are 0 and 1, what is summed is 1 where they are equal, else 0, and
    there are no pads; ``centred`` (only of one group): elements count from ``pad_value`` on, so that padding adds
    nothing, which is the negative power of two that is least of the input's ONNX type; ``held``: room for others."""

    op = "conv2d"
    weights: IntArray
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    pad_value: int
    groups: int = 1
    binary: bool = False
    centred: bool = False
    held: HeldSums | None = None

    @property
    def window(self) -> Window:
        """The window over the spatial axes."""
        return Window(self.weights.shape[2:], self.strides, self.pads, self.dilations)


@dataclass(frozen=True, eq=False)
class DelayAttributes(Delaying):
    """Frame n of the result, which has this ``type``, is frame n - ``frames`` of the operand: state. ``initial``, of
    the shape of a frame, is what the first ``frames`` are."""

    op = "delay"
    type: TensorType
    initial: IntArray
    frames: int = 1

    @property
    def first_frames(self) -> IntArray:
        return np.broadcast_to(self.initial, (self.frames, *self.type.shape))


@dataclass(frozen=True, eq=False)
class RunningSums(Attributes):
    """``exclusive``: an element itself does not count; ``wrap``: the integer type that sums wrap around to, as ONNX's
    (None: they are exact)."""

    exclusive: bool
    wrap: IntType | None


@dataclass(frozen=True, eq=False)
class CumulativeSumAttributes(RunningSums):
    """``axis`` (not negative); ``reverse``: from its end."""

    op = "cumulative_sum"
    axis: int
    reverse: bool


@dataclass(frozen=True, eq=False)
class DenseAttributes(Attributes):
    """``weights`` int64 [M, K] (weight zero point already subtracted), or [sets, M, K] of which rows take one after the
    other in turns; ``binary``: weights and inputs are 0 and 1, and what is summed is 1 where they are equal, else 0;
    ``held``: room for other weights."""

    op = "dense"
    weights: IntArray
    binary: bool = False
    held: HeldSums | None = None


@dataclass(frozen=True, eq=False)
class ElementwiseAttributes(Attributes):
    """``constants``: for each operand its value where it is one number, an int64 array of the result's shape where it
    is a constant tensor, else None: those alone are inputs; ``wrap``: the integer type that the result wraps around to,
    as ONNX's (None: it is exact)."""

    op = "elementwise"
    function: Function
    constants: tuple[int | IntArray | None, ...]
    wrap: IntType | None


@dataclass(frozen=True, eq=False)
class InterpolateAttributes(Attributes):
    """``starts`` int64 [outputs]; ``weights`` int64 [outputs, window]: along ``axis``, element k of the result is the
    sum of ``weights[k]`` times the elements from ``starts[k]`` on."""

    op = "interpolate"
    axis: int
    starts: IntArray
    weights: IntArray


@dataclass(frozen=True, eq=False)
class LoopAttributes(Attributes):
    """``rounds`` rounds of a ``body``, which is a graph of the quantized stage; a frame of it is one round.

    The body's inputs are ``scanned`` ones, then a state for each of ``states``, then those that are the same in every
    round. The node's inputs are those of the body: scanned ones are [rounds, *shape of the body's], of which round k
    takes row k; of a state, what it is in the first round, but none where ``first`` has a number, which all of its
    elements are then. Its outputs are those of the body, [rounds, *shape]. ``states[k]``: the body's output that state
    k is in the next round.
    """

    op = "loop"
    body: Graph
    rounds: int
    scanned: int
    states: tuple[int, ...]
    first: tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class MatrixProductAttributes(Attributes):
    """``(a - offsets[0]) @ (b - offsets[1])`` as numpy has it, of a [..., M, K] and b [..., K, N]; axes before these
    broadcast. ``inner``: K."""

    op = "matrix_product"
    offsets: tuple[int, ...]
    inner: int


@dataclass(frozen=True, eq=False)
class MaxPool2dAttributes(Attributes):
    """``least``: the minimum. No window is of padding only."""

    op = "max_pool2d"
    window: Window
    least: bool = False


@dataclass(frozen=True, eq=False)
class PixelProductAttributes(Attributes):
    """``factors`` int64, of the image's spatial shape."""

    op = "pixel_product"
    factors: IntArray


@dataclass(frozen=True, eq=False)
class ProductAttributes(Attributes):
    """``(a - offsets[0]) * (b - offsets[1])``; ``wrap``: the integer type that the result wraps around to, as ONNX's
    (None: it is exact); ``square``: both factors are the same."""

    op = "product"
    offsets: tuple[int, ...]
    wrap: IntType | None = None
    square: bool = False


@dataclass(frozen=True, eq=False)
class QuotientAttributes(Attributes):
    """Of ``a * 2**fraction / b`` with a positive b: its magnitude is below ``2**bits``, as the operands' makers
    guarantee."""

    op = "quotient"
    fraction: int
    bits: int


@dataclass(frozen=True, eq=False)
class ReindexAttributes(Attributes):
    """``index`` int64, of the result's frame shape: flat index into the input's frame, or -1 for ``fill``."""

    op = "reindex"
    index: IntArray
    fill: int


@dataclass(frozen=True, eq=False)
class RequantizeAttributes(Attributes):
    """``axis``: of channels; ``stages``: one entry, or one per channel: a chain of stages. Derived: ``steps``, one step
    function per channel, exact. ``epsilon``: by how much, in output steps, the real number that is rounded may be off,
    because the integers are approximations; 0 where they are exact. ``rounds`` (of hardware): there are stages and
    steps for the channels of so many frames, which take turns. ``row`` (of hardware): a round is a row of so many
    elements, of one channel. ``held``: what hardware has room for, in which the steps are a multiply-add-shift."""

    op = "requantize"
    axis: int
    stages: tuple[tuple[Stage, ...], ...]
    steps: tuple[StepFunction, ...] = ()
    epsilon: Fraction = Fraction(0)
    rounds: int = 1
    row: int = 0
    held: HeldForm | None = None


@dataclass(frozen=True, eq=False)
class ReshapeAttributes(Attributes):
    """``shape``: of the same number of elements."""

    op = "reshape"
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RootAttributes(Attributes):
    """Of ``sqrt(a * 4**fraction + addend)``: of a number that is not negative, as the operand's makers guarantee (sums
    of squares, whose type may say less)."""

    op = "root"
    fraction: int
    addend: int


@dataclass(frozen=True, eq=False)
class ScaledAddAttributes(Attributes):
    """``multipliers``: of the first and of the second input: integers that are not 0, one or one per channel; ``axis``:
    the channel axis that they vary along. ``rounds`` (of hardware): they are one, or one for each channel of so many
    frames, which take turns. ``held``: room for others, one of each input."""

    op = "scaled_add"
    axis: int
    multipliers: tuple[tuple[int, ...], ...]
    rounds: int = 1
    held: HeldFactors | None = None


@dataclass(frozen=True, eq=False)
class SumPool2dAttributes(Attributes):
    """``pad_value``: the zero point where padding counts as the real 0."""

    op = "sum_pool2d"
    window: Window
    pad_value: int


@dataclass(frozen=True, eq=False)
class TableLookupAttributes(Attributes):
    """``table`` int64 [rows, columns]; each element of the input is a row's number, where negative ones count from the
    end and what lies beyond is the nearest row. The result has one more axis, of columns."""

    op = "table_lookup"
    table: IntArray


@dataclass(frozen=True, eq=False)
class Ranking(Attributes):
    """The ``k`` greatest, the greatest first; ``least``: the least instead; ``last``: of equal ones the last comes
    first, not the first."""

    k: int
    least: bool
    last: bool
    take: Take


@dataclass(frozen=True, eq=False)
class TopKAttributes(Ranking):
    """``axis`` (not negative)."""

    op = "top_k"
    axis: int


@dataclass(frozen=True, eq=False)
class TransposeAttributes(Attributes):
    """Output axis i is input axis ``perm[i]``."""

    op = "transpose"
    perm: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TreeEnsembleAttributes(Attributes):
    """Decision trees over the last axis, whose elements are features; the result has ``targets`` instead.

    ``feature``, ``limit``, ``missing`` (bool), ``true``, ``false``: of each node. Its test holds for a frame whose
    element ``feature`` is less than ``limit``, and if ``missing``, also where it is ``missing_rank[feature]`` (int64
    [features]; -1: never). ``true`` and ``false`` are the next node's index, or ``~leaf``. A node's children come after
    it; several nodes of a tree may share one. ``roots``: of each tree, in the same way; no two trees share anything.

    Leaf n gives ``leaf_value[k]`` to target ``leaf_target[k]`` for k from ``leaf_start[n]`` to before
    ``leaf_start[n + 1]``, to none twice. A sum is of all trees; a minimum or a maximum is of trees that all give a
    value to each target. Results have at most 62 bits.
    """

    op = "tree_ensemble"
    feature: IntArray
    limit: IntArray
    missing: npt.NDArray[np.bool_]
    missing_rank: IntArray
    true: IntArray
    false: IntArray
    roots: IntArray
    leaf_start: IntArray
    leaf_target: IntArray
    leaf_value: IntArray
    targets: int
    aggregate: Aggregate = Aggregate.SUM
