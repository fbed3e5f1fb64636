"""Gigabit Ethernet: a packet per UDP datagram, answered to whom the latest one came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from ipaddress import AddressValueError, IPv4Address
from typing import TYPE_CHECKING, Any

from amaranth import ClockDomain, ClockSignal, Const, Instance, Module, ResetSignal, Signal
from amaranth.lib import io, wiring
from amaranth.lib.cdc import ResetSynchronizer

from hdl_lib.clocks.pll_ecp5 import Ecp5Pll, find_ecp5_pll
from hdl_lib.links.datagrams import DatagramReceiver, DatagramSender
from hwflow.codegen.board.carriers.board_carrier import Carrier, Pin
from hwflow.display import show
from hwflow.errors import UsageError

if TYPE_CHECKING:
    from hwflow.boards import Board

UDP_PORT = 18519
CORE, PORT = "hwflow_ethernet", "link"  # LiteEth's module, and the prefix of its ports with datagrams
LINE_HZ = 125_000_000  # of RGMII: a byte each cycle
# The core's clock is the design's, divided: the core is slow (about 50 MHz on an LFE5U of speed grade 6). Words of 32
# bits come at a fourth of the line's rate, and each frame takes some cycles more: at 31.25 MHz it damages frames that
# come back to back.
LEAST_HZ = 40_000_000
# Bytes of the line around a datagram: preamble 8, Ethernet 14, IPv4 20, UDP 8, check sequence 4, gap 12.
AROUND, LEAST_DATAGRAM = 66, 18
_MAC_ADDRESS = 0x02_00_00_00_00_00  # locally administered; the lower half is the IP address


class UdpCarrier(Carrier):
    """A board's Ethernet socket at an IPv4 ``address``, with LiteEth's core for MAC, ARP, ICMP, IPv4 and UDP."""

    name = "udp"

    def __init__(self, board: Board, clock_hz: Fraction, address: str) -> None:
        where = f"board {show(board.name)}"
        if board.ethernet is None:
            raise UsageError.of(
                "ethernet-port", where, "must have Ethernet that hwflow knows, not only another link",
                "leave out --ethernet, or choose a board with it (see 'hwflow boards')",
            )
        try:
            self.address = IPv4Address(address)
        except AddressValueError:
            raise UsageError.of(
                "ip-address", "option --ethernet", f"must be an IPv4 address, not {show(address)}",
                "for example 192.168.1.50",
            ) from None
        self.ratio = int(clock_hz // LEAST_HZ)
        if not self.ratio:
            raise UsageError.of(
                "ethernet-clock", where,
                f"the clock of a design behind Ethernet must be at least {LEAST_HZ / 1e6:g} MHz, not "
                f"{float(clock_hz) / 1e6:g}", "ask for a higher --clock",
            )
        self.ethernet, self.oscillator_hz, self.clock_hz = board.ethernet, board.clock.hz, clock_hz
        super().__init__()

    @property
    def core(self) -> Mapping[str, Any]:
        """Return what LiteEth's core is made for (:mod:`hwflow.toolchain.ethernet.ethernet_core`)."""
        return {
            "module": CORE, "port": PORT, "file": "board/ethernet.v", "clock_hz": round(self.clock_hz / self.ratio),
            "mac_address": _MAC_ADDRESS | int(self.address), "ip_address": str(self.address), "udp_port": UDP_PORT,
            "tx_delay": self.ethernet.tx_delay_ns * 1e-9, "rx_delay": self.ethernet.rx_delay_ns * 1e-9,
        }

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        self._clock(m)
        resource = self.ethernet.resource, self.ethernet.number
        pins = platform.request(*resource, dir={line.name: "-" for line in platform.lookup(*resource).ios})
        platform.add_clock_constraint(pins.rx_clk.io, LINE_HZ)
        control, buffers = self.ethernet.control, {}
        for name, way in (
            ("rst", "o"), ("rx_clk", "i"), (f"rx_{control}", "i"), ("rx_data", "i"),
            ("tx_clk", "o"), (f"tx_{control}", "o"), ("tx_data", "o"),
        ):
            m.submodules[name] = buffers[name] = io.Buffer(way, getattr(pins, name))
        reset_n = Signal()
        m.d.comb += buffers["rst"].o.eq(~reset_n)

        m.submodules.receiver = receiver = DatagramReceiver()
        m.submodules.sender = sender = DatagramSender()
        wiring.connect(m, receiver.o, wiring.flipped(self.received))
        wiring.connect(m, wiring.flipped(self.packets), sender.i)

        # Whom the latest datagram came from, and whom the one on its way goes to.
        came_ip, came_port, to_ip, to_port = Signal(32), Signal(16), Signal(32), Signal(16)
        from_ip, from_port, ends_in, takes = Signal(32), Signal(16), Signal(4), Signal()
        word, sent = receiver.i.payload, sender.o.payload
        busy = Signal()
        m.d.comb += [
            word.bytes[0].eq(ends_in[1] | ends_in[3]),
            word.bytes[1].eq(ends_in[2] | ends_in[3]),
            sender.o.ready.eq(busy & takes),
        ]
        with m.If(receiver.i.valid):
            m.d.ethernet += [came_ip.eq(from_ip), came_port.eq(from_port)]
        with m.If(~busy):
            m.d.ethernet += [busy.eq(sender.o.valid), to_ip.eq(came_ip), to_port.eq(came_port)]
        with m.Elif(takes & sender.o.valid & sent.last):
            m.d.ethernet += busy.eq(0)

        m.submodules.core = Instance(
            CORE,
            i_sys_clock=ClockSignal("ethernet"), i_sys_reset=ResetSignal("ethernet"),
            o_rgmii_rst_n=reset_n,
            i_rgmii_clocks_rx=buffers["rx_clk"].i, i_rgmii_rx_ctl=buffers[f"rx_{control}"].i,
            i_rgmii_rx_data=buffers["rx_data"].i,
            o_rgmii_clocks_tx=buffers["tx_clk"].o, o_rgmii_tx_ctl=buffers[f"tx_{control}"].o,
            o_rgmii_tx_data=buffers["tx_data"].o,
            **{
                f"{way}_{PORT}_{name}": value
                for way, name, value in (
                    ("o", "source_data", word.data), ("o", "source_last", word.last), ("o", "source_last_be", ends_in),
                    ("o", "source_error", word.error), ("o", "source_valid", receiver.i.valid),
                    ("o", "source_ip_address", from_ip), ("o", "source_src_port", from_port), ("i", "source_ready", 1),
                    ("i", "sink_data", sent.data), ("i", "sink_last", sent.last),
                    ("i", "sink_last_be", (1 << sent.bytes)[:4] & sent.last.replicate(4)),
                    ("i", "sink_length", sender.length), ("i", "sink_valid", busy & sender.o.valid),
                    ("o", "sink_ready", takes), ("i", "sink_ip_address", to_ip), ("i", "sink_dst_port", to_port),
                    ("i", "sink_src_port", Const(UDP_PORT, 16)),
                )
            },
        )
        return m

    def _clock(self, m: Module) -> None:
        """Make the domain ``ethernet``, as fast as the design's clock divided, by a PLL: one of nextpnr's routers does
        not bring a clock that flip-flops make to the clock network."""
        m.domains.ethernet = ClockDomain(local=True)
        clock, lost = ClockSignal("sync"), Signal()
        if self.ratio > 1:
            m.submodules.pll = pll = Ecp5Pll(find_ecp5_pll(self.oscillator_hz, self.clock_hz), self.ratio)
            m.d.comb += [pll.clk_in.eq(ClockSignal("oscillator")), lost.eq(~pll.lock)]
            clock = pll.clk_divided
        m.d.comb += ClockSignal("ethernet").eq(clock)
        m.submodules.reset = ResetSynchronizer(ResetSignal("sync") | lost, domain="ethernet")

    @property
    def pins(self) -> Sequence[Pin]:
        port = f"{self.ethernet.resource}_{self.ethernet.number}"
        control = self.ethernet.control
        return tuple(
            Pin(f"rgmii_{name}", f"{port}__{own}__io", output, width)
            for name, own, output, width in (
                ("rst_n", "rst", True, 1), ("rx_clk", "rx_clk", False, 1), ("rx_ctl", f"rx_{control}", False, 1),
                ("rx_data", "rx_data", False, 4), ("tx_clk", "tx_clk", True, 1), ("tx_ctl", f"tx_{control}", True, 1),
                ("tx_data", "tx_data", True, 4),
            )
        )

    @property
    def bytes_per_second(self) -> Fraction:
        return min(Fraction(LINE_HZ), self.clock_hz)  # the link takes a byte each cycle

    def bytes_of(self, packet: int) -> int:
        return AROUND + max(packet, LEAST_DATAGRAM)

    def table(self) -> Mapping[str, Any]:
        return {
            "transport": "UDP, gigabit Ethernet", "address": f"{self.address}:{UDP_PORT}", "baud": None, "usb": []
        }

    def simulated(self) -> Mapping[str, float]:
        return {"LINE_HZ": float(LINE_HZ), "BOARD_ADDRESS": int(self.address), "BOARD_PORT": UDP_PORT}
