"""Fire the events of a frame: compute the cycle of each from its dependences.

``cycle[n] = max(cycle[n - 1] + steps between, cycles waited for + lags)`` is computed event by event, in any order that
respects the dependences. All scheduling is this loop over millions of events, so it is compiled: ``firing.wat`` has it
in WebAssembly, which Wasmtime, the runtime of the packaged yosys, translates to machine code in some milliseconds. All
arrays are numpy views of that module's memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from wasmtime import Engine, Func, Instance, Memory, Module, Store

from hwflow.cores.timing import Steps
from hwflow.schedule.throughput.events import Arc, Channel, EventGraph

NEVER = -(1 << 60)  # a cycle before all others: nothing waits for it
_PAGE = 1 << 16
# Fields of a record, as in firing.wat:
_ACTOR = _EVENTS, _FIRED, _CYCLES, _STEPS, _FIRST_ARC, _END_OF_ARCS, _MOVED, _SOURCE_MISSED, _EVENT_MISSED = range(9)
_ARC = _TARGETS, _AWAITED, _COUNT, _PASSED, _SOURCE, _LAG = range(6)

Cycles = npt.NDArray[np.int64]


class Firing:
    """The cycles of a graph's events in the present frame and earlier ones, and their computation.

    ``cycles``: for each actor of ``graph.actors`` the cycles of the present frame. ``history``: the same preceded by
    those of as many earlier frames as are waited for. Both are writable views of the module's memory. ``readers``: for
    each actor the numbers of those that wait for it.
    """

    def __init__(self, graph: EventGraph, most: Mapping[Channel, int]) -> None:
        """``most``: for each queue with credits its initial depth, the greatest that :meth:`set_depth` may give it."""
        number = {actor: n for n, actor in enumerate(graph.actors)}
        arcs: list[tuple[Arc, Channel | None]] = [(arc, None) for arc in graph.waits]
        arcs += [(channel.arrivals(), None) for channel in graph.channels]
        arcs += [(channel.credits(depth), channel) for channel, depth in most.items()]
        arcs.sort(key=lambda pair: number[pair[0].target])
        self._sizes = np.array([actor.events for actor in graph.actors], dtype=np.int32)
        targets = np.array([number[arc.target] for arc, _ in arcs], dtype=np.int64)
        self._credits = {channel: place for place, (_, channel) in enumerate(arcs) if channel}
        self.readers: list[set[int]] = [set() for _ in graph.actors]
        frames = [1] * len(graph.actors)  # earlier frames that are waited for, at least one
        for arc, _ in arcs:
            source = number[arc.source]
            self.readers[source].add(number[arc.target])
            frames[source] = max(frames[source], -(int(arc.events[0]) // arc.source.events))

        layout = _Layout()
        actors_at = layout.place(len(_ACTOR) * len(graph.actors))
        self._listed_at = layout.place(len(graph.actors))
        arcs_at = layout.place(len(_ARC) * len(arcs))
        histories = [(1 + back) * actor.events for back, actor in zip(frames, graph.actors, strict=True)]
        histories_at = [layout.place(2 * size) for size in histories]
        steps = [np.diff(actor.steps, prepend=-1) for actor in graph.actors]
        steps_at = [layout.place_list(some) for some in steps]
        lists_at = [(layout.place_list(arc.targets), layout.place_list(arc.events)) for arc, _ in arcs]
        self._store, self._fire, words = _instance(layout.size)
        for place, numbers in layout.lists:
            words[place : place + len(numbers)] = numbers

        self._actors = words[actors_at:][: len(_ACTOR) * len(graph.actors)].reshape(-1, len(_ACTOR))
        self._listed = words[self._listed_at :][: len(graph.actors)]
        self._arcs = words[arcs_at:][: len(_ARC) * len(arcs)].reshape(-1, len(_ARC))
        self._addresses = 4 * (actors_at + len(_ACTOR) * np.arange(len(graph.actors)))
        self.history: list[Cycles] = [
            words[at : at + 2 * size].view(np.int64) for at, size in zip(histories_at, histories, strict=True)
        ]
        self.cycles: list[Cycles] = [
            history[-size:] for history, size in zip(self.history, self._sizes.tolist(), strict=True)
        ]
        ends = np.searchsorted(targets, np.arange(len(graph.actors) + 1))
        self._arcs_of = [np.arange(a, b) for a, b in pairwise(ends.tolist())]
        self._actors[:, _EVENTS] = self._actors[:, _FIRED] = self._sizes
        self._actors[:, _CYCLES] = 4 * np.array(histories_at) + 8 * (np.array(histories) - self._sizes)
        self._actors[:, _STEPS] = 4 * np.array(steps_at)
        self._actors[:, _FIRST_ARC] = 4 * (arcs_at + len(_ARC) * ends[:-1])
        self._actors[:, _END_OF_ARCS] = 4 * (arcs_at + len(_ARC) * ends[1:])
        self._actors[:, _SOURCE_MISSED] = self._addresses
        for record, (arc, _), (targets_at, events_at) in zip(self._arcs, arcs, lists_at, strict=True):
            source_at = self._addresses[number[arc.source]]
            record[:] = (4 * targets_at, 4 * events_at, len(arc.targets), 0, source_at, arc.lag)
        self._awaited = [words[at : at + len(arc.events)] for (arc, _), (_, at) in zip(arcs, lists_at, strict=True)]

    def set_depth(self, channel: Channel, depth: int | None) -> None:
        """Set a queue's depth; None is unbounded."""
        place = self._credits[channel]
        self._arcs[place, _COUNT] = 0 if depth is None else channel.beats
        if depth is not None:
            channel.fill_credits(depth, self._awaited[place])

    def fire(self, actors: Iterable[int]) -> tuple[list[int], list[int]]:
        """Compute the cycles of these actors' events in the present frame, none earlier than it was; other actors stay
        as they are. Return the actors of which an event became later, and those that deadlock."""
        fired = np.fromiter(actors, dtype=np.int64)
        self._actors[fired, _FIRED] = 0
        self._actors[fired, _MOVED] = 0
        self._actors[fired, _EVENT_MISSED] = -1
        self._arcs[np.concatenate([self._arcs_of[number] for number in fired.tolist()]), _PASSED] = 0
        self._listed[: len(fired)] = self._addresses[fired]
        begin = 4 * self._listed_at
        self._fire(self._store, begin, begin + 4 * len(fired))
        records = self._actors[fired]
        self._actors[fired, _FIRED] = self._sizes[fired]  # who fires next finds all others fired
        stuck = records[:, _FIRED] < records[:, _EVENTS]
        return fired[records[:, _MOVED] > 0].tolist(), fired[stuck].tolist()


