"""The product of two streams."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Module, Shape

from hdl_lib.arithmetic.adder_tree import Term, registered, shape_of
from hdl_lib.arithmetic.multiplier import FORMS, Multiplier, ProductForm, interval
from hdl_lib.streams.joined import Joined


class StreamProduct(Joined):
    """``o = (a - offset_a) * (b - offset_b)``, element by element.

    Exact modulo ``2**output_shape.width``: correct wherever the result lies in the range of ``output_shape``.

    Parameters
    ----------
    input_shapes, output_shape: of an element of ``a`` and ``b``, and of the product; integer shapes.
    lanes: elements per beat.
    offsets: integers, of ``a`` and of ``b``.
    multiplier: "dsp" or "lut", part: see :mod:`hdl_lib.arithmetic.multiplier`.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    a, b: In(stream). Elements of the inputs.
    o: Out(stream). Products, in every lane.

    Timing
    ------
    As :class:`hdl_lib.streams.joined.Joined` says; :meth:`latency_of` cycles from a step to ``o.valid``: 1 for the
    differences (a register where the offset is 0), those of the multiplier, 1 for the output queue. Initiation interval
    1 cycle per beat. Under backpressure no step begins; those begun continue.

    Ordering
    --------
    Beats leave in the order they came; beat n of ``a`` meets beat n of ``b``.
    """

    def __init__(
        self,
        input_shapes: Sequence[Shape],
        output_shape: Shape,
        *,
        lanes: int,
        offsets: Sequence[int],
        multiplier: ProductForm,
        depth: int,
        part: int | None = None,
    ) -> None:
        if multiplier not in FORMS:
            raise ValueError(f"multiplier must be one of {', '.join(FORMS)}, not {multiplier!r}")
        self.offsets = tuple(offsets)
        super().__init__(input_shapes, output_shape, lanes=lanes, channels=lanes, depth=depth)
        self.multiplier = self.multiplier_of(self.input_shapes, self.offsets, multiplier, part)

    @staticmethod
    def multiplier_of(
        input_shapes: Sequence[Shape], offsets: Sequence[int], multiplier: ProductForm, part: int | None = None
    ) -> Multiplier:
        """Return the multiplier of the factors, offsets subtracted."""
        shapes = []
        for shape, offset in zip(input_shapes, offsets, strict=True):
            low, high = interval(Shape.cast(shape))
            shapes.append(shape_of(low - offset, high - offset))
        return Multiplier(shapes[0], shapes[1], multiplier, part)

    @staticmethod
    def latency_of(multiplier: Multiplier) -> int:
        """Return the cycles from a step to ``o.valid``."""
        return 1 + multiplier.operand_latency + multiplier.latency + 1

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.multiplier)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue, _, payloads = self._issue(m)
        for lane in range(self.lanes):
            factors = []
            for name, payload, shape, offset in zip("ab", payloads, self.input_shapes, self.offsets, strict=True):
                low, high = interval(shape)
                difference = Term(payload[lane] - offset, low - offset, high - offset)
                factors.append(registered(m, f"{name}_{lane}", difference))
            operand = self.multiplier.operand(m, f"a_{lane}", factors[0].value)
            weight = factors[1]
            for stage in range(self.multiplier.operand_latency - self.multiplier.weight_lead):
                weight = registered(m, f"b_{lane}_{stage}", weight)
            product = self.multiplier.product(m, f"product_{lane}", operand, weight.value)
            m.d.comb += queue.payload[lane].eq(product.value)
        return m
