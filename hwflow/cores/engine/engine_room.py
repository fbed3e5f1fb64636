"""What an engine has room for, and how fast its weights come."""

from __future__ import annotations

from bisect import bisect_right

from hdl_lib.engine.weight_ring import SHALLOW
from hdl_lib.external.fetch_plan import FetchPlan
from hwflow.cores import costs
from hwflow.cores.engine.strips import Engine, Network
from hwflow.cores.external.weight_memory import MemoryTiming

_ROWS = 512  # words by which a memory grows


def words_of_maps(engine: Engine, network: Network, family: str, blocks: int) -> int:
    """Return the words of maps for which so many block RAMs have room beside the ring of weights."""
    ring = engine.ring(network)
    width = 2 * engine.width if ring <= SHALLOW and engine.lanes > engine.width // 8 else engine.width
    left = blocks - costs.buffer_memory(family, ring, width).bram * (engine.lanes**2 * 8 // width)
    sizes = range(_ROWS, 1 << 16, _ROWS)
    count = bisect_right(sizes, left, key=lambda words: costs.buffer_memory(family, words, engine.lanes * 8).bram)
    return sizes[count - 1] if count else 0


def cycles_of_beat(engine: Engine, network: Network, timing: MemoryTiming) -> float:
    """Return the cycles from beat to beat of weights from a memory that has nothing else to do."""
    plan = FetchPlan.of(timing, [(max(1, network.weights * 8 // engine.width), 1)])
    return plan.round / plan.regions[0].burst
