"""Coroutines at the pins of a core, written as for Amaranth's simulator, whose cycles run as :class:`Cycles` do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any

from amaranth.hdl import ValueCastable
from amaranth.lib import data

from tests.hdl_lib.cycles import Cycles


class Tick:
    """What a coroutine awaits: the next edge. The result is as Amaranth's: two flags, then what was sampled."""

    def __init__(self, samples: tuple[Any, ...] = ()) -> None:
        self.samples = samples

    def sample(self, *signals: Any) -> Tick:
        """The values of signals right before the edge."""
        return Tick(signals)

    def __await__(self) -> Generator[Tick, Any, Any]:
        return (yield self)


class Coroutines:
    """``processes`` beside each other until the last one ends, each called with this object as its context. They run
    one after the other in every cycle, in their order, and see what those before have set."""

    def __init__(self, dut: Any) -> None:
        self._core = Cycles(dut)
        self._setters: dict[int, tuple[Any, Callable[[int], None]]] = {}  # by identity, which the signal keeps its own
        self._readers: dict[int, tuple[Any, Callable[[], int]]] = {}

    def tick(self) -> Tick:
        return Tick()

    def set(self, signal: Any, value: Any) -> None:
        found = self._setters.get(id(signal))
        if found is None:
            found = self._setters[id(signal)] = signal, self._core.setter(signal)
        shape = signal.shape() if isinstance(signal, ValueCastable) else None
        found[1](shape.const(value).as_value().value if isinstance(shape, data.Layout) else int(value))

    def get(self, signal: Any) -> Any:
        self._core.settle()
        return self._read(signal)

    def _read(self, signal: Any) -> Any:
        found = self._readers.get(id(signal))
        if found is None:
            found = self._readers[id(signal)] = signal, self._core.reader(signal)
        bits = found[1]()
        shape = signal.shape() if isinstance(signal, ValueCastable) else None
        return shape.from_bits(bits) if isinstance(shape, data.Layout) else bits

    def run(self, *processes: Callable[[Any], Awaitable[None]]) -> None:
        running = [process(self).__await__() for process in processes]
        waiting = [next(process) for process in running]
        while True:
            self._core.settle()
            sampled = [tuple(map(self._read, tick.samples)) for tick in waiting]
            self._core.edge()
            self._core.settle()
            for number, process in enumerate(running):
                try:
                    waiting[number] = process.send((True, False, *sampled[number]))
                except StopIteration:
                    assert number == len(running) - 1, "only the last one ends"
                    return
