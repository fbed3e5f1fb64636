"""What runs beside an emitted design in a simulator. Knows the emitted directory (Verilog and manifest) only."""
