"""What a board's link carries of a model's frames."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from hwflow.codegen.board.carriers import carrier_for
from hwflow.codegen.board.identity import Buffers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hwflow.api.request import Request
    from hwflow.ir.graph import Graph, Port

ZYNQ_BYTES = 8  # per cycle each way of a Zynq's memory port


def link_rate(request: Request, graph: Graph) -> float:
    """Return the frames per second that the link of the request's board carries at the most.

    Frames are taken without the padding of last beats, which only the design's lanes say.
    """
    board, clock = request.board, request.clock
    frame = _bytes(graph.inputs), _bytes(graph.outputs)
    if board.zynq is not None:
        return float(clock.frequency_hz * ZYNQ_BYTES / max(frame))
    carrier = carrier_for(board, clock.link_hz, request.link)
    return float(carrier.frames_per_second(*frame, Buffers.of(board.part).payload))


def _bytes(ports: Sequence[Port]) -> int:
    """Return the bytes of a frame of all streams."""
    return sum(prod(p.value.typed.shape) * -(-p.value.typed.element.bits // 8) for p in ports)
