"""Facts about a node: its operator's demands on the sizes of inputs and outputs.

Only demands that hold for every legal run of the node are included. Multidirectional broadcasting demands nothing of an
unknown size, which may be 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from onnx import AttributeProto

from hwflow.display import show
from hwflow.onnxspec.graphs.scopes import Node

Size: TypeAlias = int | str | None  # a number, a variable, or unknown
Shapes: TypeAlias = Callable[[str], Sequence[Size] | None]  # of a value by its name; None if its rank is not known


class Term(NamedTuple):
    """A size and its place: axis ``axis`` of the value ``name``, or element ``axis`` of the attribute."""

    size: Size
    name: str
    axis: int
    attribute: bool = False

    @property
    def text(self) -> str:
        """"axis 1 of 'x'"."""
        what = f"element {self.axis} of attribute" if self.attribute else f"axis {self.axis} of"
        return f"{what} {show(self.name)}"


@dataclass(frozen=True, slots=True)
class Equal:
    """``left`` is ``factor`` times the sum of ``right``."""

    left: Term
    right: tuple[Term, ...]
    factor: int = 1


@dataclass(frozen=True, slots=True)
class OneOrEqual:
    """``right`` is 1 or equal to ``left``, to which it broadcasts."""

    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Multiple:
    """``left`` is a multiple of ``divisor``, which ``text`` names."""

    left: Term
    divisor: int
    text: str


@dataclass(frozen=True, slots=True)
class SameElements:
    """Tensors with the sizes ``left`` and ``right`` have equally many elements. ``names``: of both."""

    left: tuple[Size, ...]
    right: tuple[Size, ...]
    names: tuple[str, str]


@dataclass(frozen=True, slots=True)
class AtLeastOne:
    """The attribute ``name`` is at least 1."""

    value: int
    name: str


Fact: TypeAlias = Equal | OneOrEqual | Multiple | SameElements | AtLeastOne


class _Reading:
    """A node with the sizes of its inputs and outputs."""

    def __init__(self, node: Node, shapes: Shapes) -> None:
        self.node = node
        self._shapes = shapes

    def name(self, index: int) -> str:
        return self.node.inputs[index] if 0 <= index < len(self.node.inputs) else ""

    def shape(self, name: str, rank: int | None = None) -> Sequence[Size] | None:
        """Return the sizes of a value; None if unknown, or not of this rank."""
        shape = self._shapes(name) if name else None
        return None if shape is None or (rank is not None and len(shape) != rank) else shape

    def size(self, name: str, axis: int) -> Size:
        shape = self._shapes(name) if name else None
        return shape[axis] if shape is not None and axis < len(shape) else None

    def term(self, name: str, axis: int) -> Term:
        return Term(self.size(name, axis), name, axis)

    def equal(self, left: str, left_axis: int, right: str, right_axis: int, factor: int = 1) -> Iterator[Equal]:
        """Yield the fact that an axis is ``factor`` times as long as another, unless known."""
        size, other = self.size(left, left_axis), self.size(right, right_axis)
        if not (isinstance(size, int) and isinstance(other, int) and size == factor * other):
            yield Equal(Term(size, left, left_axis), (Term(other, right, right_axis),), factor)

    def integer(self, name: str, default: int) -> int | None:
        """Return an INT attribute; None if it refers to one of a function, or is no integer."""
        for attribute in self.node.attributes:
            if attribute.name == name:
                plain = attribute.type == AttributeProto.INT and not attribute.ref_attr_name
                return int(attribute.i) if plain else None
        return default

    def integers(self, name: str) -> list[int]:
        for attribute in self.node.attributes:
            if attribute.name == name and attribute.type == AttributeProto.INTS:
                return list(attribute.ints)
        return []


def _product(a: int, b: int, r: _Reading) -> Iterator[Fact]:
    left, right = r.name(a), r.name(b)
    x, y = r.shape(left), r.shape(right)
    if x and y:
        yield from r.equal(left, len(x) - 1, right, max(len(y) - 2, 0))


def _gemm(r: _Reading) -> Iterator[Fact]:
    left, right = r.name(0), r.name(1)
    flipped, turned = r.integer("transA", 0), r.integer("transB", 0)
    if r.shape(left, 2) and r.shape(right, 2) and flipped is not None and turned is not None:
        yield from r.equal(left, int(not flipped), right, int(bool(turned)))
        addend = r.shape(r.name(2))
        if addend is not None and len(addend) <= 2:
            ends = (r.term(left, int(bool(flipped))), r.term(right, int(not turned)))
            for axis in range(len(addend)):
                yield OneOrEqual(ends[axis - len(addend)], r.term(r.name(2), axis))


def _conv(x: int, w: int, bias: int, transposed: bool, r: _Reading) -> Iterator[Fact]:
    image, weights = r.name(x), r.name(w)
    group, shape = r.integer("group", 1), r.shape(weights)
    if group is None or group < 1 or not shape or len(shape) < 3:
        return
    inside, outside = (0, 1) if transposed else (1, 0)
    yield from r.equal(image, 1, weights, inside, 1 if transposed else group)
    if group > 1:
        yield Multiple(r.term(weights, 0), group, f"{group} groups")
    if r.shape(r.name(bias), 1) is not None:
        yield from r.equal(r.name(bias), 0, weights, outside, group if transposed else 1)
    kernel = r.integers("kernel_shape")
    if len(kernel) == len(shape) - 2 and tuple(kernel) != tuple(shape[2:]):
        for axis, size in enumerate(kernel):
            yield Equal(r.term(weights, axis + 2), (Term(size, "kernel_shape", axis, True),))


def _channel_vectors(places: Sequence[int], r: _Reading) -> Iterator[Fact]:
    for place in places:
        if r.shape(r.name(place), 1) is not None:
            yield from r.equal(r.name(place), 0, r.name(0), 1)


def _axis(r: _Reading, name: str, default: int) -> int | None:
    shape, axis = r.shape(name), r.integer("axis", default)
    if shape is None or axis is None or not -len(shape) <= axis < len(shape):
        return None
    return axis % len(shape)


def _concat(r: _Reading) -> Iterator[Fact]:
    names, result = [name for name in r.node.inputs if name], r.node.outputs[0]
    axis = _axis(r, names[0], 1) if names else None
    ranks = {None if shape is None else len(shape) for shape in map(r.shape, (*names, result))}
    if axis is None or len(ranks) != 1:
        return
    yield Equal(r.term(result, axis), tuple(r.term(name, axis) for name in names))
    for other in range(next(iter(ranks)) or 0):
        if other != axis:
            for name in names[1:]:
                yield from r.equal(name, other, names[0], other)


def _split(r: _Reading) -> Iterator[Fact]:
    axis, results = _axis(r, r.name(0), 0), r.node.outputs
    if axis is not None and all(r.shape(name) is not None for name in results):
        yield Equal(r.term(r.name(0), axis), tuple(r.term(name, axis) for name in results))


def _reshape(r: _Reading) -> Iterator[Fact]:
    names = (r.name(0), r.node.outputs[0])
    left, right = map(r.shape, names)
    if left is not None and right is not None:
        yield SameElements(tuple(left), tuple(right), names)


def _blocks(axes: Sequence[int], power: int, r: _Reading) -> Iterator[Fact]:
    size = r.integer("blocksize", 0)
    if size is not None and size > 0 and r.shape(r.name(0), 4) is not None:
        for axis in axes:
            yield Multiple(r.term(r.name(0), axis), size**power, f"blocksize {size}")


def _recurrent(gates: int, r: _Reading) -> Iterator[Fact]:
    x, w, recurrence = r.name(0), r.name(1), r.name(2)
    if all(r.shape(name, 3) is not None for name in (x, w, recurrence)):
        yield from r.equal(x, 2, w, 2)
        yield from r.equal(w, 1, recurrence, 1)
        yield from r.equal(recurrence, 1, recurrence, 2, gates)


def _slope(r: _Reading) -> Iterator[Fact]:
    x, slope = r.shape(r.name(0)), r.shape(r.name(1))
    if x is not None and slope is not None and len(slope) <= len(x):
        for axis in range(len(slope)):
            yield OneOrEqual(r.term(r.name(0), len(x) - len(slope) + axis), r.term(r.name(1), axis))


def _groups(r: _Reading) -> Iterator[Fact]:
    groups = r.integer("num_groups", 1)
    if groups is not None and groups > 0:
        yield Multiple(r.term(r.name(0), 1), groups, f"{groups} groups")


def _nothing(r: _Reading) -> Iterator[Fact]:
    return iter(())


@dataclass(frozen=True)
class SizeRule:
    """An operator's demands on sizes: the facts that ``read`` yields, since version ``since`` of ai.onnx, and
    attributes ``positive`` that must be at least 1, which inference does not check. ``of_results``: some demand
    concerns the outputs."""

    read: Callable[[_Reading], Iterator[Fact]] = _nothing
    positive: tuple[str, ...] = ()
    since: int = 1
    of_results: bool = False


_BROADCAST_SINCE = 9  # earlier versions broadcast slopes, addends and statistics differently

GEMM = SizeRule(_gemm, since=_BROADCAST_SINCE)
SLOPE = SizeRule(_slope, since=_BROADCAST_SINCE)
GROUPS = SizeRule(_groups, ("num_groups",))
CONCAT = SizeRule(_concat, of_results=True)
SPLIT = SizeRule(_split, of_results=True)
RESHAPED = SizeRule(_reshape, of_results=True)


def product(left: int, right: int) -> SizeRule:
    """Return the rule of a product of the matrices at these indices."""
    return SizeRule(partial(_product, left, right))


def convolution(x: int, w: int, bias: int = -1) -> SizeRule:
    """Return the rule of a convolution of the image ``x`` with the weights ``w``; -1: no bias."""
    return SizeRule(partial(_conv, x, w, bias, False), ("group",))


def transposed_convolution(x: int, w: int, bias: int) -> SizeRule:
    """Return the rule of a transposed convolution."""
    return SizeRule(partial(_conv, x, w, bias, True), ("group",))


def channel_vectors(*places: int, since: int = 1) -> SizeRule:
    """Return the rule of vectors with one element per channel of the image, the first input."""
    return SizeRule(partial(_channel_vectors, places), since=since)


def statistics() -> SizeRule:
    """Return the rule of scale, bias, mean and variance per channel."""
    return channel_vectors(1, 2, 3, 4, since=_BROADCAST_SINCE)


def blocks(*axes: int, power: int) -> SizeRule:
    """Return the rule of an image whose ``axes`` are multiples of the block size to that power."""
    return SizeRule(partial(_blocks, axes, power))


def recurrent(gates: int) -> SizeRule:
    """Return the rule of weights of an input and of a state, for so many gates."""
    return SizeRule(partial(_recurrent, gates))


def positive(*attributes: str) -> SizeRule:
    """Return the rule of attributes that must be at least 1."""
    return SizeRule(positive=attributes)


def facts(rule: SizeRule, node: Node, version: int, shapes: Shapes) -> Iterator[Fact]:
    """Yield the demands of ``node``, whose operator has the ``rule``, of that version of ai.onnx, on the sizes or
    variables in ``shapes``."""
    if node.domain or not node.outputs or version < rule.since:
        return
    reading = _Reading(node, shapes)
    for name in rule.positive:
        value = reading.integer(name, 1)
        if value is not None:
            yield AtLeastOne(value, name)
    yield from filter(_is_known, rule.read(reading))


def _is_known(fact: Fact) -> bool:
    """Tell whether every size in a fact is known or a variable."""
    if isinstance(fact, SameElements):
        return None not in fact.left and None not in fact.right
    if isinstance(fact, Equal):
        return fact.left.size is not None and all(term.size is not None for term in fact.right)
    if isinstance(fact, OneOrEqual):
        return fact.left.size is not None and fact.right.size is not None
    return not isinstance(fact, Multiple) or fact.left.size is not None


def integer_root(value: int, power: int) -> int | None:
    """Return the integer root of degree ``power`` of ``value`` (at least 1); None if there is none."""
    guess = round(value ** (1 / power)) if value < 1 << 1000 else math.isqrt(value)
    return next((n for n in (guess - 1, guess, guess + 1) if n >= 0 and n**power == value), None)
