"""Findings as text."""

from __future__ import annotations

from hwflow.errors import Finding


def test_findings_do_not_command_the_terminal() -> None:
    """Whoever made the message, and whoever prints which of its parts."""
    finding = Finding("rule", "node 'a\x1b[2J\x9b'", "must be\tone\nerror: line, not \u202e\r", "none\u2028")
    assert finding.message == "must be\\tone\\nerror: line, not \\u202e\\r"
    assert str(finding) == (
        "error: node 'a\\x1b[2J\\x9b': must be\\tone\\nerror: line, not \\u202e\\r [rule]\n  remedy: none\\u2028"
    )


def test_output_of_tools_keeps_its_lines() -> None:
    finding = Finding("tool-run", "yosys", "exit status must be 0, not 1", "read it", output=("ERROR: \x1b[1m", "no"))
    assert str(finding) == (
        "error: yosys: exit status must be 0, not 1 [tool-run]\n    ERROR: \\x1b[1m\n    no\n  remedy: read it"
    )


def test_messages_of_absurd_length_are_cut() -> None:
    assert Finding("rule", "model", "x" * 5000, "none").message == f"{'x' * 4000}... (5000 characters)"
