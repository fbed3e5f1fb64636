"""``hwflow ops`` and docs/operators.md: every ONNX operator that hwflow compiles, from the operators' records
(:mod:`hwflow.operators.records`). All of it holds for every board."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hwflow.onnxspec.shapes.dialects import MICROSOFT_DOMAIN, ML_DOMAIN
from hwflow.operators.onnx_operators import HANDLERS, RECORDS
from hwflow.operators.record import Operator

TITLES = ("operator", "dialects", "becomes", "limits")

# Every other domain is one of QONNX's.
_DIALECTS = {"": "ONNX", ML_DOMAIN: "ONNX-ML", MICROSOFT_DOMAIN: "com.microsoft"}


@dataclass(frozen=True)
class ListedOperator:
    """One ONNX operator. ``dialects``: those with an operator of this name; ``becomes``: the operators of the quantized
    graph that do its work, none where it only says what numbers mean; ``refused``: it is never supported; ``defined``:
    its definition's operators do the work."""

    name: str
    dialects: tuple[str, ...]
    becomes: tuple[str, ...]
    refused: bool
    limits: str
    defined: bool = False

    def cells(self) -> tuple[str, ...]:
        """Return the cells as text, in the order of :data:`TITLES`."""
        becomes = ", ".join(self.becomes) or "no hardware of its own"
        becomes = "refused" if self.refused else "its definition" if self.defined else becomes
        return self.name, ", ".join(self.dialects), becomes, self.limits


def operators() -> tuple[ListedOperator, ...]:
    """Return every ONNX operator with a handler or a definition of such, by name."""
    names: dict[str, dict[str, Operator]] = {}
    for (domain, name), record in HANDLERS.items():
        names.setdefault(name, {})[_DIALECTS.get(domain, "QONNX")] = record
    result = []
    for name, records in sorted(names.items()):
        dialects = tuple(sorted(records, key=_DIALECT_ORDER.index))
        first = records[dialects[0]]
        never = all(record.never for record in records.values())
        result.append(ListedOperator(name, dialects, first.becomes, never, first.limits))
    defined: dict[str, dict[str, str]] = {}
    for record in RECORDS:
        for domain in record.domains if record.defined else ():
            defined.setdefault(record.name, {})[_DIALECTS.get(domain, "QONNX")] = record.defined
    for name, texts in defined.items():
        limits = "; ".join(f"{dialect}: {text}" if len(texts) > 1 else text for dialect, text in texts.items())
        result.append(ListedOperator(name, tuple(texts), (), False, limits, True))
    return tuple(sorted(result, key=lambda operator: operator.name))


_DIALECT_ORDER = ("ONNX", "ONNX-ML", "com.microsoft", "QONNX")


def markdown() -> Iterator[str]:
    """Yield the lines of docs/operators.md."""
    yield "# Operators"
    yield ""
    yield "Made by `hwflow ops --format markdown`; a test compares it with what the tables in the code say."
    yield ""
    yield (
        "Every ONNX operator that hwflow compiles. *Becomes*: the operators of the quantized graph that do the "
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
    reasons = {record.name: record.refused for record in RECORDS if record.refused is not None}
    for name, reason in sorted(reasons.items()):
        yield f"| {name} | {reason.why} | {reason.remedy} |"
