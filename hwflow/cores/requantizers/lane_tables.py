"""Requantizers in which every lane reads its own tables."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.memories.rom import Table
from hwflow.cores import costs
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import Folding, MemoryFile, Resources
from hwflow.cores.requantizers.requantizer_core import F, RequantizerCore, table
from hwflow.ir.graph import IntArray, Node, Scratch
from hwflow.ir.node_attributes import RequantizeAttributes


class LaneTable(NamedTuple):
    """A table of every lane: ``rows``, one per channel, of entries of ``bits``."""

    name: str
    rows: IntArray
    bits: int


class _Costs:
    """The costs of a node's tables that all foldings share."""

    def __init__(self, node: Node[RequantizeAttributes]) -> None:
        self.lanes: dict[tuple[str, ProductForm, str, int, bytes], Resources] = Scratch()
        self.all: dict[tuple[str, Folding], tuple[Resources, Resources]] = Scratch()


class LaneTables(RequantizerCore[F]):
    """A requantizer in which every lane reads its own tables."""

    @abstractmethod
    def tables(self) -> list[LaneTable]:
        """Return the tables of a lane, results last."""

    @abstractmethod
    def registered(self, words: int) -> bool:
        """Tell whether a register follows a table of ``words``."""

    def tables_cost(self, family: str) -> tuple[Resources, Resources]:
        """Return the resources of all tables, by their contents, and of the last one."""
        known, key = self.node.once(_Costs), (family, self.folding)
        if key not in known.all:
            total, last = Resources(), Resources()
            for part in self.tables():
                for lane in range(self.lanes):
                    alike = family, self.kind, part.name, self.words, self.channels_of(lane).tobytes()
                    if alike not in known.lanes:
                        words = self._words(part, lane)
                        known.lanes[alike] = costs.filled_numbers(
                            family, words, part.bits, output_register=self.registered(len(words))
                        )
                    last = known.lanes[alike]
                    total += last
            known.all[key] = total, last
        return known.all[key]

    def channels_of(self, lane: int) -> IntArray:
        """Return the rows of parameters that a lane takes in turn: of its channels, round by round."""
        channels = np.arange(lane, self.channels, self.lanes) % self.own
        return (self.own * np.arange(self.turns[0])[:, np.newaxis] + channels).reshape(-1)

    def lane_tables(self, name: str, files: list[MemoryFile]) -> list[list[Table]]:
        """Return the tables of :meth:`tables` for each lane."""
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
        """Return the rows of a lane's channels in turn; missing channels get zeros."""
        own = part.rows[self.channels_of(lane)].reshape(self.turns[0], -1)
        return np.pad(own, ((0, 0), (0, self.words * part.rows.shape[1] // len(own) - own.shape[1]))).reshape(-1)
