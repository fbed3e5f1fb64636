"""Parse nextpnr's progress, and what it says of a part that is too small, from its output."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Phase = Literal["packing", "placing", "routing"]


@dataclass(frozen=True)
class PlaceRouteProgress:
    """nextpnr's progress. ``iteration``: of its placer, or of its router (router1 counts thousands of routed
    connections); ``left``: unrouted connections or overused wires, None before routing; ``late``: connections that
    still miss timing, if the router reports them."""

    phase: Phase
    iteration: int = 0
    left: int | None = None
    late: int = 0

    def __str__(self) -> str:
        if self.phase == "packing":
            return self.phase
        where = f"{self.phase}, iteration {self.iteration:,}"
        late = f", {self.late:,} too slow" if self.late else ""
        return where if self.left is None else f"{where}, {self.left:,} wires left{late}"


_BEGINNINGS = (  # of a line, without "Info:"
    ("Packing ", PlaceRouteProgress("packing")),
    ("Creating initial ", PlaceRouteProgress("placing")),
    ("Running Static placer", PlaceRouteProgress("placing")),
    ("Routing..", PlaceRouteProgress("routing")),
    ("Running router2", PlaceRouteProgress("routing")),
)
_STATIC_PLACER = re.compile(r"iter=(\d+) steplen=")
_PLACER = re.compile(r"at iteration #(\d+)\b")  # the annealing one, and the analytic one, which says it once a type
_ROUTING = re.compile(r"Routing (\d+) arcs\.")
_FIRST_ROUTER = re.compile(r"(\d+) \|\s+\d+\s+\d+ \|\s+-?\d+\s+-?\d+ \|\s+(\d+)\|")
_SECOND_ROUTER = re.compile(r"iter=(\d+) wires=\d+ overused=(\d+) overuse=\d+(?: tmgfail=(\d+))?")
_UTILIZATION = re.compile(r"(\w+): +(\d+)/ *(\d+) +\d+%")


def read_shortage(line: str) -> str | None:
    """Return what a line of nextpnr's log says of cells that the part has too few of; None if it says no such thing."""
    found = _UTILIZATION.match(line.removeprefix("Info:").strip())
    if found is None or int(found[2]) <= int(found[3]):
        return None
    return f"{found[1]} must be at most {int(found[3]):,}, not {int(found[2]):,}"


def read_progress(line: str) -> PlaceRouteProgress | None:
    """Parse a line of nextpnr's log; None if it shows no progress."""
    said = line.removeprefix("Info:").strip()
    for beginning, progress in _BEGINNINGS:
        if said.startswith(beginning):
            return progress
    if found := _STATIC_PLACER.match(said) or _PLACER.match(said):
        return PlaceRouteProgress("placing", int(found[1]))
    if found := _ROUTING.match(said):
        return PlaceRouteProgress("routing", 0, int(found[1]))
    if found := _FIRST_ROUTER.match(said):
        return PlaceRouteProgress("routing", int(found[1]) // 1000, int(found[2]))
    if found := _SECOND_ROUTER.match(said):
        return PlaceRouteProgress("routing", int(found[1]), int(found[2]), int(found[3] or 0))
    return None
