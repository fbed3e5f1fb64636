"""Clauses about operator sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from hwflow.onnxspec import validate
from hwflow.onnxspec.graphs.scopes import implicit_version
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.model_parts import conditional, graph
from tests.onnxspec.clauses.twins import Twin, check
from tests.onnxspec.resolving.resolved import resolve

NAME_IT = "remedy: add an entry for domain '' (ai.onnx) with the version meant to opset_import"
RENAME = "remedy: rename the domain after one that you hold"
ONE = "remedy: remove all entries but the one meant"
MEANT = "remedy: give the version that the operators were written for"
ML = "ai.onnx.ml"
CUSTOM = "org.example.ops"


def relu(domain: str = "") -> onnx.NodeProto:
    return node("Relu", ["x"], ["y"], name="n", domain=domain)


def imports(entries: Sequence[tuple[str, int | None]], ir_version: int = 10, domain: str = "") -> onnx.ModelProto:
    """y = Relu(x) with exactly these imports; None: an entry without a version."""
    proto = model([relu(domain)], opsets={}, ir_version=ir_version)
    for name, version in entries:
        opset = proto.opset_import.add(domain=name)
        if version is not None:
            opset.version = version
    return proto


def scaled(*entries: tuple[str, int]) -> onnx.ModelProto:
    """A model whose only node is of ai.onnx.ml."""
    proto = imports(entries)
    del proto.graph.node[:]
    proto.graph.node.append(node("Scaler", ["x"], ["y"], name="n", domain=ML, scale=[2.0], offset=[0.0]))
    return proto


def assumed(clause: str, names: str, version: int, ir_version: int) -> str:
    return (
        "warning: model: opset_import must name the version of the default operator set 'ai.onnx', but it names "
        f"{names} only; version {version} is assumed, the newest of IR version {ir_version} [{clause}]\n  {NAME_IT}"
    )


def function(
    entries: Sequence[tuple[str, int]], body: onnx.NodeProto | None = None, domain: str = "org.example"
) -> onnx.ModelProto:
    """A model that calls a function with exactly these imports."""
    body = node("Relu", ["a"], ["b"], name="inner") if body is None else body
    opsets = [helper.make_opsetid(name, version) for name, version in entries]
    made = helper.make_function(domain, "Own", ["a"], ["b"], [body], opsets)
    return model(
        [node("Own", ["x"], ["y"], name="call", domain=domain)], opsets={"": 21, domain: 1}, functions=[made]
    )


def branching(domain: str, **more: object) -> onnx.ModelProto:
    then = graph([node("Own", ["x"], ["t"], name="n", domain=domain)], "then", [], [value("t", [1, 4])])
    return conditional(then, **more)


NOT_IMPORTED = "the operator's domain must be imported, but '{0}' is not in opset_import [OPS-01]\n"
ADD_IT = "  remedy: add domain '{0}' to opset_import"

TWINS = [
    Twin(
        "PRO-02",
        bad=imports([]),
        good=imports([("", 21)]),
        findings=[f"error: model: opset_import must have at least one entry, but it is empty [PRO-02]\n  {NAME_IT}"],
    ),
    Twin(
        "PRO-02",
        name="only other sets, the default one in use",
        bad=imports([(ML, 3)]),
        good=imports([(ML, 3), ("", 21)]),
        findings=[assumed("PRO-02", "'ai.onnx.ml'", 22, 10)],
    ),
    Twin(
        "PRO-02",
        name="only other sets, the default one not in use",
        bad=scaled((ML, 3)),
        good=scaled((ML, 3), ("", 21)),
        findings=[assumed("PRO-02", "'ai.onnx.ml'", 22, 10)],
    ),
    Twin(
        "PRO-02",
        name="before there were imports",
        bad=imports([("", 7)], ir_version=2),
        good=imports([("", 7)], ir_version=3),
        findings=[
            "warning: model: opset_import must be absent below IR version 3, but the model has IR version 2 and "
            "imports 'ai.onnx'; the imports hold [PRO-02]\n  remedy: export the model with IR version 3 or higher"
        ],
    ),
    Twin(
        "OPS-04",
        bad=imports([(ML, 3)]),
        good=imports([(ML, 3), ("ai.onnx", 21)]),
        findings=[assumed("OPS-04", "'ai.onnx.ml'", 22, 10)],
    ),
    Twin("OPS-04", name="no operator of it", bad=scaled((ML, 3)), good=scaled((ML, 3)), findings=[]),
    Twin(
        "OPS-04",
        name="an operator of it in a subgraph only",
        bad=model(
            [
                node(
                    "Choose", ["x"], ["y"], name="choose", domain="com.microsoft",
                    body=graph([node("Relu", ["x"], ["t"])], "body", [], [value("t", [1, 4])]),
                )
            ],
            opsets={"com.microsoft": 1},
        ),
        good=model(
            [
                node(
                    "Choose", ["x"], ["y"], name="choose", domain="com.microsoft",
                    body=graph([node("Own", ["x"], ["t"], domain="com.microsoft")], "body", [], [value("t", [1, 4])]),
                )
            ],
            opsets={"com.microsoft": 1},
        ),
        findings=[assumed("OPS-04", "'com.microsoft'", 22, 10)],
    ),
    Twin(
        "OPS-01",
        bad=model([relu("org.example.ops")]),
        good=model([relu()]),
        findings=[f"error: node 'n' (Relu): {NOT_IMPORTED.format(CUSTOM)}{ADD_IT.format(CUSTOM)}"],
    ),
    Twin(
        "OPS-01",
        name="in a subgraph",
        bad=branching("com.microsoft"),
        good=branching("com.microsoft", opsets={"": 21, "com.microsoft": 1}),
        findings=[  # exporters forget it, and there is one version of it
            "warning: node 'n' (Own) in 'then_branch' of node 'choose' (If): "
            + NOT_IMPORTED.format("com.microsoft")
            + ADD_IT.format("com.microsoft")
        ],
    ),
    Twin(
        "OPS-01",
        name="a function's imports are its own",
        bad=function([]),
        good=function([("", 21)]),
        findings=[
            "error: node 'inner' (Relu) in function 'org.example.Own': "
            + NOT_IMPORTED.format("ai.onnx")
            + ADD_IT.format("ai.onnx")
            + " of the function"
        ],
    ),
    Twin(
        "PRO-03",
        bad=imports([("", 17), ("", 13)]),
        good=imports([("", 17), (ML, 3)]),
        findings=[
            "warning: model: a domain must be imported once, but opset_import has 2 entries for 'ai.onnx', "
            f"of versions 17, 13: the highest, 17, holds [PRO-03]\n  {ONE}"
        ],
    ),
    Twin(
        "PRO-03",
        name="two names of one domain",
        bad=imports([("ai.onnx", 21), ("", 21), ("", 21)]),
        good=imports([("ai.onnx", 21)]),
        findings=[
            "warning: model: a domain must be imported once, but opset_import has 3 entries for 'ai.onnx', "
            f"all of version 21 [PRO-03]\n  {ONE}"
        ],
    ),
    Twin(
        "PRO-04",
        name="absent",
        bad=imports([("", None)]),
        good=imports([("", 21)]),
        findings=[
            "error: model: the version of operator set 'ai.onnx' must be at least 1, but it is absent "
            f"[PRO-04]\n  {MEANT}"
        ],
    ),
    Twin(
        "PRO-04",
        name="0 and negative, of other sets too",
        bad=imports([("", 0), (ML, -(2**63))]),
        good=imports([("", 21), (ML, 1)]),
        findings=[
            f"error: model: the version of operator set 'ai.onnx' must be at least 1, but it is 0 [PRO-04]\n  {MEANT}",
            "error: model: the version of operator set 'ai.onnx.ml' must be at least 1, but it is -9223372036854775808 "
            f"[PRO-04]\n  {MEANT}",
        ],
    ),
    Twin(
        "PRO-04",
        name="of a function",
        bad=function([("", 21), (ML, 0)]),
        good=function([("", 21), (ML, 3)]),
        findings=[
            "error: function 'org.example.Own': the version of operator set 'ai.onnx.ml' must be at least 1, but it is "
            f"0 [PRO-04]\n  {MEANT}"
        ],
    ),
    Twin(
        "OPS-04",
        name="no imports at all",
        bad=imports([]),
        good=imports([("", 21)]),
        findings=[f"error: model: opset_import must have at least one entry, but it is empty [OPS-04]\n  {NAME_IT}"],
    ),
    Twin(
        "PRO-03",
        name="in a function",
        bad=function([("", 21), ("ai.onnx", 13)]),
        good=function([("", 21)]),
        findings=[
            "error: function 'org.example.Own': a function must import one version of operator set 'ai.onnx', not 13 "
            "and 21 [PRO-03]\n  remedy: keep one of the imports"
        ],
    ),
    Twin(
        "OPR-01",
        name="a version that there is not",
        bad=imports([("", 9999)]),
        good=imports([("", 21)]),
        findings=[
            "error: model: the version of operator set 'ai.onnx' must be at most 28, not 9999 [OPR-01]\n"
            "  remedy: export the model with version 28 of it or lower"
        ],
    ),
    Twin(
        "opset-version",
        bad=imports([("", 29)]),
        good=imports([("", 28)], ir_version=14),
        findings=[
            "error: model: the version of operator set 'ai.onnx' must be at most 28, not 29 [opset-version]\n"
            "  remedy: export the model with version 28 of it or lower"
        ],
    ),
    Twin(
        "opset-version",
        name="another domain's",
        bad=imports([("", 21), (CUSTOM, 2**31)]),
        good=imports([("", 21), (CUSTOM, 2**31 - 1)]),
        findings=[
            "error: model: the version of operator set 'org.example.ops' must be at most 2147483647, not 2147483648 "
            "[opset-version]\n  remedy: export the model with version 2147483647 of it or lower"
        ],
    ),
    Twin(
        "OPS-12",
        bad=imports([("", 21), ("local", 1), ("test", 1)]),
        good=imports([("", 21), ("org.example.local", 1), ("org.example.test", 1)]),
        findings=[
            "warning: model: domains of operator sets should be reverse domain names such as 'org.example', but "
            f"'local', 'test' are not [OPS-12]\n  {RENAME}"
        ],
    ),
    Twin(
        "OPS-12",
        name="of a function, said once",
        bad=function([("", 21), ("mine", 1)], domain="local"),
        good=function([("", 21), ("org.example", 1)], domain="com.example"),
        findings=[
            "warning: model: domains of operator sets should be reverse domain names such as 'org.example', but "
            f"'local' is not [OPS-12]\n  {RENAME}",
            "warning: function 'local.Own': domains of operator sets should be reverse domain names such as "
            f"'org.example', but 'mine' is not [OPS-12]\n  {RENAME}",
        ],
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


@pytest.mark.parametrize(
    ("ir_version", "version"),
    # onnx 1.3 was the last release with IR version 3, 1.4 the only one with 4, ...
    [(1, 1), (2, 1), (3, 8), (4, 9), (5, 10), (6, 11), (7, 14), (8, 18), (9, 20), (10, 22), (13, 27), (14, 28),
     (15, 28), (2**63 - 1, 28), (0, 28), (-1, 28)],
)  # fmt: skip
def test_the_implicit_version(ir_version: int, version: int) -> None:
    assert implicit_version(ir_version) == version


def rules(proto: onnx.ModelProto) -> list[str]:
    return [f.rule for f in validate(proto)]


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([], ["PRO-02", "OPS-04"]),
        ([("", None)], ["PRO-04"]),
        ([("", -1)], ["PRO-04"]),
        ([("", 29)], ["opset-version", "OPR-01"]),
        ([("", 2**40)], ["opset-version", "OPR-01"]),
        ([("", 2**63 - 1)], ["opset-version", "OPR-01"]),
    ],
)
def test_nothing_else_is_said_of_impossible_imports(entries: list[tuple[str, int | None]], found: list[str]) -> None:
    assert rules(imports(entries)) == found


def test_the_implicit_version_is_what_operators_are_looked_up_in() -> None:
    # Gelu came with version 20: IR version 9 implies it, IR version 8 does not.
    for ir_version, found in ((9, ["PRO-02", "OPS-04"]), (8, ["PRO-02", "OPS-04", "OPR-01"])):
        proto = imports([(ML, 3)], ir_version)
        proto.graph.node[0].op_type = "Gelu"
        assert rules(proto) == found
    # The operand of Squeeze was an attribute until version 12.
    for ir_version, operands, attributes in ((6, ["x"], {"axes": [0]}), (9, ["x", "axes"], {})):
        proto = model(
            [node("Squeeze", operands, ["s"], **attributes), node("Identity", ["s"], ["y"])],
            outputs=[value("y", [4])],
            constants={"axes": np.array([0])},
            opsets={ML: 2},
            ir_version=ir_version,
        )
        assert rules(proto) == ["PRO-02", "OPS-04"]
        resolved = resolve(proto, {})
        assert resolved.values["y"].shape == (4,)
        assert resolved.opsets[""] == implicit_version(ir_version)


def test_the_highest_of_several_versions_holds() -> None:
    # LayerNormalization came with version 17; onnx.checker goes by the last entry.
    for versions in ((13, 17), (17, 13)):
        proto = imports([("", version) for version in versions])
        proto.graph.node.pop()
        proto.graph.node.append(node("LayerNormalization", ["x", "s"], ["y"]))
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(4, np.float32), "s"))
        assert rules(proto) == ["PRO-03"]
        assert resolve(proto, {}).opsets == {"": 17}


def test_functions_in_a_model_that_implies_the_default_set() -> None:
    proto = function([("", 18)])
    del proto.opset_import[0]
    proto.ir_version = 8
    assert rules(proto) == ["PRO-02"]
    assert resolve(proto, {}).values["y"].shape == (1, 4)


def test_training_graphs_have_the_models_sets() -> None:
    proto = scaled((ML, 3))
    info = proto.training_info.add()
    info.algorithm.CopyFrom(graph([node("Neg", ["y"], ["z"])], "step", [], [value("z", [1, 4])], doc_string="Step."))
    assert rules(proto) == ["PRO-02", "OPS-04"]
