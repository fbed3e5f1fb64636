"""The registry of what is known of operators: filled by the records when it is first asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hwflow.onnxspec.graphs import operator_facts
from hwflow.onnxspec.graphs.operator_facts import OperatorFacts, facts_of


def test_of_an_operator_without_a_record_nothing_is_known() -> None:
    unknown = facts_of("", "Conv3000")
    assert unknown == OperatorFacts("") and not unknown.tame and not unknown.elementwise
    assert facts_of("", "Conv").tame and not facts_of("com.microsoft", "Conv").tame


def test_the_registry_is_never_silently_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_facts, "_REGISTRY", {})
    with pytest.raises(RuntimeError, match="while their records are imported"):
        facts_of("", "Conv")
    operator_facts.fill([OperatorFacts("Conv", ("a", "b"), tame=True)])
    assert facts_of("a", "Conv").tame and facts_of("b", "Conv").tame and not facts_of("", "Conv").tame


def test_the_first_question_imports_the_records() -> None:
    """In a process of its own."""
    source = f"from {facts_of.__module__} import facts_of\nprint(facts_of('', 'Conv').tame)"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
