"""The other end of a board's Ethernet, as a cocotb test: ARP, ICMP echo, and the link over UDP on a bad network."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import Timer, with_timeout
from cocotbext.eth import GmiiFrame, RgmiiSink, RgmiiSource
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from tests.hdl_lib.links.link_host import BOARD_DATA, DATA, IDENTIFY, IDENTITY, OPEN, OPENED, RESEND, Packet

MAC, HOST, BOARD, PORT = "02:00:00:00:00:99", "192.168.1.77", "192.168.1.50", 18519
OFFSET = 0xFFFFFFF0  # of the session: it wraps


class Peer:
    """A host on the wire; ``port``: of its datagrams."""

    def __init__(self, dut):
        self.source = RgmiiSource(dut.rx_data, dut.rx_ctl, dut.rx_clk)
        self.sink = RgmiiSink(dut.tx_data, dut.tx_ctl, dut.tx_clk)
        self.board = "ff:ff:ff:ff:ff:ff"
        self.asked = 0

    async def send(self, packet) -> None:
        await self.source.send(GmiiFrame.from_payload(bytes(packet)))

    async def receive(self, microseconds=100):
        """The next frame from the board; who asks for this host's address gets it."""
        while True:
            frame = await with_timeout(self.sink.recv(), microseconds, "us")
            assert frame.check_fcs() and len(frame.get_payload()) >= 60  # the least there is
            packet = Ether(bytes(frame.get_payload()))
            if ARP not in packet or packet[ARP].op != 1:
                return packet
            self.asked += 1
            assert (packet[ARP].psrc, packet[ARP].pdst) == (BOARD, HOST)
            answer = ARP(op=2, hwsrc=MAC, psrc=HOST, hwdst=packet.src, pdst=BOARD)
            await self.send(Ether(src=MAC, dst=packet.src) / answer)

    async def resolve(self) -> None:
        question = ARP(op=1, hwsrc=MAC, psrc=HOST, pdst=BOARD)
        await self.send(Ether(src=MAC, dst=self.board) / question)
        answer = await self.receive()
        assert (answer[ARP].op, answer[ARP].psrc, answer.dst) == (2, BOARD, MAC)
        self.board = answer[ARP].hwsrc

    async def ping(self, data: bytes) -> None:
        await self.send(Ether(src=MAC, dst=self.board) / IP(src=HOST, dst=BOARD) / ICMP(id=7, seq=3) / Raw(data))
        answer = await self.receive()
        assert (answer[ICMP].type, answer[ICMP].id, answer[ICMP].seq, bytes(answer[ICMP].payload)) == (0, 7, 3, data)

    async def tell(self, packet: Packet, port=40_000, flip=False) -> None:
        data = bytearray(packet.encode())
        if flip:
            data[5] ^= 4
        datagram = UDP(sport=port, dport=PORT) / Raw(bytes(data))
        await self.send(Ether(src=MAC, dst=self.board) / IP(src=HOST, dst=BOARD) / datagram)

    async def told(self, port=40_000) -> Packet:
        answer = await self.receive()
        udp = answer[UDP]
        assert (answer[IP].src, answer[IP].dst, udp.sport, udp.dport) == (BOARD, HOST, PORT, port)
        return Packet.decode(bytes(udp.payload)[: udp.len - 8])


@cocotb.test()
async def ethernet(dut):
    settings = json.loads(Path(os.environ["ETHERNET_BENCH"]).read_text())
    Clock(dut.clk, settings["clock_ps"], "ps").start()
    Clock(dut.rx_clk, 8, "ns").start()
    await Timer(settings["startup_us"], "us")
    peer = Peer(dut)
    await peer.resolve()
    await peer.ping(bytes(range(50)))
    assert peer.asked == 1

    # another port of the same host asks; then one that opens a session
    await peer.tell(Packet(IDENTIFY), port=5_000)
    identity = await peer.told(port=5_000)
    assert (identity.kind, identity.payload.hex()) == (IDENTITY, settings["identity"])
    await peer.tell(Packet(OPEN, OFFSET))
    opened = await peer.told()
    assert (opened.kind, opened.offset) == (OPENED, OFFSET)

    # frames of four bytes, some datagrams lost, repeated, swapped or damaged, go-back-N until all is answered
    rng = random.Random(1)
    frames, received = rng.randbytes(settings["bytes"]), b""
    acknowledged = at = tries = 0
    while len(received) < len(frames):
        tries += 1
        assert tries < 100
        burst = []
        at = acknowledged
        for _ in range(3):
            size = min(rng.randint(1, 40), len(frames) - at)
            if size:
                burst.append(Packet(DATA, OFFSET + at, OFFSET + len(received), 65_535, frames[at : at + size]))
                at += size
        fate = rng.choice(["lost", "repeated", "swapped", "damaged", "well"])
        if fate == "lost" and burst:
            burst.pop(rng.randrange(len(burst)))
        elif fate == "repeated":
            burst += burst[:1]
        elif fate == "swapped":
            burst.reverse()
        for k, packet in enumerate(burst):
            await peer.tell(packet, flip=fate == "damaged" and k == 1)
        await Timer(5, "us")
        await peer.tell(Packet(RESEND, OFFSET + at, OFFSET + len(received), 65_535))
        while True:
            try:
                answer = await with_timeout(peer.told(), 15, "us")
            except cocotb.triggers.SimTimeoutError:
                break
            acknowledged = max(acknowledged, (answer.acknowledged - OFFSET) % 2**32)
            ahead = (answer.offset - OFFSET) % 2**32
            if answer.kind == BOARD_DATA and ahead <= len(received) < ahead + len(answer.payload):
                received = received[:ahead] + answer.payload
    assert received == bytes((byte + 1) % 256 for byte in frames)
    Path(settings["result"]).write_text(json.dumps({"tries": tries}))
