"""Rewrite Amaranth's RTLIL for readable Verilog."""

from __future__ import annotations

import re

from hwflow.cores.verilog_names import KEYWORDS


def readable(text: str) -> str:
    """Make public names legal Verilog identifiers, not keywords: hierarchy dots become double underscores."""
    return _NAME.sub(lambda match: "\\" + legal(match.group(1)), text)


_NAME = re.compile(r"\\([A-Za-z_$][A-Za-z0-9_.$]*(?:\[\d+\])*)")  # Amaranth numbers the lanes of a port: payload[0]


def legal(name: str) -> str:
    """Return the legal form of a name."""
    # Two underscores, which no name from a model has: a.b, a[1] and a$1 (the second signal a) become a__b, a__1, a__v1.
    plain = re.sub(r"[.\[]", "__", name.replace("]", "").replace("$", "__v"))
    return f"{plain}_" if plain in KEYWORDS else plain
