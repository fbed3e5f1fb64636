"""A thread that keeps a link going over its carrier, so that a program may send and wait as it likes."""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from . import packets
from .carrier import Carrier
from .host_errors import USAGE, HostError, HostFinding, LinkLost, shown
from .link import Link
from .packets import Counters, Identity

MOST_UNSENT = 1 << 20  # bytes that wait before :meth:`LinkThread.send` does
PATIENCE = 10.0  # seconds
_ASK_EVERY = 0.1  # seconds
_BACKLOG = 2048  # bytes that the carrier keeps: what is sent after them should not be old
_AT_ONCE = 32  # packets sent before it is looked at what has arrived


def ask_identity(
    carrier: Carrier, seconds: float, clock: Callable[[], float] = time.monotonic
) -> Identity | None:
    """Ask the board at ``carrier`` who it is; None if nothing answers for so long, by ``clock``."""
    poll = select.poll()
    poll.register(carrier, select.POLLIN)
    end, asked = clock() + seconds, -math.inf
    while (now := clock()) < end:
        if now - asked > _ASK_EVERY:
            carrier.write(packets.pack(packets.IDENTIFY, 0, 0, 0))
            asked = now
        carrier.flush()
        if poll.poll(1000 * _ASK_EVERY / 2):
            for data in carrier.read():
                packet = packets.unpack(data)
                if packet is not None and packet.kind == packets.IDENTITY:
                    identity = packets.identity_from(packet.payload)
                    if identity is not None:
                        return identity
                    raise LinkLost(HostFinding(
                        "protocol-version", f"port {shown(carrier.name)}",
                        f"the board must speak version {packets.VERSION} of the link protocol, not "
                        f"{packet.payload[0] if packet.payload else 'none'}",
                        "run 'hwflow synth' and 'hwflow program' again with this version of hwflow",
                    ))
    return None


