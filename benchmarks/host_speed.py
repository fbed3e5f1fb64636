"""Measure the host's end of the link alone: digits over loopback UDP, against a board in software in another process.

    .venv/bin/python benchmarks/host_speed.py [--frames 300000] [--payload 1024]

Prints frames a second for bytes that are ready to be sent (`raw`), and for the model's own arrays (`run`: prefix,
order, suffix). The board answers each packet at once with the same bytes for each frame.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hwflow.host.runtime.board_session import connect
from tests.host.link_peer import identity

ROOT = Path(__file__).resolve().parents[1]
WRAP = 1 << 32


def board(port: Any, out: Path, most: int) -> None:
    """Be a board whose core is free: a packet in, a packet of answers out."""
    manifest = json.loads((out / "manifest.json").read_text())
    shapes = [
        [(s["lanes"] * s["element_bytes"], s["beats"]) for s in manifest[way]] for way in ("inputs", "outputs")
    ]
    into, outof = (sum(a * b for a, b in way) for way in shapes)
    named = identity(
        *shapes, sha256=bytes.fromhex(manifest["model_file"]["sha256"]), most=most, receive=1 << 15, transmit=1 << 16
    )
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
    link.bind(("127.0.0.1", 0))
    port.send(link.getsockname()[1])
    arrived = sent = base = 0
    answers = bytes(range(outof)) * (most // outof + 2)

    def packet(kind: int, payload: bytes = b"") -> bytes:
        numbers = ((sent % WRAP).to_bytes(4, "little"), (arrived % WRAP).to_bytes(4, "little"), b"\xff\x7f")
        body = bytes([kind]) + b"".join(numbers) + payload
        return body + crc32(body).to_bytes(4, "little")

    while True:
        data, host = link.recvfrom(1 << 16)
        offset, acknowledged = int.from_bytes(data[1:5], "little"), int.from_bytes(data[5:9], "little")
        size = len(data) - 15
        if data[0] == 1:
            link.sendto(packet(0x81, named), host)
        elif data[0] == 2:
            link.sendto(packet(0x82, bytes(24)), host)
        elif data[0] == 3:
            arrived = sent = base = offset
            link.sendto(packet(0x83), host)
        else:
            gap = (offset - arrived) % WRAP
            if gap and gap < WRAP // 2:
                link.sendto(packet(0x85), host)
                continue
            arrived = (arrived + (size if gap == 0 else 0)) % WRAP
            if data[0] == 5:
                sent = acknowledged
            due = (arrived - base) % WRAP // into * outof - (sent - base) % WRAP
            phase = (sent - base) % WRAP % outof
            while True:
                part = answers[phase : phase + min(due, most)]
                link.sendto(packet(0x84, part), host)
                sent, due, phase = (sent + len(part)) % WRAP, due - len(part), (phase + len(part)) % outof
                if due <= 0:
                    break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=300_000)
    parser.add_argument("--payload", type=int, default=1024, help="bytes of a packet")
    options = parser.parse_args()
    from amaranth.hdl import UnusedElaboratable

    from tests.host.networks import Network
    from tests.host.outs import made

    warnings.simplefilter("ignore", UnusedElaboratable)  # of a top that is only described
    with tempfile.TemporaryDirectory() as folder:
        import onnx

        frames = np.load(ROOT / "examples" / "digits" / "inputs.npz")["input"]
        network = Network(onnx.load(ROOT / "examples" / "digits" / "model.onnx"), (), ())
        out = made(Path(folder), network, arrays={"image": frames[:4]})
        mine, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=board, args=(theirs, out, options.payload), daemon=True)
        process.start()
        try:
            images = np.resize(frames, (options.frames, *frames.shape[1:]))
            with connect(out, f"udp:127.0.0.1:{mine.recv()}") as link:
                data = link.coder.encode(link.coder.integers({"image": images[:1000]}))
                data = np.resize(data, (options.frames, data.shape[1]))
                for name, run in (("raw", lambda: link.raw(data)), ("run", lambda: link.run({"image": images}))):
                    begin = time.perf_counter()
                    run()
                    rate = options.frames / (time.perf_counter() - begin)
                    print(f"{name}: {rate:,.0f} frames a second, {link.link.link.resent} packets sent again")
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
