// Behaviour of the Lattice ECP5 blocks in a mapped netlist for which the synthesizer has no model, for simulation only.
//
// Modelled are exactly the configurations that yosys' synth_ecp5 and hwflow.toolchain.packing make; another one does not
// elaborate (it instantiates the module unsupported_configuration, which there is not). The cells of logic come
// with yosys (share/ecp5).

/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off MULTITOP */

// A multiplier, P = A * B, each operand with or without a sign, with registers where REG_..._CLK says "CLK0": of both
// operands, behind the product (PIPELINE), at the outputs. They start with 0, and are unknown after RST0: no netlist of
// ours resets them.
module MULT18X18D #(
  parameter REG_INPUTA_CLK = "NONE",
  parameter REG_INPUTA_CE = "CE0",
  parameter REG_INPUTA_RST = "RST0",
  parameter REG_INPUTB_CLK = "NONE",
  parameter REG_INPUTB_CE = "CE0",
  parameter REG_INPUTB_RST = "RST0",
  parameter REG_INPUTC_CLK = "NONE",
  parameter REG_PIPELINE_CLK = "NONE",
  parameter REG_PIPELINE_CE = "CE0",
  parameter REG_PIPELINE_RST = "RST0",
  parameter REG_OUTPUT_CLK = "NONE",
  parameter REG_OUTPUT_CE = "CE0",
  parameter REG_OUTPUT_RST = "RST0",
  parameter SOURCEB_MODE = "B_SHIFT",
  parameter MULT_BYPASS = "DISABLED"
) (
  input wire
    A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
  input wire
    B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
  input wire
    C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
  input wire SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
  input wire CLK0, CE3, CE2, CE1, CE0, RST0,
  output wire
    P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14,
    P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
  wire [17:0] a = {
    A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0
  };
  wire [17:0] b = {
    B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0
  };
  reg [17:0] a_register, b_register;
  reg [35:0] pipeline_register, output_register;
  initial begin
    a_register = 18'd0;
    b_register = 18'd0;
    pipeline_register = 36'd0;
    output_register = 36'd0;
  end
  wire [17:0] factor_a = REG_INPUTA_CLK == "NONE" ? a : a_register;
  wire [17:0] factor_b = REG_INPUTB_CLK == "NONE" ? b : b_register;
  wire signed [35:0] a_extended = {{18{SIGNEDA & factor_a[17]}}, factor_a};
  wire signed [35:0] b_extended = {{18{SIGNEDB & factor_b[17]}}, factor_b};
  wire [35:0] product = a_extended * b_extended;
  wire [35:0] piped = REG_PIPELINE_CLK == "NONE" ? product : pipeline_register;
  assign {
    P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14,
    P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
  } = REG_OUTPUT_CLK == "NONE" ? piped : output_register;

  wire a_enable = REG_INPUTA_CE == "CE0" ? CE0 : REG_INPUTA_CE == "CE1" ? CE1 : REG_INPUTA_CE == "CE2" ? CE2 : CE3;
  wire b_enable = REG_INPUTB_CE == "CE0" ? CE0 : REG_INPUTB_CE == "CE1" ? CE1 : REG_INPUTB_CE == "CE2" ? CE2 : CE3;
  wire pipeline_enable =
    REG_PIPELINE_CE == "CE0" ? CE0 : REG_PIPELINE_CE == "CE1" ? CE1 : REG_PIPELINE_CE == "CE2" ? CE2 : CE3;
  wire output_enable = REG_OUTPUT_CE == "CE0" ? CE0 : REG_OUTPUT_CE == "CE1" ? CE1 : REG_OUTPUT_CE == "CE2" ? CE2 : CE3;
  always @(posedge CLK0) begin
    if (a_enable) a_register <= a;
    if (b_enable) b_register <= b;
    if (pipeline_enable) pipeline_register <= product;
    if (output_enable) output_register <= piped;
    if (RST0) begin
      a_register <= 18'dx;
      b_register <= 18'dx;
      pipeline_register <= 36'dx;
      output_register <= 36'dx;
    end
  end
  generate
    if ((REG_INPUTA_CLK != "NONE" && REG_INPUTA_CLK != "CLK0") || (REG_INPUTB_CLK != "NONE" && REG_INPUTB_CLK != "CLK0")
        || (REG_PIPELINE_CLK != "NONE" && REG_PIPELINE_CLK != "CLK0")
        || (REG_OUTPUT_CLK != "NONE" && REG_OUTPUT_CLK != "CLK0")
        || REG_INPUTA_RST != "RST0" || REG_INPUTB_RST != "RST0" || REG_PIPELINE_RST != "RST0"
        || REG_OUTPUT_RST != "RST0" || REG_INPUTC_CLK != "NONE" || MULT_BYPASS != "DISABLED") begin : unsupported
      unsupported_configuration MULT18X18D ();
    end
  endgenerate
endmodule

// The 16 words of a parameter. Not one long vector of all: yosys takes seconds for a thousand parts of it.
`define WORDS(number, words) for (i = 0; i < 16; i = i + 1) memory[16 * number + i] = words[20 * i +: 18];

// A block of 1024 words of 18 bits with two ports, each 1, 2, 4, 9 or 18 bits wide. Or port A writes 36 bits, the upper
// half on DIB, and port B reads them, the lower half on DOA.
//
// An address counts bits, without the ninth bit of each byte; the bits of the address that a wide port does not need
// enable bytes. A bit that is read in the cycle in which the other port writes it is unknown.
//
// With REGMODE "OUTREG" a register follows each read, which loads while OCE is 1, whether the port itself is enabled or
// not; a read of 36 bits has the clock and the enable of port B in both halves.
module DP16KD #(
  parameter DATA_WIDTH_A = 18,
  parameter DATA_WIDTH_B = 18,
  parameter REGMODE_A = "NOREG",
  parameter REGMODE_B = "NOREG",
  parameter RESETMODE = "SYNC",
  parameter ASYNC_RESET_RELEASE = "SYNC",
  parameter CSDECODE_A = "0b000",
  parameter CSDECODE_B = "0b000",
  parameter WRITEMODE_A = "NORMAL",
  parameter WRITEMODE_B = "NORMAL",
  parameter CLKAMUX = "CLKA",
  parameter CLKBMUX = "CLKB",
  parameter GSR = "ENABLED",
  parameter [319:0] INITVAL_00 = 320'd0,
  parameter [319:0] INITVAL_01 = 320'd0,
  parameter [319:0] INITVAL_02 = 320'd0,
  parameter [319:0] INITVAL_03 = 320'd0,
  parameter [319:0] INITVAL_04 = 320'd0,
  parameter [319:0] INITVAL_05 = 320'd0,
  parameter [319:0] INITVAL_06 = 320'd0,
  parameter [319:0] INITVAL_07 = 320'd0,
  parameter [319:0] INITVAL_08 = 320'd0,
  parameter [319:0] INITVAL_09 = 320'd0,
  parameter [319:0] INITVAL_0A = 320'd0,
  parameter [319:0] INITVAL_0B = 320'd0,
  parameter [319:0] INITVAL_0C = 320'd0,
  parameter [319:0] INITVAL_0D = 320'd0,
  parameter [319:0] INITVAL_0E = 320'd0,
  parameter [319:0] INITVAL_0F = 320'd0,
  parameter [319:0] INITVAL_10 = 320'd0,
  parameter [319:0] INITVAL_11 = 320'd0,
  parameter [319:0] INITVAL_12 = 320'd0,
  parameter [319:0] INITVAL_13 = 320'd0,
  parameter [319:0] INITVAL_14 = 320'd0,
  parameter [319:0] INITVAL_15 = 320'd0,
  parameter [319:0] INITVAL_16 = 320'd0,
  parameter [319:0] INITVAL_17 = 320'd0,
  parameter [319:0] INITVAL_18 = 320'd0,
  parameter [319:0] INITVAL_19 = 320'd0,
  parameter [319:0] INITVAL_1A = 320'd0,
  parameter [319:0] INITVAL_1B = 320'd0,
  parameter [319:0] INITVAL_1C = 320'd0,
  parameter [319:0] INITVAL_1D = 320'd0,
  parameter [319:0] INITVAL_1E = 320'd0,
  parameter [319:0] INITVAL_1F = 320'd0,
  parameter [319:0] INITVAL_20 = 320'd0,
  parameter [319:0] INITVAL_21 = 320'd0,
  parameter [319:0] INITVAL_22 = 320'd0,
  parameter [319:0] INITVAL_23 = 320'd0,
  parameter [319:0] INITVAL_24 = 320'd0,
  parameter [319:0] INITVAL_25 = 320'd0,
  parameter [319:0] INITVAL_26 = 320'd0,
  parameter [319:0] INITVAL_27 = 320'd0,
  parameter [319:0] INITVAL_28 = 320'd0,
  parameter [319:0] INITVAL_29 = 320'd0,
  parameter [319:0] INITVAL_2A = 320'd0,
  parameter [319:0] INITVAL_2B = 320'd0,
  parameter [319:0] INITVAL_2C = 320'd0,
  parameter [319:0] INITVAL_2D = 320'd0,
  parameter [319:0] INITVAL_2E = 320'd0,
  parameter [319:0] INITVAL_2F = 320'd0,
  parameter [319:0] INITVAL_30 = 320'd0,
  parameter [319:0] INITVAL_31 = 320'd0,
  parameter [319:0] INITVAL_32 = 320'd0,
  parameter [319:0] INITVAL_33 = 320'd0,
  parameter [319:0] INITVAL_34 = 320'd0,
  parameter [319:0] INITVAL_35 = 320'd0,
  parameter [319:0] INITVAL_36 = 320'd0,
  parameter [319:0] INITVAL_37 = 320'd0,
  parameter [319:0] INITVAL_38 = 320'd0,
  parameter [319:0] INITVAL_39 = 320'd0,
  parameter [319:0] INITVAL_3A = 320'd0,
  parameter [319:0] INITVAL_3B = 320'd0,
  parameter [319:0] INITVAL_3C = 320'd0,
  parameter [319:0] INITVAL_3D = 320'd0,
  parameter [319:0] INITVAL_3E = 320'd0,
  parameter [319:0] INITVAL_3F = 320'd0
) (
  input wire
    DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1,
    DIA0,
  input wire
    ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
  input wire CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
  output wire
    DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1,
    DOA0,
  input wire
    DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1,
    DIB0,
  input wire
    ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
  input wire CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
  output wire
    DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1,
    DOB0
);
  localparam WIDE_A = DATA_WIDTH_A == 36;
  localparam WIDE_B = DATA_WIDTH_B == 36;
  wire [17:0] data_a = {
    DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1,
    DIA0
  };
  wire [13:0] address_a = {
    ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0
  };
  wire clock_a = CLKAMUX == "INV" ? ~CLKA : CLKA;
  wire enable_a = CEA & ~CSA2 & ~CSA1 & ~CSA0;
  wire write_a = enable_a & WEA;
  reg [17:0] output_a, registered_a;
  assign {
    DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1,
    DOA0
  } = REGMODE_A == "OUTREG" ? registered_a : output_a;
  wire [17:0] data_b = {
    DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1,
    DIB0
  };
  wire [13:0] address_b = {
    ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0
  };
  wire clock_b = CLKBMUX == "INV" ? ~CLKB : CLKB;
  wire enable_b = CEB & ~CSB2 & ~CSB1 & ~CSB0;
  wire write_b = enable_b & WEB;
  reg [17:0] output_b, registered_b;
  assign {
    DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1,
    DOB0
  } = REGMODE_B == "OUTREG" ? registered_b : output_b;

  reg [17:0] memory [0:1023];
  integer i;
  initial begin
    `WORDS(0, INITVAL_00) `WORDS(1, INITVAL_01) `WORDS(2, INITVAL_02) `WORDS(3, INITVAL_03)
    `WORDS(4, INITVAL_04) `WORDS(5, INITVAL_05) `WORDS(6, INITVAL_06) `WORDS(7, INITVAL_07)
    `WORDS(8, INITVAL_08) `WORDS(9, INITVAL_09) `WORDS(10, INITVAL_0A) `WORDS(11, INITVAL_0B)
    `WORDS(12, INITVAL_0C) `WORDS(13, INITVAL_0D) `WORDS(14, INITVAL_0E) `WORDS(15, INITVAL_0F)
    `WORDS(16, INITVAL_10) `WORDS(17, INITVAL_11) `WORDS(18, INITVAL_12) `WORDS(19, INITVAL_13)
    `WORDS(20, INITVAL_14) `WORDS(21, INITVAL_15) `WORDS(22, INITVAL_16) `WORDS(23, INITVAL_17)
    `WORDS(24, INITVAL_18) `WORDS(25, INITVAL_19) `WORDS(26, INITVAL_1A) `WORDS(27, INITVAL_1B)
    `WORDS(28, INITVAL_1C) `WORDS(29, INITVAL_1D) `WORDS(30, INITVAL_1E) `WORDS(31, INITVAL_1F)
    `WORDS(32, INITVAL_20) `WORDS(33, INITVAL_21) `WORDS(34, INITVAL_22) `WORDS(35, INITVAL_23)
    `WORDS(36, INITVAL_24) `WORDS(37, INITVAL_25) `WORDS(38, INITVAL_26) `WORDS(39, INITVAL_27)
    `WORDS(40, INITVAL_28) `WORDS(41, INITVAL_29) `WORDS(42, INITVAL_2A) `WORDS(43, INITVAL_2B)
    `WORDS(44, INITVAL_2C) `WORDS(45, INITVAL_2D) `WORDS(46, INITVAL_2E) `WORDS(47, INITVAL_2F)
    `WORDS(48, INITVAL_30) `WORDS(49, INITVAL_31) `WORDS(50, INITVAL_32) `WORDS(51, INITVAL_33)
    `WORDS(52, INITVAL_34) `WORDS(53, INITVAL_35) `WORDS(54, INITVAL_36) `WORDS(55, INITVAL_37)
    `WORDS(56, INITVAL_38) `WORDS(57, INITVAL_39) `WORDS(58, INITVAL_3A) `WORDS(59, INITVAL_3B)
    `WORDS(60, INITVAL_3C) `WORDS(61, INITVAL_3D) `WORDS(62, INITVAL_3E) `WORDS(63, INITVAL_3F)
    output_a = 18'd0;
    output_b = 18'd0;
    registered_a = 18'd0;
    registered_b = 18'd0;
  end

  // of the 18 bits a port sees, where its first bit is
  function [4:0] first(input [13:0] address, input integer width);
    case (width)
      18, 36: first = 5'd0;
      9: first = address[3] ? 5'd9 : 5'd0;
      4: first = (address[3] ? 5'd9 : 5'd0) + {2'd0, address[2], 2'd0};
      2: first = (address[3] ? 5'd9 : 5'd0) + {2'd0, address[2:1], 1'd0};
      default: first = (address[3] ? 5'd9 : 5'd0) + {2'd0, address[2:0]};
    endcase
  endfunction

  // the bits a port writes; byte enables for a port of 18 bits
  function [17:0] written(input [13:0] address, input [1:0] bytes, input integer width);
    case (width)
      18, 36: written = {{9{bytes[1]}}, {9{bytes[0]}}};
      9: written = 18'h1ff << first(address, width);
      4: written = 18'hf << first(address, width);
      2: written = 18'h3 << first(address, width);
      default: written = 18'h1 << first(address, width);
    endcase
  endfunction

  function [17:0] seen(input [17:0] word, input [13:0] address, input integer width);
    case (width)
      18, 36: seen = word;
      9: seen = (word >> first(address, width)) & 18'h1ff;
      4: seen = (word >> first(address, width)) & 18'hf;
      2: seen = (word >> first(address, width)) & 18'h3;
      default: seen = (word >> first(address, width)) & 18'h1;
    endcase
  endfunction

  wire [9:0] index_a = {address_a[13:5], address_a[4] & ~WIDE_A};
  wire [9:0] index_b = {address_b[13:5], address_b[4] & ~WIDE_B};
  wire [17:0] mask_a = write_a ? written(address_a, address_a[1:0], DATA_WIDTH_A) : 18'd0;
  wire [17:0] upper_mask_a = write_a && WIDE_A ? written(address_a, address_a[3:2], DATA_WIDTH_A) : 18'd0;
  wire [17:0] mask_b = write_b ? written(address_b, address_b[1:0], DATA_WIDTH_B) : 18'd0;
  wire [17:0] new_a = (memory[index_a] & ~mask_a) | ((data_a << first(address_a, DATA_WIDTH_A)) & mask_a);
  wire [17:0] new_b = (memory[index_b] & ~mask_b) | ((data_b << first(address_b, DATA_WIDTH_B)) & mask_b);

  // what one port reads while the other writes is unknown
  function [17:0] disturbed(
    input [9:0] index, input [9:0] other, input [17:0] mask, input [17:0] upper_mask, input wide
  );
    begin
      disturbed = index == other ? mask : 18'd0;
      if (wide && index == {other[9:1], 1'b1}) disturbed = upper_mask;
    end
  endfunction

  wire [17:0] unknown_a = disturbed(index_a, index_b, mask_b, 18'd0, 1'b0);
  wire [17:0] unknown_b = disturbed(index_b, index_a, mask_a, upper_mask_a, WIDE_A);
  wire [17:0] unknown_upper_b = disturbed({index_b[9:1], 1'b1}, index_a, mask_a, upper_mask_a, WIDE_A);

  always @(posedge clock_a) begin
    if (write_a) memory[index_a] <= new_a;
    if (write_a && WIDE_A)
      memory[{index_a[9:1], 1'b1}] <= (memory[{index_a[9:1], 1'b1}] & ~upper_mask_a) | (data_b & upper_mask_a);
  end
  always @(posedge clock_b)
    if (write_b) memory[index_b] <= new_b;

  // Reset clears an output also where its port is not enabled.
  wire [17:0] word_a = (WRITEMODE_A == "WRITETHROUGH" ? new_a : memory[index_a]) ^ (unknown_a & {18{1'bx}});
  wire [17:0] word_b = (WRITEMODE_B == "WRITETHROUGH" ? new_b : memory[index_b]) ^ (unknown_b & {18{1'bx}});
  wire [17:0] upper_b = memory[{index_b[9:1], 1'b1}] ^ (unknown_upper_b & {18{1'bx}});
  generate
    if (WIDE_B) begin : wide
      always @(posedge clock_b)
        if (RSTB) {output_b, output_a} <= 36'd0;
        else if (enable_b) {output_b, output_a} <= {upper_b, word_b};
      always @(posedge clock_b)
        if (OCEB) {registered_b, registered_a} <= RSTB ? 36'd0 : {output_b, output_a};
    end else begin : narrow
      always @(posedge clock_a)
        if (RSTA) output_a <= 18'd0;
        else if (enable_a && !(WEA && WRITEMODE_A == "NORMAL")) output_a <= seen(word_a, address_a, DATA_WIDTH_A);
      always @(posedge clock_b)
        if (RSTB) output_b <= 18'd0;
        else if (enable_b && !(WEB && WRITEMODE_B == "NORMAL")) output_b <= seen(word_b, address_b, DATA_WIDTH_B);
      always @(posedge clock_a)
        if (OCEA) registered_a <= RSTA ? 18'd0 : output_a;
      always @(posedge clock_b)
        if (OCEB) registered_b <= RSTB ? 18'd0 : output_b;
    end
    if ((REGMODE_A != "NOREG" && REGMODE_A != "OUTREG") || (REGMODE_B != "NOREG" && REGMODE_B != "OUTREG")
        || (WIDE_B && REGMODE_A != REGMODE_B) || CSDECODE_A != "0b000" || CSDECODE_B != "0b000")
    begin : unsupported
      unsupported_configuration DP16KD ();
    end
  endgenerate
endmodule
