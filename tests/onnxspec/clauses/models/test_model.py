"""Clauses about the model as a whole."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper

from hwflow.onnxspec import validate
from hwflow.onnxspec.clauses.models.domains import is_reverse_domain
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.model_parts import conditional, graph
from tests.onnxspec.clauses.twins import Twin, check
from tests.onnxspec.training.sgd import sgd

RELU = [node("Relu", ["x"], ["y"], name="n")]
AGAIN = "remedy: export the model again with a current exporter"
YOURS = "remedy: set domain to a reverse domain name of yours"
DESCRIBE = "[GRA-24]\n  remedy: describe the graph in its doc_string"


def simple(**more: object) -> onnx.ModelProto:
    return model(RELU, **more)


def without(field: str) -> onnx.ModelProto:
    proto = simple()
    proto.ClearField(field)
    return proto


def with_ir(version: int, proto: onnx.ModelProto | None = None) -> onnx.ModelProto:
    """The model (with opset 7, which every IR version since 3 had some time) with another IR version."""
    proto = simple(opsets={"": 7}) if proto is None else proto
    proto.ir_version = version
    return proto


def with_function(ir_version: int) -> onnx.ModelProto:
    body = [node("Add", ["a", "a"], ["b"])]
    function = helper.make_function("org.example", "Twice", ["a"], ["b"], body, [helper.make_opsetid("", 13)])
    return model(
        [node("Twice", ["x"], ["y"], name="call", domain="org.example")],
        opsets={"": 13, "org.example": 1},
        ir_version=ir_version,
        functions=[function],
    )


def branch(name: str, doc: str) -> onnx.GraphProto:
    return graph([node("Relu", ["x"], ["t"])], name, [], [value("t", [1, 4])], doc_string=doc)


def two_branches(main: str, then: str, other: str) -> onnx.ModelProto:
    """An If whose three graphs have these doc_strings."""
    proto = conditional(branch("yes", then))
    proto.graph.doc_string = main
    (choice,) = proto.graph.node
    (otherwise,) = [a.g for a in choice.attribute if a.name == "else_branch"]
    otherwise.doc_string = other
    return proto


def future(version: int) -> Twin:
    return Twin(
        "VER-04",
        name=f"IR version {version}",
        bad=with_ir(version),
        good=with_ir(3),
        findings=[
            f"error: model: ir_version must be from 1 to 14, not {version} [VER-04]\n"
            "  remedy: export the model with IR version 14 or lower"
        ],
    )


def past(version: int) -> Twin:
    return Twin(
        "VER-04",
        name=f"IR version {version}",
        bad=with_ir(version),
        good=with_ir(14),
        findings=[f"error: model: ir_version must be from 1 to 14, not {version} [VER-04]\n  {AGAIN}"],
    )


TWINS = [
    Twin(
        "PRO-01",
        bad=without("ir_version"),
        good=simple(),
        findings=[f"error: model: ir_version must be present, but the model has none [PRO-01]\n  {AGAIN}"],
    ),
    future(15),
    future(2**63 - 1),
    past(0),
    past(-1),
    past(-(2**63)),
    Twin(
        "PRO-28",
        bad=without("graph"),
        good=simple(),
        findings=[
            "error: model: a model must have a graph, but this one has none [PRO-28]\n  remedy: export the model again"
        ],
    ),
    Twin(
        "CMP-05",
        bad=with_ir(6, sgd(opsets={"": 12})),
        good=with_ir(7, sgd(opsets={"": 12})),
        findings=[
            "warning: model: training_info must be absent below IR version 7, but the model has IR version 6 and 1 "
            "of it; inference does without [CMP-05]\n"
            "  remedy: export the model with IR version 7 or higher, or without its training part"
        ],
    ),
    Twin(
        "MOD-13",
        bad=with_function(7),
        good=with_function(8),
        findings=[
            "error: model: functions must be absent below IR version 8, but the model has IR version 7 and defines "
            "'org.example.Twice' [MOD-13]\n  remedy: export the model with IR version 8 or higher, or without functions"
        ],
    ),
    Twin(
        "MOD-14",
        bad=simple(domain=""),
        good=simple(domain="com.example"),
        findings=[
            "warning: model: domain must say who is responsible for the model, but the model has none [MOD-14]\n"
            f"  {YOURS}"
        ],
    ),
    Twin(
        "MOD-15",
        bad=simple(domain="local"),
        good=simple(domain="com.example.local"),
        findings=[
            "warning: model: domain must be a reverse domain name such as 'org.example', not 'local' [MOD-15]\n"
            f"  {YOURS}"
        ],
    ),
    Twin(
        "GRA-24",
        name="the main graph",
        bad=two_branches("", "Yes.", "No."),
        good=two_branches("Either.", "Yes.", "No."),
        findings=[f"warning: graph 'graph': graphs should have a doc_string, but this one has none {DESCRIBE}"],
    ),
    Twin(
        "GRA-24",
        name="a subgraph",
        bad=two_branches("Either.", "Yes.", ""),
        good=two_branches("Either.", "Yes.", "No."),
        findings=[
            "warning: graph 'graph': graphs should have a doc_string, but 1 (of subgraphs or training) has none: "
            f"graph 'other' in 'else_branch' of node 'choose' (If) {DESCRIBE}"
        ],
    ),
    Twin(
        "GRA-24",
        name="all of them",
        bad=two_branches("", "", ""),
        good=two_branches("Either.", "Yes.", "No."),
        findings=[
            "warning: graph 'graph': graphs should have a doc_string, but neither this one nor 2 more (of subgraphs or "
            f"training) has one {DESCRIBE}"
        ],
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def test_functions_below_ir_8_cannot_be_called() -> None:
    # OPR-01: the set 'org.example' is not known, not even by the function.
    assert [(f.rule, f.severity) for f in validate(with_function(7))] == [("MOD-13", "error"), ("OPR-01", "warning")]
    assert validate(with_function(8)) == []


def test_nothing_else_is_said_of_a_model_without_a_graph() -> None:
    assert [f.rule for f in validate(without("graph"))] == ["PRO-28"]
    assert [f.rule for f in validate(onnx.ModelProto(ir_version=14))] == ["PRO-28", "PRO-02"]


@pytest.mark.parametrize("version", range(3, 15))
def test_every_ir_version_is_known(version: int) -> None:
    assert validate(with_ir(version)) == []


@pytest.mark.parametrize("version", [1, 2])
def test_ir_versions_without_imports(version: int) -> None:
    proto = with_ir(version)
    del proto.opset_import[:]
    proto.graph.node[0].attribute.append(helper.make_attribute("consumed_inputs", [0]))  # of Relu 1 only
    assert validate(proto) == []


@pytest.mark.parametrize(
    "domain",
    [
        "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft",
        "com.microsoft.nchwc", "org.pytorch.aten", "qonnx.custom_op.general", "onnx.brevitas",
        "finn.custom_op.general", "pkg.onnxscript.torch_lib", "de.my-company.x1", "com.3m", "ORG.Example",
    ],
)  # fmt: skip
def test_reverse_domain_names(domain: str) -> None:
    assert is_reverse_domain(domain)


@pytest.mark.parametrize(
    "domain",
    [
        "local", "", "example.com", "www.example.org", "org.", ".org", "org..example", "org.exam ple", "3m.com.x",
        "org.example\n", "org.exämple", "https://example.org", "a" * 100_000, "a.b!",
    ],
)  # fmt: skip
def test_no_reverse_domain_names(domain: str) -> None:
    assert not is_reverse_domain(domain)
