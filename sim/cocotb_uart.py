"""A UART on the other side of a board's rx and tx pins (8N1), and the cocotb test that uses it.

The agent works in simulated time, not in clock cycles: a bit lasts ``bit_ps`` picoseconds (design clock period times
divisor), so it costs nothing between edges and needs no clock. The test reads its job from the JSON file named by
HWFLOW_BENCH: "send", "expect" (hex), "bit_ps", "clocks" ({signal: period_ps}), "reset" ([signal, active level] or
null), "reset_ps", "startup_ps" (the line idles that long after reset), "idle_bits", "timeout_bits", "result".
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import Event, FallingEdge, First, Timer
from cocotb.utils import get_sim_time


class UartAgent:
    """Sends on the design's rx pin, receives from its tx pin: 1 start bit, 8 data bits (least first), 1 stop bit.

    ``rx`` and ``tx`` are handles named from the design's point of view. ``received`` grows as bytes arrive; ``faults``
    names framing errors and unknown levels with the number of the byte. Start :meth:`receive` as a task.
    """

    def __init__(self, rx: Any, tx: Any, bit_ps: int) -> None:
        self.rx = rx
        self.tx = tx
        self.bit_ps = bit_ps
        self.received = bytearray()
        self.faults: list[str] = []
        self.arrived = Event()
        rx.value = 1

    async def send(self, data: bytes, idle_bits: int = 0) -> None:
        """Send bytes back to back, or with ``idle_bits`` bit times between them."""
        for byte in data:
            for bit in (0, *(byte >> i & 1 for i in range(8)), 1):
                self.rx.value = bit
                await Timer(self.bit_ps, unit="ps")
            if idle_bits:
                await Timer(self.bit_ps * idle_bits, unit="ps")

    async def receive(self) -> None:
        """Receive forever: bits are sampled in their middle."""
        while True:
            await FallingEdge(self.tx)
            await Timer(self.bit_ps + self.bit_ps // 2, unit="ps")
            levels = []
            for _ in range(9):
                levels.append(str(self.tx.value))
                if len(levels) < 9:
                    await Timer(self.bit_ps, unit="ps")
            if not set(levels) <= {"0", "1"}:
                self.faults.append(f"byte {len(self.received)}: bits must be 0 or 1, not {''.join(levels).upper()}")
            elif levels[8] != "1":
                self.faults.append(f"byte {len(self.received)}: the stop bit must be 1, not 0")
            bits = [int(level == "1") for level in levels[:8]]
            self.received.append(sum(bit << i for i, bit in enumerate(bits)))
            self.arrived.set()


@cocotb.test
async def bytes_pass(dut: Any) -> None:
    """Exactly the expected bytes come back over the UART."""
    job = json.loads(Path(os.environ["HWFLOW_BENCH"]).read_text())
    send, expect = bytes.fromhex(job["send"]), bytes.fromhex(job["expect"])
    uart = UartAgent(dut.hwflow_rx, dut.hwflow_tx, job["bit_ps"])
    for name, period in job["clocks"].items():
        Clock(getattr(dut, name), period, unit="ps").start()
    if job["reset"] is not None:
        name, level = job["reset"]
        getattr(dut, name).value = level
        await Timer(job["reset_ps"], unit="ps")
        getattr(dut, name).value = 1 - level
    await Timer(job["startup_ps"], unit="ps")
    cocotb.start_soon(uart.receive())
    begin = get_sim_time("ps")
    sender = cocotb.start_soon(uart.send(send, job["idle_bits"]))

    timed_out = False
    while len(uart.received) < len(expect) and not timed_out:
        uart.arrived.clear()
        patience = Timer(job["bit_ps"] * job["timeout_bits"], unit="ps")
        progress = uart.arrived.wait()
        hit = await First(progress, patience)
        timed_out = hit is patience and sender.done()
    if not timed_out:
        await Timer(job["bit_ps"] * 25, unit="ps")  # two bytes' time: nothing more may come
    Path(job["result"]).write_text(
        json.dumps(
            {
                "received": uart.received.hex(),
                "faults": uart.faults,
                "timed_out": timed_out,
                "elapsed_ps": int(get_sim_time("ps") - begin),
            }
        )
    )
    assert bytes(uart.received) == expect and not uart.faults, f"received {uart.received.hex()}, not {expect.hex()}"
