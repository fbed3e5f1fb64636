"""A bad line: frames through a simulated board, with a share of what passes its line damaged, every answer compared.

    python benchmarks/faults.py [MODEL.onnx] [--board icebreaker] [--ethernet ADDRESS] [--rate 0.01] [--seed 1]
        [--frames 20000 | --minutes 10] [--resets SECONDS] [--hosts SECONDS]

A damaged byte or datagram is lost, preceded by another one, changed in a bit, delayed or repeated. ``--resets``: the
board loses all it knows at random moments, on average once in so many of its seconds. ``--hosts``: hosts are processes
that are killed at random moments, on average after so many seconds, each followed by another; one in five is not killed
before the next one begins: on a serial port that one is refused, over Ethernet it takes the board. Frames are random.
Wrong and lost frames must be none, and a host must end in one clear error if in any: else the exit status is 1.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import hwflow
from hwflow.api.compiler import compile as compile_model
from hwflow.host.random_inputs import random_inputs
from hwflow.host.runtime.host_errors import HostError
from hwflow.sim.simulated_board import SimulatedBoard
from hwflow.toolchain.verilator import VERILATOR
from hwflow.verify import golden

DIGITS = Path(__file__).parent.parent / "examples" / "digits" / "model.onnx"
BATCH = 200  # frames that a host compares at once
STUCK = 120  # seconds after which a host that says nothing is
# What a host may end with: two resets and no answer between them; another host has the board now, or still has it.
CLEAR = {"board-reset", "one-host", "port-busy"}


def live(told: Connection, out: Path, peer: SimulatedBoard, model: Any, seed: int, batches: int | None) -> None:
    """Live as a host: tell of each batch how many frames were sent, how many answers are wrong, how many packets were
    sent again; at the end None, or the error's rule."""
    rng = np.random.default_rng(seed)
    try:
        with hwflow.connect(out, peer.port, patience=60, clock=peer.seconds) as board:
            resent = 0
            while batches is None or batches > 0:
                batches = None if batches is None else batches - 1
                done = board.exchange(random_inputs(model, BATCH, rng))
                due = golden.evaluate(model.quantized, {n: a.astype(np.int64) for n, a in done.sent.items()})
                differ = np.zeros(BATCH, bool)
                for name, array in done.received.items():
                    differ |= (array != due[name].reshape(array.shape)).reshape(BATCH, -1).any(axis=1)
                now = board.link.link.resent
                told.send((BATCH, int(differ.sum()), now - resent))
                resent = now
        told.send(None)
    except HostError as error:
        told.send(error.findings[0].rule)
    except BaseException as error:
        told.send(repr(error))


class Host:
    """A host's process. ``until``: when it is to be killed, in the board's seconds; ``heard``: when it last said
    something, on the wall's clock."""

    def __init__(self, until: float, *arguments: Any) -> None:
        fork = multiprocessing.get_context("fork")
        self.told, tell = fork.Pipe(duplex=False)
        self.process = fork.Process(target=live, args=(tell, *arguments), daemon=True)
        self.process.start()
        tell.close()
        self.until, self.heard, self.followed = until, time.monotonic(), False

    def news(self) -> Iterator[tuple[int, int, int] | str | None]:
        """Return what it has told since."""
        while self.told.poll():
            self.heard = time.monotonic()
            try:
                yield self.told.recv()
            except EOFError:
                return

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


@dataclass
class Tally:
    """What has happened so far. ``ends``: of hosts, by their errors' rules; None: all frames were answered."""

    frames: int = 0
    wrong: int = 0
    resent: int = 0
    hosts: int = 0
    killed: int = 0
    ends: Counter[str | None] = field(default_factory=Counter)


def exchange(arguments: argparse.Namespace, peer: SimulatedBoard, begin: Callable[[float], Host]) -> Tally:
    """Let hosts come and go, and the board be reset, until it is over."""
    rng, tally = np.random.default_rng(arguments.seed), Tally()
    over = time.monotonic() + 60 * arguments.minutes if arguments.minutes else math.inf

    def after(mean: float | None) -> float:
        return math.inf if mean is None else peer.seconds() + mean * rng.uniform(0.5, 1.5)

    def start() -> None:
        hosts.append(begin(after(arguments.hosts)))
        tally.hosts += 1

    hosts: list[Host] = []
    start()
    reset = after(arguments.resets)
    while time.monotonic() < over:
        time.sleep(0.02)
        for host in list(hosts):
            for item in host.news():
                if isinstance(item, tuple):
                    tally.frames, tally.wrong, tally.resent = (
                        sum(pair) for pair in zip((tally.frames, tally.wrong, tally.resent), item, strict=True)
                    )
                else:
                    tally.ends[item] += 1
                    host.kill()
                    hosts.remove(host)
            if host in hosts and time.monotonic() - host.heard > STUCK:
                tally.ends["stuck"] += 1
                host.until = 0
            if host in hosts and peer.seconds() > host.until:
                if not host.followed and rng.random() < 0.2:
                    host.followed, host.until = True, after(arguments.hosts)
                    start()
                else:
                    host.kill()
                    hosts.remove(host)
                    tally.killed += 1
        if tally.ends[None]:
            break
        if not hosts:
            start()
        if peer.seconds() > reset:
            peer.reset()
            reset = after(arguments.resets)
    for host in hosts:
        host.kill()
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description="Frames over a bad line.")
    parser.add_argument("model", nargs="?", type=Path, default=DIGITS)
    parser.add_argument("--board", default="icebreaker")
    parser.add_argument("--ethernet", metavar="ADDRESS")
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--frames", type=int, default=20_000)
    length.add_argument("--minutes", type=float)
    parser.add_argument("--resets", type=float, metavar="SECONDS")
    parser.add_argument("--hosts", type=float, metavar="SECONDS")
    arguments = parser.parse_args()
    design = compile_model(arguments.model, arguments.board, ethernet=arguments.ethernet)
    verilator = VERILATOR.find()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        design.write(out)
        with SimulatedBoard(
            out, command=verilator.command, environment=verilator.environment, faults=arguments.rate,
            seed=arguments.seed,
        ) as peer:
            seeds = itertools.count(arguments.seed)
            batches = None if arguments.minutes else -(-arguments.frames // BATCH)
            start = time.monotonic()
            tally = exchange(
                arguments, peer, lambda until: Host(until, out, peer, design.model, next(seeds), batches)
            )
            counted, simulated, seconds = peer.counters(), peer.seconds(), time.monotonic() - start
    errors = {rule: count for rule, count in tally.ends.items() if rule is not None}
    damaged = sum(counted[name] for name in ("lost", "added", "flipped", "delayed", "duplicated"))
    row = {
        "network": arguments.model.parent.name, "link": "UDP" if arguments.ethernet else "serial",
        "frames": f"{tally.frames:,}", "wrong": tally.wrong, "packets sent again": f"{tally.resent:,}",
        "passed the line": f"{counted['to_board'] + counted['to_host']:,}", "damaged": f"{damaged:,}",
        "hosts": tally.hosts, "killed": tally.killed,
        "errors": ", ".join(f"{count} {rule}" for rule, count in sorted(errors.items())) or "none",
        "resets": counted["resets"], "simulated seconds": f"{simulated:.1f}", "seconds": f"{seconds:.0f}",
    }
    for cells in (row, ["---"] * len(row), row.values()):
        print(f"| {' | '.join(map(str, cells))} |")
    unclear = [rule for rule in errors if rule not in CLEAR]
    return int(tally.wrong > 0 or bool(unclear))


if __name__ == "__main__":
    sys.exit(main())
