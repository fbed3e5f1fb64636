"""Findings as text."""

from __future__ import annotations

from hwflow.errors import Finding


def test_names_do_not_command_the_terminal() -> None:
    finding = Finding("rule", "node 'a\x1b[2J\x9b'", "must be\tone\nline, not \r", "none")
    assert str(finding) == "error: node 'a\\x1b[2J\\x9b': must be\tone\nline, not \\x0d [rule]\n  remedy: none"
