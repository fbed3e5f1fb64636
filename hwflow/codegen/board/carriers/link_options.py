"""What a user may ask of a board's link."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LinkOptions:
    """One of the options of ``hwflow synth`` that choose the carrier of a link, or none.

    ``baud``: a serial port at this rate; ``ethernet``: UDP, with the board at this IPv4 address; ``usb``: a USB serial
    device. None: the board's own carrier (a serial port as fast as its chip and the clock make it, or USB).
    """

    baud: int | None = None
    ethernet: str | None = None
    usb: bool = False

    @property
    def given(self) -> list[str]:
        """The options, as the command line spells them."""
        there = {"--baud": self.baud is not None, "--ethernet": self.ethernet is not None, "--usb": self.usb}
        return [name for name, is_there in there.items() if is_there]


OWN = LinkOptions()
