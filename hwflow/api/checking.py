"""The verb ``check``: every finding about a model file, without compiling it.

What only compilation needs is imported late: checking starts fast.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hwflow.display import show
from hwflow.errors import Finding, ModelRefused, Severity, UsageError
from hwflow.onnxspec import ModelProto, read_model
from hwflow.onnxspec.graphs.scopes import Scope, main_scopes
from hwflow.onnxspec.reading.bound_inputs import InputConstants, bind_inputs
from hwflow.onnxspec.reading.external_loading import Folders, load_external_data
from hwflow.onnxspec.reading.map_ends import separated
from hwflow.onnxspec.reading.old_dialects import modernize
from hwflow.onnxspec.validate import validate_scopes

if TYPE_CHECKING:
    from hwflow.frontend.host_work import HostWork
    from hwflow.frontend.input_types import Declarations
    from hwflow.frontend.states.ties import States


def check(
    path: str | os.PathLike[str],
    dimensions: Mapping[str, int] | None = None,
    *,
    pedantic: bool = False,
    trusted: Folders = (),
    input_types: Declarations | None = None,
    constants: InputConstants | None = None,
    states: States | None = None,
) -> list[Finding]:
    """Return every finding about a model file, by the ONNX specification and hwflow's own rules. Never raises for a bad
    model.

    A finding's ``severity`` is "error" (not a valid ONNX model, or an invalid argument), "unsupported" (valid ONNX that
    hwflow makes no hardware of) or "warning". hwflow's own rules apply only to a model without errors. ``pedantic``
    adds harmless remarks of form (:func:`hwflow.onnxspec.validate.is_remark`), which nearly every exporter
    causes; ``trusted`` are folders beside the model's own in which its external data may lie, and to which links may
    lead; ``input_types``, ``constants`` and ``states`` as :func:`hwflow.load` takes them.
    """
    return examine(
        path, dimensions, pedantic=pedantic, trusted=trusted, input_types=input_types, constants=constants,
        states=states,
    )[0]


def examine(
    path: str | os.PathLike[str],
    dimensions: Mapping[str, int] | None = None,
    *,
    pedantic: bool = False,
    trusted: Folders = (),
    input_types: Declarations | None = None,
    constants: InputConstants | None = None,
    states: States | None = None,
) -> tuple[list[Finding], HostWork | None]:
    """Return what :func:`check` returns, and what is left to the host if the model can be compiled."""
    try:
        proto = read_model(path)
    except ModelRefused as refused:
        return list(refused.findings), None
    try:
        bind_inputs(proto, constants or {})
    except UsageError as wrong:
        return list(wrong.findings), None
    old = modernize(proto)
    findings, scopes = validate_scopes(proto, path, pedantic=pedantic, trusted=trusted)
    findings += old
    if any(f.severity == Severity.ERROR for f in findings):
        return findings, None
    own, work = _compiled(proto, scopes, path, dimensions or {}, trusted, input_types or {}, states)
    return findings + [_own(f) for f in own], work


def _compiled(
    proto: ModelProto,
    scopes: Sequence[Scope],
    path: str | os.PathLike[str],
    dimensions: Mapping[str, int],
    trusted: Folders,
    input_types: Declarations,
    states: States | None,
) -> tuple[tuple[Finding, ...], HostWork | None]:
    """Return why a valid model cannot be compiled, or what is left to the host (with a warning if that is a part of the
    network)."""
    from hwflow.frontend.unquantized import refuse_unquantized

    try:
        maps = separated(proto)
        if maps.inputs or maps.outputs:
            scopes = main_scopes(proto)
        refuse_unquantized(proto, scopes, input_types)
        load_external_data(proto, path, trusted)
        # Only what survives this is worth the time that importing the rest takes.
        from hwflow.api.compiler import dataflow
        from hwflow.frontend.host_work import HostWork
        from hwflow.frontend.input_types import needless, parsed
        from hwflow.frontend.states.ties import STATELESS, ties_of
        from hwflow.loaded_model import quantized_of

        declared = parsed(input_types)
        ties = ties_of(proto, (states or STATELESS).within(proto), Path(path).parent)
        resolved, graph = quantized_of(proto, dimensions, declared, ties)
        dataflow(graph)
        work = HostWork.of(resolved, graph)
        return (*work.findings(resolved), *needless(resolved, declared)), work
    except (ModelRefused, UsageError) as refused:
        return refused.findings, None
    except MemoryError as error:
        message = f"the model must fit into memory, but it does not: {str(error) or 'out of memory'}"
        where = f"model {show(proto.graph.name)}"
        return (Finding("memory", where, message, "split the model, or use a larger machine"),), None


def _own(finding: Finding) -> Finding:
    """Make a finding of hwflow's own rules "unsupported", as the model is valid ONNX; one about an argument stays an
    error."""
    if finding.severity != Severity.ERROR or finding.where.startswith("option "):
        return finding
    return replace(finding, severity=Severity.UNSUPPORTED)
