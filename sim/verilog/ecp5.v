// Behaviour of the Lattice ECP5 primitives in a board's top, for simulation only.
//
// A phase-locked loop passes its input clock through, so the design's clock in simulation is the clock that is driven:
// a serial line is to be driven with board.json's "cycles_per_bit" cycles of it. Its third output, where it has one, is
// divided from the second one's, or the first's: USB has clocks of 48 and 12 MHz.

/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */

module IB (input wire I, output wire O);
  assign O = I;
endmodule

module OB (input wire I, output wire O);
  assign O = I;
endmodule

// T high: high impedance
module OBZ (input wire I, input wire T, output wire O);
  assign O = T ? 1'bz : I;
endmodule

module BB (input wire I, input wire T, output wire O, inout wire B);
  assign B = T ? 1'bz : I;
  assign O = B;
endmodule

// LOCK rises after four cycles and falls with RST.
module EHXPLLL #(
  parameter CLKI_DIV = 1,
  parameter CLKFB_DIV = 1,
  parameter CLKOP_DIV = 8,
  parameter CLKOS_DIV = 8,
  parameter CLKOS2_DIV = 8,
  parameter CLKOS3_DIV = 8,
  parameter CLKOP_ENABLE = "ENABLED",
  parameter CLKOS_ENABLE = "DISABLED",
  parameter CLKOS2_ENABLE = "DISABLED",
  parameter CLKOS3_ENABLE = "DISABLED",
  parameter CLKOP_CPHASE = 0,
  parameter CLKOS_CPHASE = 0,
  parameter CLKOS2_CPHASE = 0,
  parameter CLKOS3_CPHASE = 0,
  parameter CLKOP_FPHASE = 0,
  parameter CLKOS_FPHASE = 0,
  parameter CLKOS2_FPHASE = 0,
  parameter CLKOS3_FPHASE = 0,
  parameter FEEDBK_PATH = "CLKOP",
  parameter OUTDIVIDER_MUXA = "DIVA",
  parameter OUTDIVIDER_MUXB = "DIVB",
  parameter OUTDIVIDER_MUXC = "DIVC",
  parameter OUTDIVIDER_MUXD = "DIVD",
  parameter PLLRST_ENA = "DISABLED",
  parameter INTFB_WAKE = "DISABLED",
  parameter STDBY_ENABLE = "DISABLED",
  parameter DPHASE_SOURCE = "DISABLED"
) (
  input wire CLKI, input wire CLKFB, input wire RST, input wire STDBY,
  input wire PHASESEL0, input wire PHASESEL1, input wire PHASEDIR, input wire PHASESTEP, input wire PHASELOADREG,
  input wire PLLWAKESYNC, input wire ENCLKOP, input wire ENCLKOS, input wire ENCLKOS2, input wire ENCLKOS3,
  output wire CLKOP, output wire CLKOS, output wire CLKOS2, output wire CLKOS3,
  output wire LOCK, output wire INTLOCK, output wire REFCLK, output wire CLKINTFB
);
  reg [2:0] cycles;
  initial cycles = 3'd0;
  assign CLKOP = CLKI;
  assign CLKOS = CLKI;
  localparam RATIO = CLKOS2_DIV / (CLKOS_ENABLE == "ENABLED" ? CLKOS_DIV : CLKOP_DIV);
  reg divided;
  reg [7:0] count;
  initial {divided, count} = 9'd0;
  always @(posedge CLKI) begin
    count <= count == RATIO - 1 ? 8'd0 : count + 8'd1;
    divided <= count < RATIO / 2;
  end
  assign CLKOS2 = CLKOS2_ENABLE == "ENABLED" ? divided : CLKI;
  assign CLKOS3 = CLKI;
  assign REFCLK = CLKI;
  assign CLKINTFB = CLKI;
  assign LOCK = cycles[2];
  assign INTLOCK = cycles[2];
  always @(posedge CLKI)
    if (RST) cycles <= 3'd0;
    else if (!cycles[2]) cycles <= cycles + 3'd1;
endmodule

// The pins of gigabit Ethernet. A delay line passes its input on.
module DELAYG #(parameter DEL_MODE = "USER_DEFINED", parameter DEL_VALUE = 0) (input wire A, output wire Z);
  assign Z = A;
endmodule

// Both edges' bits together, behind a rising one: Q0 of the edge before, Q1 of the falling one between.
module IDDRX1F #(parameter GSR = "ENABLED") (
  input wire D, input wire SCLK, input tri0 RST, output reg Q0, output reg Q1
);
  reg rising, falling;
  initial {rising, falling, Q0, Q1} = 4'b0000;
  always @(posedge SCLK) rising <= D;
  always @(negedge SCLK) falling <= D;
  always @(posedge SCLK) begin
    Q0 <= RST ? 1'b0 : rising;
    Q1 <= RST ? 1'b0 : falling;
  end
endmodule

// D0 while the clock is high, then D1.
module ODDRX1F #(parameter GSR = "ENABLED") (
  input wire D0, input wire D1, input wire SCLK, input tri0 RST, output wire Q
);
  reg high, low;
  initial {high, low} = 2'b00;
  always @(posedge SCLK) begin
    high <= D0;
    low <= D1;
  end
  assign Q = RST ? 1'b0 : SCLK ? high : low;
endmodule

// A register, and one of a pin.
module FD1S3AX #(parameter GSR = "ENABLED") (input wire D, input wire CK, output reg Q);
  initial Q = 1'b0;
  always @(posedge CK) Q <= D;
endmodule

module OFS1P3DX #(parameter GSR = "ENABLED") (
  input wire D, input wire SP, input wire SCLK, input wire CD, output reg Q
);
  initial Q = 1'b0;
  always @(posedge SCLK or posedge CD) if (CD) Q <= 1'b0; else if (SP) Q <= D;
endmodule

// A register with asynchronous preset.
module FD1S3BX #(parameter GSR = "ENABLED") (input wire PD, input wire D, input wire CK, output reg Q);
  initial Q = 1'b1;
  always @(posedge CK or posedge PD) Q <= PD ? 1'b1 : D;
endmodule
