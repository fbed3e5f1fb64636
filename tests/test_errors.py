"""Findings as text."""

from __future__ import annotations

import pickle

from hwflow.errors import DoesNotFit, Finding, ModelRefused


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


def test_why_nothing_fits_is_looked_for_when_it_is_asked_for() -> None:
    """Once, and by whoever takes the refusal in another process, too."""
    asked = []

    def explain() -> list[Finding]:
        asked.append(True)
        return [Finding("device-budget", "model 'm'", "lut must be at most 1, not 2", "use a larger board")]

    refused = DoesNotFit(explain)
    assert not asked
    text = "error: model 'm': lut must be at most 1, not 2 [device-budget]\n  remedy: use a larger board"
    assert str(refused) == str(refused) == text
    assert [finding.rule for finding in refused.findings] == ["device-budget"] and len(asked) == 1
    sent = pickle.loads(pickle.dumps(refused))
    assert isinstance(sent, ModelRefused) and sent.findings == refused.findings


def test_what_is_in_the_way_of_explaining_is_the_reason() -> None:
    def explain() -> list[Finding]:
        raise ModelRefused.of("even-schedule", "model 'm'", "must have one", "use smaller images")

    assert [finding.rule for finding in DoesNotFit(explain).findings] == ["even-schedule"]
