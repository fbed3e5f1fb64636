"""A board as a function of the model's own arrays, against the reference evaluator."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest

from hwflow.host.runtime.board_session import connect
from hwflow.host.runtime.host_design import read_design
from hwflow.host.runtime.host_errors import HostError, LinkLost
from hwflow.host.runtime.port_search import find_port
from tests.host.link_peer import Peer, Pipes, identity
from tests.host.networks import Network, branches, classifier, random_frames, real_output
from tests.host.outs import core, made

NETWORKS = {
    "softmax": lambda: classifier("softmax"), "class": lambda: classifier("arg_max"), "branches": branches,
    "one_frame": lambda: classifier("softmax", frames=1), "sums": real_output,
}


@dataclass
class Made:
    network: Network
    folder: Path

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def digest(self) -> str:
        found: str = json.loads((self.out / "manifest.json").read_text())["model_file"]["sha256"]
        return found

    def whole(self, feeds: dict[str, Any]) -> dict[str, Any]:
        """The model's outputs; frame by frame where it takes one."""
        session = onnx.reference.ReferenceEvaluator(self.network.proto)
        names = [o.name for o in self.network.proto.graph.output]
        frames = len(next(iter(feeds.values())))
        rows = [session.run(names, {n: a[k : k + 1] for n, a in feeds.items()}) for k in range(frames)]
        return {name: np.concatenate([row[n] for row in rows]) for n, name in enumerate(names)}


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    found: dict[str, Made] = {}

    def get(name: str) -> Made:
        if name not in found:
            folder = tmp_path_factory.mktemp(name)
            found[name] = Made(NETWORKS[name](), folder)
            made(folder, found[name].network)
        return found[name]

    return get


def equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_allclose(found[name], array, rtol=1e-6)  # the suffix's floats are another's


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("carrier", ["serial", "udp"])
def test_run(networks, name, carrier):
    made = networks(name)
    with Peer(core(made.folder), carrier) as peer, connect(made.out, peer.port) as board:
        for frames in (1, 7, 0):
            feeds = random_frames(made.network, frames, seed=frames)
            found = board.run(feeds)
            if frames:
                equal(found, made.whole(feeds))
            else:
                assert all(len(array) == 0 for array in found.values())
        assert board.statistics()["frames_out"] == 8
        assert board.identity.model_sha256 == made.digest


def test_batches_of_any_size_and_a_bad_line(networks, monkeypatch):
    monkeypatch.setattr("hwflow.host.runtime.board_session._CHUNK", 200)
    made = networks("softmax")
    feeds = random_frames(made.network, 150)
    with Peer(core(made.folder), "serial", 0.005, seed=1) as peer, connect(made.out, peer.port) as board:
        equal(board.run(feeds), made.whole(feeds))
        assert board.statistics()["resent"] > 0


def test_a_stream(networks):
    made = networks("branches")
    batches = [random_frames(made.network, 1 + n % 3, seed=n) for n in range(20)]
    with Peer(core(made.folder), "udp") as peer, connect(made.out, peer.port) as board:
        for batch, found in zip(batches, board.stream(iter(batches)), strict=True):
            equal(found, made.whole(batch))


def test_a_stream_s_answers_come_before_the_next_batch(networks):
    """As from a camera: the source waits until the answer to the frame before is there."""
    made = networks("class")
    feeds = random_frames(made.network, 3)
    seen: list[Any] = []

    def camera():
        for n in range(3):
            while len(seen) < n:
                pass
            yield {"image": feeds["image"][n : n + 1]}

    with Peer(core(made.folder), "udp") as peer, connect(made.out, peer.port) as board:
        for found in board.stream(camera()):
            seen.append(found["class"])
    np.testing.assert_array_equal(np.concatenate(seen), made.whole(feeds)["class"])


def test_a_stream_that_is_left_early(networks):
    """The answers that nobody took are not taken for others'."""
    made = networks("class")
    feeds = random_frames(made.network, 5, seed=3)
    with Peer(core(made.folder), "udp") as peer, connect(made.out, peer.port) as board:
        stream = board.stream({"image": feeds["image"][n % 4 : n % 4 + 1]} for n in itertools.count())
        next(stream)
        with pytest.raises(HostError, match="must do one thing at a time, not be called while a stream"):
            board.run(feeds)
        stream.close()
        equal(board.run(feeds), made.whole(feeds))


