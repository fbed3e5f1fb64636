"""The host's end of a serial port, against a pseudo-terminal, and packages that the host lacks."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hwflow.host.runtime import float_parts, port_search, serial_carrier
from hwflow.host.runtime.host_design import HostPart
from hwflow.host.runtime.host_errors import HostError, LinkLost
from hwflow.host.runtime.serial_carrier import SerialCarrier


@pytest.fixture
def line() -> Iterator[tuple[int, SerialCarrier]]:
    """The board's end, and a carrier at the other."""
    board, host = pty.openpty()
    carrier = SerialCarrier(os.ttyname(host))
    os.close(host)
    yield board, carrier
    carrier.close()


def test_packets(line: tuple[int, SerialCarrier]) -> None:
    """COBS: "a", zero, "b" is 2 "a" 2 "b"; an empty part is none."""
    board, carrier = line
    os.write(board, b"\0\x02a\x02b\0\x03c")
    assert carrier.read() == [b"a\0b"]
    os.write(board, b"d\0")
    assert carrier.read() == [b"cd"]
    carrier.write(b"a\0b")
    assert os.read(board, 100) == b"\0\x02a\x02b\0" and carrier.backlog == 0


def test_a_line_that_never_ends_a_packet(line: tuple[int, SerialCarrier], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is longer than any packet is not kept."""
    board, carrier = line
    monkeypatch.setattr(serial_carrier, "_LONGEST", 100)
    os.write(board, b"\x01" * 101)
    assert len(carrier.read()) == 1
    os.write(board, b"\x02a\0")
    assert carrier.read() == [b"a"]


def test_the_line_is_full(line: tuple[int, SerialCarrier]) -> None:
    """What does not go out waits, and goes later."""
    board, carrier = line
    sent = [b"x" * 200 for _ in range(200)]
    for packet in sent:
        carrier.write(packet)
    assert carrier.backlog > 0
    while carrier.backlog:
        assert os.read(board, 1 << 16)
        carrier.flush()


def test_the_port_vanishes(line: tuple[int, SerialCarrier]) -> None:
    board, carrier = line
    os.close(board)
    with pytest.raises(LinkLost, match="must stay while frames are under way, but it vanished: Input/output error"):
        carrier.write(b"a")
    with pytest.raises(LinkLost, match="it vanished"):
        carrier.read()


def test_a_baud_rate_that_the_port_has_not(tmp_path: Path) -> None:
    file = tmp_path / "port"
    file.touch()
    with pytest.raises(HostError, match="must be a serial device that can be opened, but: "):
        SerialCarrier(str(file))
    finding = serial_carrier._unusable("port 'p'", str(file), 12, ValueError("odd"))
    assert "the baud rate 12 is not one that it has" in finding.message


def test_packages_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("serial", "serial.tools.list_ports"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(HostError, match="package pyserial: must be installed for a serial port, not missing"):
        SerialCarrier("/dev/none")
    with pytest.raises(HostError, match="package pyserial: must be installed to find serial ports, not missing"):
        port_search._serial_ports(None, None)  # type: ignore[arg-type]  # the design is not asked


def test_a_part_that_onnxruntime_cannot_run(tmp_path: Path) -> None:
    """No model; a model whose reshape does not fit the frames."""
    file = tmp_path / "suffix.onnx"
    file.write_bytes(b"no model")
    with pytest.raises(HostError, match="must be a model that onnxruntime takes, but: "):
        float_parts.runtime_part(HostPart(file, (), ()))
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "s"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("s", TensorProto.INT64, [1], [7])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), file)

    class Named:
        name, constant = "x", False

    evaluate = float_parts.runtime_part(HostPart(file, (Named(),), ()))  # type: ignore[arg-type]
    with pytest.raises(HostError, match="must run with onnxruntime, but: "):
        evaluate({"x": np.zeros(3, np.float32)})
