"""What runs beside the emitted design in a simulator: vectors, the C++ bulk harness, cocotb agents and runners.

Knows the emitted directory (Verilog, weights, manifest.json) and nothing of the compiler that wrote it; imports cocotb,
numpy and the standard library only, so that a copy of it runs inside the emitted ``testbench/`` folder.
"""