class LinkThread:
    """A session with a board, kept going by a thread of its own until :meth:`close`.

    ``patience``: seconds after which a board that says nothing, or three times as many after which one that gives no
    answers, is given up; ``refuse``: raises for an identity that is not the right one; ``reopen``: begin a new session
    when the board was reset, and send the frames again that have no answer: right where a design has no state;
    ``clock``: of all timers, in seconds; ``preamble``: what every session begins with; ``reply``: bytes of the board's
    answer to it.

    Methods raise the :class:`HostError` that ended the link.
    """

    def __init__(
        self, carrier: Carrier, identity: Identity, input_frame: int, output_frame: int,
        refuse: Callable[[Identity], None], *, patience: float = PATIENCE, reopen: bool = True,
        clock: Callable[[], float] = time.monotonic, preamble: bytes = b"", reply: int = 0,
    ) -> None:
        self.carrier, self.patience, self._clock = carrier, patience, clock
        self.link = Link(identity, input_frame, output_frame, clock(), preamble, reply)
        self.reopened = 0
        self.check_reply: Callable[[bytes], None] = lambda reply: None  # raises where a session cannot begin so
        self._checked = -1
        self._refuse, self._reopen, self._reopened_at = refuse, reopen, -1
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._closing = False
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        self._thread = threading.Thread(target=self._run, name="hwflow link", daemon=True)
        self._thread.start()

    def send(self, data: bytes | memoryview) -> None:
        """Send frames' bytes; wait while very much waits to be sent."""
        with self._changed:
            self._wait(lambda: self.link.unsent < MOST_UNSENT)
            self.link.send(data, self._clock())
            self._wake_up()

    def take(self, most: int) -> bytes:
        """Return answers, whole frames of at most ``most`` bytes (room for one at least); wait for the first."""
        with self._changed:
            self._wait(lambda: len(self.link.received) >= self.link.output_frame)
            return self.link.take(most)

    def counters(self) -> Counters:
        """Ask the board for its counters."""
        with self._changed:
            self._wait(lambda: True)
            self.link.ask_counters(self._clock())
            self._wake_up()
            self._wait(lambda: self.link.counters is not None)
            assert self.link.counters is not None
            return self.link.counters

    def opened(self) -> bytes:
        """Wait until the board has confirmed the session; return its reply to what that began with."""
        with self._changed:
            self._wait(lambda: self.link.replied)
            return bytes(self.link.reply)

    def restart(self, preamble: bytes | None = None) -> bytes:
        """Begin a new session, which resets the board's core, once all that was sent has its answers; from now on with
        another ``preamble``, if given. Return the board's reply to it."""
        with self._changed:
            self._wait(lambda: not self.link.waiting)
            self.link.reopen(self._clock(), preamble)
            self._wake_up()
            self._wait(lambda: self.link.replied)
            return bytes(self.link.reply)

    def close(self) -> None:
        """End the thread and give the port back; whoever waits, or asks for anything later, gets an error."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._wake_up()
        self._thread.join()
        self.carrier.close()
        with self._changed:
            if self._error is None:
                finding = HostFinding(
                    "board-open", f"port {shown(self.carrier.name)}", "must be open, not closed", "connect again"
                )
                self._error = HostError(finding, exit_code=USAGE)
            self._changed.notify_all()
            for file in (self._woken, self._wake):
                os.close(file)

    def _wait(self, until: Callable[[], bool]) -> None:
        while not until():
            if self._error is not None:
                raise self._error
            self._changed.wait(1)
        if self._error is not None and not self.link.received:
            raise self._error

    def _wake_up(self) -> None:
        with suppress(BlockingIOError):  # it has been woken often enough
            os.write(self._wake, b"\0")

    def _run(self) -> None:
        try:
            self._keep_going()
        except BaseException as error:  # whoever waits raises it
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _keep_going(self) -> None:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        while not self._closing:
            with self._changed:
                now = self._clock()
                self._judge(now)
                full = self._send_due(now)
                wait = 0.0 if full else self.link.wait(now)
            poll.register(self.carrier, select.POLLIN | (select.POLLOUT if self.carrier.backlog else 0))
            ready = dict(poll.poll(None if wait is None else 1000 * wait + (wait > 0)))
            if self._woken in ready:
                with suppress(BlockingIOError):
                    os.read(self._woken, 1 << 12)
            self.carrier.flush()
            if ready.get(self.carrier.fileno(), 0) & ~select.POLLOUT:
                arrived = self.carrier.read()
                with self._changed:
                    now = self._clock()
                    for data in arrived:
                        self.link.receive(data, now)
                    self._changed.notify_all()

    def _send_due(self, now: float) -> bool:
        """Send what is due; True if there may be more at once."""
        for _ in range(_AT_ONCE):
            if self.carrier.backlog >= _BACKLOG:
                return False
            packet = self.link.due(now)
            if packet is None:
                return False
            self.carrier.write(packet)
        return True

    def _judge(self, now: float) -> None:
        """Raise where the link cannot go on."""
        link, where = self.link, f"port {shown(self.carrier.name)}"
        if link.found is not None:
            self._refuse(link.found)
            link.found = None
        if link.taken:
            raise LinkLost(HostFinding(
                "one-host", where, "the board must have one host at a time, not be taken over by another one",
                "end the other host's program, and run this again",
            ))
        if link.reset:
            if not self._reopen or link.arrived == self._reopened_at:
                reason = "again before it gave an answer" if self._reopen else "while frames were under way"
                raise LinkLost(HostFinding(
                    "board-reset", where, f"the board must keep its session, not be reset {reason}",
                    "check its power and its cable, and run it again",
                ))
            link.reopen(now)
            self._reopened_at = link.arrived
            self.reopened += 1
        if link.replied and self._checked != self.reopened:  # of a session that was begun because the board was reset
            self._checked = self.reopened
            if self.reopened:
                self.check_reply(bytes(link.reply))
        if not link.waiting:
            return
        if now - link.heard > self.patience:
            raise LinkLost(HostFinding(
                "board-answers", where,
                f"the board must answer, but nothing has arrived for {self.patience:g} seconds",
                "check that it is plugged in, powered and programmed ('hwflow program')",
            ))
        if now - link.moved > 3 * self.patience:
            raise LinkLost(HostFinding(
                "board-works", where,
                f"the board must answer frames, but for {3 * self.patience:g} seconds it has only kept the link alive "
                f"({link.arrived // link.output_frame} frames are answered)",
                "reset the board, and run it again",
            ))


def nothing_answers(name: str, seconds: float) -> HostError:
    """Return the error for a port that is there, but where no board answers."""
    return LinkLost(HostFinding(
        "board-answers", f"port {shown(name)}", f"a board must answer within {seconds:g} seconds, but none does",
        "check that it is programmed ('hwflow program'), and that --port and --baud are right",
    ))
