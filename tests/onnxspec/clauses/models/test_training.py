"""Clauses about training information."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import node, texts, value
from tests.onnxspec.clauses.twins import Twin, check
from tests.onnxspec.training.sgd import (
    BACKWARD,
    FORWARD,
    LOSS,
    TARGET,
    UPDATE,
    W_FIRST,
    W_NEW,
    WEIGHTS,
    X,
    Y,
    algorithm,
    descent,
    graph,
    initialization,
    sgd,
    training,
)

ZERO = np.zeros((2, 1), np.float32)
ONE = np.float32(1)
FLAG = np.array(True)
BOUND = (("w", "w_new"),)


def no_initialization(*initial: tuple[str, str]) -> onnx.TrainingInfoProto:
    return training(algorithm(), BOUND, None, initial)


def second(name: str = "again", key: str = "v", **constants: object) -> onnx.TrainingInfoProto:
    """A training_info that doubles the initializer ``key``, which is in ``constants`` or the main graph's."""
    doubled = graph(
        name, [node("Add", [key, key], ["doubled"], name="double")], [], [value("doubled", [2, 1])], constants
    )
    return training(doubled, [(key, "doubled")])


def sparse_weights() -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        helper.make_tensor("s", onnx.TensorProto.FLOAT, [1], [1.0]),
        helper.make_tensor("", onnx.TensorProto.INT64, [1], [0]),
        [2, 1],
    )


def branching(inner: str) -> list[onnx.NodeProto]:
    """The main graph with an If whose branches compute ``inner``."""
    branches = {
        f"{which}_branch": graph(which, [node("Identity", ["product"], [inner])], [], [value(inner, ["N", 1])])
        for which in ("then", "else")
    }
    return [
        node("MatMul", ["x", "w"], ["product"], name="forward"),
        node("If", ["flag"], ["y"], name="choice", **branches),
    ]


def reading(name: str) -> list[onnx.NodeProto]:
    """The main graph with an If whose one branch reads ``name``."""
    yes = graph("then", [node("Mul", ["product", name], ["yes"], name="times")], [], [value("yes", ["N", 1])])
    no = graph("else", [node("Identity", ["product"], ["no"], name="same")], [], [value("no", ["N", 1])])
    return [
        node("MatMul", ["x", "w"], ["product"], name="forward"),
        node("If", ["flag"], ["y"], name="choice", then_branch=yes, else_branch=no),
    ]


BIND = "\n  remedy: bind an initializer, or remove the binding"
ONCE = "\n  remedy: remove all bindings of the key but one"
RENAME = "\n  remedy: rename one of them"
ALONE = "\n  remedy: let the main graph compute what it reads: it must run without training"


def twice(where: str, name: str, other: str) -> list[str]:
    return [
        f"error: {where}: value '{name}' must be defined once in the main graph and the algorithm graph together, but "
        f"{other} defines it too [TRN-17]{RENAME}"
    ]


