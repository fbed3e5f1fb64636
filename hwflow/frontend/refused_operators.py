"""Findings about unsupported operators."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from hwflow.errors import Finding
from hwflow.onnxspec.resolving.control_flow import once_a_body
from hwflow.operators.onnx_operators import MAY_HOLD, REASONS


def unsupported(where: str, operator: str, said: str = "") -> Finding:
    """Return the finding about an operator, given without its domain and described as ``said`` (default: its name)."""
    reason = REASONS.get(operator)
    message = f"operator must be one that hwflow supports, not {said or operator}"
    remedy = "see 'hwflow ops' for the supported ones; replace the node or leave it out"
    if reason is not None:
        message, remedy = f"{message}: it {reason.why}", reason.remedy
    return Finding("supported-operator", where, message, remedy)


_DEFINED = re.compile(r" in the definition of (?P<node>node '.*' \((?P<operator>\w+)\).*)$")


def whole_operator(where: str) -> tuple[str, str] | None:
    """Return the node, and its operator, in whose definition a place lies, if the table has that operator."""
    outer = _DEFINED.search(where)
    return (outer["node"], outer["operator"]) if outer is not None and outer["operator"] in REASONS else None


def of_whole_operators(findings: Iterable[Finding]) -> list[Finding]:
    """Merge the findings in the definition of an operator of the table into one about that operator, and those of all
    rounds of a loop. In the definition of another one nobody can put quantizers: the remedy says what it may hold."""
    result: dict[Finding, None] = {}
    for finding in once_a_body(findings):
        outer = whole_operator(finding.where)
        result[_of_definition(finding) if outer is None else unsupported(*outer)] = None
    return list(result)


def _of_definition(finding: Finding) -> Finding:
    outer = _DEFINED.search(finding.where)
    if outer is None or outer["operator"] not in MAY_HOLD:
        return finding
    remedy = (
        f"hardware for {outer['operator']} is limited to: {MAY_HOLD[outer['operator']]}; else let no quantizer follow "
        "it, so that the host runs it"
    )
    return replace(finding, remedy=remedy)
