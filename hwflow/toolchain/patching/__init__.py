"""New contents for the block RAMs of a bitstream, without synthesis or place and route."""
