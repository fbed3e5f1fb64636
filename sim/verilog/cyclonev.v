// Behaviour of the Intel Cyclone V primitives in a board's top, for simulation only.
//
// A phase-locked loop passes its input clock through, so the design's clock in simulation is the clock that is driven:
// a serial line is to be driven with board.json's "divisor" cycles of it a bit.

/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */

module altiobuf_in #(
  parameter enable_bus_hold = "FALSE",
  parameter number_of_channels = 1,
  parameter use_differential_mode = "FALSE"
) (input wire [number_of_channels-1:0] datain, output wire [number_of_channels-1:0] dataout);
  assign dataout = datain;
endmodule

module altiobuf_out #(
  parameter use_oe = "FALSE",
  parameter enable_bus_hold = "FALSE",
  parameter number_of_channels = 1,
  parameter use_differential_mode = "FALSE"
) (
  input wire [number_of_channels-1:0] datain, input wire [number_of_channels-1:0] oe,
  output wire [number_of_channels-1:0] dataout
);
  genvar channel;
  generate
    for (channel = 0; channel < number_of_channels; channel = channel + 1) begin : channels
      assign dataout[channel] = oe[channel] ? datain[channel] : 1'bz;
    end
  endgenerate
endmodule

module altera_std_synchronizer_bundle #(parameter width = 1, parameter depth = 2) (
  input wire clk, input wire reset_n, input wire [width-1:0] din, output wire [width-1:0] dout
);
  reg [width-1:0] stages [0:depth-1];
  integer stage;
  initial for (stage = 0; stage < depth; stage = stage + 1) stages[stage] = {width{1'b0}};  // as the part powers up
  always @(posedge clk) begin
    for (stage = 1; stage < depth; stage = stage + 1) stages[stage] <= reset_n ? stages[stage-1] : {width{1'b0}};
    stages[0] <= reset_n ? din : {width{1'b0}};
  end
  assign dout = stages[depth-1];
endmodule

// locked rises after four cycles and falls with rst.
module altera_pll #(
  parameter fractional_vco_multiplier = "false",
  parameter reference_clock_frequency = "0 MHz",
  parameter operation_mode = "direct",
  parameter number_of_clocks = 1,
  parameter output_clock_frequency0 = "0 MHz",
  parameter phase_shift0 = "0 ps",
  parameter duty_cycle0 = 50
) (input wire refclk, input wire rst, output wire [number_of_clocks-1:0] outclk, output wire locked);
  reg [3:0] settling = 4'b0;
  always @(posedge refclk or posedge rst)
    if (rst) settling <= 4'b0;
    else settling <= {settling[2:0], 1'b1};
  assign outclk = {number_of_clocks{refclk}};
  assign locked = settling[3];
endmodule
