// An SPI flash with quad output that ends the simulation when it is used before it is awake or set up, or in a way that
// its reader does not expect. For simulation only; Verilog-2005 but for $fatal.
//
// Its clock never stops, a cycle is CLOCK_PS. It is asleep at first, as a part's configuration leaves it, and QUAD says
// whether QE is set. FILE are the WORDS from byte OFFSET on, in hexadecimal, of which the lower byte comes first; others
// are not read. T_RES1: from waking it to its next command, T_CSH: between two commands, in picoseconds.
module hwflow_flash #(
    parameter WORDS = 1, OFFSET = 1048576, CLOCK_PS = 40000, T_RES1 = 3000000, T_CSH = 50000, QUAD = 0,
    parameter FILE = ""
) (
    input clk, cs_n,
    input [3:0] dq_i, dq_oe,
    output reg [3:0] dq_o,
    output reg sends
);
    localparam WAKE_UP = 8'hAB, WRITE_ENABLE = 8'h06, ENABLE_VOLATILE = 8'h50, WRITE_STATUS_2 = 8'h31,
        READ_QUAD = 8'h6B;
    localparam HEAD = 40;  // cycles of a command, its address and those until data come

    reg [15:0] memory [0:WORDS-1];
    initial if (FILE != "") $readmemh(FILE, memory);

    reg asleep, enabled, quad;
    reg [7:0] command, value;
    reg [23:0] address;
    reg [63:0] waited, high, edges;  // cycles since it was woken, and without a selection; of this command
    wire [63:0] nibble = edges - HEAD;
    wire [63:0] place = {40'd0, address} + (nibble >> 1);  // of the byte
    wire of_image = place >= OFFSET && place - OFFSET < 2 * WORDS;
    wire [15:0] word = memory[of_image ? (place - OFFSET) >> 1 : 0];
    wire [7:0] data = place[0] ? word[15:8] : word[7:0];
    wire [7:0] known = edges < 8 ? {command[6:0], dq_i[0]} : command;
    initial begin
        asleep = 1; enabled = 0; quad = QUAD; command = 0; value = 0; address = 0; waited = 0; high = 1; edges = 0;
        dq_o = 0; sends = 0;
    end

    always @(posedge clk) begin
        waited <= waited + 1;
        if (cs_n) begin
            high <= high + 1;
            edges <= 0;
            if (edges != 0) case (command)
                WAKE_UP: begin
                    if (edges != 8) $fatal(1, "flash: the command %h must have 8 bits, not %0d", command, edges);
                    asleep <= 0; waited <= 1;
                end
                WRITE_ENABLE, ENABLE_VOLATILE: begin
                    if (edges != 8) $fatal(1, "flash: the command %h must have 8 bits, not %0d", command, edges);
                    enabled <= 1;
                end
                WRITE_STATUS_2: begin
                    if (edges != 16) $fatal(1, "flash: the command %h must have 16 bits, not %0d", command, edges);
                    if (!enabled) $fatal(1, "flash: it must be enabled before its status is written");
                    enabled <= 0; quad <= value[1];
                end
                default: if (edges < HEAD || nibble[1:0] != 0)
                    $fatal(1, "flash: a burst must have whole words, not %0d cycles", edges);
            endcase
        end else begin
            high <= 0;
            edges <= edges + 1;
            if (edges == 0 && high * CLOCK_PS < T_CSH)
                $fatal(1, "flash: tSHSL, %0d ps between two commands, is violated", T_CSH);
            if (!quad && (dq_oe[3:2] != 2'b11 || dq_i[3:2] != 2'b11))
                $fatal(1, "flash: /WP and /HOLD must be high until QE is set");
            if (edges < 8) command <= known;
            if (edges == 7) case (known)
                WAKE_UP: ;
                WRITE_ENABLE, ENABLE_VOLATILE, WRITE_STATUS_2, READ_QUAD: begin
                    if (asleep) $fatal(1, "flash: it must be woken before command %h", known);
                    if ((waited - 7) * CLOCK_PS < T_RES1)
                        $fatal(1, "flash: tRES1, %0d ps from waking it, is violated", T_RES1);
                    if (known == READ_QUAD && !quad) $fatal(1, "flash: QE must be set before four wires are read");
                end
                default: $fatal(1, "flash: command %h is none of those that it has here", known);
            endcase
            if (edges < 8 || (edges < 32 && command == READ_QUAD) || command == WRITE_STATUS_2)
                if (!dq_oe[0]) $fatal(1, "flash: IO0 must be driven while it is sent bits");
            value <= {value[6:0], dq_i[0]};
            if (edges >= 8 && edges < 32) address <= {address[22:0], dq_i[0]};
            if (command == READ_QUAD && edges >= HEAD) begin
                if (!of_image) $fatal(1, "flash: byte %0d must be one of the image's", place);
                if (dq_oe != 0) $fatal(1, "flash: the pins of data must have one driver, not two");
            end
        end
    end

    always @(negedge clk) begin
        sends <= !cs_n && command == READ_QUAD && edges >= HEAD;
        dq_o <= nibble[0] ? data[3:0] : data[7:4];
    end
endmodule
