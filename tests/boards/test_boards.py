"""The boards' data, and the top each of them gets."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from boards import TOOLCHAINS, UnknownBoard, all_boards, find_board
from boards.board_list import __name__ as board_list
from hdl_lib.clocks.pll_ecp5 import find_ecp5_pll
from hwflow.codegen.board.board_files import frame_ports, write_board
from hwflow.codegen.board.board_top import expected_link, shell_allowance
from hwflow.codegen.board.carriers import LinkOptions
from hwflow.codegen.board.clock_plan import FAMILIES as CLOCK_FAMILIES
from hwflow.codegen.board.clock_plan import plan_clock
from hwflow.codegen.board.identity import FramePort
from hwflow.codegen.clock import clock_for
from hwflow.cores.costs import FAMILIES as COST_FAMILIES
from hwflow.errors import UsageError
from tests.codegen.plus_one import emit, stream

NAMES = [board.name for board in all_boards()]
SERIAL = [board.name for board in all_boards() if board.uart]
USB = [board.name for board in all_boards() if board.usb]
ZYNQ = [board.name for board in all_boards() if board.zynq]


def test_the_list_of_boards():
    assert sorted(NAMES) == NAMES
    wanted = {
        "arty_a7_100", "arty_a7_35", "basys3", "colorlight_5a_75b", "colorlight_i5", "colorlight_i9", "de10_nano",
        "ecpix5_45f", "ecpix5_85f", "icebreaker", "icesugar", "orangecrab_25f", "orangecrab_85f", "pynq_z1", "pynq_z2",
        "tang_nano_9k", "tang_primer_20k", "tinyfpga_bx", "ulx3s_12f", "ulx3s_25f", "ulx3s_45f", "ulx3s_85f",
        "upduino_3",
    }
    assert not wanted - set(NAMES)


def test_an_unknown_board_is_refused_with_the_list():
    with pytest.raises(UnknownBoard) as error:
        find_board("ulx4s")
    assert str(error.value) == f"board must be one of {', '.join(NAMES)}, not 'ulx4s'"


def test_two_boards_of_one_name_are_refused(monkeypatch):
    """The list is asked by itself: its cache stays as it is."""
    board = find_board("icebreaker")
    monkeypatch.setattr(f"{board_list.rpartition('.')[0]}.icesugar.BOARDS", (board,))
    with pytest.raises(ValueError, match="board names must be unique, not twice 'icebreaker'"):
        all_boards.__wrapped__()


@pytest.mark.parametrize("name", SERIAL)
def test_board_agrees_with_its_platform(name):
    board = find_board(name)
    platform = board.platform()
    clock = platform.lookup(board.clock.resource, board.clock.number).clock
    assert clock is not None and clock.frequency == board.clock.hz
    parts = ("device", "package", "speed")
    named = getattr(platform, "part", None) or "".join(str(getattr(platform, part, "")) for part in parts)
    assert named.replace("-", "").startswith(board.part.device.replace("-", "")), "the platform is of another part"


@pytest.mark.parametrize("name", NAMES)
def test_board_is_complete(name):
    board, part = find_board(name), find_board(name).part
    assert part.bram * part.bram_bits > 0 and part.source and "{bitstream}" in board.program
    assert board.toolchain in TOOLCHAINS and part.family in COST_FAMILIES and part.family in CLOCK_FAMILIES
    assert (board.uart is None) != (board.zynq is None)
    words, width = max(COST_FAMILIES[part.family].bram_shapes)
    assert words * width <= part.bram_bits < 2 * words * width
    assert board.transport and board.title


def serial_port(board) -> int | None:
    """The baud rate to ask for where a board is to have its serial port, not USB."""
    return board.uart.chip.baud if board.usb is not None and board.usb.default else None


@pytest.mark.parametrize("name", SERIAL)
def test_every_board_elaborates_its_top(name, tmp_path):
    board = find_board(name)
    out = emit(tmp_path / "out")
    description = write_board(out, board, link=LinkOptions(baud=serial_port(board)))
    assert json.loads((out / "board" / "board.json").read_text()) == description
    assert description["constraints"] == f"board/top.{board.tools.constraints[0]}"
    constraints = (out / description["constraints"]).read_text()
    for pin in description["pins"].values():
        assert pin in constraints
    rtlil = (out / description["rtlil"]).read_text()
    assert "cell \\hwflow_top \\hwflow_top" in rtlil
    assert str(tmp_path) not in rtlil and "attribute \\src" not in rtlil
    assert description["clock"]["design_mhz"] == board.clock_mhz  # every default is reachable exactly
    assert description["simulation"]["startup_cycles"] == board.clock_mhz * 16 + 16  # 16 us and some
    link = description["link"]
    # a whole fraction of the chip's rate, as high as four cycles a bit allow
    chip, clock = board.uart.chip, board.clock_mhz * 1e6
    divided = next(n for n in range(1, 100) if chip.baud / n <= clock / 4)
    assert link["baud"] == chip.baud // divided and link["cycles_per_bit"] >= 4
    assert link["baud_error"] == pytest.approx(clock / link["cycles_per_bit"] / link["baud"] - 1)
    assert abs(link["baud_error"]) < 0.002
    assert (link["carrier"], link["input_bytes"], link["output_bytes"]) == ("serial", 4, 4)
    assert link["usb"] == [{"vendor": vendor, "product": product} for vendor, product in chip.usb]
    block = {"ice40": 512, "ecp5": 2048, "gowin": 2048, "xilinx7": 4096, "cyclonev": 1024}[board.part.family]
    assert link["receive_bytes"] == link["transmit_bytes"] >= block
    assert 12 * link["receive_bytes"] <= board.part.bram * block and link["receive_bytes"] % block == 0
    assert link["most_payload"] == min(512, link["receive_bytes"] // 4)
    # by the tables of protocol.md; plus_one says of itself that it is of hwflow 1.2.3, and takes 4 cycles per frame
    words = [4, round(board.clock_mhz * 1000)]
    sizes = link["most_payload"].to_bytes(2, "little") + 2 * link["receive_bytes"].to_bytes(4, "little")
    assert bytes.fromhex(link["identity"]) == (
        bytes([1, *range(32), 1, 2, 3]) + b"".join(word.to_bytes(4, "little") for word in words) + sizes
        + bytes([1, 1, 1, 0, 4, 0, 0, 0, 1, 0, 4, 0, 0, 0])
    )
    assert link["resources"] == expected_link(board.part, shell_allowance(board.part), 1, 1)
    # ten bits a byte; a packet of 512 bytes' payload takes 11 + 4 more, 3 codes and a zero
    if link["most_payload"] == 512:
        rate = clock / link["cycles_per_bit"] / 10 * 512 / (512 + 15 + 3 + 1)
        assert link["frames_per_second"] == pytest.approx(rate / 4)


@pytest.mark.parametrize("name", USB)
def test_every_usb_board_elaborates_its_top(name, tmp_path):
    pytest.importorskip("luna")
    board = find_board(name)
    out = emit(tmp_path / "out")
    description = write_board(out, board, link=LinkOptions(usb=not board.usb.default))
    constraints = (out / description["constraints"]).read_text()
    assert set(description["pins"]) == {"clk", "usb_d_p", "usb_d_n", "usb_pullup"}
    for pin in description["pins"].values():
        assert pin in constraints
    rtlil = (out / description["rtlil"]).read_text()
    assert str(tmp_path) not in rtlil and "attribute \\src" not in rtlil
    link = description["link"]
    assert (link["carrier"], link["baud"], link["usb"]) == ("usb", None, [{"vendor": 0x1209, "product": 0x0001}])
    # 19 packets of 64 bytes each millisecond, both ways together; 4 bytes in and 4 out; around the payload 15 bytes,
    # two or three codes and a zero
    share = {512: 512 / 531, 256: 256 / 274}[link["most_payload"]]
    assert link["frames_per_second"] == pytest.approx(19_000 * 64 * share / 8)
    spare = {name: link["resources"][name] - count for name, count in shell_allowance(board.part).items()}
    assert spare["lut"] > 1000 and spare["ff"] > 500 and spare["dsp"] == 0 and spare["bram"] >= 0
    if name == USB[0]:  # a second time: the same
        write_board(out, board, link=LinkOptions(usb=not board.usb.default))
        assert (out / description["rtlil"]).read_text() == rtlil


@pytest.mark.parametrize("name", [name for name in USB if find_board(name).part.family == "ecp5"])
def test_the_clock_of_usb_is_near_enough(name):
    """48 MHz within 0.25 %, of which 0.05 % are left for the oscillator (USB 2.0, 7.1.11)."""
    settings = find_ecp5_pll(find_board(name).clock.hz, 48_000_000)
    assert abs(settings.output_hz / 48_000_000 - 1) <= Fraction(20, 10_000)
    assert 4 * (settings.secondary_divider or settings.primary_divider) <= 128


@pytest.mark.parametrize(
    ("name", "mhz", "message"),
    [
        ("icebreaker", None, "must have a USB socket that is wired to the FPGA, not only another link [usb-socket]"),
        ("tinyfpga_bx", 24, "a design behind USB must be 48 MHz where there is one PLL, not 24 [usb-clock]"),
    ],
)
def test_usb_that_cannot_be(tmp_path, name, mhz, message):
    with pytest.raises(UsageError) as error:
        write_board(emit(tmp_path / "out"), find_board(name), mhz, link=LinkOptions(usb=True))
    assert message in str(error.value)


def test_usb_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setattr("hwflow.codegen.board.carriers.usb.find_spec", lambda name: None)
    with pytest.raises(UsageError) as error:
        write_board(emit(tmp_path / "out"), find_board("orangecrab_25f"))
    assert str(error.value) == (
        "error: package luna-usb: must be installed for a design behind USB, not missing [package-present]\n"
        "  remedy: pip install 'hwflow[usb]', or have a serial port instead: --baud 1000000"
    )


@pytest.mark.parametrize("name", ZYNQ)
def test_every_zynq_elaborates_its_block(name, tmp_path):
    board = find_board(name)
    out = emit(tmp_path / "out")
    description = write_board(out, board)
    assert json.loads((out / "board" / "board.json").read_text()) == description
    rtlil = (out / description["rtlil"]).read_text()
    for port in ("aclk", "aresetn", "s_axis_tdata", "s_axis_tlast", "m_axis_tkeep", "m_axis_tready", "error"):
        assert f"\\{port}\n" in rtlil
    assert description["clock"] == {"input_mhz": 1000.0, "design_mhz": 100.0}
    assert description["host"] == {
        "input_beats": 4, "input_beat": 1, "output_beats": 4, "output_beat": 1,
    }


def test_another_clock():
    ulx3s, icebreaker = find_board("ulx3s_85f"), find_board("icebreaker")
    assert float(plan_clock(ulx3s, 70).frequency_hz) == 70e6  # 700 MHz / 10
    assert plan_clock(ulx3s, 25).settings is None and plan_clock(icebreaker, 12).settings is None
    assert float(plan_clock(icebreaker, 20).frequency_hz) == 19.875e6
    # 1 GHz / 7 = 142.857 MHz is the nearest below 143
    assert round(float(plan_clock(find_board("pynq_z2"), 143).frequency_hz)) == 142_857_143
    with pytest.raises(UsageError) as error:
        plan_clock(ulx3s, 401)
    assert str(error.value) == (
        "error: board 'ulx3s_85f': target frequency of an ECP5 PLL must be 3.125 to 400 MHz, not 401 MHz "
        "[clock-reachable]\n"
        "  remedy: choose another clock, such as 125 MHz"
    )
    with pytest.raises(UsageError) as error:
        plan_clock(find_board("pynq_z1"), 300)
    assert str(error.value) == (
        "error: board 'pynq_z1': target frequency of a Zynq's clock for the logic must be 1 to 250 MHz, not 300 MHz "
        "[clock-reachable]\n"
        "  remedy: choose another clock, such as 100 MHz"
    )


def test_a_clock_that_was_asked_for():
    """By hand: 1 GHz / 7, 1 GHz / 4 and / 5; 100 MHz * 8 / 9 = 88.89 is 0.12 % below 89."""
    zynq = find_board("pynq_z2")
    assert float(clock_for(zynq, 143).frequency_hz) == pytest.approx(1e9 / 7)
    assert clock_for(zynq, None).frequency_hz == 100_000_000
    with pytest.raises(UsageError) as error:
        clock_for(zynq, 240)
    assert str(error.value) == (
        "error: option --clock: must be a clock that the PLL of pynq_z2 makes of 1000 MHz, not 240 MHz "
        "[clock-reachable]\n"
        "  remedy: the nearest one is --clock 250"
    )
    for name, mhz in (("basys3", 89), ("tang_nano_9k", 54), ("de10_nano", 89)):
        assert 0.99 * mhz <= float(clock_for(find_board(name), mhz).frequency_hz) / 1e6 <= mhz


@pytest.mark.parametrize("name", SERIAL)
def test_the_oscillator_itself_can_be_the_clock_and_the_pll_too(name):
    board = find_board(name)
    for mhz, used in ((board.clock.hz / 1e6, False), (board.clock.hz / 5e5, True)):  # and twice the oscillator
        plan = plan_clock(board, mhz)
        assert float(plan.frequency_hz) == mhz * 1e6 and (plan.settings is not None) == used


@pytest.mark.parametrize(
    "name", {(board.part.family, board.clock.route): board.name for board in map(find_board, SERIAL)}.values()
)
def test_a_pll_is_there_where_the_clock_needs_it(name, tmp_path):
    """On one board of each family and each way of the clock to its PLL, of which the clock's logic is made."""
    board = find_board(name)
    out = emit(tmp_path / "out")
    primitives = ("SB_PLL40", "EHXPLLL", "rPLL", "PLLE2_BASE", "altera_pll")
    for mhz, used in ((board.clock.hz / 1e6, 0), (board.clock.hz / 5e5, 1)):
        description = write_board(out, board, mhz, LinkOptions(serial_port(board)))
        assert description["clock"]["design_mhz"] == mhz
        rtlil = (out / description["rtlil"]).read_text()
        assert sum(f"cell \\{primitive}" in rtlil for primitive in primitives) == used


