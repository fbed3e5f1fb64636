"""A board's top in Icarus Verilog behind its serial pins, with our models of the vendor's primitives.

What is sent is fixed beforehand; a host that answers is in tests of the simulated board.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.hdl_lib.links.link_host import BOARD_DATA, DATA, IDENTIFY, IDENTITY, OPEN, OPENED, WRAP, Packet, cobs, uncobs

BENCH = Path(__file__).parent / "toolchain" / "board_bench.v"
MODELS = Path(__file__).parents[1] / "sim" / "verilog"
OFFSET = 0xFFFFFFF0  # of the session: it wraps
CYCLE_NS = 10  # of the design's clock: the models of PLLs pass their input on


def talk(out: Path, *packets: Packet, language: str = "2005") -> list[Packet | None]:
    """What the board of the folder ``out`` answers to packets, sent back to back; None for a damaged one."""
    board = json.loads((out / "board" / "board.json").read_text())
    line = b"".join(cobs(packet.encode()) for packet in packets)
    (out / "board" / "bench.hex").write_text("".join(f"{byte:02x}\n" for byte in line))
    parameters = {
        "STARTUP": board["simulation"]["startup_cycles"],
        "BIT": round(100 * CYCLE_NS * board["link"]["cycles_per_bit"]),
        "COUNT": len(line),
        "BYTES": '"board/bench.hex"',
    }
    subprocess.run(
        [
            "iverilog", f"-g{language}", "-s", "board_bench", "-o", "board/bench.vvp",
            *(f"-Pboard_bench.{name}={value}" for name, value in parameters.items()),
            str(BENCH), board["simulation"]["source"], "board/top.v", *board["sources"],
            str(MODELS / f"{board['part']['family']}.v"),
        ],
        cwd=out, check=True,
    )
    result = subprocess.run(["vvp", "-n", "board/bench.vvp"], cwd=out, check=True, capture_output=True, text=True)
    lines = [line for line in result.stdout.splitlines() if "$finish" not in line and "$readmemh" not in line]
    coded = bytes.fromhex("".join(lines)).split(b"\0")
    assert coded.pop() == b"", "the last packet has no end"
    return [None if (packet := uncobs(part)) is None else Packet.decode(packet) for part in coded]


def exchange(out: Path, frames: bytes, *, language: str = "2005") -> bytes:
    """What the core of ``out`` makes of the bytes of frames; the board is asked who it is as well."""
    board = json.loads((out / "board" / "board.json").read_text())
    most = board["link"]["most_payload"]
    data = [
        Packet(DATA, OFFSET + at, OFFSET, 65_535, frames[at : at + most]) for at in range(0, len(frames), most)
    ]
    identity, opened, *answers = talk(
        out, Packet(IDENTIFY), Packet(OPEN, OFFSET), *data, Packet(DATA, OFFSET + len(frames), OFFSET, 65_535),
        language=language,
    )
    assert identity is not None and identity.kind == IDENTITY
    assert identity.payload.hex() == board["link"]["identity"]
    assert opened == Packet(OPENED, OFFSET, OFFSET, board["link"]["receive_bytes"])
    received = b""
    for packet in answers:
        assert packet is not None and packet.kind == BOARD_DATA and packet.offset == (OFFSET + len(received)) % WRAP
        received += packet.payload
    return received
