"""Support vector machines: kernels of the input and the support vectors, and what is made of them.

The specification has no formulas; they are those of onnx's reference and onnxruntime. Where these differ, onnxruntime
is followed, whose labels are those of the classes: onnx's reference gives the second of two classes whatever the votes
if no coefficient is negative, and 1 or 0 in place of a label in linear models with one rho; it cuts the degree of POLY
to an integer. Of two classes the scores are the decision's negative and itself, each transformed, as in onnx's
reference, where onnxruntime knows no transform but LOGISTIC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from hwflow.frontend.frames import axes
from hwflow.onnxspec.clauses.ml import weight_lists
from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined, Use
from hwflow.onnxspec.reference import framewise
from hwflow.onnxspec.reference.svm_defects import SVM_CLASSIFIER
from hwflow.onnxspec.resolving.resolved_model import Attribute
from hwflow.onnxspec.shapes.dialects import ML_DOMAIN, Inputs, Result, ShapeError
from hwflow.operators.float_errors import coupling_errors
from hwflow.operators.float_errors.step_errors import Errors, NoBound, Step
from hwflow.operators.ml.labels import Labels, both_sides
from hwflow.operators.ml.ml_operands import (
    FLOAT,
    as_float,
    as_reals,
    cast,
    columns,
    integers,
    real_kind,
    reals,
    require_length,
)
from hwflow.operators.ml.post_transforms import NONE, transformed
from hwflow.operators.record import ML, Operator

_LINEAR, _POLY, _RBF, _SIGMOID = _KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class _Machine:
    """The node's kernel of its input, [frames, features], in real numbers of type ``kind``."""

    call: Call
    body: DialectWriter
    kind: str
    x: str
    size: int

    @classmethod
    def of(cls, call: Call) -> _Machine:
        body = DialectWriter(call)
        return cls(call, body, real_kind(call), as_reals(body, call), columns(call))

    def number(self, value: npt.ArrayLike) -> str:
        """Add a constant."""
        return self.body.number(value, self.kind)

    def sums(self, matrix: npt.ArrayLike, addends: npt.ArrayLike, kernels: str | None = None) -> str:
        """Return the product of the input, or of ``kernels``, with ``matrix``, transposed, and the addends."""
        return self.body.let(
            f"Gemm <transB = 1> ({kernels or self.x}, {self.number(matrix)}, {self.number(addends)})"
        )

    def of_kernels(self, matrix: Floats, addends: Floats, vectors: Floats) -> str:
        """Return the product of the kernels of the input and each of the vectors with ``matrix``, transposed, and the
        addends. Linear kernels have one product of both."""
        name = self.call.attribute("kernel_type", _LINEAR)
        if name not in _KERNELS:
            raise Undefined(f"kernel_type must be one of {', '.join(_KERNELS)}, not {name!r}", "correct the attribute")
        parameters = reals(self.call, "kernel_params")
        require_length("kernel_params", parameters, *((0, 3) if name == _LINEAR else (3,)))
        if name == _LINEAR:
            return self.sums(matrix.astype(np.float64) @ vectors, addends)
        return self.sums(matrix, addends, self._kernels(name, parameters.tolist(), vectors))

    def _kernels(self, name: str, parameters: Sequence[float], vectors: Floats) -> str:
        """Return the kernel of the input and each of the vectors, [frames, vectors]."""
        body, (gamma, offset, degree) = self.body, parameters
        if name == _RBF:  # gamma times the square of the distance, as a product: |x| ** 2 - 2 x v + |v| ** 2
            squares = (vectors.astype(np.float64) ** 2).sum(axis=1)
            far = self.sums(np.float64(2 * gamma) * vectors, -gamma * squares)
            own = body.let(f"ReduceSum <keepdims = 1> ({body.let(f'Mul ({self.x}, {self.x})')}, {body.integers([1])})")
            near = body.let(f"Mul ({own}, {self.number(gamma)})")
            return body.let(f"Exp ({body.let(f'Sub ({far}, {near})')})")
        inner = self.sums(np.float64(gamma) * vectors, np.full(len(vectors), offset))
        if name == _SIGMOID:
            return body.let(f"Tanh ({inner})")
        return body.let(f"Pow ({inner}, {self.number(degree)})")


def _vectors(call: Call, count: int, size: int) -> Floats:
    flat = reals(call, "support_vectors")
    require_length("support_vectors", flat, count * size)
    return flat.reshape(count, size)


