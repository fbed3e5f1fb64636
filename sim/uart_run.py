"""Run a whole board design (with its UART and the vendor's primitives as models) and talk to it through its pins."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .cocotb_run import CocotbJob, run_job

_BENCH = "hwflow_board_bench"


@dataclass(frozen=True)
class UartResult:
    """The bytes received. ``timed_out``: the line fell silent before the last expected byte."""

    received: bytes
    expected: bytes
    faults: tuple[str, ...]
    timed_out: bool
    elapsed_ps: int
    seconds: float

    @property
    def ok(self) -> bool:
        return self.received == self.expected and not self.faults

    def complaints(self) -> list[str]:
        """One sentence for each thing that is wrong; empty if :attr:`ok`."""
        found = list(self.faults)
        pairs = enumerate(zip(self.received, self.expected, strict=False))
        wrong = next(((i, got, due) for i, (got, due) in pairs if got != due), None)
        if wrong is not None:
            found.append(f"byte {wrong[0]}: must be {wrong[2]:#04x}, not {wrong[1]:#04x}")
        if len(self.received) != len(self.expected):
            found.append(f"there must be {len(self.expected)} bytes, not {len(self.received)}")
        return found


def run_uart(
    sources: Sequence[Path],
    top: str,
    *,
    rx: str,
    tx: str,
    clock: str,
    clock_ps: int,
    divisor: int,
    send: bytes,
    expect: bytes,
    work_folder: Path,
    run_folder: Path,
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    simulator: str = "icarus",
    uart_clock_ps: int | None = None,
    reset: str | None = None,
    reset_active: int = 1,
    startup_cycles: int = 20,
    ties: Mapping[str, int] | None = None,
    idle_bits: int = 0,
    timeout_bits: int = 1000,
    wave: Path | None = None,
) -> UartResult:
    """Send bytes to pin ``rx`` of module ``top`` and compare what pin ``tx`` sends back.

    ``sources``: the design and the models of every primitive in it; pins may be input, output or inout ports.
    ``clock`` runs with a period of ``clock_ps``; a bit lasts ``divisor`` periods of the UART's own clock,
    ``uart_clock_ps`` if that differs from the pin's (a PLL between them). ``reset`` (if there is one) is held at
    ``reset_active`` for 20 clock periods; the line is left alone for ``startup_cycles`` clock periods more (a board
    that makes its own reset says how many in board.json). ``ties``: levels of other pins. ``timeout_bits``: silence, in
    bit times after everything is sent, after which the run ends. The simulator runs in ``run_folder`` (where `weights/`
    is); what is built goes to ``work_folder``.
    """
    work_folder.mkdir(parents=True, exist_ok=True)
    bench = work_folder / f"{_BENCH}.v"
    text = _bench(top, rx, tx, clock, reset, reset_active, dict(ties or {}))
    if not bench.is_file() or bench.read_text() != text:
        bench.write_text(text)
    with tempfile.TemporaryDirectory(prefix="hwflow-sim-") as scratch:
        result = Path(scratch) / "result.json"
        settings = {
            "send": send.hex(),
            "expect": expect.hex(),
            "bit_ps": divisor * (uart_clock_ps or clock_ps),
            "clocks": {"hwflow_clock": clock_ps},
            "reset": ["hwflow_reset", reset_active] if reset else None,
            "reset_ps": 20 * clock_ps,
            "startup_ps": startup_cycles * clock_ps,
            "idle_bits": idle_bits,
            "timeout_bits": timeout_bits,
            "result": str(result),
        }
        job = CocotbJob(
            simulator,
            command,
            [bench, *sources],
            _BENCH,
            "cocotb_uart",
            run_folder,
            work_folder,
            settings,
            environment or {},
            0,
            wave,
        )
        _, seconds = run_job(job, result)
        table = json.loads(result.read_text())
    return UartResult(
        bytes.fromhex(table["received"]),
        expect,
        tuple(table["faults"]),
        table["timed_out"],
        table["elapsed_ps"],
        seconds,
    )


def _bench(
    top: str, rx: str, tx: str, clock: str, reset: str | None, reset_active: int, ties: Mapping[str, int]
) -> str:
    """A wrapper whose registers drive the pins, so that inout ports are driven by nets like any other."""
    driven = {clock: "hwflow_clock", rx: "hwflow_rx"} | ({reset: "hwflow_reset"} if reset else {})
    connections = [f"        .\\{tx} (hwflow_tx)"]
    nets = []
    for port, register in driven.items():
        nets.append(f"    wire {register}_net = {register};")
        connections.append(f"        .\\{port} ({register}_net)")
    for i, (port, level) in enumerate(ties.items()):
        nets.append(f"    wire hwflow_tie{i} = 1'b{level};")
        connections.append(f"        .\\{port} (hwflow_tie{i})")
    return "\n".join(
        [
            f"module {_BENCH};",
            "    reg hwflow_clock = 1'b0;",
            "    reg hwflow_rx = 1'b1;",
            f"    reg hwflow_reset = 1'b{reset_active};",
            "    wire hwflow_tx;",
            *nets,
            f"    \\{top} dut (",
            ",\n".join(connections),
            "    );",
            "endmodule",
            "",
        ]
    )