TWINS = [
    Twin(
        "TRN-04",
        bad=sgd(descent(initial=[("W", "w_first")])),
        good=sgd(descent(initial=[("w", "w_first")])),
        findings=[
            "error: initialization_binding 'W' of training_info[0]: the key must name an initializer (a dense tensor) "
            "of the main graph or of the algorithm graph of training_info[0], not 'W', which is none of theirs "
            f"[TRN-04]{BIND}"
        ],
    ),
    Twin(
        "TRN-04",
        bad=sgd(descent(initial=[("x", "w_first")])),
        good=sgd(descent(algorithm(constants={"v": ZERO}), initial=[("v", "w_first")])),
        findings=[
            "error: initialization_binding 'x' of training_info[0]: the key must name an initializer (a dense tensor) "
            "of the main graph or of the algorithm graph of training_info[0], not 'x', which is none of theirs "
            f"[TRN-04]{BIND}"
        ],
        name="input",
    ),
    Twin(
        "TRN-04",
        bad=sgd(
            descent(),
            training(None, (), initialization(name="ones"), [("v", "w_first")]),
            second(v=ZERO),
        ),
        good=sgd(
            descent(),
            training(None, (), initialization(name="ones"), [("w", "w_first")]),
            second(v=ZERO),
        ),
        findings=[
            "error: initialization_binding 'v' of training_info[1]: the key must name an initializer (a dense tensor) "
            "of the main graph or of the algorithm graph of training_info[1], not 'v', which is none of theirs "
            f"[TRN-04]{BIND}"
        ],
        name="another's",
    ),
    Twin(
        "TRN-04",
        bad=sgd(descent(initial=[("", "w_first")])),
        good=sgd(),
        findings=[
            "error: initialization_binding 0 of training_info[0]: the key must name an initializer (a dense tensor) of "
            "the main graph or of the algorithm graph of training_info[0], not '', which is none of theirs "
            f"[TRN-04]{BIND}"
        ],
        name="empty",
    ),
    Twin(
        "TRN-05",
        bad=sgd(descent(initial=[("w", "w_shape")])),
        good=sgd(),
        findings=[
            "error: initialization_binding 'w' of training_info[0]: the value must name an output of the "
            "initialization graph of training_info[0], not 'w_shape', which is none [TRN-05]\n"
            "  remedy: bind to an output of the initialization graph"
        ],
    ),
    Twin(
        "TRN-06",
        bad=sgd(
            descent(
                initialization_graph=initialization(
                    [
                        node("ConstantOfShape", ["w_shape"], ["w_first"], name="zero"),
                        node("Identity", ["w_first"], ["w_second"], name="same"),
                    ],
                    outputs=[W_FIRST, value("w_second", [2, 1])],
                ),
                initial=[("w", "w_first"), ("w", "w_second")],
            )
        ),
        # Of several entries the later one counts: they run in order.
        good=sgd(
            descent(), training(None, (), initialization(name="ones"), [("w", "w_first")])
        ),
        findings=[
            "error: initialization_binding 'w' of training_info[0]: keys must be distinct, but 'w' is bound already in "
            f"this training_info [TRN-06]{ONCE}"
        ],
    ),
    Twin(
        "TRN-08",
        bad=sgd(descent(updates=[("W", "w_new")])),
        good=sgd(),
        findings=[
            "error: update_binding 'W' of training_info[0]: the key must name an initializer (a dense tensor) of the "
            "main graph or of the algorithm graph of training_info[0], not 'W', which is none of theirs "
            f"[TRN-08]{BIND}"
        ],
    ),
    Twin(
        "TRN-08",
        bad=sgd(descent(updates=[("s", "w_new")]), sparse_initializer=[sparse_weights()]),
        good=sgd(descent(algorithm(constants={"v": ZERO}), [("v", "w_new")]), sparse_initializer=[sparse_weights()]),
        findings=[
            "error: update_binding 's' of training_info[0]: the key must name an initializer (a dense tensor) of the "
            "main graph or of the algorithm graph of training_info[0], not 's', which is a sparse one "
            f"[TRN-08]{BIND}"
        ],
        name="sparse",
    ),
    Twin(
        "TRN-09",
        bad=sgd(descent(updates=[("w", "change")])),
        good=sgd(),
        findings=[
            "error: update_binding 'w' of training_info[0]: the value must name an output of the algorithm graph of "
            "training_info[0] or of the main graph, not 'change', which is none [TRN-09]\n"
            "  remedy: bind to an output of the algorithm graph"
        ],
    ),
    Twin(
        "TRN-09",  # onnx.proto allows outputs of the main graph
        bad=sgd(
            training(None, [("m", "half")]),
            nodes=[*FORWARD, node("Mul", ["m", "m"], ["half"], name="square")],
            constants={"m": ONE},
        ),
        good=sgd(
            training(None, [("m", "half")]),
            nodes=[*FORWARD, node("Mul", ["m", "m"], ["half"], name="square")],
            outputs=[Y, value("half", [])],
            constants={"m": ONE},
        ),
        findings=[
            "error: update_binding 'm' of training_info[0]: the value must name an output of the algorithm graph of "
            "training_info[0] or of the main graph, not 'half', which is none [TRN-09]\n"
            "  remedy: bind to an output of the algorithm graph"
        ],
        name="main",
    ),
    Twin(
        "TRN-10",
        bad=sgd(descent(updates=[("w", "w_new"), ("w", "w_new")])),
        good=sgd(),
        findings=[
            "error: update_binding 'w' of training_info[0]: keys must be distinct over all update_bindings of the "
            f"model, but 'w' is bound already in training_info[0] [TRN-10]{ONCE}"
        ],
    ),
    Twin(
        "TRN-10",
        bad=sgd(descent(), second(key="w")),
        good=sgd(descent(), second(key="v"), constants={"v": ZERO}),
        findings=[
            "error: update_binding 'w' of training_info[1]: keys must be distinct over all update_bindings of the "
            f"model, but 'w' is bound already in training_info[0] [TRN-10]{ONCE}"
        ],
        name="several",
    ),
    Twin(
        "TRN-14",
        bad=sgd(no_initialization(("w", "w_first"))),
        good=sgd(no_initialization()),
        findings=[
            "error: training_info[0]: initialization must be present if initialization_binding has entries, but there "
            "is no graph and 1 entry [TRN-14]\n  remedy: add the initialization graph, or remove the bindings"
        ],
    ),
    Twin(
        "TRN-17",
        bad=sgd(descent(initialization_graph=initialization(inputs=[value("seed", [1])]))),
        good=sgd(descent(initialization_graph=initialization(constants={"seed": np.float32([1])}))),
        findings=[
            "error: input 'seed' in initialization graph of training_info[0]: an initialization graph must have no "
            "inputs, but this is one [TRN-17]\n  remedy: make it an initializer of the initialization graph"
        ],
        name="initialization-input",
    ),
    Twin(
        "TRN-17",
        bad=sgd(
            descent(algorithm([node("Sub", ["y", "target"], ["y"], name="error"), *BACKWARD, UPDATE])),
        ),
        good=sgd(
            descent(algorithm([node("Sub", ["y", "target"], ["y_2"], name="error_2"), *BACKWARD, UPDATE])),
        ),
        findings=twice(
            "node 'error' (Sub) in algorithm graph of training_info[0]", "y", "node 'forward' (MatMul)"
        ),
        name="two-nodes",
    ),
    Twin(
        "TRN-17",
        bad=sgd(descent(algorithm(inputs=[TARGET, X]))),
        good=sgd(descent(algorithm(inputs=[TARGET, value("x_2", ["N", 2])]))),
        findings=twice("input 'x' in algorithm graph of training_info[0]", "x", "an input of the main graph"),
        name="two-inputs",
    ),
    Twin(
        "TRN-17",
        bad=sgd(descent(algorithm(constants={"w": WEIGHTS}))),
        good=sgd(descent(algorithm(constants={"w_2": WEIGHTS}))),
        findings=twice(
            "initializer 'w' in algorithm graph of training_info[0]", "w", "an initializer of the main graph"
        ),
        name="two-initializers",
    ),
    Twin(
        "TRN-17",  # a default of the algorithm graph's input, but the main graph must not read such an input
        bad=sgd(descent(algorithm(inputs=[TARGET, value("w", [2, 1])]))),
        good=sgd(descent(algorithm(inputs=[TARGET, value("v", [2, 1])])), constants={"v": ZERO}),
        findings=twice("input 'w' in algorithm graph of training_info[0]", "w", "an initializer of the main graph"),
        name="default",
    ),
    Twin(
        "TRN-17",
        bad=sgd(
            nodes=[node("MatMul", ["x", "w"], ["p"], name="mm"), node("Mul", ["p", "rate"], ["y"], name="times")],
        ),
        good=sgd(
            nodes=[node("MatMul", ["x", "w"], ["p"], name="mm"), node("Mul", ["p", "own_rate"], ["y"], name="times")],
            constants={"own_rate": ONE},
        ),
        findings=[
            "error: node 'times' (Mul): a node of the main graph must not read a value of the algorithm graph of "
            f"training_info[0], but this one reads 'rate' [TRN-17]{ALONE}"
        ],
        name="read-by-node",
    ),
    Twin(
        "TRN-17",
        bad=sgd(nodes=reading("rate"), constants={"flag": FLAG}),
        good=sgd(nodes=reading("own_rate"), constants={"flag": FLAG, "own_rate": ONE}),
        findings=[
            "error: node 'choice' (If): a node of the main graph must not read a value of the algorithm graph of "
            f"training_info[0], but this one reads 'rate' [TRN-17]{ALONE}"
        ],
        name="read-by-subgraph",
    ),
    Twin(
        "TRN-17",
        bad=sgd(outputs=[Y, LOSS]),
        good=sgd(),
        findings=[
            "error: output 'loss': an output of the main graph must not be a value of the algorithm graph of "
            f"training_info[0], but this one is [TRN-17]{ALONE}"
        ],
        name="output-of-main",
    ),
    Twin(
        "TRN-17",
        bad=sgd(nodes=branching("e"), constants={"flag": FLAG}),
        good=sgd(nodes=branching("inner"), constants={"flag": FLAG}),
        findings=[
            f"error: node 'Identity_e' (Identity) in '{which}_branch' of node 'choice' (If): value 'e' must differ "
            "from the values of the algorithm graph of training_info[0], which are around it when the main graph and "
            f"that graph are one, but one has that name [TRN-17]{RENAME}"
            for which in ("else", "then")
        ],
        name="shadowed",
    ),
    Twin(
        "TRN-17",
        bad=sgd(descent(algorithm([node("Sub", ["y", "target"], ["e"], name="forward"), *BACKWARD[1:], UPDATE]))),
        good=sgd(),
        findings=[
            "warning: node 'forward' (Sub) in algorithm graph of training_info[0]: node names must be distinct in the "
            "main graph and the algorithm graph together, but 'forward' names a node of the main graph too "
            f"[TRN-17]{RENAME}"
        ],
        name="node-names",
    ),
    Twin(
        "TRN-17",
        bad=sgd(
            descent(algorithm(value_info=[value("p", ["N", 1])])),
            nodes=[node("MatMul", ["x", "w"], ["p"], name="mm"), node("Relu", ["p"], ["y"], name="relu")],
            value_info=[value("p", ["N", 1])],
        ),
        good=sgd(
            descent(algorithm(value_info=[value("e", ["N", 1])])),
            nodes=[node("MatMul", ["x", "w"], ["p"], name="mm"), node("Relu", ["p"], ["y"], name="relu")],
            value_info=[value("p", ["N", 1])],
        ),
        findings=[
            "warning: value 'p' in algorithm graph of training_info[0]: value_info must name a value once in the main "
            "graph and the algorithm graph together, but the main graph's names 'p' too [TRN-17]\n"
            "  remedy: remove one of them"
        ],
        name="value-info",
    ),
    Twin(
        "TRN-17",
        bad=sgd(descent(algorithm([*BACKWARD, node("Sub", ["gone", "change"], ["w_new"], name="descend")]))),
        good=sgd(descent(algorithm([*BACKWARD, node("Sub", ["w", "change"], ["w_new"], name="descend")]))),
        findings=[
            "error: node 'descend' (Sub) in algorithm graph of training_info[0]: input 'gone' must be a graph input, "
            "an initializer or the output of a node, but nothing computes it [TRN-17]\n"
            "  remedy: add the node that computes 'gone', or read another value"
        ],
        name="no-valid-graph",
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def test_onnx_checks_types_in_the_algorithm_graph_behind_the_main_graph() -> None:
    def finds(kind: int) -> list[str]:
        cast = node("Cast", ["change"], ["change_2"], name="cast", to=kind)
        descend = node("Sub", ["w", "change_2"], ["w_new"], name="descend")
        return texts(validate(sgd(descent(algorithm([*BACKWARD, cast, descend])))))

    assert finds(onnx.TensorProto.FLOAT) == []
    (finding,) = finds(onnx.TensorProto.INT64)
    assert finding.startswith(
        "error: node 'descend' (Sub) in algorithm graph of training_info[0]: input 1 ('change_2') must be float32 as "
        "input 0 ('w') is, not int64 [NOD-32]"
    )


def test_onnx_checks_types_in_the_initialization_graph() -> None:
    floats = initialization(constants={"w_shape": np.float32([2, 1])})
    (finding,) = texts(validate(sgd(descent(initialization_graph=floats))))
    assert finding.startswith("error: node ")
    assert " in initialization graph of training_info[0]: input 0 ('w_shape') must be int64, not float32 [" in finding


def legal_models() -> dict[str, onnx.ModelProto]:
    gradient = node(
        "Gradient", ["w", "x", "target"], ["gradient"], name="derive", domain="ai.onnx.preview.training",
        xs=["w"], zs=["x", "target"], y="loss",
    )  # fmt: skip
    opsets = {"": 21, "ai.onnx.preview.training": 1}
    empty = training(None, BOUND[:0])
    empty.initialization.SetInParent()
    empty.algorithm.SetInParent()
    loss_in_main = [*FORWARD, node("ReduceMean", ["y"], ["mean_y"], name="mean_y", keepdims=0)]
    return {
        "the model itself": sgd(),
        "training graphs that are there and empty": sgd(empty),
        "Gradient, whose type onnx cannot infer": sgd(
            descent(algorithm([*BACKWARD[:3], gradient, *BACKWARD[5:], UPDATE])), opsets=opsets
        ),
        "an output of both graphs": sgd(
            descent(algorithm(outputs=[LOSS, W_NEW, value("mean_y", [])])),
            nodes=loss_in_main, outputs=[Y, value("mean_y", [])],
        ),
        "two algorithm graphs that use the same names": sgd(
            descent(updates=()), descent(algorithm(name="again"), initialization_graph=initialization(name="more"))
        ),
        "an initialization graph with names of the main graph": sgd(
            descent(
                initialization_graph=initialization([node("ConstantOfShape", ["w_shape"], ["w"], name="forward")],
                                                    outputs=[value("w", [2, 1])]),
                initial=[("w", "w")],
            )
        ),
        "an input of the algorithm graph with a default that the main graph has and does not read": sgd(
            descent(algorithm([*BACKWARD, node("Sub", ["w", "change"], ["w_0"], name="descend"),
                               node("Add", ["w_0", "drift"], ["w_new"], name="wander")],
                              [TARGET, value("drift", [])])),
            constants={"drift": ONE},
        ),
    }  # fmt: skip


@pytest.mark.parametrize("what", legal_models())
def test_nothing_is_said_about_legal_training_models(what: str) -> None:
    assert texts(validate(legal_models()[what])) == []


def test_below_ir_version_7_there_are_no_bindings() -> None:
    old = sgd(descent(updates=[("W", "nothing")]), ir_version=6)
    assert [finding.rule for finding in validate(old) if finding.rule.startswith("TRN")] == []
