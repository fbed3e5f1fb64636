"""report.html: one file without network, of an output folder's tables and a program that draws them.

The program and its libraries are in ``assets``; what the page shows is data in JSON, which only becomes text of
elements.
A content security policy names the digests of its scripts and its style, so that nothing else on it runs or is loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

STYLES = ("page.css",)
LIBRARIES = ("vendor/d3.min.js", "vendor/dagre.min.js")
SCRIPTS = ("base.js", "headline.js", "graph.js", "layers.js", "time.js", "charts.js", "page.js")


def page(tables: Mapping[str, Any]) -> str:
    """Return the page of these tables (:mod:`hwflow.report.folder_page`)."""
    before, _, after = _frame().partition(_DATA)
    return before + _escaped(json.dumps(tables, separators=(",", ":"))) + after


_DATA = "@DATA@"
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)  # of a library, of no use here


def _escaped(text: str) -> str:
    """Return JSON, in ASCII, without the characters that mean something to HTML."""
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _frame() -> str:
    """Return the page with a mark where the data is."""
    styles = "\n".join(map(_asset, STYLES))
    scripts = [_asset(name) for name in (*LIBRARIES, *SCRIPTS)]
    for script in scripts:
        assert "</script" not in script.lower(), "a script must not end its element"
    policy = "; ".join((
        "default-src 'none'", f"style-src {_digest(styles)}", f"script-src {' '.join(map(_digest, scripts))}",
        "img-src data:", "base-uri 'none'", "form-action 'none'",
    ))  # fmt: skip
    text = _asset("page.html").replace("@POLICY@", policy).replace("@STYLE@", styles)
    return text.replace("@SCRIPTS@", "\n".join(f"<script>{script}</script>" for script in scripts))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _asset(name: str) -> str:
    text = (files("hwflow.report") / "assets" / name).read_text(encoding="utf-8")
    return _SOURCE_MAP.sub("", text)
