// Sends the bytes of `BYTES` to a block of one byte a beat, in transfers that end after the bytes marked in `ENDS`, and
// prints each byte that comes out, with "end" behind the last one of a transfer; both sides pause by turns.
`timescale 1ns / 1ps
module axis_bench;
  parameter COUNT = 4;
  parameter [8*COUNT-1:0] BYTES = 0;
  parameter [COUNT-1:0] ENDS = 1;
  parameter PAUSES = 0;
  reg aclk = 1'b0, aresetn = 1'b0;
  reg [7:0] sent_data = 8'h00;
  reg valid = 1'b0, last = 1'b0, ready = 1'b0;
  reg [15:0] noise = 16'hACE1;
  wire taken, out_valid, out_last, error;
  wire [7:0] data;
  integer at = 0;
  reg held = 1'b0, held_last;
  reg [7:0] held_data;

  hwflow_axis block (
    .aclk(aclk), .aresetn(aresetn), .s_axis_tdata(sent_data), .s_axis_tvalid(valid), .s_axis_tready(taken),
    .s_axis_tlast(last), .m_axis_tdata(data), .m_axis_tkeep(), .m_axis_tvalid(out_valid), .m_axis_tready(ready),
    .m_axis_tlast(out_last), .error(error)
  );
  always #5 aclk = ~aclk;

  initial begin
    repeat (4) @(negedge aclk);
    aresetn = 1'b1;
    repeat (400) @(negedge aclk);
    if (error) $display("error");
    $finish;
  end

  always @(posedge aclk) begin
    noise <= {noise[14:0], noise[15] ^ noise[13] ^ noise[12] ^ noise[10]};
    if (held && (!out_valid || data != held_data || out_last != held_last)) $display("not held");
    held <= out_valid && !ready;
    held_data <= data;
    held_last <= out_last;
    if (out_valid && ready) $display("%02x%s", data, out_last ? " end" : "");
    ready <= PAUSES ? noise[0] : 1'b1;
    if (valid && taken) valid <= 1'b0;
    if (aresetn && at < COUNT && (!valid || taken) && !(PAUSES && noise[1])) begin
      valid <= 1'b1;
      sent_data <= BYTES[8*(COUNT-1-at) +: 8];
      last <= ENDS[COUNT-1-at];
      at <= at + 1;
    end
  end
endmodule
