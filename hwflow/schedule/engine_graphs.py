"""Which engines could compute a network's layers in turn, the fastest first."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from hwflow.cores.engine.engine_room import cycles_of_beat, words_of_maps
from hwflow.cores.engine.strips import Engine, Order, fastest
from hwflow.cores.external.weight_memory import MemoryTiming
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Graph
from hwflow.passes.outside.engine_parts import engine_part, sources
from hwflow.passes.outside.fetch_weights import fetch_weights, may_be_fetched
from hwflow.passes.outside.layers_in_turn import engine_of, layers_in_turn
from hwflow.schedule.search.bounds import Bounds, block_bits
from hwflow.schedule.search.folding_search import Budget, Chip

_LANES = (16, 14, 12, 10, 8, 6, 4, 2)
_TOGETHER = (4, 2, 1)
_SHARE = 0.88  # of the block RAM: the program and queues take some
_LEAST_LAYERS = 2
_LARGE = 1 << 16  # bits of a dense layer beside an engine that does not stay in block RAM
_FETCHED = 6  # block RAMs of one that does not, about
_MOST_SOFT = 0.1  # of the rows multiply in look-up tables: with half of them a tenth faster, but hardly routable


def engine_graphs(graph: Graph, device: Chip, budget: Budget, timing: MemoryTiming) -> Iterator[tuple[int, Graph]]:
    """Yield about how many cycles a frame takes, and a dataflow graph in which an engine computes what it can, for each
    engine that has room: the fastest first. Dense layers beside it have their weights in the memory, too."""
    parts = [part for source in sources(graph) if (part := engine_part(graph, source)) is not None]
    part = max(parts, key=lambda part: part.network.weights, default=None)
    if part is None or len(part.network.layers) < _LEAST_LAYERS:
        return
    bounds = Bounds(graph, device, None)
    bits, beside = bounds.least_bits(), [node for node in graph.nodes if node not in part.nodes]
    dense = {
        node.name: 1 for node in beside
        if may_be_fetched(node, timing.chip.width) and node.outputs[0].typed.shape[0] == 1 and bits[node] > _LARGE
    }
    others = ceil(sum(bits[node] for node in beside if node.name not in dense) / block_bits(device))
    others += _FETCHED * len(dense)
    blocks = sum(bounds.least_of(node, "dsp") for node in beside)
    found: list[tuple[float, int, Engine, Order]] = []
    for lanes in _LANES:
        for together in (each for each in _TOGETHER if lanes % each == 0):
            engine = engine_of(lanes, together, timing.chip.width).within(part.network, budget.dsp - blocks)
            if engine is None or lanes * 8 % engine.width or engine.soft > _MOST_SOFT * lanes:
                continue
            room = words_of_maps(engine, part.network, device.family, int(_SHARE * budget.bram) - others)
            pace = cycles_of_beat(engine, part.network, timing)
            order = fastest(part.network, engine, room, pace) if room else None
            if order is not None:
                cycles = order.cycles(engine, pace)
                found.append((cycles, -lanes, engine, order))
                break  # fewer together are slower
    for cycles, _, engine, order in sorted(found, key=lambda each: each[:2]):
        try:
            yield int(cycles), fetch_weights(layers_in_turn(graph, part, engine, order, timing), dense, timing)
        except ModelRefused:  # the memory is too small
            continue