def test_an_error_of_a_stream_s_source(networks):
    made = networks("class")

    def source():
        yield random_frames(made.network, 2)
        yield {"image": np.zeros((1, 2))}

    with Peer(core(made.folder), "udp") as peer, connect(made.out, peer.port) as board:
        stream = board.stream(source())
        assert len(next(stream)["class"]) == 2
        with pytest.raises(HostError, match=r"shape must be \[frames, 3, 4, 2\], not \[1, 2\]"):
            next(stream)
        feeds = random_frames(made.network, 1)
        equal(board.run(feeds), made.whole(feeds))


@pytest.mark.parametrize(
    ("arrays", "messages"),
    [
        ({}, ["input 'x': must be given, not missing (there is nothing)", "input 'y': must be given"]),
        ({"x": np.zeros((2, 3)), "y": np.zeros((2, 4))},
         ["input 'x': shape must be [frames, 4], not [2, 3]", "must be of an integer type (uint8), not float64"]),
        ({"x": np.zeros((2, 4)), "y": np.full((3, 4), 7), "z\n": 1},
         ["must have the same number of frames, not 2, 3", r"input 'z\n': must be an input of the model ('x', 'y')"]),
        ({"x": np.full((1, 4), np.inf), "y": np.full((1, 4), 256)},
         ["input 'x': must hold finite numbers of type float32 only", "must be within uint8, 0 to 255, not 256"]),
        ({"x": np.zeros(4), "y": np.array(5)},
         ["input 'x': shape must be [frames, 4], not [4]", "input 'y': shape must be [frames, 4], not []"]),
    ],
)  # fmt: skip
def test_frames_that_are_none(networks, arrays, messages):
    made = networks("branches")
    with Peer(core(made.folder), "udp") as peer, connect(made.out, peer.port) as board:
        with pytest.raises(HostError) as refused:
            board.run(arrays)
        assert refused.value.exit_code == 2
        for message in messages:
            assert message in str(refused.value)
        feeds = random_frames(made.network, 1)
        equal(board.run(feeds), made.whole(feeds))


@pytest.mark.parametrize("change", [1, -1])
def test_bytes_that_are_no_frames(networks, change):
    made = networks("branches")
    with Peer(core(made.folder), "udp") as peer, connect(made.out, peer.port) as board:
        size = board.design.input_bytes
        with pytest.raises(HostError, match=rf"must be uint8\[frames, {size}\], not uint8\[3, {size + change}\]"):
            board.raw(np.zeros((3, size + change), np.uint8))
        assert board.raw(np.zeros((3, size), np.uint8)).shape == (3, board.design.output_bytes)


# --- which board -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("carrier", ["serial", "udp"])
def test_a_board_that_was_closed(networks, carrier):
    """It says so, and does not wait for answers for ever."""
    made = networks("softmax")
    feeds = random_frames(made.network, 2)
    with Peer(core(made.folder), carrier) as peer:
        with connect(made.out, peer.port) as board:
            board.run(feeds)
        board.close()
        for use in (lambda: board.run(feeds), lambda: list(board.stream([feeds])), board.statistics):
            with pytest.raises(HostError, match="must be open, not closed"):
                use()
        with connect(made.out, peer.port) as board:
            equal(board.run(feeds), made.whole(feeds))


def other() -> Pipes:
    return Pipes(identity([(1, 2)], [(1, 1)], sha256=bytes(32)), 2, 1, lambda frames: frames[:, :1])


def test_another_network(networks):
    made = networks("class")
    with Peer(other()) as peer, pytest.raises(LinkLost) as refused:
        connect(made.out, peer.port)
    wanted = f"must hold network 'network' (SHA-256 {made.digest[:12]}), not another: SHA-256 000000000000"
    assert wanted in str(refused.value)
    assert "2 beats of 1 bytes in, 1 beats of 1 bytes out" in str(refused.value)
    assert "hwflow program" in str(refused.value)


