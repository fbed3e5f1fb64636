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

from hdl_lib.links.packet_kinds import CHECK, HEADER, PACKET_BYTE, RECEIVED_BYTE


@dataclass(frozen=True)
class Pin:
    """A pin of the board's top: ``name`` on every board with this carrier, ``port`` on this one.

    ``pull``: "up" or "down" of a pin that both ends drive in turn, by a resistor while neither does.
    """

    name: str
    port: str
    output: bool
    width: int = 1
    pull: str = ""


class Carrier(wiring.Component, ABC):  # type: ignore[misc]  # Amaranth carries no annotations
    """Packets between a board's pins and its link, as docs/reference/protocol.md has them.

    It requests its pins where it is elaborated. ``received``: packets from the host; ``packets``: those to it.
    """

    name: str  # in board.json, and what a host calls it
    shared = False  # both ways take turns on the line

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
        """Return how fast it is, in bytes of the line: each way, or both together if it is :attr:`shared`."""

    @abstractmethod
    def bytes_of(self, packet: int) -> int:
        """Return the most bytes of the line that a packet of so many bytes takes."""

    def payload_per_second(self, most_payload: int) -> Fraction:
        """Return how many bytes of payload it carries, in packets as large as they may be: each way, or both together.
        """
        return self.bytes_per_second * most_payload / self.bytes_of(HEADER + most_payload + CHECK)

    def frames_per_second(self, input_bytes: int, output_bytes: int, most_payload: int) -> Fraction:
        """Return how many frames it carries of so many bytes each way at the most."""
        frame = input_bytes + output_bytes if self.shared else max(input_bytes, output_bytes)
        return self.payload_per_second(most_payload) / frame

    @abstractmethod
    def table(self) -> Mapping[str, Any]:
        """Return what board.json's ``link`` says of it alone."""

    @abstractmethod
    def simulated(self) -> Mapping[str, float]:
        """Return what its other end in a simulation (``sim/verilator/board``) must know, by the names of its macros."""
