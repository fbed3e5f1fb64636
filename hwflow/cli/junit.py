"""JUnit XML of what a command found: `--junit FILE`.

A suite is a model or an output folder; a case is one check of it. By hand on ElementTree: a few lines, which need no
further package.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from hwflow.display import show, show_path
from hwflow.errors import Finding, Severity, UsageError, merged

if TYPE_CHECKING:
    from hwflow.host.runtime.run_command import BoardRun
    from hwflow.verify.comparison import Comparison
    from hwflow.verify.simulation import Simulation

# All but the characters that XML 1.0 allows in a document.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """One check: what it found wrong, or its output if it passed; ``skipped``: why it was not made."""

    name: str
    failures: tuple[Finding, ...] = ()
    output: str = ""
    skipped: str = ""


@dataclass(frozen=True)
class Suite:
    """The checks of one model or output folder; ``command`` is the verb."""

    name: str
    command: str
    cases: tuple[Case, ...]
    properties: tuple[tuple[str, str], ...] = ()


def check_suite(model: str, findings: Sequence[Finding]) -> Suite:
    """Make a case per finding, or one that passes where there is none. Warnings pass."""
    cases = [
        Case(f"{f.where} [{f.rule}]", output=str(f)) if f.severity == Severity.WARNING
        else Case(f"{f.where} [{f.rule}]", failures=(f,))
        for f in merged(findings)
    ]
    return Suite(model, "check", tuple(cases) or (Case("no findings"),))


# What `sim` looks at, by the rules of its findings.
_SIMULATED = ("bit-exact", "stream-protocol", "no-deadlock", "error-output", "exact-timing")


def sim_suite(target: str, simulation: Simulation) -> Suite:
    """Make a case per property, and with `--layers` one per core."""
    result, layers = simulation.result, simulation.layers
    found = {rule: tuple(f for f in simulation.findings if f.rule == rule) for rule in _SIMULATED}
    timed = result.stall == 0 and result.ok
    untimed = "" if timed else "timing is checked without stalls, if all else is right"
    cases = [Case(rule, found[rule], skipped=untimed if rule == "exact-timing" else "") for rule in _SIMULATED]
    if layers is not None:
        cases += [Case(f"layer {row.core}", () if row.first is None else (row.finding(),)) for row in layers.rows]
    properties = [("simulator", result.simulator), ("seed", str(result.seed)), ("stall", f"{result.stall:g}")]
    return Suite(target, "sim", tuple(cases), (*properties, ("inputs", simulation.inputs.origin)))


def run_suite(out: str, done: BoardRun, properties: Sequence[tuple[str, str]]) -> Suite:
    """Make a case for the board's answers, skipped where they were not compared, and one for its error output."""
    found = {finding.rule: (Finding(*finding),) for finding in done.findings()}
    uncompared = "the answers were not compared" if done.mismatches is None else ""
    cases = tuple(
        Case(rule, found.get(rule, ()), skipped=skipped)
        for rule, skipped in (("board-answer", uncompared), ("error-output", ""))
    )
    return Suite(out, "run", cases, (("frames", str(done.frames)), *properties))


def compare_suite(model: str, comparison: Comparison, seed: int) -> Suite:
    """Make a case per value, and one per output that onnxruntime judges."""
    cases = tuple(
        Case(f"value {show(row.name)}", tuple(finding for finding in (comparison.finding(row),) if finding is not None))
        for row in comparison.rows
    )
    if comparison.runtime is not None:
        absent = comparison.runtime.absent
        cases += (Case("onnxruntime", skipped=absent),) if absent else ()
        for row in comparison.runtime.rows.values():
            name = f"onnxruntime, output {show(row.name)}"
            cases += (Case(name, skipped=row.unjudged) if row.finding is None else Case(name, (row.finding,)),)
    return Suite(model, "compare", cases, (("seed", str(seed)), ("inputs", comparison.inputs.origin)))


def refusal(command: str, findings: Sequence[Finding]) -> Suite:
    """Make a case per finding of a command that ended before any check."""
    return Suite(f"hwflow {command}", command, tuple(Case(f"{f.where} [{f.rule}]", (f,)) for f in merged(findings)))


def text(suites: Sequence[Suite]) -> str:
    """Return the document."""
    root = ElementTree.Element("testsuites", {"name": "hwflow"})
    sums = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite in suites:
        counts = {
            "tests": len(suite.cases), "failures": sum(bool(case.failures) for case in suite.cases), "errors": 0,
            "skipped": sum(bool(case.skipped) for case in suite.cases),
        }
        sums = {name: sums[name] + count for name, count in counts.items()}
        element = ElementTree.SubElement(root, "testsuite", {"name": _legal(suite.name), **_texts(counts)})
        if suite.properties:
            listed = ElementTree.SubElement(element, "properties")
            for name, value in suite.properties:
                ElementTree.SubElement(listed, "property", {"name": name, "value": _legal(value)})
        for case in suite.cases:
            element.append(_case(suite, case))
    root.attrib.update(_texts(sums))
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=False) + "\n"


def _case(suite: Suite, case: Case) -> ElementTree.Element:
    names = {"classname": f"hwflow.{suite.command}", "name": case.name}
    element = ElementTree.Element("testcase", {key: _legal(name) for key, name in names.items()})
    for finding in case.failures:
        about = {"type": finding.rule, "message": f"{finding.where}: {finding.message}"}
        failure = ElementTree.SubElement(element, "failure", {name: _legal(value) for name, value in about.items()})
        failure.text = _legal(str(finding))
    if case.skipped:
        ElementTree.SubElement(element, "skipped", {"message": case.skipped})
    if case.output:
        ElementTree.SubElement(element, "system-out").text = _legal(case.output)
    return element


def _legal(value: str) -> str:
    """Escape (\\x1b, \\udc80) each character that XML does not allow."""
    return _ILLEGAL.sub(lambda match: "".join(_escapes(match[0])), value)


def _escapes(characters: str) -> Iterator[str]:
    for character in characters:
        code = ord(character)
        yield f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _texts(counts: dict[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}


def check_file(path: str) -> None:
    """Raise :class:`UsageError` unless a file can be written there: before a long run."""
    file = Path(path)
    if not file.absolute().parent.is_dir():
        raise _unwritable(path, f"its folder must exist, but {show(file.parent)} does not")
    if file.exists() and not file.is_file():
        raise _unwritable(path, "must be a regular file")
    if not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
        raise _unwritable(path, "must be a file that can be written, but: Permission denied")


def write(path: str, suites: Sequence[Suite]) -> None:
    """Write a temporary file, then rename it. Raises :class:`UsageError`."""
    check_file(path)
    file = Path(os.path.realpath(path))
    beside = file.with_name(file.name + ".part")
    try:
        beside.write_text('<?xml version="1.0" encoding="utf-8"?>\n' + text(suites), encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise _unwritable(path, f"must be a file that can be written, but: {error.strerror}") from None


def _unwritable(path: str, message: str) -> UsageError:
    return UsageError.of("junit-file", f"option --junit {show_path(path)}", message, "choose another path")
