"""``hwflow ops`` and docs/operators.md: every ONNX operator that there is a handler for, from the tables that say so.

What an operator becomes is what the operators in :mod:`hwflow.cores.registry` say of themselves (``onnx``), its limits
are the front end's (:mod:`hwflow.frontend.limits`). All of it goes for every board.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hwflow.cores.registry import OPERATORS
from hwflow.frontend.handlers import HANDLERS, NEVER
from hwflow.frontend.limits import LIMITS
from hwflow.frontend.refused_operators import REASONS

TITLES = ("operator", "dialects", "becomes", "limits")

_DIALECTS = {"": "ONNX", "com.microsoft": "com.microsoft"}  # every other domain is one of QONNX's


@dataclass(frozen=True)
class ListedOperator:
    """One ONNX operator. ``dialects``: those with an operator of this name; ``becomes``: the operators of the quantized
    graph that do its work, none where it only says what numbers mean; ``refused``: it is never taken."""

    name: str
    dialects: tuple[str, ...]
    becomes: tuple[str, ...]
    refused: bool
    limits: str

    def cells(self) -> tuple[str, ...]:
        """As text, in the order of :data:`TITLES`."""
        becomes = "refused" if self.refused else ", ".join(self.becomes) or "no hardware of its own"
        return self.name, ", ".join(self.dialects), becomes, self.limits


def operators() -> tuple[ListedOperator, ...]:
    """Every ONNX operator with a handler, by name."""
    names: dict[str, set[str]] = {}
    for domain, name in HANDLERS:
        names.setdefault(name, set()).add(domain)
    result = []
    for name, domains in sorted(names.items()):
        dialects = tuple(sorted({_DIALECTS.get(domain, "QONNX") for domain in domains}, key=_DIALECT_ORDER.index))
        becomes = tuple(sorted(op.name for op in OPERATORS.values() if name in op.onnx))
        never = all((domain, name) in NEVER for domain in domains)
        result.append(ListedOperator(name, dialects, becomes, never, LIMITS[name]))
    return tuple(result)


_DIALECT_ORDER = ("ONNX", "com.microsoft", "QONNX")


def markdown() -> Iterator[str]:
    """The lines of docs/operators.md."""
    yield "# Operators"
    yield ""
    yield "Made by `hwflow ops --format markdown`; a test compares it with what the tables in the code say."
    yield ""
    yield (
        "Every ONNX operator that hardware can be made of. *Becomes*: the operators of the quantized graph that do the "
        "work; one of \"no hardware of its own\" only says what numbers mean or how they are laid out. All of it goes "
        "for every board. A node that is not taken as its limits say is refused "
        "with the reason; before the first quantizer and behind the last one, the host runs what hardware cannot."
    )
    yield ""
    yield f"| {' | '.join(TITLES)} |"
    yield f"|{'---|' * len(TITLES)}"
    for operator in operators():
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in operator.cells())} |"
    yield ""
    yield "## Operators that are refused"
    yield ""
    yield (
        "In the middle of a model. Before the first quantizer and behind the last one, the host runs them. Others that "
        "are not in the table above are refused likewise, without a word of their own."
    )
    yield ""
    yield "| operator | why: it | instead |"
    yield "|---|---|---|"
    for name, reason in sorted(REASONS.items()):
        yield f"| {name} | {reason.why} | {reason.remedy} |"
