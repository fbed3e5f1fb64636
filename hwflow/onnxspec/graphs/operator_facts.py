"""Facts about an operator beyond its schema, for inference, folding and evaluation: :class:`OperatorFacts`.

The operators' records (:mod:`hwflow.operators.onnx_operators`) state them and :func:`fill` this registry, which is read
through :func:`facts_of`. So this layer names no operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt

if TYPE_CHECKING:
    from hwflow.onnxspec.clauses.ml.node_reading import OperatorClauses
    from hwflow.onnxspec.definitions.function_writer import Definition
    from hwflow.onnxspec.dialect_operators.qonnx_operators import RealLevels
    from hwflow.onnxspec.dialect_operators.quantizer_levels import Levels
    from hwflow.onnxspec.graphs.weight_axes import WeightRule
    from hwflow.onnxspec.reference.defect import Mended
    from hwflow.onnxspec.reference.framewise import FrameRule
    from hwflow.onnxspec.reference.runtime_differences import Difference
    from hwflow.onnxspec.resolving.resolved_model import Array
    from hwflow.onnxspec.shapes.dialect_forms import Form
    from hwflow.onnxspec.shapes.dialects import ResultRule, ShapeRule
    from hwflow.onnxspec.shapes.size_facts import SizeRule

STANDARD_DOMAIN = ""

AnyArray: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = Sequence[AnyArray | None]


@dataclass(frozen=True)
class OutputMode:
    """A mode in which outputs from the second on are not computed: ``attribute`` (an int, default 0) is nonzero if
    ``off``, else zero. ``refused``: whether onnx refuses such a node even if nothing reads the outputs."""

    attribute: str
    off: bool
    refused: bool


@dataclass(frozen=True)
class OperatorFacts:
    """One operator in all its versions. ``domains``: those that have it; ai.onnx is "".

    Its definition, where onnx's Python interface lacks it:

    * ``output_counts``: the legal numbers of outputs by the version that introduced the signature, where not every
      number from the fewest to the most is legal.
    * ``output_modes``: the mode without outputs after the first, by the version that introduced the definition.
    * ``unchecked``: its schema accepts unknown attributes (AllowUncheckedAttributes).
    * ``needs_defaults``: onnx fails on its body unless the attributes' defaults are written out (1.23.2).
    * ``images``: the number of leading inputs with channels on axis 1; old dialects have them on the last.
    * ``keeps_rank``: the result has the highest rank of the inputs; always so if it is elementwise.
    * ``data``: indices of the inputs that are data; the others are scales, zero points and bit widths. None: all are.

    * ``definition``: writes the function that defines a use of it, where onnx has it in words only, or of a dialect's
      operator; where hardware has the operator itself, for the quantizer only.

    An operator of a dialect, which has no schema:

    * ``form``: the legal operands and attributes of its nodes.
    * ``shape``: infers its result's shape and type; ``alike``: indices of further results with the same.
    * ``in_default_domain``: onnxruntime writes it into ai.onnx, which has no such operator.

    * ``clauses``: what a node must fulfil beyond its schema, of its attributes and inputs.

    Inference by onnx:

    * ``tame``: it neither crashes, whatever the attributes, nor allocates or runs without bound: results have at most
      the rank of an input. Elementwise operators are tame implicitly.
    * ``wild``: it crashes, or allocates without bound, on some attributes or shapes, even for a single node (1.23.2).
    * ``by_type``: it depends on types and shapes only, never on values.
    * ``followed``: onnx propagates the elements of vectors through it.
    * ``matrices``: indices of the operands of a matrix product (numpy's matmul, where vectors give a vector).
    * ``long_vectors``: its results after the first are vectors that may be longer than any size that the model states.
    * ``shape_input``: index of the input that is the shape of the result. It makes a tame operator tame only if it is a
      short constant; where inference leaves the shape open, the constant gives it.
    * ``same_shape``: the result has the first input's shape and type, which inference leaves open (1.23.2).
    * ``stated_shape``: the result's shape by its inputs, if all are constants, where inference leaves it open; None
      where they do not determine it.
    * ``results``: the shape and element type of each output by its inputs and attributes, where inference leaves them
      open.
    * ``sizes``: its demands on the sizes of inputs and outputs beyond those that inference checks.

    Folding of constants:

    * ``foldable``: a node of constants becomes constants. Not for nondeterministic operators, nor for quantizers, whose
      scale and zero point the front end reads.
    * ``of_shapes``: its value depends on its inputs' shapes alone.
    * ``proportional``: its work is proportional to the elements that it reads and writes. Elementwise operators are so
      implicitly.

    The reference evaluator:

    * ``levels``: the quotients and levels of a dialect's quantizing operator, in float64.
    * ``evaluate``: computes a dialect's operator, its result or all results that it may have, from its inputs (None:
      absent) and the node's attributes; None where ``levels`` does.
    * ``mended``: the defects of the evaluator's own operator, and its substitute.
    * ``framewise``: whether a node processes frames along the first axis independently; None: if it is elementwise.

    Quantization (``hwflow quantize``):

    * ``differences``: where onnxruntime deviates from the operator's definition.
    * ``weights``: the operand of a linear operator that may be weights.
    * ``integer_operands``: its operands are quantized, where several of its operands or elements make a result. As a
      function of one value it reads integers of any kind: between two quantizers such functions are exact.
    * ``divisors``: indices of operands that must not be 0, which is a level of every quantizer: they get none.
    * ``accumulates``: its results are wide integers before quantization, as those of linear operators.
    * ``moves``: results are elements of its operands, at other places, or the greatest of some.
    * ``affine``: it is an affine function, or a clip, if all operands but one are constants.
    * ``of_sums``: it is computed of wide integers, too, such as sums of squares, which need no quantizer before it.
    * ``composed``: its definition has values that must be quantized: they stand between products of streams.

    What it computes:

    * ``adds``, ``subtracts``, ``multiplies``, ``raises``: the sum, difference, product or power of its two operands.
    * ``activation``: it is an activation function of recurrent operators. ``piecewise_linear``: such a one that makes
      numbers of a common divisor of such numbers.
    * ``quantizes``, ``dequantizes``: it makes integers of reals, or reals of integers, by a scale and a zero point: its
      second and third operand.

    The meaning of results to their readers:

    * ``class_number``: the result is the index of a class.
    * ``keeps_elements``: the result has the elements of the first input in their order, so an index keeps its meaning.
    * ``homogeneous``: each channel of its first input is one of the result, and scales it, by any factor above 0.
    * ``exact_weights``: its weights are attributes, floats that hardware takes as they are.
    * ``tells_nan``: it tells NaN from numbers, so what it reads may be NaN.
    * ``among``: what the elements of its first input must be among, by its attributes; None: they may be anything.
    * ``remade``: hwflow rounds another number than this quantizer does: a count, or integers a second time.
    """

    name: str
    domains: tuple[str, ...] = (STANDARD_DOMAIN,)
    output_counts: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    output_modes: Mapping[int, OutputMode] = field(default_factory=dict)
    unchecked: bool = False
    needs_defaults: bool = False
    images: int = 0
    keeps_rank: bool = False
    data: tuple[int, ...] | None = None
    definition: Definition | None = None
    form: Form | None = None
    shape: ShapeRule | None = None
    alike: tuple[int, ...] = ()
    in_default_domain: bool = False
    clauses: OperatorClauses | None = None
    tame: bool = False
    wild: bool = False
    by_type: bool = False
    followed: bool = False
    matrices: tuple[int, int] | None = None
    long_vectors: bool = False
    same_shape: bool = False
    shape_input: int | None = None
    stated_shape: Callable[[Sequence[Array]], tuple[int, ...] | None] | None = None
    results: ResultRule | None = None
    sizes: SizeRule | None = None
    foldable: bool = True
    of_shapes: bool = False
    proportional: bool = False
    levels: Callable[[Arrays, Mapping[str, Any]], Levels | RealLevels] | None = None
    evaluate: Callable[[Arrays, Mapping[str, Any]], AnyArray | tuple[AnyArray, ...]] | None = None
    mended: Mended | None = None
    framewise: FrameRule | None = None
    differences: tuple[Difference, ...] = ()
    weights: WeightRule | None = None
    integer_operands: bool = False
    divisors: tuple[int, ...] = ()
    accumulates: bool = False
    moves: bool = False
    affine: bool = False
    of_sums: bool = False
    composed: bool = False
    adds: bool = False
    subtracts: bool = False
    multiplies: bool = False
    raises: bool = False
    activation: bool = False
    piecewise_linear: bool = False
    quantizes: bool = False
    dequantizes: bool = False
    class_number: bool = False
    keeps_elements: bool = False
    homogeneous: bool = False
    exact_weights: bool = False
    tells_nan: bool = False
    among: Callable[[Mapping[str, Any]], Sequence[Any] | None] | None = None
    remade: bool = False

    @property
    def elementwise(self) -> bool:
        """Whether operands broadcast, and an element of the result depends only on the elements at its place."""
        return False

    @property
    def quantizer(self) -> bool:
        """Whether it turns reals into integers, or back."""
        return self.quantizes or self.dequantizes


Key = tuple[str, str]
"""Domain and type."""

_RECORDS = "hwflow.operators.onnx_operators"  # of a layer above, which this one must not import
_REGISTRY: dict[Key, OperatorFacts] = {}
_NOTHING = OperatorFacts("")


def fill(records: Iterable[OperatorFacts]) -> None:
    """Register the facts of the records."""
    _REGISTRY.update({(domain, record.name): record for record in records for domain in record.domains})


def _registry() -> dict[Key, OperatorFacts]:
    """Return the registry, never empty: the first call imports the records."""
    if not _REGISTRY:
        import_module(_RECORDS)
        if not _REGISTRY:
            raise RuntimeError("operators must not be asked for while their records are imported, but one is")
    return _REGISTRY


def facts_of(domain: str, op_type: str) -> OperatorFacts:
    """Return the facts of an operator; without a record, empty ones (not tame)."""
    return _registry().get((domain, op_type), _NOTHING)


def all_facts() -> Iterator[tuple[Key, OperatorFacts]]:
    """Yield the facts of all operators with records."""
    return iter(_registry().items())
