"""Escape text for comments in emitted files, whatever a model's names hold."""

from __future__ import annotations

from hwflow.display import printable


def in_comment(text: str) -> str:
    """Return the text on one line, in ASCII: some tools read nothing else. It ends with no backslash, which some take
    for a line that goes on."""
    line = printable(text).encode("ascii", "backslashreplace").decode()
    return f"{line}." if line.endswith("\\") else line
