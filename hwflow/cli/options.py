"""Values of options: from text, with a finding for each that is none."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from hwflow.errors import Finding, UsageError


def folder(text: str) -> str:
    """argparse type of --trust."""
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"must be a folder, not '{text}'")
    return text


def seed(text: str) -> int:
    """argparse type of --seed."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0, not '{text}'")
    return int(text)


def number(option: str, text: str | None, example: str) -> float | None:
    """The number that an option has (None if it was not given). Raises :class:`UsageError`."""
    try:
        return None if text is None else float(text)
    except ValueError:
        message = f"must be a number, not '{text}'"
        raise UsageError(
            Finding("number-option", f"option {option}", message, f"for example {option} {example}")
        ) from None


def resources(text: str | None) -> dict[str, str] | None:
    """The names and values of --budget, not looked at themselves. Raises :class:`UsageError`."""
    if text is None:
        return None
    result: dict[str, str] = {}
    findings = []
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not (name and sign and value):
            findings.append(_budget(f"must be NAME=VALUE,..., not '{text}'"))
        elif name in result:
            findings.append(_budget(f"must name each resource once, not '{name}' twice"))
        else:
            result[name] = value
    if findings:
        raise UsageError(dict.fromkeys(findings))
    return result


def _budget(message: str) -> Finding:
    return Finding("budget-option", "option --budget", message, "for example --budget lut=30000,dsp=50%")


def dimensions(options: Sequence[str]) -> dict[str, int]:
    """Of --dim. Raises :class:`UsageError`."""
    result = {}
    for option in options:
        name, _, value = option.rpartition("=")  # a name may hold the sign
        if not name or not value.isdecimal() or int(value) < 1:
            raise UsageError(
                Finding(
                    "dimension-option",
                    "option --dim",
                    f"must be NAME=VALUE with VALUE at least 1, not '{option}'",
                    "for example --dim N=1",
                )
            )
        result[name] = int(value)
    return result
