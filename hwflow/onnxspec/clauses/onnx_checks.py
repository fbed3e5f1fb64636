"""onnx's own checker and shape inference as rules: whatever they raise becomes a finding.

Both stop early and blame one place; so each node is first checked by itself, and the checks of the whole model run only
where nothing else has an objection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import onnx
from onnx import checker, helper, shape_inference

from hwflow.onnxspec.dialects import DIALECT_DOMAINS
from hwflow.onnxspec.graph import MODEL, NODES, Position, Scope, model_opsets, plain_domain
from hwflow.onnxspec.rules import Context, Hit, Rule

_REMEDY = "correct the model, or export it again"
_NODE_NAMES = (
    re.compile(r"\(op_type:[^,)]*, node name: (?P<name>[^)]*)\)"),
    re.compile(r"Bad node spec for node\. Name: (?P<name>.*?) OpType:"),
    re.compile(r"for node name (?P<name>.*?)\. "),
)


def one_line(error: Exception) -> str:
    """What the exception says, on one line, without onnx's markers."""
    text = " ".join(str(error).split())
    text = re.sub(r"\[(Type|Shape)InferenceError\] ?", "", text)
    text = text.removeprefix("Inference error(s): ")
    return text or type(error).__name__


def normalized(model: onnx.ModelProto) -> onnx.ModelProto:
    """``model``, or a copy in which what onnx's checker refuses although it is legal, or no more than a warning, is
    written as it wants it: one import a domain (the highest version), of the default domain too, and of every dialect
    in use; ai.onnx written as ""; no imports below IR version 3; metadata keys distinct."""
    used = {node.domain for node in model.graph.node}
    imports = [opset.domain for opset in model.opset_import]
    missing = used & DIALECT_DOMAINS - set(imports)
    keys = [entry.key for entry in model.metadata_props]
    if (
        not missing
        and "ai.onnx" not in used
        and "ai.onnx" not in imports
        and "" in imports
        and len(imports) == len(set(imports))
        and len(keys) == len(set(keys))
        and model.ir_version >= 3
    ):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        node.domain = plain_domain(node.domain)
    del copy.opset_import[:]
    for domain, version in {**model_opsets(model), **dict.fromkeys(sorted(missing), 1)}.items():
        copy.opset_import.append(helper.make_opsetid(domain, version))
    copy.ir_version = max(model.ir_version, 3)  # the first with imports; nothing else distinguishes it from 1 and 2
    if len(keys) != len(set(keys)):
        del copy.metadata_props[:]
    return copy


def _place(scope: Scope, message: str) -> tuple[Position, str]:
    """The node that the message names, or the model."""
    for pattern in _NODE_NAMES:
        match = pattern.search(message)
        if match is not None:
            for index, node in enumerate(scope.nodes):
                if node.name and node.name == match["name"]:
                    return scope.at(NODES, index), scope.where(index)
    return (MODEL,), "model"


def _model_check(context: Context) -> Iterator[Hit]:
    if context.has_errors or context.external:  # both would look for the files in the current folder
        return
    try:
        # FUN-04 says it of the versions that functions import: a warning.
        checker.check_model(normalized(context.model), skip_opset_compatibility_check=True)
    except Exception as error:
        position, where = _place(context.scopes[0], str(error))
        yield Hit(position, where, f"the model must be valid, but onnx.checker says: {one_line(error)}")


def _inference(context: Context) -> Iterator[Hit]:
    if context.has_errors or context.external:  # both would look for the files in the current folder
        return
    try:
        shape_inference.infer_shapes(normalized(context.model), check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:
        position, where = _place(context.scopes[0], str(error))
        message = f"types and shapes must fit together, but onnx.shape_inference says: {one_line(error)}"
        yield Hit(position, where, message)


# In this order, after all other rules: each looks at what the ones before it have found.
RULES = (
    Rule("onnx.checker", "own", _model_check, _REMEDY),
    Rule("onnx.shape_inference", "own", _inference, _REMEDY),
)
