"""Choose bits for every layer's weights and every activation: the least cost that keeps a target.

Noise of roundings adds up, nearly, and a bit less is four times the noise. Each quantizer is measured alone at one
width; of an amount of noise that may be made, a Lagrange multiplier gives each quantizer the bits with the least cost
in all. How much may be made is found by measuring whole models, since the sum is an estimate; then single steps down
are tried. Costs are those of the products that read a value, and of the value itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, facts_of
from hwflow.quantization.calibration import of_any_round
from hwflow.quantization.integer_kinds import IntegerKind
from hwflow.quantization.node_weights import weights_of

Kinds = Mapping[str, IntegerKind]
ProductCost = Callable[[IntegerKind, IntegerKind], float]
"""Returns the look-up tables of a product of two integers."""

MEASURED_BITS = 6  # of the width at which each quantizer is measured alone
_BIT = 4.0  # times the noise, for a bit less
_HALVINGS = 5  # of the logarithm of the noise that may be made, between one that does and one that is too much
_STEPS = 24  # down from what was found, that are tried
_PASSES = 2  # of costs, which depend on the widths of the other operand
_WIDENED = 24  # times that the noise is changed until there is one of each

_ACTIVATION_BITS: Sequence[int] = (4, 5, 6, 7, 8, 10, 12, 14, 16)
_WEIGHT_BITS: Sequence[int] = range(2, 17)


def bit_operations(x: IntegerKind, w: IntegerKind) -> float:
    """Return the product of the bits of two integers: what a product of them costs, nearly."""
    return float(x.bits * w.bits)


@dataclass(frozen=True)
class Unit:
    """Values with one width: an activation or weights, in all rounds of a loop."""

    names: tuple[str, ...]
    weights: bool
    kinds: tuple[IntegerKind, ...]

    def at_measured(self) -> IntegerKind:
        """Return the kind that it is measured with."""
        return min(self.kinds, key=lambda kind: abs(kind.bits - MEASURED_BITS))


@dataclass(frozen=True)
class Product:
    """A linear operator: so many multiply-accumulates a frame of activations ``x`` and weights ``w``."""

    x: str
    w: str
    macs: int


@dataclass(frozen=True)
class Costs:
    """What widths cost. ``elements``: of activations, a frame."""

    products: Sequence[Product]
    elements: Mapping[str, int]
    product: ProductCost

    def of(self, kinds: Kinds) -> float:
        """Return the cost of all."""
        known = (p for p in self.products if p.x in kinds and p.w in kinds)
        total = sum(p.macs * self.product(kinds[p.x], kinds[p.w]) for p in known)
        return total + sum(size * kinds[name].bits for name, size in self.elements.items() if name in kinds)


def units_of(activations: Iterable[str], weights: Iterable[str], kinds: Kinds) -> list[Unit]:
    """Return the units whose widths are chosen; ``kinds``: those of the values whose kinds are given."""
    groups: dict[tuple[str, bool], list[str]] = {}
    for names, of_weights in ((activations, False), (weights, True)):
        for name in names:
            if name not in kinds:
                groups.setdefault((of_any_round(name), of_weights), []).append(name)
    widths = {False: _ACTIVATION_BITS, True: _WEIGHT_BITS}
    return [
        Unit(tuple(names), of_weights, tuple(IntegerKind(bits, of_weights) for bits in widths[of_weights]))
        for (_, of_weights), names in groups.items()
    ]


def costs_of(graph: onnx.GraphProto, sources: Mapping[str, str], product: ProductCost) -> Costs:
    """Return what the products of ``graph``, whose shapes have been inferred, cost. A variable size counts as 1."""
    sizes = {
        info.name: math.prod(dim.dim_value or 1 for dim in info.type.tensor_type.shape.dim)
        for info in (*graph.input, *graph.value_info, *graph.output)
    }
    constants = {i.name: i for i in graph.initializer}
    products = []
    for node in graph.node:
        if facts_of(STANDARD_DOMAIN, node.op_type).weights is None:
            continue
        weights = weights_of(node, constants)
        if weights is None or node.input[1 - weights.index] not in sources:
            continue
        tensor = constants[node.input[weights.index]]
        channels = tensor.dims[weights.axis] if weights.axis is not None else 1
        each = math.prod(tensor.dims) // max(channels, 1)
        products.append(Product(
            sources[node.input[1 - weights.index]], tensor.name, each * sizes.get(node.output[0], channels),
        ))  # fmt: skip
    return Costs(products, {name: size for name, size in sizes.items() if name not in constants}, product)


def choose_kinds(
    units: Sequence[Unit], given: Kinds, costs: Costs, made: Callable[[Kinds], onnx.ModelProto],
    keeps: Callable[[onnx.ModelProto], bool], alone: Callable[[Kinds], float],
) -> dict[str, IntegerKind]:
    """Return the kind of every value: the ``given`` ones, and those chosen for ``units``, all the widest where not even
    these keep the target. ``made``: makes the model; ``keeps``: measures it; ``alone``: returns the noise of a model
    with only these values quantized."""

    def whole(chosen: Mapping[Unit, IntegerKind]) -> dict[str, IntegerKind]:
        return {**given, **{name: kind for unit, kind in chosen.items() for name in unit.names}}

    def fits(chosen: Mapping[Unit, IntegerKind]) -> bool:
        return keeps(made(whole(chosen)))

    widest = {unit: unit.kinds[-1] for unit in units}
    if not units or not fits(widest):
        return whole(widest)
    noises = {}
    for unit in units:
        kind = unit.at_measured()
        measured = alone(dict.fromkeys(unit.names, kind))
        noises[unit] = {k: measured * _BIT ** (kind.bits - k.bits) for k in unit.kinds}

    def within(noise: float) -> dict[Unit, IntegerKind]:
        """Return the cheapest kinds that make no more noise, by the estimates."""
        chosen = widest
        for _ in range(_PASSES):
            prices = {unit: _prices(unit, costs, whole(chosen)) for unit in units}
            chosen = _cheapest(units, prices, noises, noise)
        return chosen

    best, allowed = widest, sum(noises[unit][unit.kinds[-1]] for unit in units)
    most = sum(noises[unit][unit.kinds[0]] for unit in units)
    low, high = math.log(max(allowed, 1e-30)), math.log(max(most, 1e-30)) + 1e-9
    step = (high - low) / _WIDENED
    while step > 0 and high - low > step / 2**_HALVINGS:
        tried = (low + high) / 2
        chosen = within(math.exp(tried))
        if fits(chosen):
            best, low = chosen, tried
        else:
            high = tried
    return whole(_stepped_down(units, best, costs, whole, fits))


def _stepped_down(
    units: Sequence[Unit], chosen: dict[Unit, IntegerKind], costs: Costs,
    whole: Callable[[Mapping[Unit, IntegerKind]], Kinds], fits: Callable[[Mapping[Unit, IntegerKind]], bool],
) -> dict[Unit, IntegerKind]:
    """Return ``chosen`` with single steps down that keep the target, the one that saves most first."""
    left = [unit for unit in units if chosen[unit] != unit.kinds[0]]
    for _ in range(_STEPS):
        if not left:
            break
        now = costs.of(whole(chosen))
        lower = {unit: {**chosen, unit: unit.kinds[unit.kinds.index(chosen[unit]) - 1]} for unit in left}
        best = max(left, key=lambda unit: now - costs.of(whole(lower[unit])))
        if fits(lower[best]):
            chosen = lower[best]
            if chosen[best] == best.kinds[0]:
                left.remove(best)
        else:
            left.remove(best)
    return chosen


def _prices(unit: Unit, costs: Costs, kinds: Kinds) -> dict[IntegerKind, float]:
    """Return what each kind of a unit costs beside the others' present ones."""
    names = set(unit.names)
    mine = Costs(
        [p for p in costs.products if p.x in names or p.w in names],
        {name: size for name, size in costs.elements.items() if name in names}, costs.product,
    )
    return {kind: mine.of({**kinds, **dict.fromkeys(unit.names, kind)}) for kind in unit.kinds}


def _cheapest(
    units: Sequence[Unit], prices: Mapping[Unit, Mapping[IntegerKind, float]],
    noises: Mapping[Unit, Mapping[IntegerKind, float]], most: float,
) -> dict[Unit, IntegerKind]:
    """Return the kinds of least price whose noises add up to ``most`` at most, or the widest ones."""

    def at(multiplier: float) -> dict[Unit, IntegerKind]:
        return {
            unit: min(unit.kinds, key=lambda kind: prices[unit][kind] + multiplier * noises[unit][kind])
            for unit in units
        }

    low, high = -40.0, 120.0  # logarithms of multipliers
    for _ in range(50):
        middle = (low + high) / 2
        chosen = at(math.exp(middle))
        if sum(noises[unit][kind] for unit, kind in chosen.items()) <= most:
            high = middle
        else:
            low = middle
    return at(math.exp(high))
