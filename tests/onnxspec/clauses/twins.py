"""What every clause is tested with: a model that breaks it, beside a legal one that differs in that one thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import onnx

from hwflow.errors import Finding, ModelRefused
from hwflow.onnxspec import read_model, validate

# A model, or what makes one and writes the files beside it into the folder it is given.
Source: TypeAlias = onnx.ModelProto | Callable[[Path], onnx.ModelProto]


@dataclass(frozen=True)
class Twin:
    """``findings``: the full texts of everything that the rule ``clause`` says about ``bad``, in order.

    The text is ``str(finding)``: "SEVERITY: WHERE: MESSAGE [CLAUSE]\\n  remedy: REMEDY".
    """

    clause: str
    bad: Source
    good: Source
    findings: Sequence[str]
    name: str = ""  # what is broken, where a clause has several twins

    def __str__(self) -> str:
        return f"{self.clause}-{self.name}" if self.name else self.clause


def findings_of(source: Source, folder: Path) -> list[Finding]:
    """Everything that validation says about the model, remarks of form too, read from a file of its own."""
    folder.mkdir()
    model = source(folder) if callable(source) else source
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    try:
        proto = read_model(path)
    except ModelRefused as refused:
        return list(refused.findings)
    before = proto.SerializeToString()
    found = validate(proto, path, pedantic=True)
    assert proto.SerializeToString() == before, "validation must not change the model"
    return found


def check(twin: Twin, folder: Path) -> None:
    """The rule says of the one what is expected, nothing of the other, which has no error at all."""
    bad = findings_of(twin.bad, folder / "bad")
    assert [str(f) for f in bad if f.rule == twin.clause] == list(twin.findings)
    good = findings_of(twin.good, folder / "good")
    assert [str(f) for f in good if f.rule == twin.clause or f.severity == "error"] == []
