"""One node as the clauses of its operator read it: its lists as numpy arrays, its inputs' types and constants.

A list that is empty is as good as absent: onnx's Python interface and exporters write the one for the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, TensorProto

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.ml.tree_shapes import cycle_text
from hwflow.onnxspec.graphs.schemas import Operator
from hwflow.onnxspec.graphs.scopes import Node
from hwflow.onnxspec.graphs.typeforms import TENSORS, Level, LevelKind, TypeForm, dims_text
from hwflow.onnxspec.reading import element_types
from hwflow.onnxspec.reading.stored import element_count

MOST = 5
"""Violations of one clause that a node's findings tell of one by one: a hostile list has millions."""

Ints = NDArray[np.int64]

# The rules that faults belong to.
VALUES, LENGTHS, TREES, CLASSES, INPUTS = "ml-attributes", "ml-lengths", "ml-trees", "ml-classes", "ml-inputs"

_LISTS = {AttributeProto.INTS: "ints", AttributeProto.FLOATS: "floats", AttributeProto.STRINGS: "strings"}
_DTYPES: Mapping[int, np.dtype[Any]] = {
    TensorProto.FLOAT: np.dtype("<f4"), TensorProto.DOUBLE: np.dtype("<f8"), TensorProto.FLOAT16: np.dtype("<f2"),
    TensorProto.UINT8: np.dtype("u1"), TensorProto.INT16: np.dtype("<i2"), TensorProto.INT32: np.dtype("<i4"),
    TensorProto.INT64: np.dtype("<i8"),
}  # fmt: skip


class Fault(NamedTuple):
    """A violation of a clause by a node. ``rule``: the id of the rule that reports it."""

    rule: str
    message: str
    remedy: str | None = None
    severity: Severity | None = None


class Unreadable(Exception):
    """An attribute refers to one of the enclosing function, or is damaged, which other rules report: what depends on
    it is not decided."""


@dataclass(frozen=True)
class StoredList:
    """A tensor attribute. ``count``: of its elements; ``code``: their type."""

    tensor: TensorProto
    code: int
    dims: tuple[int, ...]
    count: int

    @property
    def type(self) -> str:
        """The name of the elements' type."""
        return element_types.describe(self.code)

    def elements(self) -> NDArray[Any]:
        """Return the elements, flat. Raises :class:`Unreadable` for strings, and if the data does not fit the dims."""
        tensor, dtype = self.tensor, _DTYPES.get(self.code)
        if dtype is None or tensor.data_location == TensorProto.EXTERNAL:
            raise Unreadable
        if len(tensor.raw_data) == self.count * dtype.itemsize:
            return np.frombuffer(tensor.raw_data, dtype)
        held = getattr(tensor, element_types.BY_CODE[self.code].field)
        if len(held) != self.count:
            raise Unreadable
        if self.code == TensorProto.FLOAT16:  # bit patterns
            return np.array(held).astype(np.uint16).view(np.float16)
        return np.array(held)


