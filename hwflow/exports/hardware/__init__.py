"""The Verilog and the constraints around an exported core."""
