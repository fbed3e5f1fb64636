"""The classes of a classifier: the label of each frame, from the index of the class or from which of two it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined
from hwflow.operators.ml.ml_operands import INT64, STRING, integers, strings


@dataclass(frozen=True)
class Labels:
    """Labels of classes, integers or strings, in the order of the scores."""

    values: Sequence[int] | Sequence[str]
    kind: str

    @classmethod
    def of(cls, call: Call, of_integers: str, of_strings: str = "classlabels_strings") -> Labels:
        """Return the labels in two attributes of which one is given; none: of neither."""
        numbers, texts = integers(call, of_integers), strings(call, of_strings)
        if numbers and texts:
            raise Undefined(f"one of {of_integers} and {of_strings} must be given, not both", "remove one")
        return cls(texts, STRING) if texts else cls(numbers, INT64)

    def __len__(self) -> int:
        return len(self.values)

    def constant(self, body: DialectWriter, *values: int | str) -> str:
        """Return labels as a constant vector, all of them if none is named."""
        return body.constant([*(values or self.values)], object if self.kind == STRING else self.kind)

    def greatest(self, body: DialectWriter, scores: str) -> str:
        """Return the label of the greatest score of each row, the first of equal ones."""
        place = body.let(f"ArgMax <axis = 1, keepdims = 0> ({scores})")
        if [*self.values] == [*range(len(self))]:
            return place
        return body.let(f"Gather <axis = 0> ({self.constant(body)}, {place})")

    def chosen(self, body: DialectWriter, condition: str, yes: int | str, no: int | str) -> str:
        """Return the label ``yes`` for rows, [frames, 1], that fulfil a condition, and ``no`` for others."""
        flat = body.reshape(condition, [-1])
        if yes == no or self.kind == STRING:
            place = body.let(f"Cast <to = 7> ({flat})")
            return body.let(f"Gather <axis = 0> ({self.constant(body, no, yes)}, {place})")
        return body.let(f"Where ({flat}, {body.number(yes, self.kind)}, {body.number(no, self.kind)})")


def both_sides(body: DialectWriter, score: str) -> str:
    """Return the scores of two classes, [frames, 2], of that of the second, [frames, 1]: it and its negative."""
    negative = body.let(f"Neg ({score})")
    return body.let(f"Concat <axis = 1> ({negative}, {score})")
