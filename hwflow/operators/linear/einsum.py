"""Einsum: sums of products of operands whose axes an equation names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np
import onnx

from hwflow.display import show
from hwflow.frontend.context import Lowering, reals, refuse, require_finite
from hwflow.frontend.frames.axes import BatchingRule
from hwflow.frontend.frames.frame_model import Build, set_attribute
from hwflow.frontend.stream_types import COMPUTED_TYPES, REAL_TYPES
from hwflow.frontend.views import Constant, Integers, QuantizedConstant, Reals, View, changed, relocated
from hwflow.ir.node_attributes import ReindexAttributes, ReshapeAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.float_errors.step_errors import Errors, Step, gamma, is_integer, magnitude
from hwflow.operators.linear.contractions import Contraction, Known, Names, Stream
from hwflow.operators.linear.linear_work import Shapes
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases

_DOTS = "..."


@dataclass(frozen=True)
class Equation:
    """``terms``: a name for each axis of each operand; ``result``: of the result. A letter is its own name; axes that
    an ellipsis stands for are "...1", "...2", counted from the last one."""

    terms: tuple[Names, ...]
    result: Names

    @staticmethod
    def of(text: str, ranks: Sequence[int]) -> Equation | None:
        """Parse the equation for operands of these ranks; None if it does not fit them."""
        left, arrow, right = text.replace(" ", "").partition("->")
        parts = left.split(",")
        if len(parts) != len(ranks):
            return None
        terms = [_named(part, rank) for part, rank in zip(parts, ranks, strict=True)]
        if any(term is None for term in terms):
            return None
        known = tuple(term for term in terms if term is not None)
        count = Counter(name for term in known for name in term)
        dots = sorted((name for name in count if name.startswith(_DOTS)), key=lambda name: -int(name[3:]))
        if not arrow:
            letters = sorted(name for name, times in count.items() if times == 1 and not name.startswith(_DOTS))
            return Equation(known, (*dots, *letters))
        letters_there = len(right.replace(_DOTS, "", 1))
        result = _named(right, letters_there + (len(dots) if _DOTS in right else 0))
        if result is None or len(set(result)) < len(result) or not set(result) <= set(count):
            return None
        return Equation(known, result)

    def sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """Return the size of each axis; length 1 broadcasts."""
        sizes: dict[str, int] = {}
        for term, shape in zip(self.terms, shapes, strict=True):
            for name, size in zip(term, shape, strict=True):
                sizes[name] = max(size, sizes.get(name, 1))
        return sizes


def _named(term: str, rank: int) -> Names | None:
    """Return a name for each of ``rank`` axes; None if the term does not fit the rank."""
    front, dots, back = term.partition(_DOTS)
    others = rank - len(front) - len(back)
    if others < 0 or (others and not dots) or not all(letter in ascii_letters for letter in front + back):
        return None
    return (*front, *(f"{_DOTS}{others - i}" for i in range(others)), *back)


def _equation(node: OnnxNode, ranks: Sequence[int]) -> Equation | None:
    return Equation.of(str(node.attributes.get("equation", "")), ranks)


def einsum(state: Lowering, node: OnnxNode) -> View:
    """Lower Einsum of streams and constants: see :mod:`hwflow.operators.linear.contractions`."""
    shapes = [state.model.values[name].shape for name in node.inputs]
    equation = _equation(node, [len(shape) for shape in shapes])
    if equation is None:
        raise refuse(
            node, "einsum-equation",
            "the equation must have a term of letters, and at most one ellipsis, for all axes of each operand, and a "
            f"result of letters of these, each once, not be {show(str(node.attributes.get('equation', '')))}",
            "correct the attribute",
        )
    if all(isinstance(state.view(name), Constant | QuantizedConstant) for name in node.inputs):
        raise refuse(
            node, "stream-operand", "one of the operands must be computed at run time, not all be constants",
            "compute the result when the model is exported",
        )
    sizes = _sizes(node, equation, shapes)
    wrap = None
    if state.model.values[node.outputs[0]].dtype not in REAL_TYPES:
        wrap = COMPUTED_TYPES[state.model.values[node.outputs[0]].dtype]
    frames = _frames(state, node, equation)
    streams, constants = [], []
    for index, (term, shape) in enumerate(zip(equation.terms, shapes, strict=True)):
        view = state.view(node.inputs[index])
        if isinstance(view, Constant | QuantizedConstant):
            if isinstance(view, Constant):
                require_finite(node, index, "the constant", view.array)
            names, order = _each_once(term, shape, sizes, frames)
            constants.append(Known(_picked(view, order), names, node.inputs[index]))
        else:
            names, order = _each_once(term[1:], shape[1:], sizes, frames)
            streams.append(_stream(state, node, index, wrap is not None, names, order))
    work = Contraction(state, node, sizes, wrap)
    result = tuple(name for name in equation.result if name != frames)
    moved = len(streams) == 1 and not constants and set(streams[0].names) == set(result)
    total = work.result(streams, constants, result)
    return work.finished(total, state.frame_shape(node.outputs[0]), moved=moved)


def _sizes(node: OnnxNode, equation: Equation, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """Return the size of each axis; refuse operands that disagree."""
    sizes = equation.sizes(shapes)
    for index, (term, shape) in enumerate(zip(equation.terms, shapes, strict=True)):
        for name, size in zip(term, shape, strict=True):
            if size != sizes[name] and (size != 1 or term.count(name) > 1):
                raise refuse(
                    node, "einsum-sizes",
                    f"axis {show(name)} of input {show(node.inputs[index])} must have {sizes[name]} elements, not "
                    f"{size}",
                    "correct the shapes, or the equation",
                )
    return sizes


def _frames(state: Lowering, node: OnnxNode, equation: Equation) -> str:
    """Return the name of the frame axis; refuse streams that have another first axis."""
    frames = equation.result[0]
    for index, term in enumerate(equation.terms):
        stream = not isinstance(state.view(node.inputs[index]), Constant | QuantizedConstant)
        if stream and (term[:1] != (frames,) or term.count(frames) > 1):
            raise refuse(
                node, "frame-axis",
                f"the first axis of input {show(node.inputs[index])}, that of frames, must be the result's first one, "
                f"and stand nowhere else, not be {show(term[0] if term else '')} where the result has {show(frames)}",
                "name it so in all operands that are computed at run time",
            )
    return frames


def _each_once(term: Names, shape: tuple[int, ...], sizes: dict[str, int], frames: str) -> tuple[Names, Any]:
    """Return the axes along which an operand's elements differ, each once, and the flat indices of these elements,
    which are on a diagonal where an axis is repeated."""
    order: Any = np.arange(prod(shape)).reshape(shape)
    names = [name if size == sizes[name] and name != frames else "" for name, size in zip(term, shape, strict=True)]
    once = tuple(dict.fromkeys(name for name in names if name))
    for axis in reversed(range(len(names))):
        if not names[axis]:
            order = order.take(0, axis=axis)
    left = [name for name in names if name]
    for name in once:
        while left.count(name) > 1:
            first = left.index(name)
            second = left.index(name, first + 1)
            order = np.moveaxis(np.diagonal(order, axis1=first, axis2=second), -1, first)
            del left[second]
    return once, order


def _picked(view: View, order: Any) -> Constant | QuantizedConstant:
    picked = changed(view, lambda array: np.reshape(array, -1)[order.reshape(-1)].reshape(order.shape))
    assert isinstance(picked, Constant | QuantizedConstant), "a constant stays one"
    return picked


def _stream(
    state: Lowering, node: OnnxNode, index: int, whole: bool, names: Names, order: Any
) -> Stream:
    """Return operand ``index`` with the elements of a frame in ``order``. ``whole``: an integer tensor."""
    if whole:
        operand = integers.operand(state, node, index)
        assert isinstance(operand, Integers), "no constant"
        view: Integers | Reals = operand
    else:
        view = reals(state, node, index)
    shape = order.shape or (1,)
    if shape == view.shape:
        return Stream(view, names)
    if order.size == prod(view.shape):  # axes of length 1 are left out
        value = state.add(node, [view.value], ReshapeAttributes(shape), origin="")
    else:
        value = state.add(node, [view.value], ReindexAttributes(order.reshape(shape), 0), origin="")
    flat = order.reshape(-1)
    return Stream(relocated(view, value, shape, lambda array: array.reshape(-1)[flat].reshape(shape)), names)


def _work(node: OnnxNode, shape: Shapes) -> int:
    """Count one multiply-accumulate per index of all axes; none for a single operand."""
    shapes = [shape(index) for index in range(len(node.inputs))]
    equation = _equation(node, [len(own) for own in shapes])
    if len(shapes) < 2 or equation is None:
        return 0
    return prod(equation.sizes(shapes).values())


def _error(step: Step) -> Errors:
    """Bound a sum of n products of m factors: the effect of the factors' errors, and gamma(n + m) of the magnitudes."""
    places = range(len(step.inputs))
    if is_integer(step.output):
        step.exact(*places)
        return np.zeros(step.output.shape)
    shapes = [step.value(index).shape for index in places]
    equation = Equation.of(step.attributes["equation"].decode(), [len(shape) for shape in shapes])
    assert equation is not None, "the evaluator computed it"
    sizes = equation.sizes(shapes)
    terms = prod(size for name, size in sizes.items() if name not in equation.result)
    sizes_of = [magnitude(step.value(index)) for index in places]
    if len(shapes) == 1:
        moved = step.again([step.error(0)])
        return moved if terms == 1 else moved + gamma(terms, step.unit) * step.again(sizes_of)
    total = step.again(sizes_of)
    far = step.again([size + step.error(index) for index, size in enumerate(sizes_of)])
    return far - total + gamma(terms + len(shapes), step.unit) * far + terms * step.tiny


