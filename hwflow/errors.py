"""One hierarchy of errors; every finding names the rule, the place, what was expected, what was found, what to do.

A command that refuses its input collects *all* findings before it raises: one :class:`HwflowError` carries many
:class:`Finding` objects. Nothing in hwflow raises a bare ``Exception``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Self

from hwflow.display import printable, shortened

_LONGEST = 4000  # characters of a field


class Severity(StrEnum):
    """How bad a finding is. The values are the words of output and JSON."""

    ERROR = "error"
    WARNING = "warning"
    UNSUPPORTED = "unsupported"  # of `check`: valid ONNX that is not compiled


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong (or odd) with an input.

    ``rule`` is a clause id of the ONNX specification or the name of one of hwflow's own rules; ``where`` a place such
    as ``node 'conv1' (Conv)`` or ``value 'x'``; ``message`` says "X must be Y, not Z"; ``remedy`` says what to do.
    Each is one line, without any character that a terminal obeys, whatever it was made of
    (:mod:`hwflow.display`); ``output`` is what a tool printed, line by line.
    """

    rule: str
    where: str
    message: str
    remedy: str
    severity: Severity = Severity.ERROR
    output: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("rule", "where", "message", "remedy"):
            object.__setattr__(self, name, shortened(printable(getattr(self, name)), _LONGEST))
        object.__setattr__(self, "output", tuple(shortened(printable(line), _LONGEST) for line in self.output))

    def lines(self) -> tuple[str, ...]:
        """Return the finding as text, line by line."""
        first = f"{self.severity}: {self.where}: {self.message} [{self.rule}]"
        return (first, *(f"    {line}" for line in self.output), f"  remedy: {self.remedy}")

    def table(self) -> dict[str, str]:
        """Return what ``--format json`` has of it."""
        return {
            "clause": self.rule, "severity": self.severity, "where": self.where, "message": self.message,
            "remedy": self.remedy,
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that differ in their rule alone into one, at the place of the first: for people.

    Clauses overlap: a value that is defined twice breaks three of them.
    """
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.severity, finding.where, finding.message, finding.remedy, *finding.output)
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

    @classmethod
    def of(cls, rule: str, where: str, message: str, remedy: str, output: tuple[str, ...] = ()) -> Self:
        """Return the error of one finding."""
        return cls(Finding(rule, where, message, remedy, output=output))


class ModelRefused(HwflowError):
    """The model cannot be compiled exactly, or is no valid ONNX model; all reasons are in ``findings``."""


class DoesNotFit(ModelRefused):
    """No design fits. Its findings take long to find, and are found when they are first asked for: of all the forms of
    a design that are tried, one is told of."""

    def __init__(self, explain: Callable[[], Iterable[Finding]]) -> None:
        Exception.__init__(self)
        self._explain = explain

    @cached_property
    def findings(self) -> tuple[Finding, ...]:  # type: ignore[override]
        try:
            return tuple(self._explain())
        except ModelRefused as refused:  # what would fit has another obstacle
            return refused.findings

    def __str__(self) -> str:
        return "\n".join(str(finding) for finding in self.findings)

    def __reduce__(self) -> tuple[type[ModelRefused], tuple[tuple[Finding, ...]]]:
        """Go to another process with findings."""
        return ModelRefused, (self.findings,)


class NoSuchModel(ModelRefused):
    """There is no file where the model should be: what the user asked for does not exist."""

    exit_code = 2


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
