"""Open dimensions of a model's inputs: the number of frames is 1, the user binds the others (``--dim NAME=VALUE``)."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from hwflow.display import is_visible, show
from hwflow.errors import Finding
from hwflow.onnxspec.reading.numpy_tensors import DTYPE_NAMES
from hwflow.onnxspec.resolving.resolved_model import ValueInfo

RULE = "dimensions"
# Old exporters' marks for "unknown", not names.
_NO_VARIABLES = frozenset({"?", "*"})


def variable_of(dimension: onnx.TensorShapeProto.Dimension, value: str, axis: int) -> str | None:
    """Return the name of this dimension for ``--dim``; None if the model has its size.

    A dimension with neither size nor name (or with a negative size, as written by some exporters) is called VALUE.AXIS.
    """
    if dimension.dim_param:
        return dimension.dim_param
    if not dimension.HasField("dim_value") or dimension.dim_value < 0:
        return f"{value}.{axis}"
    return None


@dataclass
class Binding:
    """Sizes of the dimension variables, with the place of each one's first use, and findings about them."""

    sizes: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)

    def agree(self, kind: str, info: onnx.ValueInfoProto, shape: tuple[int, ...]) -> None:
        """Compare the declared shape of a value with the inferred one, which binds unbound variables. ``kind``: "value"
        or "output"."""
        if info.type.WhichOneof("value") != "tensor_type" or not info.type.tensor_type.HasField("shape"):
            return
        dims = info.type.tensor_type.shape.dim
        where = f"{kind} {show(info.name)}"
        if len(dims) != len(shape):
            message = f"the declared shape must have the rank of the value, {len(shape)}, not {len(dims)}"
            self.findings.append(Finding("shapes", where, message, _DECLARED))
            return
        for axis, (dimension, size) in enumerate(zip(dims, shape, strict=True)):
            name = dimension.dim_param
            if name:
                self._agree_on(name, where, axis, size)
            elif dimension.HasField("dim_value") and dimension.dim_value >= 0 and dimension.dim_value != size:
                found = dimension.dim_value
                message = f"the declared size of axis {axis} must be that of the value, {size}, not {found}"
                self.findings.append(Finding("shapes", where, message, _DECLARED))

    def _agree_on(self, name: str, where: str, axis: int, size: int) -> None:
        if name in _NO_VARIABLES:
            return
        if name not in self.sizes:
            self.sizes[name] = size
            self.places[name] = f"{where} (axis {axis})"
        elif self.sizes[name] != size:
            place = self.places.get(name, "the inputs")
            message = (
                f"dimension variable {show(name)} must have one size in the whole model, "
                f"but it is {size} here (axis {axis}) and {self.sizes[name]} at {place}"
            )
            rule = RULE if place.startswith("option ") else "SHP-10"
            remedy = "give dimensions that differ different names, or correct the shapes"
            self.findings.append(Finding(rule, where, message, remedy))

    def open_variables(self, info: onnx.ValueInfoProto) -> list[str]:
        """Return the unbound variables in the declared shape of a value."""
        dims = info.type.tensor_type.shape.dim
        return [d.dim_param for d in dims if d.dim_param and d.dim_param not in self.sizes]

    def shape(self, info: onnx.ValueInfoProto) -> tuple[int, ...] | None:
        """Return the declared shape of a value under this binding, None if it is absent or not fully known."""
        kind = info.type.tensor_type
        if info.type.WhichOneof("value") != "tensor_type" or not kind.HasField("shape"):
            return None
        sizes: list[int] = []
        for axis, dimension in enumerate(kind.shape.dim):
            name = variable_of(dimension, info.name, axis)
            size = dimension.dim_value if name is None else self.sizes.get(name)
            if size is None:
                return None
            sizes.append(size)
        return tuple(sizes)

    def value_info(self, info: onnx.ValueInfoProto) -> ValueInfo | None:
        """Return shape and element type, as by :meth:`shape`."""
        shape = self.shape(info)
        dtype = DTYPE_NAMES.get(info.type.tensor_type.elem_type)
        return None if shape is None or dtype is None else ValueInfo(info.name, shape, dtype)


