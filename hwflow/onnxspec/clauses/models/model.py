"""Clauses about the model as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.models.domains import is_reverse_domain
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, listed
from hwflow.onnxspec.graphs.scopes import MODEL, Kind, function_name

_EXPORT = "export the model again with a current exporter"
_DOMAIN = "set domain to a reverse domain name of yours"


def _ir_version_present(context: Context) -> Iterator[Hit]:
    if not context.model.HasField("ir_version"):
        yield Hit((MODEL,), "model", "ir_version must be present, but the model has none")


def _ir_version(context: Context) -> Iterator[Hit]:
    version = context.ir_version
    if context.model.HasField("ir_version") and not 1 <= version <= onnx.IR_VERSION:
        yield Hit(
            (MODEL,),
            "model",
            f"ir_version must be from 1 to {onnx.IR_VERSION}, not {version}",
            f"export the model with IR version {onnx.IR_VERSION} or lower" if version > 0 else None,
        )


def _graph_present(context: Context) -> Iterator[Hit]:
    if not context.model.HasField("graph"):
        yield Hit((MODEL,), "model", "a model must have a graph, but this one has none")


def _training_content(context: Context) -> Iterator[Hit]:
    count = len(context.model.training_info)
    if count and 1 <= context.ir_version < 7:
        yield Hit(
            (MODEL,),
            "model",
            f"training_info must be absent below IR version 7, but the model has IR version {context.ir_version} and "
            f"{count} of it; inference does without",
        )


def _functions(context: Context) -> Iterator[Hit]:
    functions = context.model.functions
    if functions and 1 <= context.ir_version < 8:
        yield Hit(
            (MODEL,),
            "model",
            f"functions must be absent below IR version 8, but the model has IR version {context.ir_version} and "
            f"defines {listed(function_name(f) for f in functions)}",
        )


def _domain_present(context: Context) -> Iterator[Hit]:
    if not context.model.domain:
        yield Hit((MODEL,), "model", "domain must say who is responsible for the model, but the model has none")


def _domain_form(context: Context) -> Iterator[Hit]:
    domain = context.model.domain
    if domain and not is_reverse_domain(domain):
        message = f"domain must be a reverse domain name such as 'org.example', not {show(domain)}"
        yield Hit((MODEL,), "model", message)


def _graph_documentation(context: Context) -> Iterator[Hit]:
    missing = [scope for scope, graph in context.graphs if not graph.doc_string]
    if not missing:
        return
    main = context.scopes[0]
    # One finding for all: an exporter writes either all or none.
    inside = len(missing) - (missing[0].kind is Kind.MAIN)
    if not inside:
        found = "this one has none"
    elif missing[0].kind is Kind.MAIN:
        found = f"neither this one nor {inside} more (of subgraphs or training) has one"
    else:
        found = f"{inside} (of subgraphs or training) {'has' if inside == 1 else 'have'} none: {missing[0].title}"
        found += " is the first" if inside > 1 else ""
    yield Hit(main.at(MODEL), main.title, f"graphs should have a doc_string, but {found}")


RULES = (
    Rule("PRO-01", "MUST", _ir_version_present, _EXPORT),
    Rule("VER-04", "definition", _ir_version, _EXPORT),
    Rule("PRO-28", "MUST", _graph_present, "export the model again"),
    # A warning: training_info does not affect inference.
    Rule(
        "CMP-05",
        "definition",
        _training_content,
        "export the model with IR version 7 or higher, or without its training part",
        severity=Severity.WARNING,
    ),
    Rule(
        "MOD-13",
        "definition",
        _functions,
        "export the model with IR version 8 or higher, or without functions",
    ),
    # These three are pedantic: hardly any exporter states a domain or describes a graph, and nothing depends on it.
    Rule("MOD-14", "MUST", _domain_present, _DOMAIN, severity=Severity.WARNING, pedantic=True),
    Rule("MOD-15", "MUST", _domain_form, _DOMAIN, severity=Severity.WARNING, pedantic=True),
    Rule(
        "GRA-24", "SHOULD", _graph_documentation, "describe the graph in its doc_string", severity=Severity.WARNING,
        pedantic=True,
    ),
)
