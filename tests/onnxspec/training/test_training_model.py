"""Training models as stateful objects, against second implementations in numpy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.errors import ModelRefused, UsageError
from hwflow.onnxspec import TrainingModel, read_model, validate
from tests.onnxspec.build import node, refused, texts, value
from tests.onnxspec.training.sgd import (
    BACKWARD,
    FORWARD,
    LOSS,
    RATE,
    TARGET,
    UPDATE,
    W_NEW,
    WEIGHTS,
    Y,
    algorithm,
    descent,
    graph,
    initialization,
    sgd,
    training,
)

PREVIEW = "ai.onnx.preview.training"
RNG = np.random.default_rng(7)
BATCH = RNG.normal(size=(12, 2)).astype(np.float32)
WANTED = BATCH @ np.array([[0.5], [1.5]], np.float32) + np.float32(0.25)
DATA = {"x": BATCH, "target": WANTED}
ZERO = np.zeros((2, 1), np.float32)


def slope(w: np.ndarray) -> np.ndarray:
    """What the algorithm graph calls gradient."""
    return BATCH.T @ (BATCH @ w - WANTED)


def mean_square(w: np.ndarray) -> float:
    return float(np.mean((BATCH @ w - WANTED) ** 2))


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_the_loss_falls_as_in_numpy() -> None:
    trained = TrainingModel(sgd())
    trained.initialize()
    w, losses = ZERO.astype(np.float64), []
    for _ in range(30):
        results = trained.train_step(DATA)
        close(results["loss"], mean_square(w))
        w = w - RATE * slope(w)
        close(results["w_new"], w)
        close(trained.state["w"], w)
        losses.append(float(results["loss"]))
    assert list(results) == ["loss", "w_new"]
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == len(losses)
    assert losses[-1] < losses[0] / 10


def test_inference_is_on_the_present_state_and_keeps_it() -> None:
    trained = TrainingModel(sgd())
    assert trained.infer({"x": BATCH})["y"].tolist() == (BATCH @ WEIGHTS).tolist()
    trained.train_step(DATA)
    state = trained.state["w"]
    outputs = trained.infer({"x": BATCH})
    assert list(outputs) == ["y"]
    close(outputs["y"], BATCH @ (WEIGHTS - np.float32(RATE) * slope(WEIGHTS)))
    assert trained.state["w"].tolist() == state.tolist()


def test_state_starts_at_the_initializers_and_initialize_begins_anew() -> None:
    # v is bound by an update only: initialize gives it its initializer's value (comments of TrainingInfoProto)
    count = graph("count", [node("Add", ["v", "v"], ["v_new"], name="double")], [], [value("v_new", [])], {"v": 3.0})
    count.initializer[0].CopyFrom(numpy_helper.from_array(np.float32(3), "v"))
    trained = TrainingModel(sgd(descent(), training(count, [("v", "v_new")])))
    assert sorted(trained.state) == ["v", "w"] and trained.steps == 2
    assert trained.state["w"].tolist() == WEIGHTS.tolist() and trained.state["v"] == 3
    trained.train_step(DATA)
    assert trained.state["w"].tolist() != WEIGHTS.tolist() and trained.state["v"] == 6
    trained.initialize()
    assert trained.state["w"].tolist() == ZERO.tolist() and trained.state["v"] == 3


def test_initializations_run_in_order() -> None:
    ones = initialization(
        [node("Expand", ["one", "w_shape"], ["w_first"], name="expand")], constants={"one": np.float32(1)}, name="ones"
    )
    trained = TrainingModel(sgd(descent(), training(None, (), ones, [("w", "w_first")])))
    trained.initialize()
    assert trained.state["w"].tolist() == [[1], [1]]


def test_updates_are_assigned_after_the_evaluation_all_at_once() -> None:
    swap = graph(
        "swap", [node("Identity", ["b"], ["new_a"], name="b"), node("Identity", ["a"], ["new_b"], name="a")],
        [], [value("new_a", []), value("new_b", [])], {"a": np.float32(1), "b": np.float32(2)},
    )  # fmt: skip
    trained = TrainingModel(sgd(training(swap, [("a", "new_a"), ("b", "new_b")])))
    assert trained.train_step({"x": BATCH})["new_a"] == 2
    assert (trained.state["a"], trained.state["b"]) == (2, 1)


def shift(name: str, nodes: list[onnx.NodeProto], **constants: Any) -> onnx.GraphProto:
    return graph(name, nodes, [], [value("result", [])], constants)


def test_several_steps_run_in_order_or_alone() -> None:
    plus = shift("plus", [node("Add", ["a", "two"], ["result"], name="plus")], two=np.float32(2))
    times = shift("times", [node("Mul", ["a", "a"], ["result"], name="times")])
    model = sgd(
        training(plus, [("a", "result")]),
        # reads what the first has assigned
        training(times, [("b", "result")]),
        constants={"a": np.float32(1), "b": np.float32(0)},
    )
    trained = TrainingModel(model)
    assert trained.train_step({"x": BATCH})["result"] == 9  # the last one's
    assert (trained.state["a"], trained.state["b"]) == (3, 9)
    assert trained.train_step({"x": BATCH}, 0)["result"] == 5
    assert (trained.state["a"], trained.state["b"]) == (5, 9)
    assert trained.train_step({"x": BATCH}, 1)["result"] == 25
    for index in (2, -1):
        with pytest.raises(UsageError) as caught:
            trained.train_step({"x": BATCH}, index)
        assert texts(caught.value.findings) == [
            f"error: train_step: index must be from 0 to 1, not {index} [training-step]\n"
            "  remedy: the model has 2 training_info entries"
        ]


def test_an_update_from_an_output_of_the_main_graph() -> None:
    trained = TrainingModel(
        sgd(
            training(None, [("last", "mean")]),
            nodes=[*FORWARD, node("ReduceMean", ["y"], ["mean"], name="mean", keepdims=0)],
            outputs=[Y, value("mean", [])],
            constants={"last": np.float32(0)},
        )
    )
    assert trained.train_step({"x": BATCH}) == {}  # an algorithm graph that is not there has no outputs
    close(trained.state["last"], np.mean(BATCH @ WEIGHTS))


def test_momentum_and_a_counter_are_state_of_the_algorithm_graph() -> None:
    nodes = [
        *BACKWARD,
        node("Mul", ["v", "decay"], ["v_kept"], name="keep"),
        node("Add", ["v_kept", "change"], ["v_new"], name="gather"),
        node("Sub", ["w", "v_new"], ["w_new"], name="descend"),
        node("Add", ["t", "one"], ["t_new"], name="count"),
    ]
    heavy = algorithm(
        nodes,
        outputs=[LOSS, W_NEW, value("v_new", [2, 1]), value("t_new", [], TensorProto.INT64)],
        constants={"v": ZERO, "t": np.int64(0), "decay": np.float32(0.5), "one": np.int64(1)},
    )
    updates = [("w", "w_new"), ("v", "v_new"), ("t", "t_new")]
    trained = TrainingModel(sgd(descent(heavy, updates)))
    w, v = WEIGHTS.astype(np.float64), ZERO.astype(np.float64)
    for step in range(1, 6):
        trained.train_step(DATA)
        v = 0.5 * v + RATE * slope(w)
        w = w - v
        close(trained.state["w"], w)
        close(trained.state["v"], v)
        assert trained.state["t"] == step
    assert {tensor.name for tensor in trained.inference_model().graph.initializer} == {"w"}


ALPHA, BETA = float(np.float32(0.9)), float(np.float32(0.999))  # attributes are float32


# Second implementations of the operators' specification; t counts from 0, state begins at 0.
def adam(w: np.ndarray, t: int, v: np.ndarray, h: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, ...]:
    v, h = ALPHA * v + (1 - ALPHA) * g, BETA * h + (1 - BETA) * g * g
    rate = RATE if t == 0 else RATE * (1 - BETA**t) ** 0.5 / (1 - ALPHA**t)
    return w - rate * v / (np.sqrt(h) + 1e-6), v, h


def momentum(w: np.ndarray, t: int, v: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, ...]:
    v = ALPHA * v + (0.5 if t else 1) * g
    return w - RATE * v, v


def adagrad(w: np.ndarray, t: int, h: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, ...]:
    h = h + g * g
    return w - RATE / (1 + 0.25 * t) * g / (np.sqrt(h) + 1e-6), h


OPTIMIZERS: dict[str, tuple[Callable[..., tuple[np.ndarray, ...]], int, dict[str, Any]]] = {
    "Adam": (adam, 2, {"alpha": ALPHA, "beta": BETA, "epsilon": 1e-6}),
    "Momentum": (momentum, 1, {"alpha": ALPHA, "beta": 0.5, "mode": "standard", "norm_coefficient": 0.0}),
    "Adagrad": (adagrad, 1, {"decay_factor": 0.25, "epsilon": 1e-6}),
}


@pytest.mark.parametrize("operator", OPTIMIZERS)
@pytest.mark.parametrize("tensors", [1, 2])
def test_the_optimizers_of_onnx(operator: str, tensors: int) -> None:
    compute, memories, attributes = OPTIMIZERS[operator]
    kinds = ["w", *("vh"[:memories])]
    names = [[f"{kind}{i}" for i in range(tensors)] for kind in kinds]  # w0 is the weights, w1 a copy
    gradients = [f"g{i}" for i in range(tensors)]
    states = [name for kind in names for name in kind]
    nodes = [
        *BACKWARD[:5],
        *(node("Identity", ["gradient"], [g], name=g) for g in gradients),
        node(
            operator, ["rate", "t", *names[0], *gradients, *states[tensors:]], [f"{name}_new" for name in states],
            name="optimize", domain=PREVIEW, **attributes,
        ),
        node("Add", ["t", "one"], ["t_new"], name="count"),
    ]  # fmt: skip
    optimize = algorithm(
        nodes,
        outputs=[LOSS, *(value(f"{name}_new", [2, 1]) for name in states), value("t_new", [], TensorProto.INT64)],
        constants={"t": np.int64(0), "one": np.int64(1)} | {name: ZERO for name in states[tensors:]},
    )
    model = sgd(
        training(optimize, [(name, f"{name}_new") for name in [*states, "t"]]),
        nodes=[node("MatMul", ["x", "w0"], ["y"], name="forward")],
        constants={"w0": WEIGHTS, "w1": WEIGHTS},
        opsets={"": 21, PREVIEW: 1},
    )
    trained = TrainingModel(model)
    w = WEIGHTS.astype(np.float64)
    memory = [ZERO.astype(np.float64)] * memories
    losses = []
    for t in range(5):
        losses.append(float(trained.train_step(DATA)["loss"]))
        w, *memory = compute(w, t, *memory, slope(w))
        for kind, expected in zip(names, [w, *memory], strict=True):
            for name in kind:
                assert trained.state[name].dtype == np.float32
                close(trained.state[name], expected)
    assert losses[-1] < losses[0]


def test_what_a_binding_assigns_must_have_the_initializers_type_and_shape() -> None:
    nodes = [
        *BACKWARD, UPDATE,
        node("Cast", ["w_new"], ["double"], name="widen", to=TensorProto.DOUBLE),
        node("Transpose", ["w_new"], ["row"], name="lay"),
        node("Add", ["t", "t"], ["t_new"], name="count"),
    ]  # fmt: skip
    outputs = [LOSS, value("double", [2, 1], TensorProto.DOUBLE), value("row", [1, 2]), value("t_new", [])]
    constants = {"v": ZERO, "t": np.float32(1)}
    updates = [("w", "double"), ("v", "row"), ("t", "t_new")]
    trained = TrainingModel(sgd(descent(algorithm(nodes, outputs=outputs, constants=constants), updates)))
    assert refused(lambda: trained.train_step(DATA)) == [
        "error: state variable 'w': what is assigned to it must be float32 [2, 1] as its initializer is, but 'double' "
        "of main and algorithm graph of training_info[0] is float64 [2, 1] [state-type]\n"
        "  remedy: let the graph compute a value of that type and shape",
        "error: state variable 'v': what is assigned to it must be float32 [2, 1] as its initializer is, but 'row' of "
        "main and algorithm graph of training_info[0] is float32 [1, 2] [state-type]\n"
        "  remedy: let the graph compute a value of that type and shape",
    ]
    assert trained.state["t"] == 1 and trained.state["w"].tolist() == WEIGHTS.tolist()

    wide = initialization(constants={"w_shape": np.array([2, 2])}, outputs=[value("w_first", [2, 2])])
    trained = TrainingModel(sgd(descent(initialization_graph=wide)))
    trained.train_step(DATA)
    before = trained.state["w"]
    assert refused(trained.initialize) == [
        "error: state variable 'w': what is assigned to it must be float32 [2, 1] as its initializer is, but 'w_first' "
        "of initialization graph of training_info[0] is float32 [2, 2] [state-type]\n"
        "  remedy: let the graph compute a value of that type and shape"
    ]
    assert trained.state["w"].tolist() == before.tolist()


def test_a_step_that_fails_changes_nothing() -> None:
    good = training(
        graph("good", [node("Add", ["a", "a"], ["a_new"], name="a")], [], [value("a_new", [])]), [("a", "a_new")]
    )
    split = node("Reshape", ["x", "six"], ["folded"], name="fold")
    bad = training(graph("bad", [split], [], [value("folded", [None])], {"six": np.array([6])}))
    trained = TrainingModel(sgd(good, bad, constants={"a": np.float32(1)}))
    (message,) = refused(lambda: trained.train_step({"x": BATCH}))
    assert message.startswith(
        "error: main and algorithm graph of training_info[1]: the graph must be what ONNX's reference evaluator can "
        "compute, but it failed: "
    )
    assert trained.state["a"] == 1
    trained.train_step({"x": BATCH[:3]})
    assert trained.state["a"] == 2


def test_inputs_are_not_converted() -> None:
    trained = TrainingModel(sgd())
    with pytest.raises(UsageError) as caught:
        trained.train_step({"x": BATCH.astype(np.float64), "targets": WANTED})
    fit = "give an array of that type and shape; nothing is converted"
    assert texts(caught.value.findings) == [
        f"error: input 'x': must be of type float32, not float64 [training-inputs]\n  remedy: {fit}",
        "error: input 'target': must be given, but it is missing [training-inputs]\n"
        "  remedy: give an array of that name",
        "error: input 'targets': must be one of 'x', 'target', not 'targets' [training-inputs]\n  remedy: remove it",
    ]
    for inputs, expected in (
        ({"x": BATCH.T, "target": WANTED}, "input 'x': must have shape [N, 2], not [2, 12]"),
        ({"x": BATCH, "target": WANTED[0]}, "input 'target': must have shape [N, 1], not [1]"),
        ({"x": BATCH, "target": WANTED[1:]}, "input 'target': dimension 'N' must be 12 as in input 'x', not 11"),
        ({"x": None, "target": WANTED}, "input 'x': must be of type float32, not object"),
    ):
        with pytest.raises(UsageError) as caught:
            trained.train_step(inputs)
        assert texts(caught.value.findings) == [f"error: {expected} [training-inputs]\n  remedy: {fit}"]
    with pytest.raises(UsageError):
        trained.infer({})
    with pytest.raises(UsageError):
        trained.infer(DATA)  # the main graph has no target


def test_the_state_is_read_only_and_shares_nothing() -> None:
    trained = TrainingModel(sgd())
    before = trained.state
    with pytest.raises(TypeError):
        before["w"] = ZERO  # type: ignore[index]  # what must fail
    with pytest.raises(ValueError, match="read-only"):
        before["w"][0] = 1
    x, target = BATCH.copy(), WANTED.copy()
    results = trained.train_step({"x": x, "target": target})
    results["w_new"][:] = 0  # the caller's own
    assert before["w"].tolist() == WEIGHTS.tolist()
    assert trained.state["w"].all()
    assert x.tolist() == BATCH.tolist() and target.tolist() == WANTED.tolist()


def test_the_model_given_is_neither_changed_nor_kept() -> None:
    model = sgd()
    before = model.SerializeToString()
    trained = TrainingModel(model)
    trained.train_step(DATA)
    assert model.SerializeToString() == before
    del model.graph.initializer[:]
    assert trained.inference_model().graph.initializer[0].name == "w"


def test_the_inference_model_holds_the_state(tmp_path: Path) -> None:
    model = sgd(constants={"unused": np.float32(4)}, opsets={"": 21, PREVIEW: 1}, producer_name="test")
    model.graph.initializer[0].doc_string = "Made by a test."
    trained = TrainingModel(model)
    trained.train_step(DATA)
    inference = trained.inference_model()
    assert not inference.training_info
    assert texts(validate(inference)) == []
    w = numpy_helper.to_array(inference.graph.initializer[0])
    assert w.dtype == np.float32 and w.tolist() == trained.state["w"].tolist()
    expected = onnx.ModelProto()
    expected.CopyFrom(model)
    del expected.training_info[:]
    expected.graph.initializer[0].raw_data = w.tobytes()
    assert inference == expected

    path = tmp_path / "inference.onnx"
    path.write_bytes(b"what was there before")
    trained.save(path)
    assert read_model(path) == expected
    assert [p.name for p in tmp_path.iterdir()] == ["inference.onnx"]
    with pytest.raises(UsageError) as caught:
        trained.save(tmp_path / "none" / "inference.onnx")
    assert texts(caught.value.findings) == [
        f"error: output '{tmp_path}/none/inference.onnx': must be a file that can be written, but the system says: No "
        "such file or directory [output-file]\n  remedy: choose another path"
    ]


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.BFLOAT16, TensorProto.UINT8, TensorProto.BOOL])
def test_state_of_other_element_types(kind: int) -> None:
    start = helper.make_tensor("s", kind, [3], [0, 1, 1])
    cast = graph("cast", [node("Cast", ["numbers"], ["s_new"], name="cast", to=kind)], [], [value("s_new", [3], kind)],
                 {"numbers": np.float32([1, 0, 1])})  # fmt: skip
    trained = TrainingModel(sgd(training(cast, [("s", "s_new")]), constants={"s": start}))
    assert trained.state["s"].astype(np.float32).tolist() == [0, 1, 1]
    trained.train_step({"x": BATCH})
    assert trained.state["s"].astype(np.float32).tolist() == [1, 0, 1]
    (tensor,) = (t for t in trained.inference_model().graph.initializer if t.name == "s")
    assert tensor.data_type == kind and list(tensor.dims) == [3]
    assert numpy_helper.to_array(tensor).astype(np.float32).tolist() == [1, 0, 1]


def test_an_operator_without_reference_is_refused_by_name() -> None:
    gradient = node("Gradient", ["w", "x", "target"], ["gradient"], name="derive", domain=PREVIEW, xs=["w"],
                    zs=["x", "target"], y="loss")  # fmt: skip
    model = sgd(descent(algorithm([*BACKWARD[:3], gradient, *BACKWARD[5:], UPDATE])), opsets={"": 21, PREVIEW: 1})
    assert refused(lambda: TrainingModel(model)) == [
        "error: node 'derive' (Gradient) in main and algorithm graph of training_info[0]: the node must be what ONNX's "
        "reference evaluator can compute, but the evaluator has no operator ai.onnx.preview.training.Gradient "
        "[reference-evaluator]\n"
        "  remedy: write the derivatives as ordinary nodes; to compile the model as it is, give its path to hwflow"
    ]


def test_what_is_no_training_model_is_refused(tmp_path: Path) -> None:
    inference = sgd()
    del inference.training_info[:]
    assert refused(lambda: TrainingModel(inference)) == [
        "error: model: must have training_info to be trained, but it has none [training-model]\n"
        "  remedy: export the model for training; to compile it, training information is not needed"
    ]
    broken = sgd(descent(updates=[("W", "w_new")], initial=[("w", "first")]))
    with pytest.raises(ModelRefused) as caught:
        TrainingModel(broken)
    assert [finding.rule for finding in caught.value.findings] == ["TRN-05", "TRN-08"]
    with pytest.raises(ModelRefused):
        TrainingModel(sgd(ir_version=6))
    with pytest.raises(ModelRefused):
        TrainingModel(tmp_path / "none.onnx")


def test_a_file_with_external_data(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(sgd(), path, save_as_external_data=True, location="weights", size_threshold=0)
    trained = TrainingModel(path)
    trained.train_step(DATA)
    close(trained.state["w"], WEIGHTS - RATE * slope(WEIGHTS))
    assert trained.inference_model().graph.initializer[0].raw_data == trained.state["w"].tobytes()
    with pytest.raises(ModelRefused):
        TrainingModel(onnx.load(path, load_external_data=False))


def test_a_constant_of_another_step_is_no_state() -> None:
    add = node("Add", ["a", "k"], ["result"], name="add")
    model = sgd(
        training(shift("first", [add], k=np.float32(1)), [("k", "result")]),
        training(shift("second", [add], k=np.float32(10)), [("a", "result")]),
        constants={"a": np.float32(0)},
    )
    trained = TrainingModel(model)
    for _ in range(2):
        trained.train_step({"x": BATCH})
    # first: k = 0 + 1, then 10 + 1; second, with its own k: a = 0 + 10, then 10 + 10
    assert (trained.state["k"], trained.state["a"]) == (11, 20)


def test_state_variables_of_one_name_are_refused() -> None:
    def counting(name: str) -> onnx.TrainingInfoProto:
        first = initialization([node("ConstantOfShape", ["w_shape"], ["w_first"], name="zero")], name=f"{name}_zeros")
        return training(graph(name, [], [], [], {"t": ZERO}), (), first, [("t", "w_first")])

    assert refused(lambda: TrainingModel(sgd(counting("one"), counting("two")))) == [
        "error: state variable 't': state variables must have distinct names, but the algorithm graphs of "
        "training_info[0] and training_info[1] each have one of this name [TRN-10]\n  remedy: rename one of them"
    ]


def test_functions_subgraphs_defaults_and_other_spellings() -> None:
    """What the evaluator cannot take as it is, or takes only from the graph around a subgraph."""
    opset = [helper.make_opsetid("", 21)]
    squared = helper.make_function(
        "org.example", "Squared", ["a"], ["b"], [node("Mul", ["a", "a"], ["b"], name="multiply")], opset
    )
    yes = graph("then", [node("Identity", ["w_new"], ["yes"], name="take")], [], [value("yes", [2, 1])])
    no = graph("else", [node("Identity", ["w"], ["no"], name="keep")], [], [value("no", [2, 1])])
    nodes = [
        BACKWARD[0],
        node("Squared", ["e"], ["squares"], name="square", domain="org.example"),
        BACKWARD[2],
        node("Transpose", ["x"], ["x_t"], name="turn", domain="ai.onnx"),
        *BACKWARD[4:], UPDATE,
        node("If", ["learn"], ["w_next"], name="choice", then_branch=yes, else_branch=no),
    ]  # fmt: skip
    flag = value("learn", [], TensorProto.BOOL)
    learn = algorithm(
        nodes, [TARGET, flag], [LOSS, value("w_next", [2, 1])], constants={"learn": np.array(True)}
    )
    model = sgd(
        descent(learn, [("w", "w_next")]),
        opsets={"": 21, "org.example": 1},
        functions=[squared],
        sparse_initializer=[
            helper.make_sparse_tensor(
                helper.make_tensor("s", TensorProto.FLOAT, [1], [0.5]), helper.make_tensor("", 7, [1], [1]), [2, 1]
            )
        ],
    )  # fmt: skip
    trained = TrainingModel(model)
    close(trained.infer({"x": BATCH})["y"], BATCH @ WEIGHTS)
    close(trained.train_step({**DATA, "learn": np.array(False)})["loss"], mean_square(WEIGHTS))
    assert trained.state["w"].tolist() == WEIGHTS.tolist()
    trained.train_step(DATA)
    close(trained.state["w"], WEIGHTS - RATE * slope(WEIGHTS))
    assert trained.inference_model().functions[0].name == "Squared"


@pytest.mark.parametrize("opsets", [{"ai.onnx": 21}, {PREVIEW: 1}, {"": 13}], ids=str)
def test_operator_sets_of_all_spellings(opsets: dict[str, int]) -> None:
    """Under its other name, implicit, and the one of the first training models' time."""
    trained = TrainingModel(sgd(opsets=opsets, ir_version=8))
    close(trained.train_step(DATA)["loss"], mean_square(WEIGHTS))
    close(trained.state["w"], WEIGHTS - RATE * slope(WEIGHTS))


def test_importing_the_specification_does_not_import_the_evaluator() -> None:
    script = "import sys, hwflow.onnxspec.training.training_model; print('onnx.reference' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
