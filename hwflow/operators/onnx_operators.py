"""The records of all ONNX operators, and the tables derived from them. Importing this module registers the records'
facts with :mod:`hwflow.onnxspec`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules

from hwflow.onnxspec.graphs import operator_facts
from hwflow.onnxspec.graphs.operator_facts import Key
from hwflow.operators import elementwise, fused, linear, ml, moves, norms, quantizers, records
from hwflow.operators.record import Operator, Reason


def _found() -> Iterator[Operator]:
    """Collect the ``RECORDS`` of all modules of every family."""
    for family in (elementwise, fused, linear, ml, moves, norms, quantizers, records):
        for module in iter_modules(family.__path__, f"{family.__name__}."):
            yield from getattr(import_module(module.name), "RECORDS", ())


RECORDS: tuple[Operator, ...] = tuple(_found())

operator_facts.fill(RECORDS)

OPERATORS: Mapping[Key, Operator] = {(domain, record.name): record for record in RECORDS for domain in record.domains}

HANDLERS: Mapping[Key, Operator] = {key: record for key, record in OPERATORS.items() if record.lower is not None}
"""The handlers of supported operators: what a resolved model may hold."""

NAMES = frozenset(name for _, name in HANDLERS)
HEAVY = frozenset(record.name for record in RECORDS if record.heavy)
DEFINED = frozenset(record.name for record in RECORDS if record.defined)
"""Operators whose definition hardware runs."""

MAY_HOLD: Mapping[str, str] = {
    record.name: record.defined or record.limits
    for record in RECORDS if record.defined or (record.lower is not None and record.definition is not None)
}  # fmt: skip
"""What such a node may hold, and one that is replaced by its definition in some forms only."""

REASONS: Mapping[str, Reason] = {
    record.name: reason for record in RECORDS if (reason := record.refused or record.partly) is not None
}
WORK = {record.name: record.work for record in RECORDS if record.work is not None}
"""Operator types, of any domain."""

KEPT = frozenset(key for key, record in OPERATORS.items() if record.lower is not None or record.whole)
"""The operators to keep when a model is resolved; others may be replaced by their definition."""

STANDARD_QUANTIZERS = frozenset(name for (domain, name), record in HANDLERS.items() if not domain and record.quantized)
"""Operators of ai.onnx that quantize reals, or work on integers."""


def record_of(domain: str, op_type: str) -> Operator | None:
    """Return the record of an operator; None if there is none."""
    return OPERATORS.get((domain, op_type))


def makes_integers(operator: Key) -> bool:
    """Tell whether an operator quantizes reals or works on integers: the host runs the nodes before the first and after
    the last one."""
    record = HANDLERS.get(operator)
    return record is not None and record.quantized


def passes_elements(operator: Key) -> bool:
    """Tell whether an operator's results are elements of its operands: at other places, or the greatest of some."""
    record = HANDLERS.get(operator)
    return record is not None and (record.moves or record.keeps_elements)
