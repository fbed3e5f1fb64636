"""Evaluate every folding of every node under the cost model: the longest part of a search, and parallel by node."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from hwflow.cores.beat_movers import FrameSyncAttributes, ViewAttributes
from hwflow.cores.operator import Decision, Device, Folding, Resources, beats, beats_of_view
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Graph, IntArray, Node, Scratch, Value
from hwflow.processes import shared

PROVISIONAL_DEPTH = 2  # greatest FIFO depth assumed before depths are computed


class Explored(NamedTuple):
    """A node's foldings, their ``needs`` [foldings, resources] and ``cycles``."""

    foldings: list[Folding]
    needs: IntArray
    cycles: IntArray


class _Job(NamedTuple):
    """A node, the indices of its inputs that are graph inputs, and the device."""

    node: Node
    synchronised: tuple[int, ...]
    device: Device


def explore_foldings(graph: Graph, device: Device, executor: Executor | None) -> list[Explored]:
    """Return the foldings of every node of a graph, in its order; computed here and by ``executor``, once: the bounds
    before the search need them, too."""
    jobs = [_Job(node, graph_inputs(graph, node), device) for node in graph.nodes]
    new = [job for job in jobs if job[1:] not in job.node.once(_known)]
    for job, found in zip(new, shared(_explored, new, executor, _weight), strict=True):
        job.node.once(_known)[job[1:]] = found
    return [job.node.once(_known)[job[1:]] for job in jobs]


def _known(node: Node) -> dict[tuple[tuple[int, ...], Device], Explored]:
    """Return what is known of a node's foldings, by what a :class:`_Job` says besides."""
    return Scratch()


def graph_inputs(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return the indices of a node's inputs that are graph inputs."""
    return tuple(k for k, value in enumerate(node.inputs) if any(port.value is value for port in graph.inputs))


def resources(node: Node, folding: Folding, synchronised: Sequence[int], device: Device) -> Resources:
    """Return the resources of a node, including the frame synchronisers of the graph inputs that it reads."""
    chosen = hardware(node.op).as_chosen(node, folding)
    return _resources(*chosen, hardware(node.op).cycles(*chosen), synchronised, device)


def _resources(node: Node, folding: Folding, cycles: int, synchronised: Sequence[int], device: Device) -> Resources:
    core = hardware(node.op)
    depths = tuple(_least_depth(beats(value.typed.shape, folding.output_lanes), cycles) for value in node.outputs)
    total = core.resources(node, Decision(folding, depths, provisional=True), device)
    for index in synchronised:
        value = node.inputs[index]
        lanes = core.lanes_of(node, index, folding)
        view = core.input_view(node, value.typed.shape, lanes, whole_vector=folding.whole_vector, index=index)
        # Of frames of one beat it has no queue in front of a chain.
        joined = beats_of_view(view, lanes) == 1 and len(node.inputs) == 1 and core.is_steady(node, folding)
        depth = 0 if joined else PROVISIONAL_DEPTH
        total += inserted(FrameSyncAttributes(view), value, Folding(lanes, lanes), device, depth)
    return total


def inserted(
    attributes: ViewAttributes, value: Value, folding: Folding, device: Device, depth: int = PROVISIONAL_DEPTH
) -> Resources:
    """Return the resources of a node that the plumbing would insert, with queues of this ``depth``."""
    node = Node("", [value], [value], attributes)
    return hardware(node.op).resources(node, Decision(folding, (depth,), provisional=True), device)


def _explored(job: _Job) -> Explored:
    core = hardware(job.node.op)
    foldings = list(core.foldings(job.node, job.device))
    chosen = [core.as_chosen(job.node, folding) for folding in foldings]
    cycles = [core.cycles(*each) for each in chosen]
    needs = [
        _resources(*each, count, job.synchronised, job.device) for each, count in zip(chosen, cycles, strict=True)
    ]
    return Explored(foldings, np.array(needs, dtype=np.int64), np.array(cycles, dtype=np.int64))


def _least_depth(made: int, cycles: int) -> int:
    """Return the depth with which a queue passes on ``made`` beats in ``cycles``: a beat occupies an entry for one
    cycle, and for another until its credit is back."""
    return max(1, min(PROVISIONAL_DEPTH, -(-2 * made // cycles)))


def _weight(job: _Job) -> int:
    """Estimate the relative cost of exploring a node."""
    return sum(int(getattr(value, "size", 0)) for value in vars(job.node.attributes).values())