def test_another_design_of_the_network(networks):
    made = networks("class")
    pipes = core(made.folder)
    pipes.identity = identity([(3, 8)], [(2, 1)], sha256=bytes.fromhex(made.digest))
    with Peer(pipes) as peer, pytest.raises(LinkLost, match="not a design of it with 8 beats of 3 bytes in"):
        connect(made.out, peer.port)


FT231X = {"vendor": 0x0403, "product": 0x6015}


@dataclass
class Listed:
    """A serial port as pyserial lists it."""

    device: str
    vid: int | None = 0x0403
    pid: int = 0x6015
    location: str | None = "1-1.2:1.0"


def linked(made: Made, **link: Any) -> Any:
    return replace(read_design(made.out), link={"carrier": "serial", "usb": [FT231X], **link})


def test_the_board_is_found(networks):
    """Among ports of other devices, other networks' boards and silent ones."""
    made = networks("class")
    with Peer(core(made.folder)) as right, Peer(other()) as wrong, Peer(core(made.folder)) as silent:
        silent.deaf = True
        ports = [
            Listed("/dev/none", vid=None), Listed("/dev/mouse", pid=1), Listed(wrong.port), Listed(right.port),
            Listed(silent.port),
        ]
        found = find_port(linked(made), seconds=0.5, listed=lambda: ports)
        assert found.carrier.name == right.port
        found.carrier.close()


def test_two_boards(networks):
    made = networks("class")
    with Peer(core(made.folder)) as first, Peer(core(made.folder)) as second:
        ports = [Listed(first.port), Listed(second.port)]
        with pytest.raises(HostError, match=r"must be one that holds network 'network', not 2: at '/dev/pts"):
            find_port(linked(made), listed=lambda: ports)
        find_port(linked(made), first.port).carrier.close()


def test_no_board(networks):
    made = networks("class")
    ports = [Listed("/dev/mouse", pid=1, vid=2)]
    with pytest.raises(HostError, match=r"port with USB id 0403:6015 of a board, not '/dev/mouse' \("):
        find_port(linked(made), listed=lambda: ports)
    with Peer(other()) as wrong, pytest.raises(HostError, match="must hold network 'network'"):
        find_port(linked(made), listed=lambda: [Listed(wrong.port)])
    with Peer(other()) as silent, pytest.raises(HostError, match=r"a board must answer within 0\.2 seconds"):
        silent.deaf = True
        find_port(linked(made), seconds=0.2, listed=lambda: [Listed(silent.port)])
    with pytest.raises(HostError, match="the design must have a link to a host, not Verilog alone"):
        find_port(replace(linked(made), link={}))
    with pytest.raises(HostError, match=r"run 'python3 board/overlay\.py' on the board itself"):
        find_port(linked(made, carrier="dma"))
    with pytest.raises(HostError, match=r"option --port: must be named for a board with Ethernet"):
        find_port(linked(made, carrier="udp"))


@pytest.mark.parametrize(
    ("wanted", "location", "matches"),
    [
        (FT231X | {"interface": 1}, "1-1:1.1", True), (FT231X | {"interface": 1}, "1-1:1.0", False),
        (FT231X | {"interface": 1}, None, True), ({"vendor": 0x0403, "product": 0x6016}, "", False),
    ],
)  # fmt: skip
def test_interfaces_of_a_device(networks, wanted, location, matches):
    """Of a chip with two serial ports, the second leads to the FPGA."""
    made = networks("class")
    with Peer(core(made.folder)) as peer:
        ports = [Listed(peer.port, location=location)]
        if matches:
            find_port(linked(made, usb=[wanted]), listed=lambda: ports).carrier.close()
        else:
            with pytest.raises(HostError, match="must be a USB serial port with USB id"):
                find_port(linked(made, usb=[wanted]), listed=lambda: ports)


def test_the_address_of_a_board(networks):
    made = networks("class")
    with Peer(core(made.folder), "udp") as peer:
        address = peer.port.removeprefix("udp:")
        find_port(linked(made, carrier="udp", address=address)).carrier.close()


def test_no_output_folder(tmp_path):
    with pytest.raises(HostError, match=r"but it has no manifest\.json"):
        connect(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(HostError, match=r"but its manifest\.json or board\.json is damaged, or of an older version"):
        connect(tmp_path)
