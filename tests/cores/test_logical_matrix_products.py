"""Products of two streams at the quantized stage: evaluate against numpy's matmul, lowering against evaluate."""

from __future__ import annotations

import numpy as np
import pytest

from hdl_lib.matrices.stream_matrix import Along
from hwflow.cores.registry import OPERATORS
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Graph, IntArray
from hwflow.types import Interval, IntType, TensorType
from hwflow.verify import golden
from tests.attributes import attributes_of
from tests.cores.one_operator import I8, U4, check_lowering, paired
from tests.schedule.graphs import Builder, dataflow

SHAPES = [
    ((3, 4), (4, 5)),
    ((1, 4), (4, 1)),
    ((3, 1), (1, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 2, 3, 4), (2, 1, 4, 2)),
    ((2, 2, 3, 4), (1, 2, 4, 2)),
    ((2, 1, 2, 3, 4), (1, 3, 2, 4, 2)),
    ((2, 2, 2, 2, 1, 3), (2, 1, 2, 3, 1)),
    ((2, 3, 2, 3, 2), (1, 3, 1, 2, 4)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("offsets", [(0, 0), (-3, 7)])
def test_matrix_product(left, right, offsets) -> None:
    graph, arrays, result = paired("matrix_product", [left, right], [I8, U4], offsets=offsets, inner=left[-1])
    rank = max(len(left), len(right))
    a, b = (
        (array - offset).reshape(3, *(1,) * (rank + 1 - array.ndim), *array.shape[1:])
        for array, offset in zip(arrays, offsets, strict=True)
    )
    assert np.array_equal(result, np.einsum("...mk,...kn->...mn", a, b))
    check_lowering(graph, arrays, result)


def _attention() -> tuple[Graph, dict[str, IntArray]]:
    """Two heads of five rows and three columns, as dense layers make them: scores and their product with values."""
    build = Builder(np.random.default_rng(0))
    heads = []
    for _ in range(3):
        source = build.input((5, 6), I8)
        split = build.node("reshape", source, shape=(5, 2, 3))
        heads.append(build.node("transpose", split, perm=(1, 0, 2)))
    keys = build.node("transpose", heads[1], perm=(0, 2, 1))
    scores = build.node("matrix_product", heads[0], keys, offsets=(1, -2), inner=3)
    values = build.node("matrix_product", scores, heads[2], offsets=(0, 3), inner=5)
    merged = build.node("reshape", build.node("transpose", values, perm=(1, 0, 2)), shape=(5, 6))
    build.output(merged)
    rng = np.random.default_rng(1)
    return build.done(), {f"x{k}": rng.integers(-128, 128, (2, 5, 6)) for k in range(3)}


def test_attention_needs_no_rearrangement() -> None:
    """Heads that lie side by side in each row stay there: all of them are held at once."""
    graph, frames = _attention()
    lowered = dataflow(graph)
    assert [node.op for node in lowered.nodes] == ["stream_matrix", "stream_matrix"]
    rounds = [node.attributes.rounds for node in lowered.nodes]
    assert [(each.sets, each.vectors, each.interleaved) for each in rounds] == [(2, 10, True)] * 2
    assert [each.along for each in rounds] == [Along.INNER, Along.OUTER]
    (expected,), (found,) = (golden.evaluate(each, frames).values() for each in (graph, lowered))
    assert np.array_equal(found, expected)


def test_matrices_of_their_own_are_held_one_at_a_time() -> None:
    graph, arrays, result = paired("matrix_product", [(3, 4, 5), (3, 5, 2)], [I8, I8], offsets=(0, 0), inner=5)
    check_lowering(graph, arrays, result)
    (node,) = dataflow(graph).nodes
    rounds = node.attributes.rounds
    assert (rounds.sets, rounds.vectors, rounds.inner * rounds.outer) == (1, 4, 10)


def test_the_smaller_matrix_is_held() -> None:
    for rows, columns in ((2, 9), (9, 2)):
        build = Builder(np.random.default_rng(0))
        left, right = (build.input((size, 5), I8) for size in (rows, columns))
        turned = build.node("transpose", right, perm=(1, 0))
        build.output(build.node("matrix_product", left, turned, offsets=(0, 0), inner=5))
        (node,) = dataflow(build.done()).nodes
        assert node.attributes.rounds.outer == 2


def test_intervals_of_channels() -> None:
    """By hand: sums of products with each of two columns."""
    a = TensorType.of((1, 2), (Interval(0, 3), Interval(-1, 2)), 1)
    b = TensorType.of((2, 2), (Interval(1, 2), Interval(-5, 0)), 1)
    operator = OPERATORS["matrix_product"]
    (result,) = operator.infer(attributes_of("matrix_product", offsets=(0, 1), inner=2), [a, b])
    assert result.channels == (Interval(-1, 5), Interval(-30, 6))
    b = TensorType.of((2, 2), (Interval(1, 2), Interval(-5, 0)), 0)
    (result,) = operator.infer(attributes_of("matrix_product", offsets=(0, 0), inner=2), [a, b])
    assert result.channels == (Interval(-10, 11),) * 2


def test_wide_operands_are_refused() -> None:
    build = Builder(np.random.default_rng(0))
    wide = IntType(33, True)
    product = build.node("matrix_product", build.input((2, 2), wide), build.input((2, 2), I8), offsets=(0, 0), inner=2)
    build.output(product)
    with pytest.raises(ModelRefused, match="at most 32 bits, not 33"):
        dataflow(build.done())
