"""Whether a loop's body is hardware once, for all rounds, or each round has its own.

Of both forms that is taken which is cheaper at the rate that was asked for, or where the fastest design was, which is
faster. A loop that is unrolled has many cores, and the search among their foldings takes minutes; so a graph of
more than :data:`MOST_UNROLLED` nodes is compiled only if one body does not reach the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from hwflow.api.request import ONCE, UNROLLED
from hwflow.ir.graph import Graph
from hwflow.passes.find_rounds import find_rounds

MOST_UNROLLED = 100
"""Nodes of the quantized graph: of an LSTM, those of four steps."""


class Streams(Protocol):
    """Makes the dataflow graph of a quantized one."""

    def __call__(self, quantized: Graph, *, once: bool = False) -> Graph: ...


@dataclass(frozen=True)
class Form:
    """Makes the dataflow graph of a model whose loops' bodies are hardware ``once``. ``only_if_needed``: where the
    form before it is too slow."""

    make: Callable[[], Graph]
    once: bool = False
    only_if_needed: bool = False


def forms_of(quantized: Graph, loops: str, streams: Streams) -> Iterator[Form]:
    """Yield the forms to compile, at least one. ``loops``: of :data:`hwflow.api.request.LOOPS`; without loops there is
    one form."""
    if loops == UNROLLED or find_rounds(quantized) is None:
        yield Form(lambda: streams(quantized))
        return
    yield Form(lambda: streams(quantized, once=True), once=True)
    if loops != ONCE:
        yield Form(lambda: streams(quantized), only_if_needed=len(quantized.nodes) > MOST_UNROLLED)
