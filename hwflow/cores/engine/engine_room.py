"""The fastest order of layers for which an engine has room, and how fast its weights come."""

from __future__ import annotations

from bisect import bisect_right

from hdl_lib.engine.weight_ring import SHALLOW
from hdl_lib.external.fetch_plan import FetchPlan
from hwflow.cores import costs
from hwflow.cores.engine.engines import Engine
from hwflow.cores.engine.network_part import Network
from hwflow.cores.engine.strips import Order, fastest
from hwflow.cores.external.weight_memory import MemoryTiming

_ROWS = 512  # words by which a memory grows
_OUTSIDE = 2  # block RAMs of what is on its way to memory outside and back
_TRIES = 8  # of less and less room for maps


def order_within(
    engine: Engine, network: Network, family: str, blocks: int, cycles_of_beat: float, *, waits: bool, outside: bool
) -> Order | None:
    """Return the fastest order whose maps, weights, program, and the strip of the image that waits have room in so many
    block RAMs; None if none was found. ``waits``: as of :func:`order_beside`; ``outside``: as of
    :func:`hwflow.cores.engine.strips.fastest`."""
    network, left = engine.network(network), blocks
    for _ in range(_TRIES):
        words = _words_of_maps(engine, network, family, left)
        waiting = None if waits else words
        order = fastest(network, engine, words, cycles_of_beat, waiting, outside=outside) if words else None
        if order is None:
            return None
        width = engine.lanes * 8
        needed = costs.layer_engine(family, order.program(engine), width, 1).bram
        if waits:
            needed += costs.buffer_memory(family, order.groups[0].waiting(engine), width).bram
        if order.outside:
            needed += _OUTSIDE
        excess = needed - blocks
        if excess <= 0:
            return order
        left -= excess
    return None


def order_beside(
    engine: Engine, network: Network, family: str, words: int, blocks: int, cycles_of_beat: float, *, waits: bool
) -> Order | None:
    """Return the fastest order whose maps have room in so many words beside block RAM, and all else in so many block
    RAMs; None if there is none. ``waits``: a strip of the image waits in front of the engine, which otherwise takes it
    from somebody who waits."""
    network = engine.network(network)
    width = min(engine.lanes, network.shape.channels) * 8
    waiting = words
    for _ in range(_TRIES):
        order = fastest(network, engine, words, cycles_of_beat, waiting)
        if order is None:
            return None
        strip = order.groups[0].waiting(engine)
        left = blocks - costs.layer_engine(family, order.program(engine), engine.lanes * 8, 1).bram
        sizes = range(strip)
        fitting = bisect_right(sizes, left, key=lambda size: costs.buffer_memory(family, size + 1, width).bram)
        if fitting == strip or (left >= 0 and not waits):
            return order
        waiting = fitting
    return None


def _words_of_maps(engine: Engine, network: Network, family: str, blocks: int) -> int:
    """Return the words of maps for which so many block RAMs have room beside the ring of weights."""
    ring = engine.ring(network)
    several = engine.lanes > engine.width // engine.weight_bits
    width = 2 * engine.width if ring <= SHALLOW and several else engine.width
    left = blocks - costs.buffer_memory(family, ring, width).bram * (engine.lanes**2 * engine.weight_bits // width)
    sizes = range(_ROWS, 1 << 16, _ROWS)
    count = bisect_right(sizes, left, key=lambda words: costs.buffer_memory(family, words, engine.lanes * 8).bram)
    return sizes[count - 1] if count else 0


def cycles_of_beat(engine: Engine, network: Network, timing: MemoryTiming) -> float:
    """Return the cycles from beat to beat of weights from a memory that has nothing else to do."""
    plan = FetchPlan.of(timing, [(max(1, network.weights * engine.weight_bits // engine.width), 1)])
    return plan.round / plan.regions[0].burst
