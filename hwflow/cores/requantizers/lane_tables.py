"""Requantizers whose lanes read tables of their own."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from hdl_lib.memories.rom import Table
from hwflow.cores import costs
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import MemoryFile, Resources
from hwflow.cores.requantizers.requantizer_core import F, RequantizerCore, table
from hwflow.ir.graph import IntArray, Node, Scratch
from hwflow.ir.node_attributes import RequantizeAttributes


class LaneTable(NamedTuple):
    """A table that every lane has: ``rows``, one a channel, of entries of so many ``bits``."""

    name: str
    rows: IntArray
    bits: int


class _Costs:
    """Of a node's tables, in all foldings: a search asks for the same again and again."""

    def __init__(self, node: Node[RequantizeAttributes]) -> None:
        self.lanes: dict[tuple[str, str, int, bytes], Resources] = Scratch()
        self.all: dict[tuple[str, int], tuple[Resources, Resources]] = Scratch()


class LaneTables(RequantizerCore[F]):
    """A requantizer whose lanes read tables of their own."""

    @abstractmethod
    def tables(self) -> list[LaneTable]:
        """Those of each lane, that of results last."""

    @abstractmethod
    def registered(self, words: int) -> bool:
        """A register follows the table of so many words."""

    def tables_cost(self, family: str) -> tuple[Resources, Resources]:
        """Of all tables, by their words, and of the last one."""
        known = self.node.once(_Costs)
        if (family, self.lanes) not in known.all:
            total, last = Resources(), Resources()
            for part in self.tables():
                for lane in range(self.lanes):
                    alike = family, part.name, self.words, self.channels_of(lane).tobytes()
                    if alike not in known.lanes:
                        words = self._words(part, lane)
                        known.lanes[alike] = costs.filled_numbers(
                            family, words, part.bits, output_register=self.registered(len(words))
                        )
                    last = known.lanes[alike]
                    total += last
            known.all[family, self.lanes] = total, last
        return known.all[family, self.lanes]

    def channels_of(self, lane: int) -> IntArray:
        """Whose results a lane computes, one after the other: of channels with parameters of their own."""
        return np.arange(lane, self.channels, self.lanes) % self.own

    def lane_tables(self, name: str, files: list[MemoryFile]) -> list[list[Table]]:
        """Those of :meth:`tables`, lane by lane."""
        return [
            [
                table(
                    f"{name}_{part.name}_{lane}", pack_words(self._words(part, lane)[:, np.newaxis], part.bits),
                    part.bits, files,
                )
                for lane in range(self.lanes)
            ]
            for part in self.tables()
        ]

    def _words(self, part: LaneTable, lane: int) -> IntArray:
        """The rows of a lane's channels one after the other; for those that it lacks zeros."""
        own = part.rows[self.channels_of(lane)].reshape(-1)
        return np.pad(own, (0, self.words * part.rows.shape[1] - len(own)))
