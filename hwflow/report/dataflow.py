"""dataflow.json: the scheduled graph as a picture needs it, the time line of a frame, queues' fill, what limits.

The page and its tests are its only readers: its keys may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hwflow.cores.chain import ChainAttributes
from hwflow.cores.operator import beats
from hwflow.cores.registry import hardware
from hwflow.errors import Finding
from hwflow.ir.graph import Node, Value
from hwflow.schedule.faster import faster, slowest
from hwflow.schedule.schedule import Schedule
from hwflow.schedule.search.folding_search import RESOURCES, Chip
from hwflow.schedule.throughput.activity import BINS, Activity, activity

_MANY, _LEAST_BINS = 300, 24  # cores with whole time lines; of more each has a shorter one
LEVELS = 9  # of a core's work in a bin of time: the share of its cycles that have a step, in a digit


def dataflow(
    schedule: Schedule, part: Chip, findings: Iterable[Finding] = (), noise: Sequence[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return its contents; ``findings``: on the model; ``noise``: of its quantization, where it is known.

    Cores have the numbers of report.json's ``layers``; streams from the host and to it begin or end at -1. Cycles are
    counted from the frame's first input beat.
    """
    cores = {node: number for number, node in enumerate(schedule.plan.cores)}
    streams = _Streams(schedule, cores)
    seen = activity(schedule.plan, schedule.run, max(_LEAST_BINS, BINS * _MANY // max(_MANY, len(cores))))
    return {
        "format": 1,
        "cores": [{"shapes": [list(value.typed.shape) for value in node.outputs]} for node in cores],
        "streams": streams.rows,
        "limit": _limit(schedule, part, cores),
        "findings": [finding.table() for finding in findings],
        "noise": noise,
        "activity": None if seen is None else _activity(seen, cores, streams),
    }


def _members(node: Node) -> list[Node]:
    """Return the cores of a node of the scheduled graph: those of a chain, or itself."""
    return [m.node for m in node.attributes.members] if isinstance(node.attributes, ChainAttributes) else [node]


class _Streams:
    """The streams between cores; ``rows``: a table each. ``number``: of each value with a queue."""

    def __init__(self, schedule: Schedule, cores: dict[Node, int]) -> None:
        self.rows: list[dict[str, Any]] = []
        self.number: dict[Value, int] = {}
        plan, graph = schedule.plan, schedule.graph
        consumers, producers = graph.consumers(), graph.producers()
        for port in graph.inputs:
            for reader, _ in consumers[port.value]:
                self._add(port.value, -1, cores[_members(reader)[0]], plan.folding(reader).input_lanes, 0, port.name)
        for node in graph.nodes:
            inside = _members(node)
            for before, after in pairwise(inside):
                self._add(before.outputs[0], cores[before], cores[after], plan.folding(before).output_lanes, 0)
            for index, value in enumerate(node.outputs):
                self.number[value] = len(self.rows)
                lanes, depth = plan.folding(node).output_lanes, plan[node].depths[index]
                view = hardware(node.op).output_view(node, value.typed.shape, lanes)
                readers = [cores[_members(reader)[0]] for reader, _ in consumers[value]]
                for number in readers or [-1]:
                    self._add(value, cores[inside[-1]], number, lanes, depth)
                self.rows[self.number[value]]["beats"] = beats(view, lanes)
        for port in graph.outputs:
            if port.value in producers:
                self.rows[self.number[port.value]]["port"] = port.name

    def _add(self, value: Value, begin: int, end: int, lanes: int, depth: int, port: str = "") -> None:
        type_, carried = value.typed, value.carried
        self.rows.append({
            "from": begin, "to": end, "name": value.name, "port": port,
            "onnx": value.origin or (carried.name if carried is not None else ""), "shape": list(type_.shape),
            "bits": type_.element.bits, "signed": type_.element.signed,
            "interval": [type_.interval.lo, type_.interval.hi], "lanes": lanes, "depth": depth, "beats": None,
        })  # fmt: skip


def _limit(schedule: Schedule, part: Chip, cores: dict[Node, int]) -> dict[str, Any]:
    plan = schedule.plan
    limiting = slowest(plan)
    further = faster(schedule)
    whole = schedule.resources
    return {
        "circuit": schedule.limited_by_circuit,
        "cycles": max(map(plan.cycles, plan.graph.nodes)),
        "cores": [cores[core] for node in limiting for core in _members(node)],
        "faster": None if further is None else {
            "interval": further.interval,
            **{name: getattr(further.more, name) for name in RESOURCES},
            "lacks": [
                name for name in RESOURCES
                if getattr(whole, name) + getattr(further.more, name) > getattr(part, name)
            ],
        },
    }  # fmt: skip


def _activity(seen: Activity, cores: dict[Node, int], streams: _Streams) -> dict[str, Any]:
    width = (seen.cycles + 1 - seen.begin) / max(1, len(seen.cores[0].busy)) if seen.cores else 1.0
    return {
        "begin": seen.begin, "cycles": seen.cycles, "interval": seen.interval,
        "cores": [
            {
                "cores": [cores[core] for core in _members(each.node)], "start": each.start, "end": each.end,
                "steps": each.steps, "starved": each.starved, "blocked": each.blocked,
                "busy": "".join(map(str, np.ceil(np.clip(each.busy / width, 0, 1) * LEVELS - 1e-9).astype(int))),
            }
            for each in seen.cores
        ],
        "queues": [
            {"stream": streams.number[each.value], "most": int(each.fill.max()), "fill": each.fill.tolist()}
            for each in seen.queues
        ],
    }  # fmt: skip
