// A table with a synchronous read port, loaded from a hex file when the design is elaborated.
//
// WIDTH          bits of a word
// DEPTH          words
// ADDRESS_WIDTH  bits of addr; DEPTH is at most 2**ADDRESS_WIDTH
// FILE           path of a $readmemh file with DEPTH words, relative to where the simulator or synthesizer runs; a
//                simulation without it ends with an error
// HELD           1: a bitstream may get other words. The memory lies in block RAM whatever its size, with all bits of
//                its words: synthesis cannot know that it is never written
//
// data shows the word that addr selected a cycle before.
module hwflow_rom #(
    parameter WIDTH = 8,
    parameter DEPTH = 2,
    parameter ADDRESS_WIDTH = 1,
    parameter FILE = "",
    parameter HELD = 0
) (
    input  wire                     clk,
    input  wire [ADDRESS_WIDTH-1:0] addr,
    output reg  [WIDTH-1:0]         data
);
    (* ram_style = HELD ? "block" : "auto", rom_style = HELD ? "block" : "auto", no_rw_check = HELD *)
    reg [WIDTH-1:0] memory [0:DEPTH-1];

    // Without a file, as a tool sees this module before it is instantiated, all words are 0.
    generate
        if (FILE != "") begin : load
            initial $readmemh(FILE, memory);
`ifndef SYNTHESIS
            // Not all simulators stop where a file is missing or too short: this does.
            integer file, words;
            reg [WIDTH-1:0] word;
            initial begin
                words = 0;
                file = $fopen(FILE, "r");
                if (file != 0) begin
                    while ($fscanf(file, "%h", word) == 1) words = words + 1;
                    $fclose(file);
                end
                if (words != DEPTH) begin
                    if (file == 0) $display("ERROR: %m: file %0s must exist, and cannot be opened", FILE);
                    else $display("ERROR: %m: file %0s must have %0d words, not %0d", FILE, DEPTH, words);
`ifdef __ICARUS__
                    $finish_and_return(1);
`else
                    $fatal;
`endif
                end
            end
`endif
        end else begin : clear
            integer word;
            initial for (word = 0; word < DEPTH; word = word + 1) memory[word] = {WIDTH{1'b0}};
        end
    endgenerate

    generate
        if (HELD) begin : held
            (* keep *) reg never = 1'b0;
            always @(posedge clk) begin
                never <= never & addr[0];  // not of data, which comes late in the cycle
                if (never) memory[addr] <= {WIDTH{addr[0]}};  // the register behind data may be the block's own
            end
        end
    endgenerate

    always @(posedge clk)
        data <= memory[addr];
endmodule
