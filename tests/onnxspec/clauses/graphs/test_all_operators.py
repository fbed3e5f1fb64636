"""What is said about the nodes of every operator that onnx has, beside what onnx.checker says of the same node."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import checker, defs

from hwflow.onnxspec.clauses.graphs import arity, operators
from hwflow.onnxspec.clauses.rules import Context
from tests.onnxspec.clauses.twins import Twin

TWINS: list[Twin] = []  # none: the clauses have theirs elsewhere

NUMBERS = tuple(rule.check for rule in arity.RULES if rule.id in ("NOD-30", "NOD-31"))
ATTRIBUTES = tuple(rule.check for rule in operators.RULES if rule.id == "NOD-33")


def schemas() -> Iterator[defs.OpSchema]:
    return (schema for schema in defs.get_all_schemas_with_history() if not schema.deprecated)


def around(fewest: int, most: int) -> range:
    return range(max(fewest - 1, 0), min(most, fewest + 9) + 2)


def probe(schema: defs.OpSchema, inputs: int, outputs: int) -> onnx.NodeProto:
    return onnx.NodeProto(
        op_type=schema.name,
        domain=schema.domain,
        input=[f"x{i}" for i in range(inputs)],
        output=[f"y{i}" for i in range(outputs)],
    )


def model_of(schema: defs.OpSchema, node: onnx.NodeProto) -> onnx.ModelProto:
    opset = onnx.OperatorSetIdProto(domain=schema.domain, version=schema.since_version)
    return onnx.ModelProto(ir_version=10, opset_import=[opset], graph=onnx.GraphProto(node=[node]))


def checker_says(schema: defs.OpSchema, node: onnx.NodeProto) -> str:
    context = checker.C.CheckerContext()
    context.ir_version = 10
    context.opset_imports = {schema.domain: schema.since_version}
    try:
        checker.check_node(node, context)
    except checker.ValidationError as error:
        return str(error)
    return ""


def test_numbers_of_inputs_and_outputs() -> None:
    different = []
    for schema in schemas():
        counts = [(n, schema.min_output) for n in around(schema.min_input, schema.max_input)]
        counts += [(schema.min_input, n) for n in around(schema.min_output, schema.max_output)]
        for inputs, outputs in counts:
            if inputs == outputs == 0:
                continue  # onnx.checker refuses these for another reason
            node = probe(schema, inputs, outputs)
            context = Context(model_of(schema, node))
            says = checker_says(schema, node)
            refused = "has input size" in says or "has output size" in says
            if any(list(check(context)) for check in NUMBERS) != refused:
                different.append((schema.name, schema.since_version, inputs, outputs, says))
    assert different == []


def test_sets_of_attributes() -> None:
    different = []
    for schema in schemas():
        for name in ("", "odd"):
            node = probe(schema, schema.min_input, schema.min_output or 1)
            if name:
                node.attribute.add(name=name, type=onnx.AttributeProto.INT, i=1)
            context = Context(model_of(schema, node))
            says = checker_says(schema, node)
            refused = "Unrecognized attribute" in says or "Required attribute" in says
            if schema.name == "Constant" and schema.since_version >= 11:
                refused = True  # one of several attributes is required, which onnx leaves to its inference
            hits = [hit for check in ATTRIBUTES for hit in check(context) if hit.severity != "warning"]
            if bool(hits) != refused:
                different.append((schema.name, schema.since_version, name, says))
    assert different == []
