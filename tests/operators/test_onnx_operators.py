"""The records: one per operator, and whole."""

from __future__ import annotations

from collections import Counter

import pytest

from hwflow.cores.registry import OPERATORS as GRAPH_OPERATORS
from hwflow.operators.onnx_operators import HANDLERS, RECORDS
from hwflow.operators.record import Operator


def test_an_operator_has_one_record() -> None:
    keys = Counter((domain, record.name) for record in RECORDS for domain in record.domains)
    assert {key for key, count in keys.items() if count > 1} == set()


def test_a_name_means_the_same_in_every_domain() -> None:
    """`hwflow ops` has one row for it."""
    rows: dict[str, set[tuple[str, tuple[str, ...]]]] = {}
    for record in HANDLERS.values():
        rows.setdefault(record.name, set()).add((record.limits, record.becomes))
    assert {name for name, said in rows.items() if len(said) > 1} == set()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.domains[0] or 'onnx'}-{record.name}")
def test_a_record_is_whole(record: Operator) -> None:
    assert set(record.becomes) <= set(GRAPH_OPERATORS) and list(record.becomes) == sorted(record.becomes)
    if record.lower is None:
        assert not (record.honours or record.limits or record.becomes or record.needs or record.never)
        assert record != Operator(record.name, record.domains)  # it says something
    else:
        assert record.refused is None
        assert record.limits or record.name == "Identity"
