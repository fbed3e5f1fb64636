// Single-port RAM within a part, beside a design in a simulation. In a cycle with en and we the word at a becomes dq_i;
// with en alone dq_o shows the word at a in the next cycle, and else anything. Reading a word that nothing has written
// ends the simulation. For simulation only; Verilog-2005 but for $fatal.
//
// WIDTH, WORDS   bits of a word, and how many there are
// FILE           a $readmemh file of what it holds at first, IMAGE words; "": it has no contents
module hwflow_spram #(
    parameter WIDTH = 16, WORDS = 65536, IMAGE = 0, FILE = ""
) (
    input clk, en, we,
    input [$clog2(WORDS)-1:0] a,
    input [WIDTH-1:0] dq_i,
    output reg [WIDTH-1:0] dq_o
);
    reg [WIDTH-1:0] memory [0:WORDS-1];
    reg written [0:WORDS-1];
    integer word;
    initial begin
        if (FILE != "") $readmemh(FILE, memory, 0, IMAGE - 1);
        for (word = 0; word < WORDS; word = word + 1) written[word] = FILE != "" && word < IMAGE;
    end

    always @(posedge clk) begin
        dq_o <= {WIDTH{1'bx}};
        if (en && we) begin
            memory[a] <= dq_i;
            written[a] <= 1'b1;
        end else if (en) begin
            if (!written[a]) $fatal(1, "SPRAM: word %0d must be written before it is read", a);
            dq_o <= memory[a];
        end
    end
endmodule
