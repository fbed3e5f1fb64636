"""Sequences and optionals: which tensors they hold is known when a model is compiled, so their operators only say which
tensor is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from hwflow.display import show
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.graphs.inline import Item, graphs_of
from hwflow.onnxspec.resolving.walk import Walk, integers, made, unsqueezed

_RULE = "sequence"
_SPLIT_BY_INPUT = 13  # version of Split


class _NotStatic(Exception):
    """What is not known when compiling, in words, and the remedy."""


def is_sequence_operator(op_type: str) -> bool:
    """Tell whether an operator of ai.onnx makes or reads sequences or optionals."""
    return op_type in _OPERATORS and op_type != names.IDENTITY


def replaced(walk: Walk, item: Item) -> Iterator[Item]:
    """Yield the nodes that replace one with sequences or optionals among its inputs or outputs. All of its inputs are
    known; what its outputs hold is entered into ``walk``."""
    operator = _OPERATORS.get(item.proto.op_type)
    try:
        if operator is None:
            name = next(n for n in item.proto.input if n in walk.sequences or n in walk.optionals)
            raise _NotStatic(
                f"input {show(name)} must be a tensor, but it is a sequence or an optional",
                "take tensors out of it first (SequenceAt, ConcatFromSequence, OptionalGetElement)",
            )
        yield from operator(walk, item)
    except _NotStatic as reason:
        message, remedy = reason.args
        walk.refuse(item, _RULE, message, remedy)


def _sequence(walk: Walk, name: str) -> tuple[str, ...]:
    if name not in walk.sequences:
        raise _NotStatic(f"input {show(name)} must be a sequence of known length", "export the model with tensors")
    return walk.sequences[name]


def _attribute(item: Item, name: str, default: int) -> int:
    return next((a.i for a in item.proto.attribute if a.name == name), default)


def _position(walk: Walk, item: Item, index: int, length: int, default: int) -> int:
    """Return the place that an input names, from 0 to ``length`` - 1."""
    name = item.proto.input[index] if index < len(item.proto.input) else ""
    if not name:
        return default
    if name not in walk.constants:
        raise _NotStatic(
            f"position {show(name)} must be known when compiling, not computed at run time",
            "stack the sequence into one tensor (ConcatFromSequence) and use Gather or Where",
        )
    place = int(walk.constants[name].reshape(-1)[0])
    if not -length <= place < length:
        raise _NotStatic(f"position must be {-length} to {length - 1}, not {place}", "correct the position")
    return place % length


def _construct(walk: Walk, item: Item) -> Iterator[Item]:
    walk.sequences[item.proto.output[0]] = tuple(item.proto.input)
    yield from ()


def _insert(walk: Walk, item: Item) -> Iterator[Item]:
    parts = _sequence(walk, item.proto.input[0])
    place = _position(walk, item, 2, len(parts) + 1, len(parts))
    walk.sequences[item.proto.output[0]] = (*parts[:place], item.proto.input[1], *parts[place:])
    yield from ()


def _erase(walk: Walk, item: Item) -> Iterator[Item]:
    parts = _sequence(walk, item.proto.input[0])
    place = _position(walk, item, 1, len(parts), len(parts) - 1)
    if not parts:
        raise _NotStatic("the sequence must have an element to erase, but it is empty", "leave the node out")
    walk.sequences[item.proto.output[0]] = (*parts[:place], *parts[place + 1 :])
    yield from ()


def _at(walk: Walk, item: Item) -> Iterator[Item]:
    parts = _sequence(walk, item.proto.input[0])
    yield from _alias(walk, item, parts[_position(walk, item, 1, len(parts), 0)])


def _length(walk: Walk, item: Item) -> Iterator[Item]:
    count = integers(walk, f"{item.name}/length", len(_sequence(walk, item.proto.input[0])))
    yield made(walk, item, names.IDENTITY, [count], [item.proto.output[0]])


def _alias(walk: Walk, item: Item, name: str) -> Iterator[Item]:
    """Give ``name`` the name of the node's result as well."""
    result = item.proto.output[0]
    if name in walk.sequences:
        walk.sequences[result] = walk.sequences[name]
    elif name in walk.optionals:
        walk.optionals[result] = walk.optionals[name]
    else:
        yield made(walk, item, names.IDENTITY, [name], [result])


def _identity(walk: Walk, item: Item) -> Iterator[Item]:
    yield from _alias(walk, item, item.proto.input[0])


def _concatenated(walk: Walk, item: Item) -> Iterator[Item]:
    parts = _sequence(walk, item.proto.input[0])
    if not parts:
        raise _NotStatic("the sequence must have at least one element, but it is empty", "leave the node out")
    axis, result = _attribute(item, "axis", 0), item.proto.output[0]
    if _attribute(item, "new_axis", 0):
        rank = len(walk.values[parts[0]].shape) + 1
        axis %= rank
        added = [walk.inliner.value_name(f"{result}/{number}") for number in range(len(parts))]
        for name, each in zip(parts, added, strict=True):
            yield unsqueezed(walk, item, name, axis, each)
        parts = tuple(added)
    yield made(walk, item, names.CONCAT, parts, [result], axis=axis)


