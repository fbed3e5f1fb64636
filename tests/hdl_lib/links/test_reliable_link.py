"""The link against a host in Python: what it answers, and that all bytes arrive once and in order whatever is lost."""

from __future__ import annotations

import random

import pytest

from hdl_lib.links.reliable_link import ReliableLink
from tests.hdl_lib.coroutines import Coroutines
from tests.hdl_lib.links.link_host import (
    BOARD_DATA,
    COUNTERS,
    DAMAGED,
    DATA,
    IDENTIFY,
    IDENTITY,
    OPEN,
    OPENED,
    RESEND,
    STATISTICS,
    Host,
    Packet,
)

IDENTITY_BYTES = bytes(range(1, 60))
SIZE = 64


class Board:
    """A link whose core adds one to each byte; ``say`` and ``hear`` are its carrier, one byte per cycle or slower."""

    def __init__(self, *, gap=0.0, stall=0.0, core_stall=0.0, seed=0, size=SIZE, echo=True, ratio=1):
        self.dut = ReliableLink(size, size, size // 2, IDENTITY_BYTES, ratio)
        self.gap, self.stall, self.core_stall = gap, stall, core_stall
        self.rng = random.Random(seed)
        self.say: list[bytes | tuple[bytes, bool]] = []  # to be sent: packets, or (packet, damaged)
        self.heard: list[bytes] = []
        self.core_got = bytearray()
        self.core_has = bytearray()
        self.echo = echo
        self.quiet = 0  # cycles since anything went either way

    async def carrier_in(self, ctx):
        i = self.dut.i
        while True:
            if not self.say:
                await ctx.tick()
                continue
            item = self.say.pop(0)
            packet, damaged = item if isinstance(item, tuple) else (item, False)
            for n, byte in enumerate(packet):
                while self.rng.random() < self.gap:
                    await ctx.tick()
                ctx.set(i.valid, 1)
                ctx.set(i.payload, {"data": byte, "last": n == len(packet) - 1, "damaged": damaged})
                ready = False
                while not ready:
                    _, _, ready = await ctx.tick().sample(i.ready)
                ctx.set(i.valid, 0)
                self.quiet = 0

    async def carrier_out(self, ctx):
        o = self.dut.o
        packet, held = bytearray(), None
        while True:
            ready = self.rng.random() >= self.stall
            ctx.set(o.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(o.valid, o.payload)
            assert held is None or (valid and held == (payload.data, payload.last)), "withdrawn before ready"
            held = (payload.data, payload.last) if valid and not ready else None
            self.quiet += 1
            if valid and ready:
                self.quiet = 0
                packet.append(payload.data)
                if payload.last:
                    self.heard.append(bytes(packet))
                    packet.clear()

    async def core(self, ctx):
        to_core, from_core = self.dut.to_core, self.dut.from_core
        while True:
            ctx.set(to_core.ready, self.rng.random() >= self.core_stall)
            ctx.set(from_core.valid, bool(self.core_has))
            ctx.set(from_core.payload, self.core_has[0] if self.core_has else 0)
            _, _, came, ready, byte, offered, taken, reset = await ctx.tick().sample(
                to_core.valid, to_core.ready, to_core.payload, from_core.valid, from_core.ready, self.dut.core_reset
            )
            if reset:
                self.core_has.clear()
                continue
            if offered and taken:
                del self.core_has[0]
            if came and ready:
                self.core_got.append(byte)
                if self.echo:
                    self.core_has.append((byte + 1) % 256)

    def run(self, script):
        """Run ``script(ctx)`` beside the rest."""
        Coroutines(self.dut).run(self.carrier_in, self.carrier_out, self.core, script)

    async def ask(self, ctx, *packets, cycles=400):
        """Say packets, and return what comes back until it is quiet."""
        self.heard.clear()
        self.say += packets
        self.quiet = 0
        for _ in range(cycles):
            await ctx.tick()
            if not self.say and self.quiet > 60:
                break
        return [Packet.decode(packet) for packet in self.heard]


def talk(script, **options):
    board = Board(**options)

    async def run(ctx):
        await script(board, lambda *packets, **more: board.ask(ctx, *packets, **more), ctx)

    board.run(run)
    return board


OFFSET = 0xFFFFFFF0
OPENING = Packet(OPEN, OFFSET).encode()


def data(at, payload=b"", acknowledged=0, room=1000, kind=DATA):
    return Packet(kind, OFFSET + at, OFFSET + acknowledged, room, payload).encode()


def board_data(at, payload, acknowledged, room, kind=BOARD_DATA):
    wrap = 1 << 32
    return Packet(kind, (OFFSET + at) % wrap, (OFFSET + acknowledged) % wrap, room, payload)


def test_before_a_session_only_questions_are_answered():
    async def script(board, ask, ctx):
        assert await ask(data(0, b"abc"), data(0, kind=RESEND), b"noise", data(5, b"xyz")) == []
        (identity,) = await ask(Packet(IDENTIFY).encode())
        assert identity.kind == IDENTITY and identity.payload == IDENTITY_BYTES
        (counters,) = await ask(Packet(STATISTICS).encode())
        # damaged before the session: one
        assert counters.kind == COUNTERS and len(counters.payload) == 24
        assert await ask(OPENING) == [board_data(0, b"", 0, SIZE, OPENED)]

    assert talk(script).core_got == b""


def test_a_session_by_hand():
    async def script(board, ask, ctx):
        assert await ask(OPENING) == [board_data(0, b"", 0, SIZE, OPENED)]
        # without room the bytes that come back stay
        first = await ask(data(0, b"abc", room=0))
        assert first[0] == board_data(0, b"", 3, SIZE - 3) or first[0] == board_data(0, b"", 3, SIZE)
        assert all(packet.payload == b"" for packet in first)
        # room for two
        assert (await ask(data(3, room=2)))[-1] == board_data(0, b"bc", 3, SIZE)
        assert await ask(data(3, acknowledged=2, room=0)) == [board_data(2, b"", 3, SIZE)]
        assert await ask(data(3, acknowledged=2)) == [board_data(2, b"d", 3, SIZE)]
        # before, and beyond what has arrived
        assert await ask(data(0, b"abc", acknowledged=3)) == [board_data(3, b"", 3, SIZE)]
        assert await ask(data(4, b"f", acknowledged=3)) == [board_data(3, b"", 3, SIZE, DAMAGED)]
        # the same OPEN again resets nothing
        assert await ask(Packet(OPEN, OFFSET).encode()) == [board_data(3, b"", 3, SIZE, OPENED)]
        # damaged
        assert await ask(data(3, b"ef", acknowledged=3)[:-1]) == [board_data(3, b"", 3, SIZE, DAMAGED)]
        assert await ask((data(3, b"ef", acknowledged=3), True)) == [board_data(3, b"", 3, SIZE, DAMAGED)]
        assert await ask(b"\x04") == [board_data(3, b"", 3, SIZE, DAMAGED)]
        # more than fits
        assert await ask(data(3, bytes(SIZE + 1), acknowledged=3)) == [board_data(3, b"", 3, SIZE)]
        assert board.core_got == b"abc"
        # another session
        other = Packet(OPEN, 77).encode()
        assert await ask(other) == [Packet(OPENED, 77, 77, SIZE)]
        assert board.core_got == b"abc"

    talk(script)


def test_resend_sends_again():
    async def script(board, ask, ctx):
        await ask(OPENING)
        await ask(data(0, b"abcdef"))
        for _ in range(2):
            answers = await ask(data(6, kind=RESEND))
            assert [p for p in answers if p.payload] == [board_data(0, b"bcdefg", 6, SIZE)]
        assert await ask(data(6, kind=RESEND, acknowledged=4)) == [board_data(4, b"fg", 6, SIZE)]
        # of another session: nothing is sent again, and nothing acknowledged
        assert await ask(data(6, kind=RESEND, acknowledged=7)) == [board_data(6, b"", 6, SIZE)]
        assert await ask(data(6, kind=RESEND, acknowledged=3)) == [board_data(6, b"", 6, SIZE)]
        assert await ask(data(6, kind=RESEND, acknowledged=4)) == [board_data(4, b"fg", 6, SIZE)]

    talk(script)


def test_room_that_grows_is_said():
    async def script(board, ask, ctx):
        board.core_stall = 1.0
        await ask(OPENING)
        (full,) = await ask(data(0, bytes(SIZE)))
        # two bytes wait in registers behind the ring
        assert full == board_data(0, b"", SIZE, full.room) and full.room <= 2
        board.core_stall = 0.0
        board.echo = False
        said = await ask(data(SIZE, b""))
        assert max(packet.room for packet in said) >= SIZE // 2

    talk(script)


def lossy(rng, rate, packet):
    """What becomes of a packet: nothing, lost, damaged, cut, twice."""
    if rng.random() >= rate:
        return [packet]
    what = rng.randrange(4)
    if what == 0:
        return []
    if what == 1:
        at = rng.randrange(len(packet))
        return [packet[:at] + bytes([packet[at] ^ (1 << rng.randrange(8))]) + packet[at + 1 :]]
    if what == 2:
        return [packet[: rng.randrange(1, len(packet) + 1)]]
    return [packet, packet]


@pytest.mark.parametrize(
    ("rate", "gap", "stall", "core_stall"),
    [(0.0, 0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.0), (0.3, 0.0, 0.0, 0.5), (0.1, 0.5, 0.5, 0.0), (0.3, 0.3, 0.6, 0.9)],
)
def test_all_bytes_arrive_once_and_in_order(rate, gap, stall, core_stall):
    rng = random.Random(repr((rate, gap, stall, core_stall)))
    board = Board(gap=gap, stall=stall, core_stall=core_stall, seed=1)
    message = rng.randbytes(600)
    host = Host(message, len(message), cut=SIZE, room=50)

    async def script(ctx):
        quiet, cycle = 0, 0
        host.again = True
        while not host.done:
            cycle += 1
            assert cycle < 60_000, "they wait for each other"
            for packet in board.heard:
                for heard in lossy(rng, rate, packet):
                    host.take(heard)
                quiet = 0
            board.heard.clear()
            if len(board.say) < 2:
                packet = host.step()
                if packet is not None:
                    board.say += lossy(rng, rate, packet)
            quiet += 1
            if quiet > 1500:
                host.timeout()
                quiet = 0
            await ctx.tick()

    board.run(script)
    assert board.core_got == message
    assert host.received == bytes((byte + 1) % 256 for byte in message)


def test_the_rate_of_the_pipes():
    """One byte per cycle inside packets: of 32 bytes with 15 around them, and some cycles between them."""
    board = Board(size=512)
    message = random.Random(1).randbytes(4000)
    host = Host(message, len(message), cut=256, room=1000)
    cycles = 0

    async def script(ctx):
        nonlocal cycles
        host.again = True
        while not host.done:
            cycles += 1
            assert cycles < 20_000
            for packet in board.heard:
                host.take(packet)
            board.heard.clear()
            while len(board.say) < 2 and (packet := host.step()) is not None:
                board.say.append(packet)
            await ctx.tick()

    board.run(script)
    assert board.core_got == message
    assert cycles < 2 * len(message)


@pytest.mark.parametrize("ratio", [1, 2])
def test_counters(ratio):
    """``ratio``: cycles of the core in one of the link's, in which intervals count."""
    async def script(board, ask, ctx):
        await ask(b"noise")
        await ask(OPENING)

        async def count():
            (packet,) = await ask(Packet(STATISTICS).encode())
            return [int.from_bytes(packet.payload[k : k + 4], "little") for k in range(0, 24, 4)]

        assert await count() == [0, 0, 0, 0, 0xFFFFFFFF, 0]
        await ask(data(0, b"a")[:-1])
        await ask(data(2, b"a"))
        await ask(data(3, b"a"))

        async def pulse(signal, *pauses):
            for pause in pauses:
                ctx.set(signal, 1)
                await ctx.tick()
                ctx.set(signal, 0)
                for _ in range(pause - 1):
                    await ctx.tick()

        await pulse(board.dut.frame_in, 3, 3, 3)
        await pulse(board.dut.frame_out, 300)
        assert await count() == [3, 1, 1, 2, 0xFFFFFFFF, 0]
        await pulse(board.dut.frame_out, 20, 19, 25)
        await pulse(board.dut.core_error, 1)
        assert await count() == [3, 4, 1, 2, 19 * ratio, 1]
        await ask(Packet(OPEN, 5).encode())
        assert await count() == [0, 0, 0, 0, 0xFFFFFFFF, 0]

    talk(script, ratio=ratio)