_DECLARED = "correct the shape in the model, or leave it out"


def option(name: str, size: int | str = "VALUE") -> str:
    """Return the command-line option that sets the size of ``name``."""
    text = f"{name}={size}"
    if all(map(is_visible, text)):
        quoted = shlex.quote(text)
    else:  # a line break needs shell quoting
        known = "".join(c if is_visible(c) and c not in "'\\" else _escaped(c) for c in text)
        quoted = "$'" + known + "'"
    return f"--dim={quoted}" if text.startswith("-") else f"--dim {quoted}"


def _escaped(character: str) -> str:
    """Escape a character for $'...' of a POSIX shell."""
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def _check_type(info: onnx.ValueInfoProto) -> Finding | None:
    where = f"input {show(info.name)}"
    kind = info.type.WhichOneof("value")
    if kind is None:
        return Finding("GRA-18", where, "an input must be a tensor, not of no type", "export the model again")
    if kind != "tensor_type":  # legal, but not a hardware input
        found = kind.removesuffix("_type").replace("_", " ")
        return Finding(
            "input-type", where, f"an input must be a tensor, not a {found}", "let the host pass the tensors in it"
        )
    if info.type.tensor_type.elem_type not in DTYPE_NAMES:
        number = info.type.tensor_type.elem_type
        message = f"an input must have a known element type, not number {number}"
        return Finding("PRO-16", where, message, "export the model again")
    if not info.type.tensor_type.HasField("shape"):
        return Finding(
            "GRA-19",
            where,
            "an input must have a shape, but the model gives none",
            "export the model with input shapes",
        )
    return None


