"""The verb ``check``: every finding about a model file, without compiling it.

What only a compilation needs is imported when a model gets that far: checking starts fast.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from hwflow.errors import Finding, ModelRefused
from hwflow.onnxspec import ModelProto, read_model
from hwflow.onnxspec.external_data import Folders, load_external_data
from hwflow.onnxspec.graph import Scope, show
from hwflow.onnxspec.validate import validate_scopes


def check(
    path: str | os.PathLike[str],
    dimensions: Mapping[str, int] | None = None,
    *,
    pedantic: bool = False,
    trusted: Folders = (),
) -> list[Finding]:
    """Every finding about a model file: the ONNX specification and hwflow's own rules. Never raises for a bad model.

    A finding's ``severity`` is "error" (the file is no valid ONNX model, or an argument is wrong), "unsupported"
    (valid ONNX that hwflow makes no hardware of) or "warning". hwflow's own rules are tried only on a model without
    errors. ``pedantic`` adds clauses that nearly every model breaks and nobody misses; ``trusted`` are folders beside
    the model's own in which its external data may lie, and to which links may lead.
    """
    try:
        proto = read_model(path)
    except ModelRefused as refused:
        return list(refused.findings)
    findings, scopes = validate_scopes(proto, path, pedantic=pedantic, trusted=trusted)
    if any(f.severity == "error" for f in findings):
        return findings
    return findings + [_own(f) for f in _unsupported(proto, scopes, path, dimensions or {}, trusted)]


def _unsupported(
    proto: ModelProto,
    scopes: Sequence[Scope],
    path: str | os.PathLike[str],
    dimensions: Mapping[str, int],
    trusted: Folders,
) -> tuple[Finding, ...]:
    """Why a valid model cannot be compiled; empty if it can."""
    from hwflow.frontend.unquantized import refuse_unquantized

    try:
        refuse_unquantized(proto, scopes)
        load_external_data(proto, path, trusted)
        # Only what survives this is worth the time that importing the rest takes.
        from hwflow.compiler import dataflow_of

        dataflow_of(proto, dimensions)
    except ModelRefused as refused:
        return refused.findings
    except MemoryError as error:
        message = f"the model must fit into memory, but it does not: {str(error) or 'there is no more'}"
        where = f"model {show(proto.graph.name)}"
        return (Finding("memory", where, message, "split the model, or use a larger machine"),)
    return ()


def _own(finding: Finding) -> Finding:
    """A finding of hwflow's own rules says nothing against the model as ONNX; one about an argument stays an error."""
    if finding.severity != "error" or finding.where.startswith("option "):
        return finding
    return Finding(finding.rule, finding.where, finding.message, finding.remedy, "unsupported")
