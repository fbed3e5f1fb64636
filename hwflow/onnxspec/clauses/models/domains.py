"""The form of domains: reverse domain names, as of Java packages."""

from __future__ import annotations

import re

_REVERSE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*)+")

# Top-level domains by which a name that is written forwards (example.com) gives itself away.
_TOP_LEVEL = frozenset({"com", "org", "net", "edu", "gov", "io", "ai", "dev"})


def is_reverse_domain(domain: str) -> bool:
    """Whether ``domain`` has the form of a reverse domain name: two labels at least, of ASCII letters, digits, hyphens
    and underscores, the first one starting with a letter; not a well-known top-level domain at the wrong end."""
    if not _REVERSE.fullmatch(domain):
        return False
    first, _, rest = domain.lower().partition(".")
    return first in _TOP_LEVEL or rest.rpartition(".")[2] not in _TOP_LEVEL
