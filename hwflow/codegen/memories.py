"""The memories of a design: queues, line buffers and tables, their storage and unused bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hdl_lib.memories.buffer_memory import memory_parts
from hdl_lib.memories.rom import banks_of
from hdl_lib.memories.storage import StorageStyle, style_of
from hwflow.cores import costs
from hwflow.cores.beat_movers import FifoAttributes, ForkAttributes, queue_styles
from hwflow.cores.matrix.depthwise import DepthwiseAttributes, buffers
from hwflow.cores.operator import Decision, MemoryFile
from hwflow.cores.windows.sliding_window import has_line_buffer, is_serial, is_whole, line_buffer_rows, steps_of
from hwflow.ir.graph import Node
from hwflow.schedule.plan import Plan


@dataclass(frozen=True)
class Memory:
    """A memory. ``kind``: "fifo", "line_buffer" or "table" (weights, parameters of requantizers). ``storage``: a
    :class:`hdl_lib.memories.storage.StorageStyle` but AUTO, or "logic". ``bits``: ``words * width``. ``block_rams``:
    the primitives it takes, each used as ``shape`` (words, bits). ``waste_bits``: the unused bits of those (of a table,
    beyond the bits that change) or of distributed RAM of 16 rows by 4 bits; 0 for registers and logic."""

    name: str
    kind: str
    words: int
    width: int
    bits: int
    storage: str
    block_rams: int
    shape: tuple[int, int] | None
    waste_bits: int


def memories(plan: Plan, files: Sequence[MemoryFile], family: str) -> list[Memory]:
    """Return every memory of a plan whose tables are ``files``, as the cost models assume it."""
    result = []
    for node in plan.graph.nodes:
        decision = plan[node]
        for index, depth in enumerate(decision.depths):
            width = decision.folding.output_lanes * node.outputs[index].typed.element.bits
            style = queue_style(node, decision, index)
            result.append(_of(family, node.outputs[index].name, "fifo", depth, width, style))
        if has_line_buffer(node):
            result += _line_buffers(node, decision, family)
    for file in files:
        words = len(file.words)
        changing = costs.changing_bits(file.words, file.width)
        in_block = costs.rom(family, words, file.width, changing, held=file.held).bram
        storage = StorageStyle.BLOCK if in_block else "logic"
        result.append(_of(family, file.name, "table", words, file.width, storage, changing.columns))
    return result


def memory_report(plan: Plan, files: Sequence[MemoryFile], family: str) -> dict[str, Any]:
    """Return the report's ``memories``: total bits of each kind, unused bits of block RAMs, every memory."""
    every = memories(plan, files, family)
    return {
        **{f"{kind}_bits": sum(m.bits for m in every if m.kind == kind) for kind in ("fifo", "line_buffer", "table")},
        "weight_bits": sum(len(f.words) * f.width for f in files if f.name.endswith("_weights")),
        "block_rams": sum(m.block_rams for m in every),
        "block_ram_waste_bits": sum(m.waste_bits for m in every if m.block_rams),
        "list": [asdict(m) for m in every],
    }


def queue_style(node: Node, decision: Decision, index: int) -> StorageStyle:
    """Return the storage of an output's queue."""
    style = StorageStyle.AUTO
    if isinstance(node.attributes, FifoAttributes):
        style = StorageStyle.BLOCK
    elif isinstance(node.attributes, ForkAttributes):
        style = queue_styles(node, decision)[index]
    return StorageStyle(style_of(1, decision.depths[index], style, block=False))  # type: ignore[no-untyped-call]  # no annotations there


def _line_buffers(node: Node, decision: Decision, family: str) -> list[Memory]:
    """Return one memory, or with whole windows per beat one for each row; none if a beat is a whole image."""
    folding = decision.folding
    if isinstance(node.attributes, DepthwiseAttributes):
        words, copies, width = buffers(node, decision)
        storage = _buffer_style(family, words, width)
        return [_of(family, f"{node.name}_{n}", "line_buffer", words, width, storage) for n in range(copies)]
    if is_whole(node, folding):
        return []
    rows = line_buffer_rows(node, decision)
    serial = is_serial(node, folding)
    width = folding.input_lanes * (node.outputs if serial else node.inputs)[0].typed.element.bits
    row = -(-node.inputs[0].typed.shape[1] // folding.input_lanes) if serial else 1
    row *= node.attributes.geometry.width if serial else steps_of(node, folding).words
    names, words = ([node.name], rows * row) if serial else ([f"{node.name}_{n}" for n in range(rows)], row)
    storage = StorageStyle.REGISTER if words == 1 else _buffer_style(family, words, width)
    return [_of(family, name, "line_buffer", words, width, storage) for name in names]


def _buffer_style(family: str, words: int, width: int) -> StorageStyle:
    return StorageStyle.BLOCK if costs.in_block_ram(family, words, width) else StorageStyle.LUTRAM


def _of(family: str, name: str, kind: str, words: int, width: int, storage: str, columns: int = 0) -> Memory:
    """Describe a memory. ``columns``: of a table, whose constant bits take no block RAM."""
    if storage == StorageStyle.LUTRAM and costs.FAMILIES[family].lutram is None:
        storage = StorageStyle.REGISTER
    blocks, shape, waste = 0, None, 0
    if storage == StorageStyle.BLOCK:
        if kind == "table":
            parts, columns = [-(-words // banks_of(width, words))], columns or width
        else:
            rows = max(2, words - 1) if kind == "fifo" else words  # the last beats of a queue are in registers
            parts, columns = memory_parts(width, rows), width
            if costs.in_block_ram(family, parts[0], width):  # the rest, if small, is in look-up tables
                parts = [part for part in parts if costs.in_block_ram(family, part, width)]
        _, shape = costs.block_ram_shape(family, parts[0], columns, writable=kind != "table")
        blocks = sum(costs.block_ram_shape(family, part, columns, writable=kind != "table")[0] for part in parts)
        waste = blocks * shape[0] * shape[1] - sum(parts) * columns
    elif storage == StorageStyle.LUTRAM:
        waste = 16 * -(-words // 16) * 4 * -(-width // 4) - words * width
    return Memory(name, kind, words, width, words * width, storage, blocks, shape, waste)