def _split(walk: Walk, item: Item) -> Iterator[Item]:
    node = item.proto
    shape, axis = walk.values[node.input[0]].shape, _attribute(item, "axis", 0)
    if not -len(shape) <= axis < len(shape):
        raise _NotStatic(f"axis must be {-len(shape)} to {len(shape) - 1}, not {axis}", "correct the axis")
    axis %= len(shape)
    size, given = shape[axis], len(node.input) > 1 and bool(node.input[1])
    sizes = [1] * size
    if given:
        if node.input[1] not in walk.constants:
            raise _NotStatic("sizes of pieces must be known when compiling", "export the model with constant sizes")
        split = walk.constants[node.input[1]]
        if split.ndim:
            sizes = [int(n) for n in split.reshape(-1)]
        else:
            step = int(split)
            if step < 1:
                raise _NotStatic(f"sizes of pieces must be at least 1, not {step}", "correct the sizes")
            sizes = [min(step, size - start) for start in range(0, size, step)]
    if not sizes or sum(sizes) != size or min(sizes) < 1:
        raise _NotStatic(f"sizes of pieces must be at least 1 and sum up to {size}", "correct the sizes")
    result = node.output[0]
    parts = [walk.inliner.value_name(f"{result}/{number}") for number in range(len(sizes))]
    if len(parts) == 1:
        yield made(walk, item, names.IDENTITY, [node.input[0]], parts)
    elif item.imports[""] < _SPLIT_BY_INPUT:
        yield made(walk, item, names.SPLIT, [node.input[0]], parts, axis=axis, split=sizes)
    else:
        yield made(walk, item, names.SPLIT, [node.input[0], integers(walk, f"{result}/sizes", sizes)], parts, axis=axis)
    if not given and not _attribute(item, "keepdims", 1):
        squeezed = [walk.inliner.value_name(f"{result}/{number}") for number in range(len(sizes))]
        for name, each in zip(parts, squeezed, strict=True):
            yield unsqueezed(walk, item, name, axis, each, names.SQUEEZE)
        parts = squeezed
    walk.sequences[result] = tuple(parts)


def _map(walk: Walk, item: Item) -> Iterator[Item]:
    node = item.proto
    graph = next(g for a in node.attribute for g in graphs_of(a))
    count = len(_sequence(walk, node.input[0]))
    if any(len(walk.sequences[name]) < count for name in node.input if name in walk.sequences):
        raise _NotStatic("all sequences must have one length, but they differ", "correct what the node reads")
    body = walk.body(graph, walk.inliner.prefix(item.name, node.op_type), item.imports)
    columns: list[list[str]] = [[] for _ in node.output]
    for number in range(count):
        inputs = [walk.sequences[name][number] if name in walk.sequences else name for name in node.input]
        items, outputs = body.instance(inputs, f"round_{number}", f" in round {number} of {item.where}")
        yield from items
        for column, name in zip(columns, outputs, strict=False):
            column.append(name)
    for column, result in zip(columns, node.output, strict=True):
        if result:
            walk.sequences[result] = tuple(column)


def _optional(walk: Walk, item: Item) -> Iterator[Item]:
    walk.optionals[item.proto.output[0]] = item.proto.input[0] if item.proto.input else ""
    yield from ()


def _has_element(walk: Walk, item: Item) -> Iterator[Item]:
    name = item.proto.input[0] if item.proto.input else ""
    there = walk.constant(f"{item.name}/there", np.array(bool(walk.optionals.get(name, name))), "bool")
    yield made(walk, item, names.IDENTITY, [there], item.proto.output)


def _get_element(walk: Walk, item: Item) -> Iterator[Item]:
    name = item.proto.input[0]
    name = walk.optionals.get(name, name)
    if not name:
        raise _NotStatic("the optional must have an element, but it is empty", "test it with OptionalHasElement")
    yield from _alias(walk, item, name)


_OPERATORS: Mapping[str, Callable[[Walk, Item], Iterator[Item]]] = {
    names.SEQUENCE_CONSTRUCT: _construct,
    names.SEQUENCE_EMPTY: _construct,
    names.SEQUENCE_INSERT: _insert,
    names.SEQUENCE_ERASE: _erase,
    names.SEQUENCE_AT: _at,
    names.SEQUENCE_LENGTH: _length,
    names.CONCAT_FROM_SEQUENCE: _concatenated,
    names.SPLIT_TO_SEQUENCE: _split,
    names.SEQUENCE_MAP: _map,
    names.OPTIONAL: _optional,
    names.OPTIONAL_HAS_ELEMENT: _has_element,
    names.OPTIONAL_GET_ELEMENT: _get_element,
    names.IDENTITY: _identity,
}
