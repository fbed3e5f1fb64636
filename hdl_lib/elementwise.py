"""A function of the elements at the same place of several streams."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Const, Module, Value

from .joined import Joined
from .lane_functions import LaneFunction


class Elementwise(Joined):
    """``o = f(a, b, ...)``, element by element.

    Parameters
    ----------
    function: see :mod:`hdl_lib.lane_functions` and :mod:`hdl_lib.divider`; it has the shapes of its operands and of
        the result.
    constants: an operand's value where it is a constant, else None: only these operands are streams, ``a``, ``b`` and
        so on in order; at least one.
    lanes: elements a beat.
    depth: beats of the output queue; one beat a cycle needs ``latency + 1``.

    Members
    -------
    a, b, ...: In(stream). Elements of the inputs.
    o: Out(stream). Results, in every lane.

    Timing
    ------
    As :class:`hdl_lib.joined.Joined` says; :attr:`latency` cycles from a step to ``o.valid``: the function's stages and
    1 for the output queue. Initiation interval 1 cycle a beat. Under backpressure no step begins; those begun go on.

    Ordering
    --------
    Beats leave in the order they came; beat n of an input meets beat n of the others.
    """

    def __init__(
        self, function: LaneFunction, *, lanes: int, depth: int, constants: Sequence[int | None] = ()
    ) -> None:
        self.function = function
        self.constants = tuple(constants) or (None,) * len(function.inputs)
        if len(self.constants) != len(function.inputs):
            raise ValueError(f"constants must be {len(function.inputs)} (one an operand), not {len(self.constants)}")
        streams = [s for s, c in zip(function.inputs, self.constants, strict=True) if c is None]
        super().__init__(streams, function.output, lanes=lanes, channels=lanes, depth=depth)

    @property
    def latency(self) -> int:
        """Cycles from a step to ``o.valid``."""
        return self.function.stages + 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue, _, payloads = self._issue(m)
        for lane in range(self.lanes):
            left = iter(payloads)
            operands = [
                Const(value, shape) if value is not None else Value.cast(next(left)[lane])
                for value, shape in zip(self.constants, self.function.inputs, strict=True)
            ]
            result = self.function.build(m, f"lane_{lane}", operands)
            m.d.comb += queue.payload[lane].eq(result)
        return m

