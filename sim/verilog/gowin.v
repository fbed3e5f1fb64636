// Behaviour of the Gowin primitives in a board's top, for simulation only.
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

// OEN high: high impedance
module TBUF (input wire I, input wire OEN, output wire O);
  assign O = OEN ? 1'bz : I;
endmodule

// LOCK rises after four cycles and falls with RESET.
module rPLL #(
  parameter FCLKIN = "100.0",
  parameter DEVICE = "GW1N-1",
  parameter DYN_IDIV_SEL = "false",
  parameter IDIV_SEL = 0,
  parameter DYN_FBDIV_SEL = "false",
  parameter FBDIV_SEL = 0,
  parameter DYN_ODIV_SEL = "false",
  parameter ODIV_SEL = 8,
  parameter PSDA_SEL = "0000",
  parameter DYN_DA_EN = "false",
  parameter DUTYDA_SEL = "1000",
  parameter CLKFB_SEL = "internal",
  parameter CLKOUT_BYPASS = "false",
  parameter CLKOUTP_BYPASS = "false",
  parameter CLKOUTD_BYPASS = "false"
) (
  input wire CLKIN, input wire CLKFB, input wire RESET, input wire RESET_P,
  input wire [5:0] IDSEL, input wire [5:0] FBDSEL, input wire [5:0] ODSEL,
  input wire [3:0] PSDA, input wire [3:0] DUTYDA, input wire [3:0] FDLY,
  output wire CLKOUT, output wire LOCK
);
  reg [3:0] settling = 4'b0;
  always @(posedge CLKIN or posedge RESET)
    if (RESET) settling <= 4'b0;
    else settling <= {settling[2:0], 1'b1};
  assign CLKOUT = CLKIN;
  assign LOCK = settling[3];
endmodule
