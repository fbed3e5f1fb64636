"""In which order an engine computes the rows of its layers, and where they lie: a program.

Layers are computed in groups, between maps that everything behind them depends on alone: these are whole in the memory.
Where the maps within a group are too large, it is computed in strips: of some more rows of its first map each layer
makes the rows that it can make. Only rows that are still to be read stay in the memory (depth-first order, as M. Alwani
et al., "Fused-Layer CNN Accelerators", 2016, without computing anything twice), but weights are fetched again for each
strip in which a layer has rows to make. The image comes strip by strip, so it need not be whole. Nor need a map between
groups, where there is a memory outside: it is sent there as its rows are made, and comes back strip by strip. The last
map of all leaves as its rows are made.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import prod

import numpy as np

from hdl_lib.engine.engine_program import Added, Instruction, Layer, Load, Program, Region, Send
from hwflow.cores.engine.engine_layers import EngineLayer, JoinedMaps
from hwflow.cores.engine.engines import Engine
from hwflow.cores.engine.network_part import Network, factors_of
from hwflow.cores.windows.sliding_window import core_geometry


@dataclass(frozen=True)
class Group:
    """Layers from ``begin`` to before ``end`` in ``strips``; ``outside``: whether the map that comes, and the one that
    leaves, wait in memory outside."""

    network: Network
    begin: int
    end: int
    strips: int
    outside: tuple[bool, bool] = (False, False)

    @property
    def first(self) -> int:
        """Return the first map."""
        return self.begin

    @property
    def last(self) -> int:
        """Return the last map."""
        return self.end

    @property
    def comes(self) -> bool:
        """Tell whether the first map comes strip by strip: the image, or one from outside."""
        return not self.first or self.outside[0]

    @property
    def leaves(self) -> bool:
        """Tell whether the last map leaves strip by strip: that of the network, or one that goes outside."""
        return self.last == len(self.network.layers) or self.outside[1]

    @cached_property
    def maps(self) -> list[int]:
        """Return the maps that are read or made, in order."""
        return [self.first, *range(self.begin + 1, self.end + 1)]

    @cached_property
    def done(self) -> list[dict[int, int]]:
        """Return for each strip how many rows of each map are there behind it."""
        found = []
        for strip in range(self.strips):
            rows = {self.first: -(-self.network.shapes[self.first].rows * (strip + 1) // self.strips)}
            for number in range(self.begin, self.end):
                rows[number + 1] = _computable(self.network.layers[number], rows)
            found.append(rows)
        return found

    def _first_read(self, number: int, strip: int) -> int:
        """Return the first row of a map that is read after so many strips, or behind the group; or sent."""
        if number == self.last:
            return self.done[strip - 1][number] if strip and self.leaves else 0
        found = [self.network.shapes[number].rows]
        for reader in self.network.readers[number]:
            row = self.done[strip - 1][reader + 1] if strip else 0
            if row < self.network.shapes[reader + 1].rows:
                found.append(_first_row(self.network.layers[reader], number, row))
        return min(found)

    @cached_property
    def homes(self) -> dict[int, int]:
        """Return for each map that in whose region it lies: its own, that of the whole it is a part of, or that of the
        map that is added to it."""
        homes = {number: self.network.whole(number) for number in self.maps}
        joined = {*self.network.wholes, *(whole for whole, _ in self.network.wholes.values())}
        for number in range(self.begin, self.end):
            layer = self.network.layers[number]
            added = layer.added if isinstance(layer, EngineLayer) else None
            if added is not None and not joined & {added.map, number + 1} and self._may_replace(added.map, number):
                homes[number + 1] = homes[added.map]
        return homes

    def _may_replace(self, number: int, by: int) -> bool:
        """Tell whether a layer's rows may take the place of those of a map that is added to them: nobody reads these
        later."""
        others = [reader for reader in self.network.readers[number] if reader != by]
        if any(reader > by for reader in others) or self.network.layer(by + 1).source == number:
            return False
        # Of a layer with all of its rows nothing is read any more.
        return all(
            rows[other + 1] == self.network.shapes[other + 1].rows
            or _first_row(self.network.layers[other], number, rows[other + 1]) >= rows[by + 1]
            for rows in self.done for other in others
        )

    def _members(self, home: int) -> list[int]:
        return [number for number, own in self.homes.items() if own == home]

    @cached_property
    def rows(self) -> dict[int, int]:
        """Return the rows for which each region has room: all of maps that are there before, or behind."""
        return {home: self._rows(home) for home in set(self.homes.values())}

    def _rows(self, home: int) -> int:
        members, whole = self._members(home), self.network.shapes[home].rows
        if (self.last in members and not self.leaves) or (self.first in members and not self.comes):
            return whole
        needed = 1
        for strip, rows in enumerate(self.done):
            there = max(rows[number] for number in members)
            needed = max(needed, there - min(self._first_read(number, strip) for number in members))
        return min(whole, needed)

    @cached_property
    def lives(self) -> dict[int, tuple[int, int]]:
        """Return from which layer to which each region is used in a strip: from the first to the last where rows stay
        there from one strip to the next."""
        return {home: self._life(home) for home in self.rows}

    def _life(self, home: int) -> tuple[int, int]:
        members = self._members(home)
        if (self.strips > 1 and self.first in members and not self.comes) or any(
            self._first_read(number, strip) < rows[number]
            for strip, rows in enumerate(self.done[:-1], 1) for number in members
        ):
            return self.begin - 1, self.end
        begin = min(number - 1 if number != self.first else self.begin - 1 for number in members)
        ends = [reader for number in members for reader in self.network.readers[number] if reader < self.end]
        return begin, self.end if self.last in members else max(ends, default=begin)

    def regions(self, engine: Engine) -> tuple[dict[int, Region], int]:
        """Return the region of each map, and the words of all, with the first map at the beginning and the last one at
        the end. Of the others the largest are placed first, each at the lowest word that is free for as long as it is
        needed."""
        sizes = {home: engine.words(self.network.shapes[home], rows) for home, rows in self.rows.items()}
        lives = self.lives
        placed: dict[int, Region] = {}
        ending = self.homes[self.last]
        for home in sorted(sizes, key=lambda home: (home != self.first, -sizes[home], home)):
            if home == ending and home != self.first:
                continue
            first = 0
            for region in sorted(_beside(placed, lives, home), key=lambda region: region.first):
                if first + sizes[home] <= region.first:
                    break
                first = max(first, region.first + region.words)
            placed[home] = Region(first, sizes[home])
        words = max((each.first + each.words for each in placed.values()), default=0)
        if ending not in placed:
            below = max((each.first + each.words for each in _beside(placed, lives, ending)), default=0)
            words = max(words, below + sizes[ending])
            placed[ending] = Region(words - sizes[ending], sizes[ending])
        return {number: self._place(engine, number, placed[home]) for number, home in self.homes.items()}, words

    def _place(self, engine: Engine, number: int, region: Region) -> Region:
        """Return where a map is in the region of its home."""
        if number not in self.network.wholes:
            return region
        whole, before = self.network.wholes[number]
        return replace(region, pixel=engine.blocks(self.network.shapes[whole].parts), block=engine.blocks(before))

    def words(self, engine: Engine) -> int:
        """Return the words of all regions, and of the strip of the image that waits in front of the engine."""
        return self.regions(engine)[1] + self.waiting(engine)

    def has_room(self, engine: Engine, words: int, waiting: int | None) -> bool:
        """Tell whether so many words are enough for all regions, and ``waiting`` for what waits; None: also for it."""
        if waiting is None:
            return self.words(engine) <= words
        return self.regions(engine)[1] <= words and self.waiting(engine) <= waiting

    def waiting(self, engine: Engine) -> int:
        """Return the words of the strip of the image that waits in front of the engine."""
        return engine.words(self.network.shape, -(-self.network.shape.rows // self.strips)) if not self.first else 0

    def steps(self) -> Iterator[tuple[int, range]]:
        """Yield the rows of maps that come or are computed, in order."""
        before = dict.fromkeys(self.maps, 0)
        steps = [
            number for number in (self.maps if self.comes else self.maps[1:])
            if number == self.first or isinstance(self.network.layers[number - 1], EngineLayer)
        ]
        for rows in self.done:
            for number in steps:
                if rows[number] > before[number]:
                    yield number, range(before[number], rows[number])
            before = rows


def group_of(network: Network, begin: int, end: int, strips: int, outside: tuple[bool, bool]) -> Group:
    """Return the group of layers from one cut to another; the same one whenever it is asked for."""
    key = begin, end, strips, outside
    found: Group = network.groups.setdefault(key, Group(network, *key))
    return found


def _beside(placed: Mapping[int, Region], lives: Mapping[int, tuple[int, int]], home: int) -> list[Region]:
    """Return the regions that are used while that of ``home`` is."""
    begin, end = lives[home]
    return [region for other, region in placed.items() if lives[other][0] <= end and begin <= lives[other][1]]


@dataclass(frozen=True)
class Order:
    """``groups`` that are computed one after the other, each from where the one before it ends."""

    network: Network
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, network: Network, strips: Sequence[tuple[int, int, int]], outside: Container[int] = ()) -> Order:
        """Return the order of (first layer, layer behind the last one, strips), with some maps in memory outside."""
        groups = (
            group_of(network, begin, end, count, (begin in outside, end in outside)) for begin, end, count in strips
        )
        return cls(network, tuple(groups))

    @property
    def strips(self) -> tuple[tuple[int, int, int], ...]:
        """Return the first layer of each group, the layer behind its last one, and its strips."""
        return tuple((group.begin, group.end, group.strips) for group in self.groups)

    @property
    def outside(self) -> tuple[int, ...]:
        """Return the maps that wait in memory outside."""
        return tuple(group.last for group in self.groups if group.outside[1])

    def words(self, engine: Engine) -> int:
        """Return the words of the memory."""
        return max(group.regions(engine)[1] for group in self.groups)

    @property
    def made(self) -> list[int]:
        """Return the map of which each of the program's layers makes rows."""
        return [
            number for group in self.groups for number, _ in group.steps() if number != group.first
            for _ in range(prod(self.network.layer(number).spread))
        ]

    def program(self, engine: Engine) -> Program:
        """Return the program."""
        words = self.words(engine)
        shapes = self.network.shapes
        instructions: list[Instruction] = []
        turned = False  # the map between two groups is at the end of the memory, and is the first one's last
        for group in self.groups:
            regions, _ = group.regions(engine)
            found = {}
            for number, region in regions.items():
                # Those at the end of a group's words are so at the end of all.
                at_end = group.homes[number] == group.homes[group.last] != group.first
                first = words - region.words if at_end else region.first
                found[number] = replace(region, first=words - first - region.words if turned else first)
            for number, rows in group.steps():
                each = engine.words(shapes[number], 1)
                if number == group.first:
                    load = Load(found[number], rows.start * each, len(rows) * each, outside=group.outside[0])
                    instructions.append(load)
                    continue
                instructions += self._layers(number, rows, engine, found)
                if number == group.last and group.leaves:
                    send = Send(found[number], rows.start * each, len(rows) * each, outside=group.outside[1])
                    instructions.append(send)
            turned ^= group.homes[group.last] != group.first
        return engine.program(self.network, instructions, words)

    def cycles(self, engine: Engine, cycles_of_beat: float) -> float:
        """Return about how many cycles a frame takes."""
        return sum(_cycles(group, engine, cycles_of_beat) for group in self.groups)

    def _layers(
        self, number: int, rows: range, engine: Engine, regions: Mapping[int, Region]
    ) -> Iterator[Layer]:
        """Yield what makes some rows of a map: a layer, or one for each of the pixels in which a result stands."""
        spread, region = self.network.layer(number).spread, regions[number]
        windows = range(rows.start // spread[0], rows.stop // spread[0])
        pixel = region.pixel or engine.blocks(self.network.shapes[number].parts)
        row = self.network.shapes[number].columns * pixel
        for y, x in np.ndindex(spread):
            target = region
            if prod(spread) > 1:
                block = region.block + y * row + x * pixel
                target = replace(region, pixel=spread[1] * pixel, row=spread[0] * row, block=block)
            yield self._layer(number, windows, engine, {**regions, number: target})

    def _layer(self, number: int, rows: range, engine: Engine, regions: Mapping[int, Region]) -> Layer:
        layer = self.network.layer(number)
        blocks, out_blocks = (engine.blocks(self.network.shapes[each].parts) for each in (layer.source, number))
        added = None
        if layer.added is not None:
            more = layer.added.form
            added = Added(
                regions[layer.added.map], self.network.is_signed(layer.added.map),
                factors_of(more.multipliers[0], layer.added.factors), more.addends[0], more.low, more.high,
            )
        return Layer(
            core_geometry(layer.window), rows, blocks, out_blocks, regions[layer.source], regions[number],
            layer.diagonal, self.network.is_signed(layer.source), layer.pad_value, layer.form.low, layer.form.high,
            added, layer.maximum, -1 if layer.table is None else self.network.tables.index(layer.table),
            self.network.shapes[layer.source].parts[-1] % engine.lanes, engine.repeats(layer),
            engine.slides(layer),
        )


def _computable(layer: EngineLayer | JoinedMaps, rows: Mapping[int, int]) -> int:
    """Return the rows that a layer can make of so many rows of each map."""
    if isinstance(layer, JoinedMaps):
        return min(rows[number] for number in layer.maps)
    window, there = layer.window, rows[layer.source]
    made = window.output[0]
    if there < window.height:
        reach = (window.kernel[0] - 1) * window.dilations[0] - window.pads[0]
        made = max(0, (there - 1 - reach) // window.strides[0] + 1)
    made *= layer.spread[0]
    return made if layer.added is None else min(made, rows[layer.added.map])


def _first_row(layer: EngineLayer | JoinedMaps, number: int, row: int) -> int:
    """Return the first row of a map that a layer reads for this row and those below it."""
    if isinstance(layer, JoinedMaps):
        return row
    window = layer.window
    own = max(0, row // layer.spread[0] * window.strides[0] - window.pads[0])
    found = [own] if layer.source == number else []
    if layer.added is not None and layer.added.map == number:
        found.append(row)
    return min(found)


_SMALL = 4  # maps of no more than such a part of the words stay inside
_STRIPS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 160, 224)


def fastest(
    network: Network, engine: Engine, words: int, cycles_of_beat: float, waiting: int | None = None, *,
    outside: bool = False,
) -> Order | None:
    """Return the order that takes the fewest cycles of those whose maps have room in so many words; None if there is
    none. ``cycles_of_beat``: of weights, from one to the next. ``waiting``: the words of the image that have room in
    front of the engine; None: they are among ``words``. ``outside``: large maps may wait in memory outside.

    The best order up to a map is that up to an earlier one, and a group from there in as few strips as have room
    (dynamic programming): more strips only fetch more. Groups that would be slower in a single strip are not looked at.
    """
    large = {
        cut for cut in network.cuts[1:-1]
        if outside and isinstance(network.layers[cut - 1], EngineLayer)
        and engine.words(network.shapes[cut]) > words // _SMALL
    }
    cuts = [(cut, there) for cut in network.cuts for there in ((False, True) if cut in large else (False,))]
    at_once = _at_once(network, engine, cycles_of_beat)
    best: dict[tuple[int, bool], tuple[float, tuple[Group, ...]]] = {(0, False): (0.0, ())}
    least: dict[tuple[int, bool, bool], int] = {}  # strips of a group with such ends: longer ones need no fewer
    for end, to_outside in cuts[1:]:
        for begin, from_outside in reversed([each for each in cuts if each[0] < end and each in best]):
            before, others = best[begin, from_outside]
            if (end, to_outside) in best and before + at_once[end] - at_once[begin] >= best[end, to_outside][0]:
                continue
            kind = begin, from_outside, to_outside
            fewest = least.get(kind, 0)
            groups = [
                group_of(network, begin, end, strips, (from_outside, to_outside))
                for strips in _STRIPS[fewest:] if strips <= network.shapes[begin].rows
            ]
            fits = bisect_left(groups, True, key=lambda group: group.has_room(engine, words, waiting))
            if fits == len(groups):
                continue
            least[kind] = fewest + fits
            cycles = before + _cycles(groups[fits], engine, cycles_of_beat)
            if (end, to_outside) not in best or cycles < best[end, to_outside][0]:
                best[end, to_outside] = cycles, (*others, groups[fits])
    whole = best.get((len(network.layers), False))
    return Order(network, whole[1]) if whole else None


def _at_once(network: Network, engine: Engine, cycles_of_beat: float) -> list[float]:
    """Return about how many cycles it takes to make all maps up to each, if all of their rows are made at once."""
    each = (
        engine.cycles(network, number, network.shapes[number].rows, cycles_of_beat)
        if isinstance(layer, EngineLayer) else 0.0 for number, layer in enumerate(network.layers, 1)
    )
    return list(accumulate(each, initial=0.0))


def _cycles(group: Group, engine: Engine, cycles_of_beat: float) -> float:
    """Return about how many cycles a group takes, if weights come one by one in ``cycles_of_beat``."""
    computed = sum(
        engine.cycles(group.network, number, len(rows), cycles_of_beat)
        for number, rows in group.steps() if number != group.first
    )
    moved = [number for number, there in zip((group.first, group.last), group.outside, strict=True) if there]
    return computed + sum(engine.cycles_of_move(group.network.shapes[number]) for number in moved)
