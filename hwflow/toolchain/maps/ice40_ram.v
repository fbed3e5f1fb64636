// A block RAM of the iCE40, as yosys' memory_libmap leaves it, to SB_RAM40_4K: techmap -map.
//
// Yosys' own map finds the first contents bit by bit, in a loop, which takes a second for each block of its own
// contents; this one in rows.
//
// A row of 16 bits holds words of 16, 8, 4 or 2 bits, the first one lowest. Where bits are left out of a narrower
// word's pins, the three upper address bits choose (Lattice TN1250): pin 8 a + 4 b + 2 c + d is bit 8 d + 4 c + 2 b + a
// of the row, and the lowest bits of the address count the words of a row.
module \$__ICE40_RAM4K_ (
    PORT_R_CLK, PORT_R_RD_EN, PORT_R_ADDR, PORT_R_RD_DATA,
    PORT_W_CLK, PORT_W_WR_EN, PORT_W_WR_BE, PORT_W_ADDR, PORT_W_WR_DATA
);
    parameter INIT = 0;
    parameter OPTION_HAS_BE = 1;
    parameter PORT_R_WIDTH = 16;
    parameter PORT_W_WIDTH = 16;
    parameter PORT_W_WR_BE_WIDTH = 16;
    parameter PORT_R_CLK_POL = 1;
    parameter PORT_W_CLK_POL = 1;
    input PORT_R_CLK, PORT_R_RD_EN, PORT_W_CLK, PORT_W_WR_EN;
    input [10:0] PORT_R_ADDR, PORT_W_ADDR;
    input [15:0] PORT_W_WR_BE;
    input [PORT_W_WIDTH-1:0] PORT_W_WR_DATA;
    output [PORT_R_WIDTH-1:0] PORT_R_RD_DATA;

    // Bits of a row in the order of pins, and back: the number's binary digits the other way round.
`define TURNED(row) { \
    row[15], row[7], row[11], row[3], row[13], row[5], row[9], row[1], \
    row[14], row[6], row[10], row[2], row[12], row[4], row[8], row[0] \
}
    function [15:0] turned(input [15:0] row);
        turned = `TURNED(row);
    endfunction

    localparam [4095:0] CONTENTS = INIT;
    localparam [1:0] READ_MODE = PORT_R_WIDTH == 16 ? 0 : PORT_R_WIDTH == 8 ? 1 : PORT_R_WIDTH == 4 ? 2 : 3;
    localparam [1:0] WRITE_MODE = PORT_W_WIDTH == 16 ? 0 : PORT_W_WIDTH == 8 ? 1 : PORT_W_WIDTH == 4 ? 2 : 3;
    wire [10:0] raddr = {PORT_R_ADDR[0], PORT_R_ADDR[1], PORT_R_ADDR[2], PORT_R_ADDR[10:3]};
    wire [10:0] waddr = {PORT_W_ADDR[0], PORT_W_ADDR[1], PORT_W_ADDR[2], PORT_W_ADDR[10:3]};
    wire [15:0] rdata, wdata, mask;

    // Narrower words have every second, fourth or eighth pin.
    generate
        if (READ_MODE == 0) assign PORT_R_RD_DATA = `TURNED(rdata);
        if (READ_MODE == 1) assign PORT_R_RD_DATA = {
            rdata[14], rdata[6], rdata[10], rdata[2], rdata[12], rdata[4], rdata[8], rdata[0]
        };
        if (READ_MODE == 2) assign PORT_R_RD_DATA = {rdata[13], rdata[5], rdata[9], rdata[1]};
        if (READ_MODE == 3) assign PORT_R_RD_DATA = {rdata[11], rdata[3]};
        if (WRITE_MODE == 0) begin
            assign wdata = `TURNED(PORT_W_WR_DATA);
            assign mask = ~`TURNED(PORT_W_WR_BE);
        end
        if (WRITE_MODE == 1) assign {
            wdata[14], wdata[6], wdata[10], wdata[2], wdata[12], wdata[4], wdata[8], wdata[0]
        } = PORT_W_WR_DATA;
        if (WRITE_MODE == 2) assign {wdata[13], wdata[5], wdata[9], wdata[1]} = PORT_W_WR_DATA;
        if (WRITE_MODE == 3) assign {wdata[11], wdata[3]} = PORT_W_WR_DATA;
    endgenerate
`define ROW(n, r) turned(CONTENTS[256 * (n) + 16 * (r) +: 16])
`define ROWS(n) { \
    `ROW(n, 15), `ROW(n, 14), `ROW(n, 13), `ROW(n, 12), `ROW(n, 11), `ROW(n, 10), `ROW(n, 9), `ROW(n, 8), \
    `ROW(n, 7), `ROW(n, 6), `ROW(n, 5), `ROW(n, 4), `ROW(n, 3), `ROW(n, 2), `ROW(n, 1), `ROW(n, 0) \
}
`define BLOCK(type, rclk, wclk) \
    type #( \
        .INIT_0(`ROWS(0)), .INIT_1(`ROWS(1)), .INIT_2(`ROWS(2)), .INIT_3(`ROWS(3)), \
        .INIT_4(`ROWS(4)), .INIT_5(`ROWS(5)), .INIT_6(`ROWS(6)), .INIT_7(`ROWS(7)), \
        .INIT_8(`ROWS(8)), .INIT_9(`ROWS(9)), .INIT_A(`ROWS(10)), .INIT_B(`ROWS(11)), \
        .INIT_C(`ROWS(12)), .INIT_D(`ROWS(13)), .INIT_E(`ROWS(14)), .INIT_F(`ROWS(15)), \
        .READ_MODE(READ_MODE), .WRITE_MODE(WRITE_MODE) \
    ) _TECHMAP_REPLACE_ ( \
        .rclk(PORT_R_CLK), .RCLKE(PORT_R_RD_EN), .RE(1'b1), .RADDR(raddr), .RDATA(rdata), \
        .wclk(PORT_W_CLK), .WCLKE(PORT_W_WR_EN), .WE(1'b1), .WADDR(waddr), .WDATA(wdata), .MASK(mask) \
    );

    generate
        case ({PORT_R_CLK_POL != 0, PORT_W_CLK_POL != 0})
            2'b11: begin `BLOCK(SB_RAM40_4K, RCLK, WCLK) end
            2'b10: begin `BLOCK(SB_RAM40_4KNW, RCLK, WCLKN) end
            2'b01: begin `BLOCK(SB_RAM40_4KNR, RCLKN, WCLK) end
            2'b00: begin `BLOCK(SB_RAM40_4KNRNW, RCLKN, WCLKN) end
        endcase
    endgenerate
endmodule
