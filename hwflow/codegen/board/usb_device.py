"""LUNA's USB serial device on two pins at full speed (https://github.com/greatscottgadgets/luna, BSD-3-Clause).

LUNA is an optional extra: only this module imports it, and only the USB carrier imports this module. Domains:
``usb_io`` (48 MHz), and ``usb`` (12 MHz), whose rising edges are some of those.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

from amaranth import Elaboratable, Module, ResetInserter, Signal
from amaranth.lib.cdc import FFSynchronizer

with warnings.catch_warnings():  # it imports names by which Amaranth 0.5 no longer calls its parts
    warnings.simplefilter("ignore", DeprecationWarning)
    from luna.gateware.interface.gateware_phy import GatewarePHY
    from luna.gateware.usb.devices.acm import ACMRequestHandlers, USBSerialDevice
    from luna.gateware.usb.usb2.device import USBDevice
    from luna.gateware.usb.usb2.endpoint import EndpointInterface
    from luna.gateware.usb.usb2.endpoints.stream import USBStreamInEndpoint, USBStreamOutEndpoint

PACKET = 64  # bytes: the largest bulk packet at full speed
_VENDOR_NAME = "hwflow"


class UsbLines:
    """D+ and D- behind their buffers, and the pull-up of D+: ``d_p.i``, ``d_p.o``, ``d_p.oe``, ``d_n`` likewise,
    ``pullup.o``."""

    def __init__(self) -> None:
        def line(name: str) -> SimpleNamespace:
            return SimpleNamespace(**{way: Signal(name=f"{name}_{way}") for way in ("i", "o", "oe")})

        self.d_p, self.d_n = line("d_p"), line("d_n")
        self.pullup = SimpleNamespace(o=Signal(name="pullup"))


class UsbSerialDevice(USBSerialDevice):  # type: ignore[misc]  # LUNA carries no annotations
    """LUNA's serial device, with two changes: its endpoints start anew at a bus reset and at a new configuration, as
    the data toggles of the host do (USB 2.0, 9.1.1.5), and the endpoint for notifications only says that it has none.

    ``lines``: to the pins; ``product``: the name that it shows. ``rx``, ``tx``: LUNA's streams, in ``usb``; ``last`` of
    ``tx`` ends a transfer. ``connect`` must be high.
    """

    def __init__(self, lines: UsbLines, vendor_id: int, product_id: int, product: str) -> None:
        self._phy = _Phy(io=lines)
        super().__init__(
            bus=self._phy, idVendor=vendor_id, idProduct=product_id, manufacturer_string=_VENDOR_NAME,
            product_string=product, serial_number=0, max_packet_size=PACKET,
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.phy = self._phy
        m.submodules.usb = usb = USBDevice(bus=self._phy)
        control = usb.add_standard_control_endpoint(self.create_descriptors())
        control.add_request_handler(ACMRequestHandlers())
        restart = Signal()
        m.d.comb += [restart.eq(usb.reset_detected | control.interface.config_changed), usb.connect.eq(self.connect)]
        number = self._DATA_ENDPOINT_NUMBER
        to_host, from_host = _ToHost(restart, number), _FromHost(restart, number)
        for endpoint in (_Silent(self._STATUS_ENDPOINT_NUMBER), from_host, to_host):
            usb.add_endpoint(endpoint)
        m.d.comb += [to_host.stream.stream_eq(self.tx), self.rx.stream_eq(from_host.stream)]
        return m


class _Phy(GatewarePHY):  # type: ignore[misc]  # LUNA carries no annotations
    """LUNA's PHY, whose line state is synchronised to ``usb``: there it is the input of a state machine."""

    line_state: Any

    def elaborate(self, platform: Any) -> Module:
        synchronised, pins = self.line_state, Signal(2)
        self.line_state = pins
        m: Module = super().elaborate(platform)
        self.line_state = synchronised
        m.submodules.line_state = FFSynchronizer(pins, synchronised, o_domain="usb")
        return m


class _Restarted:
    """An endpoint of LUNA's for data that starts anew while ``restart`` is high."""

    def __init__(self, restart: Signal, number: int) -> None:
        self._restart = restart
        super().__init__(endpoint_number=number, max_packet_size=PACKET)  # type: ignore[call-arg]  # LUNA's class is behind

    def elaborate(self, platform: Any) -> Any:
        made = super().elaborate(platform)  # type: ignore[misc]  # LUNA's class is behind
        return ResetInserter({"usb": self._restart})(made)


class _ToHost(_Restarted, USBStreamInEndpoint):  # type: ignore[misc]  # LUNA carries no annotations
    pass


class _FromHost(_Restarted, USBStreamOutEndpoint):  # type: ignore[misc]  # LUNA carries no annotations
    pass


class _Silent(Elaboratable):  # type: ignore[misc]  # Amaranth carries no annotations
    """An endpoint to the host that never has anything."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.interface = EndpointInterface()

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        token = self.interface.tokenizer
        asked = token.is_in & (token.endpoint == self._number) & token.ready_for_response
        m.d.comb += self.interface.handshakes_out.nak.eq(asked)
        return m