def _independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Allow frames if the first axis of the result is the first of all streams and occurs nowhere else in them."""
    equation = _equation(node, [len(build.shape(name)) for name in node.inputs])
    if equation is None or not equation.result:
        return False
    frames = equation.result[0]
    for place, (term, name) in enumerate(zip(equation.terms, node.inputs, strict=True)):
        if not build.is_fixed(name):
            if term[:1] != (frames,) or term.count(frames) > 1:
                return False
        elif frames in term:
            one = term.index(frames) == 0 and term.count(frames) == 1
            first = build.first(name) if one else None
            if first is None:
                return False
            copy.input[place] = first
    return True


def _batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Add a letter in front of the result and of all streams."""
    equation = _equation(node, [len(build.shape(name)) for name in node.inputs])
    text = str(node.attributes.get("equation", "")).replace(" ", "")
    letter = next((letter for letter in ascii_letters if letter not in text), None)
    if equation is None or letter is None:
        return False
    terms = text.partition("->")[0].split(",")
    framed = [term if build.is_fixed(name) else letter + term for term, name in zip(terms, node.inputs, strict=True)]
    dots = any(name.startswith(_DOTS) for name in equation.result)
    first = next((place for place, name in enumerate(equation.result) if name.startswith(_DOTS)), 0)
    letters = [name for name in equation.result if not name.startswith(_DOTS)]
    result = "".join([*letters[:first], _DOTS * dots, *letters[first:]])
    set_attribute(copy, "equation", f"{','.join(framed)}->{letter}{result}")
    return True


RECORDS = (
    Operator(
        "Einsum", lower=einsum, honours=attributes("equation"),
        limits=f"a stream and constants ({phrases.WEIGHTS}), or streams, two at a time; axes of frames in front, not "
        "summed over",
        becomes=("dense", "matrix_product", "product", "reindex", "sum_pool2d", "transpose"), heavy=True, work=_work,
        frames=BatchingRule(_independent, _batched), error=_error, integer_operands=True, accumulates=True
    ),
)
