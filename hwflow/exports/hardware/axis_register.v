// Two registers between two streams: every output comes from a flip-flop, and no path leads through.
// A beat takes one cycle; a beat in every cycle passes. In reset o_valid is 0, and what is offered is not taken.
module hwflow_axis_register #(
    parameter WIDTH = 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] i_data,
    input  wire             i_valid,
    output reg              i_ready,
    output reg  [WIDTH-1:0] o_data,
    output reg              o_valid,
    input  wire             o_ready
);
    reg [WIDTH-1:0] waiting_data;  // the beat that came while o_data could not leave
    reg             waiting;

    initial begin
        i_ready = 1'b0;
        o_valid = 1'b0;
        waiting = 1'b0;
    end

    wire leaves = o_ready || !o_valid;  // o_data is free at the next edge
    wire enters = i_valid && i_ready;

    always @(posedge clk) begin
        if (leaves) o_data <= waiting ? waiting_data : i_data;
        if (enters) waiting_data <= i_data;
        if (rst) begin
            i_ready <= 1'b0;
            o_valid <= 1'b0;
            waiting <= 1'b0;
        end else begin
            if (leaves) o_valid <= waiting || enters;
            waiting <= !leaves && (waiting || enters);
            i_ready <= leaves || !(waiting || enters);
        end
    end
endmodule
