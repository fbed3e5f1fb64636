"""Let an engine compute a part of a graph, layer by layer, with weights from memory outside. Requires and ensures:
single-consumer.

The part becomes one node (:mod:`hwflow.cores.engine.layer_engine`), and another one brings its weights. When these can
come depends on all that lies in the memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import gcd

from hwflow.cores.engine.engines import Engine, SerialEngine
from hwflow.cores.engine.layer_engine import LayerEngineAttributes, Made
from hwflow.cores.engine.strips import Order
from hwflow.cores.engine.weight_stream import weight_stream
from hwflow.cores.external.weight_memory import MemoryTiming, Waiting, WeightMemoryAttributes
from hwflow.cores.matrix.dot_products import weight_type
from hwflow.cores.registry import OPERATORS
from hwflow.ir.graph import Graph, Names, Node, Value
from hwflow.passes.outside.engine_parts import EnginePart, engine_parts, sources
from hwflow.passes.outside.memory_shared import memory_shared
from hwflow.passes.softmax_rows import softmax_rows

ENGINE, MEMORY = "engine", "memory"
"""Of the node that computes the layers, and of the one that brings their weights."""

_LONGEST_BURST = 255  # words

BUSY = 0.7
"""Words of weights that count in sharing the memory, of an engine's cycles: it waits for some of its own, though it has
time for many more."""


def engine_of(
    lanes: int, together: int, width: int, soft: int = 0, serial: bool = False, *, weight_bits: int = 8
) -> Engine:
    """Return an engine that takes weights from a memory with words of ``width`` bits. They have ``weight_bits`` where
    those of a row are whole words; those of a serial engine are bytes."""
    if serial:
        return SerialEngine(lanes, together, width, 2 + _LONGEST_BURST * width // (2 * lanes * 8))
    weight_bits = 8 if lanes * weight_bits % width else weight_bits
    spare = 2 + _LONGEST_BURST * width // (lanes**2 * weight_bits)
    return Engine(lanes, together, width, spare, soft, weight_bits)


def layers_in_turn(
    graph: Graph, part: EnginePart, engine: Engine, order: Order, timing: MemoryTiming | None,
    beside: Iterable[str] = (),
) -> Graph:
    """Return a copy of a dataflow graph in which an ``engine`` computes a ``part``, in this ``order``. ``timing``: of
    the memory (None: the graph is only evaluated); ``beside``: the nodes whose weights will lie there, too. Raises
    :class:`ModelRefused` where the memory is too small."""
    program = order.program(engine)
    graph, names = graph.copy(), {node.name for node in part.nodes}
    origins: list[str] = []
    values = {value.name: value for value in graph.values()}
    for node in graph.nodes:
        origins += node.sources if node.name in names else []
    graph.nodes = [node for node in graph.nodes if node.name not in names]
    used = Names([node.name for node in graph.nodes] + list(values))
    stream = Value(used.fresh(f"{ENGINE}_weights"), None, part.result.origin)
    # A word of the memory has as many numbers of each stream: those of the widest.
    wider = any(weight_type(node).bits > engine.weight_bits for node in graph.nodes if node.name in beside)
    fetched = weight_stream(program, order.network, order.made, as_bytes=wider)
    if timing is not None:
        fetched = replace(fetched, wanted=int(BUSY * order.cycles(engine, 1.0)))
    maps = _waiting_maps(order, engine)
    memory = Node(used.fresh(MEMORY), [], [stream], WeightMemoryAttributes(timing, (fetched,), engine.longest, maps))
    (stream.type,) = OPERATORS[memory.op].infer(memory.attributes, [])
    plan = None if timing is None else memory_shared(graph, memory)
    source, result = values[part.source.name], values[part.result.name]
    kind = engine.lanes, engine.together, engine.width, engine.soft, isinstance(engine, SerialEngine)
    made = Made(part.source.name, part.result.name, kind, order.strips, order.outside)
    attributes = LayerEngineAttributes(plan, part.network.layers, part.result.typed, program, made)
    node = Node(used.fresh(ENGINE), [source, stream], [result], attributes, tuple(dict.fromkeys(origins)))
    place = next((index + 1 for index, each in enumerate(graph.nodes) if source in each.outputs), 0)
    graph.nodes[place:place] = [memory, node]
    return graph


def _waiting_maps(order: Order, engine: Engine) -> tuple[Waiting, ...]:
    """Return the queue of the maps that wait in the memory, if some do."""
    program = order.program(engine)
    if not program.levels:
        return ()
    each = program.beats_of_map_word
    unit = gcd(*(engine.words(order.network.shapes[number]) for number in order.outside))
    return (Waiting(each * program.stored, each * max(program.levels), program.width, each * unit),)


def layers_as_made(graph: Graph, made: Made | None, beside: Iterable[str]) -> Graph:
    """Return a copy of a dataflow graph with the engine that another one of the same model has; None: it has none.
    ``beside``: as :func:`layers_in_turn`."""
    if made is None:
        return graph
    graph = softmax_rows(graph)
    part = next(
        (
            part for source in sources(graph) if source.name == made.source
            for part in engine_parts(graph, source) if part.result.name == made.result
        ),
        None,
    )
    if part is None:
        return graph
    engine = engine_of(*made.engine, weight_bits=part.network.weight_bits)
    order = Order.of(engine.network(part.network), made.strips, made.outside)
    return layers_in_turn(graph, part, engine, order, None, beside)
