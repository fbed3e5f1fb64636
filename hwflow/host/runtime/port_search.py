"""Find the port behind which a design's board is: by USB ids, and by asking who is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from .carrier import Carrier, open_carrier
from .host_design import HostDesign
from .host_errors import USAGE, HostError, HostFinding, LinkLost, shown
from .link_thread import ask_identity, nothing_answers
from .packets import Identity, StreamShape

ANSWER_SECONDS = 2.0
_PROGRAM = "load the right one with 'hwflow program'"


class Found(NamedTuple):
    """A port, opened, and who is there."""

    carrier: Carrier
    identity: Identity


def find_port(
    design: HostDesign, port: str | None = None, baud: int | None = None, seconds: float = ANSWER_SECONDS,
    listed: Callable[[], Iterable[Any]] | None = None, clock: Callable[[], float] = time.monotonic,
) -> Found:
    """Return the board that holds ``design``: at ``port``, or else at the address or one of the serial ports that
    ``design.link`` names. ``listed``: pyserial's list of ports, unless it is another; ``clock``: that of ``seconds``.

    Raises :class:`HostError` where there is none, another network, or more than one.
    """
    if port is None and not design.link:
        message = "the design must have a link to a host, not Verilog alone"
        remedy = "run 'hwflow synth' for a board with a serial port, USB or Ethernet, or name a --port"
        raise HostError(HostFinding("link-present", f"folder {shown(design.folder)}", message, remedy), exit_code=USAGE)
    baud, kind = baud or design.link.get("baud"), design.link.get("carrier")
    if port is None and kind == "dma":
        message = "the design must have a line to another machine, not a DMA engine"
        remedy = "run 'python3 board/overlay.py' on the board itself"
        raise HostError(HostFinding("link-present", f"folder {shown(design.folder)}", message, remedy), exit_code=USAGE)
    if port is None and kind == "udp":
        if not design.link.get("address"):
            message = "must be named for a board with Ethernet, not left out"
            remedy = "for example --port udp:192.168.1.50"
            raise HostError(HostFinding("port-name", "option --port", message, remedy), exit_code=USAGE)
        port = f"udp:{design.link['address']}"
    if port is not None:
        found = _ask(port, baud, seconds, clock)
        if isinstance(found, HostError):
            raise found
        try:
            refuse_other(design, found.identity, port)
        except HostError:
            found.carrier.close()
            raise
        return found
    ports = _serial_ports(design, listed)
    with ThreadPoolExecutor(max(1, len(ports))) as pool:
        answers = list(pool.map(lambda name: _ask(name, baud, seconds, clock), ports))
    return _the_one(design, dict(zip(ports, answers, strict=True)))


def _the_one(design: HostDesign, answers: Mapping[str, Found | HostError]) -> Found:
    boards = {name: found for name, found in answers.items() if isinstance(found, Found)}
    right = [name for name, found in boards.items() if other_network(design, found.identity) is None]
    chosen = right[0] if len(right) == 1 else None
    for name, found in boards.items():
        if name != chosen:
            found.carrier.close()
    if chosen is not None:
        return boards[chosen]
    if right:
        where = ", ".join(map(shown, right))
        message = f"must be one that holds network {shown(design.model)}, not {len(right)}: at {where}"
        raise HostError(HostFinding("one-board", "boards", message, "choose one with --port"))
    if boards:
        for name, found in boards.items():
            refuse_other(design, found.identity, name)
    raise HostError(*(
        finding for found in answers.values() if isinstance(found, HostError) for finding in found.findings
    ))


def _ask(port: str, baud: int | None, seconds: float, clock: Callable[[], float]) -> Found | HostError:
    try:
        carrier = open_carrier(port, baud)
    except HostError as error:
        return error
    try:
        identity = ask_identity(carrier, seconds, clock)
    except HostError as error:
        carrier.close()
        return error
    if identity is None:
        carrier.close()
        return nothing_answers(port, seconds)
    return Found(carrier, identity)


def _serial_ports(design: HostDesign, listed: Callable[[], Iterable[Any]] | None) -> list[str]:
    if listed is None:
        try:
            from serial.tools.list_ports import comports
        except ImportError:
            message = "must be installed to find serial ports, not missing"
            finding = HostFinding("package-present", "package pyserial", message, "pip install pyserial")
            raise HostError(finding) from None
        listed = comports
    usb = [info for info in listed() if info.vid is not None]
    ids: Sequence[Mapping[str, int]] = design.link.get("usb", ())
    ports = sorted(info.device for info in usb if not ids or any(_matches(info, each) for each in ids))
    if not ports:
        there = ", ".join(f"{shown(info.device)} ({info.vid:04x}:{info.pid:04x})" for info in usb) or "none"
        named = " or ".join(f"{each['vendor']:04x}:{each['product']:04x}" for each in ids)
        wanted = f"with USB id {named} " if ids else ""
        message = f"must be a USB serial port {wanted}of a board, not {there}"
        remedy = "plug the board in, or name its port with --port"
        raise HostError(HostFinding("board-present", "serial ports", message, remedy))
    return ports


def _matches(info: Any, wanted: Mapping[str, int]) -> bool:
    """Tell whether a port is a USB device with the ids ``vendor`` and ``product``, and if it is given its
    ``interface``."""
    if (info.vid, info.pid) != (wanted["vendor"], wanted["product"]):
        return False
    there = (info.location or "").rpartition(":")[2].rpartition(".")[2]  # "1-1.2:1.0"
    return "interface" not in wanted or not there or there == str(wanted["interface"])


def refuse_other(design: HostDesign, identity: Identity, port: str) -> None:
    """Raise :class:`LinkLost` if the board at ``port`` holds another network than ``design``."""
    other = other_network(design, identity)
    if other is not None:
        raise LinkLost(HostFinding("network", f"board at port {shown(port)}", other, _PROGRAM))


def other_network(design: HostDesign, identity: Identity) -> str | None:
    """Return what is wrong with a board that holds another network, None if it holds ``design``."""
    model = f"network {shown(design.model)}"
    if identity.model_sha256 != design.sha256:
        return (
            f"must hold {model} (SHA-256 {design.sha256[:12]}), not another: SHA-256 {identity.model_sha256[:12]}, "
            f"made by hwflow {identity.version}, {_streams(identity.inputs)} in, {_streams(identity.outputs)} out"
        )
    if (identity.inputs, identity.outputs) != (design.input_shapes, design.output_shapes):
        return (
            f"must hold {model} with streams of {_streams(design.input_shapes)} in and "
            f"{_streams(design.output_shapes)} out, not a design of it with {_streams(identity.inputs)} in and "
            f"{_streams(identity.outputs)} out"
        )
    return None


def _streams(shapes: Iterable[StreamShape]) -> str:
    return " and ".join(f"{shape.beats} beats of {shape.beat_bytes} bytes" for shape in shapes)