class NodeReading:
    """A node of ``operator``. ``form`` gives the type of a value, () if it is not known; ``constant`` the tensor that a
    value is, None if it is not constant. ``since``: the version that introduced the operator's signature; ``declared``:
    its attributes."""

    def __init__(
        self,
        node: Node,
        operator: Operator,
        form: Callable[[str], TypeForm],
        constant: Callable[[str], TensorProto | None],
    ) -> None:
        self.node = node
        self.since = operator.since
        self.declared = operator.attributes
        self._form = form
        self._constant = constant
        self._attributes: Mapping[str, AttributeProto] = {a.name: a for a in reversed(node.attributes)}
        self._lengths: dict[str, int] = {}
        self.kept: dict[str, object] = {}  # what checks of the node share

    def _of(self, name: str, *kinds: int) -> AttributeProto | None:
        """Return an attribute; None if it is absent."""
        attribute = self._attributes.get(name)
        if attribute is not None and (attribute.ref_attr_name or attribute.type not in kinds):
            raise Unreadable
        return attribute

    def given(self, name: str) -> bool:
        """Tell whether an attribute is there at all."""
        return name in self._attributes

    def length(self, name: str) -> int:
        """Return the number of entries of a list or tensor, 0 if it is absent."""
        length = self._lengths.get(name)
        if length is None:
            length = self._lengths[name] = self._length(name)
        return length

    def _length(self, name: str) -> int:
        attribute = self._of(name, *_LISTS, AttributeProto.TENSOR)
        if attribute is None:
            return 0
        if attribute.type == AttributeProto.TENSOR:
            stored = self.tensor(name)
            return 0 if stored is None else stored.count
        return len(getattr(attribute, _LISTS[attribute.type]))

    def ints(self, name: str) -> Ints:
        """Return a list of integers, empty if it is absent."""
        attribute = self._of(name, AttributeProto.INTS)
        return np.array([] if attribute is None else attribute.ints, np.int64)

    def floats(self, name: str) -> NDArray[np.float32]:
        """Return a list of floats, empty if it is absent."""
        attribute = self._of(name, AttributeProto.FLOATS)
        return np.array([] if attribute is None else attribute.floats, np.float32)

    def strings(self, name: str) -> Sequence[bytes]:
        """Return a list of strings, empty if it is absent."""
        attribute = self._of(name, AttributeProto.STRINGS)
        return () if attribute is None else attribute.strings[:]

    def tensor(self, name: str) -> StoredList | None:
        """Return a tensor, None if it is absent."""
        attribute = self._of(name, AttributeProto.TENSOR)
        if attribute is None:
            return None
        tensor = attribute.t
        dims = tuple(tensor.dims)
        count = element_count(dims)
        if count is None or count >= 2**63:
            raise Unreadable
        return StoredList(tensor, tensor.data_type, dims, count)

    def text(self, name: str, default: str) -> str:
        """Return a string."""
        attribute = self._of(name, AttributeProto.STRING)
        return default if attribute is None else attribute.s.decode("utf-8", "replace")

    def integer(self, name: str, default: int | None = None) -> int | None:
        """Return an integer."""
        attribute = self._of(name, AttributeProto.INT)
        return default if attribute is None else int(attribute.i)

    def input(self, index: int) -> str:
        """Return the name of an input for a message."""
        return f"input {show(self.node.inputs[index])}"

    def level(self, index: int) -> Level:
        """Return the type of an input that is a tensor or map. Raises :class:`Unreadable` if it is not known."""
        form = self._form(self.node.inputs[index]) if index < len(self.node.inputs) else ()
        if not form or form[0].kind not in (*TENSORS, LevelKind.MAP):
            raise Unreadable
        return form[0]

    def shape(self, index: int) -> Sequence[int | str | None]:
        """Return the shape of an input. Raises :class:`Unreadable` if its rank is not known."""
        dims = self.level(index).dims
        if dims is None:
            raise Unreadable
        return dims

    def features(self, index: int = 0) -> int:
        """Return the size of the last axis of an input of one or two axes. Raises :class:`Unreadable` if it is not
        known, or there are more axes."""
        dims = self.shape(index)
        size = dims[-1] if 1 <= len(dims) <= 2 else None
        if not isinstance(size, int) or size < 0:
            raise Unreadable
        return size

    def constant(self, index: int) -> StoredList:
        """Return the constant that an input is. Raises :class:`Unreadable` if it is none."""
        tensor = self._constant(self.node.inputs[index]) if index < len(self.node.inputs) else None
        count = None if tensor is None else element_count(tensor.dims)
        if tensor is None or count is None:
            raise Unreadable
        return StoredList(tensor, tensor.data_type, tuple(tensor.dims), count)


Check = Callable[[NodeReading], Iterable[Fault]]
"""Yields what is wrong with a node. It may raise :class:`Unreadable`."""


@dataclass(frozen=True)
class OperatorClauses:
    """What an operator demands of its nodes beyond its schema. ``attributes``: checks of the attributes alone;
    ``inputs``: checks of the inputs' types and sizes, which inference gives."""

    attributes: tuple[Check, ...] = ()
    inputs: tuple[Check, ...] = ()


def run(checks: Iterable[Check], r: NodeReading) -> Iterator[Fault]:
    """Yield the faults that the checks find; what one of them cannot read leaves the others as they are."""
    for check in checks:
        try:
            yield from check(r)
        except Unreadable:
            continue


def stop() -> NoReturn:
    """Leave a clause undecided."""
    raise Unreadable


def first_faults(
    rule: str,
    wrong: NDArray[np.bool_],
    text: Callable[[int], str],
    remedy: str | None = None,
    severity: Severity | None = None,
) -> Iterator[Fault]:
    """Yield the first places where ``wrong`` holds, at most :data:`MOST`; the last says how many more there are."""
    if not wrong.any():
        return
    places = np.flatnonzero(wrong)
    more = len(places) - MOST
    for number, place in enumerate(places[:MOST].tolist()):
        others = f" ({more} more are wrong)" if more > 0 and number == MOST - 1 else ""
        yield Fault(rule, f"{text(place)}{others}", remedy, severity)


