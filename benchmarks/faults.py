"""A bad line: frames through a simulated board, with a share of the bytes on its line damaged, every answer compared.

    python benchmarks/faults.py [MODEL.onnx] [--board icebreaker] [--frames 20000] [--rate 0.01] [--seed 1]
        [--sessions 1] [--resets SECONDS]

A damaged byte is lost, preceded by another one, changed in a bit, delayed or repeated. ``--sessions``: the frames are
shared out among so many hosts, one after the other; each but the last is killed with frames under way.
``--resets``: the board loses all it knows at random moments, on average once in so many of its seconds. Frames are
random. Wrong and lost frames must be none: the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import hwflow
from hwflow.api.compiler import compile as compile_model
from hwflow.sim.simulated_board import SimulatedBoard
from hwflow.toolchain.verilator import VERILATOR
from hwflow.verify import golden
from hwflow.verify.random_inputs import random_inputs

DIGITS = Path(__file__).parent.parent / "examples" / "digits" / "model.onnx"


def main() -> int:
    parser = argparse.ArgumentParser(description="Frames over a bad line.")
    parser.add_argument("model", nargs="?", type=Path, default=DIGITS)
    parser.add_argument("--board", default="icebreaker")
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--resets", type=float)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    design = compile_model(arguments.model, arguments.board)
    inputs = random_inputs(design.model, arguments.frames, rng)
    verilator = VERILATOR.find()
    wrong = answered = resent = 0
    begin = time.monotonic()
    with ExitStack() as stack:
        out = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "out"
        design.write(out)
        peer = stack.enter_context(
            SimulatedBoard(
                out, command=verilator.command, environment=verilator.environment, faults=arguments.rate,
                seed=arguments.seed,
            )
        )
        if arguments.resets:
            over = threading.Event()
            thread = threading.Thread(target=reset_at_random, args=(peer, arguments.resets, rng, over))
            thread.start()
            stack.callback(thread.join)
            stack.callback(over.set)
        shares = np.array_split(np.arange(arguments.frames), arguments.sessions)
        for share in shares:
            frames = {name: array[share] for name, array in inputs.items()}
            with hwflow.connect(out, peer.port, patience=60, clock=peer.seconds) as board:
                done = board.exchange(frames)
                resent += board.link.link.resent
                if share is not shares[-1]:
                    board.link.send(board.coder.encode(done.sent)[:20].data.cast("B"))  # nobody takes the answers
            due = golden.evaluate(design.model.quantized, {n: a.astype(np.int64) for n, a in done.sent.items()})
            differ = np.zeros(len(share), bool)
            for name, array in done.received.items():
                differ |= (array != due[name].reshape(array.shape)).reshape(len(share), -1).any(axis=1)
            wrong += int(differ.sum())
            answered += len(differ)
        counted, seconds = peer.counters(), peer.seconds()
    lost = arguments.frames - answered
    damaged = sum(counted[name] for name in ("lost", "added", "flipped", "delayed", "duplicated"))
    print("| model | frames | wrong | lost | packets sent again | bytes on the line | damaged | sessions | resets | "
          "simulated seconds | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    cells = (
        arguments.model.parent.name, arguments.frames, wrong, lost, resent,
        f"{counted['to_board'] + counted['to_host']:,}", f"{damaged:,}", arguments.sessions, counted["resets"],
        f"{seconds:.1f}", f"{time.monotonic() - begin:.0f}",
    )
    print(f"| {' | '.join(map(str, cells))} |")
    return int(wrong + lost > 0)


def reset_at_random(peer: SimulatedBoard, mean: float, rng: np.random.Generator, over: threading.Event) -> None:
    """Reset the board again and again. (A host gives up where two resets come without an answer between.)"""
    after = peer.seconds() + mean * rng.uniform(0.5, 1.5)
    while not over.wait(0.01):
        if peer.seconds() >= after:
            peer.reset()
            after = peer.seconds() + mean * rng.uniform(0.5, 1.5)


if __name__ == "__main__":
    sys.exit(main())
