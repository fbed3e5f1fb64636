"""The meaning of timings, by itself: processes and queues, simulated cycle by cycle; random networks of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hwflow.cores.operator import Decision, Folding
from hwflow.cores.timing import Process, Timing, Wait
from hwflow.ir.graph import Attributes, Graph, Node, Port, Stage, Value, identity_order
from hwflow.schedule.plan import Plan
from hwflow.types import Interval, IntType, TensorType

LANE = Folding(1, 1)
BEFORE = 300  # cycles between reset and the first input beat
ANY = TensorType((1, 1), IntType(1, False), Interval(0, 1))


@dataclass(frozen=True, eq=False)
class Timed(Attributes):
    """``timing``: of the node's core."""

    op = "any"
    timing: Timing


class Operator:
    """An operator whose nodes carry their timing as an attribute, with steps of their own and depths to choose."""

    follows = None

    @staticmethod
    def timing(node: Node, decision: object) -> Timing:
        timing: Timing = node.attributes.timing
        return timing

    @staticmethod
    def fixed_depth(node: Node, index: int) -> None:
        return None

    @staticmethod
    def depth_behind(node: Node) -> None:
        return None


# --- the second implementation ------------------------------------------------------------------------------------


@dataclass
class Queue:
    """Beats between two steps: when each was produced (with latency: when it can be seen) and when it was taken."""

    depth: int
    latency: int
    seen: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)

    def has_room(self, cycle: int) -> bool:
        freed = len(self.seen) - self.depth  # this beat's credit is the one that beat gave back
        return freed < 0 or (freed < len(self.taken) and self.taken[freed] + 1 <= cycle)

    def has_beat(self, cycle: int) -> bool:
        return len(self.taken) < len(self.seen) and self.seen[len(self.taken)] <= cycle


Done = dict[tuple[Node, int], list[int]]  # the cycle of each step of a node's process, frame after frame


def simulate(
    plan: Plan, frames: int, before: int = BEFORE, seen: tuple[Done, dict[Value, Queue]] | None = None
) -> list[list[int]] | None:
    """Cycles of every output's beats, or None when everything stands still. Inputs come, and outputs are taken, from
    cycle 0 on; what needs neither is done in the cycles ``before``. ``seen``: filled with what all steps and queues
    did."""
    graph = plan.graph
    queues = {
        v: Queue(plan[n].depths[o], n.attributes.timing.latency[o])
        for n in graph.nodes
        for o, v in enumerate(n.outputs)
    }
    done: Done = {(n, k): [] for n in graph.nodes for k in range(len(n.attributes.timing.processes))}
    if seen is not None:
        seen[0].update(done)
        seen[1].update(queues)
    sinks: dict[Value, list[int]] = {p.value: [] for p in graph.outputs}
    beats = {
        v: sum(len(p.produces.get(o, ())) for p in n.attributes.timing.processes)
        for n in graph.nodes
        for o, v in enumerate(n.outputs)
    }
    uses = {key: _uses(*key) for key in done}
    quiet, cycle = 0, -before
    while any(len(taken) < beats[v] * frames for v, taken in sinks.items()):
        moved = []
        for (node, k), steps in done.items():
            process: Process = node.attributes.timing.processes[k]
            frame, step = divmod(len(steps), process.steps)
            if frame < frames and _may_step(node, process, uses[node, k][step], frame, step, cycle, queues, done):
                moved.append((node, k, step))
        drained = [v for v in sinks if cycle >= 0 and queues[v].has_beat(cycle)]
        for node, k, step in moved:  # everything of one cycle at once
            done[node, k].append(cycle)
            taken, made = uses[node, k][step]
            for value in taken:
                if value in queues:
                    queues[value].taken.append(cycle)
            for value in made:
                queues[value].seen.append(cycle + queues[value].latency)
        for value in drained:
            queues[value].taken.append(cycle)
            sinks[value].append(cycle)
        quiet = 0 if moved or drained or cycle < 0 else quiet + 1
        if quiet > 20:  # more than any latency or lag
            return None
        cycle += 1
    return [sinks[p.value] for p in graph.outputs]


def _uses(node: Node, index: int) -> list[tuple[list[Value], list[Value]]]:
    """What each step of a process takes a beat of, and what it makes one of."""
    process: Process = node.attributes.timing.processes[index]
    uses: list[tuple[list[Value], list[Value]]] = [([], []) for _ in range(process.steps)]
    for place, (values, steps) in enumerate(((node.inputs, process.consumes), (node.outputs, process.produces))):
        for number, of in steps.items():
            for step in of.tolist():
                uses[step][place].append(values[number])
    return uses


