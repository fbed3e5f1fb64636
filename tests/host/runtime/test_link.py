"""The host's end of the link against a board in software: right answers on bad lines, one clear error where there is
nothing to be done."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hwflow.host.runtime import packets
from hwflow.host.runtime.carrier import open_carrier
from hwflow.host.runtime.host_errors import HostError, HostFinding, LinkLost
from hwflow.host.runtime.link import Link
from hwflow.host.runtime.link_thread import LinkThread, ask_identity
from tests.host.link_peer import Peer, Pipes, identity

CARRIERS = ("serial", "udp")


def compute(frames):
    """Answers that depend on every byte of their frame."""
    total = frames.astype(np.int64) @ np.arange(1, frames.shape[1] + 1)
    return np.stack([total >> 8 & 255, total & 255, frames[:, 0]], axis=1)


def pipes(size: int = 8, **options) -> Pipes:
    return Pipes(identity([(1, size)], [(3, 1)]), size, 3, compute, **options)


def frames_of(count: int, size: int = 8) -> np.ndarray:
    random = np.random.default_rng(count).integers(0, 256, (count, size), dtype=np.uint8)
    random[::3] &= 1  # many zeros
    return random


class Host:
    """A link to a peer, with frames of the peer's size."""

    def __init__(self, peer: Peer, **options) -> None:
        self.carrier = open_carrier(peer.port)
        found = ask_identity(self.carrier, 10)
        assert found is not None
        size = peer.pipes.input_bytes
        options = {"patience": 30.0, "refuse": lambda found: None} | options
        self.thread = LinkThread(self.carrier, found, size, 3, options.pop("refuse"), **options)

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *error: object) -> None:
        self.thread.close()

    def run(self, frames: np.ndarray) -> np.ndarray:
        self.thread.send(frames.tobytes())
        return self.answers(len(frames))

    def answers(self, count: int) -> np.ndarray:
        got = b""
        while len(got) < 3 * count:
            got += self.thread.take(3 * count - len(got))
        return np.frombuffer(got, np.uint8).reshape(-1, 3)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("size", [1, 64, 3072])
def test_a_good_line(carrier, size):
    frames = frames_of(300, size)
    with Peer(pipes(size), carrier) as peer, Host(peer) as host:
        assert (host.run(frames) == compute(frames)).all()
        assert (host.run(frames[:1]) == compute(frames[:1])).all()
        assert peer.pipes.opened == 1


@pytest.mark.parametrize(("carrier", "rate", "count"), [("serial", 0.01, 3000), ("udp", 0.2, 20_000)])
def test_a_bad_line(carrier, rate, count):
    """A byte of a hundred, a datagram of five: no answer is wrong, none is lost."""
    frames = frames_of(count)
    with Peer(pipes(), carrier, rate, seed=3) as peer, Host(peer) as host:
        assert (host.run(frames) == compute(frames)).all()
        assert peer.pipes.frames == count
        assert host.thread.link.resent > 10
        assert min(faults.count for faults in peer.faults) > 10
        assert host.thread.counters().frames_out == count


def test_offsets_wrap(monkeypatch):
    monkeypatch.setattr("secrets.randbelow", lambda most: most - 2000)
    frames = frames_of(1000)
    with Peer(pipes(), "udp", 0.1) as peer, Host(peer) as host:
        assert (host.run(frames) == compute(frames)).all()


@pytest.mark.parametrize("carrier", CARRIERS)
def test_the_board_is_reset(carrier):
    frames = frames_of(6000)
    with Peer(pipes(), carrier) as peer, Host(peer, patience=20) as host:
        for begin in range(0, 6000, 2000):
            with peer.lock:
                most = peer.pipes.frames + 500
            peer.pipes.allowed = lambda most=most: most
            host.thread.send(frames[begin : begin + 2000].tobytes())
            assert (host.answers(500) == compute(frames[begin : begin + 500])).all()
            peer.reset()
            peer.pipes.allowed = lambda: 1 << 40
            assert (host.answers(1500) == compute(frames[begin + 500 : begin + 2000])).all()
        assert host.thread.reopened == 3


def test_the_board_is_reset_at_rest():
    """Nobody notices until there are frames again."""
    frames = frames_of(50)
    with Peer(pipes(), "udp") as peer, Host(peer) as host:
        assert (host.run(frames) == compute(frames)).all()
        peer.reset()
        assert (host.run(frames) == compute(frames)).all()
        assert host.thread.reopened == 1


