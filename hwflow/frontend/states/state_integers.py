"""What integers carry a state: those that the quantizer before its output makes.

A state is read before it is computed. So the model is lowered with the state as an input of the host's first, then with
the integers found, until those found are those assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from hwflow.display import show
from hwflow.errors import Finding
from hwflow.frontend.context import Lowering
from hwflow.frontend.stream_types import COMPUTED_TYPES, REAL_TYPES
from hwflow.frontend.views import Anchor, HostInput, Integers, Reals, Refused, View, as_array, fractions
from hwflow.ir.graph import Meaning, Node, Value
from hwflow.ir.node_attributes import DelayAttributes
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.resolving.resolved_model import ResolvedModel, Tie
from hwflow.types import Interval, IntType, TensorType

_MOST_TRIALS = 6


@dataclass(frozen=True, eq=False)
class StateIntegers:
    """The integers of a state; ``meaning``: None where the tensor's elements are these."""

    interval: Interval
    meaning: Meaning | None = None

    def is_like(self, other: StateIntegers | None) -> bool:
        """Tell whether both are the same."""
        if other is None or self.interval != other.interval or (self.meaning is None) != (other.meaning is None):
            return False
        pairs = [] if self.meaning is None or other.meaning is None else [
            (self.meaning.scale, other.meaning.scale), (self.meaning.zero_point, other.meaning.zero_point)
        ]
        return all(a.shape == b.shape and bool(np.all(a == b)) for a, b in pairs)

    def with_interval(self, interval: Interval) -> StateIntegers:
        return StateIntegers(self.interval.hull(interval), self.meaning)


IntegersByState = Mapping[str, StateIntegers]
"""By the input's name."""


def integers_of_states(
    model: ResolvedModel, walked: Callable[[IntegersByState], Lowering]
) -> tuple[IntegersByState, list[Finding]]:
    """Return the integers of the model's states, and findings about those that none carry. ``walked``: lowers the model
    with some assumed."""
    assumed: dict[str, StateIntegers] = {}
    for tie in model.ties:
        integers = COMPUTED_TYPES.get(model.values[tie.target].dtype)
        if integers is not None:
            assumed[tie.target] = StateIntegers(integers.interval)
    for _ in range(_MOST_TRIALS if len(assumed) < len(model.ties) else 0):
        state = walked(assumed)
        found = {tie.target: _found(state, tie, assumed.get(tie.target)) for tie in model.ties}
        if all(each is not None and each.is_like(assumed.get(name)) for name, each in found.items()):
            break
        assumed.update((name, each) for name, each in found.items() if each is not None)
    else:
        if model.ties and len(assumed) < len(model.ties):
            return assumed, [_unquantized(tie) for tie in model.ties if tie.target not in assumed]
        grown = [tie for tie in model.ties if model.values[tie.target].dtype in REAL_TYPES]
        return assumed, [_grows(tie) for tie in grown]
    return assumed, []


def _found(state: Lowering, tie: Tie, assumed: StateIntegers | None) -> StateIntegers | None:
    """Return the integers of a state's output; where it follows from the state itself, unless some are assumed those of
    the first quantizer that reads it."""
    view = state.views.get(tie.source)
    if isinstance(view, Reals) and not view.functions and not state.bound(view.value).errors:
        interval = state.bound(view.value).interval
        if view.low is not None and view.high is not None:
            interval = Interval(view.low, view.high)
        if interval is not None:
            found = StateIntegers(interval, Meaning(view.scale, view.zero_point))
            return found if assumed is None else found.with_interval(assumed.interval)
    if assumed is None:
        return _read_by(state, tie.target)
    return assumed if isinstance(view, Integers) else None


def _read_by(state: Lowering, target: str) -> StateIntegers | None:
    """Return the integers that a state may have to begin with: of the first quantizer of the host that reads it, itself
    or through other nodes, or of the first stream that meets it."""
    follow = {target}
    met: list[Reals] = []
    for node in state.model.nodes:
        if not follow.isdisjoint(node.inputs):
            follow.update(name for name in node.outputs if name)
            views = (state.views.get(name) for name in node.inputs if name not in follow)
            met += [view for view in views if isinstance(view, Reals) and not view.functions]
    for port in state.inputs:
        if port.value.origin in follow and len(port.scale) == len(port.zero_point) == 1:
            meaning = Meaning(fractions(port.scale[0]), fractions(port.zero_point[0]))
            return StateIntegers(port.value.typed.interval, meaning)
    for view in met:
        if view.scale.size == view.zero_point.size == 1 and view.low is not None and view.high is not None:
            meaning = Meaning(view.scale.reshape(()), view.zero_point.reshape(()))
            return StateIntegers(Interval(view.low, view.high), meaning)
    return None


