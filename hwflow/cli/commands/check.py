"""The command `check`."""

from __future__ import annotations

import argparse
import gc
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hwflow.api.options.texts import constants, dimensions, input_types, states
from hwflow.cli import junit
from hwflow.cli.terminal import counted, print_json, say
from hwflow.errors import Finding, ModelRefused, NoSuchModel, Severity, merged
from hwflow.processes import uncollected


def run_check(arguments: argparse.Namespace) -> int:
    """Check each model. Return 2 if a file is missing, else 1 if a model is refused."""
    from hwflow.api.checking import check
    from hwflow.onnxspec.validate import is_remark

    bound, declared = dimensions(arguments.dim), input_types(arguments.input_type)
    bindings = constants(arguments.const)
    tied = states(arguments.state, arguments.channels)
    tables, suites, code = [], [], 0
    with uncollected():
        for number, model in enumerate(arguments.models):
            if number:
                gc.collect()
            found = check(
                model, bound, pedantic=True, trusted=arguments.trust, input_types=declared, constants=bindings,
                states=tied,
            )
            findings = [f for f in found if arguments.pedantic or not is_remark(f)]
            remarks = sum(map(is_remark, found))
            code = max(code, _exit_code(model, findings))
            suites.append(junit.check_suite(model, findings))
            if arguments.format == "json":
                tables.append(_table(model, findings, remarks))
            else:
                verdict = f"{model}: {_verdict(findings)}{_hidden(len(found) - len(findings))}"
                say(*(line for finding in merged(findings) for line in finding.lines()), verdict)
    if arguments.format == "json":
        print_json(_together(tables))
    if arguments.junit:
        junit.write(arguments.junit, suites)
    return code


def _exit_code(model: str, findings: Sequence[Finding]) -> int:
    if not os.path.exists(model):
        return NoSuchModel.exit_code
    return ModelRefused.exit_code if any(f.severity != Severity.WARNING for f in findings) else 0


def _verdict(findings: Sequence[Finding]) -> str:
    """Return such as "1 error, 2 unsupported, 3 warnings"."""
    count = Counter(f.severity for f in findings)
    errors, warnings = counted(count[Severity.ERROR], "error"), counted(count[Severity.WARNING], "warning")
    unsupported = [f"{count[Severity.UNSUPPORTED]} unsupported"] if count[Severity.UNSUPPORTED] else []
    return ", ".join([errors, *unsupported, warnings])


def _hidden(remarks: int) -> str:
    """Return the verdict's words about remarks that are not shown."""
    return f"; {counted(remarks, 'remark')} of form not shown (--pedantic shows them)" if remarks else ""


def _table(model: str, findings: Sequence[Finding], remarks: int) -> dict[str, Any]:
    count = Counter(f.severity for f in findings)
    rows = [f.table() for f in findings]
    counts = {"errors": count[Severity.ERROR], "warnings": count[Severity.WARNING], "remarks": remarks}
    return {"model": model, "findings": rows, **counts}


def _together(tables: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one model's findings, or a list of several models' with the sums."""
    if len(tables) == 1:
        return {key: value for key, value in tables[0].items() if key != "model"}
    sums = {key: sum(table[key] for table in tables) for key in ("errors", "warnings", "remarks")}
    return {"models": list(tables), **sums}
