"""What is around the core on a board: top, clock, files for the tools."""
