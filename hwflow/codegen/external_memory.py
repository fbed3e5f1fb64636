"""What is said of a design's memory outside the device."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from hdl_lib.external.sdram import SdramTiming
from hdl_lib.external.spram import SpramTiming
from hdl_lib.external.weight_memory import image_words
from hwflow.codegen.emitted.packaging import OWN_NAMES, Packaging
from hwflow.cores.engine.layer_engine import LayerEngineAttributes
from hwflow.cores.external.fetched_matrix import FetchedMatrixAttributes
from hwflow.cores.external.fetched_row import FetchedRowAttributes
from hwflow.cores.external.memory_queue import MemoryQueueAttributes
from hwflow.cores.external.weight_memory import (
    MemoryPlan,
    MemoryTiming,
    WeightMemoryAttributes,
    image_of,
    plan_of,
    timing_of,
)
from hwflow.cores.windows.sliding_window import SlidingWindowAttributes
from hwflow.ir.graph import Graph, Node

_SDRAM, _SPRAM = "sdram", "spram"  # kinds of memories, and the models of simulations

IMAGE = "memory_image"
"""The table that the memory holds."""

_INITIAL_ROUNDS = 4  # in which every queue has its bursts


def memory_of(graph: Graph) -> Node[WeightMemoryAttributes] | None:
    """Return the node of a scheduled graph that has the memory, if there is one."""
    return next((node for node in graph.nodes if isinstance(node.attributes, WeightMemoryAttributes)), None)


def ready_cycles(memory: Node[WeightMemoryAttributes]) -> int:
    """Return the cycles from reset until a memory that has its image has been set up and its streams wait."""
    return timing_of(memory).setup_cycles + _INITIAL_ROUNDS * plan_of(memory).round


def image_text(memory: Node[WeightMemoryAttributes]) -> str:
    """Return the image as a ``$readmemh`` file: a word a line, address 0 first."""
    image, size = image_of(memory), timing_of(memory).chip.width // 8
    digits = np.frombuffer(image.astype(f">u{size}").tobytes().hex().encode(), dtype=np.uint8)
    lines = np.full((len(image), 2 * size + 1), ord("\n"), dtype=np.uint8)
    lines[:, :-1] = digits.reshape(len(image), 2 * size)
    return lines.tobytes().decode()


def memory_table(
    graph: Graph, memory: Node[WeightMemoryAttributes], packaging: Packaging = OWN_NAMES
) -> dict[str, Any]:
    """Return the manifest's `memory`: the chip, the image, which stream has how many words, the queues that lie there,
    the line buffers whose rows are among them, for how many vectors each node's weights are fetched, the engines for
    layers in turn, and the parameters of the model for simulators."""
    timing, plan = timing_of(memory), plan_of(memory)
    chip = timing.chip
    return {
        "chip": chip.name,
        "kind": _SPRAM if isinstance(timing, SpramTiming) else _SDRAM,
        "image": packaging.weights(IMAGE),
        "words": image_words(plan),
        "word_bits": chip.width,
        "round": plan.round,
        "regions": [
            {"words": region.words, "times": region.times, "burst": region.burst, "page": region.page}
            for region in plan.regions
        ],
        "queues": [
            {"value": queue.value} | {name: getattr(queue.region, name) for name in ("words", "slots", "burst", "page")}
            for queue in (node.attributes for node in graph.nodes) if isinstance(queue, MemoryQueueAttributes)
        ],
        "rows": [
            node.name for node in graph.nodes
            if isinstance(node.attributes, SlidingWindowAttributes) and node.attributes.stacked > 1
        ],
        "groups": {
            node.name: node.attributes.group
            for node in graph.nodes if isinstance(node.attributes, FetchedMatrixAttributes | FetchedRowAttributes)
        },
        "engines": [
            node.attributes.made.table() | {"layers": len(node.attributes.layers)}
            for node in graph.nodes if isinstance(node.attributes, LayerEngineAttributes)
        ],
        "model": _parameters(timing, plan),
    }


def _parameters(timing: MemoryTiming, plan: MemoryPlan) -> dict[str, int]:
    """Return the parameters of the memory's model."""
    if isinstance(timing, SpramTiming):
        return {"WIDTH": timing.chip.width, "WORDS": timing.chip.words, "IMAGE": image_words(plan)}
    assert isinstance(timing, SdramTiming), "there are two kinds"
    chip = timing.chip
    times = {
        "RCD": chip.rcd, "RP": chip.rp, "RAS": chip.ras, "RC": chip.rc, "WR": chip.wr, "RFC": chip.rfc,
        "REFRESH": chip.refresh, "POWER_UP": chip.power_up,
    }
    return {
        "BANKS": chip.banks, "ROWS": chip.rows, "COLUMNS": chip.columns, "WIDTH": chip.width, "PAGES": plan.pages,
        "CAS": timing.cas, "CLOCK_PS": ceil(Fraction(10**12) / timing.clock_hz),
        **{f"T_{name}": round(1000 * value) for name, value in times.items()},
    }
