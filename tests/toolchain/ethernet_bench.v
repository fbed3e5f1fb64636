// A board's top behind its RGMII pins. The PHY delays the clock that it gets; undefined bits of an idle line are zero.
`timescale 1ns / 1ps
module ethernet_bench;
  reg clk = 0, rx_clk = 0, rx_ctl = 0;
  reg [3:0] rx_data = 0;
  wire tx_clk_pin, tx_ctl_pin;
  wire [3:0] tx_pins;
  wire tx_clk;
  wire tx_ctl = tx_ctl_pin === 1'b1;
  wire [3:0] tx_data = {tx_pins[3] === 1'b1, tx_pins[2] === 1'b1, tx_pins[1] === 1'b1, tx_pins[0] === 1'b1};
  assign #2 tx_clk = tx_clk_pin;
  board_simulation board (
    .clk(clk), .rgmii_rx_clk(rx_clk), .rgmii_rx_ctl(rx_ctl), .rgmii_rx_data(rx_data), .rgmii_rst_n(),
    .rgmii_tx_clk(tx_clk_pin), .rgmii_tx_ctl(tx_ctl_pin), .rgmii_tx_data(tx_pins)
  );
endmodule
