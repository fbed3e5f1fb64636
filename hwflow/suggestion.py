"""What somebody may have meant who wrote a name that there is none of."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from hwflow.display import show

_MOST = 3


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return "did you mean 'X'? " for the beginning of a remedy; "" where nobody can know.

    X is the one among ``known`` that begins with ``given``, or else those that are most like it. Case does not count,
    nor do the dashes of options.
    """
    plain = {_plain(name): name for name in known}
    asked = _plain(given)
    begun = [name for name in plain if asked and name.startswith(asked)]
    like = begun if len(begun) == 1 else get_close_matches(asked, plain, n=_MOST) or begun[:_MOST]
    if not like:
        return ""
    *others, last = (show(plain[name]) for name in like)
    return f"did you mean {', '.join(others)} or {last}? " if others else f"did you mean {last}? "


def _plain(name: str) -> str:
    return name.lower().lstrip("-")
