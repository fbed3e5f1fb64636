"""How strings that hwflow did not write are shown: names and texts of a model, of files, of tools.

Whoever wrote them may want a terminal to obey them, a name to look like another, or a line to look like hwflow's own.
So :func:`show` puts a string where it belongs in a text, in quotes, and :func:`printable` is what a whole line, made
by whatever code, passes before it leaves hwflow.
"""

from __future__ import annotations

import os
import unicodedata

_LONGEST = 120  # characters of a name that are shown
_LONGEST_PATH = 4096  # characters: PATH_MAX of Linux

# Letters and symbols that fonts show as nothing: Hangul fillers, an empty Braille cell.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def is_visible(character: str) -> bool:
    """Tell whether a character shows itself and nothing else: no control, format, private, unassigned or line
    separating character, no space but " ", no mark that combines with what stands before it."""
    return (
        character.isprintable() and character not in _BLANK and not unicodedata.category(character).startswith("M")
    )


def _escaped(character: str) -> str:
    code = ord(character)
    short = _SHORT.get(character)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def printable(text: str) -> str:
    """Return ``text`` on one line, with an escape (\\n, \\x1b, \\u202e) for each character that is not visible.

    Does not change its own results, nor what :func:`show` has put into them.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join([c if is_visible(c) else _escaped(c) for c in text])


def show(value: object, longest: int = _LONGEST) -> str:
    """Return a name, or another value as text, in quotes, for a message; cut where it is absurdly long.

    As Python writes strings, so that no two names look alike for their escapes: a backslash is two, a quote has one.
    """
    name = str(value)
    text = name[:longest]
    if "\\" in text or "'" in text:
        text = text.replace("\\", "\\\\").replace("'", "\\'")
    text = printable(text)
    return f"'{text}'" if len(name) <= longest else f"'{text}...' ({len(name)} characters)"


def show_path(path: str | os.PathLike[str]) -> str:
    """Return the path of a file in quotes, whole."""
    return show(os.fspath(path), _LONGEST_PATH)


def cell(name: str) -> str:
    """Return ``name`` for a table or a title: without quotes where all can see what belongs to it."""
    shown = show(name)
    plain = shown[1:-1]
    return plain if plain == name and plain and " " not in plain else shown


def shortened(text: str, most: int) -> str:
    """Return ``text``, cut behind ``most`` characters."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"
