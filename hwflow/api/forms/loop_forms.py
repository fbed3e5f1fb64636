"""Whether a loop's body is hardware once, for all rounds, or each round has its own.

Of both forms that is taken which is cheaper at the rate that was asked for, or where the fastest design was, which is
faster. A loop that is unrolled has many cores, and the search among their foldings takes minutes; so a graph of
more than :data:`MOST_UNROLLED` nodes is compiled only if one body does not reach the rate. Where neither fits, or
cores that are too many for multipliers to be used (:attr:`hwflow.api.compiler.Design.is_crowded`), layers of one shape
share their cores (:func:`shared_form`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from hwflow.ir.graph import Graph
from hwflow.passes.find_rounds import find_layers, find_rounds
from hwflow.passes.pipeline import ONCE, SHARED, SIMPLER, UNROLLED, run

MOST_UNROLLED = 100
"""Nodes of the quantized graph: of an LSTM, those of four steps."""


class Streams(Protocol):
    """Makes the dataflow graph of a quantized one, in a form of its loops."""

    def __call__(self, quantized: Graph, loops: str = UNROLLED) -> Graph: ...


@dataclass(frozen=True)
class Form:
    """Makes the dataflow graph of a model in a form of its ``loops``, of :data:`hwflow.passes.pipeline.FORMS`.
    ``only_if_needed``: where the form before it is too slow."""

    make: Callable[[], Graph]
    loops: str = UNROLLED
    only_if_needed: bool = False


def forms_of(quantized: Graph, loops: str, streams: Streams) -> Iterator[Form]:
    """Yield the forms to compile, at least one. ``loops``: of :data:`hwflow.api.request.LOOPS`; without loops there is
    one form."""
    if loops == SHARED:
        yield Form(lambda: streams(quantized, SHARED), SHARED)
        return
    if loops == UNROLLED or find_rounds(quantized) is None:
        yield Form(lambda: streams(quantized))
        return
    yield Form(lambda: streams(quantized, ONCE), ONCE)
    if loops != ONCE:
        yield Form(lambda: streams(quantized), only_if_needed=len(quantized.nodes) > MOST_UNROLLED)


def shared_form(quantized: Graph, streams: Streams) -> Form | None:
    """Return the form in which layers of one shape share their cores; None where there are none."""
    if find_layers(run(quantized, SIMPLER)) is None:
        return None
    return Form(lambda: streams(quantized, SHARED), SHARED)