def stored_sizes(graph: onnx.GraphProto) -> dict[str, tuple[int, str]]:
    """Return the sizes, with places, that initializers give the dimension variables of their declared shapes."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    sizes: dict[str, tuple[int, str]] = {}
    for kind, infos in (("input", graph.input), ("value", graph.value_info)):
        for info in infos:
            if info.name not in tensors:
                continue
            dims = tensors[info.name].dims
            for axis, (dimension, size) in enumerate(zip(info.type.tensor_type.shape.dim, dims, strict=False)):
                if dimension.dim_param and dimension.dim_param not in _NO_VARIABLES:
                    sizes.setdefault(dimension.dim_param, (size, f"{kind} {show(info.name)} (axis {axis})"))
    return sizes


def bind_dimensions(
    inputs: Sequence[onnx.ValueInfoProto],
    given: Mapping[str, int],
    inner: Collection[str] = (),
    stored: Mapping[str, tuple[int, str]] | None = None,
    *,
    whole: bool = False,
) -> Binding:
    """Bind all dimension variables of ``inputs`` (the graph inputs that are no initializers).

    The leading variable of an input is the number of frames and becomes 1; the others come from ``given``. ``inner``:
    variables of other values, which may also be in ``given``; ``stored``: those to which the model itself gives a size
    (:func:`stored_sizes`). ``whole``: inputs are whole tensors, with any leading sizes.

    Findings: a leading size other than 1, a variable that ``given`` leaves open, a name in ``given`` that the model
    does not have, a size below 1, an input that is no tensor or has no shape, a variable that counts frames and is the
    size of another axis as well (unless ``given`` says that it is 1).
    """
    binding = Binding()
    stored = stored or {}
    for variable, (size, source) in stored.items():
        if given.get(variable, size) != size:
            message = f"dimension variable {show(variable)} must be {size} as at {source}, not {given[variable]}"
            where = f"option {option(variable, given[variable])}"
            binding.findings.append(Finding(RULE, where, message, "leave it out: the model gives the size"))
    given = {**given, **{name: size for name, (size, _) in stored.items()}}
    frames: dict[str, str] = {}  # variable -> input
    others: dict[str, tuple[str, int]] = {}  # variable -> first (input, axis)
    for info in inputs:
        finding = _check_type(info)
        if finding is not None:
            binding.findings.append(finding)
            continue
        for axis, dimension in enumerate(info.type.tensor_type.shape.dim):
            name = variable_of(dimension, info.name, axis)
            if name is not None:
                if axis == 0:
                    frames.setdefault(name, info.name)
                else:
                    others.setdefault(name, (info.name, axis))
            elif axis == 0 and dimension.dim_value != 1 and not (whole and dimension.dim_value > 0):
                binding.findings.append(
                    Finding(
                        RULE,
                        f"input {show(info.name)}",
                        f"the leading dimension (frames) must be 1 or a variable, not {dimension.dim_value}",
                        "export the model with a batch of 1 or a dynamic batch",
                    )
                )
            elif dimension.dim_value == 0:
                message = f"dimension {axis} must be at least 1, not 0"
                binding.findings.append(Finding(RULE, f"input {show(info.name)}", message, "export the model again"))
    for name, value in frames.items():
        # Otherwise it remains open, and with it what follows: 1 would lead to errors that the model does not have.
        if (name not in others and name not in stored) or given.get(name) == 1:
            binding.sizes[name] = 1
            binding.places[name] = f"input {show(value)} (axis 0, the frames)"
        if name in others and name not in given:
            other, axis = others[name]
            binding.findings.append(
                Finding(
                    RULE,
                    f"input {show(other)}",
                    f"axis {axis} must not have dimension variable {show(name)}, which counts the frames of input "
                    f"{show(value)}: they are processed one at a time",
                    f"if the axis has size 1, say so with {option(name, 1)}; "
                    "else give the two dimensions different names",
                )
            )
        if name in stored and given[name] != 1:
            size, source = stored[name]
            message = f"the leading dimension (frames) must be 1 or open, but {show(name)} is {size} at {source}"
            remedy = "export the model with a batch of 1 or a dynamic batch"
            binding.findings.append(Finding(RULE, f"input {show(value)}", message, remedy))
        elif given.get(name, 1) != 1:
            binding.findings.append(
                Finding(
                    RULE,
                    f"input {show(value)}",
                    f"dimension variable {show(name)} counts frames, which are processed one at a time: "
                    f"it must be 1, not {given[name]}",
                    f"leave out {option(name, given[name])}",
                )
            )
    for name, (value, axis) in others.items():
        if name in frames:
            continue
        where, remedy = f"input {show(value)}", f"give its size with {option(name)}"
        if name not in given:
            message = f"dimension variable {show(name)} (axis {axis}) must have a size, but the model leaves it open"
            binding.findings.append(Finding(RULE, where, message, remedy))
        elif given[name] < 1:
            message = f"dimension variable {show(name)} (axis {axis}) must be at least 1, not {given[name]}"
            binding.findings.append(Finding(RULE, where, message, remedy))
        else:
            binding.sizes[name] = given[name]
            place = f"input {show(value)} (axis {axis}, by {option(name, given[name])})"
            binding.places[name] = stored[name][1] if name in stored else place
    there = [name for name in others if name not in frames]
    for name, size in given.items():
        if name in frames or name in others:
            continue
        if name in stored:
            binding.sizes[name], binding.places[name] = stored[name]
        elif name in inner and size >= 0:
            binding.sizes[name] = size
            binding.places[name] = f"option {option(name, size)}"
        else:
            listed = ", ".join(show(n) for n in there)
            binding.findings.append(
                Finding(
                    RULE,
                    f"option {option(name, size)}",
                    f"--dim must name a dimension variable of the model's inputs, not {show(name)}",
                    f"the variables there are: {listed}"
                    if listed
                    else "leave it out: the model's inputs have no dimension variable that needs a size",
                )
            )
    return binding