def _svm_regressor(use: Use) -> onnx.FunctionProto:
    """Return the weighted sum of kernels, or in a machine of one class whether it is above 0: 1 or -1."""
    call = Call.of(use)
    machine = _Machine.of(call)
    body, count, weights, rho = machine.body, call.integer("n_supports"), reals(call, "coefficients"), _rho(call)
    if count < 0:
        raise Undefined(f"n_supports must not be negative, not {count}", "correct the attribute")
    require_length("coefficients", weights, count or machine.size)
    if count:
        score = machine.of_kernels(weights.reshape(1, -1), rho[:1], _vectors(call, count, machine.size))
    else:
        score = machine.sums(weights.reshape(1, -1), rho[:1])
    if call.integer("one_class"):
        above = body.let(f"Greater ({score}, {machine.number(0.0)})")
        score = body.let(f"Where ({above}, {machine.number(1.0)}, {machine.number(-1.0)})")
    score = transformed(body, score, call.attribute("post_transform", NONE), machine.kind)
    return body.returned(as_float(body, call, score))


def _rho(call: Call) -> Floats:
    rho = reals(call, "rho")
    if not len(rho):
        raise Undefined("rho must have at least 1 element, not 0", "correct the attribute")
    return rho


def _svm_classifier(use: Use) -> onnx.FunctionProto | None:
    """Return the label that wins most of the decisions between two classes, the first of equal ones, and the decisions.

    Probabilities of the classes (prob_a, prob_b) come of the decisions by an iteration, which is the host's: another
    node of this operator, whose decisions are its inputs and which has no definition. Without support vectors the
    operator is a linear model with a score for each class.
    """
    call = Call.of(use)
    counts = integers(call, "vectors_per_class")
    if sum(counts) and _couples(call, max(2, len(counts))):
        return None
    machine = _Machine.of(call)
    labels = Labels.of(call, "classlabels_ints")
    if sum(counts):
        return _of_decisions(machine, labels, counts)
    return _of_scores(machine, labels)


_MOST_CLASSES = 128
"""Of more, each of which meets each other, the node is the host's."""


