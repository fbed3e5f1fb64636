// Two signed products of 8 by 8 bits (hdl_lib.arithmetic.block_product: BytePair) to an SB_MAC16: techmap -map.
//
// Registers at the operands and behind each product, no adders. The block's resets do not wait for a clock, and
// the pair has none.
module hwflow_byte_pair (input clk, input rst, input [15:0] a, input [15:0] b, output [31:0] p);
    SB_MAC16 #(
        .A_REG(1'b1), .B_REG(1'b1), .A_SIGNED(1'b1), .B_SIGNED(1'b1), .MODE_8x8(1'b1),
        .TOP_8x8_MULT_REG(1'b1), .BOT_8x8_MULT_REG(1'b1), .TOPOUTPUT_SELECT(2'd2), .BOTOUTPUT_SELECT(2'd2)
    ) _TECHMAP_REPLACE_ (
        .CLK(clk), .CE(1'b1), .AHOLD(1'b0), .BHOLD(1'b0), .IRSTTOP(1'b0), .IRSTBOT(1'b0), .A(a), .B(b), .O(p)
    );
endmodule
