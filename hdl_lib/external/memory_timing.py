"""What all memories have in common that streams come from: their size, how long a burst takes, and a controller."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Protocol

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.storage import StorageStyle


class MemoryChip(Protocol):
    """A memory of ``pages`` of ``columns`` words with ``width`` bits each."""

    @property
    def name(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def pages(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class MemoryController(wiring.Component):
    """Runs bursts of reads or writes within a page, one after the other.

    Parameters: ``chip``; ``longest``: most words of a burst; ``pins``: members of its ``pins``, to the memory.

    Members: ``command`` (in, stream): ``page``, first ``column``, ``length`` less one, ``write``. ``write_data`` (in),
    ``write_next`` (out 1): the word that is written in a cycle with ``write_next``. ``read`` (out): ``valid`` and
    ``data`` of each word read, in order; there must be room.

    Timing: that of its :class:`MemoryTiming`, whatever resets what gives it commands.
    """

    def __init__(self, chip: MemoryChip, longest: int, pins: dict[str, wiring.Member]) -> None:
        if not 1 <= longest <= chip.columns:
            raise ValueError(f"bursts must have 1 to {chip.columns} words, not {longest}")
        self.longest = longest
        command = data.StructLayout(
            {"page": range(chip.pages), "column": range(chip.columns), "length": range(longest), "write": 1}
        )
        super().__init__(
            {
                "command": In(stream.Signature(command)),
                "write_data": In(chip.width),
                "write_next": Out(1),
                "read": Out(data.StructLayout({"valid": 1, "data": chip.width})),
                "pins": Out(wiring.Signature(pins)),
            }
        )


class MemoryTiming(ABC):
    """The timing of a ``chip`` in cycles of ``clock_hz``."""

    chip: MemoryChip
    clock_hz: Fraction

    @property
    @abstractmethod
    def first_access(self) -> int:
        """Return the cycles from a burst's command to its first word's access."""

    @property
    @abstractmethod
    def read_latency(self) -> int:
        """Return the cycles from a word's access inside the controller to ``read.valid``."""

    @property
    @abstractmethod
    def setup_cycles(self) -> int:
        """Return the cycles from the beginning until the first command may be taken, at the most."""

    @abstractmethod
    def burst_cycles(self, length: int, *, write: bool = False) -> int:
        """Return the cycles from the command of a burst to the next one's."""

    @property
    def word_cycles(self) -> int:
        """Return the cycles from a word of a burst to the next one."""
        return 1

    @property
    def read_only(self) -> bool:
        """Tell whether nothing is written: the memory has its image from elsewhere, and no queues."""
        return False

    @property
    def longest_burst(self) -> int:
        """Return the words beyond which longer bursts save no time to speak of."""
        return self.chip.columns

    @property
    def queue_style(self) -> StorageStyle:
        """Return the storage of queues beside the controller, as of :class:`hdl_lib.streams.fifo.Fifo`."""
        return StorageStyle.AUTO

    @property
    def refresh_cycles(self) -> int:
        """Return the cycles of a refresh."""
        return 0

    def refresh_period(self, longest: int) -> int | None:
        """Return the cycles after which the next refresh is due, if bursts of up to ``longest`` words may be in its
        way; None: there are none. Raises :class:`ValueError` where the clock is too slow for them."""
        return None

    @abstractmethod
    def controller(self, longest: int) -> MemoryController:
        """Return the controller for bursts of up to ``longest`` words."""
