"""A board in software: an independent model of its end of the link protocol, behind a pseudo-terminal or a UDP socket,
with faults on the line. Written from docs/reference/protocol.md; it shares nothing with hwflow's own host code."""

from __future__ import annotations

import binascii
import os
import select
import socket
import threading
import time
import tty
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

WRAP = 1 << 32
SHA256 = bytes(range(32))


def identity(
    inputs: Sequence[tuple[int, int]], outputs: Sequence[tuple[int, int]], *, sha256: bytes = SHA256, most: int = 1024,
    receive: int = 2048, transmit: int = 2048, interval: int = 128, version: int = 1,
) -> bytes:
    """The identity's bytes, field by field; streams are (bytes per beat, beats per frame)."""
    numbers: list[tuple[int, int]] = [
        (interval, 4), (125_000, 4), (most, 2), (receive, 4), (transmit, 4), (len(inputs), 1), (len(outputs), 1)
    ]  # fmt: skip
    for beat_bytes, beats in (*inputs, *outputs):
        numbers += [(beat_bytes, 2), (beats, 4)]
    return bytes([version]) + sha256 + bytes([0, 1, 0]) + b"".join(n.to_bytes(size, "little") for n, size in numbers)


def stuffed(packet: bytes) -> bytes:
    """COBS, a byte at a time, and the zero byte behind it."""
    out, block = bytearray(), bytearray()
    for byte in packet + b"\0":
        if byte:
            block.append(byte)
        if not byte or len(block) == 254:
            out += bytes([len(block) + 1]) + block
            block = bytearray()
    return bytes(out) + b"\0"


def unstuffed(data: bytes) -> bytes | None:
    """The packet in what lies between two zero bytes; None where that is none."""
    out, place = bytearray(), 0
    while place < len(data):
        count = data[place]
        block = data[place + 1 : place + count]
        if len(block) != count - 1:
            return None
        out += block
        place += count
        if count != 255 and place < len(data):
            out.append(0)
    return bytes(out)


