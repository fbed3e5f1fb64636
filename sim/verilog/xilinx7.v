// Behaviour of the AMD 7 series primitives in a board's top, for simulation only.
//
// A phase-locked loop passes its input clock through, so the design's clock in simulation is the clock that is driven:
// a serial line is to be driven with board.json's "divisor" cycles of it a bit.

/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */

module IBUF (input wire I, output wire O);
  assign O = I;
endmodule

module OBUF (input wire I, output wire O);
  assign O = I;
endmodule

// T high: high impedance
module OBUFT (input wire I, input wire T, output wire O);
  assign O = T ? 1'bz : I;
endmodule

module BUFG (input wire I, output wire O);
  assign O = I;
endmodule

// LOCKED rises after four cycles and falls with RST.
module PLLE2_BASE #(
  parameter BANDWIDTH = "OPTIMIZED",
  parameter real CLKIN1_PERIOD = 0.0,
  parameter DIVCLK_DIVIDE = 1,
  parameter CLKFBOUT_MULT = 5,
  parameter CLKOUT0_DIVIDE = 1,
  parameter STARTUP_WAIT = "FALSE"
) (
  input wire CLKIN1, input wire CLKFBIN, input wire RST, input wire PWRDWN,
  output wire CLKFBOUT, output wire CLKOUT0, output wire LOCKED
);
  reg [3:0] settling = 4'b0;
  always @(posedge CLKIN1 or posedge RST)
    if (RST) settling <= 4'b0;
    else settling <= {settling[2:0], 1'b1};
  assign CLKFBOUT = CLKIN1;
  assign CLKOUT0 = CLKIN1;
  assign LOCKED = settling[3];
endmodule