class _Layout:
    """Allocates places in a memory of 32-bit words, each at an even word."""

    def __init__(self) -> None:
        self.size = 0
        self._lists: dict[int, tuple[int, Steps]] = {}

    @property
    def lists(self) -> Iterator[tuple[int, Steps]]:
        """The lists with their places."""
        return iter(self._lists.values())

    def place(self, words: int) -> int:
        """Allocate ``words`` words and return their place."""
        place = self.size
        self.size += words + words % 2
        return place

    def place_list(self, numbers: Steps) -> int:
        """Return the place of a list; a list used twice is stored once."""
        if id(numbers) not in self._lists:
            self._lists[id(numbers)] = self.place(len(numbers)), numbers
        return self._lists[id(numbers)][0]


@cache
def _compiled() -> tuple[Engine, Module]:
    engine = Engine()
    return engine, Module(engine, files(__package__).joinpath("firing.wat").read_text())


def _instance(size: int) -> tuple[Store, Func, npt.NDArray[np.int32]]:
    """Return an instance of firing.wat: its store, ``fire_all``, and its memory of ``size`` words."""
    engine, module = _compiled()
    store = Store(engine)
    exports = Instance(store, module, []).exports(store)
    memory, fire_all = exports["memory"], exports["fire_all"]
    assert isinstance(memory, Memory) and isinstance(fire_all, Func)
    memory.grow(store, -(-4 * size // _PAGE))
    buffer = memory.get_buffer_ptr(store)
    vars(buffer)["store"] = store  # owns the memory: keep it alive as long as any view
    return store, fire_all, np.frombuffer(memoryview(buffer), dtype=np.int32)
