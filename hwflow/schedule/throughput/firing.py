"""Fire the events of a frame: compute the cycle of each from its dependences.

``cycle[n] = max(cycle[n - 1] + steps between, cycles waited for + lags)`` is computed event by event, in any order that
respects the dependences. All scheduling is this loop over millions of events, so it is compiled: ``firing.wat`` has it
in WebAssembly, which Wasmtime, the runtime of the packaged yosys, translates to machine code in some milliseconds. All
arrays are numpy views of that module's memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt
from wasmtime import Engine, Func, Instance, Memory, Module, Store

from hwflow.cores.timing import Steps
from hwflow.schedule.throughput.events import Arc, Channel, EventGraph

NEVER = -(1 << 60)  # a cycle before all others: nothing waits for it
_PAGE = 1 << 16
# Fields of a record, as in firing.wat:
_ACTOR = _EVENTS, _FIRED, _CYCLES, _STEPS, _FIRST_ARC, _END_OF_ARCS, _, _SOURCE_MISSED, _ = range(9)
_ARC = _TARGETS, _AWAITED, _COUNT, _PASSED, _SOURCE, _LAG = range(6)

Cycles = npt.NDArray[np.int64]


class Firing:
    """The cycles of a graph's events in the present frame and earlier ones, and their computation.

    ``cycles``: for each actor of ``graph.actors`` the cycles of the present frame. ``history``: the same preceded by
    those of as many earlier frames as are waited for. Both are writable views of the module's memory. ``readers``: for
    each actor the numbers of those that wait for it.
    """

    def __init__(self, graph: EventGraph, most: Mapping[Channel, int]) -> None:
        """Set up the queues. ``most``: for each queue with credits its initial depth, the greatest that
        :meth:`set_depth` may give it."""
        number = {actor: n for n, actor in enumerate(graph.actors)}
        arcs: list[tuple[Arc, Channel | None]] = [(arc, None) for arc in graph.waits]
        arcs += [(channel.arrivals(), None) for channel in graph.channels]
        arcs += [(channel.credits(depth), channel) for channel, depth in most.items()]
        arcs.sort(key=lambda pair: number[pair[0].target])
        sizes = np.array([actor.events for actor in graph.actors], dtype=np.int32)
        targets = np.array([number[arc.target] for arc, _ in arcs], dtype=np.int64)
        self._credits = {channel: place for place, (_, channel) in enumerate(arcs) if channel}
        self.readers: list[set[int]] = [set() for _ in graph.actors]
        frames = [1] * len(graph.actors)  # earlier frames that are waited for, at least one
        for arc, _ in arcs:
            source = number[arc.source]
            self.readers[source].add(number[arc.target])
            frames[source] = max(frames[source], -(int(arc.events[0]) // arc.source.events))

        layout = _Layout()
        listed_at = layout.place(1 + len(graph.actors))
        assert listed_at == 0, "where firing.wat finds the list"
        actors_at = layout.place(len(_ACTOR) * len(graph.actors))
        arcs_at = layout.place(len(_ARC) * len(arcs))
        histories = [(1 + back) * actor.events for back, actor in zip(frames, graph.actors, strict=True)]
        histories_at = [layout.place(2 * size) for size in histories]
        steps = [np.diff(actor.steps, prepend=-1) for actor in graph.actors]
        steps_at = [layout.place_list(some) for some in steps]
        lists_at = [(layout.place_list(arc.targets), layout.place_list(arc.events)) for arc, _ in arcs]
        self._store, self._fire, words = _instance(layout.size)
        for place, numbers in layout.lists:
            words[place : place + len(numbers)] = numbers

        records = words[actors_at:][: len(_ACTOR) * len(graph.actors)].reshape(-1, len(_ACTOR))
        self._listed = words[: 1 + len(graph.actors)]
        self._arcs = words[arcs_at:][: len(_ARC) * len(arcs)].reshape(-1, len(_ARC))
        addresses = 4 * (actors_at + len(_ACTOR) * np.arange(len(graph.actors)))
        self.history: list[Cycles] = [
            words[at : at + 2 * size].view(np.int64) for at, size in zip(histories_at, histories, strict=True)
        ]
        self.cycles: list[Cycles] = [
            history[-size:] for history, size in zip(self.history, sizes.tolist(), strict=True)
        ]
        ends = np.searchsorted(targets, np.arange(len(graph.actors) + 1))
        records[:, _EVENTS] = records[:, _FIRED] = sizes
        records[:, _CYCLES] = 4 * np.array(histories_at) + 8 * (np.array(histories) - sizes)
        records[:, _STEPS] = 4 * np.array(steps_at)
        records[:, _FIRST_ARC] = 4 * (arcs_at + len(_ARC) * ends[:-1])
        records[:, _END_OF_ARCS] = 4 * (arcs_at + len(_ARC) * ends[1:])
        records[:, _SOURCE_MISSED] = addresses
        for record, (arc, _), (targets_at, events_at) in zip(self._arcs, arcs, lists_at, strict=True):
            source_at = addresses[number[arc.source]]
            record[:] = (4 * targets_at, 4 * events_at, len(arc.targets), 0, source_at, arc.lag)
        self._addresses: list[int] = addresses.tolist()
        self._awaited = [words[at : at + len(arc.events)] for (arc, _), (_, at) in zip(arcs, lists_at, strict=True)]

    def set_depth(self, channel: Channel, depth: int | None) -> None:
        """Set a queue's depth; None is unbounded."""
        place = self._credits[channel]
        self._arcs[place, _COUNT] = 0 if depth is None else channel.beats
        if depth is not None:
            channel.fill_credits(depth, self._awaited[place])

    def fire(self, actors: Sequence[int]) -> tuple[list[int], list[int]]:
        """Compute the cycles of these actors' events in the present frame, none earlier than it was; other actors stay
        as they are. Return the actors of which an event became later, and those that deadlock."""
        listed = self._listed[1 : 1 + len(actors)]
        self._listed[0], listed[:] = len(actors), [self._addresses[number] for number in actors]
        self._fire(self._store)  # without arguments: Wasmtime takes ten times as long to convert two
        became = list(zip(actors, listed.tolist(), strict=True))
        return [number for number, flags in became if flags & 1], [number for number, flags in became if flags & 2]


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
    """Return an instance of firing.wat: its store, ``fire_listed``, and its memory of ``size`` words."""
    engine, module = _compiled()
    store = Store(engine)
    exports = Instance(store, module, []).exports(store)
    memory, fire_listed = exports["memory"], exports["fire_listed"]
    assert isinstance(memory, Memory) and isinstance(fire_listed, Func)
    memory.grow(store, -(-4 * size // _PAGE))
    buffer = memory.get_buffer_ptr(store)
    vars(buffer)["store"] = store  # owns the memory: keep it alive as long as any view
    return store, fire_listed, np.frombuffer(memoryview(buffer), dtype=np.int32)
