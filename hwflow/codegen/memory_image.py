"""What is said of a design's memory outside the device."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from hdl_lib.external.sdram import SdramTiming
from hdl_lib.external.spi_flash import SpiFlashTiming
from hdl_lib.external.spram import SpramTiming
from hdl_lib.external.weight_memory import LOADED, image_words
from hwflow.codegen.emitted.packaging import OWN_NAMES, Packaging
from hwflow.cores.external.weight_memory import (
    MemoryPlan,
    MemoryTiming,
    WeightMemoryAttributes,
    image_of,
    plan_of,
    timing_of,
)
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Graph, Node

_KINDS: Mapping[type[MemoryTiming], str] = {SdramTiming: "sdram", SpramTiming: "spram", SpiFlashTiming: "flash"}
"""Kinds of memories, and the models of simulations."""

IMAGE = "memory_image"
"""The table that the memory holds."""

FLASH_IMAGE = "board/flash.bin"
"""The same as what is written to a flash, byte by byte."""

_INITIAL_ROUNDS = 4  # in which every queue has its bursts
_BETWEEN = 16  # cycles at the most between two bursts that are read to be compared


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


def image_bytes(memory: Node[WeightMemoryAttributes]) -> bytes:
    """Return the image byte by byte, the lowest of a word first."""
    return image_of(memory).astype(f"<u{timing_of(memory).chip.width // 8}").tobytes()


def memory_table(
    graph: Graph, memory: Node[WeightMemoryAttributes], packaging: Packaging = OWN_NAMES
) -> dict[str, Any]:
    """Return the manifest's `memory`: the chip, the image, where a flash has it and after how many cycles it has been
    read back, which stream has how many words, the queues that lie there, the line buffers whose rows are among them,
    for how many vectors each node's weights are fetched, the engines for layers in turn, and the parameters of the
    model for simulators."""
    timing, plan = timing_of(memory), plan_of(memory)
    chip = timing.chip
    outside = [(node.name, hardware(node.op).outside(node)) for node in graph.nodes]

    def of_nodes(key: str) -> dict[str, Any]:
        return {name: said[key] for name, said in outside if key in said}

    return {
        "chip": chip.name,
        "kind": _KINDS[type(timing)],
        "image": packaging.weights(IMAGE),
        **({"flash": _flash_table(timing, plan)} if isinstance(timing, SpiFlashTiming) else {}),
        "words": image_words(plan),
        "word_bits": chip.width,
        "round": plan.round,
        "regions": [
            {"words": region.words, "times": region.times, "burst": region.burst, "page": region.page}
            for region in plan.regions
        ],
        "queues": list(of_nodes("queues").values()),
        "rows": list(of_nodes("rows")),
        "groups": of_nodes("groups"),
        "engines": list(of_nodes("engines").values()),
        "model": _parameters(timing, plan),
    }


def _flash_table(timing: SpiFlashTiming, plan: MemoryPlan) -> dict[str, Any]:
    bursts = image_words(plan) // LOADED
    cycles = timing.setup_cycles + bursts * (timing.burst_cycles(LOADED) + _BETWEEN)
    return {"file": FLASH_IMAGE, "offset": timing.chip.offset, "check_cycles": cycles}


def _parameters(timing: MemoryTiming, plan: MemoryPlan) -> dict[str, int]:
    """Return the parameters of the memory's model."""
    if isinstance(timing, SpramTiming):
        return {"WIDTH": timing.chip.width, "WORDS": timing.chip.words, "IMAGE": image_words(plan)}
    clock_ps = ceil(Fraction(10**12) / timing.clock_hz)
    if isinstance(timing, SpiFlashTiming):
        return {
            "WORDS": image_words(plan), "OFFSET": timing.chip.offset, "CLOCK_PS": clock_ps,
            "T_RES1": round(1000 * timing.chip.wake), "T_CSH": round(1000 * timing.chip.deselect),
        }
    assert isinstance(timing, SdramTiming), "there are three kinds"
    chip = timing.chip
    times = {
        "RCD": chip.rcd, "RP": chip.rp, "RAS": chip.ras, "RC": chip.rc, "WR": chip.wr, "RFC": chip.rfc,
        "REFRESH": chip.refresh, "POWER_UP": chip.power_up,
    }
    return {
        "BANKS": chip.banks, "ROWS": chip.rows, "COLUMNS": chip.columns, "WIDTH": chip.width, "PAGES": plan.pages,
        "CAS": timing.cas, "CLOCK_PS": clock_ps,
        **{f"T_{name}": round(1000 * value) for name, value in times.items()},
    }
