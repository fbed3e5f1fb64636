// The smallest design with the ports of hwflow_top: four beats of one byte a frame, each byte plus weights/increment.mem.
module hwflow_top (
  input wire clk, input wire rst,
  input wire [7:0] s_axis_tdata, input wire s_axis_tvalid, output wire s_axis_tready, input wire s_axis_tlast,
  output reg [7:0] m_axis_tdata, output reg m_axis_tvalid, input wire m_axis_tready, output reg m_axis_tlast,
  output reg error
);
  reg [7:0] memory [0:0];
  reg [1:0] beat;
  initial $readmemh("weights/increment.mem", memory);
  assign s_axis_tready = !m_axis_tvalid;
  always @(posedge clk) begin
    if (m_axis_tvalid) begin
      if (m_axis_tready) m_axis_tvalid <= 1'b0;
    end else if (s_axis_tvalid) begin
      m_axis_tvalid <= 1'b1;
      m_axis_tdata <= s_axis_tdata + memory[0];
      m_axis_tlast <= beat == 2'd3;
      beat <= beat + 2'd1;
      if (s_axis_tlast != (beat == 2'd3)) error <= 1'b1;
    end
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      beat <= 2'd0;
      error <= 1'b0;
    end
  end
endmodule
