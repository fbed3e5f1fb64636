"""One hierarchy of errors; every finding names the rule, the place, what was expected, what was found, what to do.

A command that refuses its input collects *all* findings before it raises: one :class:`HwflowError` carries many
:class:`Finding` objects. Nothing in hwflow raises a bare ``Exception``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

# Control characters but tab and line break: a name in a model must not command the terminal.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong (or odd) with an input.

    ``rule`` is a clause id of the ONNX specification or the name of one of hwflow's own rules; ``where`` a place such
    as ``node 'conv1' (Conv)`` or ``value 'x'``; ``message`` says "X must be Y, not Z"; ``remedy`` says what to do.
    """

    rule: str
    where: str
    message: str
    remedy: str
    severity: str = "error"  # "error", "warning", or of `check`: "unsupported" (valid ONNX that is not compiled)

    def __str__(self) -> str:
        text = f"{self.severity}: {self.where}: {self.message} [{self.rule}]\n  remedy: {self.remedy}"
        return _UNSAFE.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """The findings with those that differ in their rule alone as one, at the place of the first: for people.

    Clauses overlap: a value that is defined twice breaks three of them.
    """
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.severity, finding.where, finding.message, finding.remedy)
        alike.setdefault(key, []).append(finding)
    return [
        same[0] if len(same) == 1 else replace(same[0], rule=", ".join(dict.fromkeys(f.rule for f in same)))
        for same in alike.values()
    ]


class HwflowError(Exception):
    """Base class. ``exit_code`` is what the command line returns for it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, findings: Finding | Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = (findings,) if isinstance(findings, Finding) else tuple(findings)
        super().__init__("\n".join(str(f) for f in self.findings))


class ModelRefused(HwflowError):
    """The model cannot be compiled exactly, or is no valid ONNX model; all reasons are in ``findings``."""


class Mismatch(HwflowError):
    """Two things that must be equal differ (simulation against golden, measured against predicted timing)."""


class UsageError(HwflowError):
    """The user asked for something that does not exist or cannot be done (board, option, path)."""

    exit_code = 2


class ToolError(HwflowError):
    """An external tool is missing, too old, or failed."""

    exit_code = 3


class InternalError(HwflowError):
    """A pass broke its own promise (legality table, proof). A defect of hwflow, never of the model."""
