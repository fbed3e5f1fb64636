"""Hypothesis strategies of random networks in each dialect."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.dialects import qdq, qonnx, qoperator
from tests.dialects.choices import Choices, Drawn
from tests.dialects.nets import Net

NETWORKS: dict[str, Callable[[Choices], Net]] = {
    "QDQ": qdq.network,
    "QOperator": qoperator.network,
    "QONNX": qonnx.network,
    "binary": qonnx.binary_network,
}


def networks(dialect: str) -> SearchStrategy[Net]:
    @st.composite
    def network(draw: DrawFn) -> Net:
        return NETWORKS[dialect](Drawn(draw))

    return network()