def _of_decisions(machine: _Machine, labels: Labels, counts: Sequence[int]) -> onnx.FunctionProto | None:
    body, call, classes = machine.body, machine.call, max(1, len(labels))
    if min(counts) < 0 or len(counts) != classes or classes < 2:
        raise Undefined(
            f"vectors_per_class must have a number for each of {classes} classes, of which there must be at least 2, "
            f"not {[*counts]}", "correct the attributes",
        )
    total, weights, rho = sum(counts), reals(call, "coefficients"), reals(call, "rho")
    require_length("coefficients", weights, (classes - 1) * total)
    require_length("rho", rho, classes * (classes - 1) // 2)
    if classes > _MOST_CLASSES:
        return None
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    matrix = _pairwise(weights.reshape(classes - 1, total), counts, pairs)
    decisions = machine.of_kernels(matrix, rho, _vectors(call, total, machine.size))
    won = body.let(f"Greater ({decisions}, {machine.number(0.0)})")
    transform = call.attribute("post_transform", NONE)
    if classes == 2:
        label = labels.chosen(body, won, labels.values[0], labels.values[1])
    else:
        label = labels.greatest(body, _votes(machine, won, classes, pairs))
    if len(reals(call, "prob_a")):
        scores = _coupled(machine, decisions, classes, pairs)
    else:
        scores = both_sides(body, decisions) if classes == 2 else decisions
    return body.returned(label, as_float(body, call, transformed(body, scores, transform, machine.kind)))


def _pairwise(weights: Floats, counts: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Floats:
    """Return the weight of each support vector in each decision, [pairs, vectors]: those of class i against class j
    are in row j - 1, those of class j against class i in row i."""
    ends = np.cumsum(counts)
    result = np.zeros((len(pairs), weights.shape[1]), np.float32)
    for row, (i, j) in enumerate(pairs):
        for own, other in ((i, j - 1), (j, i)):
            part = slice(ends[own] - counts[own], ends[own])
            result[row, part] = weights[other, part]
    return result


def _coupled(machine: _Machine, decisions: str, classes: int, pairs: Sequence[tuple[int, int]]) -> str:
    """Return the probabilities of the classes, [frames, classes]: those of a machine whose support vectors are the
    pairs' unit vectors, of the first class of each."""
    slopes, offsets = (reals(machine.call, name) for name in ("prob_a", "prob_b"))
    for name, values in (("prob_a", slopes), ("prob_b", offsets)):
        require_length(name, values, len(pairs))
    weights = np.zeros((classes - 1, len(pairs)), np.float32)
    for column, (_, second) in enumerate(pairs):
        weights[second - 1, column] = 1
    body, value = machine.body, cast(machine.body, decisions, machine.kind, FLOAT)
    names = [f"value_{len(body.nodes)}_{part}" for part in ("label", "shares")]
    body.nodes.append(helper.make_node(
        machine.call.node.op_type, [value], names, domain=ML_DOMAIN, name="coupling", kernel_type=_LINEAR,
        kernel_params=[0.0, 0.0, 0.0], classlabels_ints=[*range(classes)], rho=[0.0] * len(pairs),
        vectors_per_class=[classes - 1 - k for k in range(classes)], coefficients=weights.reshape(-1).tolist(),
        support_vectors=np.eye(len(pairs)).reshape(-1).tolist(), prob_a=slopes.tolist(), prob_b=offsets.tolist(),
    ))  # fmt: skip
    return cast(body, names[1], FLOAT, machine.kind)


def _couples(call: Call, classes: int) -> bool:
    """Tell whether a node is one that :func:`_coupled` makes, or alike."""
    vectors, pairs = reals(call, "support_vectors"), classes * (classes - 1) // 2
    given = len(reals(call, "prob_a")) == pairs and call.attribute("kernel_type", _LINEAR) == _LINEAR
    return given and np.array_equal(vectors, np.eye(pairs, dtype=np.float32).reshape(-1))


def _votes(machine: _Machine, won: str, classes: int, pairs: Sequence[tuple[int, int]]) -> str:
    """Return how many decisions each class wins, [frames, classes]; ``won``: by the first of the pair."""
    body = machine.body
    first, second = (np.array([[pair[end] == k for pair in pairs] for k in range(classes)]) for end in (0, 1))
    each = body.reshape(won, [-1, 1, len(pairs)])
    ones = body.let(f"Where ({each}, {machine.number(first)}, {machine.number(second)})")
    return body.let(f"ReduceSum <keepdims = 0> ({ones}, {body.integers([-1])})")


def _of_scores(machine: _Machine, labels: Labels) -> onnx.FunctionProto:
    """Return the label of the greatest score."""
    body, call, classes = machine.body, machine.call, max(1, len(labels))
    weights, rho = reals(call, "coefficients"), _rho(call)
    require_length("coefficients", weights, classes * machine.size)
    scores = machine.sums(weights.reshape(classes, -1), np.repeat(rho[:1], classes))
    label = labels.greatest(body, scores)
    scores = transformed(body, scores, call.attribute("post_transform", NONE), machine.kind)
    return body.returned(label, as_float(body, call, scores))


def _results(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Sequence[Result]:
    """Infer a label for each frame, and a probability for each class."""
    x, texts = inputs[0], attributes.get("classlabels_strings", ())
    if x is None or not x.shape:
        raise ShapeError("the input must be [frames, features], not a scalar")
    labels = texts or attributes.get("classlabels_ints", ())
    assert isinstance(labels, tuple)
    return (x.shape[:1], "string" if texts else "int64"), ((x.shape[0], len(labels)), "float32")


def _error(step: Step) -> Sequence[Errors]:
    """Bound the node of :func:`_coupled`."""
    vectors = np.array(step.attributes.get("support_vectors") or (), np.float32)
    if not np.array_equal(vectors, np.eye(step.value(0).shape[-1], dtype=np.float32).reshape(-1)):
        raise NoBound
    return coupling_errors.coupling(step)


_DEFINED = "kernels before a quantizer; the host makes probabilities of the decisions"

RECORDS = (
    Operator(
        "SVMRegressor", domains=ML, definition=_svm_regressor, defined=_DEFINED, clauses=weight_lists.SVM_REGRESSOR
    ),
    Operator(
        "SVMClassifier", domains=ML, definition=_svm_classifier, defined=_DEFINED, results=_results,
        frames=axes.ROWS, framewise=framewise.always, mended=SVM_CLASSIFIER, clauses=weight_lists.SVM_CLASSIFIER,
        error=_error,
    ),
)
