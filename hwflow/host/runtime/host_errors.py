"""What may go wrong between host and board, as findings: rule, place, message, remedy.

Strings that others wrote (names, paths, texts of the system) are put into messages by :func:`shown`, so that no
terminal obeys them.
"""

from __future__ import annotations

from typing import NamedTuple

USAGE, MISMATCH, DEVICE = 2, 1, 3  # exit codes: asked for wrongly; answers differ; board, cable or package


class HostFinding(NamedTuple):
    """One thing that is wrong: "where: X must be Y, not Z", and what to do."""

    rule: str
    where: str
    message: str
    remedy: str

    def table(self) -> dict[str, str]:
        """Return what JSON has of it."""
        return {
            "clause": self.rule, "severity": "error", "where": self.where, "message": self.message,
            "remedy": self.remedy,
        }

    def lines(self) -> tuple[str, str]:
        """Return the finding as text."""
        return f"error: {self.where}: {self.message} [{self.rule}]", f"  remedy: {self.remedy}"


class HostError(Exception):
    """Something between host and board is not as it must be. ``exit_code``: what a command returns for it."""

    def __init__(self, *findings: HostFinding, exit_code: int = DEVICE) -> None:
        self.findings, self.exit_code = findings, exit_code
        super().__init__("\n".join("\n".join(finding.lines()) for finding in findings))


class LinkLost(HostError):
    """The link cannot go on."""


def shown(value: object) -> str:
    """Return a string that others wrote in quotes, with an escape for each character that is not plain ASCII."""
    text = str(value)
    return ascii(text if len(text) <= 4096 else text[:4096] + "...")
