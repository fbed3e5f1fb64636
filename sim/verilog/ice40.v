// Behaviour of the Lattice iCE40 primitives in a board's top, for simulation only.
//
// A phase-locked loop passes its input clock through, so the design's clock in simulation is the clock that is driven:
// a serial line is to be driven with board.json's "divisor" cycles of it a bit.

/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */

// PIN_TYPE[5:2]: 0000 no output, 0110 output, 1010 output with enable, 1101 both with registers, 1100 with registers of
// which D_OUT_1's is clocked at the falling edge and seen from then on; PIN_TYPE[1:0]: 01 input, 00 with a register.
// Inputs at double rate, and the other types, are not modelled.
module SB_IO #(
  parameter [5:0] PIN_TYPE = 6'b000000,
  parameter PULLUP = 0,
  parameter NEG_TRIGGER = 0,
  parameter IO_STANDARD = "SB_LVCMOS"
) (
  inout wire PACKAGE_PIN,
  input wire LATCH_INPUT_VALUE, input wire CLOCK_ENABLE, input wire INPUT_CLK, input wire OUTPUT_CLK,
  input wire OUTPUT_ENABLE, input wire D_OUT_0, input wire D_OUT_1,
  output wire D_IN_0, output wire D_IN_1
);
  reg taken, rising, falling, enable;
  initial {taken, rising, falling, enable} = 4'b0;
  always @(posedge INPUT_CLK) taken <= PACKAGE_PIN;
  always @(posedge OUTPUT_CLK) {rising, enable} <= {D_OUT_0, OUTPUT_ENABLE};
  always @(negedge OUTPUT_CLK) falling <= D_OUT_1;
  assign D_IN_0 = PIN_TYPE[1:0] == 2'b00 ? taken : PACKAGE_PIN;
  assign D_IN_1 = PACKAGE_PIN;
  generate
    if (PIN_TYPE[5:2] == 4'b0110) begin : driven
      assign PACKAGE_PIN = D_OUT_0;
    end else if (PIN_TYPE[5:2] == 4'b1010) begin : enabled
      assign PACKAGE_PIN = OUTPUT_ENABLE ? D_OUT_0 : 1'bz;
    end else if (PIN_TYPE[5:2] == 4'b1101) begin : registered
      assign PACKAGE_PIN = enable ? rising : 1'bz;
    end else if (PIN_TYPE[5:2] == 4'b1100) begin : double_rate
      assign PACKAGE_PIN = enable ? (OUTPUT_CLK ? rising : falling) : 1'bz;
    end
  endgenerate
endmodule

module SB_DFF (input wire C, input wire D, output reg Q);
  initial Q = 1'b0;
  always @(posedge C) Q <= D;
endmodule

module SB_GB_IO #(
  parameter [5:0] PIN_TYPE = 6'b000001,
  parameter PULLUP = 0,
  parameter NEG_TRIGGER = 0,
  parameter IO_STANDARD = "SB_LVCMOS"
) (
  inout wire PACKAGE_PIN,
  output wire GLOBAL_BUFFER_OUTPUT,
  input wire LATCH_INPUT_VALUE, input wire CLOCK_ENABLE, input wire INPUT_CLK, input wire OUTPUT_CLK,
  input wire OUTPUT_ENABLE, input wire D_OUT_0, input wire D_OUT_1,
  output wire D_IN_0, output wire D_IN_1
);
  assign GLOBAL_BUFFER_OUTPUT = PACKAGE_PIN;
  assign D_IN_0 = PACKAGE_PIN;
  assign D_IN_1 = PACKAGE_PIN;
endmodule

module SB_GB (input wire USER_SIGNAL_TO_GLOBAL_BUFFER, output wire GLOBAL_BUFFER_OUTPUT);
  assign GLOBAL_BUFFER_OUTPUT = USER_SIGNAL_TO_GLOBAL_BUFFER;
endmodule

// LOCK rises after four cycles and falls with RESETB low.
module SB_PLL40_CORE #(
  parameter FEEDBACK_PATH = "SIMPLE",
  parameter DELAY_ADJUSTMENT_MODE_FEEDBACK = "FIXED",
  parameter DELAY_ADJUSTMENT_MODE_RELATIVE = "FIXED",
  parameter SHIFTREG_DIV_MODE = 1'b0,
  parameter FDA_FEEDBACK = 4'b0000,
  parameter FDA_RELATIVE = 4'b0000,
  parameter PLLOUT_SELECT = "GENCLK",
  parameter [3:0] DIVR = 4'd0,
  parameter [6:0] DIVF = 7'd0,
  parameter [2:0] DIVQ = 3'd0,
  parameter [2:0] FILTER_RANGE = 3'd0,
  parameter ENABLE_ICEGATE = 1'b0,
  parameter TEST_MODE = 1'b0,
  parameter EXTERNAL_DIVIDE_FACTOR = 1
) (
  input wire REFERENCECLK, output wire PLLOUTCORE, output wire PLLOUTGLOBAL,
  input wire EXTFEEDBACK, input wire [7:0] DYNAMICDELAY, output wire LOCK,
  input wire BYPASS, input wire RESETB, input wire LATCHINPUTVALUE,
  output wire SDO, input wire SDI, input wire SCLK
);
  reg [2:0] cycles;
  initial cycles = 3'd0;
  assign PLLOUTCORE = REFERENCECLK;
  assign PLLOUTGLOBAL = REFERENCECLK;
  assign LOCK = cycles[2];
  assign SDO = 1'b0;
  always @(posedge REFERENCECLK)
    if (!RESETB) cycles <= 3'd0;
    else if (!cycles[2]) cycles <= cycles + 3'd1;
endmodule

module SB_PLL40_PAD #(
  parameter FEEDBACK_PATH = "SIMPLE",
  parameter DELAY_ADJUSTMENT_MODE_FEEDBACK = "FIXED",
  parameter DELAY_ADJUSTMENT_MODE_RELATIVE = "FIXED",
  parameter SHIFTREG_DIV_MODE = 1'b0,
  parameter FDA_FEEDBACK = 4'b0000,
  parameter FDA_RELATIVE = 4'b0000,
  parameter PLLOUT_SELECT = "GENCLK",
  parameter [3:0] DIVR = 4'd0,
  parameter [6:0] DIVF = 7'd0,
  parameter [2:0] DIVQ = 3'd0,
  parameter [2:0] FILTER_RANGE = 3'd0,
  parameter ENABLE_ICEGATE = 1'b0,
  parameter TEST_MODE = 1'b0,
  parameter EXTERNAL_DIVIDE_FACTOR = 1
) (
  inout wire PACKAGEPIN, output wire PLLOUTCORE, output wire PLLOUTGLOBAL,
  input wire EXTFEEDBACK, input wire [7:0] DYNAMICDELAY, output wire LOCK,
  input wire BYPASS, input wire RESETB, input wire LATCHINPUTVALUE,
  output wire SDO, input wire SDI, input wire SCLK
);
  SB_PLL40_CORE core (
    .REFERENCECLK(PACKAGEPIN), .PLLOUTCORE(PLLOUTCORE), .PLLOUTGLOBAL(PLLOUTGLOBAL),
    .EXTFEEDBACK(EXTFEEDBACK), .DYNAMICDELAY(DYNAMICDELAY), .LOCK(LOCK),
    .BYPASS(BYPASS), .RESETB(RESETB), .LATCHINPUTVALUE(LATCHINPUTVALUE),
    .SDO(SDO), .SDI(SDI), .SCLK(SCLK)
  );
endmodule

// The 48 MHz oscillator, divided by 2 ** CLKHF_DIV. The period is 1/48 of a microsecond, so rounded to 20.833 ns.
`ifndef VERILATOR
`timescale 1ns / 1ps
module SB_HFOSC #(
  parameter CLKHF_DIV = "0b00",
  parameter TRIM_EN = "0b0"
) (
  input wire CLKHFPU, input wire CLKHFEN, output wire CLKHF,
  input wire TRIM0, input wire TRIM1, input wire TRIM2, input wire TRIM3, input wire TRIM4,
  input wire TRIM5, input wire TRIM6, input wire TRIM7, input wire TRIM8, input wire TRIM9
);
  localparam real HALF = CLKHF_DIV == "0b00" ? 10.4166 : CLKHF_DIV == "0b01" ? 20.8333 :
                         CLKHF_DIV == "0b10" ? 41.6666 : 83.3333;
  reg oscillator = 1'b0;
  always #(HALF) oscillator = ~oscillator;
  assign CLKHF = oscillator & CLKHFPU & CLKHFEN;
endmodule
`endif
