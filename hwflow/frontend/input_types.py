"""User declarations of the integers of float inputs, for inputs without a quantizer in the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from hwflow.display import show
from hwflow.errors import Finding, Severity, UsageError
from hwflow.frontend.stream_types import DECLARE
from hwflow.frontend.views import as_array
from hwflow.ir.graph import Meaning
from hwflow.onnxspec.resolving.resolved_model import ResolvedModel
from hwflow.onnxspec.shapes.dialects import QONNX_DOMAINS
from hwflow.operators.onnx_operators import STANDARD_QUANTIZERS
from hwflow.types import Interval

__all__ = ["DECLARE", "OPTION", "Declarations", "InputType", "malformed", "needless", "parsed", "require_inputs"]

OPTION = "option --input-type"
"""The place of a finding about a declaration."""

MAX_BITS = 16

_FORM = "NAME=TYPE[,SCALE[,ZERO_POINT]]"
_TYPE = re.compile(r"(u?)int([0-9]{1,2})|bipolar")
_SCALE = re.compile(r"([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?|[0-9]{1,40}/[0-9]{1,40}")
_LEAST_SCALE, _MOST_SCALE = Fraction(1, 10**37), Fraction(10**37)  # float32 has full precision in between
_ZERO_POINT = re.compile(r"-?[0-9]{1,10}")


@dataclass(frozen=True)
class InputType:
    """An input carries scale * (q - zero_point) for an integer q of type ``name``: "int2" to "int16", "uint1" to
    "uint16", or "bipolar" (-1 and 1)."""

    name: str
    scale: Fraction = Fraction(1)
    zero_point: int = 0

    @staticmethod
    def of(text: str) -> InputType:
        """Parse "TYPE[,SCALE[,ZERO_POINT]]". Raises :class:`ValueError` that states what is required."""
        name, *rest = (part.strip() for part in text.split(","))
        type_ = _TYPE.fullmatch(name)
        least = 1 if type_ is not None and type_[1] else 2
        if type_ is None or (name != "bipolar" and not least <= int(type_[2]) <= MAX_BITS):
            known = f"int2 to int{MAX_BITS}, uint1 to uint{MAX_BITS} or bipolar"
            raise ValueError(f"TYPE must be {known}, not {show(name)}")
        if len(rest) > 2:
            raise ValueError(f"must be {_FORM}, not with {len(rest) + 1} values")
        scale, zero_point = (*rest, *("1", "0")[len(rest) :])
        divisor = scale.partition("/")[2]
        if not _SCALE.fullmatch(scale) or (divisor and int(divisor) == 0):
            raise ValueError(f"SCALE must be a number such as 0.0078125 or a fraction such as 1/255, not {show(scale)}")
        if not _LEAST_SCALE <= Fraction(scale) <= _MOST_SCALE:
            raise ValueError(f"SCALE must be from 1e-37 to 1e37, not {scale}")
        if not _ZERO_POINT.fullmatch(zero_point):
            raise ValueError(f"ZERO_POINT must be an integer, not {show(zero_point)}")
        return InputType(name, Fraction(scale), int(zero_point))

    def __str__(self) -> str:
        return f"{self.name},{self.scale},{self.zero_point}"

    @property
    def levels(self) -> Interval:
        """The integers that represent the input: those of the type, and 0 and 1 for bipolar -1 and 1."""
        if self.name == "bipolar":
            return Interval(0, 1)
        bits = int(self.name.rpartition("int")[2])
        return Interval(0, (1 << bits) - 1) if self.name[0] == "u" else Interval(-(1 << bits - 1), (1 << bits - 1) - 1)

    @property
    def meaning(self) -> Meaning:
        """The scale and zero point of these integers."""
        if self.name == "bipolar":
            return Meaning(as_array(2 * self.scale), as_array(Fraction(self.zero_point + 1, 2)))
        return Meaning(as_array(self.scale), as_array(Fraction(self.zero_point)))


Declarations = Mapping[str, "str | InputType"]
"""By input name, as text "TYPE[,SCALE[,ZERO_POINT]]" or parsed."""


def parsed(asked: Declarations | None) -> dict[str, InputType]:
    """Parse those declarations that are text.

    Raises :class:`UsageError` with a finding for each malformed one.
    """
    result, findings = {}, []
    for name, text in (asked or {}).items():
        try:
            result[name] = text if isinstance(text, InputType) else InputType.of(text)
        except ValueError as error:
            findings.append(malformed(f"{error} for {show(name)}"))
    if findings:
        raise UsageError(findings)
    return result


def malformed(message: str) -> Finding:
    """Return the finding about a malformed declaration."""
    return Finding("input-type-option", OPTION, message, "for example --input-type image=uint8,1/255")


def require_inputs(model: ResolvedModel, declared: Mapping[str, InputType]) -> None:
    """Raise :class:`UsageError` if a name is no input of the model."""
    known = ", ".join(show(name) for name in model.inputs) or "it has none"
    messages = [
        f"must name an input of the model ({known}), not {show(name)}" for name in declared if name not in model.inputs
    ]
    if messages:
        raise UsageError([Finding("input-type-option", OPTION, message, "choose one") for message in messages])


def needless(model: ResolvedModel, declared: Mapping[str, InputType]) -> list[Finding]:
    """Return a warning for each declared input that only quantizers of the model read: hardware then quantizes its
    integers again, which the host could have done."""
    findings = []
    for name in declared:
        readers = [node for node in model.nodes if name in node.inputs]
        if readers and all(
            node.op_type in STANDARD_QUANTIZERS or node.domain in QONNX_DOMAINS for node in readers
        ):
            where = readers[0].where
            message = f"must be declared only where the model does not quantize it, not where {where} does"
            remedy = "leave out --input-type: the host then quantizes the input"
            findings.append(Finding("input-type", f"input {show(name)}", message, remedy, Severity.WARNING))
    return findings
