"""ONNX's own node tests on integers and bools: compiled, golden model and hardware equal to what is expected.

What each comes to is in docs/node_tests.md, which must say what is found here.
"""

from __future__ import annotations

import pytest

from hwflow.operators.onnx_operators import NAMES
from tests.onnx_node_tests.suite import NodeTest, Outcome, node_tests, run
from tests.onnx_node_tests.table import PAGE, page

_CONSTANT = frozenset({"EyeLike", "Range"})  # alone they leave nothing for hardware
_EMPTY = frozenset({"test_reduce_max_empty_set_bool"})  # a stream without elements

_outcomes: dict[NodeTest, Outcome] = {}


@pytest.mark.parametrize("test", node_tests(), ids=lambda test: test.name)
def test_equals_what_is_expected(test: NodeTest) -> None:
    _outcomes[test] = outcome = run(test)
    operators = {node.op_type for node in test.model.graph.node}
    if operators <= NAMES - _CONSTANT and test.name not in _EMPTY and outcome.kind != "host":
        assert outcome.kind == "RTL", outcome.reason


def test_the_page_says_so() -> None:
    outcomes = {test: _outcomes.get(test) or run(test) for test in node_tests()}
    again = "write it again: python -m tests.onnx_node_tests.table"
    assert PAGE.read_text(encoding="utf-8") == page(outcomes), again
