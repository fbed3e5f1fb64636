"""The emitted Verilog as text: what its modules and files are called, and where its weights are."""
