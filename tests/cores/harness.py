"""One harness for every hardware operator: a case is a node, what follows here is how any case is run.

Streams are driven beat by beat: surplus lanes of a pixel's last beat carry random bits on the way in and are not looked
at on the way out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hwflow.cores.operator import Built, Decision, Folding
from hwflow.cores.registry import hardware
from hwflow.cores.tables_inside import write_out
from hwflow.ir.graph import Graph, IntArray, Node, Port, Recurring, Stage, Value, identity_order
from hwflow.schedule.plan import Plan
from hwflow.schedule.throughput.evaluate import Run, evaluate
from hwflow.types import TensorType
from tests.attributes import attributes_of
from tests.hdl_lib import bench, protocol
from tests.hdl_lib.cycles import Cycles

FRAMES = 3
GENEROUS = 40  # queue depth that never holds a small core up


Frames = list[IntArray]
"""For each input [frames, pixels, channels]."""


@dataclass(frozen=True)
class Case:
    """A hardware node: operator, attributes, type of its first input, foldings to build it with, types of the further
    inputs.

    ``rows``, ``styles``: of the core's :class:`hwflow.cores.operator.Decision`.

    ``corners(node)``: frames whose results must reach both ends of every output channel's interval (one array per node
    with one input, else one for each input), or None where the operator's interval is only a bound.
    """

    name: str
    op: str
    attributes: dict[str, Any]
    source: TensorType
    foldings: tuple[Folding, ...]
    corners: Callable[[Node], IntArray | Frames] | None = None
    others: tuple[TensorType, ...] = ()
    rows: int | None = None
    styles: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[TensorType, ...]:
        """The types of all inputs."""
        return (self.source, *self.others)

    def corner_frames(self, node: Node) -> Frames:
        """As ``corners`` gives them, one array per input."""
        assert self.corners is not None, "only where there are corners"
        frames = self.corners(node)
        return frames if isinstance(frames, list) else [frames]

    def decision(self, folding: Folding, depth: int) -> Decision:
        """With queues of ``depth`` beats, but for a frame synchroniser's, which is fixed."""
        outputs = int(self.attributes.get("outputs", 1))
        return Decision(folding, (2 if self.op == "frame_sync" else depth,) * outputs, self.styles, self.rows)

    def node(self) -> Node:
        """A new node with types inferred."""
        operator = hardware(self.op)
        attributes = operator.derive(attributes_of(self.op, **self.attributes), self.sources)
        outputs = [Value(f"y{k}", t) for k, t in enumerate(operator.infer(attributes, self.sources))]
        return Node("core", [Value(f"x{k}", t) for k, t in enumerate(self.sources)], outputs, attributes)


def random_frames(case: Case, count: int, seed: int) -> Frames:
    """Frames within each channel's interval."""
    rng = np.random.default_rng(seed)
    return [rng.integers(*_ends(source), (count, *source.shape), endpoint=True) for source in case.sources]


def extreme_frames(case: Case, seed: int) -> Frames:
    """All least, all greatest, and two of random choices between the two."""
    rng = np.random.default_rng(seed)
    frames = []
    for source in case.sources:
        low, high = _ends(source)
        picks = np.concatenate(
            [np.zeros((1, *source.shape)), np.ones((1, *source.shape)), rng.integers(0, 2, (2, *source.shape))]
        )
        frames.append(np.where(picks > 0, high, low))
    return frames


def _ends(source: TensorType) -> tuple[IntArray, IntArray]:
    """Least and greatest value of each channel."""
    ranges = source.channel_intervals(1)
    return np.array([r.lo for r in ranges], dtype=np.int64), np.array([r.hi for r in ranges], dtype=np.int64)


def together(*parts: Frames) -> Frames:
    """Frames after one another."""
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


def golden(node: Node, frames: Frames) -> list[IntArray]:
    """Results of the operator's evaluate, one array per output."""
    return list(hardware(node.op).evaluate(node.attributes, frames))


def beats_of(frames: IntArray, type_: TensorType, view: tuple[int, int], lanes: int, seed: int) -> list[int]:
    """Frames, seen as [frames, pixels, channels] by the core, to payloads; random bits in surplus lanes."""
    rng = random.Random(seed)
    bits, channels = type_.element.bits, view[1]
    beats = []
    for pixel in frames.reshape(-1, channels).tolist():
        for start in range(0, channels, lanes):
            values = pixel[start : start + lanes]
            values += [rng.getrandbits(bits) for _ in range(lanes - len(values))]
            beats.append(bench.pack(values, bits))
    return beats


