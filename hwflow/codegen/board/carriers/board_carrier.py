"""What a carrier is to the board's top and to its files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.links.packets import CHECK, HEADER, PACKET_BYTE, RECEIVED_BYTE


@dataclass(frozen=True)
class Pin:
    """A pin of the board's top: ``name`` on every board with this carrier, ``port`` on this one."""

    name: str
    port: str
    output: bool
    width: int = 1


class Carrier(wiring.Component, ABC):  # type: ignore[misc]  # Amaranth carries no annotations
    """Packets between a board's pins and its link, as docs/reference/protocol.md has them.

    It requests its pins where it is elaborated. ``received``: packets from the host; ``packets``: those to it.
    """

    name: str  # in board.json, and what a host calls it

    def __init__(self) -> None:
        super().__init__(
            {"received": Out(stream.Signature(RECEIVED_BYTE)), "packets": In(stream.Signature(PACKET_BYTE))}
        )

    @abstractmethod
    def elaborate(self, platform: Any) -> Module: ...

    @property
    def core(self) -> Mapping[str, Any] | None:
        """Return what a core is to be generated for that it has from others: board.json's ``ethernet_core``."""
        return None

    @property
    @abstractmethod
    def pins(self) -> Sequence[Pin]:
        """Return the pins."""

    @property
    @abstractmethod
    def bytes_per_second(self) -> Fraction:
        """Return how fast it is, in bytes of the line, each way."""

    @abstractmethod
    def bytes_of(self, packet: int) -> int:
        """Return the most bytes of the line that a packet of so many bytes takes."""

    def payload_per_second(self, most_payload: int) -> Fraction:
        """Return how many bytes of payload it carries each way, in packets as large as they may be."""
        return self.bytes_per_second * most_payload / self.bytes_of(HEADER + most_payload + CHECK)

    @abstractmethod
    def table(self) -> Mapping[str, Any]:
        """Return what board.json's ``link`` says of it alone."""

    @abstractmethod
    def simulated(self) -> Mapping[str, float]:
        """Return what its other end in a simulation (``sim/verilator/board``) must know, by the names of its macros."""
