"""Every pass keeps the golden model, on graphs that exercise it; the types it infers hold what is computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.errors import ModelRefused
from hwflow.frontend.lower import lower
from hwflow.ir.graph import Graph, IntArray
from hwflow.passes import pipeline
from hwflow.verify import golden
from tests.agreement import agree, same
from tests.ir.graph_text import to_text
from tests.models import Builder


def network(b: Builder) -> None:
    d = b.requantize(b.input("x", ["N", 2, 6, 6]), 0.5, 3)
    w = b.weights(np.arange(36).reshape(2, 2, 3, 3) - 20, [0.1, 0.3], [0, 0], axis=0)
    c = b.requantize(b.node("Relu", b.node("Conv", d, w, pads=[1, 1, 1, 1])), 9.0, 5)
    p = b.requantize(b.node("MaxPool", c, kernel_shape=[2, 2], strides=[2, 2]), 7.0, 2)
    fc = b.node("Gemm", b.node("Flatten", p), b.weights(np.arange(36).reshape(18, 2) - 17))
    b.output(b.requantize(fc, 100.0, 128))


def branches(b: Builder) -> None:
    d = b.requantize(b.input("x", ["N", 4]), 0.5, 3)
    left = b.node("MatMul", d, b.weights(np.eye(4, dtype=int)))
    again = b.requantize(b.requantize(d, 1.0, 3), 0.5, 3)
    b.output(left, again, b.requantize(again, 0.5, 3), d)


def channels(b: Builder) -> None:
    d = b.requantize(b.input("x", ["N", 3, 2, 2]), [0.5, 1.0, 0.25], [1, 2, 3], axis=1)
    e = b.requantize(b.requantize(b.requantize(d, 1.0, 3), [1.0, 0.5, 2.0], [0, 9, 4], axis=1), 2.0, 9)
    b.output(b.node("Transpose", e, perm=[0, 2, 3, 1]), b.node("Flatten", d))


def clips(b: Builder) -> None:
    q = b.quantize(b.input("x", ["N", 5]), 0.5, 0, "int8")
    narrow = b.node("Clip", q, b.constant(-127, "int8"), b.constant(127, "int8"))
    wide = b.node("Clip", narrow, b.constant(-128, "int8"))
    b.output(wide, b.dequantize(wide, 0.5, 0, "int8"))


def choices(b: Builder) -> None:
    """Behind a Max quantizers that rise, fall and do neither, behind a Where any."""
    x, y = (b.requantize(b.input(name, ["N", 3, 4]), 0.5, 3, "int8") for name in "xy")
    p, q = b.requantize(x, [0.3, 0.7, 0.9], [0, 1, 2], "int8", axis=1), b.requantize(y, 0.11, -4, "int8")
    b.output(b.requantize(b.node("Max", p, q), 0.5, 0, "int8"))
    rest = [b.requantize(x, 0.7, 1, "int8"), b.requantize(y, 0.3, 1, "int8")]
    b.output(b.requantize(b.node("Abs", b.node("Max", *rest)), 0.5, 0, "int8"))  # stays behind, and stops none of these
    b.output(b.requantize(b.node("Neg", b.node("Min", p, b.constant([[1.3], [2.0], [-0.7]]))), 0.5, 0, "int8"))
    b.output(b.requantize(b.node("Abs", b.node("Max", p, b.requantize(y, 0.13, 4, "int8"))), 0.5, 0, "int8"))
    larger = b.node("Where", b.node("Greater", x, y), b.requantize(x, 0.7, 4, "int8"), b.requantize(y, 0.3, 1, "int8"))
    b.output(b.requantize(b.node("Abs", larger), 0.5, 0, "int8"))


PARAMETERS = st.tuples(st.sampled_from([0.5, 1.0, 0.3, 7.0]), st.integers(0, 255))
MODELS = [network, branches, channels, clips, choices]


def feeds(graph: Graph, seed: int) -> dict[str, IntArray]:
    rng = np.random.default_rng(seed)
    ranges = {p: p.value.typed.interval for p in graph.inputs}
    return {p.name: rng.integers(r.lo, r.hi + 1, (4, *p.shape)) for p, r in ranges.items()}


@pytest.mark.parametrize("make", MODELS)
def test_each_pass_keeps_the_golden_model(make: Callable[[Builder], None], tmp_path: Path) -> None:
    b = Builder()
    make(b)
    original = b.load(tmp_path).quantized
    inputs = feeds(original, 1)
    before, graph = to_text(original), original
    for step in pipeline.DATAFLOW:
        graph = step(graph)
        same(original, graph, inputs)
        for value, array in golden.trace(graph, inputs).items():
            assert value.typed.interval.lo <= array.min() and array.max() <= value.typed.interval.hi, value.name
    assert to_text(original) == before, "the quantized graph must stay as it is"


@pytest.mark.parametrize("make", MODELS)
def test_against_exact_arithmetic(make: Callable[[Builder], None]) -> None:
    b = Builder()
    make(b)
    agree(b, 3)


@settings(max_examples=25, deadline=None)
@given(st.lists(PARAMETERS, min_size=1, max_size=4), st.data())
def test_any_chain_of_quantizers_is_fused(steps: list[tuple[float, int]], data: st.DataObject) -> None:
    b = Builder()
    y = b.requantize(b.input("x", ["N", 2, 3]), 0.5, 9)
    for scale, zero in steps:
        if data.draw(st.booleans()):
            y = b.requantize(y, scale, zero)
        else:
            y = b.requantize(y, [scale, 0.7, 2.0], [zero, 0, 255], axis=2)
    b.output(y)
    graph = pipeline.run(agree(b).quantized, pipeline.DATAFLOW)
    assert len([n for n in graph.nodes if n.op == "requantize"]) <= 1


def test_exact_intervals(tmp_path: Path) -> None:
    """Bounds that are attained: weights [[3, -2]] over [0, 255] give [-510, 765]."""
    b = Builder()
    b.output(b.node("Gemm", b.requantize(b.input("x", ["N", 2]), 0.5), b.weights([[3, -2]]), transB=1))
    (port,) = b.load(tmp_path).quantized.outputs
    assert str(port.value.typed) == "i11[1] in [-510, 765]"


def test_sums_beyond_exact_arithmetic_are_refused(tmp_path: Path) -> None:
    b = Builder()
    d = b.dequantize(b.input("x", ["N", 1], "int32"), 1.0, None)
    w = b.weights([[2**31 - 1]], 1.0, None, "int32")
    b.output(b.node("MatMul", d, w, name="fits"), b.node("MatMul", b.node("MatMul", d, w), w, name="fails"))
    with pytest.raises(ModelRefused) as caught:
        pipeline.run(lower(b.load(tmp_path).resolved), pipeline.QUANTIZED)
    assert [f.rule for f in caught.value.findings] == ["accumulator-range"]


def test_functions_without_steps_are_refused_all_at_once(tmp_path: Path) -> None:
    """q - 3 of a uint8 q is at least -3: its root is not defined everywhere, nor is 1 / (q - 3). What reads their
    results is not complained about."""
    b = Builder()
    d = b.requantize(b.input("x", ["N", 2]), 1.0, 3)
    root = b.requantize(b.node("Sqrt", d, name="root"), 0.5)
    b.output(b.requantize(b.node("Relu", root), 0.25), b.requantize(b.node("Reciprocal", d, name="inverse"), 0.5))
    with pytest.raises(ModelRefused) as caught:
        pipeline.run(lower(b.load(tmp_path).resolved), pipeline.QUANTIZED)
    findings = caught.value.findings
    assert [f.rule for f in findings] == ["decidable-function"] * 2
    assert ["'root'" in f.where for f in findings] == [True, False]
    assert ["'inverse'" in f.where for f in findings] == [False, True]
    for finding, reason in zip(findings, ("negative", "divides by 0"), strict=True):
        assert finding.message.startswith("for inputs in [0, 255] the function must ") and reason in finding.message
        assert finding.remedy == (
            "keep its input where it is defined, with a Clip or another zero point say, or change its constants"
        )
