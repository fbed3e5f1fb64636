"""What an engine and the memory beside it agree on: the queue of its maps there, and when its weights come."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from hdl_lib.engine.pace import Pace, Turns
from hdl_lib.external.fetch_plan import QueueRegion, Region
from hwflow.cores.engine.engines import Engine
from hwflow.cores.engine.layer_engine import LayerEngineAttributes
from hwflow.cores.engine.strips import Order
from hwflow.cores.external.weight_memory import MemoryPlan, Waiting


def waiting_maps(order: Order, engine: Engine) -> tuple[Waiting, ...]:
    """Return the queue of the maps that wait in the memory, if some do."""
    program = order.program(engine)
    if not program.levels:
        return ()
    each = program.beats_of_map_word
    unit = gcd(*(engine.words(order.network.shapes[number]) for number in order.outside))
    return (Waiting(each * program.stored, each * max(program.levels), program.width, each * unit),)


def paced_by(engine: LayerEngineAttributes, plan: MemoryPlan, index: int) -> LayerEngineAttributes:
    """Return an engine that knows the memory's plan, in which its weights are the region ``index``, and its pace."""
    engine = replace(engine, plan=plan)
    return replace(engine, pace=Pace.of(engine.program, _turns(plan, plan.regions[index], engine.maps)))


def _turns(plan: MemoryPlan, weights: Region, maps: QueueRegion | None) -> Turns:
    """Return how the memory serves an engine."""
    beat, by_layer = plan.timing.word_cycles, weights.parts is not None
    if maps is None:
        return Turns(weights.burst, plan.round, beat, by_layer=by_layer)
    between, move = plan.round_between_moves(maps), plan.move(maps, weights)
    return Turns(weights.burst, between, beat, maps.burst, move, plan.late, by_layer)
