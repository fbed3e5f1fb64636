"""Bound the error of the reference evaluator's floats: a running error analysis of a region.

Each value of a region gets a bound on |computed - exact|, where "exact" is the region in real arithmetic on the same
integer inputs (scales, float weights and biases are exact: a float32 is a rational number) and "computed" is what the
evaluator's numpy arithmetic returns. The bound is derived node by node from computed magnitudes; nothing is estimated.

Model of arithmetic (IEEE 754, round to nearest): fl(a op b) = (a op b)(1 + d) + t with |d| <= u and |t| <= tiny, where
u = 2**-24 for float32 and tiny is the least normal number (so that evaluators which flush subnormals are covered);
hence also |fl(a op b) - (a op b)| <= u |fl(a op b)| + tiny. A sum of K products in any order, with or without fused
multiply-add, deviates by at most gamma(K) * sum |x_i w_i|, gamma(K) = K u / (1 - K u) (N. J. Higham, Accuracy and
Stability of Numerical Algorithms, 2nd edition, sections 2.2 and 3.1; each product is rounded once and goes through
at most K - 1 additions). With E the bound of a value, x and w computed, the rules
(:mod:`hwflow.operators.float_errors`) are of these kinds:

* Conv, MatMul, Gemm: sum x w against sum X W (exact):
  gamma(K) S(|x|, |w|) + S(|x|, E(w)) + S(E(x), |w| + E(w)) + K tiny, S the same operator in float64 on magnitudes;
  a bias adds E(b) + u|y|; Gemm's alpha and beta scale and, unless they are 1, round once more.
* Add and Sub: E(a) + E(b) + u|y|; products and quotients, see ``float_rules.linear``.
* Functions: the evaluator's own error, some u|y|, and how far the function moves when its input moves by E
  (``float_rules.functions``).
* Relu and Clip do not round and do not decrease: E(y) is how far y can move when x moves by E(x), 0 where they
  saturate. MaxPool: the greatest E in the window. Reshape and its like move E (``float_rules.moves``).
* Quantizers (``float_rules.quantizers``): what is rounded is a quotient; ``quotients`` has the bound on its error: the
  only place where a float error can change an integer. Rounding, zero point and saturation are exact afterwards;
  the integer's own bound is 0 unless a rounding boundary lies within reach of the quotient.

The bounds are computed in float64 with a relative error below (K + 8) 2**-53; :data:`INFLATION` covers it where
K < 2**30, and the last bits in which a second evaluation (another batch, another order of summation) may differ.
A node without a rule has no bound (None), nor have its dependents; but a node of error-free constants is exact (hwflow
folds those with the same evaluator).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.reference.evaluation import AnyArray, Region
from hwflow.onnxspec.shapes.dialects import DIALECT_DOMAINS
from hwflow.operators.float_errors.step_errors import INFLATION, Errors, NoBound, Step
from hwflow.operators.onnx_operators import record_of


@dataclass
class Bounds:
    """By value name: the computed value (``values``), the bound on its error (``errors``, same shape), and for a
    quantizer's result the bound on the error of the quotient that it rounds, in levels (``quotients``).

    None: no bound is known; ``unbounded`` names the operators that have no rule."""

    values: dict[str, AnyArray]
    errors: dict[str, Errors | None] = field(default_factory=dict)
    quotients: dict[str, Errors | None] = field(default_factory=dict)
    unbounded: set[str] = field(default_factory=set)


def analyse(
    region: Region, feeds: Mapping[str, AnyArray], feed_errors: Mapping[str, Errors] | None = None, *,
    runtime: bool = False,
) -> Bounds:
    """Return bounds for every value of ``region``, for all frames at once (a single one unless the region is
    framewise). ``feeds`` are exact except for ``feed_errors`` (by name, in the shape of the feed).
    ``runtime``: bounds of onnxruntime's errors, where its arithmetic is another one."""
    bounds = Bounds(region.values(feeds))
    for name, array in bounds.values.items():
        bounds.errors[name] = np.zeros(np.shape(array))
    bounds.errors.update(feed_errors or {})
    depends = set(region.feeds)
    for node in region.nodes:
        if facts_of(node.domain, node.op_type).of_shapes:  # whatever the elements are
            bounds.errors.update({name: np.zeros(np.shape(bounds.values[name])) for name in node.output})
            continue
        constant = not depends.intersection(node.input)
        if not constant:
            depends.update(node.output)
        inputs = [bounds.values.get(name) if name else None for name in node.input]
        errors = [bounds.errors[name] if name else None for name in node.input]
        for name in node.output:
            bounds.errors[name] = None
        if any(name and error is None for name, error in zip(node.input, errors, strict=True)):
            continue
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        outputs = [np.asarray(bounds.values[name]) for name in node.output if name]
        step = Step(region, node, inputs, errors, outputs, attributes, constant, runtime=runtime)
        try:
            found = _bounded(step)
            made = [np.asarray(found)] if isinstance(found, np.ndarray | np.floating) else found  # numpy's scalars
            for name, error in zip([name for name in node.output if name], made, strict=False):
                bounds.errors[name] = error * INFLATION
        except NoBound:
            bounds.unbounded.add(node.op_type)
        if step.quotient is not None:
            bounds.quotients[node.output[0]] = step.quotient * INFLATION
    return bounds


def _bounded(step: Step) -> Errors | Sequence[Errors]:
    if step.constant and all(error is None or not error.any() for error in step.errors) and _is_folded(step.node):
        return [np.zeros(output.shape) for output in step.outputs]
    record = record_of(step.node.domain, step.node.op_type)
    if record is None or record.error is None:
        raise NoBound
    with np.errstate(all="ignore"):
        return record.error(step)


def _is_folded(node: onnx.NodeProto) -> bool:
    """Tell whether hwflow folds a node of constants, with the same evaluator
    (hwflow.onnxspec.resolving.constant_folding)."""
    return node.domain not in DIALECT_DOMAINS and facts_of(node.domain, node.op_type).foldable
