"""An Amaranth core in Amaranth's simulator, cycle by cycle from outside.

The simulator's own triggers, coroutines and falling edges take as long as the core. Here the core's compiled processes
run directly: those of the flip-flops at each edge, those of the logic until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Fragment, Signal, Value
from amaranth.sim.pysim import PySimEngine


class Cycles:
    """``dut`` before the first edge of the clock of its domain "sync", all inputs at their initial values.

    A cycle: read what is settled, :meth:`edge`, set inputs (they change with the flip-flops), :meth:`settle`.
    """

    def __init__(self, dut) -> None:
        design = Fragment.get(dut, platform=None).prepare()
        engine = PySimEngine(design)
        self._state, self._processes = engine.state, tuple(engine._processes)
        assert set(design.fragment.domains) == {"sync"}, "one clock"
        self._clock = self._slot(design.fragment.domains["sync"].clk)
        self.settle()

    def edge(self) -> None:
        """Let the clock rise. Nothing acts on its fall."""
        self._clock.curr = self._clock.next = 0
        self._clock.update(1)
        self._state.commit()

    def settle(self) -> None:
        """Compute what follows from the edge and from the inputs that were set."""
        settled = False
        while not settled:
            for process in self._processes:
                if process.runnable:
                    process.runnable = False
                    process.run()
            settled = self._state.commit()

    def reader(self, signal) -> Callable[[], int]:
        """What reads a signal or a view of one, as an unsigned bit pattern."""
        slot, mask = self._slot(signal), (1 << len(Value.cast(signal))) - 1
        return lambda: slot.curr & mask

    def setter(self, signal) -> Callable[[int], None]:
        """What sets an input to an unsigned bit pattern."""
        slot, shape = self._slot(signal), Value.cast(signal).shape()
        sign = 1 << (shape.width - 1) if shape.signed else 0
        mask = (1 << shape.width) - 1
        return lambda pattern: slot.update(((pattern & mask) ^ sign) - sign)

    def _slot(self, signal):
        signal = Value.cast(signal)
        assert isinstance(signal, Signal), "only whole signals"
        return self._state.slots[self._state.get_signal(signal)]