def cycle_fault(cycle: Sequence[int], tree: str, name: Callable[[int], object]) -> Fault:
    """Return the fault of a cycle of nodes in a tree, each with its ``name``; of further ones if it is empty."""
    if not cycle:
        what = "there are more"
    elif len(cycle) == 1:
        what = f"node {name(cycle[0])} of {tree} is its own child"
    else:
        what = f"nodes {cycle_text(cycle, name)} of {tree} are one"
    return Fault(TREES, f"a tree must have no cycle, but {what}", "correct the children of these nodes")


def matrix_or_row(r: NodeReading, index: int = 0) -> Iterator[Fault]:
    """Yield a fault unless an input has one or two axes. Raises :class:`Unreadable` if its rank is not known."""
    shape = r.shape(index)
    if not 1 <= len(shape) <= 2:
        message = f"{r.input(index)} must have the axes [N, C] or [C], not shape {dims_text(shape)}"
        yield Fault(INPUTS, message, "reshape the input")


def one_of(r: NodeReading, names: Sequence[str], what: str = "") -> Iterator[Fault]:
    """Yield a fault unless exactly one of the attributes has entries."""
    there = [name for name in names if r.length(name)]
    if len(there) != 1:
        every = ", ".join(map(show, names))
        found = "none" if not there else "both" if len(there) == len(names) == 2 else ", ".join(map(show, there))
        yield Fault(
            VALUES,
            f"exactly one of {every} must have entries, not {found}",
            "remove all but one of them" if there else f"give {what or 'them'} in one of them",
        )


def the_one(r: NodeReading, names: Sequence[str]) -> str:
    """Return the one of the attributes that has entries. Raises :class:`Unreadable` if none or several have."""
    there = [name for name in names if r.length(name)]
    return there[0] if len(there) == 1 else stop()


def present(r: NodeReading, names: Sequence[str]) -> Iterator[Fault]:
    """Yield a fault for every list without entries."""
    for name in names:
        if not r.length(name):
            state = "empty" if r.given(name) else "missing"
            yield Fault(VALUES, f"attribute {show(name)} must have entries, but it is {state}", f"give {show(name)}")


def equally_long(r: NodeReading, names: Iterable[str], what: str) -> Iterator[Fault]:
    """Yield a fault if the lists that have entries are not equally long."""
    lengths = {name: size for name in names if (size := r.length(name))}
    if len(set(lengths.values())) > 1:
        usual = Counter(lengths.values()).most_common(1)[0][0]
        example = next(name for name, size in lengths.items() if size == usual)
        odd = ", ".join(f"{show(name)} {size}" for name, size in lengths.items() if size != usual)
        yield Fault(LENGTHS, f"{what} must be equally long, but {show(example)} has {usual} entries and {odd}")


def counted(count: int, what: str) -> str:
    """Return "1 class", "2 classes"."""
    ending = "" if count == 1 else "es" if what.endswith("s") else "s"
    return f"{count} {what}{ending}"


def below(count: int) -> str:
    """Return "0 to 3" for 4, and "0" for 1."""
    return f"0 to {count - 1}" if count > 1 else "0"


def of_length(name: str, length: int, legal: Iterable[int], why: str) -> Iterator[Fault]:
    """Yield a fault if a list is of none of the legal lengths."""
    allowed = sorted(set(legal))
    if length not in allowed:
        counts = " or ".join(filter(None, (", ".join(map(str, allowed[:-1])), str(allowed[-1]))))
        entries = "entry" if counts == "1" else "entries"
        yield Fault(LENGTHS, f"{show(name)} must have {counts} {entries} ({why}), not {length}")


def legal_text(name: str, default: str, legal: Sequence[str]) -> Check:
    """Return a check that a string attribute is one of ``legal``."""

    def check(r: NodeReading) -> Iterator[Fault]:
        text = r.text(name, default)
        if text not in legal:
            yield Fault(VALUES, f"{show(name)} must be one of {', '.join(legal)}, not {show(text)}")

    return check


POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
post_transform = legal_text("post_transform", "NONE", POST_TRANSFORMS)


def distinct(name: str, values: Sequence[bytes] | Ints, rule: str, why: str) -> Iterator[Fault]:
    """Yield a warning if an entry of a list is there twice."""
    entries: Sequence[bytes | int] = values.tolist() if isinstance(values, np.ndarray) else values
    if len(set(entries)) < len(entries):
        again = next(entry for entry, count in Counter(entries).items() if count > 1)
        shown = show(again.decode("utf-8", "replace")) if isinstance(again, bytes) else str(again)
        message = f"the entries of {show(name)} must be distinct, but {shown} is there twice: {why}"
        yield Fault(rule, message, "remove all but one of them", Severity.WARNING)

