"""Links and anchors of Markdown pages, as GitHub and the documentation's site show them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKDOWN = MarkdownIt("commonmark").enable("table")


def links(page: str) -> list[str]:
    """The targets of all links and images of a page, as they are written; not those in code."""
    tokens = _walk(_MARKDOWN.parse(page))
    return [str(token.attrs[key]) for token in tokens for key in ("href", "src") if key in token.attrs]


def anchors(page: str) -> set[str]:
    """What stands behind ``#`` in links to the headings of a page."""
    tokens = _MARKDOWN.parse(page)
    return {
        _slug("".join(child.content for child in inline.children or ()))
        for heading, inline in pairwise(tokens)
        if heading.type == "heading_open"
    }


def _walk(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _walk(token.children or [])


def _slug(title: str) -> str:
    """As both make one of letters, digits, spaces and signs."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
