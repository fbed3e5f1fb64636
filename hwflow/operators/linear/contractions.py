"""Sums of products of streams and constants with named axes, built of existing operators: products with constants are
dense layers or scales, products of streams are matrix products, or computed element by element, sums are pools.

Axes are those of a frame. Integer tensors wrap to their type after each step; sums and products allow that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from hwflow.frontend.context import Lowering, made, refuse
from hwflow.frontend.views import (
    Constant,
    Integers,
    QuantizedConstant,
    Reals,
    as_array,
    as_reals,
    changed,
    compact,
    fractions,
    relocated,
    uniform,
)
from hwflow.ir.graph import Fractions, IntArray
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import ReindexAttributes
from hwflow.numerics.requantizers.staircase import LIMIT
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.alignment import aligned
from hwflow.operators.elementwise.arithmetic import affine, combined, product_of
from hwflow.operators.elementwise.keys import times
from hwflow.operators.elementwise.lattice import from_zero, plain, whole_zero_point
from hwflow.operators.linear.matmul import product_with
from hwflow.operators.linear.pools import whole, window_sum
from hwflow.operators.linear.stream_products import product_of_streams
from hwflow.operators.moves.reshapes import reshaped, transposed
from hwflow.types import IntType

Names = tuple[str, ...]

MAX_PRODUCTS = 1 << 19
"""The most products of elements of two streams per frame; each takes a part of a cycle."""

MAX_ELEMENTS = 1 << 23
"""The most elements of a product of constants."""


@dataclass(frozen=True)
class Stream:
    """A frame of ``view`` has the axes ``names``, each once; [1] where there are none."""

    view: Integers | Reals
    names: Names


@dataclass(frozen=True)
class Known:
    """A constant with the axes ``names``, each once; ``name``: of the value, in messages."""

    view: Constant | QuantizedConstant
    names: Names
    name: str


class Contraction:
    """The work of one ``node``. ``sizes``: of all axes; ``wrap``: the type of integer tensors, None for reals."""

    def __init__(
        self, state: Lowering, node: OnnxNode, sizes: Mapping[str, int], wrap: IntType | None
    ) -> None:
        self._state, self._node, self._sizes, self._wrap = state, node, sizes, wrap

    def result(self, streams: Sequence[Stream], constants: Sequence[Known], names: Names) -> Stream:
        """Return the product of all operands with the axes ``names``, summed over all others. The constants are
        multiplied with the stream that shares most of their axes if that allows a sum over some of them, else with
        the streams' product."""
        left = [*streams]
        known = self._known(constants, {*names, *(name for stream in left for name in stream.names)})
        waits: Names = ()
        if known is not None:
            own = set(known.names)
            place = max(range(len(left)), key=lambda i: len(set(left[i].names) & own))
            rest = {*names, *(name for i, stream in enumerate(left) if i != place for name in stream.names)}
            if len(left) == 1 or (set(left[place].names) & own) - rest:
                left[place], known = self._contracted(left[place], known, rest), None
            else:
                waits = known.names
        result = left[0]
        for number, other in enumerate(left[1:], start=1):
            later = {*names, *waits, *(name for stream in left[number + 1 :] for name in stream.names)}
            result = self._summed(result, later.union(other.names))
            other = self._summed(other, later.union(result.names))
            result = self._matrix_product(result, other, later) or self._summed(self._multiplied(result, other), later)
        if known is not None:
            result = self._contracted(result, known, names)
        return self._spread(self._summed(result, names), names)

    # Moves.

    def _shape(self, names: Names) -> tuple[int, ...]:
        return tuple(self._sizes[name] for name in names) or (1,)

    def _in_shape(self, view: Integers | Reals, shape: tuple[int, ...]) -> Integers | Reals:
        if view.shape == shape:
            return view
        return reshaped(self._state, self._node, view, shape)

    def _spread(self, stream: Stream, names: Names) -> Stream:
        """Broadcast ``stream`` to the axes ``names``, in this order."""
        view = stream.view
        own = tuple(name for name in names if name in stream.names)
        if own != stream.names:
            perm = tuple(stream.names.index(name) for name in own)
            view = transposed(self._state, self._node, view, perm)
        if own == names:
            return Stream(view, names)
        shape, short = self._shape(names), tuple(self._sizes[name] if name in own else 1 for name in names)
        if shape == short:
            return Stream(self._in_shape(view, shape), names)

        def change(array: Any) -> Any:
            return np.broadcast_to(array.reshape(short), shape)

        index = change(np.arange(prod(view.shape)))
        value = self._state.add(self._node, [view.value], ReindexAttributes(index, 0), origin="")
        return Stream(relocated(view, value, shape, change), names)

    # Integer tensors, whose products and sums wrap.

    def _exact(self, view: Integers | Reals) -> Reals:
        """Return integers as reals."""
        return view if isinstance(view, Reals) else as_reals(view, self._node.inputs[0])

    def _wrapped(self, view: Reals) -> Integers | Reals:
        """Wrap the result of exact arithmetic if it is of an integer type."""
        if self._wrap is None:
            return view
        assert uniform(view.scale) == 1 and uniform(view.zero_point) == 0, "whole numbers"
        operands: list[integers.Operand] = [Integers(view.value, view.shape, 0, 0)]
        return integers.step(self._state, self._node, Simple("wrap"), operands, self._wrap, last=False)

    # Sums.

    def _summed(self, stream: Stream, kept: Collection[str]) -> Stream:
        """Sum ``stream`` over all axes but ``kept``."""
        over = tuple(name for name in stream.names if name not in kept)
        if not over:
            return stream
        names = tuple(name for name in stream.names if name in kept)
        channels, count = prod(self._shape(names)), prod(self._shape(over))
        turned = self._spread(stream, (*names, *over)).view
        image = self._in_shape(turned, (channels, 1, count))
        if count > 1:
            view = self._alike(self._exact(image))
            sums = window_sum(self._state, self._node, view, whole(image.shape), (channels, 1, 1), origin="")
            image = self._wrapped(times(sums, Fraction(count)))
        return Stream(self._in_shape(image, self._shape(names)), names)

    def _alike(self, view: Reals) -> Reals:
        """Return summands with one scale, zero point and function per channel."""
        if all(size == 1 for v in (view.scale, view.zero_point, *view.functions) for size in v.shape[1:]):
            return view
        (whole_numbers,), unit = aligned(self._state, self._node, [view])
        assert isinstance(whole_numbers, Integers), "a stream"
        return replace(
            view, value=whole_numbers.value, scale=unit, zero_point=fractions(0), functions=(), nodes=(), low=None,
            high=None,
        )

    # Products.

    def _matrix_product(self, left: Stream, right: Stream, kept: Collection[str]) -> Stream | None:
        """Multiply two streams as matrices, summed over the axes of both that are not ``kept``; None where that would
        be a product of vectors, or is not exact."""
        batch, rows, inner, columns = (
            tuple(name for name in left.names if name in right.names and name in kept),
            tuple(name for name in left.names if name not in right.names),
            tuple(name for name in left.names if name in right.names and name not in kept),
            tuple(name for name in right.names if name not in left.names),
        )
        if not (rows and columns) and not (inner and (rows or columns)):
            return None
        count = [prod(self._shape(names)) for names in (batch, rows, inner, columns)]
        a, b = (
            self._exact(self._in_shape(self._spread(stream, names).view, (count[0], *shape)))
            for stream, names, shape in (
                (left, (*batch, *rows, *inner), (count[1], count[2])),
                (right, (*batch, *inner, *columns), (count[2], count[3])),
            )
        )
        if self._wrap is not None and count[2] * _greatest(a) * _greatest(b) > LIMIT:
            return None
        if (a.scale.ndim and a.scale.shape[-1] > 1) or (b.scale.ndim and b.scale.shape[-2] > 1):
            return None
        result = product_of_streams(self._state, self._node, a, b, self._node.inputs[:2], last=False)
        names = (*batch, *rows, *columns)
        return Stream(self._in_shape(self._wrapped(result), self._shape(names)), names)

    def _multiplied(self, left: Stream, right: Stream) -> Stream:
        """Multiply two streams elementwise."""
        names = (*left.names, *(name for name in right.names if name not in left.names))
        shape = self._shape(names)
        if prod(shape) > MAX_PRODUCTS:
            raise refuse(
                self._node, "contraction-size",
                f"two streams must have at most {MAX_PRODUCTS} products per frame, made one by one, not {prod(shape)} "
                f"{list(shape)}",
                "multiply by a constant, or smaller tensors",
            )
        a, b = (self._spread(stream, names).view for stream in (left, right))
        if isinstance(a, Integers) and isinstance(b, Integers):
            assert self._wrap is not None, "integer tensors"
            state, node = self._state, self._node
            return Stream(integers.step(state, node, integers.Product(), [a, b], self._wrap, last=False), names)
        assert isinstance(a, Reals) and isinstance(b, Reals), "both are reals"
        if a.value is b.value:
            return Stream(combined(self._node, "mul", a, b), names)
        return Stream(product_of(self._state, self._node, self._one_zero(a), self._one_zero(b)), names)

    def _one_zero(self, view: Reals) -> Reals:
        """Return ``view`` with one zero point for all elements, which products of streams need."""
        view = plain(self._state, self._node, view)
        if uniform(view.zero_point) is not None:
            return view
        return from_zero(self._state, self._node, whole_zero_point(self._state, self._node, view))

    def _contracted(self, stream: Stream, known: Known, kept: Collection[str]) -> Stream:
        """Multiply ``stream`` by a constant and sum over all axes but ``kept``."""
        stream = self._summed(stream, {*kept, *known.names})
        inner = tuple(name for name in stream.names if name in known.names and name not in kept)
        if not inner:
            return self._scaled(stream, known)
        batch = tuple(name for name in stream.names if name in known.names and name in kept)
        rows = tuple(name for name in stream.names if name not in known.names)
        columns = tuple(name for name in known.names if name not in stream.names)
        counts = [prod(self._shape(names)) for names in (batch, rows, inner, columns)]
        turned = self._spread(stream, (*batch, *rows, *inner)).view
        view = self._exact(self._in_shape(turned, (counts[0], counts[1], counts[2])))
        order = _order(known, (*batch, *inner, *columns), self._sizes)
        weights = changed(known.view, lambda array: array.reshape(-1)[order].reshape(counts[0], counts[2], counts[3]))
        assert isinstance(weights, Constant | QuantizedConstant), "a constant stays one"
        if self._wrap is not None:
            weights = self._short(view, weights)
        view, weights = self._one_scale_a_row(view, weights)
        result = self._wrapped(product_with(self._state, self._node, view, weights, known.name))
        names = (*batch, *rows, *columns)
        return Stream(self._in_shape(result, self._shape(names)), names)

    def _short(self, view: Reals, weights: Constant | QuantizedConstant) -> QuantizedConstant:
        """Return weights of integer tensors, as near to 0 as wrapping to their type allows."""
        assert isinstance(weights, Constant) and self._wrap is not None, "what is not quantized"
        half = 1 << (self._wrap.bits - 1)
        values: IntArray = (weights.array.astype(np.int64) + half) % (2 * half) - half
        assert view.low is not None and view.high is not None, "of integers the range is known"
        reach = max(-view.low, view.high) * int(np.abs(values).astype(object).sum(axis=1).max(initial=0))
        if reach > LIMIT:
            raise refuse(
                self._node, "contraction-bits",
                f"sums of products must have at most {LIMIT.bit_length()} bits before they wrap around, not "
                f"{reach.bit_length()}",
                "use integers of fewer bits, or smaller constants",
            )
        return QuantizedConstant(values, fractions(1), fractions(0))

    def _one_scale_a_row(
        self, view: Reals, weights: Constant | QuantizedConstant
    ) -> tuple[Reals, Constant | QuantizedConstant]:
        """Return the stream [batch, rows, inner] with one scale per row, and the weights [batch, inner, columns] times
        the scales that differ along other axes; without a batch, [rows, inner]."""
        view = plain(self._state, self._node, view)
        if uniform(view.zero_point) is None:
            view = from_zero(self._state, self._node, whole_zero_point(self._state, self._node, view))
        scale = view.scale
        if scale.ndim == 3 and scale.shape[2] > 1:
            # A product of streams has the product of their scales: one along the rows times one along the inner axis.
            rows, inner = scale[:, :, :1], scale[:, :1, :] / scale[:, :1, :1]
            if (rows * inner == scale).all():
                scaled = np.broadcast_to(_real(weights), _shape_of(weights)) * inner.reshape(*inner.shape[::2], 1)
                view, weights = replace(view, scale=compact(as_array(rows))), _quantized(as_array(scaled))
        if view.shape[0] > 1:
            return view, weights
        flat = view.shape[1:]
        reshaped = self._in_shape(view, flat)
        assert isinstance(reshaped, Reals), "reals stay reals"
        return reshaped, weights

    def _scaled(self, stream: Stream, known: Known) -> Stream:
        """Multiply ``stream`` by a constant elementwise, without a sum."""
        names = (*stream.names, *(name for name in known.names if name not in stream.names))
        view = self._spread(stream, names).view
        own = tuple(name for name in names if name in known.names)
        order = _order(known, own, self._sizes)
        short = tuple(self._sizes[name] if name in own else 1 for name in names) or (1,)
        if isinstance(view, Reals):
            factor = compact(_real(known.view).reshape(-1)[order].reshape(short))
            return Stream(affine(view, self._node, factor, fractions(0)), names)
        assert isinstance(known.view, Constant) and self._wrap is not None, "integer tensors"
        values = np.broadcast_to(known.view.array.astype(np.int64).reshape(-1)[order].reshape(short), view.shape)
        first = int(values.reshape(-1)[0])
        operands: list[integers.Operand] = [view, first if (values == first).all() else values]
        result = integers.step(self._state, self._node, integers.Product(), operands, self._wrap, last=False)
        return Stream(result, names)

    def _known(self, constants: Sequence[Known], kept: Collection[str]) -> Known | None:
        """Return the product of constants, summed over all axes but ``kept``; None if there are none."""
        if not constants:
            return None
        if len(constants) == 1 and all(name in kept for name in constants[0].names):
            return constants[0]
        names = tuple(dict.fromkeys(name for known in constants for name in known.names))
        if prod(self._shape(names)) > MAX_ELEMENTS:
            raise refuse(
                self._node, "contraction-size",
                f"the product of constants must have at most {MAX_ELEMENTS} elements, not {prod(self._shape(names))}",
                "multiply them when the model is exported",
            )
        total: Any = None
        for known in constants:
            own = tuple(name for name in names if name in known.names)
            short = tuple(self._sizes[name] if name in own else 1 for name in names)
            array = _real(known.view) if self._wrap is None else _values(known.view)
            part = array.reshape(-1)[_order(known, own, self._sizes)].reshape(short)
            total = part if total is None else total * part
        total = np.broadcast_to(total, tuple(self._sizes[name] for name in names))
        over = tuple(axis for axis, name in enumerate(names) if name not in kept)
        total = as_array(total.sum(axis=over)) if over else total
        view = _quantized(total) if self._wrap is None else Constant(np.asarray(total, dtype=np.int64))
        return Known(view, tuple(name for name in names if name in kept), constants[0].name)

    def finished(self, stream: Stream, shape: tuple[int, ...], *, moved: bool) -> Integers | Reals:
        """Return the node's result in its shape. ``moved``: elements were only moved."""
        view, state, node = stream.view, self._state, self._node
        if isinstance(view, Integers):
            return reshaped(state, node, view, shape, origin=None)
        result = reshaped(state, node, view, shape, origin=state.real_origin(node))
        if moved or view.functions:
            return replace(result, after=tuple(dict.fromkeys((*view.after, node.name))))
        exact = made(result.value, shape, result.scale, result.zero_point, node)
        return replace(exact, low=view.low, high=view.high, nodes=tuple(n for n in view.nodes if n != node.name))


def _greatest(view: Reals) -> int:
    assert view.low is not None and view.high is not None, "of integers the range is known"
    return max(-view.low, view.high)


def _shape_of(view: Constant | QuantizedConstant) -> tuple[int, ...]:
    return (view.array if isinstance(view, Constant) else view.integers).shape


def _order(known: Known, names: Names, sizes: Mapping[str, int]) -> IntArray:
    """Return the flat indices of a constant's elements with its axes in the order ``names``."""
    shape = tuple(sizes[name] for name in known.names)
    places = np.arange(prod(shape)).reshape(shape)
    return places.transpose([known.names.index(name) for name in names]).reshape(-1)


def _real(view: Constant | QuantizedConstant) -> Fractions:
    return view.real() if isinstance(view, QuantizedConstant) else fractions(view.array)


def _values(view: Constant | QuantizedConstant) -> IntArray:
    assert isinstance(view, Constant), "integer tensors are not quantized"
    return view.array.astype(np.int64)


def _quantized(real: Fractions) -> QuantizedConstant:
    """Represent reals as the integer 1 with a scale per element."""
    return QuantizedConstant(np.ones(real.shape, dtype=np.int64), as_array(real), fractions(0))
