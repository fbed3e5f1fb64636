"""The form of domains: reverse domain names, as of Java packages."""

from __future__ import annotations

import re

_REVERSE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*)+")

# Top-level domains that reveal a name in forward order (example.com).
_TOP_LEVEL = frozenset({"com", "org", "net", "edu", "gov", "io", "ai", "dev"})


def is_reverse_domain(domain: str) -> bool:
    """Tell whether ``domain`` has the form of a reverse domain name: at least two labels of ASCII letters, digits,
    hyphens and underscores, the first starting with a letter, and no well-known top-level domain at the end."""
    if not _REVERSE.fullmatch(domain):
        return False
    first, _, rest = domain.lower().partition(".")
    return first in _TOP_LEVEL or rest.rpartition(".")[2] not in _TOP_LEVEL
