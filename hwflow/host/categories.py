"""Which elements of a model's inputs must be among the categories that some operator of the host knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from hwflow.errors import ModelRefused
from hwflow.onnxspec.graphs.operator_facts import facts_of

if TYPE_CHECKING:
    from hwflow.loaded_model import Model

Categories = Mapping[str, Mapping[int, Sequence[Any]]]
"""By graph input and the place in a frame, row-major: what an element may be; others may be anything."""


def categories(model: Model) -> Categories:
    """Return the categories of all elements that reach an operator which takes no others, through moves alone."""
    asking = [
        (node.inputs[0], known) for node in model.resolved.nodes
        if (rule := facts_of(node.domain, node.op_type).among) is not None and (known := rule(node.attributes))
    ]
    found: dict[str, dict[int, Sequence[Any]]] = {}
    if not asking:
        return found
    names = [*dict.fromkeys(name for name, _ in asking)]
    # Numbers of the places tell where elements come from; two numberings, whether they are the numbers still.
    places = [(name, place) for name in model.resolved.inputs for place in range(prod(_shape(model, name)))]
    ways = [_came(model, names, numbers) for numbers in (range(len(places)), range(len(places))[::-1])]
    for name, known in asking:
        for one, other in zip(*(way.get(name, []) for way in ways), strict=True):
            if one is not None and other is not None and one == len(places) - 1 - other and one in range(len(places)):
                graph_input, place = places[one]
                found.setdefault(graph_input, {})[place] = known
    return found


def _shape(model: Model, name: str) -> tuple[int, ...]:
    return model.resolved.values[name].shape[1:]


def _came(model: Model, names: Sequence[str], numbers: Sequence[int]) -> dict[str, list[int | None]]:
    """Return the numbers at ``names`` (None: no whole one) if the elements of the inputs are ``numbers``; nothing where
    these cannot be fed or evaluated."""
    from hwflow.onnxspec.reference.evaluation import RegionEvaluator  # slow to import, and few models need it

    feeds, at = {}, 0
    for name in model.resolved.inputs:
        shape = _shape(model, name)
        part = np.array(numbers[at : at + prod(shape)], np.int64).reshape(1, *shape)
        at += part.size
        dtype = model.resolved.values[name].dtype
        try:
            feeds[name] = part.astype(str).astype(object) if dtype == "string" else part.astype(dtype)
        except TypeError:  # no type of numpy's
            return {}
    try:
        made = RegionEvaluator(model.flat).run([name for name in names if name not in feeds], feeds)
    except ModelRefused:
        return {}
    return {name: [_number(v) for v in np.asarray({**feeds, **made}[name]).reshape(-1).tolist()] for name in names}


def _number(element: Any) -> int | None:
    try:
        return int(element) if int(element) == float(element) else None
    except (TypeError, ValueError, OverflowError):
        return None
