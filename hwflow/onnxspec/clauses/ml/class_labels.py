"""Labels of classes: in one of two lists, of integers or of strings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hwflow.errors import Severity
from hwflow.onnxspec.clauses.ml.node_reading import CLASSES, Check, Fault, NodeReading, distinct, one_of, stop

Names = Sequence[str]
"""The list of integers, and that of strings."""


def class_labels(names: Names, needed: bool) -> Check:
    """Return a check of the labels. Where they are not ``needed``, evaluators take the numbers of the classes."""

    def check(r: NodeReading) -> Iterator[Fault]:
        for fault in one_of(r, names, "the labels"):
            none = not any(r.length(name) for name in names)
            yield fault._replace(severity=Severity.WARNING) if none and not needed else fault
        yield from distinct_keys(r, names, CLASSES, "results do not tell these classes apart")

    return check


def distinct_keys(r: NodeReading, names: Names, rule: str, why: str) -> Iterator[Fault]:
    """Yield a warning if an entry of one of the two lists is there twice."""
    yield from distinct(names[0], r.ints(names[0]), rule, why)
    yield from distinct(names[1], r.strings(names[1]), rule, why)


def label_count(r: NodeReading, names: Names) -> int:
    """Return the number of classes. Raises :class:`Unreadable` unless there is one list of labels."""
    lengths = [length for name in names if (length := r.length(name))]
    return lengths[0] if len(lengths) == 1 else stop()