def frames_of(beats: Sequence[int], type_: TensorType, view: tuple[int, int], lanes: int) -> IntArray:
    """Payloads of pixels as the core sees them back to [frames, pixels, channels]; surplus lanes are dropped."""
    pixels, channels = view
    blocks = -(-channels // lanes)
    values = [bench.unpack(b, type_.element.bits, lanes, signed=type_.element.signed) for b in beats]
    array = np.array(values, dtype=np.int64).reshape(-1, pixels, blocks * lanes)
    return array[:, :, :channels].reshape(-1, *type_.shape)


def with_words(built: Built) -> Built:
    """The same core with every table that is read from a file written out: what Amaranth's simulator can run."""
    write_out(built.component, built.files)
    return built


@dataclass
class Bench:
    """A case at one folding and with queues of ``depth`` beats, ready for frames."""

    case: Case
    folding: Folding
    depth: int
    node: Node = field(init=False)

    def __post_init__(self) -> None:
        self.node = self.case.node()

    @property
    def decision(self) -> Decision:
        return self.case.decision(self.folding, self.depth)

    @cached_property
    def built(self) -> Built:
        """What :meth:`core` has compiled."""
        return self.build()

    @cached_property
    def core(self) -> Cycles:
        """The core, compiled once for all that is done with it."""
        return Cycles(self.built.component)

    def build(self) -> Built:
        return with_words(hardware(self.case.op).build(self.node, self.decision, "core"))

    def offered(self, frames: Frames, seed: int) -> list[list[int]]:
        """The payloads of each input's frames; a frame synchroniser's carry the mark above the data."""
        whole = self.folding.whole_vector
        operator = hardware(self.case.op)
        beats = []
        for index, (array, source) in enumerate(zip(frames, self.case.sources, strict=True)):
            lanes = operator.lanes_of(self.node, index, self.folding)
            view = operator.input_view(self.node, source.shape, lanes, whole_vector=whole, index=index)
            beats.append(beats_of(array, source, view, lanes, seed + index))
        if self.case.op == "frame_sync":
            bits = self.folding.input_lanes * self.case.source.element.bits
            last, mark = len(beats[0]) // len(frames[0]), 1 << bits
            beats[0] = [b | (mark if n % last == last - 1 else 0) for n, b in enumerate(beats[0])]
        return beats

    def run(self, runs: Sequence[tuple[Frames, float, float]], output: int = 0, before: int = 0) -> list[bench.Trace]:
        """What comes out of one output, with the protocol watched: frames, with gaps and stalls of these
        probabilities, one run after the other. ``before``: cycles between reset and the first."""
        outputs = list(self.built.outputs)
        watched = outputs.pop(output)
        return bench.drive_in_turn(
            self.core,
            [
                bench.Run(
                    self.offered(frames, seed), self._beats(output) * len(frames[0]), gap, stall, seed,
                    before if seed == 0 else 0, isinstance(self.node.attributes, Recurring),
                )
                for seed, (frames, gap, stall) in enumerate(runs)
            ],
            self.built.inputs,
            watched,
            willing=outputs,
        )

    def run_after_reset(self, frames: Frames, seed: int, output: int = 0) -> list[int]:
        """Beats of one output, of frames that follow a reset in the middle of others."""
        outputs = list(self.built.outputs)
        watched = outputs.pop(output)
        first, *others = self.offered(frames, seed)
        cycles = hardware(self.case.op).cycles(self.node, self.folding)
        return protocol.after_reset(
            self.core,
            first,
            self._beats(output) * len(frames[0]),
            seed=seed,
            i=self.built.inputs[0],
            o=watched,
            more=list(zip(self.built.inputs[1:], others, strict=True)),
            willing=outputs,
            slow=1 + cycles * len(frames[0]) // (100 * len(first)),
        )

    def check_no_paths(self) -> None:
        """No combinational path through the core."""
        protocol.check_no_paths(self.core, inputs=self.built.inputs, outputs=self.built.outputs)

    def values(self, beats: Sequence[int], output: int = 0) -> IntArray:
        return frames_of(
            beats, self.node.outputs[output].typed, self._output_view(output), self.folding.output_lanes
        )

    def predicted(self, frames: int) -> Run:
        """The scheduler's model of a graph that is this node alone."""
        return evaluate(Plan(single_node_graph(self.node), {self.node: self.decision}), frames)

    def _beats(self, output: int) -> int:
        pixels, channels = self._output_view(output)
        return int(pixels * -(-channels // self.folding.output_lanes))

    def _output_view(self, output: int) -> tuple[int, int]:
        shape = self.node.outputs[output].typed.shape
        return hardware(self.case.op).output_view(self.node, shape, self.folding.output_lanes)


def single_node_graph(node: Node) -> Graph:
    """A scheduled graph of one node."""

    def port(value: Value) -> Port:
        return Port(value.name, value, value.typed.shape, identity_order(value.typed.shape))

    return Graph("single", Stage.SCHEDULED, [port(v) for v in node.inputs], [port(v) for v in node.outputs], [node])
