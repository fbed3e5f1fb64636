"""The host's end of a session, without any input or output of its own: go-back-N with byte offsets.

:class:`Link` is told what arrives and what time it is, and says what to send. Positions are bytes since the first
session began; a new session after a board's reset goes on at the first frame that has no answer.
"""

from __future__ import annotations

import secrets
from collections import deque
from typing import NamedTuple

from . import packets
from .packets import Counters, Identity, Packet, distance

SMALLEST = 32  # payload bytes of a packet on the worst line: best where a byte of a hundred is damaged
SHRINK, GROW = 0.7, 1.09  # of packets, at a loss and at an arrival: steady where a fifth is lost
FIRST_WAIT = 0.1  # seconds until a round trip is known
CLEAN_WAIT, LEAST_WAIT, MOST_WAIT = 0.2, 0.005, 3.0  # seconds of the round-trip timer
KEPT_TIMES = 1 << 16  # packets whose times are remembered


class Moment(NamedTuple):
    """When a packet's last byte, at ``position`` of its pipe, was sent or arrived, in seconds."""

    position: int
    time: float


class Link:
    """One board's two pipes. ``input_frame`` and ``output_frame``: bytes of a frame in each direction; ``preamble``:
    what every session begins with, before its first frame; ``reply``: bytes that the board answers it with, before the
    first frame's answer.

    ``reset``: the board has lost the session, :meth:`reopen` begins another; ``taken``: another host has begun one.
    ``resent``: packets of frames that were sent again, and requests for answers to be sent again; ``heard``: when the
    last whole packet arrived; ``moved``: when the pipes last got on.
    """

    def __init__(
        self, identity: Identity, input_frame: int, output_frame: int, now: float, preamble: bytes = b"",
        reply: int = 0,
    ) -> None:
        self.identity = identity
        self.input_frame, self.output_frame = input_frame, output_frame
        self.received = bytearray()  # what nobody has taken yet
        self.resent = self.damaged = 0
        self.reset = self.taken = False
        self.found: Identity | None = None  # what the board last said it is
        self.counters: Counters | None = None
        self.sent_times: deque[Moment] = deque(maxlen=KEPT_TIMES)
        self.arrival_times: deque[Moment] = deque(maxlen=KEPT_TIMES)
        self._preamble, self._reply = preamble, reply
        self.reply = bytearray()  # what has arrived of it in this session
        self._first = len(preamble)  # where frame 0 would be, if the session's first had that before it
        self._pending = bytearray(preamble)  # from position _kept on
        self._kept = self._acknowledged = self._next = self._sent = 0
        self._arrived = 0
        self._most = identity.most_payload
        self._size: float = self._most
        self._answer_size: float = self._most
        self._round_trip: float | None = None
        self._deviation = 0.0
        self._backoff = 1.0  # until a round trip is measured again (Karn and Partridge, 1987)
        self._asked_counters = False
        self.heard = self.moved = now
        self._begin(now)

    def _begin(self, now: float) -> None:
        """Begin a session: both pipes go on where they are."""
        offset = 1 + secrets.randbelow(packets.MASK)  # 0 is what a board has before its first session
        self._offset = offset
        self._sent_base = offset - self._acknowledged
        self.reply.clear()
        self._arrived_base = offset + self._reply - self._arrived
        self._open = False
        self._may_send = self._acknowledged + min(packets.MOST_ROOM, self.identity.receive_buffer)
        self._timed: Moment | None = None
        self._went_back: Moment | None = None
        # packets sent since the other end got on or the host went back; answers due to those before it went back, and
        # before it asked for answers again
        self._flight = self._stale = self._stale_answers = 0
        self._asked_again: float | None = None
        self._last_offset = offset
        self._told = self._got
        self._ask_again = self._acknowledge = self._ask_identity = False
        self._tries = 0
        self._asked_last = self._deadline = now

    @property
    def _got(self) -> int:
        """Where the board's pipe has arrived: what is missing of the reply comes before the answers."""
        return self._arrived - self._reply + len(self.reply)

    @property
    def replied(self) -> bool:
        """Whether the board has answered what the session began with."""
        return self._open and len(self.reply) == self._reply

    def reopen(self, now: float, preamble: bytes | None = None) -> None:
        """Begin a new session, at the first frame that has no whole answer yet; with another ``preamble``, if given."""
        if preamble is not None:
            self._preamble = preamble
        answered = self._arrived // self.output_frame
        begin = self._first + answered * self.input_frame
        surplus = self._arrived - answered * self.output_frame
        if surplus:
            del self.received[-surplus:]  # answers are taken whole
        self._arrived -= surplus
        del self._pending[: begin - self._kept]
        self._pending[:0] = self._preamble
        self._kept = self._acknowledged = self._next = begin
        self._first += len(self._preamble)
        self.reset, self.found = False, None
        self._begin(now)

    @property
    def unsent(self) -> int:
        """Bytes that wait to be sent."""
        return self._kept + len(self._pending) - self._next

    @property
    def arrived(self) -> int:
        """Bytes of answers that have arrived."""
        return self._arrived

    @property
    def waiting(self) -> bool:
        """Whether anything is due from the board."""
        return (
            not self._open or len(self.reply) < self._reply or self._acknowledged < self._kept + len(self._pending)
            or self._arrived < (self._acknowledged - self._first) // self.input_frame * self.output_frame
        )

    @property
    def arrived_frames(self) -> int:
        """Whole answers that nobody has taken yet."""
        return len(self.received) // self.output_frame

    @property
    def unanswered(self) -> int:
        """Frames of which nobody has taken the answers yet."""
        taken = (self._arrived - len(self.received)) // self.output_frame
        return (self._kept + len(self._pending) - self._first) // self.input_frame - taken

    def send(self, data: bytes | memoryview, now: float) -> None:
        """Put bytes of frames into the pipe to the board."""
        if not self.waiting:
            self.heard = now
            self._got_on(now)
        self._pending += data

    def take(self, most: int) -> bytes:
        """Return answers that have arrived, whole frames, at most so many bytes."""
        size = min(most, len(self.received)) // self.output_frame * self.output_frame
        taken = bytes(memoryview(self.received)[:size])
        del self.received[:size]
        return taken

    def ask_counters(self, now: float) -> None:
        """Have the board asked for its counters; they come into ``counters``."""
        self.counters, self._asked_counters, self._deadline = None, True, now

    def due(self, now: float) -> bytes | None:
        """Return the next packet to send, None if there is none now."""
        if now >= self._deadline and (self.waiting or self._asked_counters):
            packet = self._late(now)
            if packet is not None:
                return packet
        if self._ask_identity:
            self._ask_identity = False
            return self._packet(packets.IDENTIFY)
        if not self._open:
            return None
        if self._ask_again:
            self._ask_again, self._asked_again = False, now
            self._stale_answers = self._flight
            return self._packet(packets.RESEND)
        end = min(self._kept + len(self._pending), self._may_send, self._acknowledged + self._window())
        size = min(end - self._next, int(self._size))
        whole = size == int(self._size) or self._next + size == self._kept + len(self._pending)
        if size > 0 and (whole or self._next == self._acknowledged):
            return self._data(size, now)
        if self._acknowledge:
            return self._packet(packets.DATA)
        return None

    def wait(self, now: float) -> float | None:
        """Return after how many seconds :meth:`due` may have something though nothing arrives; None: never."""
        return max(0.0, self._deadline - now) if self.waiting or self._asked_counters else None

    def _late(self, now: float) -> bytes | None:
        """Return what asks the board, or go back: nothing came in time."""
        self._tries += 1
        self._flight = 0
        if not self._open or self._acknowledged < self._sent:
            self._backoff *= 2
        self._deadline = now + self._patience()
        if not self._open:
            self._asked_last = now
            return packets.pack(packets.OPEN, self._offset, self._offset, self._room())
        self._ask_identity = True  # it may have been reset
        if self._asked_counters:
            return self._packet(packets.STATISTICS)
        if self._acknowledged < self._sent:
            self._go_back(now)
            return None
        return self._packet(packets.DATA)  # its answer tells where the board's pipe is

    def _data(self, size: int, now: float) -> bytes:
        begin = self._next - self._kept
        payload = bytes(memoryview(self._pending)[begin : begin + size])
        packet = self._packet(packets.DATA, payload)
        self._next += size
        if self._next > self._sent:
            self._sent = self._next
            self.sent_times.append(Moment(self._next - self._first, now))
            if self._timed is None:
                self._timed = Moment(self._next, now)
                if self._tries == 0:
                    self._deadline = now + self._patience()
        else:
            self.resent += 1
        return packet

    def _packet(self, kind: int, payload: bytes = b"") -> bytes:
        self._acknowledge, self._told = False, self._got
        self._flight += 1
        return packets.pack(
            kind, self._sent_base + self._next, self._arrived_base + self._got, self._room(), payload
        )

    def receive(self, data: bytes, now: float) -> None:
        """Take what has arrived as one packet."""
        packet = packets.unpack(data)
        if packet is None:
            self.damaged += 1
            if self._open:
                self._answer_size = max(SMALLEST, self._answer_size * SHRINK)
                self._stale -= 1
                self._stale_answers -= 1
                if len(data) > packets.OVERHEAD + 4:  # it had a payload, by the look of it
                    self._want_again(now, at_once=self._stale_answers < 0)
                elif self._acknowledged < self._sent:
                    self._acknowledge = True  # ask where the board is: what was sent before is lost if it says DAMAGED
            return
        self.heard = now
        if packet.kind == packets.OPENED and not self._open:
            if packet.offset == self._offset:
                self._open = True
                backoff = 1.0 if self._tries == 1 else self._backoff  # which of them was answered is not known
                self._measure(now - self._asked_last)
                self._backoff = backoff
                self._got_on(now)
        elif packet.kind == packets.IDENTITY:
            self._identified(packet)
        elif packet.kind == packets.COUNTERS:
            self.counters = packets.counters_from(packet.payload) or self.counters
            self._asked_counters = self.counters is None
        elif packet.kind in (packets.BOARD_DATA, packets.DAMAGED) and self._open:
            acknowledged = self._acknowledged + distance(packet.acknowledged, self._sent_base + self._acknowledged)
            if acknowledged > self._sent or acknowledged < self._acknowledged - packets.MOST_ROOM:
                self._ask_identity = True  # of another session: whose is it?
                return
            self._stale_answers -= 1
            self._acknowledged_to(acknowledged, packet, now)
            self._take(packet, now)
            answered = self._first + self._arrived // self.output_frame * self.input_frame
            freed = min(answered, self._acknowledged) - self._kept
            if freed > 0:
                del self._pending[:freed]
                self._kept += freed

    def _identified(self, packet: Packet) -> None:
        self.found = packets.identity_from(packet.payload) or self.found
        if not self._open:
            return
        if packet.offset == packet.acknowledged == 0:
            self.reset = True
        else:
            ahead = distance(packet.acknowledged, self._sent_base + self._acknowledged)
            self.taken = not -packets.MOST_ROOM <= ahead <= self._sent - self._acknowledged

    def _acknowledged_to(self, position: int, packet: Packet, now: float) -> None:
        if position > self._acknowledged:
            packets_whole = min(8.0, (position - self._acknowledged) / self._size)
            self._size = min(self._most, self._size * GROW**packets_whole)
            if self._timed is not None and position >= self._timed.position:
                self._measure(now - self._timed.time)
                self._timed = None
            self._acknowledged = position
            self._next = max(self._next, position)
            self._flight = -(-(self._next - position) // int(self._size))
            self._got_on(now)
        if position >= self._acknowledged:
            self._may_send = max(self._may_send, position + packet.room)
        if packet.kind == packets.DAMAGED:
            self._stale -= 1
            if self._asked_again is not None:  # that may be what was damaged
                self._want_again(now, at_once=self._stale_answers < 0 and self._answer_size < self._most)
            elif self._acknowledged == self._sent:  # it can only have been an acknowledgement
                self._acknowledge = True
            before = self._went_back
            again = before is None or before.position != self._acknowledged or self._stale < 0
            again = again or (before is not None and now - before.time > self._trip())
            if again and self._next > self._acknowledged:
                self._go_back(now)

    def _go_back(self, now: float) -> None:
        self._stale, self._flight = self._flight - 1, 0
        self._size = max(SMALLEST, self._size * SHRINK)
        self._next = self._acknowledged
        self._timed = None  # whose round trip it would be is not known
        self._went_back = Moment(self._acknowledged, now)

    def _take(self, packet: Packet, now: float) -> None:
        ahead = distance(packet.offset, self._arrived_base + self._got)
        back = distance(packet.offset, self._last_offset) < 0
        self._last_offset = packet.offset
        size = len(packet.payload)
        if ahead > 0:  # something before it is missing
            self._want_again(now, at_once=back)
        elif not size:
            if ahead == 0:
                self._asked_again = None
        elif ahead + size <= 0:  # it has arrived before: the board has not heard of it
            self._acknowledge = True
        else:
            new, missing = packet.payload[-ahead:], self._reply - len(self.reply)
            self.reply += new[:missing]
            self.received += new[missing:]
            self._arrived += max(0, len(new) - missing)
            self.arrival_times.append(Moment(self._arrived, now))
            self._asked_again = None
            self._answer_size = min(self._most, self._answer_size * GROW)
            if 2 * (self._got - self._told) >= min(self._room(), self.identity.transmit_buffer):
                self._acknowledge = True
            self._got_on(now)

    def _got_on(self, now: float) -> None:
        self.moved, self._tries = now, 0
        self._deadline = now + self._patience()

    def _want_again(self, now: float, at_once: bool = False) -> None:
        """Have the board asked to send its pipe again, unless it is about to."""
        if at_once or self._asked_again is None or now - self._asked_again > self._trip():
            if not self._ask_again:
                self.resent += 1
                self._answer_size = max(SMALLEST, self._answer_size * SHRINK)
            self._ask_again, self._asked_again = True, now

    def _room(self) -> int:
        clean = self._answer_size >= self._most
        return packets.MOST_ROOM if clean else int(self._answer_size)

    def _window(self) -> int:
        """Return how many bytes may be under way: what is lost costs all of them."""
        return packets.MOST_ROOM if self._size >= self._most else 3 * int(self._size)

    def _measure(self, seconds: float) -> None:
        """Smooth the round trip's time and its deviation (Jacobson and Karels, 1988)."""
        self._backoff = 1.0
        if self._round_trip is None:
            self._round_trip, self._deviation = seconds, seconds / 2
        else:
            self._deviation += (abs(seconds - self._round_trip) - self._deviation) / 4
            self._round_trip += (seconds - self._round_trip) / 8

    def _trip(self) -> float:
        """Return the time after which a round trip has failed."""
        return FIRST_WAIT if self._round_trip is None else self._round_trip + 4 * self._deviation + LEAST_WAIT

    def _patience(self) -> float:
        clean = self._size >= self._most and self._answer_size >= self._most
        wait = max(CLEAN_WAIT if clean else LEAST_WAIT, self._trip())
        times = self._backoff if self._acknowledged < self._sent or not self._open else 2.0 ** min(self._tries, 2)
        return max(wait, min(MOST_WAIT, wait * (times if clean else min(times, 4.0))))
