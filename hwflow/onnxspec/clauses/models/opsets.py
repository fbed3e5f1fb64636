"""Clauses about operator sets: a model's imports and their versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import onnx

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.models.domains import is_reverse_domain
from hwflow.onnxspec.clauses.models.functions import KEEP_ONE, several_versions
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, at_node, listed
from hwflow.onnxspec.graphs.scopes import MODEL, Kind, Position, implicit_version, plain_domain
from hwflow.onnxspec.shapes.dialects import DIALECT_DOMAINS

# onnx stores versions in 32 bits; other domains define their own versions.
_HIGHEST = 2**31 - 1

_NAME_THE_DEFAULT = "add an entry for domain '' (ai.onnx) with the version meant to opset_import"

# One list of imports: position and name in findings, the entries, and the domain of the function itself ("" for the
# model's list).
_Imports = tuple[Position, str, Sequence[onnx.OperatorSetIdProto], str]


def highest_version(domain: str) -> int:
    """Return the highest supported version of an operator set ("" is ai.onnx)."""
    return int(onnx.defs.onnx_opset_version()) if domain == "" else _HIGHEST


def _shown(domain: str) -> str:
    return show(plain_domain(domain) or "ai.onnx")


def _imports(context: Context) -> Iterator[_Imports]:
    """Yield the import lists of the model and of its functions."""
    yield (MODEL,), "model", context.model.opset_import, ""
    for scope in context.scopes:
        if scope.kind is Kind.FUNCTION and scope.function is not None:
            yield scope.at(MODEL), scope.title, scope.function.opset_import, scope.function.domain


def _assumed_default(context: Context) -> Hit:
    """Report that the default operator set is not imported, and which version is assumed."""
    domains = listed(dict.fromkeys(opset.domain for opset in context.model.opset_import))
    return Hit(
        (MODEL,),
        "model",
        f"opset_import must name the version of the default operator set 'ai.onnx', but it names {domains} only; "
        f"version {implicit_version(context.ir_version)} is assumed, the newest of IR version {context.ir_version}",
        _NAME_THE_DEFAULT,
        Severity.WARNING,
    )


_NO_IMPORTS = Hit(
    (MODEL,), "model", "opset_import must have at least one entry, but it is empty", _NAME_THE_DEFAULT, Severity.ERROR
)


def _imports_default(context: Context) -> bool:
    return any(plain_domain(opset.domain) == "" for opset in context.model.opset_import)


def _opset_import(context: Context) -> Iterator[Hit]:
    entries = context.model.opset_import
    if context.ir_version >= 3:
        if not entries:
            yield _NO_IMPORTS
        elif not _imports_default(context):
            yield _assumed_default(context)
    elif context.ir_version >= 1 and entries:
        domains = listed(dict.fromkeys(opset.domain or "ai.onnx" for opset in entries))
        yield Hit(
            (MODEL,),
            "model",
            f"opset_import must be absent below IR version 3, but the model has IR version {context.ir_version} and "
            f"imports {domains}; the imports hold",
            "export the model with IR version 3 or higher",
            Severity.WARNING,
        )


def _implicit_default(context: Context) -> Iterator[Hit]:
    if context.ir_version < 3 or _imports_default(context):
        return
    # A function's body has its own imports, and nothing is implicit there.
    if any(node.domain == "" for scope in context.scopes if not scope.in_function for node in scope.nodes):
        yield _assumed_default(context) if context.model.opset_import else _NO_IMPORTS


def _one_version(context: Context) -> Iterator[Hit]:
    yield from _one_version_in_model(context)
    if context.ir_version >= 8:
        for hit in several_versions(context):
            yield replace(hit, remedy=KEEP_ONE, severity=Severity.ERROR)


def _one_version_in_model(context: Context) -> Iterator[Hit]:
    versions: dict[str, list[int]] = {}
    for opset in context.model.opset_import:
        versions.setdefault(plain_domain(opset.domain), []).append(opset.version)
    for domain, given in versions.items():
        if len(given) == 1:
            continue
        found = f"opset_import has {len(given)} entries for {_shown(domain)}"
        if len(set(given)) == 1:
            message = f"a domain must be imported once, but {found}, all of version {given[0]}"
        else:
            several = ", ".join(map(str, given[:5])) + (", ..." if len(given) > 5 else "")
            found += f", of versions {several}: the highest, {max(given)}, holds"
            message = f"a domain must be imported once, but {found}"
        yield Hit((MODEL,), "model", message)


def _version_given(context: Context) -> Iterator[Hit]:
    for position, where, entries, _ in _imports(context):
        for opset in entries:
            if opset.version >= 1:
                continue
            found = f"it is {opset.version}" if opset.HasField("version") else "it is absent"
            message = f"the version of operator set {_shown(opset.domain)} must be at least 1, but {found}"
            yield Hit(position, where, message)


def unknown_versions(context: Context) -> Iterator[Hit]:
    """Yield imports of versions that do not exist yet: none of their operators is declared."""
    for position, where, entries, _ in _imports(context):
        for opset in entries:
            domain = plain_domain(opset.domain)
            highest = highest_version(domain)
            if opset.version > highest:
                message = f"the version of operator set {_shown(domain)} must be at most {highest}, not {opset.version}"
                yield Hit(position, where, message, f"export the model with version {highest} of it or lower")


def _imported(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        if {node.domain for node in scope.nodes} <= scope.opsets.keys():
            continue
        reported: set[str] = set()
        for index, node in enumerate(scope.nodes):
            domain = node.domain
            if domain in scope.opsets or domain in reported:
                continue
            reported.add(domain)
            shown = _shown(domain)
            yield at_node(
                scope, index,
                f"the operator's domain must be imported, but {shown} is not in opset_import",
                f"add domain {shown} to opset_import" + (" of the function" if scope.in_function else ""),
                # Exporters of the quantized dialects omit their domain; its operators have one version.
                Severity.WARNING if domain in DIALECT_DOMAINS else Severity.ERROR,
            )


def _reverse_domains(context: Context) -> Iterator[Hit]:
    seen: set[str] = set()
    for position, where, entries, own in _imports(context):
        domains = dict.fromkeys([own, *(opset.domain for opset in entries)])
        bad = [domain for domain in domains if domain and domain not in seen and not is_reverse_domain(domain)]
        seen.update(bad)
        if bad:
            yield Hit(
                position,
                where,
                "domains of operator sets should be reverse domain names such as 'org.example', "
                f"but {listed(bad)} {'is' if len(bad) == 1 else 'are'} not",
            )


RULES = (
    Rule("PRO-02", "MUST", _opset_import, _NAME_THE_DEFAULT),
    # The two below are warnings, because the meaning is defined.
    Rule("OPS-04", "definition", _implicit_default, _NAME_THE_DEFAULT, severity=Severity.WARNING),
    Rule("PRO-03", "MUST", _one_version, "remove all entries but the one meant", severity=Severity.WARNING),
    Rule("PRO-04", "MUST", _version_given, "give the version that the operators were written for"),
    Rule("opset-version", "own", unknown_versions, "export the model with a lower version"),
    Rule("OPS-01", "MUST", _imported, "add the domain to opset_import", since_ir=3),
    Rule("OPS-12", "SHOULD", _reverse_domains, "rename the domain after one that you hold", severity=Severity.WARNING),
)