@dataclass
class Pipes:
    """The board: what it answers to packets. ``compute``: uint8[frames, input bytes] to uint8[frames, output bytes];
    ``hold``: answers wait until this says how many frames may have theirs."""

    identity: bytes
    input_bytes: int
    output_bytes: int
    compute: Callable[[Any], Any]
    most: int = 1024
    receive: int = 2048
    transmit: int = 2048
    session: int | None = None
    frames: int = 0
    damaged: int = 0
    beyond: int = 0
    opened: int = 0
    error: int = 0
    allowed: Callable[[], int] = field(default=lambda: 1 << 60)

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Lose everything, as at power-up."""
        self.session = None
        self._start(0)

    def _start(self, offset: int) -> None:
        self.arrived = self.acknowledged = self.sent = offset
        self.room = 0
        self.core = bytearray()  # has gone in
        self.out = bytearray()  # from `acknowledged` on
        self.told = 0
        self.frames = self.damaged = self.beyond = 0

    def free(self) -> int:
        """Room for bytes of frames: the core takes them as long as its answers have room."""
        return max(0, self.receive - len(self.core)) if len(self.out) > self.transmit else self.receive

    def header(self, kind: int, offset: int, payload: bytes = b"") -> bytes:
        self.told = self.free()
        fields = (offset % WRAP, 4), (self.arrived, 4), (min(self.told, 65535), 2)
        body = bytes([kind]) + b"".join(n.to_bytes(size, "little") for n, size in fields) + payload
        return body + binascii.crc32(body).to_bytes(4, "little")

    def handle(self, data: bytes) -> list[bytes]:
        """What is sent at once for a packet that arrived."""
        if len(data) < 15 or binascii.crc32(data[:-4]).to_bytes(4, "little") != data[-4:]:
            self.damaged += 1
            return [] if self.session is None else [self.header(0x85, self.sent)]
        kind = data[0]
        offset, acknowledged = (int.from_bytes(data[i : i + 4], "little") for i in (1, 5))
        payload = data[11:-4]
        if kind == 1:
            return [self.header(0x81, self.sent, self.identity)]
        if kind == 2:
            cycles = 1 << 32 if self.frames < 2 else 129
            counters = (self.frames, self.frames, self.damaged, self.beyond, cycles, self.error)
            return [self.header(0x82, self.sent, b"".join(min(n, WRAP - 1).to_bytes(4, "little") for n in counters))]
        if kind == 3:
            if self.session != offset:
                self.session = offset
                self.opened += 1
                self._start(offset)
            self.sent = self.acknowledged
            return [self.header(0x83, self.sent)]
        if kind not in (4, 5) or self.session is None:
            return []
        gone = (acknowledged - self.acknowledged) % WRAP
        if gone <= len(self.out):  # else it is of another session, or late: only the payload counts
            if gone > (self.sent - self.acknowledged) % WRAP:
                self.sent = acknowledged  # it had arrived before it was sent again
            del self.out[:gone]
            self.acknowledged = acknowledged
            self.room = int.from_bytes(data[9:11], "little")
            if kind == 5:
                self.sent = acknowledged
        if kind == 5:
            return self.due() or [self.header(0x84, self.sent)]
        if offset == self.arrived and len(payload) <= self.free():
            self.arrived = (self.arrived + len(payload)) % WRAP
            self.core += payload
        elif (offset - self.arrived) % WRAP < 1 << 31 and (offset != self.arrived or payload):
            self.beyond += 1
            return [self.header(0x85, self.sent)]
        return self.due() or [self.header(0x84, self.sent)]

    def due(self) -> list[bytes]:
        """Let the core work, and return what there is to send."""
        count = len(self.core) // self.input_bytes
        if len(self.out) > self.transmit:
            count = 0
        count = min(count, self.allowed() - self.frames)
        if count > 0:
            taken = np.frombuffer(self.core[: count * self.input_bytes], np.uint8).reshape(count, -1)
            del self.core[: count * self.input_bytes]
            answer = np.ascontiguousarray(self.compute(taken), np.uint8)
            assert answer.shape == (count, self.output_bytes)
            self.out += answer.tobytes()
            self.frames += count
        packets = []
        while True:
            begin = (self.sent - self.acknowledged) % WRAP
            size = min(len(self.out), self.room) - begin
            size = min(size, self.most)
            if size <= 0:
                break
            payload = bytes(self.out[begin : begin + size])
            packets.append(self.header(0x84, self.sent, payload))
            self.sent = (self.sent + size) % WRAP
        if not packets and self.free() - self.told >= self.receive // 2:
            packets.append(self.header(0x84, self.sent))
        return packets


class ByteFaults:
    """Loses, adds, flips and repeats bytes, and holds some back for a while: each with a share of ``rate``."""

    def __init__(self, rate: float, seed: int) -> None:
        self.rate, self.random = rate, np.random.default_rng(seed)
        self.held, self.until = b"", 0.0
        self.count = 0

    def __call__(self, data: bytes) -> bytes:
        if not self.rate:
            return data
        if self.held and time.monotonic() >= self.until:
            data, self.held = self.held + data, b""
        elif self.held:
            self.held += data
            return b""
        kinds = self.random.random(len(data))
        hit = np.flatnonzero(kinds < self.rate)
        self.count += len(hit)
        out, begin = bytearray(), 0
        for place in hit.tolist():
            out += data[begin:place]
            begin = place + 1
            kind, noise = int(5 * kinds[place] / self.rate), int(self.random.integers(256))
            if kind == 1:
                out += bytes([noise, data[place]])
            elif kind == 2:
                out.append(data[place] ^ (1 << (noise % 8)))
            elif kind == 3:
                out += data[place : place + 1] * 2
            elif kind == 4 and noise < 32:
                self.held, self.until = data[place:], time.monotonic() + 0.002
                return bytes(out)
            elif kind == 4:
                out.append(data[place])
        return bytes(out + data[begin:])

    def late(self) -> bytes:
        """What was held back long enough."""
        return self(b"")


class PacketFaults:
    """Loses, repeats, damages and swaps datagrams: each with a share of ``rate``."""

    def __init__(self, rate: float, seed: int) -> None:
        self.rate, self.random = rate, np.random.default_rng(seed)
        self.held: list[bytes] = []
        self.count = 0

    def __call__(self, packets: Sequence[bytes]) -> list[bytes]:
        out = []
        for packet in packets:
            kind = self.random.random()
            if kind >= self.rate:
                out.append(packet)
            else:
                self.count += 1
                kind = int(4 * kind / self.rate)
                if kind == 1:
                    out += [packet, packet]
                elif kind == 2:
                    place = int(self.random.integers(len(packet)))
                    out.append(packet[:place] + bytes([packet[place] ^ 1]) + packet[place + 1 :])
                elif kind == 3:
                    self.held.append(packet)
                    continue
            out += self.held
            self.held = []
        return out


class Peer:
    """A board in a thread; ``port`` is what the host opens. ``rate``: share of the bytes, or for UDP of the packets,
    that suffer, in both directions. ``deaf``: it takes nothing and says nothing."""

    def __init__(self, pipes: Pipes, kind: str = "serial", rate: float = 0.0, seed: int = 0) -> None:
        self.pipes, self.kind = pipes, kind
        self.faults: list[Any] = [
            (ByteFaults if kind == "serial" else PacketFaults)(rate, 2 * seed + way) for way in (0, 1)
        ]
        self.deaf = self._over = False
        self.lock = threading.Lock()
        self._in, self._out = b"", bytearray()
        self._host: Any = None
        if kind == "serial":
            self._file, self._slave = os.openpty()
            tty.setraw(self._slave)
            os.set_blocking(self._file, False)
            self.port = os.ttyname(self._slave)
        else:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
            self._socket.bind(("127.0.0.1", 0))
            self._socket.setblocking(False)
            self._file = self._socket.fileno()
            self.port = f"udp:127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def reset(self) -> None:
        with self.lock:
            self.pipes.reset()
            self._out.clear()

    def close(self) -> None:
        """End; the port vanishes."""
        self._over = True
        self._thread.join()
        if self.kind == "serial":
            os.close(self._file)
            os.close(self._slave)
        else:
            self._socket.close()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._over:
            self.close()

    def _run(self) -> None:
        poll = select.poll()
        while not self._over:
            poll.register(self._file, select.POLLIN | (select.POLLOUT if self._out else 0))
            poll.poll(2)
            with self.lock:
                arrived = self._serial_read() if self.kind == "serial" else self._udp_read()
                if self.deaf:
                    continue
                answers = [answer for packet in arrived for answer in self.pipes.handle(packet)]
                if self.pipes.session is not None:
                    answers += self.pipes.due()
                self._serial_write(answers) if self.kind == "serial" else self._udp_write(answers)

    def _serial_read(self) -> list[bytes]:
        try:
            data = self.faults[0](os.read(self._file, 1 << 16))
        except BlockingIOError:
            data = self.faults[0].late()
        except OSError:  # nobody has the port open
            time.sleep(0.002)
            return []
        *parts, self._in = (self._in + data).split(b"\0")
        return [unstuffed(part) or b"?" for part in parts if part]

    def _serial_write(self, packets: Sequence[bytes]) -> None:
        self._out += self.faults[1](b"".join(map(stuffed, packets)))
        with suppress(BlockingIOError):
            del self._out[: os.write(self._file, self._out)]

    def _udp_read(self) -> list[bytes]:
        found: list[bytes] = []
        try:
            while len(found) < 64:
                data, host = self._socket.recvfrom(1 << 16)
                found.append(data)
                if host != self._host and data[:1] != b"\3":  # asked by another one: answer, and go on
                    for answer in self.pipes.handle(data):
                        self._socket.sendto(answer, host)
                    found.pop()
                    continue
                self._host = host
        except OSError:
            pass
        return self.faults[0](found)

    def _udp_write(self, packets: Sequence[bytes]) -> None:
        for packet in self.faults[1](packets):
            if self._host is not None:
                with suppress(OSError):
                    self._socket.sendto(packet, self._host)