def _may_step(node, process, uses, frame, step, cycle, queues, done) -> bool:
    if any(not (queues[value].has_beat(cycle) if value in queues else cycle >= 0) for value in uses[0]):
        return False
    if any(not queues[value].has_room(cycle) for value in uses[1]):
        return False
    for wait in process.waits:
        other = node.attributes.timing.processes[wait.process]
        needed = int(wait.need[step // wait.steps]) + frame * other.steps
        times = done[node, wait.process]
        if needed >= 0 and not (needed < len(times) and times[needed] + wait.lag <= cycle):
            return False
    return True


# --- random networks ----------------------------------------------------------------------------------------------


def steps_of(rng: random.Random, count: int, steps: int) -> np.ndarray:
    return np.array(sorted(rng.sample(range(steps), count)), dtype=np.int64)


def random_timing(rng: random.Random, inputs: list[int], outputs: list[int]) -> Timing:
    """Beats per frame of each input and output -> one process, or a writer and a reader that wait for each other."""
    latency = tuple(rng.randrange(1, 8) for _ in outputs)
    if rng.random() < 0.6:
        steps = max([*inputs, *outputs]) + rng.randrange(0, 4)
        consumes = {i: steps_of(rng, n, steps) for i, n in enumerate(inputs)}
        produces = {o: steps_of(rng, n, steps) for o, n in enumerate(outputs)}
        return Timing((Process(steps, consumes, produces),), latency)
    writes, reads = max(inputs) + rng.randrange(0, 3), max(outputs) + rng.randrange(0, 3)
    # The reader follows the writer; the writer is at most `ahead` frames' worth of its own steps in front of it.
    reach = [min(writes - 1, (n + 1) * writes // reads) for n in range(reads)]
    room = rng.randrange(1, writes + 1)
    back = []
    for n in range(writes):
        frame, target = divmod(n - room, writes)
        free = next(r for r in range(reads) if reach[r] > target or r == reads - 1)
        back.append(frame * reads + max(0, free - 1) - rng.randrange(0, 2))
    writer = Process(
        writes,
        {i: steps_of(rng, n, writes) for i, n in enumerate(inputs)},
        {},
        (Wait(1, np.maximum.accumulate(np.array(back, dtype=np.int64)), rng.randrange(1, 3)),),
    )
    reader = Process(
        reads,
        {},
        {o: steps_of(rng, n, reads) for o, n in enumerate(outputs)},
        (Wait(0, np.array(reach, dtype=np.int64), rng.randrange(1, 3)),),
    )
    return Timing((writer, reader), latency)


def random_network(seed: int) -> Plan:
    """Two to five nodes; values that are left over become outputs. Some have forks and joins, some stand still."""
    rng = random.Random(seed)
    source = Value("x", ANY)
    free: list[tuple[Value, int]] = [(source, rng.randrange(1, 7))]
    decisions = {}
    for index in range(rng.randrange(2, 6)):
        rng.shuffle(free)
        taken = [free.pop() for _ in range(2 if len(free) > 1 and rng.random() < 0.4 else 1)]
        made = [(Value(f"v{index}_{o}", ANY), rng.randrange(1, 7)) for o in range(rng.choice([1, 1, 2]))]
        timing = random_timing(rng, [n for _, n in taken], [n for _, n in made])
        depths = tuple(rng.choice([1, 2, 3, 8]) for _ in made)
        node = Node(f"n{index}", [v for v, _ in taken], [v for v, _ in made], Timed(timing))
        decisions[node] = Decision(LANE, depths)
        free += made
    ports = [Port(v.name, v, (1,), identity_order((1,))) for v, _ in free]
    inputs = [Port("x", source, (1,), identity_order((1,)))]
    return Plan(Graph("random", Stage.SCHEDULED, inputs, ports, list(decisions)), decisions)


def random_circuit(seed: int, depths: Sequence[int] = (1, 2, 3, 8)) -> Plan:
    """A network that reads what it made some frames before: a delay, a join, a random core, a fork."""
    rng = random.Random(seed)
    source, state = Value("x", ANY), Value("state", ANY)
    beats, held = rng.randrange(1, 6), rng.randrange(1, 4)
    steps = np.arange(beats)
    writes = Process(beats, {0: steps}, {}, (Wait(1, steps, 1),))
    reads = Process(beats, {}, {0: steps}, (Wait(0, steps - held * beats, 1),))
    joined, after, back, result = (Value(name, ANY) for name in ("joined", "after", "back", "result"))
    late = rng.randrange(0, 5)
    taken = steps_of(rng, rng.randrange(1, beats + 1), beats)
    join = Process(beats + late, {0: taken, 1: steps}, {0: steps + late})
    fork = Process(beats, {0: steps}, {0: steps, 1: steps})
    nodes = [
        Node("delay", [back], [state], Timed(Timing((writes, reads), (3,)))),
        Node("join", [source, state], [joined], Timed(Timing((join,), (rng.randrange(1, 5),)))),
        Node("core", [joined], [after], Timed(random_timing(rng, [beats], [beats]))),
        Node("fork", [after], [back, result], Timed(Timing((fork,), (1, 1)))),
    ]
    decisions = {node: Decision(LANE, tuple(rng.choice(depths) for _ in node.outputs)) for node in nodes}
    ends = ([Port(v.name, v, (1,), identity_order((1,)))] for v in (source, result))
    return Plan(Graph("circuit", Stage.SCHEDULED, *ends, nodes), decisions)


def chain(timings: list[Timing], depths: list[int]) -> Plan:
    """Nodes of one input and one output, one behind the other."""
    source = value = Value("x", ANY)
    decisions = {}
    for index, (timing, depth) in enumerate(zip(timings, depths, strict=True)):
        made = Value(f"v{index}", ANY)
        decisions[Node(f"n{index}", [value], [made], Timed(timing))] = Decision(LANE, (depth,))
        value = made
    ends = ([Port(v.name, v, (1,), identity_order((1,)))] for v in (source, value))
    return Plan(Graph("chain", Stage.SCHEDULED, *ends, list(decisions)), decisions)


def random_chain(seed: int, length: int) -> Plan:
    """So many nodes with deep queues, none of which stands still by itself."""
    rng, deep, beats = random.Random(seed), 1 << 20, 12
    timings: list[Timing] = []
    while len(timings) < length:
        after = rng.choice([6, 12, 12])
        timing = random_timing(rng, [beats], [after])
        if simulate(chain([timing], [deep]), 4) is not None:
            timings.append(timing)
            beats = after
    return chain(timings, [deep] * length)
