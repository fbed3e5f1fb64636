"""A whole design, its AXI4-Streams included, in Amaranth's simulator: no Verilog, no build, so hundreds can be run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from hwflow.codegen.top import StreamPort, Top
from hwflow.cores.operator import Built
from hwflow.ir.graph import IntArray
from hwflow.schedule.plan import Plan
from tests.cores.harness import with_words
from tests.hdl_lib.cycles import Cycles

_TIMEOUT = 100_000  # cycles


class SimulatedTop:
    """The design of a plan, compiled once for all its runs.

    ``cycles``: in which the last run's output beats were taken, by port name; cycle 0 is the first one after reset.
    """

    def __init__(self, plan: Plan) -> None:
        self._top = top = Top(plan)
        for core in top.cores.values():
            with_words(Built(core.body, [], [], core.files))
        self._core = Cycles(top)
        self._signals = {signal.name: signal for signal in top.ports}
        self.cycles: dict[str, list[int]] = {}

    def run(
        self, inputs: Mapping[str, IntArray], *, gap: float = 0.0, stall: float = 0.0, seed: int = 0,
        before: int = 0,
    ) -> dict[str, IntArray]:
        """Outputs by port name, [frames, *shape], for ``inputs`` alike.

        ``gap``, ``stall``: the share of cycles in which a source offers nothing (before it has offered a beat, not
        while one waits), in which a sink takes nothing. ``before``: cycles between the reset and the first.
        """
        rng = random.Random(seed)
        core, frames = self._core, len(next(iter(inputs.values())))
        core.restart()
        core.settle()
        for _ in range(before):
            core.edge()
            core.settle()
        found: dict[str, list[int]] = {stream.port.name: [] for stream in self._top.outputs}
        self.cycles = {name: [] for name in found}
        sources = [
            (self._source(stream, inputs[stream.port.name], rng, gap), self._reader(stream, "tready"))
            for stream in self._top.inputs
        ]
        sinks = [self._sink(stream, found[stream.port.name], frames, rng, stall) for stream in self._top.outputs]
        for source, _ in sources:
            next(source)
        for sink in sinks:
            next(sink)
        core.settle()
        cycles = 0
        while any(len(found[stream.port.name]) < frames * stream.beats for stream in self._top.outputs):
            taken = [ready() for _, ready in sources]
            for sink in sinks:
                next(sink)  # it looks at what is settled
            for name, beats in found.items():
                if len(beats) > len(self.cycles[name]):
                    self.cycles[name].append(cycles)
            core.edge()
            for (source, _), ready in zip(sources, taken, strict=True):
                source.send(ready)
            for sink in sinks:
                next(sink)
            core.settle()
            cycles += 1
            assert cycles < _TIMEOUT, {name: len(beats) for name, beats in found.items()}
        return {stream.port.name: _values(stream, found[stream.port.name]) for stream in self._top.outputs}

    def _source(self, stream: StreamPort, values: IntArray, rng: random.Random, gap: float) -> Iterator[None]:
        """Set what each cycle offers; receive whether it was taken."""
        valid, data, last = (self._setter(stream, name) for name in ("tvalid", "tdata", "tlast"))
        for place, word in enumerate(_words(stream, values)):
            while rng.random() < gap:
                valid(0)
                yield
            valid(1)
            data(word)
            last(place % stream.beats == stream.beats - 1)
            while not (yield):
                pass
        valid(0)
        while True:
            yield

    def _sink(
        self, stream: StreamPort, beats: list[int], frames: int, rng: random.Random, stall: float
    ) -> Iterator[None]:
        """In turns: set each cycle's ``ready``, and look at what has come."""
        ready = self._setter(stream, "tready")
        valid, data, last = (self._reader(stream, name) for name in ("tvalid", "tdata", "tlast"))
        while True:
            willing = len(beats) < frames * stream.beats and rng.random() >= stall
            ready(willing)
            yield
            if willing and valid():
                beats.append(data())
                assert last() == (len(beats) % stream.beats == 0), f"tlast of beat {len(beats) - 1}"
            yield

    def _setter(self, stream: StreamPort, name: str) -> Callable[[int], None]:
        return self._core.setter(self._signals[f"{stream.prefix}_{name}"])

    def _reader(self, stream: StreamPort, name: str) -> Callable[[], int]:
        return self._core.reader(self._signals[f"{stream.prefix}_{name}"])


def _words(stream: StreamPort, values: IntArray) -> list[int]:
    """What tdata carries: lane 0 in the least significant bits, elements in whole bytes; surplus lanes 0."""
    channels = stream.view[1]
    elements = values.reshape(len(values), -1)[:, stream.port.order].reshape(-1, channels)
    blocks = -(-channels // stream.lanes)
    padded = np.zeros((len(elements), blocks * stream.lanes), dtype=np.int64)
    padded[:, :channels] = elements
    bits = 8 * stream.element_bytes
    return [
        sum((value & ((1 << bits) - 1)) << bits * lane for lane, value in enumerate(beat))
        for beat in padded.reshape(-1, stream.lanes).tolist()
    ]


def _values(stream: StreamPort, words: list[int]) -> IntArray:
    """The inverse: [frames, *shape]."""
    channels = stream.view[1]
    bits, signed = 8 * stream.element_bytes, stream.type.element.signed
    top = 1 << stream.type.element.bits - 1
    mask = (1 << stream.type.element.bits) - 1

    def number(word: int, lane: int) -> int:
        value = word >> bits * lane & mask
        return value - (mask + 1) if signed and value >= top else value

    beats = np.array([[number(word, lane) for lane in range(stream.lanes)] for word in words], dtype=np.int64)
    blocks = -(-channels // stream.lanes)
    elements = beats.reshape(-1, blocks * stream.lanes)[:, :channels].reshape(-1, len(stream.port.order))
    result = np.empty_like(elements)
    result[:, stream.port.order] = elements
    return result.reshape(len(elements), *stream.port.shape)
