"""The records of all ONNX operators, and the lists that are made of them."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.operators.record import Operator, Reason
from hwflow.operators.records import (
    arithmetic_records,
    function_records,
    linear_records,
    move_records,
    quantizer_records,
    refused_records,
)

Key = tuple[str, str]
"""Domain and type."""

RECORDS: tuple[Operator, ...] = (
    *arithmetic_records.RECORDS,
    *function_records.RECORDS,
    *linear_records.RECORDS,
    *move_records.RECORDS,
    *quantizer_records.RECORDS,
    *refused_records.RECORDS,
)

OPERATORS: Mapping[Key, Operator] = {(domain, record.name): record for record in RECORDS for domain in record.domains}

HANDLERS: Mapping[Key, Operator] = {key: record for key, record in OPERATORS.items() if record.lower is not None}
"""Those that hardware can be made of: the legality table of the Imported stage."""

NAMES = frozenset(name for _, name in HANDLERS)
HEAVY = frozenset(record.name for record in RECORDS if record.heavy)
REASONS: Mapping[str, Reason] = {record.name: record.refused for record in RECORDS if record.refused is not None}
WORK = {record.name: record.work for record in RECORDS if record.work is not None}
"""By type, whatever the domain."""

KEPT = frozenset(key for key, record in OPERATORS.items() if record.lower is not None or record.whole)
"""The operators to keep when a model is resolved: others may be replaced by their definition."""

STANDARD_QUANTIZERS = frozenset(name for (domain, name), record in HANDLERS.items() if not domain and record.quantized)
"""Operators of ai.onnx that make integers of reals, or work on integers."""


def record_of(domain: str, op_type: str) -> Operator | None:
    """The record of an operator; None if there is none."""
    return OPERATORS.get((domain, op_type))


def makes_integers(operator: Key) -> bool:
    """Whether an operator turns reals into integers, or works on integers: what stands behind the last one is the
    host's, what stands before the first one too."""
    record = HANDLERS.get(operator)
    return record is not None and record.quantized