def view_of(state: Lowering, tie: Tie, integers: StateIntegers | None, *, known: bool) -> View:
    """Return the view of a state's input. ``known``: whether the integers of all states are."""
    if integers is None:
        return Refused() if known else HostInput(tie.target, state.frame_shape(tie.target))
    shape, element = state.frame_shape(tie.target), IntType.holding(integers.interval)
    type_ = TensorType(shape, element, integers.interval)
    value = Value(state.value_names.fresh(tie.target), type_, tie.target, integers.meaning)
    low, high = integers.interval.lo, integers.interval.hi
    if integers.meaning is None:
        return Integers(value, shape, low, high)
    scale, zero_point = integers.meaning.scale, integers.meaning.zero_point
    anchor = Anchor(tie.target, value, scale, zero_point)
    return Reals(value, shape, scale, zero_point, anchor, low=low, high=high)


def delays(state: Lowering) -> Iterator[Node]:
    """Yield the delays that close the circuits of a lowered model; findings about first states go to ``state``."""
    for tie in state.model.ties:
        after, before = state.views[tie.target], state.views[tie.source]
        if not (isinstance(after, Integers | Reals) and isinstance(before, Integers | Reals)):
            if not state.findings:
                state.findings.append(_unquantized(tie))
            continue
        type_ = after.value.typed
        initial = fractions(tie.initial).reshape(after.shape)
        if isinstance(after, Reals):
            with_scale = np.broadcast_to(after.scale, after.shape)
            initial = initial / with_scale + np.broadcast_to(after.zero_point, after.shape)
        if _only_quantized(state, tie, after):
            initial = as_array(np.frompyfunc(partial(_level, type_.interval), 1, 1)(initial))
        flat = initial.reshape(-1)
        wrong = [i for i, level in enumerate(flat) if level.denominator != 1 or not type_.interval.includes(int(level))]
        if wrong:
            number = tie.initial.reshape(-1)[wrong[0]]
            message = (
                f"what it is at first must be levels of its quantizer, integers in {type_.interval}, not {number} "
                f"({nearest(flat[wrong[0]])} in levels; {len(wrong)} such elements)"
            )
            remedy = "give multiples of its scale, or a quantizer with these levels"
            state.findings.append(Finding("state-initial", _where(tie), message, remedy))
            continue
        levels = np.array([int(level) for level in flat], dtype=np.int64).reshape(after.shape)
        attributes = DelayAttributes(type_, levels, tie.frames)
        yield Node(state.names.fresh(f"state_{tie.target}"), [before.value], [after.value], attributes)


def _only_quantized(state: Lowering, tie: Tie, view: Integers | Reals) -> bool:
    """Tell whether only quantizers read the state's input, all of them to its own integers: so what it is at first may
    lie between these."""
    if not isinstance(view, Reals) or view.scale.size != 1 or view.zero_point.size != 1:
        return False
    for node in state.model.nodes:
        if tie.target not in node.inputs:
            continue
        known = [state.model.constants.get(name) for name in node.inputs[1:]]
        sizes = [array for array in known if array is not None and array.size == 1]
        if not facts_of(node.domain, node.op_type).quantizes or not known or len(sizes) < len(known):
            return False
        numbers = [Fraction(array.reshape(-1)[0].item()) for array in sizes]
        if numbers != [view.scale.reshape(-1)[0], view.zero_point.reshape(-1)[0]][: len(numbers)]:
            return False
        if len(numbers) == 1 and view.zero_point.reshape(-1)[0] != 0:
            return False
    return True


def _level(interval: Interval, number: Fraction) -> Fraction:
    """Round to the nearest even of the nearest levels, and saturate."""
    return Fraction(min(max(round(number), interval.lo), interval.hi))


def nearest(level: Fraction) -> str:
    """Return a level as text."""
    return f"{float(level):.6g}"


def _where(tie: Tie) -> str:
    return f"state {show(tie.source)} = {show(tie.target)}"


def _unquantized(tie: Tie) -> Finding:
    message = f"{show(tie.source)} must be the result of a quantizer, whose integers stay on the chip"
    remedy = f"put QuantizeLinear and DequantizeLinear before {show(tie.source)}, or use 'hwflow quantize'"
    return Finding("state-type", _where(tie), message, remedy)


def _grows(tie: Tie) -> Finding:
    return Finding(
        "state-type", _where(tie), "must have integers that a quantizer bounds, not some that grow with each frame",
        f"put QuantizeLinear and DequantizeLinear before {show(tie.source)}",
    )
