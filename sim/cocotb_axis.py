"""cocotb agents for AXI4-Stream: a source, a sink and a monitor, each a plain object stepped once a clock cycle.

A cycle as every agent sees it: at the clock's falling edge :meth:`Agent.drive` sets pins; when everything has settled
:meth:`Agent.sample` looks at them; what it sees is what the following rising edge acts on (a handshake is tvalid and
tready in that moment). This means the same in every simulator, whatever its order of events at the rising edge.
:func:`step` runs a list of agents; cycle 0 is the one it starts in.

By hand: cocotbext-axi (0.1.28) moves frames of bytes; here the cycle of every beat is measured, X on a pin and a word
that changes while it waits are part of the verdict, and nothing but cocotb runs beside an emitted design.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from cocotb.triggers import FallingEdge, ReadOnly

from .result import Violation


class Agent(Protocol):
    """An object stepped once a cycle."""

    def drive(self) -> None:
        """Set pins (the clock is low)."""

    def sample(self, cycle: int) -> None:
        """Sample the settled pins."""


async def step(clock: Any, agents: Sequence[Agent], going: Callable[[int], bool]) -> int:
    """Step ``agents`` until ``going(cycle)`` says no after a cycle; return that cycle. Start with the clock low."""
    cycle = 0
    while True:
        for agent in agents:
            agent.drive()
        await ReadOnly()
        for agent in agents:
            agent.sample(cycle)
        if not going(cycle):
            return cycle
        cycle += 1
        await FallingEdge(clock)


class Unknown(Exception):
    """A pin shows X or Z where the protocol needs a 0 or 1; nothing after it means anything."""


class Pins:
    """The handles of one stream: ``<port>_tdata``, ``_tvalid``, ``_tready``, ``_tlast``."""

    def __init__(self, dut: Any, port: str) -> None:
        self.port = port
        self.data = getattr(dut, f"{port}_tdata")
        self.valid = getattr(dut, f"{port}_tvalid")
        self.ready = getattr(dut, f"{port}_tready")
        self.last = getattr(dut, f"{port}_tlast")
        self.bits = len(self.data)


class AxisSource:
    """Offers beats in order, each held until it is taken; pauses before a beat with probability ``gap`` per cycle.

    ``beats``: (tdata, tlast) pairs. While nothing is offered, tdata and tlast show the opposite of the last beat: what
    is not valid means nothing. ``cycles``: the cycle of each handshake so far.
    """

    def __init__(self, pins: Pins, beats: Iterable[tuple[int, bool]], gap: float = 0.0, seed: int | str = 0) -> None:
        self.pins = pins
        self.cycles: list[int] = []
        self._beats = iter(beats)
        self._next = next(self._beats, None)
        self._gap = gap
        self._random = random.Random(f"{seed}/{pins.port}")
        self._all = (1 << pins.bits) - 1
        self._offering = False
        self._shown = (0, False)
        pins.valid.value = 0
        pins.data.value = 0
        pins.last.value = 0

    @property
    def done(self) -> bool:
        return self._next is None

    def drive(self) -> None:
        if self._offering:
            return
        if self._next is not None and not (self._gap and self._random.random() < self._gap):
            self._offering = True
            self._shown = self._next
        else:
            self._shown = (self._shown[0] ^ self._all, not self._shown[1])
        self.pins.data.value = self._shown[0]
        self.pins.last.value = int(self._shown[1])
        self.pins.valid.value = int(self._offering)

    def sample(self, cycle: int) -> None:
        if self._offering and str(self.pins.ready.value) == "1":
            self.cycles.append(cycle)
            self._offering = False
            self._next = next(self._beats, None)


class AxisSink:
    """Takes beats, not ready with probability ``stall`` per cycle, and hands each to ``take(tdata bits, tlast,
    cycle)``.

    tdata is a string of 0 1 X Z, most significant bit first. ``cycles``: the cycle of each handshake so far.
    """

    def __init__(
        self, pins: Pins, take: Callable[[str, bool, int], None], stall: float = 0.0, seed: int | str = 0
    ) -> None:
        self.pins = pins
        self.cycles: list[int] = []
        self._take = take
        self._stall = stall
        self._random = random.Random(f"{seed}/{pins.port}")
        self._ready = True
        pins.ready.value = 0

    def drive(self) -> None:
        self._ready = not (self._stall and self._random.random() < self._stall)
        self.pins.ready.value = int(self._ready)

    def sample(self, cycle: int) -> None:
        if self._ready and str(self.pins.valid.value) == "1":
            self.cycles.append(cycle)
            self._take(str(self.pins.data.value), str(self.pins.last.value) == "1", cycle)


class AxisMonitor:
    """Watches one stream and reports each protocol violation to ``report``; drives nothing.

    Checks: tvalid, tready and (while valid) tlast are 0 or 1; tvalid, tdata and tlast hold until tready; tlast is set
    exactly on the last of every ``beats`` beats; tvalid is 0 in cycle 0 (after reset) if ``quiet_start``; at most
    ``total`` beats, unless what follows from state alone comes ``ahead`` of inputs. An unknown tvalid or tready raises
    :class:`Unknown` after it is reported. Place it before the sink in the list of agents. At a design's *input* the
    producer is the test bench, and only tready is of interest.
    """

    def __init__(
        self,
        pins: Pins,
        beats: int,
        report: Callable[[Violation], None],
        *,
        total: int | None = None,
        quiet_start: bool = False,
        ahead: bool = False,
    ) -> None:
        self.pins = pins
        self.beats = beats
        self.passed = 0
        self._report = report
        self._total = total
        self._quiet_start = quiet_start
        self._ahead = ahead
        self._held: tuple[str, str] | None = None

    def drive(self) -> None:
        pass

    def violation(self, kind: str, cycle: int, detail: str) -> None:
        """Report a violation at the beat that is due."""
        frame, beat = divmod(self.passed, self.beats)
        self._report(Violation(kind, self.pins.port, frame, beat, cycle, detail))

    def sample(self, cycle: int) -> None:
        valid, ready = str(self.pins.valid.value), str(self.pins.ready.value)
        for pin, level in (("tvalid", valid), ("tready", ready)):
            if level not in "01":
                self.violation("unknown", cycle, f"{pin} must be 0 or 1, not {level.upper()}")
                raise Unknown
        if self._total is not None and self.passed >= self._total:
            if valid == "1" and not self._ahead:
                self.violation("surplus", cycle, "there must be no beat after the last frame's last")
            return
        if valid == "0":
            if self._held is not None:
                self.violation("valid-dropped", cycle, "tvalid must stay 1 until tready, not fall to 0")
            self._held = None
            return
        data, last = str(self.pins.data.value), str(self.pins.last.value)
        if self._held is not None:
            if data != self._held[0]:
                self.violation("data-changed", cycle, "tdata must not change until tready")
            if last != self._held[1]:
                self.violation("last-changed", cycle, "tlast must not change until tready")
        if self._quiet_start and cycle == 0:
            self.violation("valid-in-reset", cycle, "tvalid must be 0 after reset, not 1")
        self._held = None if ready == "1" else (data, last)
        if ready == "1":
            self._handshake(cycle, last)

    def _handshake(self, cycle: int, last: str) -> None:
        beat = self.passed % self.beats
        if last not in "01":
            self.violation("unknown", cycle, f"tlast must be 0 or 1, not {last.upper()}")
            raise Unknown
        if last != str(int(beat == self.beats - 1)):
            due = int(beat == self.beats - 1)
            self.violation("wrong-last", cycle, f"tlast must be {due} in beat {beat} of {self.beats}, not {last}")
        self.passed += 1
