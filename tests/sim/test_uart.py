"""The UART agent against a handwritten echo behind inout pins: every byte comes back plus one."""

import pytest

from hwflow.toolchain.icarus import ICARUS
from sim.uart_run import run_uart

ECHO = """
module board_pin (inout pad, input drive, input value, output seen);
    assign pad = drive ? value : 1'bz;
    assign seen = pad;
endmodule

module top (inout clk_pin, inout rx_pin, inout tx_pin, input reset_n, input mute);
    wire clk, rx;
    board_pin pin_clk (.pad(clk_pin), .drive(1'b0), .value(1'b0), .seen(clk));
    board_pin pin_rx (.pad(rx_pin), .drive(1'b0), .value(1'b0), .seen(rx));
    reg tx;
    board_pin pin_tx (.pad(tx_pin), .drive(1'b1), .value(tx || mute), .seen());

    reg [3:0] rx_bit, tx_bit;  // 0: idle
    reg [3:0] rx_count, tx_count;
    reg [7:0] rx_byte, fifo;
    reg [8:0] tx_shift;
    reg full;
    always @(posedge clk) begin
        if (!reset_n) begin
            rx_bit <= 0; tx_bit <= 0; full <= 0; tx <= 1;
        end else begin
            if (rx_bit == 0) begin
                if (!rx) begin rx_bit <= 1; rx_count <= 11; end  // 8 cycles per bit: middle of bit 0 in 12 cycles
            end else if (rx_count != 0) rx_count <= rx_count - 1;
            else begin
                rx_count <= 7;
                if (rx_bit == 9) begin rx_bit <= 0; fifo <= rx_byte + 1; full <= 1; end
                else begin rx_byte <= {rx, rx_byte[7:1]}; rx_bit <= rx_bit + 1; end
            end
            if (tx_bit == 0) begin
                if (full) begin tx <= 0; tx_shift <= {1'b1, fifo}; tx_bit <= 1; tx_count <= 7; full <= 0; end
            end else if (tx_count != 0) tx_count <= tx_count - 1;
            else if (tx_bit == 10) tx_bit <= 0;
            else begin
                tx <= tx_shift[0]; tx_shift <= tx_shift >> 1; tx_bit <= tx_bit + 1; tx_count <= 7;
            end
        end
    end
endmodule
"""


@pytest.fixture(scope="module")
def echo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uart")
    (folder / "top.v").write_text(ECHO)

    def run(send, expect, **options):
        return run_uart(
            [folder / "top.v"],
            "top",
            rx="rx_pin",
            tx="tx_pin",
            clock="clk_pin",
            clock_ps=40_000,
            divisor=8,
            reset="reset_n",
            reset_active=0,
            send=send,
            expect=expect,
            work_folder=folder / "work",
            run_folder=folder,
            command=ICARUS.find().command,
            **options,
        )

    return run


def test_bytes_come_back(echo):
    sent = bytes([0x00, 0xFE, 0x55, 0xA9, 0x7F, 0x01])
    result = echo(sent, bytes([0x01, 0xFF, 0x56, 0xAA, 0x80, 0x02]), ties={"mute": 0}, idle_bits=2)
    assert result.complaints() == []
    assert result.ok
    assert not result.timed_out


def test_wrong_and_surplus_bytes_are_named(echo):
    result = echo(b"abc", b"bx", ties={"mute": 0}, idle_bits=2)
    assert result.received == b"bcd"
    assert result.complaints() == ["byte 1: must be 0x78, not 0x63", "there must be 2 bytes, not 3"]


def test_silence_ends_the_run(echo):
    result = echo(b"ab", b"bc", ties={"mute": 1}, timeout_bits=50)
    assert result.timed_out
    assert result.complaints() == ["there must be 2 bytes, not 0"]


def test_a_framing_error_is_named(echo):
    # A design at half the speed: its start bit lasts two of ours, and what should be the stop bit is data.
    result = echo(bytes([0x00]), bytes([0x01]), ties={"mute": 0}, uart_clock_ps=80_000, timeout_bits=40)
    assert not result.ok
