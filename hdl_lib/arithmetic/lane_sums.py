"""Sums over lanes, for any kind of product: of all lanes at once, or of equal groups of lanes.

The sum of a group takes as many cycles as its part of the tree of all lanes, so that the registers are the same either
way. Groups are instances of one module (:mod:`hdl_lib.shared`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.adder_tree import Term, adder_tree, registered, shape_of, tree_levels
from hdl_lib.arithmetic.carried_sum import Carried, carried_tree
from hdl_lib.arithmetic.digit_product import DigitSum
from hdl_lib.arithmetic.multiplier import Operand
from hdl_lib.arithmetic.packed_product import PackedSum
from hdl_lib.matrices.dot_product import MatchCount, ProductSum
from hdl_lib.shared import SharedComponent

LaneSum = ProductSum | MatchCount | DigitSum | PackedSum
Sum = tuple[Term, Value | None]  # with the bit that is still to be added to it, or None
Layouts = Mapping[str, data.ArrayLayout]  # the operands of all lanes: of each of MULTIPLES that they have
MULTIPLES = ("x", "triple", "negative")


def gathered(m: Module, operands: Sequence[Operand]) -> dict[str, data.View]:
    """Gather the operands of all lanes, for each of :data:`MULTIPLES` that they have."""
    found = {}
    for name in MULTIPLES:
        values = [getattr(operand, name) for operand in operands]
        if values[0] is not None:
            found[name] = Signal(data.ArrayLayout(values[0].shape(), len(values)), name=f"operands_{name}")
            m.d.comb += [found[name][lane].eq(value) for lane, value in enumerate(values)]
    return found


def ports(operands: Layouts, weight_bits: int) -> dict[str, In]:
    """Return the members for the operands and the weights of all lanes: those of ``operands``, and ``weights``."""
    found = {name: In(layout) for name, layout in operands.items()}
    return found | {"weights": In(data.ArrayLayout(weight_bits, operands["x"].length))}


def sums_over_lanes(
    m: Module, kind: LaneSum, operands: Mapping[str, data.View], weights: data.View, weight_shape: Shape, limit: int
) -> dict[str, Sum]:
    """Sum the lanes by ``kind``, modulo ``2**limit``: "sum", or "low" and "high" of packed weights.

    The carry always stays pending, which takes a cycle less than ``kind.latency`` without an accumulator.
    """
    together = _together(kind)
    if 2 * together > kind.lanes:
        found = [Operand(**{name: view[lane] for name, view in operands.items()}) for lane in range(kind.lanes)]
        return _sums(m, kind, found, [_weight(weights[lane], weight_shape) for lane in range(kind.lanes)], limit)
    groups: list[dict[str, Sum]] = []
    layouts = {name: data.ArrayLayout(view.shape().elem_shape, together) for name, view in operands.items()}
    for first in range(0, kind.lanes, together):
        lanes = min(together, kind.lanes - first)
        layouts = {name: data.ArrayLayout(layout.elem_shape, lanes) for name, layout in layouts.items()}
        group = _Lanes(replace(kind, lanes=lanes), layouts, weight_shape, limit, tree_levels(together))
        m.submodules[f"lanes_{first}"] = group
        for name, view in {**operands, "weights": weights}.items():
            m.d.comb += [getattr(group, name)[lane].eq(view[first + lane]) for lane in range(lanes)]
        groups.append(group.sums)
    return {name: _tree(m, f"_{name}", [group[name] for group in groups], limit) for name in groups[0]}


class _Lanes(SharedComponent):
    """A group of lanes: the sum of ``kind``, with ``levels`` levels of a tree behind the products.

    Members: those of :func:`ports`; for each sum ``name``: Out(its shape), and ``name_carry``: Out(1) if it has a
    pending carry.
    """

    def __init__(self, kind: LaneSum, operands: Layouts, weight_shape: Shape, limit: int, levels: int) -> None:
        self._kind = kind
        self._weight_shape = weight_shape
        self._limit = limit
        self._levels = levels
        self._bounds = {}
        members = dict(ports(operands, weight_shape.width))
        for name, carried in _results(kind).items():
            low, high = (kind.lanes * bound for bound in kind.products)
            self._bounds[name] = low - carried, high
            members[name] = Out(shape_of(low - carried, high, limit))
            if carried:
                members[f"{name}_carry"] = Out(1)
        super().__init__("lanes", (kind, weight_shape, limit, levels), members)

    @property
    def sums(self) -> dict[str, Sum]:
        """Return the results."""
        return {
            name: (Term(getattr(self, name), *self._bounds[name]), getattr(self, f"{name}_carry") if carried else None)
            for name, carried in _results(self._kind).items()
        }

    def build(self) -> Module:
        m = Module()
        lanes = range(self._kind.lanes)
        multiples = [name for name in MULTIPLES if name in self.signature.members]
        operands = [Operand(**{name: getattr(self, name)[lane] for name in multiples}) for lane in lanes]
        weights = [_weight(self.weights[lane], self._weight_shape) for lane in lanes]
        made = _sums(m, self._kind, operands, weights, self._limit)
        for name, (term, carry) in made.items():
            assert (term.low, term.high) == self._bounds[name], "each kind knows its products"
            for level in range(_levels(self._kind), self._levels):  # the last group of fewer lanes
                term = registered(m, f"{name}_later_{level}", term, self._limit)
                if carry is not None:
                    carry = registered(m, f"{name}_carry_later_{level}", Term(carry, 0, 1)).value
            m.d.comb += getattr(self, name).eq(term.value)
            if carry is not None:
                m.d.comb += getattr(self, f"{name}_carry").eq(carry)
        return m


def _together(kind: LaneSum) -> int:
    """Return the lanes of a group: a power of two, about as many as there are groups, at least the minimum of ``kind``.
    """
    least = 1
    if isinstance(kind, MatchCount):
        least = kind.TABLES
    elif isinstance(kind, PackedSum):
        least = 1 << kind.packing.levels
    return max(least, 2, 1 << tree_levels(kind.lanes) // 2)


def _levels(kind: LaneSum) -> int:
    """Return the cycles from the products, or from the counted bits, to the sum."""
    if isinstance(kind, MatchCount):
        return kind.latency
    if isinstance(kind, PackedSum):
        return kind.packing.levels + tree_levels(-(-kind.lanes >> kind.packing.levels))
    return tree_levels(kind.lanes)


def _results(kind: LaneSum) -> dict[str, bool]:
    """Return the names of the sums, with whether they have a pending carry."""
    return {"low": False, "high": True} if isinstance(kind, PackedSum) else {"sum": isinstance(kind, DigitSum)}


def _sums(
    m: Module, kind: LaneSum, operands: Sequence[Operand], weights: Sequence[Value], limit: int
) -> dict[str, Sum]:
    if isinstance(kind, PackedSum):
        low, high = replace(kind, accumulated=True).sums(m, ("_low", "_high"), operands, weights, limit)
        return {"low": (low, None), "high": high}
    if isinstance(kind, DigitSum):
        return {"sum": replace(kind, accumulated=True).sum(m, "", operands, weights, limit)}
    return {"sum": (kind.sum(m, "", operands, weights, limit), None)}


def _tree(m: Module, name: str, sums: Sequence[Sum], limit: int) -> Sum:
    """Return the sum of sums, with a pending carry if they have carries."""
    carried = [Carried(term, carry) for term, carry in sums if carry is not None]
    if not carried:
        return adder_tree(m, f"sum{name}", [term for term, _ in sums], limit), None
    total = carried_tree(m, name, carried, limit)
    return total.term, total.carry


def _weight(weight: Value, shape: Shape) -> Value:
    return weight.as_signed() if shape.signed else weight
