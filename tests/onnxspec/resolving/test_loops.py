"""Loops over constants are computed where their cost is known, others and all branches unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from hwflow.onnxspec import resolve_with_graph
from tests.onnxspec.build import model, node, refused, value
from tests.onnxspec.resolving.resolved import resolve

pytestmark = pytest.mark.usefixtures("measured")

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
F32 = np.float32


def reads(nodes: Sequence[onnx.NodeProto], name: str) -> bool:
    return any(name in node.input for node in nodes)


ADD = node("Add", ["a", "step"], ["b"])
SQUARE = node("Mul", ["b", "b"], ["s"])


def loop(
    body: Sequence[onnx.NodeProto], steps: int = 3, inputs: Sequence[str] = ("n", "", "start"), **constants: Any
) -> onnx.ModelProto:
    """A Loop with state a -> b and scanned output s; y is x and the last state."""
    graph = helper.make_graph(
        [node("Identity", ["go"], ["on"]), *body],
        "body",
        [value("i", [], INT64), value("go", [], BOOL), value("a", None)],
        [value("on", [], BOOL), value("b", None), value("s", None)],
    )
    return model(
        [node("Loop", inputs, ["last", "all"], name="loop", body=graph), node("Add", ["x", "last"], ["y"])],
        outputs=[value("y", [1, 4]), value("all", None if "x" in inputs or reads(body, "x") else ["k", 4])],
        constants={"n": np.int64(steps), "start": np.zeros(4, F32), "step": np.arange(4, dtype=F32), **constants},
    )


def test_a_loop_over_constants() -> None:
    # a is 0, 1, 2, 3 times [0, 1, 2, 3]; what is scanned are the squares
    resolved = resolve(loop([ADD, SQUARE]), {})
    assert [n.op_type for n in resolved.nodes] == ["Add"]
    assert resolved.constants["last"].tolist() == [0, 3, 6, 9]
    assert resolved.constants["all"].tolist() == [[0, 1, 4, 9], [0, 4, 16, 36], [0, 9, 36, 81]]
    assert (resolved.values["all"].shape, resolved.values["all"].dtype) == ((3, 4), "float32")


def test_a_loop_that_ends_by_itself() -> None:
    # it goes on while a[3] is below 6: 3, 6
    below = [
        node("Gather", ["b", "three"], ["one"]),
        node("Less", ["one", "six"], ["on"]),
        ADD,
        node("Unsqueeze", ["b", "zero"], ["s"]),
    ]
    more = {"three": np.int64(3), "six": F32(6), "zero": np.array([0]), "yes": np.bool_(True)}
    proto = loop(below[2:], inputs=["n", "yes", "start"], steps=1000, **more)
    body = proto.graph.node[0].attribute[0].g
    del body.node[0]  # what passes the condition on
    body.node.extend(below[:2])
    proto.graph.output[1].CopyFrom(value("all", ["k", 1, 4]))
    resolved = resolve(proto, {})
    assert resolved.constants["last"].tolist() == [0, 2, 4, 6]
    assert resolved.constants["all"].tolist() == [[[0, 1, 2, 3]], [[0, 2, 4, 6]]]


def test_a_scan_over_constants() -> None:
    graph = helper.make_graph(
        [node("Add", ["a", "e"], ["b"]), node("Identity", ["b"], ["s"])],
        "body", [value("a", []), value("e", [])], [value("b", []), value("s", [])],
    )
    proto = model(
        [
            node("Scan", ["zero", "w"], ["total", "sums"], name="scan", body=graph, num_scan_inputs=1),
            node("Add", ["x", "sums"], ["y"]),
        ],
        constants={"zero": F32(0), "w": np.array([1, 2, 3, 4], F32)},
    )
    resolved = resolve(proto, {})
    assert [n.op_type for n in resolved.nodes] == ["Add"]
    assert resolved.constants["sums"].tolist() == [1, 3, 6, 10]


SHORTER = "\n  remedy: give it fewer rounds, for example shorter sequences, or a smaller maximum"


TOO_MANY = (
    "error: node 'loop' (Loop): control flow must unroll into at most 8192 nodes, but there are more "
    f"[unrolled-size]{SHORTER}"
)


@pytest.mark.parametrize(
    "proto",
    [
        pytest.param(loop([ADD, SQUARE], 1 << 62), id="too many steps"),
        pytest.param(loop([node("Add", ["a", "x"], ["b"]), SQUARE], 1 << 40), id="too many steps of a stream"),
    ],
)
def test_loops_without_end(proto: onnx.ModelProto) -> None:
    assert refused(lambda: resolve(proto, {})) == [TOO_MANY]


def test_nothing_ends_a_loop() -> None:
    proto = loop([ADD, SQUARE], inputs=["", "yes", "start"], yes=np.bool_(True))
    assert refused(lambda: resolve(proto, {})) == [
        "error: node 'loop' (Loop): the number of rounds must have a bound that is known when compiling, but nothing "
        "ends the Loop before [control-flow]\n  remedy: give the Loop a constant maximum number of rounds"
    ]


def test_a_state_that_grows_beyond_all_bounds() -> None:
    """It doubles 60 times: ends where the constants are too large."""
    proto = loop([node("Concat", ["a", "a"], ["b"], axis=0), SQUARE], 60)
    assert any("[" in text and "loop" in text for text in refused(lambda: resolve(proto, {})))


def flat_nodes(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in resolve_with_graph(proto, {})[1].graph.node]


def test_a_loop_over_a_stream_is_unrolled() -> None:
    """a is start, then three times a stream more; the sum of squares of 4 elements each."""
    proto = loop([node("Add", ["a", "x"], ["b"]), SQUARE])
    resolved = resolve(proto, {})
    assert [n.op_type for n in resolved.nodes if n.op_type not in ("Identity", "Reshape")].count("Add") == 4
    assert [n.name for n in resolved.nodes if n.op_type == "Mul"] == [f"loop/round_{k}/Mul_s" for k in range(3)]
    assert {n.context for n in resolved.nodes if n.op_type == "Mul"} == {
        f" in round {k} of node 'loop' (Loop)" for k in range(3)
    }
    assert resolved.values["last"].shape == (1, 4) and resolved.values["all"].shape == (3, 1, 4)
    same(proto, {"x": np.array([[1, 2, 3, 4]], F32)})


def same(proto: onnx.ModelProto, feeds: dict[str, Any]) -> onnx.ModelProto:
    """The model, unrolled, computes in the reference evaluator what onnxruntime computes with it as it is."""
    flat = resolve_with_graph(proto, {}, whole=True)[1]
    assert not {"If", "Loop", "Scan", "SequenceMap"} & {n.op_type for n in flat.graph.node}
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, feeds)
    for found, expected in zip(ReferenceEvaluator(flat).run(None, feeds), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)
    return flat


def test_what_does_not_change_is_computed_once() -> None:
    """The product of a stream by itself, in every round the same."""
    proto = loop([node("Mul", ["x", "x"], ["q"]), node("Add", ["a", "q"], ["b"]), SQUARE], inputs=["n", "", "x"])
    flat = same(proto, {"x": np.array([[1, 2, 3, 4]], F32)})
    assert [n.op_type for n in flat.graph.node].count("Mul") == 1 + 3


def until(most: int = 5, **more: Any) -> onnx.ModelProto:
    """A Loop that adds x to a until their greatest element reaches 10, at most ``most`` times."""
    info = [value("i", [], INT64), value("go", [], BOOL), value("a", [4])]
    body = helper.make_graph(
        [
            node("Add", ["a", "x"], ["b"]), node("ReduceMax", ["b"], ["top"], keepdims=0),
            node("Less", ["top", "ten"], ["on"]),
        ],
        "body", info, [value("on", [], BOOL), value("b", [4]), *more.pop("scanned", [])],
    )
    outputs = more.pop("outputs", ["y"])
    return model(
        [node("Loop", ["n", "", "start"], outputs, name="loop", body=body)], [value("x", [4])],
        [value(name, None) for name in outputs],
        {"n": np.int64(most), "start": np.zeros(4, F32), "ten": F32(10)},
    )


@pytest.mark.parametrize("rate", [1, 3, 5, 20])
def test_a_condition_at_run_time(rate: int) -> None:
    """Ends after more than five, four, two and one round."""
    same(until(), {"x": np.array([0, rate, -1, 1], F32)})


def test_what_a_condition_at_run_time_leaves_open() -> None:
    proto = until(scanned=[value("top", [])], outputs=["y", "tops"])
    (text,) = refused(lambda: resolve_with_graph(proto, {}, whole=True))
    assert text.startswith(
        "error: node 'loop' (Loop): output 'tops' must have a length that is known when compiling, but a condition at "
        "run time decides how many rounds give an element of it [control-flow]"
    )
    del proto.graph.output[1]
    resolve_with_graph(proto, {}, whole=True)  # what nobody reads does not matter


def test_no_bound_at_all() -> None:
    proto = until()
    proto.graph.node[0].input[0] = ""
    (text,) = refused(lambda: resolve_with_graph(proto, {}, whole=True))
    assert "the number of rounds must have a bound" in text


def choice(*nodes: onnx.NodeProto, other: Sequence[onnx.NodeProto], kind: Sequence[int] = ()) -> onnx.ModelProto:
    graphs = {
        f"{way}_branch": helper.make_graph(list(each), way, [], [value("r", None)])
        for way, each in (("then", nodes), ("else", other))
    }
    return model(
        [node("If", ["c"], ["y"], name="choose", **graphs)], [value("x", [2, 4]), value("c", kind, BOOL)],
        [value("y", None)],
    )


@pytest.mark.parametrize("kind", [(), (1,)])
def test_both_branches_of_a_condition_at_run_time(kind: Sequence[int]) -> None:
    """One of them passes on what it sees."""
    proto = choice(node("Neg", ["x"], ["r"]), other=[node("Identity", ["x"], ["r"])], kind=kind)
    for taken in (False, True):
        same(proto, {"x": np.arange(8, dtype=F32).reshape(2, 4), "c": np.full(kind, taken)})


def test_branches_of_different_shapes() -> None:
    proto = choice(node("Neg", ["x"], ["r"]), other=[node("Concat", ["x", "x"], ["r"], axis=0)])
    assert refused(lambda: resolve_with_graph(proto, {}, whole=True)) == [
        "error: node 'choose' (If): both branches must give tensors of one shape and type for 'y' (hardware computes "
        "both and selects), not [2, 4] of float32 and [4, 4] of float32 [control-flow]\n  remedy: pad them to a common "
        "shape, or decide the condition when the model is exported (option --const)"
    ]


def scan(axis: int, backward: int, length: int = 3) -> onnx.ModelProto:
    """Two scanned inputs along different axes, the second backward or not; two states; two scanned outputs."""
    body = helper.make_graph(
        [
            node("Add", ["a", "e"], ["b"]), node("Mul", ["p", "f"], ["q"]), node("Sub", ["b", "q"], ["s"]),
            node("Identity", ["q"], ["t"]),
        ],
        "body", [value(n, [2]) for n in "apef"], [value(n, [2]) for n in "bqst"],
    )
    shape = [2, 2]
    shape[axis] = length
    return model(
        [
            node(
                "Scan", ["zero", "one", "x", "z"], ["last", "product", "sums", "parts"], name="scan", body=body,
                num_scan_inputs=2, scan_input_axes=[axis, 0], scan_input_directions=[0, backward],
                scan_output_axes=[-1, 0], scan_output_directions=[backward, 0],
            )
        ],
        [value("x", shape), value("z", [length, 2])], [value(n, None) for n in ("last", "product", "sums", "parts")],
        {"zero": np.zeros(2, F32), "one": np.ones(2, F32)},
    )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("length", [1, 3])
def test_a_scan_over_streams(axis: int, backward: int, length: int) -> None:
    rng = np.random.default_rng(axis)
    proto = scan(axis, backward, length)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in proto.graph.input}
    same(proto, {name: rng.integers(-3, 4, shape).astype(F32) for name, shape in shapes.items()})


def nested(depth: int, rounds: int) -> onnx.ModelProto:
    """Loops in loops, the innermost adding the stream x to its state."""
    inner = [node("Add", ["a0", "x"], ["b0"])]
    for level in range(depth):
        body = helper.make_graph(
            [*inner, node("Identity", [f"go{level}"], [f"on{level}"])], f"body{level}",
            [value(f"i{level}", [], INT64), value(f"go{level}", [], BOOL), value(f"a{level}", None)],
            [value(f"on{level}", [], BOOL), value(f"b{level}", None)],
        )
        state, result = ("x", "y") if level == depth - 1 else (f"a{level + 1}", f"b{level + 1}")
        inner = [node("Loop", ["n", "", state], [result], name=f"loop{level}", body=body)]
    return model(inner, constants={"n": np.int64(rounds)})


def test_loops_in_loops() -> None:
    """x and 2**3 times x more."""
    resolved = resolve(nested(3, 2), {})
    assert [n.op_type for n in resolved.nodes].count("Add") == 8
    x = np.array([[1, 2, 3, 4]], F32)
    (found,) = ReferenceEvaluator(resolve_with_graph(nested(3, 2), {})[1]).run(None, {"x": x})
    np.testing.assert_array_equal(found, 9 * x)


def test_loops_in_loops_without_end() -> None:
    """Quickly refused, and once."""
    found = refused(lambda: resolve(nested(4, 1000), {}))
    assert len(found) == 1 and found[0].endswith(SHORTER)


def test_a_fault_in_a_body_is_named_once() -> None:
    """And what is wrong in front of and behind the loop, too."""
    proto = loop([node("MatMul", ["a", "x"], ["b"], name="wrong"), SQUARE], inputs=["n", "", "x"])
    (text,) = refused(lambda: resolve(proto, {}))
    assert text.startswith("error: node 'loop/round_0/wrong' (MatMul) in round 0 of node 'loop' (Loop): the node must")


def test_sequences_of_known_length() -> None:
    """A loop collects four sequences' elements; a map squares them; parts are put in and taken out."""
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["on"]), node("Add", ["a", "x"], ["b"]),
            node("SequenceInsert", ["s", "b"], ["r"]),
        ],
        "body",
        [value("i", [], INT64), value("go", [], BOOL), value("a", None), sequence("s")],
        [value("on", [], BOOL), value("b", None), sequence("r")],
    )
    square = helper.make_graph([node("Mul", ["e", "e"], ["q"])], "square", [value("e", None)], [value("q", None)])
    proto = model(
        [
            node("SequenceEmpty", [], ["none"]),
            node("Loop", ["n", "", "x", "none"], ["last", "all"], body=body),
            node("SequenceMap", ["all"], ["squares"], body=square),
            node("SequenceErase", ["squares", "one"], ["fewer"]),
            node("SequenceInsert", ["fewer", "x", "one"], ["more"]),
            node("ConcatFromSequence", ["more"], ["stacked"], axis=1, new_axis=1),
            node("SplitToSequence", ["stacked"], ["parts"], axis=1, keepdims=0),
            node("SequenceAt", ["parts", "minus"], ["y"]),
            node("SequenceLength", ["parts"], ["count"]),
        ],
        outputs=[value("stacked", None), value("y", None), value("count", [], INT64)],
        constants={"n": np.int64(4), "one": np.int64(1), "minus": np.int64(-2)},
    )
    flat = resolve_with_graph(proto, {}, whole=True)[1]
    x = np.array([[1, 2, 3, 4]], F32)
    stacked, y, count = ReferenceEvaluator(flat).run(None, {"x": x})
    wanted = np.stack([(2 * x) ** 2, x, (4 * x) ** 2, (5 * x) ** 2], axis=1)
    np.testing.assert_array_equal(stacked, wanted)
    np.testing.assert_array_equal(y, wanted[:, -2])
    assert count == 4


def sequence(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)


def test_positions_that_are_not_known() -> None:
    proto = model(
        [node("SequenceConstruct", ["x", "x"], ["s"]), node("SequenceAt", ["s", "p"], ["y"], name="at")],
        [value("x", [1, 4]), value("p", [], INT64)],
    )
    (text,) = refused(lambda: resolve(proto, {}))
    assert "position 'p' must be known when compiling" in text
