// Sends the bytes of the file `BYTES` (a hexadecimal number in each line) to a board's serial pin at once, and prints
// those that come back, until the line has been silent for `SILENCE` bits.
`timescale 1ns / 1ps
module board_bench;
  parameter STARTUP = 2016;  // cycles of reset
  parameter BIT = 1250;  // hundredths of a nanosecond; a cycle is 10 ns
  parameter COUNT = 4;
  parameter SILENCE = 300;
  parameter BYTES = "";
  reg clk = 1'b0;
  reg rx = 1'b1;
  reg done = 1'b0;
  wire tx;
  integer sent, bit_number, position, silent;
  reg [7:0] received;
  reg [7:0] data[0:COUNT-1];

  board_simulation board (.clk(clk), .uart_rx(rx), .uart_tx(tx));
  always #5 clk = ~clk;

  initial begin
    $readmemh(BYTES, data);
    repeat (STARTUP) @(negedge clk);
    for (sent = 0; sent < COUNT; sent = sent + 1) begin
      rx = 1'b0;
      #(BIT / 100.0);
      for (bit_number = 0; bit_number < 8; bit_number = bit_number + 1) begin
        rx = data[sent][bit_number];
        #(BIT / 100.0);
      end
      rx = 1'b1;
      #(BIT / 100.0);
    end
    done = 1'b1;
  end

  initial begin
    silent = 0;
    while (!done || silent < SILENCE) begin
      #(BIT / 100.0);
      silent = tx === 1'b0 ? 0 : silent + 1;
    end
    $finish;
  end

  always begin
    @(negedge tx);
    #(1.5 * BIT / 100.0);
    for (position = 0; position < 8; position = position + 1) begin
      received[position] = tx;
      #(BIT / 100.0);
    end
    if (tx !== 1'b1) $display("no stop bit");
    $display("%02x", received);
  end
endmodule
