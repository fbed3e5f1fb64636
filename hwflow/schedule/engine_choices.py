"""Which engines could compute a network's layers in turn, the fastest first."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil

from hwflow.cores.engine.engine_layers import EngineLayer
from hwflow.cores.engine.engine_room import cycles_of_beat, order_beside, order_within
from hwflow.cores.engine.engines import Engine
from hwflow.cores.engine.layer_engine import LayerEngineAttributes
from hwflow.cores.engine.network_part import Network
from hwflow.cores.engine.strips import Order
from hwflow.cores.external.weight_memory import MemoryTiming, half_of
from hwflow.cores.registry import OPERATORS
from hwflow.ir.graph import Graph, Node
from hwflow.passes.outside.engine_parts import EnginePart, engine_parts, sources
from hwflow.passes.outside.fetch_weights import fetch_weights, follow_alone, may_be_fetched
from hwflow.passes.outside.layers_in_turn import BUSY, engine_of, layers_in_turn
from hwflow.passes.softmax_rows import softmax_rows
from hwflow.schedule.search.bounds import Bounds, block_bits
from hwflow.schedule.search.folding_search import Budget, Chip

_LANES = (16, 14, 12, 10, 8, 6, 4, 2)
_TOGETHER = (8, 6, 4, 2, 1)
_MOST_TOGETHER = {8: 6, 4: 8}  # by the bits of a weight
_ALIKE = 1.005  # times the cycles of the fastest
_SERIAL_LANES = 4
_LEAST_LAYERS = 2
_MOST_IN_FRONT = 0.1  # of all multiply-accumulates, on cores of their own
_FASTER = 0.92  # times the cycles: what cores in front must save, which make a design larger and harder to route
_LUT_IN_FRONT = 1280  # look-up tables of the budget for each multiplier in front of an engine
_LARGE = 1 << 16  # bits of a dense layer beside an engine that does not stay in block RAM
_FETCHED = 6  # block RAMs of one that does not, about
_QUEUES = 4  # block RAMs of weights on their way, and of the result
_WORTH = 0.95  # times the cycles: what the other half of the RAM must save
_SERIAL_QUEUES = 2  # the same of a serial engine
_MOST_SOFT = {8: 0.2, 4: 0.25}  # of the rows multiply in look-up tables: more are faster, but hardly routable


def engine_choices(
    graph: Graph, device: Chip, budget: Budget, timing: MemoryTiming, flash: MemoryTiming | None = None
) -> Iterator[EngineChoice]:
    """Yield the engines that have room, for all that they can compute, or for all behind some first layers: about the
    fastest first. Dense layers beside an engine have their weights in the memory, too. Where that is a part's own
    single-port RAM, this may have the maps, and a ``flash`` the weights."""
    graph = softmax_rows(graph)  # of frames that take long: a small core is fast enough
    parts = [part for source in sources(graph) for part in engine_parts(graph, source)]
    largest = max(parts, key=lambda part: part.network.weights, default=None)
    if largest is None or len(largest.network.layers) < _LEAST_LAYERS:
        return
    bounds, most = Bounds(graph, device, None), _MOST_IN_FRONT * sum(_macs(graph.nodes))
    found: list[_Candidate | EngineChoice] = []
    for part in parts:
        if part.source is largest.source and (part is largest or half_of(timing) is None):
            found += _candidates(graph, part, bounds, device, budget, timing, flash, 1)
        elif part.result is largest.result and sum(_macs(_in_front(graph, part))) <= most:
            found += _candidates(graph, part, bounds, device, budget, timing, flash, _FASTER)
    yield from _in_order(found)


@dataclass(frozen=True)
class _Candidate:
    """An ``engine`` whose design costs no less than an ``estimate``, and its choice (None: it has no room)."""

    engine: Engine
    estimate: float
    choice: Callable[[], EngineChoice | None]


def _in_order(candidates: Iterable[_Candidate | EngineChoice]) -> Iterator[EngineChoice]:
    """Yield choices, the fastest first. It takes long to find one: only those are looked for that may be the next."""
    number = count()
    heap = [(each.estimate, -each.engine.lanes, next(number), each) for each in candidates]
    heapq.heapify(heap)
    while heap:
        *_, best = heapq.heappop(heap)
        if isinstance(best, EngineChoice):
            yield best
        elif (choice := best.choice()) is not None:
            heapq.heappush(heap, (choice.estimate, -choice.engine.lanes, next(number), choice))


def _engine(network: Network, lanes: int, blocks: int, timing: MemoryTiming) -> tuple[float, Engine] | None:
    """Return the engine of so many lanes, with room in so many multiplier blocks, and about how many cycles it takes,
    were all maps inside; None if there is none. Of those that are about as fast so, it is the one of which the fewest
    results leave together."""
    found: list[tuple[float, Engine]] = []
    bits = network.weight_bits
    for together in (each for each in _TOGETHER if lanes % each == 0):
        engine = engine_of(lanes, together, timing.chip.width, weight_bits=bits).within(network, blocks)
        if engine is None or lanes * engine.weight_bits % engine.width or not _is_routable(engine):
            continue
        pace, made = cycles_of_beat(engine, network, timing), engine.network(network)
        shapes = enumerate(made.shapes[1:], 1)
        cycles = (
            engine.cycles(made, number, shape.rows, pace)
            for number, shape in shapes if isinstance(made.layers[number - 1], EngineLayer)
        )
        found.append((sum(cycles), engine))
    fastest = min((cycles for cycles, _ in found), default=0.0)
    alike = [each for each in found if each[0] <= _ALIKE * fastest]
    return min(alike, key=lambda each: each[1].together, default=None)


def _is_routable(engine: Engine) -> bool:
    """Tell whether few enough results leave together, and few enough rows are in look-up tables."""
    bits = engine.weight_bits
    return engine.together <= _MOST_TOGETHER[bits] and engine.soft <= _MOST_SOFT[bits] * engine.lanes


def _in_front(graph: Graph, part: EnginePart) -> Sequence[Node]:
    return graph.nodes[: next(number for number, node in enumerate(graph.nodes) if node in part.nodes)]


def _macs(nodes: Sequence[Node]) -> Iterator[int]:
    return (OPERATORS[node.op].macs(node) for node in nodes)


@dataclass(frozen=True)
class EngineChoice:
    """An engine for a part of a graph, about how many ``cycles`` a frame takes with it, the dense layers beside it, and
    the ``timing`` of what all weights are in. ``worth``: 1, or less of a design with cores in front of the engine,
    which is larger and harder to route."""

    graph: Graph
    part: EnginePart
    engine: Engine
    order: Order
    cycles: float
    dense: Mapping[str, int]
    timing: MemoryTiming
    worth: float = 1

    def cost(self, interval: float) -> float:
        """Return what counts where designs are compared, of one with such an interval."""
        return interval / self.worth

    @property
    def estimate(self) -> float:
        """Return about what its design costs."""
        return self.cost(self.cycles)

    def applied(self) -> tuple[Graph, int]:
        """Return the graph with the engine, and the cycles that this takes for a frame. Raises :class:`ModelRefused`
        where the memory is too small."""
        made = layers_in_turn(self.graph, self.part, self.engine, self.order, self.timing, self.dense)
        made = fetch_weights(made, self.dense, self.timing)
        attributes = (node.attributes for node in made.nodes)
        return made, next(each.pace.cycles for each in attributes if isinstance(each, LayerEngineAttributes))


def _waits(order: Order, engine: Engine, cycles_of_beat: float, in_front: float) -> float:
    """Return about how long an engine waits for cores in front of it, which take so many cycles: they compute a strip
    of the image while its first layers compute the one before."""
    first = replace(order, groups=order.groups[:1])
    return max(0.0, in_front - first.cycles(engine, cycles_of_beat))


def _candidates(
    graph: Graph, part: EnginePart, bounds: Bounds, device: Chip, budget: Budget, timing: MemoryTiming,
    flash: MemoryTiming | None, worth: float,
) -> Iterator[_Candidate | EngineChoice]:
    """Yield the engines that may have room for a part, one for each number of lanes."""
    bits, beside = bounds.least_bits(), [node for node in graph.nodes if node not in part.nodes]
    dense = {
        node.name: 1 for node in beside
        if may_be_fetched(node, timing.chip.width) and node.outputs[0].typed.shape[0] == 1 and bits[node] > _LARGE
    }
    words = sum(bits[node] for node in beside if node.name in dense) / timing.chip.width
    behind = follow_alone(graph, part.result, dense)
    others = ceil(sum(bits[node] for node in beside if node.name not in dense) / block_bits(device))
    others += _FETCHED * len(dense) + _QUEUES
    blocks = sum(bounds.least_of(node, "dsp") for node in beside)
    in_front = sum(_macs(_in_front(graph, part))) * _LUT_IN_FRONT / max(1, budget.lut)
    waits = all(part.source is not port.value for port in graph.inputs)
    outside = half_of(timing) is None  # a part's own RAM is small
    for lanes in _LANES:
        made = _engine(part.network, lanes, budget.dsp - blocks, timing)
        if made is None:
            continue

        def choice(engine: Engine = made[1]) -> EngineChoice | None:
            pace = cycles_of_beat(engine, part.network, timing)
            order = order_within(
                engine, part.network, device.family, budget.bram - others, pace, waits=waits, outside=outside
            )
            if order is None:
                return None
            shared = pace * (1 if behind else 1 + words / (BUSY * order.cycles(engine, pace)))
            cycles = order.cycles(engine, shared) + _waits(order, engine, shared, in_front)
            return EngineChoice(graph, part, engine, order, cycles, dense, timing, worth)

        yield _Candidate(made[1], max(in_front, made[0]) / worth, choice)
    # Half of a part's own RAM has the maps, and the other half the weights; or all of it has maps.
    half = half_of(timing)
    least: float | None = None  # cycles of an engine with its weights in flash, beside which an image can wait
    for memory, share in ((half, 2), (half and flash, 2), (half and flash, 1)):
        if memory is None:
            continue
        serial = engine_of(_SERIAL_LANES, 1, memory.chip.width, serial=True).within(part.network, budget.dsp - blocks)
        if serial is None:
            return
        pace = cycles_of_beat(serial, part.network, memory)
        left = budget.bram - _SERIAL_QUEUES - sum(bounds.least_of(node, "bram") for node in beside)
        room = timing.chip.bytes // share // serial.lanes
        order = order_beside(serial, part.network, device.family, room, left, pace, waits=waits)
        cycles = None if order is None else order.cycles(serial, pace)
        if order is None or cycles is None or (least is not None and cycles > _WORTH * least):
            continue
        if memory is flash:
            least = cycles
        yield EngineChoice(graph, part, serial, order, in_front + cycles, dense, memory, worth)
