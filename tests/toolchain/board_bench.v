// Sends the bytes of `BYTES` (hexadecimal digits, first byte first) to a board's serial pin, prints those that come back.
`timescale 1ns / 1ps
module board_bench;
  parameter STARTUP = 2016;  // cycles of reset at the highest of the boards' clocks, 125 MHz, and some
  parameter DIVISOR = 125;
  parameter COUNT = 4;
  parameter [8*COUNT-1:0] BYTES = 0;
  reg clk = 1'b0;
  reg rx = 1'b1;
  wire tx;
  integer sent, bit_number, position;
  reg [7:0] received;

  board_simulation board (.clk(clk), .uart_rx(rx), .uart_tx(tx));
  always #5 clk = ~clk;

  initial begin
    repeat (STARTUP) @(negedge clk);
    for (sent = COUNT - 1; sent >= 0; sent = sent - 1) begin
      rx = 1'b0;
      repeat (DIVISOR) @(negedge clk);
      for (bit_number = 0; bit_number < 8; bit_number = bit_number + 1) begin
        rx = BYTES[8 * sent + bit_number];
        repeat (DIVISOR) @(negedge clk);
      end
      rx = 1'b1;
      repeat (DIVISOR) @(negedge clk);
    end
    repeat (60 * DIVISOR) @(negedge clk);
    $finish;
  end

  always begin
    @(negedge tx);
    repeat (DIVISOR + DIVISOR / 2) @(negedge clk);
    for (position = 0; position < 8; position = position + 1) begin
      received[position] = tx;
      repeat (DIVISOR) @(negedge clk);
    end
    if (tx !== 1'b1) $display("no stop bit");
    $display("%02x", received);
  end
endmodule