def test_a_reset_is_an_error_for_a_design_with_state():
    with Peer(pipes(allowed=lambda: 1)) as peer, Host(peer, reopen=False) as host:
        host.thread.send(frames_of(3).tobytes())
        host.answers(1)
        peer.reset()
        with pytest.raises(LinkLost, match="must keep its session, not be reset while frames were under way"):
            host.answers(1)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_restart_is_a_session_that_begins_behind_all_answers(carrier):
    frames = frames_of(200)
    with Peer(pipes(), carrier) as peer, Host(peer, reopen=False) as host:
        for session in range(1, 4):
            host.thread.send(frames.tobytes())
            first = host.answers(50)
            host.thread.restart()
            assert peer.pipes.opened == session + 1
            assert (np.concatenate([first, host.answers(150)]) == compute(frames)).all()
        assert (host.run(frames) == compute(frames)).all()


def test_the_cable_is_pulled():
    with Peer(pipes(allowed=lambda: 1)) as peer, Host(peer) as host:
        host.thread.send(frames_of(3).tobytes())
        host.answers(1)
        peer.close()
        with pytest.raises(LinkLost, match="must stay while frames are under way, but it vanished"):
            host.answers(1)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_the_board_falls_silent(carrier):
    with Peer(pipes(), carrier) as peer, Host(peer, patience=0.3) as host:
        host.thread.opened()
        peer.deaf = True
        host.thread.send(frames_of(3).tobytes())
        with pytest.raises(LinkLost, match=r"must answer, but nothing has arrived for 0\.3 seconds"):
            host.answers(1)


def test_the_core_hangs():
    with Peer(pipes(allowed=lambda: 2), "udp") as peer, Host(peer, patience=1) as host:
        host.thread.send(frames_of(3).tobytes())
        host.answers(2)
        with pytest.raises(LinkLost, match=r"only kept the link alive \(2 frames are answered\)"):
            host.answers(1)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_host_is_killed_and_another_goes_on(carrier):
    frames = frames_of(500)
    with Peer(pipes(allowed=lambda: 20), carrier) as peer:
        with Host(peer) as host:
            host.thread.send(frames.tobytes())
            host.answers(20)
        peer.pipes.allowed = lambda: 1 << 40
        with Host(peer) as host:
            assert (host.run(frames) == compute(frames)).all()


def test_two_hosts_at_once():
    """The first one loses the board to the second, and says so."""
    frames = frames_of(100)
    with Peer(pipes(allowed=lambda: 10), "udp") as peer, Host(peer) as first:
        first.thread.send(frames.tobytes())
        first.answers(10)
        with Host(peer) as second:
            second.thread.opened()
            peer.pipes.allowed = lambda: 1 << 40
            with pytest.raises(LinkLost, match="must have one host at a time, not be taken over by another one"):
                first.answers(1)
            assert (second.run(frames) == compute(frames)).all()


def test_a_serial_port_is_one_host_s():
    with Peer(pipes()) as peer, Host(peer), pytest.raises(HostError, match="one program at a time"):
        open_carrier(peer.port)


def test_another_network_appears():
    """Somebody loads another bitstream: it resets the board."""
    def refuse(found):
        if found.model_sha256 != bytes(range(32)).hex():
            raise HostError(HostFinding("network", "board", "must hold A, not B", "load it"))

    with Peer(pipes(allowed=lambda: 1), "udp") as peer, Host(peer, refuse=refuse) as host:
        host.thread.send(frames_of(3).tobytes())
        host.answers(1)
        peer.reset()
        peer.pipes.identity = identity([(1, 8)], [(3, 1)], sha256=bytes(32))
        with pytest.raises(HostError, match="must hold A, not B"):
            host.answers(1)


def test_nothing_answers():
    with Peer(pipes()) as peer:
        peer.deaf = True
        carrier = open_carrier(peer.port)
        assert ask_identity(carrier, 0.2) is None
        assert ask_identity(carrier, 1e6, iter([0, 5e5, 2e6]).__next__) is None  # two looks at the clock later
        carrier.close()