@pytest.mark.parametrize(
    ("name", "mhz", "baud", "message"),
    [
        (
            "ulx3s_85f", 10, 3_000_000,
            "baud rate must be at most 2500000, a 4th of the clock (10 MHz), not 3000000 [baud-reachable]\n"
            "  remedy: ask for '--baud 1500000' or for a higher --clock",
        ),
        # 3 MHz / 1.2; of its divisors 1, 1.5, 2, 2.125 ... the next one is 1.5
        (
            "ulx3s_85f", 125, 2_400_000,
            "baud rate must be one that its FT231X makes within 2 %, not 2400000 [baud-reachable]\n"
            "  remedy: the nearest one is '--baud 2000000'",
        ),
        (
            "icebreaker", 42, 12_000_000,
            "baud rate must be at most 10500000, a 4th of the clock (42 MHz), not 12000000 [baud-reachable]\n"
            "  remedy: ask for '--baud 6000000' or for a higher --clock",
        ),
    ],
)
def test_a_baud_rate_out_of_reach_is_refused(tmp_path, name, mhz, baud, message):
    with pytest.raises(UsageError) as error:
        write_board(emit(tmp_path / "out"), find_board(name), mhz, LinkOptions(baud))
    assert str(error.value) == f"error: board '{name}': {message}"


@pytest.mark.parametrize(
    ("name", "baud", "cycles"),
    # by hand: 125 MHz / 3 M = 41.67, in 64ths 2667; / 115200 = 1085.07, 69444; 42 MHz / 8 M = 5.25; of any adapter
    [
        ("ulx3s_85f", 3_000_000, 2667 / 64), ("ulx3s_85f", 115_200, 69_444 / 64), ("icebreaker", 8_000_000, 5.25),
        ("tinyfpga_bx", 921_600, 3333 / 64),
    ],
)
def test_a_baud_rate_that_was_asked_for(tmp_path, name, baud, cycles):
    link = write_board(emit(tmp_path / "out"), find_board(name), None, LinkOptions(baud))["link"]
    assert (link["baud"], link["cycles_per_bit"]) == (baud, cycles)


def test_several_streams_share_a_serial_line(tmp_path):
    source, sinks = stream("x", "s_axis", lanes=3, element_bytes=2), [stream("y", "m0_axis"), stream("z", "m1_axis")]
    manifest = {"model": "two", "inputs": [source], "outputs": sinks}
    assert frame_ports(manifest) == ([FramePort(6, 4)], [FramePort(1, 4), FramePort(1, 4)])
