"""A digit recurrence of the elements of one or two streams, unrolled as far as the streams' rate asks for."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Shape, Signal, Value

from hdl_lib.arithmetic.recurrence import Recurrence, State
from hdl_lib.blocks import delayed, held
from hdl_lib.streams.joined import Joined


class DigitRecurrence(Joined):
    """``o = f(a)`` or ``f(a, b)``, element by element, ``rounds`` cycles per beat.

    Parameters
    ----------
    function: see :mod:`hdl_lib.arithmetic.recurrence`; its bits are a multiple of ``rounds``.
    rounds: cycles per beat. The steps of an element take place in ``bits / rounds`` units one after the other, each
        of which does ``rounds`` of them in its own registers. A single unit is loaded, and its last step has registers
        apart: no choice between a new element and the present one is in front of a step. (Several would have
        registers, or choices, for each.)
    lanes: elements per beat.
    output_shape: of a result, if all fit a narrower shape than the function's.
    depth: beats of the output queue.

    Members
    -------
    a, b: In(stream). Elements of the inputs.
    o: Out(stream). Results, in every lane.

    Timing
    ------
    As :class:`hdl_lib.streams.joined.Joined` says, but for ``rounds`` steps for each beat, one per cycle: the first of
    them takes the beats and the credit, the others wait for nothing. :meth:`latency_of` cycles from a beat's first
    step to ``o.valid``: those of the function's start, 1 to load a single unit of several rounds, the function's bits,
    those of its finish, 1 for the output queue.

    Ordering
    --------
    Beats leave in the order they came; beat n of one input meets beat n of the other.
    """

    def __init__(
        self, function: Recurrence, rounds: int, *, lanes: int, output_shape: Shape | None = None, depth: int
    ) -> None:
        if rounds < 1 or function.bits % rounds:
            raise ValueError(f"rounds must divide the function's {function.bits} bits, not be {rounds}")
        self.function = function
        self.rounds = rounds
        output = function.output if output_shape is None else output_shape
        super().__init__(function.inputs, output, lanes=lanes, channels=lanes, depth=depth)

    @staticmethod
    def latency_of(function: Recurrence, rounds: int) -> int:
        """Return the cycles from a beat's first step to ``o.valid``."""
        return function.before + is_loaded(function, rounds) + function.bits + function.after + 1

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.function, self.rounds)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        function, rounds = self.function, self.rounds
        left = Signal(max(1, rounds - 1), name="left")  # a one for each step of a beat that is still to come
        queue, step, payloads = self._issue(m, ~left[0])
        if rounds > 1:
            m.d.sync += left.eq(Mux(step, (1 << rounds - 1) - 1, left >> 1))
        begins = [delayed(m, "begin_0", step, function.before)]
        for unit in range(1, function.bits // rounds):
            begins.append(delayed(m, f"begin_{unit}", begins[-1], rounds))
        for lane in range(self.lanes):
            state = function.start(m, f"lane_{lane}", [Value.cast(payload[lane]) for payload in payloads])
            for unit, begin in enumerate(begins):
                unit_of = self._loaded_unit if is_loaded(function, rounds) else self._unit
                state = unit_of(m, f"lane_{lane}_{unit}", state, begin)
            m.d.comb += queue.payload[lane].eq(function.finish(m, f"lane_{lane}", state))
        return m

    def _unit(self, m: Module, name: str, before: State, begin: Value) -> State:
        """Return the state of a unit, whose first step, at ``begin``, is of the state ``before``."""
        after = before
        for _ in range(self.rounds):
            after = self.function.step(after)
        own = {key: Signal(value.shape(), name=f"{name}_{key}", reset_less=True) for key, value in after.items()}
        current: State = dict(before)
        if self.rounds > 1:
            current = {key: Mux(begin, before[key], own[key]) for key in own}
        m.d.sync += [own[key].eq(value) for key, value in self.function.step(current).items()]
        return dict(own)

    def _loaded_unit(self, m: Module, name: str, before: State, begin: Value) -> State:
        """Return the state of the only unit, which is loaded with ``before`` at ``begin``, a cycle after its last step.
        """
        longest = before
        for _ in range(self.rounds - 1):
            longest = self.function.step(longest)
        own = {key: Signal(value.shape(), name=f"{name}_{key}", reset_less=True) for key, value in longest.items()}
        following = self.function.step(dict(own))
        m.d.sync += [own[key].eq(Mux(begin, before[key], following[key])) for key in own]
        return {key: held(m, f"{name}_last_{key}", value) for key, value in following.items()}


def is_loaded(function: Recurrence, rounds: int) -> bool:
    """Tell whether a single unit does all steps, several."""
    return function.bits == rounds > 1