def test_another_version_of_the_protocol():
    with Peer(Pipes(identity([(1, 1)], [(1, 1)], version=9), 1, 1, compute)) as peer:
        carrier = open_carrier(peer.port)
        with pytest.raises(LinkLost, match="must speak version 1 of the link protocol, not 9"):
            ask_identity(carrier, 5)
        carrier.close()


@pytest.mark.parametrize(
    ("port", "message"),
    [
        ("/dev/no\x1bsuch", r"port '/dev/no\\x1bsuch': must be a device, not missing"),
        ("/dev/null", r"must be a serial device that can be opened, but"),
        ("udp:", r"must be udp:HOST or udp:HOST:PORT, not 'udp:'"),
        ("udp:localhost:0", r"must be udp:HOST or udp:HOST:PORT, not 'udp:localhost:0'"),
        ("udp:no.such.host.invalid", "must be a host that can be reached, but"),
    ],
)
def test_ports_that_are_none(port, message):
    with pytest.raises(HostError, match=message):
        open_carrier(port)


def test_packets_shrink_on_a_bad_line_and_grow_again():
    """Without a line: the link alone, its packets lost by hand."""
    found = packets.identity_from(identity([(1, 1)], [(1, 1)], receive=4096))
    assert found is not None
    link = Link(found, 1, 1, 0.0)
    opened = packets.unpack(link.due(0.0) or b"")
    assert opened is not None and opened.kind == packets.OPEN
    start = opened.offset
    link.receive(packets.pack(packets.OPENED, start, 0, 0), 0.001)
    link.send(bytes(1 << 20), 0.002)
    sizes, position, now = [], 0, 0.002
    for turn in range(400):
        sent = packets.unpack(link.due(now) or b"")
        if sent is not None and sent.kind == packets.IDENTIFY:  # when nothing was acknowledged for a while
            sent = packets.unpack(link.due(now) or b"")
        assert sent is not None and sent.kind == packets.DATA and sent.offset == (start + position) & packets.MASK
        sizes.append(len(sent.payload))
        now += 0.01
        lost = turn < 20
        position += 0 if lost else len(sent.payload)
        kind = packets.DAMAGED if lost else packets.BOARD_DATA
        link.receive(packets.pack(kind, start, start + position, 4096), now)
    assert sizes[0] == 1024 and sizes[20] == 32 and sizes[-1] == 1024
    assert sizes[:21] == sorted(sizes[:21], reverse=True) and sizes[20:] == sorted(sizes[20:])
    ends = np.cumsum(sizes[20:])  # of what was sent from the first byte on when nothing was lost any more
    assert link.resent == 19 + (ends <= 1024).sum()  # the first packet had 1024 bytes: smaller ones carry them again


@pytest.mark.parametrize(("rate", "count"), [(0.1, 40_000), (0.4, 2000)])
def test_a_bad_line_costs_packets_not_time(rate, count):
    """Without a line or a clock: of what is damaged, what comes back makes the host go on, nearly always without a
    timer."""
    board = pipes()
    found = packets.identity_from(board.identity)
    assert found is not None
    random = np.random.default_rng(int(100 * rate))
    link = Link(found, 8, 3, 0.0)
    frames, now, timers, damaged = frames_of(count), 0.0, 0, 0
    link.send(frames.tobytes(), now)

    def line(data: bytes) -> bytes:
        nonlocal damaged
        if random.random() > rate:
            return data
        damaged += 1
        return data[:-1]

    while len(link.received) < 3 * len(frames):
        sent = []
        while (packet := link.due(now)) is not None:
            sent.append(packet)
        if not sent:
            timers += 1
            now += link.wait(now) or pytest.fail("it waits for ever")
        back = [answer for packet in sent for answer in (*board.handle(line(packet)), *board.due())]
        now += 0.001
        for answer in back:
            link.receive(line(answer), now)
    assert (np.frombuffer(link.received, np.uint8).reshape(-1, 3) == compute(frames)).all()
    assert damaged > 50 and timers <= damaged // 5


def test_a_link_at_rest_asks_nothing():
    with Peer(pipes()) as peer, Host(peer) as host:
        host.run(frames_of(1))
        with peer.lock:
            before = peer.pipes.told, peer.pipes.arrived
            peer.pipes.handle = lambda data: pytest.fail("something was sent")  # type: ignore[method-assign]
        time.sleep(0.3)
        assert (peer.pipes.told, peer.pipes.arrived) == before
        assert host.thread.link.wait(time.monotonic()) is None
