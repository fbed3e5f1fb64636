"""How strings that hwflow did not write are shown."""

from __future__ import annotations

import ast
import unicodedata
from pathlib import Path

import pytest

from hwflow.display import cell, printable, show, show_path


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("conv1", "'conv1'"),
        ("two words, été, Ж, 卷", "'two words, été, Ж, 卷'"),
        ("a\x1b[2J\x9b", "'a\\x1b[2J\\x9b'"),
        ("a\nb\r\tc\0", "'a\\nb\\r\\tc\\x00'"),
        ("\u202e\u2066\u200b\u2028\ufeff", "'\\u202e\\u2066\\u200b\\u2028\\ufeff'"),
        ("\U000e0041\ue000\udc80", "'\\U000e0041\\ue000\\udc80'"),
        ("a\u0301\u20dd\ufe0f", "'a\\u0301\\u20dd\\ufe0f'"),  # marks would change the letter, or the quote, before them
        ("\u00a0\u3000\u115f\u2800", "'\\xa0\\u3000\\u115f\\u2800'"),
        ("\\n", "'\\\\n'"),  # not what a line break looks like
        ("a' (Conv): fine", "'a\\' (Conv): fine'"),  # the name does not end at its own quote
        ("[red]x[/red]", "'[red]x[/red]'"),
        ("", "''"),
    ],
)
def test_names(text, shown):
    assert show(text) == shown
    assert printable(shown) == shown
    assert ast.literal_eval(show(text)) == text  # as Python writes strings


def test_all_characters():
    """No character is shown that has no look of its own, and each can be told."""
    every = [chr(code) for code in range(0x110000)]
    hidden = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Mn", "Mc", "Me"}
    text = printable("".join(every))
    assert not any(unicodedata.category(c) in hidden for c in text)
    assert [c for c in text if c.isspace()] == [" "]


def test_long_names_are_cut():
    assert show("n" * 121) == f"'{'n' * 120}...' (121 characters)"
    assert show_path(Path("n" * 200)) == f"'{'n' * 200}'"


def test_cells():
    cells = [cell(name) for name in ("conv1", "", "a b", "a\x1b", "it's")]
    assert cells == ["conv1", "''", "'a b'", "'a\\x1b'", "'it\\'s'"]
